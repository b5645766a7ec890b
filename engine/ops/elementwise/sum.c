/* ops/elementwise/sum.c - sum, sum_to and expand. The gradient of a sum is an expand, and the gradient of an expand is
 * a sum. */
#include "ops/elementwise/broadcast.h"
#include "ops/elementwise/reduce.h"

/* ---- sum ---- */

static void sum_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_sum_to(e, n->in[0], n->out[0], 1.0f);
}

vkt_tensor vkt_sum(vkt_graph *g, vkt_tensor x)
{
    return vkt_apply(g, &vkt_op_sum, &x, 1, NULL, NULL);
}

static void sum_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_value x = g->values[n->in[0].id];
    dx[0] = vkt_expand(g, dy[0], x.shape, x.layout);
}

const vkt_op vkt_op_sum = { .name = "sum",
                            .min_in = 1,
                            .max_in = 1,
                            .diff = 1u << 0,
                            .infer = vkt_infer_whole,
                            .emit = sum_emit,
                            VKT_REDUCE_HALF,
                            .backward = sum_backward,
                            .sample = vkt_sample_whole,
                            VKT_SUM_TOLERANCE,
                            .flops = vkt_flops_an_input,
                            .formula = "y = sum of x" };

/* ---- sum_to ---- */

vkt_tensor vkt_sum_to(vkt_graph *g, vkt_tensor x, vkt_shape shape)
{
    return vkt_reduce_to(g, &vkt_op_sum_to, x, shape);
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
    vkt_sample_to(r, c, 0.5f, 1.5f);
}

const vkt_op vkt_op_sum_to = { .name = "sum_to",
                               .min_in = 1,
                               .max_in = 1,
                               .diff = 1u << 0,
                               .attr_bytes = sizeof(vkt_shape_attr),
                               .infer = vkt_infer_to,
                               .emit = sum_to_emit,
                               VKT_REDUCE_HALF,
                               .backward = sum_to_backward,
                               .sample = sum_to_sample,
                               VKT_SUM_TOLERANCE,
                               .flops = vkt_flops_an_input,
                               .formula = "y = x summed over the dimensions that y lacks or has as 1" };

/* ---- expand ---- */

static vkt_result expand_infer(vkt_infer *f)
{
    const vkt_expand_attr *a = f->n->attr;
    const vkt_value x = *vkt_in(f, 0);
    vkt_shape s;
    char from[80], to[80];
    VKT_REQUIRE(f, x.dtype == VKT_F32, VKT_E_DTYPE, "expand: want f32, got %s", vkt_dtype_name(x.dtype));
    VKT_REQUIRE(f, vkt_is_layout(a->layout), VKT_E_ARG, "expand: want a vkt_layout, got number %d", (int)a->layout);
    VKT_REQUIRE(f, a->shape.rank <= VKT_MAX_RANK, VKT_E_SHAPE, "expand: want a rank of at most %d, got %u",
                VKT_MAX_RANK, a->shape.rank);
    VKT_REQUIRE(f, vkt_broadcast_shape(x.shape, a->shape, &s) && vkt_shape_equal(s, a->shape), VKT_E_SHAPE,
                "expand: %s does not broadcast to %s", vkt_shape_text(x.shape, from), vkt_shape_text(a->shape, to));
    vkt_out(f, VKT_F32, a->layout, a->shape);
    return VKT_OK;
}

vkt_tensor vkt_expand(vkt_graph *g, vkt_tensor x, vkt_shape shape, vkt_layout layout)
{
    const vkt_expand_attr a = { shape, layout };
    return vkt_apply(g, &vkt_op_expand, &x, 1, &a, NULL);
}

static void expand_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_broadcast(e, 0, n->in, 1, n->out[0]);
}

/* Returns true if the kernels can read and write in 16 bits (half_when). They can if x and y are ROWS, because each
 * vec4 of y is then a vec4 of x, or repeats one element of x. */
static bool expand_is_half(const vkt_node *n)
{
    return vkt_node_in(n, 0)->layout == VKT_ROWS && vkt_node_out(n, 0)->layout == VKT_ROWS;
}

static void expand_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_shape shape = g->values[n->in[0].id].shape;
    const vkt_layout layout = g->values[n->in[0].id].layout;
    dx[0] = vkt_to_layout(g, vkt_sum_to(g, dy[0], shape), layout);
}

static void expand_sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t last = vkt_rng_range(r, 0, 1) ? 4 : vkt_rng_range(r, 1, 5);
    const vkt_shape s = vkt_shape4(vkt_rng_range(r, 1, 19), vkt_rng_range(r, 1, 5), vkt_rng_range(r, 1, 3), last);
    vkt_shape from = { .rank = vkt_rng_range(r, 0, 4) };
    for (uint32_t i = 0; i < from.rank; i++) from.dim[i] = vkt_rng_range(r, 0, 1) ? 1 : s.dim[4 - from.rank + i];
    const vkt_expand_attr a = { s, vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS };
    vkt_case_f32(c, VKT_ROWS, from, -1, 1);
    vkt_case_attr(c, &a, sizeof a);
}

const vkt_op vkt_op_expand = {
    .name = "expand",
    .min_in = 1,
    .max_in = 1,
    .cheap = true,
    .diff = 1u << 0,
    .attr_bytes = sizeof(vkt_expand_attr),
    .infer = expand_infer,
    .emit = expand_emit,
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .half_when = expand_is_half,
    .backward = expand_backward,
    .sample = expand_sample,
    .rel_tol = 1.2e-7f,
    .abs_tol = 4e-5f,
    .tol_why = "forward is a copy; a gradient sums up to 1425 terms of both signs, in < 128 roundings "
               "of partial sums that are some 10 times the result",
    .flops = vkt_flops_none,
    .formula = "x, its dimensions of 1 repeated"
};
