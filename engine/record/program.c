/* record/program.c - compiles a graph for a context: memory, bindings and command buffers. */
#include "record/debug.h"

#include <math.h>
#include <stdio.h>

#include "abi/step.abi.h"
#include "kernel/tuning.h"
#include "ops/ops.h"
#include "ops/step/optimizer.h"
#include "passes/passes.h"

enum { OPTIMIZER_TEXT = 120 };

static double rate(uint64_t fixed)
{
    return ldexp((double)fixed, -64);
}

/* Writes the name of an optimizer and its decay rates to `out`. Returns `out`. */
static const char *optimizer_text(vkt_optimizer_kind kind, vkt_clock_rates by, char out[OPTIMIZER_TEXT])
{
    if (by.beta2 == 0)
        snprintf(out, OPTIMIZER_TEXT, "%s", vkt_optimizer_name(kind));
    else if (by.decay == 0)
        snprintf(out, OPTIMIZER_TEXT, "%s (beta1 %.9g, beta2 %.9g)", vkt_optimizer_name(kind), rate(by.beta1),
                 rate(by.beta2));
    else
        snprintf(out, OPTIMIZER_TEXT, "%s (beta1 %.9g, beta2 %.9g, 0.96^momentum_decay %.9g)", vkt_optimizer_name(kind),
                 rate(by.beta1), rate(by.beta2), rate(by.decay));
    return out;
}

/* Adam and AdamW differ in the weight decay alone. */
static bool is_adam(vkt_optimizer_kind kind)
{
    return kind == VKT_ADAM || kind == VKT_ADAMW;
}

/* Checks that the graph's update fits the moments and the clock of the store. vkt_store_set_clock computes the clock
 * from the rates of the store's own graph. */
static vkt_result match_optimizer(const vkt_program *p)
{
    const vkt_graph *g = p->g;
    const vkt_store *s = p->store;
    if (!g->has_optimizer || !s || !s->updates) return VKT_OK;
    const vkt_clock_rates by = vkt_optimizer_rates(&g->optimizer);
    const bool same = g->optimizer.kind == s->kind || (is_adam(g->optimizer.kind) && is_adam(s->kind));
    if (same && by.beta1 == s->rates.beta1 && by.beta2 == s->rates.beta2 && by.decay == s->rates.decay) return VKT_OK;
    char want[OPTIMIZER_TEXT], got[OPTIMIZER_TEXT];
    return vkt_fail(
        &p->ctx->host, VKT_E_STATE,
        "program: want the optimizer of the graph that the store was made for, %s, got %s: make a store for "
        "this graph",
        optimizer_text(s->kind, s->rates, want), optimizer_text(g->optimizer.kind, by, got));
}

/* Finds the graph's parameters in the store, by name. If the graph uses an arena as a whole, the store's arena must
 * have the offsets and the size of the graph's arena. */
static vkt_result match_store(vkt_program *p)
{
    const vkt_host *h = &p->ctx->host;
    vkt_graph *g = p->g;
    bool in_arenas = false;
    for (int i = 0; i < VKT_ARENAS; i++) in_arenas |= g->arena[i].id != 0;
    if (g->n_params && !p->store) return vkt_fail(h, VKT_E_ARG, "program: the graph has parameters; want a store");
    if (p->store && p->store->ctx != p->ctx) return vkt_fail(h, VKT_E_ARG, "program: the store is of another context");
    for (size_t i = 0; i < g->n_params; i++) {
        vkt_value *v = &g->values[g->params[i]];
        const vkt_store_entry *e = NULL;
        if (i < p->store->n && strcmp(p->store->entries[i].name, v->name) == 0)
            e = &p->store->entries[i]; /* in most cases, the store has its parameters in the graph's order */
        for (uint32_t k = 0; k < p->store->n && !e; k++)
            if (strcmp(p->store->entries[k].name, v->name) == 0) e = &p->store->entries[k];
        char want[80], have[80];
        if (!e || !vkt_shape_equal(e->shape, v->shape))
            return vkt_fail(h, VKT_E_NOT_FOUND, "program: the store has %s for parameter '%s' of shape %s",
                            e ? vkt_shape_text(e->shape, have) : "nothing", v->name, vkt_shape_text(v->shape, want));
        if (in_arenas && e->offset_bytes != v->arena_offset_bytes)
            return vkt_fail(h, VKT_E_STATE,
                            "program: the store was laid out for another graph: parameter '%s' is elsewhere", v->name);
        v->arena_offset_bytes = e->offset_bytes;
    }
    for (int i = 0; i < VKT_ARENAS; i++)
        if (g->arena[i].id && (!p->store || !p->store->part[i] || p->store->arena_bytes != g->arena_bytes))
            return vkt_fail(h, VKT_E_STATE,
                            "program: the store was made for a graph without gradients, this optimizer or vkt_publish");
    return match_optimizer(p);
}

