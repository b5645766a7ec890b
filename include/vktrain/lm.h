/* vktrain/lm.h - language models of GGUF files: their weights on devices, and their network.
 *
 * The weights stay as they are in the file (quantized blocks, or floats). They are frozen: they have no gradient. What
 * a fine-tuning run trains are the adapters of vkt_builder_set_lora (nn.h).
 *
 *   static vkt_tensor forward(vkt_builder *b, vkt_tensor ids, void *lm)
 *   {
 *       vkt_builder_set_lora(b, &(vkt_lora_params){ .targets = targets, .n_targets = 2, .rank = 8, .alpha = 16 });
 *       return vkt_lm_hidden(b, lm, ids, NULL);
 *   }
 *
 * The letters of shapes: B samples, T tokens of each, D = vkt_gguf_model.width, V = vkt_gguf_model.vocabulary.
 *
 * Layers have the names of Hugging Face's transformers, for instance "model.layers.0.self_attn.q_proj" or
 * "model.layers.0.mlp.down_proj". llama.cpp's converter permutes the rows of query and key of the architecture llama.
 * vkt_lm_create puts them back in the order of transformers, so the adapters are those of PEFT. */
#ifndef VKTRAIN_LM_H
#define VKTRAIN_LM_H

#include "vktrain/gguf_model.h"
#include "vktrain/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The weights of a model on one or several devices. */
typedef struct vkt_lm vkt_lm;

/* Reads the model's description (vkt_gguf_read_model) and copies the tensors to arrays of `ctx`, as the bytes are, in
 * pieces: host memory does not hold the model a second time. `g` may be destroyed afterwards. Programs read a tensor
 * that is larger than one binding in ranges. Errors of vkt_gguf_read_model. VKT_E_UNSUPPORTED: rows of quantized or
 * 16-bit numbers whose length is no multiple of 4, YaRN for a part of a head, or a tensor of 2^34 bytes or more.
 * VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY: the weights do not fit; the message has the bytes that all of them need.
 * VKT_E_NOMEM, VKT_E_ARG. After an error *out = NULL. Owner: the caller. One thread at a time per context. */
VKT_API vkt_result vkt_lm_create(vkt_ctx *ctx, const vkt_gguf *g, vkt_lm **out);
/* Copies the weights to a further context, for vkt_trainer_params.more_devices or for a generator. Programs of a
 * context use the weights in that context; the functions below work for all of them. The bytes come from the context of
 * vkt_lm_create, so the file is not needed. A program of a context that was not added is VKT_E_ARG
 * (vkt_program_create). VKT_E_ARG: a NULL, or the context has the weights already. VKT_E_MEMORY_CAP,
 * VKT_E_DEVICE_MEMORY: they do not fit; the message has the bytes. VKT_E_NOMEM. After an error, m is as before. No
 * other thread may use m or a program of it at the same time. */
VKT_API vkt_result vkt_lm_add_context(vkt_lm *m, vkt_ctx *ctx);
/* Call it after the programs that use m are destroyed, and before all of its contexts are. */
VKT_API void vkt_lm_destroy(vkt_lm **m);
/* Returns the description; NULL if m is NULL. It is valid as long as m. Its rope_divisors is NULL: the model has them.
 */
VKT_API const vkt_gguf_model *vkt_lm_model(const vkt_lm *m);
VKT_API uint64_t vkt_lm_bytes(const vkt_lm *m); /* of all weights, in each context */

/* The keys and values of the tokens before those that a program computes, for generating text (vktrain/generate.h). */
typedef struct vkt_lm_cache {
    vkt_array *const *keys; /* (vkt_gguf_model.blocks): f32 (B,kv_heads,context,head_width) each. The program writes the
                             * keys of its tokens to rows past .. past + T - 1 */
    vkt_array *const *values; /* likewise */
    uint32_t context;         /* rows of a head in these arrays, at most the model's context */
    vkt_tensor past;          /* u32 (1): tokens that the cache has before a run */
} vkt_lm_cache;
/* The options of the network. Zero is the default. */
typedef struct vkt_lm_params {
    bool recompute; /* keep only what enters each transformer block, and compute the block again for its gradients */
    const vkt_lm_cache
        *cache; /* the ids follow tokens that are in this cache: token t has the position past + t, and sees
                 * all tokens before it. No gradient passes through such a network. NULL: no cache */
} vkt_lm_params;
/* Computes the network up to and including its last norm: ids (B,T) u32 -> (B,T,D), ROWS. Token t of a sample sees the
 * tokens 0 .. t of the same sample, at the positions 0 .. T - 1. p may be NULL. The arrays of m become external values
 * of the builder's graph (vkt_external_array). VKT_E_SHAPE: ids are not (B,T), or T is larger than the model's
 * context. */
VKT_API vkt_tensor vkt_lm_hidden(vkt_builder *b, const vkt_lm *m, vkt_tensor ids, const vkt_lm_params *p);
/* Computes the logits of the next token: hidden (..,D) -> (..,V), ROWS. */
VKT_API vkt_tensor vkt_lm_logits(vkt_builder *b, const vkt_lm *m, vkt_tensor hidden);
/* Computes the mean cross-entropy, in nats, over the labels that count: hidden (B,T,D), labels (B,T) u32 -> scalar. The
 * label of a token is the id of the token after it. UINT32_MAX: it does not count. If none counts, the loss is NaN. */
VKT_API vkt_tensor vkt_lm_loss(vkt_builder *b, const vkt_lm *m, vkt_tensor hidden, vkt_tensor labels);

#ifdef __cplusplus
}
#endif
#endif
