/* ops/move/axes.c - sums, means, variances and extremes over any axes, and argmax over any axis. They are
 * combinations of other ops: sum_to, max_to, min_to, argmax, elementwise ops, reshape, permute and to_layout. So their
 * gradients are the gradients of these ops. argmax has no gradient. */
#include "ops/ops.h"

/* Sets *shape to x's shape with 1 for the axes of the mask. Sets *n to the number of elements along these axes. The
 * mask VKT_ALL_AXES stands for all axes of x. If another mask is 0 or names an axis that x does not have, sets the
 * graph's error and returns false. */
static bool reduced_shape(vkt_graph *g, const char *name, vkt_tensor x, uint32_t axes, vkt_shape *shape, uint64_t *n)
{
    char text[80];
    if (!vkt_is_usable(g, name, x)) return false;
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

/* Returns y without the axes of the mask, which have size 1 in y. */
static vkt_tensor drop(vkt_graph *g, vkt_tensor y, uint32_t axes)
{
    const vkt_shape from = vkt_tensor_shape(g, y);
    vkt_shape to = { .rank = 0 };
    for (uint32_t i = 0; i < from.rank; i++)
        if (!(axes >> i & 1)) to.dim[to.rank++] = from.dim[i];
    return vkt_reshape(g, y, to);
}

/* Returns factor * sum of x over the axes whose size in `shape` is 1. */
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
    if (!g) return (vkt_tensor){ 0 };
    return sum_over(g, "sum_over", x, axes, keepdim, false);
}

vkt_tensor vkt_mean_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim)
{
    if (!g) return (vkt_tensor){ 0 };
    return sum_over(g, "mean_over", x, axes, keepdim, true);
}

static vkt_tensor extreme_over(vkt_graph *g, const char *name, vkt_tensor x, uint32_t axes, bool keepdim,
                               vkt_tensor (*reduce)(vkt_graph *g, vkt_tensor x, vkt_shape shape))
{
    vkt_shape shape;
    uint64_t n;
    if (!reduced_shape(g, name, x, axes, &shape, &n)) return (vkt_tensor){ 0 };
    const vkt_tensor y = vkt_to_layout(g, reduce(g, x, shape), VKT_ROWS);
    return keepdim ? y : drop(g, y, axes);
}

vkt_tensor vkt_max_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim)
{
    if (!g) return (vkt_tensor){ 0 };
    return extreme_over(g, "max_over", x, axes, keepdim, vkt_max_to);
}

vkt_tensor vkt_min_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim)
{
    if (!g) return (vkt_tensor){ 0 };
    return extreme_over(g, "min_over", x, axes, keepdim, vkt_min_to);
}

/* Moves the axis to the end and reshapes x to (M,K), for which there is a kernel. */
vkt_tensor vkt_argmax_over(vkt_graph *g, vkt_tensor x, int32_t axis, bool keepdim)
{
    if (!g) return (vkt_tensor){ 0 };
    char text[80];
    if (!vkt_is_usable(g, "argmax_over", x)) return (vkt_tensor){ 0 };
    vkt_shape s = vkt_tensor_shape(g, x);
    const int64_t rank = s.rank, from_left = axis < 0 ? axis + rank : axis;
    const uint64_t n = vkt_shape_elements(s);
    if (from_left < 0 || from_left >= rank || n > UINT32_MAX) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE,
                                    "argmax_over: want an axis of at most 2^32 - 1 elements in all, got axis %d of %s",
                                    (int)axis, vkt_shape_text(s, text)));
        return (vkt_tensor){ 0 };
    }
    const uint32_t a = (uint32_t)from_left, K = s.dim[a];
    uint32_t perm[VKT_MAX_RANK];
    for (uint32_t i = 0; i < s.rank; i++) perm[i] = i < a ? i : i + 1 < s.rank ? i + 1 : a;
    if (a + 1 < s.rank) x = vkt_permute(g, x, perm);
    if (s.rank != 2) x = vkt_reshape(g, vkt_to_layout(g, x, VKT_ROWS), vkt_shape2((uint32_t)(n / K), K));
    s.dim[a] = 1;
    const vkt_tensor y = vkt_reshape(g, vkt_argmax(g, x), s);
    return keepdim ? y : drop(g, y, VKT_AXIS(a));
}

/* Computes the variance by the corrected two-pass algorithm. The residuals d = x - mean would add up to 0 if the mean
 * were not rounded. Their sum is n times the error of the mean. So (sum d)^2 / n is the part of the sum of d^2 that
 * comes from that error. (Chan, Golub & LeVeque, Algorithms for Computing the Sample Variance, 1983, equation 1.7.) */
vkt_tensor vkt_var(vkt_graph *g, vkt_tensor x, uint32_t axes, uint32_t correction, bool keepdim)
{
    if (!g) return (vkt_tensor){ 0 };
    vkt_shape shape;
    uint64_t n;
    if (!reduced_shape(g, "var", x, axes, &shape, &n)) return (vkt_tensor){ 0 };
    if (n <= correction) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "var: want more than %u elements, got %llu", correction,
                                    (unsigned long long)n));
        return (vkt_tensor){ 0 };
    }
    const vkt_tensor minus_mean = scaled_sum(g, x, shape, -1.0 / (double)n), d = vkt_add(g, x, minus_mean);
    const float left_factor = (float)(1.0 / ((double)n * (double)(n - correction)));
    const vkt_tensor squares = scaled_sum(g, vkt_mul(g, d, d), shape, 1.0 / (double)(n - correction));
    const vkt_tensor left = scaled_sum(g, d, shape, 1);
    const vkt_tensor y = vkt_sub(g, squares, vkt_scale(g, vkt_mul(g, left, left), left_factor, 0));
    return keepdim ? y : drop(g, y, axes);
}
