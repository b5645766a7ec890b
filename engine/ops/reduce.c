/* ops/reduce.c - sums: over everything (sum, mean) and over the dimensions that broadcasting repeats (sum_to). */
#include "kernel/ids.h"
#include "ops/broadcast.h"

#include "abi/abi.h"
#include "abi/reduce.abi.h"

/* A reduction as strides: dimensions of x from slow to fast, kept and reduced, padded with 1 in front. */
typedef struct reduction {
    uint32_t kept[5], kept_stride[5];
    uint32_t red[4], red_stride[4]; /* rows */
    uint32_t run, run_stride;       /* the fastest reduced dimension */
    uint32_t outputs, rows;
    bool along;                     /* the run is x's fastest dimension */
} reduction;

static void push_dim(uint32_t *dim, uint32_t *stride, uint32_t n, uint32_t d, uint32_t s)
{
    for (uint32_t i = 0; i + 1 < n; i++) {
        dim[i] = dim[i + 1];
        stride[i] = stride[i + 1];
    }
    dim[n - 1] = d;
    stride[n - 1] = s;
}

/* Splits x's dimensions by whether y has them. y is ROWS, so kept dimensions must be walked in x's logical order. */
static reduction reduction_of(const vkt_value *x, const vkt_value *y)
{
    reduction r = { .kept = { 1, 1, 1, 1, 1 }, .red = { 1, 1, 1, 1 }, .run = 1, .run_stride = 1, .outputs = 1, .rows = 1 };
    const vkt_phys p = vkt_phys_of(x);
    uint32_t stride[VKT_MAX_RANK] = { 0 };
    for (uint32_t i = 0; i < x->shape.rank; i++) stride[p.logical[i]] = (uint32_t)p.stride[i];
    const uint32_t lead = x->shape.rank - y->shape.rank;
    uint32_t red_dim[5] = { 1, 1, 1, 1, 1 }, red_stride[5] = { 0 };
    for (uint32_t i = 0; i < x->shape.rank; i++)
        if (i >= lead && y->shape.dim[i - lead] != 1) {
            push_dim(r.kept, r.kept_stride, 5, x->shape.dim[i], stride[i]);
            r.outputs *= x->shape.dim[i];
        }
    for (uint32_t i = 0; i < x->shape.rank; i++) { /* physical order: the run is the fastest of them */
        const uint32_t l = p.logical[i];
        if (x->shape.dim[l] != 1 && (l < lead || y->shape.dim[l - lead] == 1))
            push_dim(red_dim, red_stride, 5, x->shape.dim[l], stride[l]);
    }
    r.run = red_dim[4];
    r.run_stride = r.run == 1 ? 0 : red_stride[4];
    for (uint32_t i = 0; i < 4; i++) {
        r.red[i] = red_dim[i];
        r.red_stride[i] = red_stride[i];
        r.rows *= red_dim[i];
    }
    r.along = r.run > 1 && r.run_stride == 1;
    return r;
}

/* Few outputs of many rows: split the rows over work groups, so that all of the device is used. */
static uint32_t splits_for(const vkt_emit *e, const reduction *r)
{
    const uint32_t lanes = r->along ? e->lim->subgroup_size : 1;
    const uint64_t per_row = vkt_div_up(r->run, lanes) + 1;
    const uint64_t iterations = r->rows * per_row, most = 16384; /* of one invocation: well below Mesa 22.3's 65,535 */
    const uint64_t wanted = e->lim->cpu ? 16 : 256, groups = r->along ? r->outputs : vkt_div_up(r->outputs, 64);
    uint64_t splits = iterations / most + 1;
    if (groups < wanted && iterations > 256) splits = VKT_MAX(splits, VKT_MIN(wanted / groups, iterations / 128));
    return (uint32_t)VKT_MIN(splits, r->rows);
}

