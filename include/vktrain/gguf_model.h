/* vktrain/gguf_model.h - the description of a language model in a GGUF file: sizes, heads, rotary embedding, tensors.
 *
 * Architectures: llama (Llama, SmolLM2, TinyLlama), qwen2 and qwen3. The metadata keys are those of ggml's
 * docs/gguf.md. The names of tensors, and the defaults of absent keys, are those of
 * https://github.com/ggml-org/llama.cpp. */
#ifndef VKTRAIN_GGUF_MODEL_H
#define VKTRAIN_GGUF_MODEL_H

#include "vktrain/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The architectures that vkt_gguf_read_model reads. */
typedef enum vkt_gguf_architecture {
    VKT_GGUF_LLAMA = 1, /* no biases in attention */
    VKT_GGUF_QWEN2,     /* biases of query, key and value */
    VKT_GGUF_QWEN3      /* RMS norms of each head's query and key */
} vkt_gguf_architecture;

/* How a model's rotary embedding is stretched to a longer context. */
typedef enum vkt_rope_scaling {
    VKT_ROPE_PLAIN = 0, /* the embedding is not stretched */
    VKT_ROPE_LINEAR,    /* positions are divided by rope_factor */
    VKT_ROPE_YARN       /* YaRN (arXiv 2309.00071) with rope_factor and rope_context */
} vkt_rope_scaling;

/* The description of a model. Pointers are valid as long as the vkt_gguf. */
typedef struct vkt_gguf_model {
    vkt_gguf_architecture architecture; /* "general.architecture" */
    const char *name;                   /* "general.name"; "" if it is absent */
    uint32_t blocks;                    /* number of transformer blocks */
    uint32_t context;                   /* length of the longest text that the model supports, in tokens */
    uint32_t width;                     /* length of a token's embedding */
    uint32_t feed_forward;              /* width of the hidden layer of a block's feed-forward network */
    uint32_t heads;                     /* heads of queries */
    uint32_t kv_heads;                  /* heads of keys and values; divides `heads`; default: `heads` */
    uint32_t head_width;                /* length of a head's query, key and value vectors; default: width / heads */
    uint32_t vocabulary;                /* number of tokens */
    double rms_epsilon;                 /* the epsilon of all RMS norms */
    double rope_base;                   /* default: 10000 */
    uint32_t rope_width; /* an even number: the first rope_width numbers of a head are rotated. Default: head_width */
    bool rope_halves;    /* true: numbers i and i + rope_width / 2 of a head are rotated together (qwen2, qwen3).
                          * false: numbers 2i and 2i + 1 are rotated together (llama, because converters to GGUF permute
                          * the rows of the weights of query and key) */
    vkt_rope_scaling scaling; /* "rope.scaling.type"; default: "linear". VKT_ROPE_PLAIN: the type is "none", or it is
                               * "linear" and rope_factor is 1 */
    double rope_factor;       /* the context is stretched to this multiple of its length; 1 for VKT_ROPE_PLAIN. The key
                               * is "rope.scaling.factor"; default: "rope.scale_linear" (in older files), or else 1. A
                               * value of 0 means 1 */
    uint32_t rope_context;    /* length of the context before it was stretched, in tokens; default: `context` */
    /* "rope_freqs.weight" (Llama 3.1): rope_width / 2 numbers. The frequency of pair j of a head's numbers is divided
     * by number j of this tensor. NULL: the file has no such tensor */
    const vkt_gguf_tensor *rope_divisors;
    bool tied; /* the output layer has the weights of the embedding: there is no "output.weight" */
} vkt_gguf_model;

/* Reads the description of a model, and checks it. Sizes must fit together. Every tensor of the architecture must
 * exist, with its shape and with a type that vkt_gguf_read_f32 reads. There must be no other tensors.
 *
 * VKT_E_UNSUPPORTED: the library does not support the model; the message gives the reason. Reasons are another
 * architecture, a mixture of experts, attention keys and values of different widths, a number of heads that differs
 * between transformer blocks, another scaling of the rotary embedding, a metadata key that changes YaRN's constants
 * ("rope.scaling.yarn_beta_fast", for instance), a file with only a part of a model, a tensor of a type that is not
 * read, and a tensor that this architecture does not have (a bias, for instance). VKT_E_NOT_FOUND: a metadata key or a
 * tensor is missing. VKT_E_FORMAT: a value of the wrong kind, or sizes that do not fit. VKT_E_SHAPE: a tensor of
 * another shape. After an error *out is zeroed. */
VKT_API vkt_result vkt_gguf_read_model(const vkt_gguf *g, vkt_gguf_model *out);

#ifdef __cplusplus
}
#endif
#endif
