/* lora/perplexity.h - the perplexity of a text under a model. */
#ifndef LORA_PERPLEXITY_H
#define LORA_PERPLEXITY_H

#include "lora/model.h"

/* Computes the perplexity of the text in a file: exp of the mean negative log-likelihood of its tokens. The tokenizer
 * adds no special tokens. The text is split into consecutive windows of m->context tokens; the last window may be
 * shorter. Each window starts with an empty context, so its first token does not count. *tokens is the number of tokens
 * that count. `store` has the adapters; NULL: none. After a signal, returns VKT_OK, and *perplexity is NaN. */
vkt_result perplexity_of(const session *s, model *m, vkt_store *store, const char *path, double *perplexity,
                         uint64_t *tokens);

#endif