static void dispatch(vkt_emit *e, const reduction *r, vkt_tensor x, vkt_tensor y, uint32_t splits, float scale)
{
    const uint32_t *k = r->kept, *s = r->kept_stride, *d = r->red, *t = r->red_stride;
    const vkt_reduce_push pc = { .outputs = r->outputs, .rows = r->rows, .run = r->run, .splits = splits, .scale = scale,
                                 .k1 = k[1], .k2 = k[2], .k3 = k[3], .k4 = k[4],
                                 .s0 = s[0], .s1 = s[1], .s2 = s[2], .s3 = s[3], .s4 = s[4],
                                 .r1 = d[1], .r2 = d[2], .r3 = d[3],
                                 .t0 = t[0], .t1 = t[1], .t2 = t[2], .t3 = t[3], .t4 = r->run_stride };
    const vkt_bind bind[] = { [REDUCE_X] = VKT_WHOLE(x), [REDUCE_Y] = VKT_WHOLE(y) };
    const uint32_t spec[] = { r->along || e->lim->cpu ? e->lim->subgroup_size : 64 };
    vkt_dispatch_add(e, r->along ? VKT_K_REDUCE_ALONG : VKT_K_REDUCE, bind, VKT_COUNT(bind), &pc, sizeof pc, spec, 1,
                     r->along ? r->outputs : vkt_groups(r->outputs, spec[0], 1), splits, 1);
}

void vkt_emit_sum_to(vkt_emit *e, vkt_tensor x, vkt_tensor y, float scale)
{
    const reduction r = reduction_of(vkt_lowered_value(e, x), vkt_lowered_value(e, y));
    const uint32_t splits = splits_for(e, &r);
    if (splits == 1) {
        dispatch(e, &r, x, y, 1, scale);
        return;
    }
    const vkt_tensor partial = vkt_scratch(e, "partial", (uint64_t)splits * r.outputs * 4);
    if (!partial.id) return;
    dispatch(e, &r, x, partial, splits, 1.0f);
    reduction last = { .kept = { 1, 1, 1, 1, r.outputs }, .kept_stride = { 0, 0, 0, 0, 1 }, .red = { 1, 1, 1, 1 },
                       .run = splits, .run_stride = r.outputs, .outputs = r.outputs, .rows = 1, .along = r.outputs == 1 };
    dispatch(e, &last, partial, y, 1, scale);
}

/* ---- sum, mean ---- */

static vkt_result all_infer(vkt_infer *f)
{
    const vkt_value *x = vkt_in(f, 0);
    VKT_REQUIRE(f, x->dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32, got %s", f->n->op->name, vkt_dtype_name(x->dtype));
    VKT_REQUIRE(f, x->bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "%s: want at most 2^32 elements", f->n->op->name);
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    return VKT_OK;
}

static void sum_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_sum_to(e, n->in[0], n->out[0], 1.0f);
}

static void mean_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_sum_to(e, n->in[0], n->out[0], (float)(1.0 / (double)vkt_shape_elements(vkt_node_in(n, 0)->shape)));
}

vkt_tensor vkt_sum(vkt_graph *g, vkt_tensor x)
{
    return vkt_apply(g, &vkt_op_sum, &x, 1, NULL, NULL);
}

vkt_tensor vkt_mean(vkt_graph *g, vkt_tensor x)
{
    return vkt_apply(g, &vkt_op_mean, &x, 1, NULL, NULL);
}

static void sum_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_value x = g->values[n->in[0].id];
    dx[0] = vkt_expand(g, dy[0], x.shape, x.layout);
}

static void mean_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_value x = g->values[n->in[0].id];
    const float share = (float)(1.0 / (double)vkt_shape_elements(x.shape));
    const vkt_tensor c = vkt_graph_const(g, "1/n", VKT_F32, vkt_shape0(), &share);
    dx[0] = vkt_expand(g, vkt_mul(g, dy[0], c), x.shape, x.layout);
}

