/* gemm_shared.abi.h - C = A B (+ C) (+ bias). A and B are not packed into tiles (gemm_pack.comp). All members count
 * elements, except b_base and b_ld with QUANTIZED (see below). The rows of a matrix start `ld` apart. The rows of A run
 * along k, or along m if GEMM_SHARED_SPEC_A_BY_K is 0. The rows of B run along k, or along n if
 * GEMM_SHARED_SPEC_B_BY_K is 0.
 * If slice < K, work group y computes the sums over slice y of k. The sums of slice y are `part` elements behind those
 * of slice y - 1. gemm_sum.comp adds the slices.
 * QUANTIZED: b_base is the first byte of the weights, and b_ld is the size of a row in bytes. With B_BY_K, the product
 * reads elements b_first .. b_first + K - 1 of each row. */
VKT_PUSH(vkt_gemm_shared_push, VKT_U32(M) VKT_U32(N) VKT_U32(K)
         VKT_U32(a_base) VKT_U32(a_ld) VKT_U32(a_batch)
         VKT_U32(b_base) VKT_U32(b_ld) VKT_U32(b_batch)
         VKT_U32(c_base) VKT_U32(c_ld) VKT_U32(c_batch)
         VKT_U32(slice) /* values of k in a slice: a multiple of a tile's length along k. The last slice ends at K */
         VKT_U32(part)
         VKT_U32(b_first) /* QUANTIZED: see above */)
#define GEMM_SHARED_SPEC_A_BY_K     6 /* the ids below 6 are in blocks.abi.h */
#define GEMM_SHARED_SPEC_B_BY_K     7
#define GEMM_SHARED_SPEC_VECTORS    8 /* mask of the matrices whose rows are whole vec4s (1: A, 2: B, 4: C) */
#define GEMM_SHARED_SPEC_ACCUMULATE 9 /* 1: add to the values in C */
#define GEMM_SHARED_SPEC_BIAS       10 /* 1: add bias[n] */
#define GEMM_SHARED_SPEC_FORMAT     11 /* QUANTIZED: one of the formats of abi/quant.abi.h */
#define GEMM_SHARED_SPECS           12
#define GEMM_SHARED_A    0
#define GEMM_SHARED_B    1
#define GEMM_SHARED_C    2
#define GEMM_SHARED_BIAS 3 /* f32 (N); any buffer if GEMM_SHARED_SPEC_BIAS is 0 */
