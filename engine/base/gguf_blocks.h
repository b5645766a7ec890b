/* base/gguf_blocks.h - types of GGUF tensors (vktrain/gguf.h), and the conversion of their blocks to float. */
#ifndef VKT_GGUF_BLOCKS_H
#define VKT_GGUF_BLOCKS_H

#include "base/base.h"
#include "vktrain/gguf.h"

/* The types of GGUF tensors, from ggml's docs/gguf.md and src/ggml-common.h: name, number that stands for the type in
 * a file, elements of a block, bytes of a block, and whether vkt_gguf_dequantize reads the type. */
#define VKT_GGUF_TYPES(X)          \
    X(F32, 0, 1, 4, true)          \
    X(F16, 1, 1, 2, true)          \
    X(Q4_0, 2, 32, 18, true)       \
    X(Q4_1, 3, 32, 20, true)       \
    X(Q5_0, 6, 32, 22, false)      \
    X(Q5_1, 7, 32, 24, false)      \
    X(Q8_0, 8, 32, 34, true)       \
    X(Q8_1, 9, 32, 40, false)      \
    X(Q2_K, 10, 256, 84, false)    \
    X(Q3_K, 11, 256, 110, false)   \
    X(Q4_K, 12, 256, 144, true)    \
    X(Q5_K, 13, 256, 176, true)    \
    X(Q6_K, 14, 256, 210, true)    \
    X(Q8_K, 15, 256, 292, false)   \
    X(IQ2_XXS, 16, 256, 66, false) \
    X(IQ2_XS, 17, 256, 74, false)  \
    X(IQ3_XXS, 18, 256, 98, false) \
    X(IQ1_S, 19, 256, 50, false)   \
    X(IQ4_NL, 20, 32, 18, false)   \
    X(IQ3_S, 21, 256, 110, false)  \
    X(IQ2_S, 22, 256, 82, false)   \
    X(IQ4_XS, 23, 256, 136, false) \
    X(I8, 24, 1, 1, false)         \
    X(I16, 25, 1, 2, false)        \
    X(I32, 26, 1, 4, false)        \
    X(I64, 27, 1, 8, false)        \
    X(F64, 28, 1, 8, false)        \
    X(IQ1_M, 29, 256, 56, false)   \
    X(BF16, 30, 1, 2, true)        \
    X(TQ1_0, 34, 256, 54, false)   \
    X(TQ2_0, 35, 256, 66, false)   \
    X(MXFP4, 39, 32, 17, false)    \
    X(NVFP4, 40, 64, 36, false)    \
    X(Q1_0, 41, 128, 18, false)

/* Does the same as vkt_gguf_dequantize, without checks. The type must be one that can be read. */
void vkt_gguf_blocks_to_f32(vkt_gguf_type type, const void *blocks, size_t n_blocks, float *out);

#endif
