/* lm/sampler.h - chooses a token by its logits: see vktrain/generate.h. */
#ifndef VKT_SAMPLER_H
#define VKT_SAMPLER_H

#include "base/base.h"

typedef struct vkt_sampler {
    vkt_host host;
    uint32_t n; /* size of the vocabulary */
    double temperature, top_p;
    uint32_t top_k;
    uint64_t seed;
    double *weight;  /* weight[id]: the token's probability, not normalised */
    uint32_t *heap;  /* ids that are not in `order` yet */
    uint32_t *order; /* the ids that were removed from `heap`, by falling logit */
} vkt_sampler;

/* Allocates weight, heap and order; the caller has set the other members. The caller calls vkt_sampler_release after an
 * error, too. */
vkt_result vkt_sampler_init(vkt_sampler *s);
void vkt_sampler_release(vkt_sampler *s);
/* Chooses a token by the s->n logits. `draw` is the number of tokens chosen before; it selects the random number.
 * VKT_E_NAN: see vkt_generator_next. */
vkt_result vkt_sampler_choose(vkt_sampler *s, const float *logits, uint32_t draw, uint32_t *id);

#endif
