/* vktrain/lm.h - language models of GGUF files: their weights on a device, and their network.
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

/* The weights of a model on a device. */
typedef struct vkt_lm vkt_lm;

/* Reads the model's description (vkt_gguf_read_model) and copies the tensors to arrays of `ctx`, as the bytes are, in
 * pieces: host memory does not hold the model a second time. `g` may be destroyed afterwards. Errors of
 * vkt_gguf_read_model. VKT_E_UNSUPPORTED: a tensor is larger than one binding (vkt_array_max_bytes), or its rows are no
 * multiple of 4 numbers. VKT_E_MEMORY_CAP: the weights do not fit; the message has the bytes that they need.
 * VKT_E_DEVICE_MEMORY, VKT_E_NOMEM, VKT_E_ARG. After an error *out = NULL. Owner: the caller. One thread at a time per
 * context. */
VKT_API vkt_result vkt_lm_create(vkt_ctx *ctx, const vkt_gguf *g, vkt_lm **out);
VKT_API void vkt_lm_destroy(vkt_lm **m); /* call it after the programs that use it are destroyed */
/* Returns the description; NULL if m is NULL. It is valid as long as m. Its rope_divisors is NULL: m has the numbers. */
VKT_API const vkt_gguf_model *vkt_lm_model(const vkt_lm *m);
VKT_API uint64_t vkt_lm_bytes(const vkt_lm *m); /* of all weights on the device */

/* The options of the network. Zero is the default. */
typedef struct vkt_lm_params {
    bool recompute; /* keep only what enters each transformer block, and compute the block again for its gradients */
} vkt_lm_params;
/* Computes the network up to and including its last norm: ids (B,T) u32 -> (B,T,D), ROWS. Token t of a sample sees the
 * tokens 0 .. t of the same sample, at the positions 0 .. T - 1. p may be NULL. The arrays of m become external values
 * of the builder's graph (vkt_nn_array). VKT_E_SHAPE: ids are not (B,T), or T is larger than the model's
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
