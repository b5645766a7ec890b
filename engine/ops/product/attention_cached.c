/* ops/product/attention_cached.c - attention over a cache of keys and values. The input `past`, a number on the device,
 * says how many tokens the cache had before this run. This op is for generating text, so it has no gradient. */
#include "ops/ops.h"

#include "abi/abi.h"
#include "abi/attention_cached.abi.h"

#include <math.h>

#define MAX_WIDTH 128u /* largest width of a head: the sums of a row must stay in registers */
/* Smallest number of lanes of a work group. A row has at most 32 vec4s, and a lane can add at most 8 vec4s of a row
 * (MAX_PARTS in attention_cached.comp). */
#define FEWEST_LANES 4u

enum { Q = 0, K, V, PAST };

static vkt_result infer(vkt_infer *f)
{
    const vkt_attention_cached_attr *a = f->n->attr;
    const vkt_value *q = vkt_in(f, Q), *k = vkt_in(f, K), *v = vkt_in(f, V), *past = vkt_in(f, PAST);
    const uint32_t rank = q->shape.rank;
    char qt[80], kt[80], vt[80];
    VKT_REQUIRE(f, q->dtype == VKT_F32 && k->dtype == VKT_F32 && v->dtype == VKT_F32 && past->dtype == VKT_U32,
                VKT_E_DTYPE, "attention_cached: want q, k and v f32, and a number u32, got %s, %s, %s, and %s",
                vkt_dtype_name(q->dtype), vkt_dtype_name(k->dtype), vkt_dtype_name(v->dtype),
                vkt_dtype_name(past->dtype));
    const bool by_rows = q->layout == VKT_ROWS && k->layout == VKT_ROWS && v->layout == VKT_ROWS;
    bool fits = by_rows && a->group && rank >= 3 && k->shape.rank == rank && vkt_shape_equal(k->shape, v->shape);
    if (fits) {
        vkt_shape want = k->shape;
        want.dim[rank - 2] = q->shape.dim[rank - 2];
        want.dim[rank - 3] *= a->group;
        fits = vkt_shape_equal(q->shape, want) && q->shape.dim[rank - 2] <= k->shape.dim[rank - 2];
    }
    VKT_REQUIRE(f, fits, VKT_E_SHAPE,
                "attention_cached: want q (..,H,T,D), k and v (..,H / %u,C,D), by rows, T <= C, got %s, %s and %s",
                a->group, vkt_shape_text(q->shape, qt), vkt_shape_text(k->shape, kt), vkt_shape_text(v->shape, vt));
    const uint32_t width = q->shape.dim[rank - 1];
    VKT_REQUIRE(f, width % 4 == 0 && width <= MAX_WIDTH, VKT_E_SHAPE,
                "attention_cached: want heads of 4, 8, .. or %u numbers, got %u", MAX_WIDTH, width);
    VKT_REQUIRE(f, vkt_shape_elements(past->shape) == 1, VKT_E_SHAPE,
                "attention_cached: want one number of tokens, got %s", vkt_shape_text(past->shape, qt));
    VKT_REQUIRE(f, isfinite(a->scale) && a->scale > 0, VKT_E_ARG, "attention_cached: want a scale above 0, got %g",
                (double)a->scale);
    VKT_REQUIRE(f, vkt_shape_elements(q->shape) <= UINT32_MAX, VKT_E_UNSUPPORTED,
                "attention_cached: want at most 2^32 numbers");
    vkt_out(f, VKT_F32, VKT_ROWS, q->shape);
    return VKT_OK;
}

/* ---- dispatches ---- */

/* The sizes of a node. A plane is a head of k and v, with the `group` heads of q that read this head. */
typedef struct sizes {
    uint64_t planes, q_plane, k_plane; /* q_plane and k_plane: elements of q and of k in one plane */
    uint32_t queries, keys, group, width;
} sizes;

