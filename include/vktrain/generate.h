/* vktrain/generate.h - text by a language model: token by token, with a cache of keys and values on the device.
 *
 *     vkt_generator *g;
 *     vkt_generator_create(ctx, lm, &(vkt_generator_params){ .temperature = 0.8f, .top_p = 0.95f }, &g);
 *     vkt_generator_feed(g, prompt.ids, prompt.n);
 *     for (uint32_t id = 0; vkt_generator_next(g, &id) == VKT_OK && id != end_id;) print(id);
 *     vkt_generator_destroy(&g);
 *
 * The ids are those of vktrain/tokenizer.h. All programs are recorded when the generator is made: one for `chunk`
 * tokens and one for a single token. The number of tokens in the cache is a number on the device, so neither is ever
 * recorded again.
 *
 * How the next token is chosen. The filters and their order are those of Hugging Face's transformers (temperature, then
 * top-k, then top-p). Numbers are double. Tokens are ordered by falling logit, and equal logits by rising id.
 *   1. temperature: token i has the weight w_i = exp((logit_i - largest logit) / temperature). Temperature 0 takes the
 *      first token of the order, and nothing else applies.
 *   2. top_k: only the first k tokens of the order remain. (transformers also keeps tokens whose logit equals the last
 *      one's. Here there are never more than k.)
 *   3. top_p: of these, a token remains if the weights of the tokens in front of it are together less than p times the
 *      weights of all. So the first token always remains, and the tokens that remain have together at least p.
 *   4. The token is the first one of the order at which the sum of the remaining weights, from the first token on, is
 *      larger than u times their total. u is uniform in [0,1): the top 53 bits of words 0 and 1 of Philox4x32-10. Its
 *      key is `seed`. Its counter is (number of tokens that were drawn since the reset, 0, 0, 9).
 * So the ids depend on the seed, the prompt, the model and the device's bits, and on nothing else.
 *
 * Precision: everything on the device is float32, except the weights. With a cache, sums have another order than in
 * vkt_lm_hidden without one. docs/finetune.md says how far the logits differ.
 *
 * Threads: one thread at a time per generator, and the rules of its context. Several generators may use one vkt_lm. */
#ifndef VKTRAIN_GENERATE_H
#define VKTRAIN_GENERATE_H

#include "vktrain/lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model, its adapters, a cache, and the state of the random numbers. */
typedef struct vkt_generator vkt_generator;

/* The options of a generator. Zero is the default. */
typedef struct vkt_generator_params {
    vkt_store *store; /* has the adapters, for instance a trainer's store. It must outlive the generator, which always
                       * reads the adapters as they are. NULL: no adapters */
    const vkt_lora_params *lora; /* the adapters that the store has; dropout is not used. NULL: none. Copied */
    uint32_t context;  /* C, the most tokens of prompt and answer together, at most the model's; 0: the model's, but at
                        * most 2048. The cache has 8 C kv_heads head_width bytes for each block of the model */
    uint32_t chunk;    /* tokens of a prompt that are computed at once; 0: 64. If it is larger than C, C of them */
    float temperature; /* divides the logits; 0: always the most probable token */
    uint32_t top_k;    /* only the k most probable tokens; 0: all */
    float top_p;       /* only the most probable tokens that have this probability together; 0 or 1: all */
    uint64_t seed;     /* of the random numbers */
} vkt_generator_params;

/* Makes a generator with an empty cache. `params` may be NULL. VKT_E_ARG: a NULL, adapters without a store or a store
 * without adapters, or an option out of range. VKT_E_NOT_FOUND: the store lacks an adapter. VKT_E_SHAPE: heads of the
 * model that vkt_attention_cached does not take. VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY, VKT_E_NOMEM, VKT_E_UNSUPPORTED.
 * After an error *out = NULL. `m`, the store and ctx must outlive the generator. Owner: the caller. */
VKT_API vkt_result vkt_generator_create(vkt_ctx *ctx, const vkt_lm *m, const vkt_generator_params *params,
                                        vkt_generator **out);
VKT_API void vkt_generator_destroy(vkt_generator **g);
/* Empties the cache, and starts the random numbers and the counts again: the same calls then give the same ids. */
VKT_API vkt_result vkt_generator_reset(vkt_generator *g);
/* Appends n tokens to the text so far, for instance a prompt, or the next message of a chat. VKT_E_ARG: a NULL, n is 0,
 * or an id is not below the model's vocabulary. VKT_E_SHAPE: the text would have more than C tokens; nothing has
 * changed then. Errors of vkt_program_run: then reset the generator. */
VKT_API vkt_result vkt_generator_feed(vkt_generator *g, const uint32_t *ids, size_t n);
/* Chooses the next token and appends it to the text. VKT_E_STATE: the text is empty. VKT_E_SHAPE: the text has C tokens
 * already. VKT_E_NAN: a logit is NaN or +infinity, or all are -infinity. It runs a program: errors as for
 * vkt_generator_feed. */
VKT_API vkt_result vkt_generator_next(vkt_generator *g, uint32_t *id);
/* Copies the logits of the next token; n is the model's vocabulary. VKT_E_STATE: the text is empty. VKT_E_ARG. After
 * vkt_generator_next it runs a program: errors as for vkt_generator_feed. */
VKT_API vkt_result vkt_generator_logits(vkt_generator *g, float *logits, size_t n);
VKT_API uint32_t vkt_generator_length(const vkt_generator *g);  /* tokens of the text; 0 if g is NULL */
VKT_API uint32_t vkt_generator_context(const vkt_generator *g); /* C; 0 if g is NULL */
VKT_API uint64_t vkt_generator_bytes(const vkt_generator *g);   /* of the cache on the device; 0 if g is NULL */

/* The counts since the generator was made or reset. A rate is tokens / seconds. */
typedef struct vkt_generator_stats {
    uint64_t fed;                      /* tokens that vkt_generator_feed got */
    uint64_t made;                     /* tokens that vkt_generator_next returned */
    double feed_seconds, make_seconds; /* time in these two functions. The last token of an answer is computed only when
                                        * the next call needs it */
} vkt_generator_stats;
VKT_API vkt_generator_stats vkt_generator_get_stats(const vkt_generator *g); /* zeros if g is NULL */

#ifdef __cplusplus
}
#endif
#endif
