/* record/store.c - parameters, gradients, moments and the optimizer's clock on the device. */
#include "record/record.h"

#include "abi/loss_scale.abi.h"
#include "abi/step.abi.h"
#include "base/fixed.h"

#include <stdio.h>

static vkt_result fill_entries(vkt_store *s, const vkt_graph *g)
{
    s->n = (uint32_t)g->n_params;
    s->entries = vkt_alloc_array(&s->ctx->host, s->n ? s->n : 1, sizeof *s->entries);
    if (!s->entries) return vkt_fail_nomem(&s->ctx->host, "a store", s->n * sizeof *s->entries);
    uint64_t at = 0; /* offset in the arena, counted as vkt_param counts it. The offsets in the values of g are not
                      * used, because they may be those of another store */
    for (uint32_t i = 0; i < s->n; i++) {
        const vkt_value *v = &g->values[g->params[i]];
        vkt_store_entry *e = &s->entries[i];
        *e = (vkt_store_entry){ .shape = v->shape, .offset_bytes = at, .bytes = v->bytes };
        at += vkt_round_up(v->bytes, VKT_ALIGN_BYTES);
        snprintf(e->name, sizeof e->name, "%s", v->name);
    }
    return VKT_OK;
}

/* Creates a buffer of zeros. Kernels that update a whole arena do not skip the gaps between parameters. The gaps start
 * with zeros, so the values and gradients in them stay zero. */
static vkt_result make_buffer(vkt_store *s, vkt_mem_class cls, uint64_t bytes, const char *name, vkt_buffer **out)
{
    VKT_TRY(vkt_buffer_create(s->ctx, VKT_MEMORY_DEVICE, cls, bytes, name, out));
    return vkt_fill(s->ctx, *out, 0, vkt_round_up(bytes, 4), 0);
}

/* For Adagrad, fills the sums of squares with their first value, which may be above zero. The gaps between parameters
 * get this value, too. This has no effect, because the gradients in the gaps are zero. */
static vkt_result fill_accumulator(vkt_store *s, const vkt_optimizer *o)
{
    uint32_t bits;
    if (o->kind != VKT_ADAGRAD || !s->part[VKT_PART_MOMENT1]) return VKT_OK;
    memcpy(&bits, &o->initial_accumulator, sizeof bits);
    return vkt_fill(s->ctx, s->part[VKT_PART_MOMENT1], 0, s->arena_bytes, bits);
}

vkt_mem_class vkt_store_class(vkt_store_part part)
{
    static const vkt_mem_class classes[VKT_ARENAS] = { VKT_MEM_PARAMETERS, VKT_MEM_GRADIENTS, VKT_MEM_MOMENTS,
                                                       VKT_MEM_MOMENTS,    VKT_MEM_MOMENTS,   VKT_MEM_GRADIENTS,
                                                       VKT_MEM_PARAMETERS };
    return classes[part];
}

vkt_result vkt_store_create(vkt_ctx *ctx, const vkt_graph *g, vkt_store **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, out);
    VKT_WANT(&ctx->host, g);
    *out = NULL;
    if (g->status != VKT_OK)
        return vkt_fail(&ctx->host, g->status, "store: the graph has an error: %s", vkt_result_text(g->status));
    if (g->n_params == 0) return vkt_fail(&ctx->host, VKT_E_ARG, "store: want a graph with parameters");
    vkt_store *s = vkt_alloc(&ctx->host, sizeof *s);
    if (!s) return vkt_fail_nomem(&ctx->host, "a store", sizeof *s);
    *s = (vkt_store){ .ctx = ctx, .arena_bytes = g->arena_bytes };
    s->updates = g->has_optimizer;
    if (s->updates) {
        s->kind = g->optimizer.kind;
        s->rates = vkt_optimizer_rates(&g->optimizer);
    }
    static const char *const names[VKT_ARENAS] = { "params",  "grads",    "moment1",  "moment2",
                                                   "moment3", "grad_sum", "published" };
    vkt_result r = fill_entries(s, g);
    for (int i = 0; i < VKT_ARENAS && r == VKT_OK; i++)
        if (i == 0 || g->arena[i].id)
            r = make_buffer(s, vkt_store_class((vkt_store_part)i), s->arena_bytes, names[i], &s->part[i]);
    if (r == VKT_OK && g->has_optimizer) r = fill_accumulator(s, &g->optimizer);
    if (r == VKT_OK) r = make_buffer(s, VKT_MEM_STAGING, CLOCK_WORDS * 4, "clock", &s->clock);
    if (r == VKT_OK) r = vkt_store_set_clock(s, 0, 0);
    if (r == VKT_OK) r = vkt_store_set_loss_scale(s, &(vkt_loss_scale){ .scale = 0 });
    if (r == VKT_OK)
        *out = s;
    else
        vkt_store_destroy(&s);
    return r;
}