static vkt_result finish_graph(vkt_program *p)
{
    vkt_graph *g = p->g;
    VKT_TRY(vkt_check_blocks(g, "program"));
    if (g->step.id && !g->has_advance) {
        const size_t n_values = g->n_values;
        const vkt_tensor words = g->words, clock = g->clock;
        vkt_step_advance(g, g->has_optimizer);
        const vkt_result r = g->status;
        g->has_advance = r == VKT_OK;
        if (!g->has_advance) { /* removes what vkt_step_advance added, so that the caller may try again */
            g->n_values = n_values;
            g->words = words;
            g->clock = clock;
            g->status = VKT_OK;
            return r;
        }
    }
    g->finished = true;
    return VKT_OK;
}

/* Returns how many bytes of memory a program may still allocate. max_bytes: the program's own limit; 0: none. */
static uint64_t bytes_left(const vkt_ctx *ctx, uint64_t max_bytes)
{
    vkt_memory_stats m;
    vkt_ctx_memory(ctx, &m);
    const uint64_t left = m.cap_bytes > m.used_total_bytes ? m.cap_bytes - m.used_total_bytes : 0;
    return max_bytes ? VKT_MIN(left, max_bytes) : left;
}

/* Lowers the graph and plans its memory. more_bytes: how many additional bytes the plan may use if this saves
 * barriers. */
static vkt_result lower_and_plan(vkt_program *p, const vkt_program_params *params, uint64_t more_bytes)
{
    const vkt_precision precision = params->precision;
    vkt_graph *g = p->g;
    VKT_TRY(vkt_tuning_use(p->ctx));
    bool *live = vkt_alloc_array(&p->ctx->host, g->n_nodes + g->n_values + 1, sizeof *live);
    if (!live) return vkt_fail_nomem(&p->ctx->host, "a program", g->n_nodes + g->n_values);
    bool *half = live + g->n_nodes;
    vkt_find_live(g, live);
    vkt_find_epilogues(g, live);
    vkt_find_companions(g, live);
    if (vkt_stores_16_bits(precision)) vkt_find_half(g, live, half);
    vkt_result r = vkt_lower(g, &p->ctx->limits, live, (vkt_storage){ precision, half }, &p->lowered);
    vkt_free(&p->ctx->host, live);
    if (r != VKT_OK) return r;
    p->options.access = vkt_access_of;
    if (params->recompute)
        VKT_TRY(vkt_recompute(&p->lowered, vkt_access_of, &p->again));
    else
        p->options.more_bytes = more_bytes; /* stays 0 with `recompute`, because the caller wants to save memory */
    /* more_bytes is used only if half of the free memory (bytes_left) remains for later programs and arrays. */
    p->options.most_bytes = bytes_left(p->ctx, params->max_bytes) / 2;
    p->options.max_block_bytes = p->ctx->limits.max_allocation_bytes / VKT_ALIGN_BYTES * VKT_ALIGN_BYTES;
    return vkt_plan_make(&p->lowered, &p->options, &p->plan);
}

