/* reference/pool2d.c - max and average over windows of each (n,c) plane, after PyTorch's documentation of MaxPool2d,
 * AvgPool2d, AdaptiveMaxPool2d and AdaptiveAvgPool2d.
 */
#include "reference/families.h"

#include <math.h>

typedef struct span {
    uint32_t begin, end; /* the window has rows (or columns) from begin to end - 1; it is empty if begin >= end */
    uint32_t step;       /* distance between neighbouring rows of the window */
    uint32_t padded;     /* for an average: number of rows (or columns) of the window that are in the padded image */
} span;

static span window(const vkt_pool2d_attr *a, int axis, uint32_t i, uint32_t size)
{
    if (a->adaptive) {
        const uint64_t n = a->out[axis];
        const uint32_t begin = (uint32_t)((uint64_t)i * size / n), end = (uint32_t)(((i + 1ull) * size + n - 1) / n);
        return (span){ begin, end, 1, end - begin };
    }
    const int64_t begin = (int64_t)i * a->stride[axis] - a->pad[axis], step = VKT_MAX(a->dilation[axis], 1u);
    const int64_t end = VKT_MIN(begin + (a->kernel[axis] - 1) * step + 1, (int64_t)size + a->pad[axis]);
    int64_t first = begin;
    while (first < 0) first += step;
    return (span){ (uint32_t)first, (uint32_t)VKT_MIN(end, (int64_t)size), (uint32_t)step, (uint32_t)(end - begin) };
}

#define NO_WINNER SIZE_MAX
/* Returns the index of the first maximum of the window; NO_WINNER if the window is empty. As in torch, a NaN is larger
 * than all elements before it. */
static size_t find_max(const double *plane, uint32_t W, span h, span w)
{
    size_t best = (size_t)h.begin * W + w.begin;
    if (h.begin >= h.end || w.begin >= w.end) return NO_WINNER;
    for (size_t i = h.begin; i < h.end; i += h.step)
        for (size_t j = w.begin; j < w.end; j += w.step) {
            const double v = plane[i * W + j];
            if (v > plane[best] || isnan(v)) best = i * W + j;
        }
    return best;
}

static double maximum(const vkt_pool2d_attr *a, double v)
{
    return a->relu && v < 0 ? 0 : v;
}

static double divisor(const vkt_pool2d_attr *a, span h, span w)
{
    if (a->exclude_pad) return (double)(h.end - h.begin) * (w.end - w.begin);
    return (double)h.padded * w.padded;
}

static double total(const double *plane, uint32_t W, span h, span w)
{
    double sum = 0;
    for (size_t i = h.begin; i < h.end; i++)
        for (size_t j = w.begin; j < w.end; j++) sum += plane[i * W + j];
    return sum;
}

static void forward(const vkt_ref_call *c)
{
    const vkt_pool2d_attr *a = c->attr;
    const vkt_shape x = c->in[0].shape, y = c->out[0].shape;
    const size_t n = vkt_ref_count(y), Q = y.dim[3], P = y.dim[2], plane = (size_t)x.dim[2] * x.dim[3];
    for (size_t i = 0; i < n; i++) {
        const span h = window(a, 0, (uint32_t)(i / Q % P), x.dim[2]), w = window(a, 1, (uint32_t)(i % Q), x.dim[3]);
        const double *from = c->in[0].f + i / Q / P * plane;
        if (a->average) {
            c->out[0].f[i] = total(from, x.dim[3], h, w) / divisor(a, h, w);
            continue;
        }
        const size_t best = find_max(from, x.dim[3], h, w);
        c->out[0].f[i] = best == NO_WINNER ? -INFINITY : maximum(a, from[best]);
    }
}

static void backward(const vkt_ref_call *c)
{
    const vkt_pool2d_attr *a = c->attr;
    const vkt_shape x = c->in[0].shape, y = c->out[0].shape;
    const size_t n = vkt_ref_count(y), Q = y.dim[3], P = y.dim[2], plane = (size_t)x.dim[2] * x.dim[3];
    for (size_t i = 0; i < n; i++) {
        const span h = window(a, 0, (uint32_t)(i / Q % P), x.dim[2]), w = window(a, 1, (uint32_t)(i % Q), x.dim[3]);
        const double dy = c->dout[0][i];
        const size_t at = i / Q / P * plane;
        if (!a->average) {
            const size_t best = at + find_max(c->in[0].f + at, x.dim[3], h, w);
            if (best == at + NO_WINNER) continue;
            if (!a->relu || !(c->in[0].f[best] <= 0)) c->din[0][best] += dy;
            continue;
        }
        for (size_t r = h.begin; r < h.end; r++)
            for (size_t s = w.begin; s < w.end; s++) c->din[0][at + r * x.dim[3] + s] += dy / divisor(a, h, w);
    }
}

const vkt_ref_op vkt_ref_pool2d = { "pool2d", 1, forward, backward };
