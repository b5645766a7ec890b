/* base/half.c - converts binary16 and bfloat16 by integer arithmetic on the bit patterns.
 *
 *            sign  exponent (bias)  fraction
 *   binary32   1      8  (127)         23
 *   binary16   1      5  (15)          10
 *   bfloat16   1      8  (127)          7     the upper half of a binary32 */
#include "base/half.h"

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Computes x / 2^shift, rounded to the nearest integer, ties to even; 1 <= shift <= 31. */
static uint32_t shift_round(uint32_t x, uint32_t shift)
{
    const uint32_t half = 1u << (shift - 1), rest = x & ((half << 1) - 1), q = x >> shift;
    return q + (rest > half || (rest == half && (q & 1)));
}

float vkt_f32_from_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = (h >> 10) & 31, fraction = h & 0x3ff;
    if (exponent == 31) return float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) {
        if (fraction == 0) return float_of(sign);
        exponent = 1; /* subnormal: fraction * 2^-24, which is normal in binary32 */
        while (!(fraction & 0x400)) {
            fraction <<= 1;
            exponent--;
        }
        fraction &= 0x3ff;
    }
    return float_of(sign | (exponent + (127 - 15)) << 23 | fraction << 13); /* the sum is positive: exponent >= -9 */
}

uint16_t vkt_half_from_f32(float f)
{
    const uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
    uint32_t h;
    if (magnitude > 0x7f800000) { /* NaN: the narrowed payload must not become zero, which would be infinity */
        h = 0x7c00 | (magnitude >> 13 & 0x3ff);
        if (h == 0x7c00) h = 0x7e00;
    } else if (magnitude >= 0x47800000) { /* 2^16 and above */
        h = 0x7c00;
    } else if (magnitude >= 0x38800000) { /* 2^-14 and above: normal; a carry adds 1 to the exponent, up to infinity */
        h = shift_round(magnitude - ((127u - 15u) << 23), 13);
    } else if (magnitude >= 0x33000000) { /* 2^-25 (half of the smallest subnormal) and above; below it, h is 0 */
        const uint32_t exponent = magnitude >> 23; /* 102..112: value = significand * 2^(exponent - 150) */
        h = shift_round((magnitude & 0x7fffff) | 0x800000, 126 - exponent);
    } else {
        h = 0;
    }
    return (uint16_t)(sign | h);
}

float vkt_f32_from_bf16(uint16_t b)
{
    return float_of((uint32_t)b << 16);
}

uint16_t vkt_bf16_from_f32(float f)
{
    const uint32_t u = bits_of(f);
    if ((u & 0x7fffffff) > 0x7f800000) {
        const uint32_t b = u >> 16;
        return (uint16_t)(b & 0x7f ? b : b | 0x40);
    }
    return (uint16_t)shift_round(u, 16); /* a carry adds 1 to the exponent, up to infinity; the sign never changes */
}
