/* ops/product/gemm_shared.h - a product for GPUs, by tiles in shared memory. Its users, gemm_choose.c and
 * conv/winograd.c, pass blocks that fit into bindings. */
#ifndef VKT_GEMM_SHARED_H
#define VKT_GEMM_SHARED_H

#include "ops/product/blocks.h"
#include "ops/product/gemm.h"

/* A block of a product: m rows of C in each of `batches` batches, with all columns. Each element is a sum of k
 * products. For each matrix, the block has a binding. a_base, b_base and c_base are the indices of the block's first
 * elements in these bindings. */
typedef struct vkt_gemm_block {
    const vkt_gemm *g;
    uint32_t m, k, batches;
    vkt_bind a, b, c;
    uint32_t a_base, b_base, c_base;
    /* If B is quantized, b_base is an offset in bytes. If B is quantized and its rows run along k (g->b.x_outer), the
     * block begins at element b_first of each row; otherwise b_first is 0. */
    uint32_t b_first;
    vkt_tensor bias; /* {0}: no bias */
    bool accumulate; /* the product is added to the values in C */
} vkt_gemm_block;

/* Emits the product of the block. If `tiling` has several slices, the elements of C in all batches must be consecutive,
 * without gaps. */
void vkt_gemm_shared_emit(vkt_emit *e, const vkt_gemm_block *b, const vkt_blocks *tiling);

#endif
