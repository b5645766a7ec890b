/* reference/softmax.c - softmax of scale * x over one axis, or the logarithm of the softmax. With a causal mask, x is
 * (.., T, S), and the softmax of row t uses columns 0 .. t only. */
#include "reference/families.h"

#include <math.h>

typedef struct line {
    size_t first, stride, classes, visible;
} line;

/* Returns line i of x. A line is `classes` elements of x along the axis, and the softmax uses the first `visible` of
 * them. `first` is the position of the line's first element in x. */
static line line_of(const vkt_ref_call *c, size_t i)
{
    const vkt_softmax_attr *a = c->attr;
    const vkt_shape x = c->in[0].shape;
    line l = { .stride = 1, .classes = x.dim[a->axis] };
    for (uint32_t k = a->axis + 1; k < x.rank; k++) l.stride *= x.dim[k];
    l.first = i / l.stride * l.classes * l.stride + i % l.stride;
    l.visible = l.classes;
    if (a->causal && i % x.dim[a->axis - 1] + 1 < l.classes) l.visible = i % x.dim[a->axis - 1] + 1;
    return l;
}

static size_t count_lines(const vkt_ref_call *c)
{
    return vkt_ref_count(c->in[0].shape) / c->in[0].shape.dim[((const vkt_softmax_attr *)c->attr)->axis];
}

/* Computes the logarithm of the sum of exp(scale * x) over the visible classes of a line. The largest scale * x is
 * subtracted before exp, so that exp does not overflow. */
static double log_sum(const vkt_ref_call *c, line l)
{
    const double scale = (double)((const vkt_softmax_attr *)c->attr)->scale, *x = c->in[0].f + l.first;
    double m = -INFINITY, sum = 0;
    for (size_t k = 0; k < l.visible; k++) m = fmax(m, scale * x[k * l.stride]);
    for (size_t k = 0; k < l.visible; k++) sum += exp(scale * x[k * l.stride] - m);
    return m + log(sum);
}

static void softmax_forward(const vkt_ref_call *c)
{
    const vkt_softmax_attr *a = c->attr;
    for (size_t i = 0; i < count_lines(c); i++) {
        const line l = line_of(c, i);
        const double all = log_sum(c, l);
        for (size_t k = 0; k < l.classes; k++) {
            const size_t at = l.first + k * l.stride;
            const double y = k < l.visible ? (double)a->scale * c->in[0].f[at] - all : -INFINITY;
            c->out[0].f[at] = a->log ? y : exp(y);
        }
    }
}

static void softmax_backward(const vkt_ref_call *c)
{
    const vkt_softmax_attr *a = c->attr;
    for (size_t i = 0; i < count_lines(c); i++) {
        const line l = line_of(c, i);
        const double all = log_sum(c, l);
        double sum = 0;
        for (size_t k = 0; k < l.visible; k++) {
            const size_t at = l.first + k * l.stride;
            sum += c->dout[0][at] * (a->log ? 1 : exp((double)a->scale * c->in[0].f[at] - all));
        }
        for (size_t k = 0; k < l.visible; k++) {
            const size_t at = l.first + k * l.stride;
            const double p = exp((double)a->scale * c->in[0].f[at] - all), dy = c->dout[0][at];
            c->din[0][at] += (double)a->scale * (a->log ? dy - p * sum : p * (dy - sum));
        }
    }
}

const vkt_ref_op vkt_ref_softmax = { "softmax", 1, softmax_forward, softmax_backward };