void vkt_store_destroy(vkt_store **ps)
{
    vkt_store *s = ps ? *ps : NULL;
    if (!s) return;
    vkt_settle(s->ctx);
    for (int i = 0; i < VKT_ARENAS; i++) vkt_buffer_destroy(s->ctx, &s->part[i]);
    vkt_buffer_destroy(s->ctx, &s->clock);
    vkt_free(&s->ctx->host, s->entries);
    vkt_free(&s->ctx->host, s);
    *ps = NULL;
}

uint32_t vkt_store_count(const vkt_store *s)
{
    if (!s) return 0;
    return s->n;
}

const char *vkt_store_name(const vkt_store *s, uint32_t i)
{
    if (!s) return NULL;
    return i < s->n ? s->entries[i].name : "?";
}

bool vkt_store_find(const vkt_store *s, const char *name, uint32_t *i)
{
    for (uint32_t k = 0; s && name && k < s->n; k++)
        if (strcmp(s->entries[k].name, name) == 0) {
            if (i) *i = k;
            return true;
        }
    return false;
}

vkt_shape vkt_store_shape(const vkt_store *s, uint32_t i)
{
    if (!s) return vkt_shape0();
    return i < s->n ? s->entries[i].shape : vkt_shape0();
}

uint64_t vkt_store_elements(const vkt_store *s)
{
    if (!s) return 0;
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) n += s->entries[i].bytes / 4;
    return n;
}

bool vkt_store_has(const vkt_store *s, vkt_store_part part)
{
    if (!s) return false;
    return (unsigned)part < VKT_ARENAS && s->part[part];
}

static vkt_result check(const vkt_store *s, uint32_t i, vkt_store_part part)
{
    if (i >= s->n || (unsigned)part >= VKT_ARENAS)
        return vkt_fail(&s->ctx->host, VKT_E_ARG, "store: want a parameter below %u, got %u", s->n, i);
    if (!s->part[part])
        return vkt_fail(&s->ctx->host, VKT_E_STATE, "store: it was made for a graph without that part (part %d)",
                        (int)part);
    return VKT_OK;
}

vkt_result vkt_store_read(vkt_store *s, uint32_t i, vkt_store_part part, float *out)
{
    VKT_WANT(NULL, s);
    VKT_TRY(check(s, i, part));
    VKT_WANT(&s->ctx->host, out);
    return vkt_readback(s->ctx, s->part[part], s->entries[i].offset_bytes, out, s->entries[i].bytes);
}

vkt_result vkt_store_write(vkt_store *s, uint32_t i, vkt_store_part part, const float *data)
{
    VKT_WANT(NULL, s);
    VKT_TRY(check(s, i, part));
    VKT_WANT(&s->ctx->host, data);
    const vkt_store_entry *e = &s->entries[i];
    if (part == VKT_PART_VALUE && s->part[VKT_PART_PUBLISHED])
        VKT_TRY(vkt_upload(s->ctx, s->part[VKT_PART_PUBLISHED], e->offset_bytes, data, e->bytes));
    return vkt_upload(s->ctx, s->part[part], e->offset_bytes, data, e->bytes);
}

