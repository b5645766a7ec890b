/* ops/step/shard.c - a step that is split into shards: adds up the gradients by a binary tree, and the states in the
 * same way.
 *
 * shard_sum adds the gradients of a bucket to the sums of this rank (shaders/step/shard_sum.comp). A state, like a
 * running mean, has no gradient. So its range of the gradient arena is free. shard_give copies the new state there, and
 * shard_sum adds it up like a gradient, but never rounds it to bfloat16: a step changes a state by so little that the
 * change would be lost. shard_take sets the next state to the mean over all runs of the step, weighted by STEP_WEIGHT
 * (abi/step.abi.h). A rank may have several runs in a step, and each run must begin with the same state. So shard_begin
 * saves the state in the rank's first run of a step, and restores it in the other runs. A state that no node writes
 * stays as it is: none of these ops handles it. */
#include "ops/ops.h"

#include "ir/attrs.h"
#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/shard_state.abi.h"
#include "abi/shard_sum.abi.h"

/* ---- states ---- */

static vkt_result state_infer(vkt_infer *f)
{
    const vkt_shard_state_attr *a = f->n->attr;
    const vkt_value *arena = vkt_in(f, 0), *copy = vkt_in(f, 1);
    VKT_REQUIRE(f, arena->dtype == VKT_F32 && copy->dtype == VKT_F32, VKT_E_DTYPE, "%s: want two vectors of f32",
                f->n->op->name);
    VKT_REQUIRE(f,
                a->bytes && (a->offset_bytes | a->bytes | a->copy_bytes) % VKT_ALIGN_BYTES == 0 &&
                    a->offset_bytes + a->bytes <= arena->bytes && a->copy_bytes + a->bytes <= copy->bytes,
                VKT_E_SHAPE, "%s: want ranges of whole blocks inside of both vectors", f->n->op->name);
    vkt_out_alias(f, 0, VKT_ROWS, arena->shape);
    vkt_out_alias(f, 1, VKT_ROWS, copy->shape);
    return VKT_OK;
}

static void emit_state(const vkt_node *n, vkt_emit *e, uint32_t way)
{
    const vkt_shard_state_attr *a = n->attr;
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_update);
    const vkt_bind state = { n->in[0], a->offset_bytes, a->bytes }, copy = { n->in[1], a->copy_bytes, a->bytes };
    const vkt_shard_state_push pc = { .n4 = (uint32_t)(a->bytes / 16) };
    const vkt_bind bind[] = { [SHARD_STATE_STATE] = state,
                              [SHARD_STATE_COPY] = copy,
                              [SHARD_STATE_STEP] = VKT_WHOLE(n->in[2]),
                              [SHARD_STATE_STATE_OUT] = state,
                              [SHARD_STATE_COPY_OUT] = copy };
    const uint32_t spec[] = { lanes, [SHARD_STATE_SPEC_WAY] = way };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_SHARD_STATE,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { vkt_groups(pc.n4, lanes, 1), 1, 1 } });
}

static void emit_begin(const vkt_node *n, vkt_emit *e)
{
    emit_state(n, e, SHARD_STATE_BEGIN);
}

static void emit_give(const vkt_node *n, vkt_emit *e)
{
    emit_state(n, e, SHARD_STATE_GIVE);
}

static void emit_take(const vkt_node *n, vkt_emit *e)
{
    emit_state(n, e, SHARD_STATE_TAKE);
}

#define STATE_OP(what, emit_, first, formula_)      \
    const vkt_op vkt_op_shard_##what = {            \
        .name = "shard_" #what,                     \
        .min_in = 2,                                \
        .max_in = 2,                                \
        .uses_step = true,                          \
        .side_effect = true,                        \
        .prologue = (first),                        \
        .early = !(first),                          \
        .attr_bytes = sizeof(vkt_shard_state_attr), \
        .infer = state_infer,                       \
        .emit = (emit_),                            \
        .flops = vkt_flops_none,                    \
        .formula = (formula_),                      \
    }
