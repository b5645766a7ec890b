/* lm/lm.h - the struct of a language model on a device. */
#ifndef VKT_LM_H
#define VKT_LM_H

#include "base/base.h"
#include "vktrain/lm.h"

/* A tensor on the device. */
typedef struct vkt_lm_tensor {
    /* The array of a vector is f32 (columns). The array of a matrix with format 0 is f32 (rows,columns). The array of
     * any other matrix is u32 (N): N words that contain the matrix in the format of the file. The model also owns the
     * copies of the array in other contexts (vkt_array_copy). */
    vkt_array *array;
    vkt_quant format; /* 0: f32 */
    uint32_t rows;    /* 0: a vector */
    uint32_t columns;
} vkt_lm_tensor;

/* The tensors of a transformer block. */
typedef struct vkt_lm_block {
    vkt_lm_tensor attn_norm, q, k, v, o, ffn_norm, gate, up, down;
    vkt_lm_tensor q_bias, k_bias, v_bias; /* qwen2 */
    vkt_lm_tensor q_norm, k_norm;         /* qwen3 */
} vkt_lm_block;

struct vkt_lm {
    vkt_ctx *ctx;
    vkt_host host;
    vkt_gguf_model model;                  /* does not refer to the file: `name` is a copy, rope_divisors is NULL */
    char *name;                            /* model.name */
    vkt_lm_tensor embedding, norm, output; /* output.array is NULL if the model is tied */
    vkt_lm_block *blocks;                  /* model.blocks elements */
    float *rope_factors;                   /* divisors of the frequencies: model.rope_width / 2 numbers; NULL: none */
    float attention_scale;                 /* factor of the scores */
    uint64_t bytes;                        /* of all arrays in one context */
};

/* A GGUF file may store the rows of a query or key matrix in another order than the library transformers. This function
 * converts the index `row` in transformers to the index of the same row in the file. With the architecture llama, row i
 * of a head in transformers is row 2 i of the head in the file, and row i + rope_width / 2 is row 2 i + 1, for
 * i < rope_width / 2. */
uint32_t vkt_lm_source_row(const vkt_gguf_model *m, uint32_t row);
/* Computes m->rope_factors and m->attention_scale. */
vkt_result vkt_lm_rope(vkt_lm *m, const vkt_gguf *g, const vkt_gguf_model *model);

#endif
