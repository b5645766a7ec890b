/* reference/conv2d.c - cross-correlation of images, alone or followed by a max pooling:
 *   y[n,o,p,q] = bias[o] + sum over c, r, s of w[o,c,r,s] * x[n,k,i,j]
 *   k = g * (C / G) + c,  i = p * stride - pad + r * dil,  j = q * stride - pad + s * dil
 * where x has C channels, y has O channels, G = groups, and g = floor(o / (O / G)) is the group of o. Elements of x
 * outside of the image are 0. */
#include "reference/families.h"

/* Handles one product of a sum. x and w are the indices of the two factors in the tensors x and w. y is the index of
 * the sum in the tensor y. */
typedef void (*tap_fn)(const vkt_ref_call *c, size_t x, size_t w, size_t y);

/* Computes the row (axis 0) or column (axis 1) of x that is multiplied for output position `out`. k is the index r
 * (axis 0) or s (axis 1) of the weight. Returns false if this row or column is padding. */
static bool meets(const vkt_conv2d_attr *a, int axis, uint32_t out, uint32_t k, uint32_t size, size_t *at)
{
    const int64_t i = (int64_t)out * a->stride[axis] + (int64_t)k * a->dilation[axis] - a->pad[axis];
    *at = (size_t)i;
    return i >= 0 && i < size;
}

static void each_tap(const vkt_ref_call *c, tap_fn tap)
{
    const vkt_conv2d_attr *a = c->attr;
    const vkt_shape x = c->in[0].shape, w = c->in[1].shape, y = c->out[0].shape;
    const uint32_t out_of_group = y.dim[1] / a->groups, in_of_group = x.dim[1] / a->groups;
    for (uint32_t n = 0; n < y.dim[0]; n++)
        for (uint32_t o = 0; o < y.dim[1]; o++)
            for (uint32_t p = 0; p < y.dim[2]; p++)
                for (uint32_t q = 0; q < y.dim[3]; q++)
                    for (uint32_t k = 0; k < in_of_group; k++)
                        for (uint32_t r = 0; r < w.dim[2]; r++)
                            for (uint32_t s = 0; s < w.dim[3]; s++) {
                                const uint32_t channel = o / out_of_group * in_of_group + k;
                                size_t row, column;
                                if (meets(a, 0, p, r, x.dim[2], &row) && meets(a, 1, q, s, x.dim[3], &column))
                                    tap(c, vkt_ref_at4(x, n, channel, row, column), vkt_ref_at4(w, o, k, r, s),
                                        vkt_ref_at4(y, n, o, p, q));
                            }
}

static void add_product(const vkt_ref_call *c, size_t x, size_t w, size_t y)
{
    c->out[0].f[y] += c->in[0].f[x] * c->in[1].f[w];
}

static void add_gradients(const vkt_ref_call *c, size_t x, size_t w, size_t y)
{
    if (c->din[0]) c->din[0][x] += c->dout[0][y] * c->in[1].f[w];
    if (c->din[1]) c->din[1][w] += c->dout[0][y] * c->in[0].f[x];
}

static void forward(const vkt_ref_call *c)
{
    const vkt_shape y = c->out[0].shape;
    const double *bias = c->n_in > 2 ? c->in[2].f : NULL;
    const size_t plane = (size_t)y.dim[2] * y.dim[3], n = vkt_ref_count(y);
    for (size_t i = 0; i < n; i++) c->out[0].f[i] = bias ? bias[i / plane % y.dim[1]] : 0;
    each_tap(c, add_product);
}

static void backward(const vkt_ref_call *c)
{
    const vkt_shape y = c->out[0].shape;
    const size_t plane = (size_t)y.dim[2] * y.dim[3], n = vkt_ref_count(y);
    if (c->n_in > 2 && c->din[2])
        for (size_t i = 0; i < n; i++) c->din[2][i / plane % y.dim[1]] += c->dout[0][i];
    each_tap(c, add_gradients);
}