static sizes sizes_of(const vkt_node *n)
{
    const vkt_attention_cached_attr *a = n->attr;
    const vkt_shape q = vkt_node_in(n, Q)->shape, k = vkt_node_in(n, K)->shape;
    sizes s = {
        .queries = q.dim[q.rank - 2], .keys = k.dim[k.rank - 2], .group = a->group, .width = q.dim[q.rank - 1]
    };
    s.q_plane = (uint64_t)s.group * s.queries * s.width;
    s.k_plane = (uint64_t)s.keys * s.width;
    s.planes = vkt_shape_elements(k) / s.k_plane;
    return s;
}

/* Returns how many lanes share a row of d4 vec4s: d4 rounded up to a power of two, but at most all lanes of the work
 * group. */
static uint32_t spread_of(uint32_t d4, uint32_t lanes)
{
    uint32_t n = 1;
    while (n < d4 && n < lanes) n *= 2;
    return n;
}

static void emit_planes(const vkt_node *n, vkt_emit *e, const sizes *s, uint64_t first, uint64_t count)
{
    const vkt_attention_cached_attr *a = n->attr;
    const uint32_t few = vkt_lanes_for(e->lim, VKT_K_ATTENTION_CACHED, s->keys), lanes = VKT_MAX(few, FEWEST_LANES);
    const uint32_t d4 = s->width / 4;
    vkt_attention_cached_push pc = { .units = (uint32_t)(count * s->group * s->queries),
                                     .queries = s->queries,
                                     .keys = s->keys,
                                     .group = s->group,
                                     .scale = a->scale };
    const vkt_bind bind[] = {
        [ATTENTION_CACHED_Q] = vkt_bind_range(e, n->in[Q], first * s->q_plane, count * s->q_plane, &pc.q0),
        [ATTENTION_CACHED_K] = vkt_bind_range(e, n->in[K], first * s->k_plane, count * s->k_plane, &pc.k0),
        [ATTENTION_CACHED_V] = vkt_bind_range(e, n->in[V], first * s->k_plane, count * s->k_plane, &pc.v0),
        [ATTENTION_CACHED_PAST] = VKT_WHOLE(n->in[PAST]),
        [ATTENTION_CACHED_Y] = vkt_bind_range(e, n->out[0], first * s->q_plane, count * s->q_plane, &pc.y0),
    };
    uint32_t *const starts[] = { &pc.q0, &pc.k0, &pc.v0, &pc.y0 };
    for (size_t i = 0; i < VKT_COUNT(starts); i++) *starts[i] /= 4;
    const uint32_t spec[] = {
        lanes, [ATTENTION_CACHED_SPEC_D4] = d4, [ATTENTION_CACHED_SPEC_SPREAD] = spread_of(d4, lanes)
    };
    const uint64_t tiles = s->keys / lanes + 2, each = (pc.units - 1) / e->lim->max_groups + 1;
    if (tiles * each > vkt_rough_loop(e->lim)) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "attention_cached: %u queries of %u keys are too many for this device, which ends "
                                   "loops after %llu iterations; use a shorter cache",
                                   pc.units, s->keys, (unsigned long long)vkt_largest_loop(e->lim)));
        return;
    }
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_ATTENTION_CACHED,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { pc.units, 1, 1 } });
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const sizes s = sizes_of(n);
    const uint64_t range = vkt_bind_range_bytes(e->lim);
    const uint64_t most = vkt_steps_in(range, 4 * VKT_MAX(s.q_plane, s.k_plane), s.planes);
    if (most == 0)
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "attention_cached: %u queries and %u keys of %u numbers do not fit into bindings of "
                                   "%llu bytes",
                                   s.queries * s.group, s.keys, s.width, (unsigned long long)range));
    for (uint64_t p = 0; p < s.planes && most; p += most) emit_planes(n, e, &s, p, VKT_MIN(most, s.planes - p));
}

/* Generates a case. In some cases, `past` is so large that the last queries would use more keys than exist. These
 * queries use all keys. */