STATE_OP(begin, emit_begin, true, "first run of a step: saved = states; other runs: states = saved");
STATE_OP(give, emit_give, false, "gradient of states = states");
STATE_OP(take, emit_take, false, "states = sum / weight of the step");

/* Finds the next range of neighbouring states that change, from parameter *i on, and sets *i behind it. Returns false
 * after the last range. */
static bool next_states(const vkt_graph *g, size_t *i, uint64_t *offset, uint64_t *bytes)
{
    while (*i < g->n_params && !g->values[g->params[*i]].changes) ++*i;
    if (*i == g->n_params) return false;
    *offset = g->values[g->params[*i]].arena_offset_bytes;
    for (; *i < g->n_params && g->values[g->params[*i]].changes; ++*i) {
        const vkt_value *v = &g->values[g->params[*i]];
        *bytes = v->arena_offset_bytes + vkt_round_up(v->bytes, VKT_ALIGN_BYTES) - *offset;
    }
    return true;
}

uint64_t vkt_shard_saved_bytes(const vkt_graph *g)
{
    uint64_t offset = 0, bytes = 0, sum = 0;
    for (size_t i = 0; next_states(g, &i, &offset, &bytes);) sum += bytes;
    return sum;
}

/* Appends a node of `op` for each range of states. In the vector `copy`, the ranges are one after the other (`packed`),
 * or at the same offsets as in the arena. */
static void add_states(vkt_graph *g, const vkt_op *op, vkt_tensor copy, bool packed)
{
    vkt_shard_state_attr a = { 0 };
    const vkt_tensor in[] = { vkt_graph_arena(g, VKT_ROLE_PARAM), copy };
    for (size_t i = 0; next_states(g, &i, &a.offset_bytes, &a.bytes);) {
        if (!packed) a.copy_bytes = a.offset_bytes;
        vkt_apply(g, op, in, VKT_COUNT(in), &a, NULL);
        if (packed) a.copy_bytes += a.bytes;
    }
}

/* ---- shard_sum: grad, sum, planes or null, states or null, step -> sum, planes, in place ----
 * A plane has one partial sum for each element of grad. There is one plane for each level of the binary tree, and one
 * more if several runs compute a shard. `states` has a bit for each block of VKT_ALIGN_BYTES of grad: 1 if the block
 * belongs to a state, which is not rounded. Parameters and states begin at such blocks. */

enum { IN_GRAD = 0, IN_SUM, IN_PLANES, IN_STATES, IN_STEP };
_Static_assert(SHARD_SUM_BLOCK * 16 == VKT_ALIGN_BYTES, "a bit of `states` stands for one block");

/* Returns the number of u32 words of `states`. */
static uint64_t words_for(uint64_t arena_bytes)
{
    return (arena_bytes / VKT_ALIGN_BYTES + 31) / 32;
}

static uint64_t planes_of(uint32_t levels, uint32_t parts)
{
    return levels + (parts > 1);
}

static vkt_result sum_infer(vkt_infer *f)
{
    const vkt_shard_sum_attr *a = f->n->attr;
    const vkt_value *grad = vkt_in(f, IN_GRAD), *sum = vkt_in(f, IN_SUM), *planes = vkt_in(f, IN_PLANES);
    const uint64_t n = planes_of(a->levels, a->parts);
    VKT_REQUIRE(f, grad->dtype == VKT_F32 && sum->dtype == VKT_F32 && (!n || planes->dtype == VKT_F32), VKT_E_DTYPE,
                "shard_sum: want vectors of f32");
    VKT_REQUIRE(f, vkt_has(f, IN_PLANES) == (n != 0), VKT_E_ARG, "shard_sum: want planes if there are partial sums");
    const vkt_value *states = vkt_in(f, IN_STATES);
    VKT_REQUIRE(f,
                !vkt_has(f, IN_STATES) ||
                    (states->dtype == VKT_U32 && states->bytes >= 4 * words_for(grad->bytes) && a->bf16),
                VKT_E_ARG, "shard_sum: want a bit for each block of the gradients, and only with bf16");
    VKT_REQUIRE(f,
                a->bytes && (a->offset_bytes | a->bytes) % VKT_ALIGN_BYTES == 0 &&
                    a->offset_bytes + a->bytes <= grad->bytes && grad->bytes <= sum->bytes &&
                    (!n || n * grad->bytes <= planes->bytes),
                VKT_E_SHAPE, "shard_sum: want a range of whole blocks inside of all vectors");
    vkt_out_alias(f, IN_SUM, VKT_ROWS, sum->shape);
    if (n) vkt_out_alias(f, IN_PLANES, VKT_ROWS, planes->shape);
    return VKT_OK;
}