/* If a VKT_PRECISION_F32_SPLIT program has products but splits none of them, logs this once in a context. */
static void log_if_no_split(vkt_program *p)
{
    bool has_products = false, splits = false;
    for (size_t i = 0; i < p->lowered.n_picked; i++) {
        has_products |= (p->lowered.picked[i].usable & (p->ctx->limits.coop.m ? VKT_V(COOP) : VKT_V(SHARED))) != 0;
        splits |= p->lowered.picked[i].variant == VKT_V_COOP;
    }
    if (!has_products || splits || p->ctx->logged_no_split) return;
    p->ctx->logged_no_split = true;
    vkt_log_line(&p->ctx->host, VKT_LOG_WARN, "precision f32-split: %s, so products are computed as in f32",
                 p->ctx->limits.coop.m ? "other variants are preferred to cooperative matrices here"
                                       : "this device has no cooperative matrices");
}

/* Returns whether the tile of a node differs from the tile of its entry in the tuning file. An entry has one tile for
 * all of its variants. If several of these variants have tiles, the function cannot know which variant the tile is for,
 * and returns false. */
static bool has_other_tile(vkt_tuned want, const vkt_picked *picked)
{
    const uint64_t tiled = want.variants & (VKT_V(SHARED) | VKT_V(SPLIT_K) | VKT_V(COOP) | VKT_V(COOP2));
    return tiled == (uint64_t)1 << picked->variant && want.tile.m && picked->tile.m &&
           !vkt_tile_is(want.tile, picked->tile);
}

/* Returns whether some choice of a variant (vkt_picked) with this key uses `want`, the entry of the tuning file. A node
 * with several products has several choices with the same key, and the entry may fit only some of them. */
static bool is_used(const vkt_program *p, vkt_tuned want, uint64_t key)
{
    for (size_t i = 0; i < p->lowered.n_picked; i++) {
        const vkt_picked *picked = &p->lowered.picked[i];
        if (picked->key == key && want.variants & picked->usable && !has_other_tile(want, picked)) return true;
    }
    return false;
}

/* If a node cannot use its entry of the tuning file, logs this once in a context. This can happen because the file's
 * hash covers the kernels, but not the lists of variants and tiles. Another version of the library may have other
 * lists. Does nothing if the user forces variants or a tile. */
static void log_if_tuning_is_ignored(vkt_program *p)
{
    const vkt_choices *c = &p->ctx->limits.choices;
    if (c->n_tuned == 0 || c->force || c->tile.m || p->ctx->logged_tuning) return;
    for (size_t i = 0; i < p->lowered.n_picked; i++) {
        const vkt_picked *picked = &p->lowered.picked[i];
        const vkt_tuned want = vkt_tuned_for(c, picked->key);
        const bool other_tile = has_other_tile(want, picked);
        if (!want.variants || is_used(p, want, picked->key)) continue;
        p->ctx->logged_tuning = true;
        vkt_log_line(&p->ctx->host, VKT_LOG_WARN,
                     "tuning file: %s cannot use its %s, which is ignored (vkt-bench --tune makes a new entry)",
                     p->g->nodes[picked->node]->op->name, other_tile ? "tile" : "variant");
        return;
    }
}

/* If `published` is set, checks that the store has published parameters, and that the program writes no parameters. */
static vkt_result check_published(const vkt_program *p)
{
    const vkt_emit *e = &p->lowered;
    if (!p->published) return VKT_OK;
    if (!p->store || !p->store->part[VKT_PART_PUBLISHED])
        return vkt_fail(&p->ctx->host, VKT_E_STATE,
                        "program: want a store with published parameters: made for a graph with vkt_publish");
    for (size_t i = 0; i < e->n; i++)
        for (uint32_t b = 0; b < e->list[i].n_bind; b++) {
            const vkt_tensor t = e->list[i].bind[b].t;
            if (t.id && (vkt_access_of(&e->list[i]).writes >> b & 1) && vkt_lowered_value(e, t)->role == VKT_ROLE_PARAM)
                return vkt_fail(&p->ctx->host, VKT_E_STATE,
                                "program: it only reads published parameters, and its %s writes %s",
                                p->g->nodes[e->list[i].node]->op->name, vkt_lowered_value(e, t)->name);
        }
    return VKT_OK;
}

