/* base/philox.c - see philox.h. */
#include "base/philox.h"

#include <math.h>

vkt_philox vkt_philox4x32(vkt_philox c, uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c.w[0], b = (uint64_t)0xCD9E8D57u * c.w[2];
        c = (vkt_philox){ { (uint32_t)(b >> 32) ^ c.w[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c.w[3] ^ k1,
                            (uint32_t)a } };
        k0 += 0x9E3779B9u; /* the paper's Weyl increments: from the golden ratio, and from sqrt(3) - 1 */
        k1 += 0xBB67AE85u;
    }
    return c;
}

vkt_rng vkt_rng_make(uint64_t seed, uint32_t stream, uint32_t a, uint32_t b)
{
    return (vkt_rng){ .key = seed, .counter = { { 0, a, b, stream } } };
}

uint32_t vkt_rng_u32(vkt_rng *r)
{
    if (r->used % 4 == 0) {
        r->block = vkt_philox4x32(r->counter, r->key);
        r->counter.w[0]++;
        r->used = 0;
    }
    return r->block.w[r->used++];
}

uint32_t vkt_rng_range(vkt_rng *r, uint32_t lo, uint32_t hi)
{
    const uint32_t n = hi - lo + 1;
    if (n == 0) return vkt_rng_u32(r);
    uint64_t m = (uint64_t)vkt_rng_u32(r) * n;
    if ((uint32_t)m < n) {
        const uint32_t reject = (0u - n) % n;
        while ((uint32_t)m < reject) m = (uint64_t)vkt_rng_u32(r) * n;
    }
    return lo + (uint32_t)(m >> 32);
}

float vkt_rng_unit(vkt_rng *r)
{
    return (float)(vkt_rng_u32(r) >> 8) * 0x1p-24f;
}

float vkt_rng_uniform(vkt_rng *r, float lo, float hi)
{
    return lo + (hi - lo) * vkt_rng_unit(r);
}

double vkt_rng_normal(vkt_rng *r)
{
    const double u = ((double)vkt_rng_u32(r) + 1.0) * 0x1p-32; /* (0, 1]: log is finite */
    const double v = (double)vkt_rng_u32(r) * 0x1p-32;
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925286766559 * v);
}