static void sum_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_shard_sum_attr *a = n->attr;
    const uint64_t planes = planes_of(a->levels, a->parts), end = a->offset_bytes + a->bytes;
    const bool states = n->in[IN_STATES].id != 0;
    const uint64_t most =
        vkt_bind_range_bytes(e->lim) / VKT_MAX(planes, (uint64_t)1) / VKT_ALIGN_BYTES * VKT_ALIGN_BYTES;
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_update);
    for (uint64_t at = a->offset_bytes; at < end; at += most) {
        const uint64_t bytes = VKT_MIN(end - at, most);
        const vkt_shard_sum_push pc = { .n4 = (uint32_t)(bytes / 16),
                                        .levels = a->levels,
                                        .parts = a->parts,
                                        .block = (uint32_t)(at / VKT_ALIGN_BYTES) };
        const vkt_bind sum = { n->in[IN_SUM], at, bytes };
        const vkt_bind partial = planes ? (vkt_bind){ n->in[IN_PLANES], planes * at, planes * bytes } : sum;
        const vkt_bind bind[] = { [SHARD_SUM_GRAD] = { n->in[IN_GRAD], at, bytes },
                                  [SHARD_SUM_STEP] = VKT_WHOLE(n->in[IN_STEP]),
                                  [SHARD_SUM_PLANES] = partial,
                                  [SHARD_SUM_PLANES_OUT] = partial,
                                  [SHARD_SUM_SUM] = sum,
                                  [SHARD_SUM_STATES] = VKT_WHOLE(n->in[states ? IN_STATES : IN_STEP]) };
        const uint32_t spec[] = { lanes, [SHARD_SUM_SPEC_BF16] = a->bf16, [SHARD_SUM_SPEC_STATES] = states };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_SHARD_SUM,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { VKT_MIN(vkt_groups(pc.n4, lanes, e->lim->traits->items_update),
                                                               e->lim->traits->groups_flat_most),
                                                       1, 1 } });
    }
}

const vkt_op vkt_op_shard_sum = {
    .name = "shard_sum",
    .min_in = 2,
    .max_in = 4,
    .uses_step = true,
    .side_effect = true,
    .early = true,
    .attr_bytes = sizeof(vkt_shard_sum_attr),
    .infer = sum_infer,
    .emit = sum_emit,
    .flops = vkt_flops_none,
    .formula = "sum = sum over this rank's shards of weight grad, by a binary tree",
};

uint64_t vkt_shard_plane_bytes(const vkt_graph *g, const vkt_shard_params *p)
{
    return planes_of(p->levels, p->parts) * g->arena_bytes;
}

/* ---- the two graphs of a step ---- */

static vkt_tensor vector(vkt_graph *g, const char *name, uint64_t bytes)
{
    if (bytes / 4 > UINT32_MAX)
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_UNSUPPORTED, "shards: %s: want 16 GiB at most, got %llu bytes",
                                    name, (unsigned long long)bytes));
    return bytes ? vkt_external(g, name, VKT_F32, vkt_shape1((uint32_t)(bytes / 4))) : (vkt_tensor){ 0 };
}