static uint64_t planned_bytes(const vkt_program *p)
{
    return p->plan.packed_bytes + p->plan.const_bytes + p->plan.input_bytes;
}

/* Checks before the first allocation that the plan fits into the memory that is left. If the plan does not fit, the
 * message has the sizes of the plan. */
static vkt_result check_cap(vkt_program *p, uint64_t max_bytes)
{
    const uint64_t left = bytes_left(p->ctx, max_bytes);
    if (planned_bytes(p) <= left) return VKT_OK;
    char a[24], b[24], c[24], d[24], e[24];
    return vkt_fail(
        &p->ctx->host, VKT_E_MEMORY_CAP,
        "%s needs %s of device memory (activations and scratch %s, constants %s, inputs %s) and %s are left below "
        "the cap: use a smaller batch",
        p->name, vkt_bytes_text(planned_bytes(p), a), vkt_bytes_text(p->plan.packed_bytes, b),
        vkt_bytes_text(p->plan.const_bytes, c), vkt_bytes_text(p->plan.input_bytes, d), vkt_bytes_text(left, e));
}

/* Returns whether two arrays overlap in one VkBuffer. Both arrays may be parts of one buffer of the application. The
 * sizes are rounded up to multiples of 16 bytes, because descriptors have such sizes. */
static bool share_memory(const vkt_array *a, const vkt_array *b)
{
    const uint64_t from_a = a->buffer->base_bytes, from_b = b->buffer->base_bytes;
    return a->buffer->handle == b->buffer->handle && from_a < from_b + vkt_round_up(b->bytes, 16) &&
           from_b < from_a + vkt_round_up(a->bytes, 16);
}

/* Returns whether value i is stored in an array, and is no alias of another value. */
static bool is_external(const vkt_program *p, size_t i)
{
    return p->g->values[i].role == VKT_ROLE_EXTERNAL && !p->g->values[i].alias;
}

/* Checks each value that the program writes (vkt_write, vkt_append): its array must not share memory with the array of
 * another external value in the same run. */
static vkt_result check_arrays_apart(const vkt_program *p, uint32_t side)
{
    const vkt_value *v = p->g->values;
    for (size_t i = 1; i < p->g->n_values; i++)
        for (size_t k = 1; is_external(p, i) && v[i].written && k < p->g->n_values; k++)
            if (k != i && is_external(p, k) && share_memory(p->arrays[side][i], p->arrays[side][k]))
                return vkt_fail(&p->ctx->host, VKT_E_STATE,
                                "program: one piece of memory is bound to '%s', which is written, and to '%s'%s",
                                v[i].name, v[k].name, side ? ", with swap" : "");
    return VKT_OK;
}

/* Returns whether an array can hold a value of this program. */
static bool array_fits(const vkt_program *p, vkt_tensor t, const vkt_array *a)
{
    const vkt_value *v = &p->g->values[t.id];
    return a && a->ctx == p->ctx && a->bytes >= v->bytes && a->dtype == v->dtype;
}

/* Binds arrays to the external values for which vkt_program_params.arrays has none. Such a value gets the array of its
 * vkt_external_array, or the copy of that array in this context. */
static vkt_result bind_given_arrays(vkt_program *p)
{
    for (uint32_t i = 1; i < p->g->n_values; i++) {
        if (!is_external(p, i) || p->arrays[0][i]) continue;
        vkt_array *given = p->g->values[i].array;
        if (!given)
            return vkt_fail(&p->ctx->host, VKT_E_ARG, "program: the external value '%s' has no array",
                            p->g->values[i].name);
        vkt_array *a = vkt_array_in(given, p->ctx);
        if (!a)
            return vkt_fail(&p->ctx->host, VKT_E_ARG,
                            "program: the array of '%s' is in another context, and this one has no copy of it: want "
                            "vkt_array_copy, or vkt_lm_add_context for a language model",
                            p->g->values[i].name);
        if (!array_fits(p, (vkt_tensor){ i }, a))
            return vkt_fail(&p->ctx->host, VKT_E_ARG,
                            "program: '%s' wants an array of its type and size made by this context",
                            p->g->values[i].name);
        p->arrays[0][i] = p->arrays[1][i] = a;
    }
    return VKT_OK;
}