static void sample(vkt_rng *r, vkt_case *c)
{
    static const uint32_t widths[] = { 4, 8, 20, 32, 36, 64 };
    const uint32_t width = widths[vkt_rng_range(r, 0, VKT_COUNT(widths) - 1)], heads = vkt_rng_range(r, 1, 3);
    const uint32_t keys = vkt_rng_range(r, 1, 70), queries = vkt_rng_range(r, 0, 1) ? 1 : vkt_rng_range(r, 1, keys);
    const uint32_t samples = vkt_rng_range(r, 1, 2);
    const vkt_attention_cached_attr a = { .group = vkt_rng_range(r, 1, 3),
                                          .scale = vkt_rng_uniform(r, 0.2f, 1.5f) / sqrtf((float)width) };
    vkt_case_f32(c, VKT_ROWS, vkt_shape4(samples, heads * a.group, queries, width), -2, 2);
    for (int i = 0; i < 2; i++) vkt_case_f32(c, VKT_ROWS, vkt_shape4(samples, heads, keys, width), -2, 2);
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(1), keys + 1);
    vkt_case_attr(c, &a, sizeof a);
}

/* Counts the operations of attention, for a full cache. */
static double flops(const vkt_node *n)
{
    const sizes s = sizes_of(n);
    return (double)s.planes * s.group * s.queries * s.keys * (4.0 * s.width + 5);
}

static const vkt_field fields[] = { VKT_FIELD(vkt_attention_cached_attr, group, U32, 1, 1),
                                    VKT_FIELD(vkt_attention_cached_attr, scale, F32, 1, 1),
                                    { .name = NULL } };

const vkt_op vkt_op_attention_cached = {
    .name = "attention_cached",
    .min_in = 4,
    .max_in = 4,
    .forward_only = true,
    .attr_bytes = sizeof(vkt_attention_cached_attr),
    .infer = infer,
    .emit = emit,
    .half_rows = VKT_HALF_IN(Q) | VKT_HALF_IN(K) | VKT_HALF_IN(V) | VKT_HALF_OUT(0),
    .sample = sample,
    .rel_tol = 1e-5f,
    .abs_tol = 1e-5f,
    .tol_why = "as attention, with sums of at most 64 products and 70 weighted numbers",
    .flops = flops,
    .fields = fields,
    .formula = "y = softmax(scale q k^T) v by heads; query t sees keys 0 .. past + t of a cache",
};

vkt_tensor vkt_attention_cached(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v, vkt_tensor past,
                                const vkt_attention_params *p)
{
    static const vkt_attention_params defaults;
    if (!vkt_is_usable(g, "attention_cached", q) || !vkt_is_usable(g, "attention_cached", k) ||
        !vkt_is_usable(g, "attention_cached", v))
        return (vkt_tensor){ 0 };
    if (!p) p = &defaults;
    const vkt_shape s = vkt_tensor_shape(g, q), ks = vkt_tensor_shape(g, k);
    const uint32_t heads = s.rank >= 3 ? s.dim[s.rank - 3] : 0, kv_heads = ks.rank >= 3 ? ks.dim[ks.rank - 3] : 0;
    const bool fits = kv_heads && heads % kv_heads == 0 && (p->kv_heads == 0 || p->kv_heads == kv_heads);
    char qt[80], kt[80];
    vkt_result r = VKT_OK;
    if (!fits)
        r = vkt_fail(&g->host, VKT_E_SHAPE,
                     "attention_cached: want q (..,H,T,D) and k (..,K,C,D), K divides H, got %s, %s and kv_heads = %u",
                     vkt_shape_text(s, qt), vkt_shape_text(ks, kt), p->kv_heads);
    else if (vkt_or_f32(p->dropout, 0) != 0 || p->mask.id)
        r = vkt_fail(&g->host, VKT_E_ARG, "attention_cached: want neither dropout nor mask");
    vkt_graph_error(g, r);
    if (r != VKT_OK) return (vkt_tensor){ 0 };
    const vkt_attention_cached_attr a = { .group = heads / kv_heads,
                                          .scale = vkt_or_f32(p->scale, (float)(1 / sqrt((double)s.dim[s.rank - 1]))) };
    const vkt_tensor in[] = { vkt_to_layout(g, q, VKT_ROWS), vkt_to_layout(g, k, VKT_ROWS),
                              vkt_to_layout(g, v, VKT_ROWS), past };
    return vkt_apply(g, &vkt_op_attention_cached, in, 4, &a, NULL);
}