/* Returns a constant for IN_STATES; {0} if no state changes. */
static vkt_tensor table_of_states(vkt_graph *g)
{
    if (!vkt_shard_saved_bytes(g)) return (vkt_tensor){ 0 };
    const uint32_t words = (uint32_t)words_for(g->arena_bytes);
    uint32_t *table = vkt_alloc_array(&g->host, words, sizeof *table);
    if (!table) {
        vkt_graph_error(g, vkt_fail_nomem(&g->host, "a table of states", words * sizeof *table));
        return (vkt_tensor){ 0 };
    }
    uint64_t offset, bytes;
    for (size_t i = 0; next_states(g, &i, &offset, &bytes);)
        for (uint64_t at = offset; at < offset + bytes; at += VKT_ALIGN_BYTES)
            table[at / VKT_ALIGN_BYTES / 32] |= 1u << at / VKT_ALIGN_BYTES % 32;
    const vkt_tensor t = vkt_graph_const(g, "states.table", VKT_U32, vkt_shape1(words), table);
    vkt_free(&g->host, table);
    return t;
}

vkt_result vkt_shard_sums(vkt_graph *g, const vkt_shard_params *p, vkt_shard_values *out)
{
    *out = (vkt_shard_values){ 0 };
    VKT_TRY(g->status);
    if (!g->arena[VKT_PART_GRADIENT].id)
        return vkt_fail(&g->host, VKT_E_STATE, "shards: there are no gradients; call vkt_backward first");
    g->draws = p->draws;
    vkt_step_advance(g, false); /* shard_begin, which reads the step state, must come after this node */
    g->has_advance = g->status == VKT_OK;
    out->sum = vector(g, "gradient.sum", g->arena_bytes);
    out->planes = vector(g, "gradient.planes", vkt_shard_plane_bytes(g, p));
    out->saved = vector(g, "states.saved", vkt_shard_saved_bytes(g));
    add_states(g, &vkt_op_shard_begin, out->saved, true);
    add_states(g, &vkt_op_shard_give, vkt_graph_arena(g, VKT_ROLE_GRAD), false);
    const vkt_tensor table = p->bf16 ? table_of_states(g) : (vkt_tensor){ 0 };
    const vkt_tensor in[] = { vkt_graph_arena(g, VKT_ROLE_GRAD), out->sum, out->planes, table };
    vkt_shard_sum_attr a = { .levels = p->levels, .parts = p->parts, .bf16 = p->bf16 };
    for (uint32_t i = p->n_ends; i-- > 0;) { /* gradients of the last layers are complete first */
        a.offset_bytes = i ? p->ends[i - 1] : 0;
        a.bytes = p->ends[i] - a.offset_bytes;
        vkt_apply(g, &vkt_op_shard_sum, in, VKT_COUNT(in), &a, NULL);
    }
    return g->status;
}

static vkt_result copy_buckets(vkt_graph *g, const vkt_shard_params *p)
{
    uint64_t *ends = vkt_alloc_array(&g->host, p->n_ends, sizeof *ends);
    if (!ends) return vkt_fail_nomem(&g->host, "buckets", p->n_ends * sizeof *ends);
    memcpy(ends, p->ends, p->n_ends * sizeof *ends);
    g->bucket_ends = ends;
    g->n_buckets = p->n_ends;
    return VKT_OK;
}

vkt_result vkt_update_by_sum(vkt_graph *g, const vkt_graph *of, const vkt_optimizer *o, const vkt_shard_params *p,
                             vkt_tensor *sum)
{
    *sum = (vkt_tensor){ 0 };
    for (size_t i = 0; i < of->n_params; i++) {
        const vkt_value *v = &of->values[of->params[i]];
        const vkt_tensor t = (v->state ? vkt_state : vkt_param)(g, v->name, v->shape);
        g->values[t.id].group = v->group;
        g->values[t.id].frozen = v->frozen;
        g->values[t.id].changes = v->changes;
    }
    VKT_TRY(g->status);
    VKT_TRY(copy_buckets(g, p));
    g->sums = true;
    *sum = vector(g, "gradient.sum", g->arena_bytes);
    vkt_optimizer one = *o;
    one.micro_batches = 1; /* the sum covers all runs of the step already */
    vkt_graph_arena(g, VKT_ROLE_GRAD);
    VKT_TRY(vkt_update_from(g, &one, *sum));
    add_states(g, &vkt_op_shard_take, *sum, false);
    return g->status;
}