static vkt_result bind_arrays(vkt_program *p, const vkt_program_params *params)
{
    const vkt_host *h = &p->ctx->host;
    p->sides = 1;
    for (uint32_t i = 0; i < params->n_arrays; i++) {
        const vkt_binding *b = &params->arrays[i];
        const bool known = b->tensor.id < p->g->n_values && p->g->values[b->tensor.id].role == VKT_ROLE_EXTERNAL;
        if (!known || !array_fits(p, b->tensor, b->array) || (b->other && !array_fits(p, b->tensor, b->other)))
            return vkt_fail(h, VKT_E_ARG,
                            "program: array binding %u: want a vkt_external, and an array of its type and size made by "
                            "this context",
                            i);
        p->arrays[0][b->tensor.id] = b->array;
        p->arrays[1][b->tensor.id] = b->other ? b->other : b->array;
        if (b->other) p->sides = 2;
    }
    VKT_TRY(bind_given_arrays(p));
    for (uint32_t side = 0; side < p->sides; side++) VKT_TRY(check_arrays_apart(p, side));
    return VKT_OK;
}

static vkt_result make_inputs(vkt_program *p)
{
    for (size_t i = 1; i < p->g->n_values; i++) {
        const vkt_value *v = &p->lowered.values[i];
        if (v->role != VKT_ROLE_INPUT || v->alias) continue;
        VKT_TRY(vkt_buffer_create(p->ctx, VKT_MEMORY_DEVICE, VKT_MEM_ACTIVATIONS, v->bytes, v->name, &p->inputs[i]));
        VKT_TRY(vkt_fill(p->ctx, p->inputs[i], 0, vkt_round_up(v->bytes, 4), 0));
    }
    return VKT_OK;
}

static vkt_result make_consts(vkt_program *p)
{
    if (p->plan.const_bytes == 0) return VKT_OK;
    VKT_TRY(
        vkt_buffer_create(p->ctx, VKT_MEMORY_DEVICE, VKT_MEM_SCRATCH, p->plan.const_bytes, "constants", &p->consts));
    for (uint32_t i = 1; i < p->plan.n; i++) {
        const vkt_value *v = vkt_lowered_value(&p->lowered, (vkt_tensor){ i });
        if (v->role == VKT_ROLE_CONST && !v->alias)
            VKT_TRY(vkt_upload(p->ctx, p->consts, p->plan.region[i].offset_bytes, v->data, vkt_round_up(v->bytes, 4)));
    }
    return VKT_OK;
}

static vkt_result make_step(vkt_program *p)
{
    vkt_ctx *ctx = p->ctx;
    if (p->g->step.id) {
        VKT_TRY(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_STAGING, STEP_ALL_WORDS * 4, "step", &p->step));
        VKT_TRY(vkt_fill(ctx, p->step, 0, STEP_ALL_WORDS * 4, 0));
        VKT_TRY(
            vkt_buffer_create(ctx, VKT_MEMORY_UPLOAD, VKT_MEM_STAGING, RING_WORDS * RING_ALL * 4, "words", &p->words));
        memset(p->words->mapped, 0, RING_WORDS * RING_ALL * 4);
    }
    if (p->g->clock.id && !p->store) {
        VKT_TRY(vkt_buffer_create(ctx, VKT_MEMORY_DEVICE, VKT_MEM_STAGING, CLOCK_WORDS * 4, "clock", &p->own_clock));
        VKT_TRY(vkt_fill(ctx, p->own_clock, 0, CLOCK_WORDS * 4, 0));
    }
    if (p->g->metrics.id) {
        VKT_TRY(vkt_buffer_create(ctx, VKT_MEMORY_READBACK, VKT_MEM_STAGING, METRIC_WORDS * RING_ALL * 4, "metrics",
                                  &p->metrics));
        memset(p->metrics->mapped, 0, METRIC_WORDS * RING_ALL * 4);
    }
    return VKT_OK;
}

