/* train/metrics.c - see vktrain/metrics.h. */
#include "vktrain/metrics.h"

#include <math.h>

/* Whether a comes before b, which has a lower index. */
static bool is_larger(float a, float b)
{
    return isnan(a) ? !isnan(b) : a > b;
}

uint32_t vkt_top_k(const float *scores, uint32_t n, uint32_t k, uint32_t *top)
{
    uint32_t found = 0;
    for (uint32_t i = 0; scores && top && k && i < n; i++) {
        uint32_t at = found;
        while (at > 0 && is_larger(scores[i], scores[top[at - 1]])) at--;
        if (at == k) continue;
        if (found < k) found++;
        for (uint32_t j = found - 1; j > at; j--) top[j] = top[j - 1];
        top[at] = i;
    }
    return found;
}
