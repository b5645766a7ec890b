/* gemm_tile.abi.h - C = A B (+ C) (+ bias) of operands that lie k-major in panels: vec4 x of row k of panel p is at
 * base + k step + min(p panel + x, last); A's panels are GEMM_SPEC_MB wide, B's four times the subgroup. An operand that
 * was not packed has overlapping panels and `last` keeps loads inside its rows. With GEMM_SPEC_A_ROWS A lies by rows:
 * vec4 k of row m is at base + min(m, last) step + k. */
VKT_PUSH(vkt_gemm_tile_push, VKT_U32(k4) /* steps of four k */
         VKT_U32(M) VKT_U32(N) VKT_U32(ldc) VKT_U32(c_base) VKT_U32(c_batch) /* C in elements */
         VKT_U32(a_base) VKT_U32(a_step) VKT_U32(a_panel) VKT_U32(a_batch) VKT_U32(a_last) /* in vec4s */
         VKT_U32(b_base) VKT_U32(b_step) VKT_U32(b_panel) VKT_U32(b_batch) VKT_U32(b_last)
         VKT_U32(zero) /* 0: keeps the compiler from seeing constant shuffle lanes, which are slower on llvmpipe */)
#define GEMM_SPEC_MB         1 /* rows of a tile: a multiple of 4, at most 4 subgroup sizes */
#define GEMM_SPEC_VECTORS    2 /* 1: c_base, c_batch, ldc and N are multiples of 4 */
#define GEMM_SPEC_ACCUMULATE 3 /* 1: add to what C holds */
#define GEMM_SPEC_BIAS       4 /* 1: add bias[n] */
#define GEMM_SPEC_A_ROWS     5
#define GEMM_A    0
#define GEMM_B    1
#define GEMM_C    2
#define GEMM_BIAS 3 /* f32 (N); anything where GEMM_SPEC_BIAS is 0 */