static vkt_result make_memory(vkt_program *p)
{
    for (size_t i = 0; i < p->plan.n_blocks; i++)
        VKT_TRY(vkt_buffer_create(p->ctx, VKT_MEMORY_DEVICE, VKT_MEM_ACTIVATIONS, p->plan.block_bytes[i], "activations",
                                  &p->blocks[i]));
    VKT_TRY(make_inputs(p));
    VKT_TRY(make_consts(p));
    return make_step(p);
}

/* Returns the batch of the graph's gather. Without a gather, returns the largest batch of the nodes with vkt_op.batch
 * and of the values with layout BATCH_LAST. Returns 0 if the graph has no such nodes and values. In this case no node
 * reads the number of rows of a run, and the first dimension of an input with layout ROWS need not be a batch. */
static uint32_t find_most_rows(const vkt_graph *g)
{
    uint32_t most = 0;
    if (g->batch) return g->batch;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op->batch) most = VKT_MAX(most, g->nodes[i]->op->batch(g->nodes[i]));
    for (size_t i = 1; i < g->n_values; i++) {
        const vkt_value *v = &g->values[i];
        if (v->layout == VKT_BATCH_LAST && v->shape.rank) most = VKT_MAX(most, v->shape.dim[0]);
    }
    return most;
}

static vkt_result check_precision(vkt_ctx *ctx, const vkt_program_params *params)
{
    if ((unsigned)params->precision <= VKT_PRECISION_F32_SPLIT) return VKT_OK;
    return vkt_fail(&ctx->host, VKT_E_ARG, "program: want a vkt_precision, got %d", (int)params->precision);
}

static vkt_result build(vkt_program *p, const vkt_program_params *params)
{
    const vkt_host *h = &p->ctx->host;
    if (params->n_arrays) VKT_WANT(h, params->arrays);
    VKT_TRY(check_precision(p->ctx, params));
    p->published = params->published;
    VKT_TRY(finish_graph(p));
    p->most_rows = find_most_rows(p->g);
    VKT_TRY(match_store(p));
    VKT_TRY(lower_and_plan(p, params, 1024ull * p->ctx->limits.traits->barriers_kib));
    if (params->precision == VKT_PRECISION_F32_SPLIT) log_if_no_split(p);
    log_if_tuning_is_ignored(p);
    VKT_TRY(check_published(p));
    VKT_TRY(check_cap(p, params->max_bytes));
    p->blocks = vkt_alloc_array(h, p->plan.n_blocks + 1, sizeof *p->blocks);
    p->inputs = vkt_alloc_array(h, p->g->n_values, sizeof *p->inputs);
    for (int side = 0; side < 2; side++) p->arrays[side] = vkt_alloc_array(h, p->g->n_values, sizeof *p->arrays[0]);
    if (!p->blocks || !p->inputs || !p->arrays[0] || !p->arrays[1])
        return vkt_fail_nomem(h, "a program", p->g->n_values * sizeof(void *));
    VKT_TRY(bind_arrays(p, params));
    VKT_TRY(make_memory(p));
    if (p->debug.level >= 3) vkt_program_log(p);
    const bool measure = p->debug.level >= 2 && p->ctx->timestamp_period_ns != 0 && p->lowered.n;
    p->profile = (params->profile || measure) && p->lowered.n; /* without dispatches there are no times */
    VKT_TRY(vkt_bind_all(p));
    VKT_TRY(vkt_parts_create(p));
    VKT_TRY(vkt_given_create(p, params->run_values));
    return measure ? vkt_debug_start(p) : VKT_OK;
}

static const vkt_plan_options apart = { .guard_bytes = VKT_ALIGN_BYTES };