static void all_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_shape s = vkt_rng_range(r, 0, 2) ? vkt_shape3(vkt_rng_range(r, 1, 130), vkt_rng_range(r, 1, 17), vkt_rng_range(r, 1, 31))
                                               : vkt_shape1(vkt_rng_range(r, 1, 50000));
    vkt_case_f32(c, vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS, s, 0.5f, 1.5f);
}

#define SUM_TOLERANCE                                                                                                  \
    .rel_tol = 8e-6f, .abs_tol = 1e-6f,                                                                                \
    .tol_why = "terms of one sign; a row and the running sum of rows: < 130 roundings of 2^-24 on the way of a term"

const vkt_op vkt_op_sum = { .name = "sum",
                            .min_in = 1,
                            .max_in = 1,
                            .diff = 1u << 0,
                            .infer = all_infer,
                            .emit = sum_emit,
                            .backward = sum_backward,
                            .sample = all_sample,
                            SUM_TOLERANCE,
                            .formula = "y = sum of x" };

const vkt_op vkt_op_mean = { .name = "mean",
                             .min_in = 1,
                             .max_in = 1,
                             .diff = 1u << 0,
                             .infer = all_infer,
                             .emit = mean_emit,
                             .backward = mean_backward,
                             .sample = all_sample,
                             SUM_TOLERANCE,
                             .formula = "y = sum of x / number of elements" };

/* ---- sum_to ---- */

static vkt_result sum_to_infer(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    const vkt_shape s = ((const vkt_shape_attr *)f->n->attr)->shape;
    vkt_shape all;
    char from[80], to[80];
    VKT_REQUIRE(f, x.dtype == VKT_F32, VKT_E_DTYPE, "sum_to: want f32, got %s", vkt_dtype_name(x.dtype));
    VKT_REQUIRE(f, vkt_broadcast_shape(x.shape, s, &all) && vkt_shape_equal(all, x.shape), VKT_E_SHAPE,
                "sum_to: %s does not broadcast to %s", vkt_shape_text(s, to), vkt_shape_text(x.shape, from));
    VKT_REQUIRE(f, x.bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "sum_to: want at most 2^32 elements");
    vkt_out(f, VKT_F32, VKT_ROWS, s);
    return VKT_OK;
}

vkt_tensor vkt_sum_to(vkt_graph *g, vkt_tensor x, vkt_shape shape)
{
    if (x.id && x.id < g->n_values && vkt_shape_equal(g->values[x.id].shape, shape)) return x;
    const vkt_shape_attr a = { shape };
    return vkt_apply(g, &vkt_op_sum_to, &x, 1, &a, NULL);
}

static void sum_to_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_sum_to(e, n->in[0], n->out[0], 1.0f);
}

static void sum_to_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_value x = g->values[n->in[0].id];
    dx[0] = vkt_expand(g, dy[0], x.shape, x.layout);
}

static void sum_to_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_shape x = vkt_shape4(vkt_rng_range(r, 1, 37), vkt_rng_range(r, 1, 7), vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 11));
    vkt_shape_attr a = { { .rank = vkt_rng_range(r, 0, 4) } };
    for (uint32_t i = 0; i < a.shape.rank; i++) a.shape.dim[i] = vkt_rng_range(r, 0, 1) ? 1 : x.dim[4 - a.shape.rank + i];
    vkt_case_f32(c, vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS, x, 0.5f, 1.5f);
    vkt_case_attr(c, &a, sizeof a);
}

const vkt_op vkt_op_sum_to = { .name = "sum_to",
                               .min_in = 1,
                               .max_in = 1,
                               .diff = 1u << 0,
                               .attr_bytes = sizeof(vkt_shape_attr),
                               .infer = sum_to_infer,
                               .emit = sum_to_emit,
                               .backward = sum_to_backward,
                               .sample = sum_to_sample,
                               SUM_TOLERANCE,
                               .formula = "y = x summed over the dimensions that y lacks or has as 1" };
