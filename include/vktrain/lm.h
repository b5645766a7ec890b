/* vktrain/lm.h - language models of GGUF files: their weights on devices, and their network.
 *
 * Matrices keep the format of the file (quantized blocks, or floats). Vectors become f32. All weights of the file are
 * frozen: they have no gradient. A fine-tuning run trains the adapters of vkt_builder_set_lora (nn.h).
 *
 *   static vkt_tensor forward(vkt_builder *b, vkt_tensor ids, void *lm)
 *   {
 *       vkt_builder_set_lora(b, &(vkt_lora_params){ .targets = targets, .n_targets = 2, .rank = 8, .alpha = 16 });
 *       return vkt_lm_hidden(b, lm, ids, NULL);
 *   }
 *
 * The letters of shapes: B samples, T tokens of each sample, D = vkt_gguf_model.width, V = vkt_gguf_model.vocabulary.
 *
 * Layers have the names of Hugging Face's transformers, for instance "model.layers.0.self_attn.q_proj" or
 * "model.layers.0.mlp.down_proj". For the architecture llama, llama.cpp's converter permutes the rows of the weights of
 * query and key. vkt_lm_create restores the order of these rows in transformers, so that adapters can be exchanged with
 * PEFT. */
#ifndef VKTRAIN_LM_H
#define VKTRAIN_LM_H

#include "vktrain/gguf_model.h"
#include "vktrain/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The weights of a model on one or several devices. */
typedef struct vkt_lm vkt_lm;

/* Reads the model's description (vkt_gguf_read_model), and copies the tensors to arrays of `ctx` in pieces: host memory
 * does not hold the model a second time. `g` may be destroyed afterwards. If a tensor is larger than one binding,
 * programs read it in ranges. Errors of vkt_gguf_read_model. VKT_E_UNSUPPORTED: rows of quantized or 16-bit numbers
 * whose length is no multiple of 4; YaRN that rotates only a part of each head; or a matrix of 2^34 bytes or more.
 * VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY: the weights do not fit; the message has the bytes that all weights need.
 * VKT_E_NOMEM, VKT_E_ARG. After an error *out = NULL. Owner: the caller. One thread at a time per context. */
VKT_API vkt_result vkt_lm_create(vkt_ctx *ctx, const vkt_gguf *g, vkt_lm **out);
/* Copies the weights to a further context, for vkt_trainer_params.more_devices or for a generator. A program uses the
 * copy in its own context. So a graph that uses m can be compiled for each of these contexts. The bytes come from the
 * context of vkt_lm_create, so the file is not needed. If the context of a program does not have the weights,
 * vkt_program_create returns VKT_E_ARG. VKT_E_ARG: an argument is NULL, or the context has the weights already.
 * VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY: the weights do not fit; the message has the bytes that all weights need.
 * VKT_E_NOMEM. After an error, m is as before. During the call no other thread may use m, or a program with weights of
 * m. */
VKT_API vkt_result vkt_lm_add_context(vkt_lm *m, vkt_ctx *ctx);
/* Call this function after the programs that use m are destroyed, and before any of m's contexts is destroyed. */
VKT_API void vkt_lm_destroy(vkt_lm **m);
/* Returns the description; NULL if m is NULL. The description is valid as long as m. Its member rope_divisors is always
 * NULL, because the divisors are in the GGUF file, which may be closed by now. vkt_lm_create has read the divisors. */
VKT_API const vkt_gguf_model *vkt_lm_model(const vkt_lm *m);
VKT_API uint64_t vkt_lm_bytes(const vkt_lm *m); /* bytes of all weights in one context */

/* A cache for generating text (vktrain/generate.h): keys and values of the tokens that earlier runs of a program have
 * computed. */
typedef struct vkt_lm_cache {
    /* One array for each transformer block (vkt_gguf_model.blocks), f32 (B,kv_heads,context,head_width). A run writes
     * the keys of its T tokens to T rows of each head, from row `past` on. */
    vkt_array *const *keys;
    vkt_array *const *values; /* one array for each block, of the same shape as in `keys`. A run writes the values of
                               * its tokens to the same rows as the keys */
    uint32_t context;         /* rows of a head in these arrays, at most the model's context */
    vkt_tensor past;          /* u32 (1): number of tokens in the cache before the run */
} vkt_lm_cache;
/* The options of the network. A member that is 0 or NULL selects the default. */
typedef struct vkt_lm_params {
    bool recompute; /* keep only the input of each transformer block, and compute the block again for its gradients */
    const vkt_lm_cache
        *cache; /* the ids follow the tokens in this cache. Token t of the ids has the position cache->past + t, and
                 * sees the tokens up to itself. No gradient passes through such a network. NULL: no cache */
} vkt_lm_params;
/* Computes the network up to and including its last norm: ids (B,T) u32 -> (B,T,D), ROWS. Without a cache, token t of a
 * sample has the position t, and sees the tokens 0 .. t of the same sample. p may be NULL. The arrays of m become
 * external values of the builder's graph (vkt_external_array). VKT_E_SHAPE: ids are not (B,T), or T is larger than the
 * model's context. */
VKT_API vkt_tensor vkt_lm_hidden(vkt_builder *b, const vkt_lm *m, vkt_tensor ids, const vkt_lm_params *p);
/* Computes the logits of the next token: hidden (..,D), ROWS -> (..,V), ROWS. */
VKT_API vkt_tensor vkt_lm_logits(vkt_builder *b, const vkt_lm *m, vkt_tensor hidden);
/* Computes the mean cross-entropy, in nats, over the labels that count: hidden (B,T,D), labels (B,T) u32 -> scalar. The
 * label of a token is the id of the token after it. A label of UINT32_MAX does not count. If no label counts, the loss
 * is NaN. */
VKT_API vkt_tensor vkt_lm_loss(vkt_builder *b, const vkt_lm *m, vkt_tensor hidden, vkt_tensor labels);

#ifdef __cplusplus
}
#endif
#endif
