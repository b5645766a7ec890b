/* reference/quantized.c - quantized weights in double precision, as the comment of vkt_quant describes them.
 *   linear_quantized      y[b,o] = bias[o] + sum over i of x[b,i] w[o,i]
 *   with `transposed`     y[b,i] = bias[i] + sum over o of x[b,o] w[o,i]
 *   embedding_quantized   y[i] = row ids[i] of w; zeros if w has no such row */
#include "reference/families.h"

#include <math.h>

static double half_at(const unsigned char *p)
{
    const int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, digits = bits & 1023;
    const double size = exponent ? ldexp(1024 + digits, exponent - 25) : ldexp(digits, -24);
    return bits >> 15 ? -size : size;
}

static double bf16_at(const unsigned char *p)
{
    const uint32_t bits = (uint32_t)(p[0] | p[1] << 8) << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static int nibble(const unsigned char *p, uint32_t i)
{
    return i % 2 ? *p >> 4 : *p & 15;
}

static int as_signed(unsigned char byte)
{
    return byte < 128 ? byte : byte - 256;
}

/* Returns the number at index i of a block of Q4_K, or of Q5_K if `five`. A block has 8 sub-blocks of 32 numbers. Each
 * sub-block has a scale and an offset of six bits. The scales and offsets are stored in the 12 bytes from s on:
 *   bytes 0 to 3: the low six bits are the scales 0 to 3; the high two bits are the high bits of the scales 4 to 7
 *   bytes 4 to 7: the low six bits are the offsets 0 to 3; the high two bits are the high bits of the offsets 4 to 7
 *   bytes 8 to 11: the low four bits of the scales 4 to 7 (low half of a byte) and of the offsets 4 to 7 (high half) */
static double k_number(const unsigned char *p, uint32_t i, bool five)
{
    const unsigned char *s = p + 4;
    const uint32_t j = i / 32, l = i % 32;
    const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) + 16 * (s[j - 4] >> 6);
    const int offset = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) + 16 * (s[j] >> 6);
    int q = nibble(p + (five ? 48 : 16) + 32 * (j / 2) + l, j);
    if (five) q += 16 * (p[16 + l] >> j & 1);
    return half_at(p) * scale * q - half_at(p + 2) * offset;
}

static double q6_number(const unsigned char *p, uint32_t i)
{
    const uint32_t part = i / 128, quarter = i % 128 / 32, l = i % 32;
    const int low = nibble(p + 64 * part + 32 * (quarter % 2) + l, quarter / 2);
    const int high = p[128 + 32 * part + l] >> 2 * quarter & 3;
    return half_at(p + 208) * as_signed(p[192 + i / 16]) * (low + 16 * high - 32);
}

double vkt_ref_quantized(const vkt_quantized_attr *a, const uint32_t *words, size_t row, size_t column)
{
    const unsigned char *p = (const unsigned char *)words;
    const size_t at = row * a->columns + column;
    const uint32_t i = (uint32_t)(at % 32), k = (uint32_t)(at % 256);
    switch (a->format) {
    case VKT_QUANT_F16: return half_at(p + 2 * at);
    case VKT_QUANT_BF16: return bf16_at(p + 2 * at);
    case VKT_QUANT_Q4_0: p += at / 32 * 18; return half_at(p) * (nibble(p + 2 + i % 16, i / 16) - 8);
    case VKT_QUANT_Q4_1: p += at / 32 * 20; return half_at(p) * nibble(p + 4 + i % 16, i / 16) + half_at(p + 2);
    case VKT_QUANT_Q8_0: p += at / 32 * 34; return half_at(p) * as_signed(p[2 + i]);
    case VKT_QUANT_Q4_K: return k_number(p + at / 256 * 144, k, false);
    case VKT_QUANT_Q5_K: return k_number(p + at / 256 * 176, k, true);
    case VKT_QUANT_Q6_K: return q6_number(p + at / 256 * 210, k);
    default: return (double)NAN;
    }
}

static void linear_forward(const vkt_ref_call *c)
{
    const vkt_quantized_attr *a = c->attr;
    const size_t batch = c->out[0].shape.dim[0], in = c->in[0].shape.dim[1], out = c->out[0].shape.dim[1];
    for (size_t o = 0; o < out; o++)
        for (size_t b = 0; b < batch; b++) c->out[0].f[b * out + o] = c->n_in > 2 && c->in[2].f ? c->in[2].f[o] : 0;
    for (size_t o = 0; o < out; o++)
        for (size_t i = 0; i < in; i++) {
            const double w =
                a->transposed ? vkt_ref_quantized(a, c->in[1].u, i, o) : vkt_ref_quantized(a, c->in[1].u, o, i);
            for (size_t b = 0; b < batch; b++) c->out[0].f[b * out + o] += c->in[0].f[b * in + i] * w;
        }
}

static void linear_backward(const vkt_ref_call *c)
{
    const vkt_quantized_attr *a = c->attr;
    const size_t batch = c->out[0].shape.dim[0], in = c->in[0].shape.dim[1], out = c->out[0].shape.dim[1];
    const double *dy = c->dout[0];
    for (size_t o = 0; c->din[0] && o < out; o++)
        for (size_t i = 0; i < in; i++) {
            const double w =
                a->transposed ? vkt_ref_quantized(a, c->in[1].u, i, o) : vkt_ref_quantized(a, c->in[1].u, o, i);
            for (size_t b = 0; b < batch; b++) c->din[0][b * in + i] += dy[b * out + o] * w;
        }
    for (size_t o = 0; c->n_in > 2 && c->din[2] && o < out; o++)
        for (size_t b = 0; b < batch; b++) c->din[2][o] += dy[b * out + o];
}

static void embedding_forward(const vkt_ref_call *c)
{
    const vkt_quantized_attr *a = c->attr;
    const size_t n = vkt_ref_count(c->in[0].shape);
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < a->columns; d++) {
            const uint32_t id = c->in[0].u[i];
            c->out[0].f[i * a->columns + d] = id < a->rows ? vkt_ref_quantized(a, c->in[1].u, id, d) : 0;
        }
}

const vkt_ref_op vkt_ref_linear_quantized = { "linear_quantized", 1, linear_forward, linear_backward, NULL };
const vkt_ref_op vkt_ref_embedding_quantized = { "embedding_quantized", 1, embedding_forward, NULL, NULL };
