/* ops/product/gemm.h - matrix products as data, for every op that computes one (matmul, linear). The functions emit
 * dispatches and add no nodes.
 *
 * M, N, K and the leading dimensions may have any value. Either operand may be transposed. gemm_choose.c chooses a
 * variant. With tiles in registers (gemm_tile.comp), an operand is read from its own memory, or it is packed into
 * panels in scratch first (gemm_pack.comp). With tiles in shared memory (gemm_shared.comp), both operands are read from
 * their own memory. If a product exceeds a binding or the device's longest loop, it is split into blocks of batches,
 * rows and k. Blocks of k accumulate in ascending order in f32, so the sum stays deterministic. */
#ifndef VKT_GEMM_H
#define VKT_GEMM_H

#include "ops/ops.h"

/* A matrix in a tensor of f32: rows of `ld` elements. If it is stored in 16 bits, it has whole vec4s, and `ld` and
 * `batch` are multiples of 4; if it is C, it has no gaps. In an operand of a product, x is m or n. x_outer: the rows of
 * the matrix run along x (A of an untransposed product, B of a transposed one), else along k. */
typedef struct vkt_gemm_matrix {
    vkt_tensor t;
    bool x_outer;
    uint32_t ld;
    uint64_t batch; /* elements from one batch to the next; 0: one matrix for all of them */
} vkt_gemm_matrix;

/* C[b] (M,N) = A[b] (M,K) B[b] (K,N) + bias[n]. C's x_outer is not used: its rows go along m. */
typedef struct vkt_gemm {
    vkt_gemm_matrix a, b, c;
    vkt_tensor bias; /* f32 (N), or null */
    uint32_t m, n, k, batches;
} vkt_gemm;

/* Emits the product. Sets VKT_E_UNSUPPORTED in e if one row of four does not fit into a binding. */
void vkt_gemm_emit(vkt_emit *e, const vkt_gemm *g);

/* Consecutive arrays of n f32. They are added in this order. */
typedef struct vkt_gemm_sum {
    vkt_bind part, c;
    vkt_bind bias; /* {0}: none */
    uint32_t n, columns, slices, c_base;
    bool accumulate; /* adds to c, which is f32 */
} vkt_gemm_sum;

/* Computes c[c_base + i] (+)= the sum over slices of part[s][i], + bias[i % columns]: shaders/product/gemm_sum.comp. If
 * c is stored in 16 bits, it has whole vec4s. */
void vkt_gemm_sum_emit(vkt_emit *e, const vkt_gemm_sum *sum);

#endif
