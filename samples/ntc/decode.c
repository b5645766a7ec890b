/* ntc/decode.c - decodes a set on the CPU, without the library: see set.h. shaders/texture.frag does the same. */
#include <math.h>
#include <stdlib.h>

#include "ntc/set.h"

/* The position of the centre of a block of texels along one axis, between the centres of two neighbouring cells of a
 * grid. */
typedef struct between {
    uint32_t first, second; /* indices of these two cells */
    float fraction;         /* the position between their centres: 0 at the first one, 1 at the second one */
} between;

/* Returns the position of block x between the cells of a grid. A cell has `scale` blocks along the axis. The centre of
 * block x is (x + 1/2) / scale - 1/2 cells behind the centre of cell 0. A cell outside the grid is replaced by the
 * nearest cell inside. */
static between find(uint32_t x, uint32_t scale, uint32_t cells)
{
    const uint32_t at = 2 * x + 1 + scale, next = at / (2 * scale);
    return (between){ next ? next - 1 : 0, next < cells ? next : cells - 1,
                      (float)(at - next * 2 * scale) / (float)(2 * scale) };
}

/* Writes the inputs of the network for block (x,y). */
static void read_inputs(const ntc_set *s, uint32_t x, uint32_t y, float *in)
{
    for (uint32_t i = 0; i < s->n_grids; i++) {
        const ntc_grid *g = &s->grids[i];
        const between v = find(y, g->scale / NTC_BLOCK, g->height), u = find(x, g->scale / NTC_BLOCK, g->width);
        const float steps = (float)ntc_steps(g);
        for (uint32_t f = 0; f < g->features; f++) {
            const uint16_t *top = g->levels + ((size_t)f * g->height + v.first) * g->width,
                           *bottom = g->levels + ((size_t)f * g->height + v.second) * g->width;
            const float a = (float)top[u.first] / steps, b = (float)top[u.second] / steps,
                        c = (float)bottom[u.first] / steps, d = (float)bottom[u.second] / steps;
            if (g->corners) {
                in[0] = a, in[1] = b, in[2] = c, in[3] = d;
                in += 4;
            } else {
                const float above = (1 - u.fraction) * a + u.fraction * b,
                            under = (1 - u.fraction) * c + u.fraction * d;
                *in++ = (1 - v.fraction) * above + v.fraction * under;
            }
        }
    }
    const uint32_t scale = ntc_place_scale(s) / NTC_BLOCK;
    const between v = find(y, scale, s->height), u = find(x, scale, s->width); /* only the fractions are used */
    in[0] = 2 * u.fraction - 1;
    in[1] = 2 * v.fraction - 1;
    in[2] = in[0] * in[1];
}

/* Returns a copy of the weights with each matrix transposed to (inputs, outputs), so that loops over outputs read
 * neighbouring numbers. NULL: no memory. The caller frees the copy. */
static float *transposed(const ntc_set *s)
{
    float *w = malloc(ntc_weights(s) * sizeof *w);
    for (uint32_t k = 0; w && k < NTC_LAYERS; k++) {
        const ntc_layer l = ntc_layer_of(s, k);
        for (uint32_t o = 0; o < l.out; o++) {
            for (uint32_t i = 0; i < l.in; i++)
                w[l.weight + (size_t)i * l.out + o] = s->weights[l.weight + (size_t)o * l.in + i];
            w[l.bias + o] = s->weights[l.bias + o];
        }
    }
    return w;
}

/* Computes all layers. The inputs are in value[0]. Returns the outputs, which are in one of the two arrays. `w` is the
 * result of transposed(). */
static const float *evaluate(const ntc_set *s, const float *w, float value[2][NTC_MAX_INPUTS])
{
    for (uint32_t k = 0; k < NTC_LAYERS; k++) {
        const ntc_layer l = ntc_layer_of(s, k);
        const float *in = value[k % 2];
        float *restrict sum = value[(k + 1) % 2];
        for (uint32_t o = 0; o < l.out; o++) sum[o] = w[l.bias + o];
        for (uint32_t i = 0; i < l.in; i++) {
            const float *restrict row = w + l.weight + (size_t)i * l.out;
            for (uint32_t o = 0; o < l.out; o++) sum[o] += row[o] * in[i];
        }
        for (uint32_t o = 0; k + 1 < NTC_LAYERS && o < l.out; o++) sum[o] = fmaxf(sum[o], 0);
    }
    return value[NTC_LAYERS % 2];
}

void ntc_put_block(const ntc_set *s, const float *block, uint32_t x, uint32_t y, uint8_t *out)
{
    for (uint32_t i = 0; i < NTC_BLOCK * NTC_BLOCK; i++) {
        const uint32_t v = y * NTC_BLOCK + i / NTC_BLOCK, u = x * NTC_BLOCK + i % NTC_BLOCK;
        if (v >= s->height || u >= s->width) continue;
        uint8_t *texel = out + ((size_t)v * s->width + u) * s->channels;
        for (uint32_t c = 0; c < s->channels; c++)
            texel[c] = (uint8_t)(fminf(fmaxf(block[i * s->channels + c], 0), 1) * 255 + 0.5f);
    }
}

vkt_result ntc_decode(const ntc_set *s, uint8_t *out)
{
    float value[2][NTC_MAX_INPUTS], *w = transposed(s);
    if (!w) return VKT_E_NOMEM;
    for (uint32_t y = 0; y < ntc_blocks(s->height); y++)
        for (uint32_t x = 0; x < ntc_blocks(s->width); x++) {
            read_inputs(s, x, y, value[0]);
            ntc_put_block(s, evaluate(s, w, value), x, y, out);
        }
    free(w);
    return VKT_OK;
}