const vkt_ref_op vkt_ref_conv2d = { "conv2d", 1, forward, backward };

/* ---- convolution with max pooling ---- */

/* One pixel of the convolution's output, before the pooling. */
typedef struct pixel {
    uint32_t n, o, p, q;
} pixel;

/* Returns the value of a pixel: the bias plus the sum of all products. *dz is the gradient of the pixel. If dz is not
 * NULL, also adds the gradients of x, w and bias that come from this pixel to din. */
static double each_product(const vkt_ref_call *c, pixel at, const double *dz)
{
    const vkt_conv2d_attr *a = &((const vkt_conv2d_max_pool_attr *)c->attr)->conv;
    const vkt_shape x = c->in[0].shape, w = c->in[1].shape;
    double sum = c->n_in > 2 && c->in[2].f ? c->in[2].f[at.o] : 0;
    for (uint32_t k = 0; k < w.dim[1]; k++)
        for (uint32_t r = 0; r < w.dim[2]; r++)
            for (uint32_t s = 0; s < w.dim[3]; s++) {
                const uint32_t channel = at.o / (w.dim[0] / a->groups) * w.dim[1] + k;
                size_t row, column;
                if (!meets(a, 0, at.p, r, x.dim[2], &row) || !meets(a, 1, at.q, s, x.dim[3], &column)) continue;
                const size_t i = vkt_ref_at4(x, at.n, channel, row, column), m = vkt_ref_at4(w, at.o, k, r, s);
                sum += c->in[0].f[i] * c->in[1].f[m];
                if (dz && c->din[0]) c->din[0][i] += *dz * c->in[1].f[m];
                if (dz && c->din[1]) c->din[1][m] += *dz * c->in[0].f[i];
            }
    if (dz && c->n_in > 2 && c->din[2]) c->din[2][at.o] += *dz;
    return sum;
}

/* Returns the maximum in the pooling window of output element i. *where gets the pixel with the maximum; at a tie, the
 * first such pixel. */
static double cell_maximum(const vkt_ref_call *c, size_t i, pixel *where)
{
    const vkt_conv2d_max_pool_attr *a = c->attr;
    const uint32_t *y = c->out[0].shape.dim;
    const uint32_t q = (uint32_t)(i % y[3]), p = (uint32_t)(i / y[3] % y[2]), o = (uint32_t)(i / y[3] / y[2] % y[1]);
    double best = 0;
    for (uint32_t k = 0; k < a->cell[0] * a->cell[1]; k++) {
        const pixel at = { .n = (uint32_t)(i / y[3] / y[2] / y[1]),
                           .o = o,
                           .p = p * a->cell[0] + k / a->cell[1],
                           .q = q * a->cell[1] + k % a->cell[1] };
        const double z = each_product(c, at, NULL);
        if (k > 0 && !(z > best)) continue;
        best = z;
        *where = at;
    }
    return best;
}

static void pooled_forward(const vkt_ref_call *c)
{
    const vkt_conv2d_max_pool_attr *a = c->attr;
    const size_t n = vkt_ref_count(c->out[0].shape);
    for (size_t i = 0; i < n; i++) {
        pixel winner;
        const double best = cell_maximum(c, i, &winner);
        c->out[0].f[i] = a->relu && best < 0 ? 0 : best;
    }
}

static void pooled_backward(const vkt_ref_call *c)
{
    const vkt_conv2d_max_pool_attr *a = c->attr;
    const size_t n = vkt_ref_count(c->out[0].shape);
    for (size_t i = 0; i < n; i++) {
        pixel winner;
        const double best = cell_maximum(c, i, &winner);
        if (!a->relu || best > 0) each_product(c, winner, &c->dout[0][i]);
    }
}

const vkt_ref_op vkt_ref_conv2d_max_pool = { "conv2d_max_pool", 1, pooled_forward, pooled_backward };
