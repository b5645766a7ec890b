/* reference/reduce.c - reductions, and broadcasting, which is the gradient of a sum.
 *   sum, mean: the sum and the mean of all elements, a scalar
 *   sum_to: the sum over the dimensions that the result does not have, or has with size 1
 *   max_to, min_to: the maximum or the minimum over the same dimensions as sum_to. The gradient is divided equally
 *     among the elements that are equal to the result
 *   expand: broadcasts x to the shape of the result */
#include "reference/families.h"

#include <math.h>

static void sum_all(const vkt_ref_call *c, double scale)
{
    const size_t n = vkt_ref_count(c->in[0].shape);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += c->in[0].f[i];
    c->out[0].f[0] = sum * scale;
}

static void spread(const vkt_ref_call *c, double scale)
{
    const size_t n = vkt_ref_count(c->in[0].shape);
    for (size_t i = 0; i < n; i++) c->din[0][i] += c->dout[0][0] * scale;
}

static void sum_forward(const vkt_ref_call *c)
{
    sum_all(c, 1);
}

static void sum_backward(const vkt_ref_call *c)
{
    spread(c, 1);
}

const vkt_ref_op vkt_ref_sum = { "sum", 1, sum_forward, sum_backward };

static void mean_forward(const vkt_ref_call *c)
{
    sum_all(c, 1.0 / (double)vkt_ref_count(c->in[0].shape));
}

static void mean_backward(const vkt_ref_call *c)
{
    spread(c, 1.0 / (double)vkt_ref_count(c->in[0].shape));
}

const vkt_ref_op vkt_ref_mean = { "mean", 1, mean_forward, mean_backward };

static void sum_to_forward(const vkt_ref_call *c)
{
    const vkt_shape x = c->in[0].shape, y = c->out[0].shape;
    const size_t n = vkt_ref_count(x), m = vkt_ref_count(y);
    for (size_t i = 0; i < m; i++) c->out[0].f[i] = 0;
    for (size_t i = 0; i < n; i++) c->out[0].f[vkt_ref_broadcast(x, y, i)] += c->in[0].f[i];
}

static void sum_to_backward(const vkt_ref_call *c)
{
    const vkt_shape x = c->in[0].shape, y = c->out[0].shape;
    const size_t n = vkt_ref_count(x);
    for (size_t i = 0; i < n; i++) c->din[0][i] += c->dout[0][vkt_ref_broadcast(x, y, i)];
}

const vkt_ref_op vkt_ref_sum_to = { "sum_to", 1, sum_to_forward, sum_to_backward };

static void extreme(const vkt_ref_call *c, double sign)
{
    const vkt_shape x = c->in[0].shape, y = c->out[0].shape;
    const size_t n = vkt_ref_count(x), m = vkt_ref_count(y);
    for (size_t i = 0; i < m; i++) c->out[0].f[i] = -sign * HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        double *best = &c->out[0].f[vkt_ref_broadcast(x, y, i)];
        if (sign * c->in[0].f[i] > sign * *best) *best = c->in[0].f[i];
    }
}

static void max_to_forward(const vkt_ref_call *c)
{
    extreme(c, 1);
}

static void min_to_forward(const vkt_ref_call *c)
{
    extreme(c, -1);
}

static void extreme_backward(const vkt_ref_call *c)
{
    const vkt_shape x = c->in[0].shape, y = c->out[0].shape;
    const size_t n = vkt_ref_count(x), m = vkt_ref_count(y);
    const double *from = c->in[0].f, *best = c->out[0].f;
    for (size_t o = 0; o < m; o++) {
        size_t equal = 0;
        for (size_t i = 0; i < n; i++) equal += vkt_ref_broadcast(x, y, i) == o && from[i] == best[o];
        for (size_t i = 0; i < n; i++)
            if (vkt_ref_broadcast(x, y, i) == o && from[i] == best[o]) c->din[0][i] += c->dout[0][o] / (double)equal;
    }
}

const vkt_ref_op vkt_ref_max_to = { "max_to", 1, max_to_forward, extreme_backward };
const vkt_ref_op vkt_ref_min_to = { "min_to", 1, min_to_forward, extreme_backward };

static void expand_forward(const vkt_ref_call *c)
{
    const vkt_shape x = c->in[0].shape, y = c->out[0].shape;
    const size_t n = vkt_ref_count(y);
    for (size_t i = 0; i < n; i++) c->out[0].f[i] = c->in[0].f[vkt_ref_broadcast(y, x, i)];
}

static void expand_backward(const vkt_ref_call *c)
{
    const vkt_shape x = c->in[0].shape, y = c->out[0].shape;
    const size_t n = vkt_ref_count(y);
    for (size_t i = 0; i < n; i++) c->din[0][vkt_ref_broadcast(y, x, i)] += c->dout[0][i];
}

const vkt_ref_op vkt_ref_expand = { "expand", 1, expand_forward, expand_backward };