static vkt_result create(vkt_ctx *ctx, vkt_graph *g, vkt_store *store, const vkt_program_params *params,
                         vkt_plan_options options, vkt_program **out)
{
    *out = NULL;
    if (g->status != VKT_OK) return vkt_fail(&ctx->host, g->status, "program: the graph has an error");
    vkt_program *p = vkt_alloc(&ctx->host, sizeof *p);
    if (!p) return vkt_fail_nomem(&ctx->host, "a program", sizeof *p);
    const vkt_program_params none = { 0 };
    *p = (vkt_program){ .ctx = ctx,
                        .g = g,
                        .store = store,
                        .options = options,
                        .budget.left_ns = UINT64_MAX,
                        .debug.level = vkt_debug_level() };
    if (p->debug.level >= 4) p->options = apart; /* values share no memory, so no value overwrites another one */
    snprintf(p->name, sizeof p->name, "%s", params && params->name ? params->name : "program");
    const vkt_result r = build(p, params ? params : &none);
    if (r == VKT_OK)
        *out = p;
    else
        vkt_program_destroy(&p);
    return r;
}

vkt_result vkt_program_create(vkt_ctx *ctx, vkt_graph *g, vkt_store *store, const vkt_program_params *params,
                              vkt_program **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, out);
    VKT_WANT(&ctx->host, g);
    return create(ctx, g, store, params, (vkt_plan_options){ .in_place = true }, out);
}

vkt_result vkt_program_create_guarded(vkt_ctx *ctx, vkt_graph *g, vkt_store *store, const vkt_program_params *params,
                                      vkt_program **out)
{
    return create(ctx, g, store, params, apart, out);
}

vkt_result vkt_program_create_in_place(vkt_ctx *ctx, vkt_graph *g, vkt_store *store, const vkt_program_params *params,
                                       vkt_program **out)
{
    return create(ctx, g, store, params, (vkt_plan_options){ .guard_bytes = VKT_ALIGN_BYTES, .in_place = true }, out);
}

vkt_result vkt_program_plan_least(vkt_ctx *ctx, vkt_graph *g, const vkt_program_params *params, vkt_program **out)
{
    const vkt_program_params none = { 0 };
    *out = NULL;
    if (!params) params = &none;
    if (g->status != VKT_OK) return vkt_fail(&ctx->host, g->status, "program: the graph has an error");
    if (params->n_arrays) VKT_WANT(&ctx->host, params->arrays);
    VKT_TRY(check_precision(ctx, params));
    vkt_program *p = vkt_alloc(&ctx->host, sizeof *p);
    if (!p) return vkt_fail_nomem(&ctx->host, "a plan", sizeof *p);
    *p = (vkt_program){ .ctx = ctx, .g = g, .options = { .in_place = true } };
    vkt_result r = finish_graph(p);
    if (r == VKT_OK) r = lower_and_plan(p, params, 0);
    if (r == VKT_OK)
        *out = p;
    else
        vkt_program_destroy(&p);
    return r;
}

void vkt_program_destroy(vkt_program **pp)
{
    vkt_program *p = pp ? *pp : NULL;
    if (!p) return;
    vkt_ctx *ctx = p->ctx;
    vkt_settle(ctx);
    vkt_debug_end(p);
    vkt_slices_free(p);
    vkt_parts_free(p);
    vkt_bind_free(p);
    vkt_given_free(p);
    for (size_t i = 0; p->blocks && i < p->plan.n_blocks; i++) vkt_buffer_destroy(ctx, &p->blocks[i]);
    for (size_t i = 0; p->inputs && i < p->g->n_values; i++) vkt_buffer_destroy(ctx, &p->inputs[i]);
    vkt_buffer_destroy(ctx, &p->consts);
    vkt_buffer_destroy(ctx, &p->step);
    vkt_buffer_destroy(ctx, &p->words);
    vkt_buffer_destroy(ctx, &p->metrics);
    vkt_buffer_destroy(ctx, &p->own_clock);
    if (p->plan.region) vkt_plan_free(&p->plan);
    if (p->lowered.g) vkt_lower_free(&p->lowered);
    vkt_free(&ctx->host, p->blocks);
    vkt_free(&ctx->host, p->inputs);
    for (int side = 0; side < 2; side++) vkt_free(&ctx->host, p->arrays[side]);
    vkt_free(&ctx->host, p);
    *pp = NULL;
}
