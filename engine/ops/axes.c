/* ops/axes.c - sums, means and variances over any axes, made of sum_to, mul and add: their gradients are those ops'. */
#include "ops/ops.h"

/* x's shape with 1 for the axes of the mask, and their elements; false, and the graph's error set, if it names none of
 * x's. */
static bool reduced_shape(vkt_graph *g, const char *name, vkt_tensor x, uint32_t axes, vkt_shape *shape, uint64_t *n)
{
    char text[80];
    if (g->status != VKT_OK || !x.id || x.id >= g->n_values) return false;
    *shape = g->values[x.id].shape;
    *n = 1;
    if (axes != VKT_ALL_AXES && (axes == 0 || axes >> shape->rank)) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "%s: want axes of %s, got the mask 0x%x", name,
                                    vkt_shape_text(*shape, text), axes));
        return false;
    }
    for (uint32_t i = 0; i < shape->rank; i++)
        if (axes >> i & 1) {
            *n *= shape->dim[i];
            shape->dim[i] = 1;
        }
    return true;
}

/* y without the axes of the mask, which are 1 there. */
static vkt_tensor drop(vkt_graph *g, vkt_tensor y, uint32_t axes)
{
    const vkt_shape from = vkt_tensor_shape(g, y);
    vkt_shape to = { .rank = 0 };
    for (uint32_t i = 0; i < from.rank; i++)
        if (!(axes >> i & 1)) to.dim[to.rank++] = from.dim[i];
    return vkt_reshape(g, y, to);
}

/* factor * sum of x over the axes that `shape` has as 1. */
static vkt_tensor scaled_sum(vkt_graph *g, vkt_tensor x, vkt_shape shape, double factor)
{
    const float f = (float)factor;
    const vkt_tensor sum = vkt_to_layout(g, vkt_sum_to(g, x, shape), VKT_ROWS);
    return factor == 1 ? sum : vkt_mul(g, sum, vkt_graph_const(g, "factor", VKT_F32, vkt_shape0(), &f));
}

static vkt_tensor sum_over(vkt_graph *g, const char *name, vkt_tensor x, uint32_t axes, bool keepdim, bool mean)
{
    vkt_shape shape;
    uint64_t n;
    if (!reduced_shape(g, name, x, axes, &shape, &n)) return (vkt_tensor){ 0 };
    const vkt_tensor y = scaled_sum(g, x, shape, mean ? 1.0 / (double)n : 1);
    return keepdim ? y : drop(g, y, axes);
}

vkt_tensor vkt_sum_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim)
{
    return sum_over(g, "sum_over", x, axes, keepdim, false);
}

vkt_tensor vkt_mean_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim)
{
    return sum_over(g, "mean_over", x, axes, keepdim, true);
}

vkt_tensor vkt_var(vkt_graph *g, vkt_tensor x, uint32_t axes, uint32_t correction, bool keepdim)
{
    vkt_shape shape;
    uint64_t n;
    if (!reduced_shape(g, "var", x, axes, &shape, &n)) return (vkt_tensor){ 0 };
    if (n <= correction) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "var: want more than %u elements, got %llu", correction,
                                    (unsigned long long)n));
        return (vkt_tensor){ 0 };
    }
    const vkt_tensor minus_mean = scaled_sum(g, x, shape, -1.0 / (double)n), d = vkt_add(g, x, minus_mean);
    const vkt_tensor y = scaled_sum(g, vkt_mul(g, d, d), shape, 1.0 / (double)(n - correction));
    return keepdim ? y : drop(g, y, axes);
}
