/* vktrain/generate.h - text by a language model: token by token, with a cache of keys and values on the device.
 *
 *     vkt_generator *g;
 *     vkt_generator_create(ctx, lm, &(vkt_generator_params){ .temperature = 0.8f, .top_p = 0.95f }, &g);
 *     vkt_generator_feed(g, prompt.ids, prompt.n);
 *     for (uint32_t id = 0; vkt_generator_next(g, &id) == VKT_OK && id != end_id;) print(id);
 *     vkt_generator_destroy(&g);
 *
 * The ids are those of vktrain/tokenizer.h. When the generator is made, two programs are recorded: one for `chunk`
 * tokens and one for a single token. The number of tokens in the cache is an input of both programs, so these two
 * programs serve texts of every length up to `context`.
 *
 * The next token is chosen in four steps. The filters, and the sequence in which they are applied, are those of
 * Hugging Face's transformers: temperature, then top-k, then top-p. All arithmetic is in float64. The tokens are sorted
 * by falling logit, and tokens with equal logits by rising id. The steps call this "the order".
 *   1. temperature: token i has the weight w_i = exp((logit_i - largest logit) / temperature). If the temperature is 0,
 *      the first token of the order is chosen, and steps 2 to 4 do not apply.
 *   2. top_k, if it is not 0: the first top_k tokens of the order remain. (In transformers, later tokens also remain if
 *      their logit equals the logit of the last of these tokens.)
 *   3. top_p, if it is neither 0 nor 1: let S be the sum of the weights of the tokens that remain after step 2. Token t
 *      of these tokens also remains after step 3 if the weights of all tokens before t in the order add up to less than
 *      top_p * S. So the first token always remains, and the remaining weights add up to at least top_p * S.
 *   4. Let T be the sum of the weights of the tokens that remain after step 3. These weights are added up in the order,
 *      until the sum exceeds u * T. The token whose weight was added last is chosen. u is uniform in [0,1): the top 53
 *      bits of a 64-bit number, divided by 2^53. The high 32 bits of this number are word 0 of Philox4x32-10, and the
 *      low 32 bits are word 1. Philox's key is `seed`, and its counter is (n, 0, 0, 9). n is the number of tokens that
 *      vkt_generator_next has returned since the generator was made or reset.
 * So the ids depend on the parameters, the prompt, the model, the adapters and the device's rounding errors alone.
 *
 * Precision: everything on the device is float32, except the weights. With a cache, the terms of sums are added in
 * another order than in vkt_lm_hidden without a cache. docs/finetune.md says how far the logits differ.
 *
 * Threads: calls on one generator must not overlap, and calls on one context must not overlap. Several generators may
 * use one vkt_lm. */
#ifndef VKTRAIN_GENERATE_H
#define VKTRAIN_GENERATE_H

#include "vktrain/lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model, its adapters, a cache, and the state of the random numbers. */
typedef struct vkt_generator vkt_generator;

/* The options of a generator. A member that is zero selects its default. */
typedef struct vkt_generator_params {
    vkt_store *store; /* has the adapters, for instance a trainer's store. The store must outlive the generator. Each
                       * run reads the current adapters. NULL: no adapters */
    const vkt_lora_params *lora; /* describes the adapters in the store; dropout is not used. NULL: no adapters. The
                                  * struct is copied */
    uint32_t context;  /* C, the largest number of tokens of prompt and answer together, at most the context of the
                        * model. 0: the context of the model, but at most 2048. For each transformer block, the cache
                        * has 8 * C * kv_heads * head_width bytes (vkt_gguf_model) */
    uint32_t chunk;    /* largest number of tokens of a prompt that are computed at once. 0 means 64. A number above C
                        * means C */
    float temperature; /* divides the logits; 0: the most probable token is always chosen */
    uint32_t top_k;    /* only the k most probable tokens may be chosen; 0: all tokens */
    float top_p;       /* only the most probable tokens may be chosen: see step 3 above. 0 or 1: no limit */
    uint64_t seed;     /* seed of the random numbers */
} vkt_generator_params;

/* Makes a generator with an empty cache. `params` may be NULL. VKT_E_ARG: a NULL; adapters without a store, or a store
 * without adapters; an option out of range; or ctx does not have the weights of m (vkt_lm_add_context).
 * VKT_E_NOT_FOUND: the store lacks an adapter. VKT_E_SHAPE: vkt_attention_cached cannot compute the heads of the model.
 * VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY, VKT_E_NOMEM, VKT_E_UNSUPPORTED. After an error *out = NULL. `m`, the store and
 * ctx must outlive the generator. Owner: the caller. */
VKT_API vkt_result vkt_generator_create(vkt_ctx *ctx, const vkt_lm *m, const vkt_generator_params *params,
                                        vkt_generator **out);
VKT_API void vkt_generator_destroy(vkt_generator **g);
/* Empties the cache, and starts the random numbers and the counts of vkt_generator_stats again. After a reset, the
 * same calls with the same adapters give the same ids. */
VKT_API vkt_result vkt_generator_reset(vkt_generator *g);
/* Appends n tokens to the text so far, for instance a prompt, or the next message of a chat. VKT_E_ARG: a NULL, n is 0,
 * or an id is not below the model's vocabulary. VKT_E_SHAPE: the text would have more than C tokens. After these
 * two errors nothing has changed. After an error of vkt_program_run, reset the generator. */
VKT_API vkt_result vkt_generator_feed(vkt_generator *g, const uint32_t *ids, size_t n);
/* Chooses the next token and appends it to the text. VKT_E_STATE: the text is empty. VKT_E_SHAPE: the text has C tokens
 * already. VKT_E_NAN: a logit is NaN or +infinity, or all logits are -infinity. If the last token of the text is from
 * this function and is not in the cache yet, the call runs a program. After an error of vkt_program_run, reset the
 * generator. */
VKT_API vkt_result vkt_generator_next(vkt_generator *g, uint32_t *id);
/* Copies the logits of the next token. VKT_E_STATE: the text is empty. VKT_E_ARG: a NULL, or n is not the size of the
 * model's vocabulary. If the last token of the text is from vkt_generator_next and is not in the cache yet, the call
 * runs a program. After an error of vkt_program_run, reset the generator. */
VKT_API vkt_result vkt_generator_logits(vkt_generator *g, float *logits, size_t n);
VKT_API uint32_t vkt_generator_length(const vkt_generator *g);  /* tokens of the text; 0 if g is NULL */
VKT_API uint32_t vkt_generator_context(const vkt_generator *g); /* C; 0 if g is NULL */
VKT_API uint64_t vkt_generator_bytes(const vkt_generator *g);   /* bytes of the cache; 0 if g is NULL */

/* The counts since the generator was made or reset. A rate is tokens / seconds. */
typedef struct vkt_generator_stats {
    uint64_t fed;                      /* tokens of the calls of vkt_generator_feed that succeeded */
    uint64_t made;                     /* tokens that vkt_generator_next returned */
    double feed_seconds, make_seconds; /* feed_seconds: time in vkt_generator_feed. make_seconds: time in the calls of
                                        * vkt_generator_next that returned a token. The token is not in the cache yet.
                                        * A later call computes this token's part of the cache, and the time counts
                                        * for the later call. Time in vkt_generator_logits counts for neither member */
} vkt_generator_stats;
VKT_API vkt_generator_stats vkt_generator_get_stats(const vkt_generator *g); /* zeros if g is NULL */

#ifdef __cplusplus
}
#endif
#endif
