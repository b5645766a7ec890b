/* lora/perplexity.h - the perplexity of a text under a model. */
#ifndef LORA_PERPLEXITY_H
#define LORA_PERPLEXITY_H

#include "lora/model.h"

/* Computes exp of the mean negative log-likelihood of a file's tokens: tokens without special ones, in consecutive
 * windows of m->context tokens (the last one may be shorter), each from an empty context, the first token of each
 * window left out. `store` has the adapters; NULL: none. A signal ends it with VKT_OK and NaN. */
vkt_result perplexity_of(const session *s, model *m, vkt_store *store, const char *path, double *perplexity,
                         uint64_t *tokens);

#endif
