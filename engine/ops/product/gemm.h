/* ops/product/gemm.h - a struct that describes a matrix product, and functions that emit its dispatches. Ops that
 * compute products use these functions, for instance matmul and linear. The functions add no nodes to the graph.
 *
 * M, N, K and `ld` may have any value, unless a matrix is stored in 16 bits (see vkt_gemm_matrix). Either operand may
 * be transposed. gemm_choose.c chooses a variant. With tiles in registers (gemm_tile.comp), an operand is read from its
 * own memory, or it is packed into panels in scratch first (gemm_pack.comp); quantized weights can be unpacked into
 * panels of B (dequantize.comp). A panel has the rows of A, or the columns of B, that a tile of C needs
 * (abi/gemm_tile.abi.h calls it a tile of A or B). With tiles in shared memory (gemm_shared.comp), both operands are
 * read from their own memory, and B may be quantized weights. If a product exceeds a binding or the device's longest
 * loop, it is split into blocks of batches, rows and k. Blocks of k accumulate in ascending order in f32, so the sum
 * stays deterministic. */
#ifndef VKT_GEMM_H
#define VKT_GEMM_H

#include "ops/ops.h"

/* Quantized weights as operand B, made by vkt_quantized_blocks. Products use quantized weights only through this
 * struct, so a library without quantized ops needs no code of quantized.c. */
typedef struct vkt_gemm_blocks {
    const vkt_quantized_attr *weights;
    uint32_t format, row_bytes;
    /* points to vkt_dequantize_panels_emit */
    void (*emit_panels)(vkt_emit *e, const vkt_quantized_attr *a, vkt_tensor words, uint32_t first, uint32_t n,
                        uint32_t width, vkt_tensor y);
} vkt_gemm_blocks;

/* A matrix in a tensor of the type f32. Its rows start `ld` elements apart. If the tensor is stored in 16 bits
 * (vkt_value.storage), each row has whole vec4s, `ld` and `batch` are multiples of 4, and C has no gaps between its
 * rows. An operand has the dimensions k and x; x is m for A, and n for B. If x_outer is true, x is the slow dimension,
 * so a row of the matrix runs along k (an A that is not transposed, or a transposed B). Otherwise a row runs along
 * x. */
typedef struct vkt_gemm_matrix {
    vkt_tensor t;
    bool x_outer;
    uint32_t ld;
    uint64_t batch; /* elements from one batch to the next; 0: one matrix for all batches */
    uint64_t first; /* index of the matrix's first element in the tensor */
    /* Only for B, and only if vkt_gemm_reads_blocks allows it. NULL: `t` has f32. Otherwise `t` has the words of these
     * quantized weights, all batches share the matrix, `ld` is the number of columns of the weights, and `first` is
     * `ld` times the index of the first row. */
    const vkt_gemm_blocks *blocks;
} vkt_gemm_matrix;

/* C[b] (M,N) = A[b] (M,K) B[b] (K,N) + bias[n]. C's x_outer is not used: a row of C runs along n. */
typedef struct vkt_gemm {
    vkt_gemm_matrix a, b, c;
    vkt_tensor bias; /* f32 (N), or null */
    uint32_t m, n, k, batches;
    bool accumulate; /* the product is added to C, which is stored as f32 */
} vkt_gemm;

/* Emits the product. Sets VKT_E_UNSUPPORTED in e if not even a few rows of each matrix fit into a binding, or if N
 * needs more work groups than the device can run. */
void vkt_gemm_emit(vkt_emit *e, const vkt_gemm *g);
/* Returns true if vkt_gemm_emit itself can unpack the quantized weights in B, and if the settings for variants
 * (vkt_choices) allow this. There are two ways. Tiles in shared memory read the quantized weights. If rows of B run
 * along n, the weights can be unpacked to panels. */
bool vkt_gemm_reads_blocks(const vkt_emit *e, const vkt_gemm *g);
/* Returns the cost of unpacking the weights of a product, in multiply-adds for each weight. `blocks`: the product
 * itself unpacks the weights. Otherwise the unpacked weights are written to memory and read again. On GPUs, 64 is an
 * estimate of this cost: 4 bytes are written to the cache, and 4 bytes are read. With `blocks`, a GPU unpacks a weight
 * again for each 64 rows of A. Each unpacking costs 20, which is in the range of RADV's estimates for RDNA 3: 15 for
 * Q8_0, 23 for Q4_1, 41 for Q4_K. On CPU drivers, tiles in shared memory are slow. So there `blocks` pays only if the
 * weights are unpacked to panels: if rows of B run along n, and unpacked rows are whole pages (has_page_rows in
 * gemm_choose.c). */
double vkt_gemm_unpack_cost(const vkt_emit *e, const vkt_gemm *g, bool blocks);

/* The sum of `slices` arrays of n f32. The arrays are consecutive in `part`, and are added in ascending order. */
typedef struct vkt_gemm_sum {
    vkt_bind part, c;
    vkt_bind bias; /* {0}: none */
    uint32_t n, columns, slices, c_base;
    bool accumulate; /* the sum is added to c, which is f32 */
} vkt_gemm_sum;

/* Computes c[c_base + i] (+)= sum_s part[s][i] + bias[i % columns] (shaders/product/gemm_sum.comp). If c is stored in
 * 16 bits, n, c_base and (if there is a bias) `columns` must be multiples of 4. */
void vkt_gemm_sum_emit(vkt_emit *e, const vkt_gemm_sum *sum);

#endif
