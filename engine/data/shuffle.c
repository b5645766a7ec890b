/* data/shuffle.c - the order in which an epoch reads its samples (vktrain/data.h). */
#include "base/philox.h"
#include "vktrain/data.h"

void vkt_order_identity(uint32_t *order, uint32_t n)
{
    if (!order) return;
    for (uint32_t i = 0; i < n; i++) order[i] = i;
}

void vkt_shuffle(uint32_t *order, uint32_t n, uint64_t seed, uint32_t epoch)
{
    if (!order) return;
    vkt_order_identity(order, n);
    vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_SHUFFLE, epoch, 0);
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t j = vkt_rng_range(&rng, 0, i - 1), last = order[i - 1];
        order[i - 1] = order[j];
        order[j] = last;
    }
}
