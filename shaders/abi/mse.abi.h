/* mse.abi.h - mean squared error over the real rows. An element counts when its column, the number of its vec4 modulo
 * `period4`, lies below rows * `per_row` elements: a batch-last tensor has columns of samples (per_row 1), a row-major tensor
 * is one column after the other (period4 = all of it, per_row = elements of a row). */
VKT_PUSH(vkt_mse_push,
         VKT_U32(batch) VKT_U32(per_row) VKT_U32(elements_per_row) VKT_U32(period4)
         VKT_U32(begin4) VKT_U32(vec4s) VKT_U32(per_block) VKT_U32(blocks) VKT_U32(first_block))
#define MSE_Y      0 /* f32 (B, ..) */
#define MSE_TARGET 1 /* f32, as y */
#define MSE_STEP   2 /* u32 (STEP_WORDS) */
#define MSE_PART   3 /* f32 (all blocks) */
