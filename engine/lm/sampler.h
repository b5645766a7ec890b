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
    double *weight;  /* by id */
    uint32_t *heap;  /* ids that are not in `order` yet */
    uint32_t *order; /* the first ids of the order */
} vkt_sampler;

/* Makes the lists of s; its other members are set already. The caller calls vkt_sampler_release in any case. */
vkt_result vkt_sampler_init(vkt_sampler *s);
void vkt_sampler_release(vkt_sampler *s);
/* Chooses token number `draw` by n logits. VKT_E_NAN: see vkt_generator_next. */
vkt_result vkt_sampler_choose(vkt_sampler *s, const float *logits, uint32_t draw, uint32_t *id);

#endif
