/* reference/upsample2d.c - resizes images by torch's formulas (torch.nn.functional.interpolate).
 * x has H rows, and y has P rows. Row p of y is computed as follows, and columns are computed like rows.
 *   nearest: row min(floor(p * (H / P)), H - 1) of x. H / P and the product are float32 numbers, as in torch
 *   bilinear: y is interpolated between the rows floor(at) and min(floor(at) + 1, H - 1) of x
 *     with align_corners: at = p * (H - 1) / (P - 1), or 0 if P is 1
 *     without align_corners: at = max((p + 1/2) * H / P - 1/2, 0) */
#include "reference/families.h"

#include <math.h>

/* An output row (or column) is a[0] times row (or column) i[0] of x, plus a[1] times row (or column) i[1]. */
typedef struct taps {
    size_t i[2];
    double a[2];
} taps;

static taps taps_of(const vkt_upsample2d_attr *u, size_t p, size_t in, size_t out)
{
    if (!u->bilinear) {
        const float scale = (float)in / (float)out, at = floorf((float)p * scale);
        const size_t i = VKT_MIN((size_t)at, in - 1);
        return (taps){ { i, i }, { 1, 0 } };
    }
    double at;
    if (u->align_corners)
        at = out > 1 ? (double)p * (double)(in - 1) / (double)(out - 1) : 0;
    else
        at = fmax(((double)p + 0.5) * (double)in / (double)out - 0.5, 0);
    const size_t i = VKT_MIN((size_t)at, in - 1), next = i + 1 < in ? i + 1 : i;
    const double fraction = fmin(at - (double)i, 1);
    return (taps){ { i, next }, { 1 - fraction, fraction } };
}

/* Calls fn for each element of y and each element of x that contributes to it. fn gets the index of the element of y,
 * the index of the element of x, and the weight of the contribution. */
static void each(const vkt_ref_call *c, void (*fn)(const vkt_ref_call *c, size_t y, size_t x, double weight))
{
    const vkt_upsample2d_attr *u = c->attr;
    const vkt_shape x = c->in[0].shape, y = c->out[0].shape;
    for (size_t i = 0; i < vkt_ref_count(y); i++) {
        const size_t q = i % y.dim[3], p = i / y.dim[3] % y.dim[2], plane = i / y.dim[3] / y.dim[2];
        const taps v = taps_of(u, p, x.dim[2], y.dim[2]), h = taps_of(u, q, x.dim[3], y.dim[3]);
        for (int r = 0; r < 2; r++)
            for (int s = 0; s < 2; s++) fn(c, i, (plane * x.dim[2] + v.i[r]) * x.dim[3] + h.i[s], v.a[r] * h.a[s]);
    }
}

static void gather(const vkt_ref_call *c, size_t y, size_t x, double weight)
{
    c->out[0].f[y] += weight * c->in[0].f[x];
}

static void scatter(const vkt_ref_call *c, size_t y, size_t x, double weight)
{
    c->din[0][x] += weight * c->dout[0][y];
}

static void upsample_forward(const vkt_ref_call *c)
{
    for (size_t i = 0; i < vkt_ref_count(c->out[0].shape); i++) c->out[0].f[i] = 0;
    each(c, gather);
}

static void upsample_backward(const vkt_ref_call *c)
{
    each(c, scatter);
}

const vkt_ref_op vkt_ref_upsample2d = { "upsample2d", 1, upsample_forward, upsample_backward };
