/* gemm_tile.abi.h - C = A B (+ C) (+ bias). A is divided into tiles along m, and B into tiles along n. These tiles are
 * as long as the tiles of C. In this comment, x is m for A and n for B; base, step and so on are a_base, a_step and so
 * on for A, and b_base, b_step and so on for B.
 *
 * An operand has one of two layouts. Its vec4s are numbered, and tile p begins at vec4 start = base + p * panel. So a
 * tile of an operand is also called a panel. An iteration reads four k of a tile. The first one reads these vec4s:
 *   along x   (a vec4 has four neighbouring x) vec4 i of row k, for 0 <= k < 4, at start + i' + k * step
 *   along k   (a vec4 has four neighbouring k; GEMM_SPEC_A_ROWS, _B_ROWS) the vec4 of row i, at start + i' * step
 * In each further iteration, these indices grow by k_step.
 *
 * i' = min(i, last - first), so that no load is outside an operand that is not packed:
 *   along x   a row k of the operand has the vec4s 0 .. last, and the tile begins at vec4 `first` of the row
 *   along k   the operand has the rows 0 .. last, and the tile begins at row `first`
 * An operand is packed if it is stored in whole tiles (as gemm_pack.comp stores it). Then `last` is UINT32_MAX, so i'
 * is i. */
VKT_PUSH(vkt_gemm_tile_push, VKT_U32(k4) /* iterations of four k, at least 1 */
         VKT_U32(M) VKT_U32(N) VKT_U32(ldc) VKT_U32(c_base) VKT_U32(c_batch) /* C in elements */
         VKT_U32(c_panel) /* elements of C from one tile of columns to the next */
         VKT_U32(a_base) VKT_U32(a_step) VKT_U32(a_k_step) VKT_U32(a_panel) VKT_U32(a_batch) VKT_U32(a_last) /* in vec4s */
         VKT_U32(b_base) VKT_U32(b_step) VKT_U32(b_k_step) VKT_U32(b_panel) VKT_U32(b_batch) VKT_U32(b_last))
#define GEMM_SPEC_R          1 /* a power of two, at most the subgroup size: a tile has 4 R rows, and 4 columns per lane */
#define GEMM_SPEC_VECTORS    2 /* 1: c_base, c_batch, ldc and N are multiples of 4 */
#define GEMM_SPEC_ACCUMULATE 3 /* 1: add to the values in C */
#define GEMM_SPEC_BIAS       4 /* 1: sums start with bias[n] */
#define GEMM_SPEC_A_ROWS     5
#define GEMM_SPEC_B_ROWS     6
#define GEMM_SPEC_ROWS_FIRST 7 /* 1: grid axis x counts tiles of rows, axis y tiles of columns. 0: the axes are exchanged */
#define GEMM_A    0
#define GEMM_B    1
#define GEMM_C    2
#define GEMM_BIAS 3 /* f32 (N); any buffer if GEMM_SPEC_BIAS is 0 */
