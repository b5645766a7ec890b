/* reference/conv_transpose2d.c - transposed convolution of images, as a scatter: each x[n,c,h,v] * w[c,o,r,s] is added
 * to y[n,k,i,j] with k = g * (O / G) + o, i = h * stride - pad + r * dil, j = v * stride - pad + s * dil. x has C
 * channels, y has O channels, G = groups, and g = floor(c / (C / G)) is the group of c. A product is left out if i or j
 * is outside of y. If there is a bias, bias[k] is added to each y[n,k,i,j]. */
#include "reference/families.h"

/* Computes the row (axis 0) or column (axis 1) of y to which input position `in` adds. k is the index r (axis 0) or s
 * (axis 1) of the weight. Returns false if y does not have this row or column. */
static bool lands(const vkt_conv_transpose2d_attr *a, int axis, uint32_t in, uint32_t k, uint32_t size, size_t *at)
{
    const int64_t i = (int64_t)in * a->stride[axis] + (int64_t)k * a->dilation[axis] - a->pad[axis];
    *at = (size_t)i;
    return i >= 0 && i < size;
}

/* If `back` is false, adds x * w to y. If `back` is true, adds dy * w to the gradient of x, and dy * x to the gradient
 * of w. The arguments x, w and y are the indices of the elements. */
static void meet(const vkt_ref_call *c, bool back, size_t x, size_t w, size_t y)
{
    if (!back) {
        c->out[0].f[y] += c->in[0].f[x] * c->in[1].f[w];
        return;
    }
    if (c->din[0]) c->din[0][x] += c->dout[0][y] * c->in[1].f[w];
    if (c->din[1]) c->din[1][w] += c->dout[0][y] * c->in[0].f[x];
}

/* Handles all products of one element of x. */
static void scatter(const vkt_ref_call *c, bool back, uint32_t n, uint32_t channel, uint32_t h, uint32_t v)
{
    const vkt_conv_transpose2d_attr *a = c->attr;
    const vkt_shape x = c->in[0].shape, w = c->in[1].shape, y = c->out[0].shape;
    const uint32_t group = channel / (x.dim[1] / a->groups);
    size_t row, column;
    for (uint32_t o = 0; o < w.dim[1]; o++)
        for (uint32_t r = 0; r < w.dim[2]; r++)
            for (uint32_t s = 0; s < w.dim[3]; s++)
                if (lands(a, 0, h, r, y.dim[2], &row) && lands(a, 1, v, s, y.dim[3], &column))
                    meet(c, back, vkt_ref_at4(x, n, channel, h, v), vkt_ref_at4(w, channel, o, r, s),
                         vkt_ref_at4(y, n, group * w.dim[1] + o, row, column));
}

static void each_pixel(const vkt_ref_call *c, bool back)
{
    const vkt_shape x = c->in[0].shape;
    for (uint32_t n = 0; n < x.dim[0]; n++)
        for (uint32_t k = 0; k < x.dim[1]; k++)
            for (uint32_t h = 0; h < x.dim[2]; h++)
                for (uint32_t v = 0; v < x.dim[3]; v++) scatter(c, back, n, k, h, v);
}

static void forward(const vkt_ref_call *c)
{
    const vkt_shape y = c->out[0].shape;
    const double *bias = c->n_in > 2 ? c->in[2].f : NULL;
    const size_t plane = (size_t)y.dim[2] * y.dim[3], n = vkt_ref_count(y);
    for (size_t i = 0; i < n; i++) c->out[0].f[i] = bias ? bias[i / plane % y.dim[1]] : 0;
    each_pixel(c, false);
}

static void backward(const vkt_ref_call *c)
{
    const vkt_shape y = c->out[0].shape;
    const size_t plane = (size_t)y.dim[2] * y.dim[3], n = vkt_ref_count(y);
    if (c->n_in > 2 && c->din[2])
        for (size_t i = 0; i < n; i++) c->din[2][i / plane % y.dim[1]] += c->dout[0][i];
    each_pixel(c, true);
}

const vkt_ref_op vkt_ref_conv_transpose2d = { "conv_transpose2d", 1, forward, backward };