vkt_result vkt_store_set_clock(vkt_store *s, uint64_t t, uint64_t seed)
{
    VKT_WANT(NULL, s);
    if (t > UINT32_MAX) return vkt_fail(&s->ctx->host, VKT_E_ARG, "store: the clock stops at 2^32 - 1 steps");
    const vkt_clock_rates *by = &s->rates;
    const uint64_t q1 = by->decay ? vkt_fixed_momentum_product(by->beta1, by->decay, t) : vkt_fixed_pow(by->beta1, t);
    const uint64_t q[] = { q1, vkt_fixed_pow(by->beta2, t), vkt_fixed_pow(by->decay, t) };
    uint32_t w[CLOCK_SCALE] = { 0 };
    w[CLOCK_T] = (uint32_t)t;
    w[CLOCK_KEY0] = (uint32_t)seed;
    w[CLOCK_KEY1] = (uint32_t)(seed >> 32);
    for (int i = 0; i < 3; i++) {
        w[CLOCK_Q1 + 2 * i] = (uint32_t)q[i];
        w[CLOCK_Q1 + 2 * i + 1] = (uint32_t)(q[i] >> 32);
    }
    return vkt_upload(s->ctx, s->clock, 0, w, sizeof w);
}

vkt_result vkt_store_get_clock(vkt_store *s, uint64_t *t, uint64_t *seed)
{
    VKT_WANT(NULL, s);
    VKT_WANT(&s->ctx->host, t);
    VKT_WANT(&s->ctx->host, seed);
    uint32_t w[CLOCK_WORDS];
    VKT_TRY(vkt_readback(s->ctx, s->clock, 0, w, sizeof w));
    *t = w[CLOCK_T];
    *seed = w[CLOCK_KEY0] | (uint64_t)w[CLOCK_KEY1] << 32;
    return VKT_OK;
}

/* Returns the bits of l->scale as a float. If l->scale is 0, returns the bits of a new store's scale. */
static uint32_t scale_bits(const vkt_loss_scale *l)
{
    const float scale = l->scale == 0 ? LOSS_SCALE_FIRST : l->scale;
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    return bits;
}

bool vkt_loss_scale_fits(const vkt_loss_scale *l)
{
    const uint32_t bits = scale_bits(l);
    return !(bits & 0x7fffff) && bits >= LOSS_SCALE_MIN && bits <= LOSS_SCALE_MAX &&
           l->good_steps < LOSS_SCALE_INTERVAL;
}

vkt_result vkt_store_set_loss_scale(vkt_store *s, const vkt_loss_scale *l)
{
    VKT_WANT(NULL, s);
    VKT_WANT(&s->ctx->host, l);
    const uint32_t w[] = { scale_bits(l), l->good_steps, l->skipped };
    if (!vkt_loss_scale_fits(l))
        return vkt_fail(&s->ctx->host, VKT_E_ARG,
                        "store: want a loss scale that is a power of two, and fewer than %d good steps, got %g and %u",
                        LOSS_SCALE_INTERVAL, (double)l->scale, l->good_steps);
    return vkt_upload(s->ctx, s->clock, 4 * CLOCK_SCALE, w, sizeof w);
}

vkt_result vkt_store_get_loss_scale(vkt_store *s, vkt_loss_scale *l)
{
    VKT_WANT(NULL, s);
    VKT_WANT(&s->ctx->host, l);
    uint32_t w[3];
    VKT_TRY(vkt_readback(s->ctx, s->clock, 4 * CLOCK_SCALE, w, sizeof w));
    *l = (vkt_loss_scale){ .good_steps = w[1], .skipped = w[2] };
    memcpy(&l->scale, w, sizeof l->scale);
    return VKT_OK;
}

vkt_result vkt_store_set_accumulation(vkt_store *s, const vkt_accumulation *a)
{
    VKT_WANT(NULL, s);
    VKT_WANT(&s->ctx->host, a);
    if ((a->batches || a->rows) && !vkt_store_has(s, VKT_PART_GRADIENT_SUM))
        return vkt_fail(&s->ctx->host, VKT_E_STATE,
                        "store: want no accumulation, for its steps are of one batch each, got %u batches of %u rows",
                        a->batches, a->rows);
    const uint32_t w[] = { a->batches, a->rows };
    return vkt_upload(s->ctx, s->clock, 4 * CLOCK_MICRO, w, sizeof w);
}

vkt_result vkt_store_get_accumulation(vkt_store *s, vkt_accumulation *a)
{
    VKT_WANT(NULL, s);
    VKT_WANT(&s->ctx->host, a);
    uint32_t w[2];
    VKT_TRY(vkt_readback(s->ctx, s->clock, 4 * CLOCK_MICRO, w, sizeof w));
    *a = (vkt_accumulation){ .batches = w[0], .rows = w[1] };
    return VKT_OK;
}
