/* reference/latents.c - the ops latent_grid (reads a grid of latents for a tile of texels) and quantize. */
#include "reference/families.h"

#include <math.h>

/* ---- latent_grid ---- */

/* The two cells around a texel along one axis: c[0] with the weight w[0], and c[1] with the weight w[1]. */
typedef struct around {
    size_t c[2];
    double w[2];
} around;

static size_t inside(double cell, size_t cells)
{
    return (size_t)fmin(fmax(cell, 0), (double)cells - 1);
}

/* Finds the cells around texel `offset` of a tile of `size` texels, along one axis. The tile begins at texel `origin`.
 * If the tile would then end behind the last cell, the tile ends with the last cell. A cell has `scale` texels. */
static around find(uint32_t origin, size_t offset, uint32_t size, size_t cells, uint32_t scale)
{
    const double texel = fmin(origin, (double)cells * scale - size) + (double)offset;
    const double u = (texel + 0.5) / scale - 0.5, first = floor(u);
    return (around){ { inside(first, cells), inside(first + 1, cells) }, { 1 - (u - first), u - first } };
}

/* Calls fn for each element of y and each grid element that contributes to it. fn gets the index of the element of y,
 * the index of the grid element, and the weight of the contribution. */
static void each(const vkt_ref_call *c, void (*fn)(const vkt_ref_call *c, size_t y, size_t cell, double weight))
{
    const vkt_latent_grid_attr *a = c->attr;
    const vkt_shape grid = c->in[0].shape;
    const size_t F = grid.dim[0], H = grid.dim[1], W = grid.dim[2];
    for (size_t n = 0; n < (size_t)a->tile[0] * a->tile[1]; n++) {
        const around v = find(c->in[1].u[0], n / a->tile[1], a->tile[0], H, a->scale);
        const around u = find(c->in[1].u[1], n % a->tile[1], a->tile[1], W, a->scale);
        for (size_t f = 0; f < F; f++)
            for (size_t k = 0; k < 4; k++) {
                const size_t cell = (f * H + v.c[k / 2]) * W + u.c[k % 2];
                if (a->corners)
                    fn(c, (n * F + f) * 4 + k, cell, 1);
                else
                    fn(c, n * F + f, cell, v.w[k / 2] * u.w[k % 2]);
            }
    }
}

static void gather(const vkt_ref_call *c, size_t y, size_t cell, double weight)
{
    c->out[0].f[y] += weight * c->in[0].f[cell];
}

static void scatter(const vkt_ref_call *c, size_t y, size_t cell, double weight)
{
    c->din[0][cell] += weight * c->dout[0][y];
}

static void latent_grid_forward(const vkt_ref_call *c)
{
    for (size_t i = 0; i < vkt_ref_count(c->out[0].shape); i++) c->out[0].f[i] = 0;
    each(c, gather);
}

static void latent_grid_backward(const vkt_ref_call *c)
{
    each(c, scatter);
}

const vkt_ref_op vkt_ref_latent_grid = { "latent_grid", 1, latent_grid_forward, latent_grid_backward, NULL };

/* ---- quantize: see vkt_quantize_attr ---- */

/* Returns the random number of logical element i. The number depends on the element's index e in the memory of the
 * device. In the layout VKT_BATCH_LAST, the batch is the fastest dimension, padded to a multiple of 4 samples. */
static double noise(const vkt_ref_call *c, size_t i)
{
    const vkt_quantize_attr *a = c->attr;
    const vkt_shape s = c->in[0].shape;
    const size_t inner = vkt_ref_count(s) / s.dim[0], pitch = (s.dim[0] + 3u) / 4u * 4u;
    const size_t e = c->in[0].layout == VKT_ROWS ? i : i % inner * pitch + i / inner;
    const vkt_philox counter = { { (uint32_t)(e / 4), c->t, a->salt, VKT_STREAM_QUANTIZE } };
    return (vkt_philox4x32(counter, c->seed).w[e % 4] >> 8) / 16777216.0;
}

/* Quantizes x, or adds noise to x. The gradient is straight-through: for x from 0 to 1, it is 1. Tests compare this
 * gradient with a difference quotient. For the quotient, c->constant has the unchanged x, and c->in[0] has the changed
 * x. Then y is the quantized value of the unchanged x, plus the change of x. So the quotient is 1, too. */
static void quantize_forward(const vkt_ref_call *c)
{
    const vkt_quantize_attr *a = c->attr;
    const double steps = ldexp(1, (int)a->bits) - 1;
    for (size_t i = 0; i < vkt_ref_count(c->in[0].shape); i++) {
        const double x = c->in[0].f[i], at = c->constant ? c->constant[i] : x, t = at < 0 ? 0 : at > 1 ? 1 : at;
        /* `up` is computed in float32, as in the kernel, because the last bit of `up` may decide the level. */
        const float scaled = (float)steps * (float)t, up = scaled + 0.5f;
        c->out[0].f[i] = (a->noise ? t + (noise(c, i) - 0.5) / steps : floor((double)up) / steps) + (x - at);
    }
}

static void quantize_backward(const vkt_ref_call *c)
{
    for (size_t i = 0; i < vkt_ref_count(c->in[0].shape); i++) {
        const double x = c->in[0].f[i], dy = c->dout[0][i];
        if (!((x < 0 && dy > 0) || (x > 1 && dy < 0))) c->din[0][i] += dy;
    }
}

const vkt_ref_op vkt_ref_quantize = { "quantize", 1, quantize_forward, quantize_backward, NULL };
