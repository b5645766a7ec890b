/* ops/elementwise/mean_max.c - mean, max_to and min_to: reductions whose gradients use products and quotients. */
#include "ops/elementwise/broadcast.h"
#include "ops/elementwise/reduce.h"

#include "abi/abi.h"
#include "abi/reduce.abi.h"

/* ---- mean ---- */

static void mean_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_sum_to(e, n->in[0], n->out[0], (float)(1.0 / (double)vkt_shape_elements(vkt_node_in(n, 0)->shape)));
}

vkt_tensor vkt_mean(vkt_graph *g, vkt_tensor x)
{
    return vkt_apply(g, &vkt_op_mean, &x, 1, NULL, NULL);
}

static void mean_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_value x = g->values[n->in[0].id];
    const float share = (float)(1.0 / (double)vkt_shape_elements(x.shape));
    const vkt_tensor c = vkt_graph_const(g, "1/n", VKT_F32, vkt_shape0(), &share);
    dx[0] = vkt_expand(g, vkt_mul(g, dy[0], c), x.shape, x.layout);
}

const vkt_op vkt_op_mean = { .name = "mean",
                             .min_in = 1,
                             .max_in = 1,
                             .diff = 1u << 0,
                             .infer = vkt_infer_whole,
                             .emit = mean_emit,
                             VKT_REDUCE_HALF,
                             .backward = mean_backward,
                             .sample = vkt_sample_whole,
                             VKT_SUM_TOLERANCE,
                             .flops = vkt_flops_an_input,
                             .formula = "y = sum of x / number of elements" };

/* ---- max_to, min_to ---- */

vkt_tensor vkt_max_to(vkt_graph *g, vkt_tensor x, vkt_shape shape)
{
    return vkt_reduce_to(g, &vkt_op_max_to, x, shape);
}

vkt_tensor vkt_min_to(vkt_graph *g, vkt_tensor x, vkt_shape shape)
{
    return vkt_reduce_to(g, &vkt_op_min_to, x, shape);
}

static void max_to_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_reduce_to(e, n->in[0], n->out[0], REDUCE_MAX, 1);
}

static void min_to_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_reduce_to(e, n->in[0], n->out[0], REDUCE_MIN, 1);
}

/* Adds the gradient. Equal extremes get equal shares of dy. If an element of y is NaN, no element of x is equal to it,
 * so `number` is 0 and dy / number is not finite. vkt_where_equal multiplies this quotient by 0. So dx is NaN, as in
 * torch. */
static void extreme_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor x = n->in[0], y = n->out[0], one = vkt_graph_const(g, "one", VKT_F32, vkt_shape0(), &(float){ 1 });
    const vkt_tensor number = vkt_sum_to(g, vkt_where_equal(g, one, x, y), g->values[y.id].shape);
    dx[0] = vkt_where_equal(g, vkt_div(g, dy[0], number), x, y);
}

static void extreme_sample(vkt_rng *r, vkt_case *c)
{
    vkt_sample_to(r, c, -3, 3);
    c->in[0].distinct = true;
}

#define EXTREME_ROW                                                                                         \
    .min_in = 1, .max_in = 1, .diff = 1u << 0, .attr_bytes = sizeof(vkt_shape_attr), .infer = vkt_infer_to, \
    VKT_REDUCE_HALF, .backward = extreme_backward, .sample = extreme_sample, .flops = vkt_flops_an_input,   \
    .rel_tol = 3e-7f, .tol_why = "exact: a choice; its gradient is divided by 1, to 2.5 ulp (Vulkan 1.3)"

const vkt_op vkt_op_max_to = {
    .name = "max_to", EXTREME_ROW, .emit = max_to_emit, .formula = "y = largest x over what y lacks or has as 1"
};
const vkt_op vkt_op_min_to = {
    .name = "min_to", EXTREME_ROW, .emit = min_to_emit, .formula = "y = least x over what y lacks or has as 1"
};
