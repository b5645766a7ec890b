/* base/fixed.c - see fixed.h. */
#include "base/fixed.h"

uint64_t vkt_fixed_from_double(double x)
{
    if (!(x > 0)) return 0;
    return x >= 1 ? VKT_FIXED_ONE : (uint64_t)(x * 0x1p64);
}

uint64_t vkt_fixed_mul(uint64_t a, uint64_t b)
{
    if (a == VKT_FIXED_ONE) return b;
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32); /* cross <= 2^64 - 2^32: no carry is lost */
    const uint64_t middle = a0 * b1 + (uint32_t)cross;
    return a1 * b1 + (cross >> 32) + (middle >> 32);
}

uint64_t vkt_fixed_pow(uint64_t b, uint64_t t)
{
    uint64_t q = VKT_FIXED_ONE;
    if (b == VKT_FIXED_ONE) return q;
    for (; t && q; t--) q = vkt_fixed_mul(q, b);
    return q;
}

uint64_t vkt_fixed_momentum(uint64_t b, uint64_t p)
{
    return p >> 1 ? vkt_fixed_mul(0 - (p >> 1), b) : b;
}

uint64_t vkt_fixed_momentum_product(uint64_t b, uint64_t r, uint64_t t)
{
    uint64_t product = VKT_FIXED_ONE, p = VKT_FIXED_ONE;
    for (; t && product; t--) {
        p = vkt_fixed_mul(p, r);
        product = vkt_fixed_mul(product, vkt_fixed_momentum(b, p));
    }
    return product;
}

float vkt_fixed_complement_f32(uint64_t q)
{
    if (q == VKT_FIXED_ONE) return 0;
    return q == 0 ? 1.0f : (float)(0 - q) * 0x1p-64f; /* the conversion rounds; the scaling is exact */
}
