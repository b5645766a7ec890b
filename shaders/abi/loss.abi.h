/* loss.abi.h - losses that compare two tensors of the same layout element by element, and the gradients of these
 * losses. Only the first `rows` rows of the batch are real (STEP_ROWS of step.abi.h), and only the elements of these
 * rows count. The column of a vec4 is its index in the tensor, modulo `period4`. Element j of the vec4 counts if
 * 4 * column + j < rows * per_row.
 *   batch last: period4 is the number of vec4s of the batch, and per_row is 1.
 *   row-major: period4 is the number of vec4s of the tensor, and per_row is the number of elements of a row.
 * The sum is divided by `elements`, and also by `rows` if `by_rows` is 1. */
VKT_PUSH(vkt_loss_push,
         VKT_U32(batch) VKT_U32(per_row) VKT_U32(period4) VKT_U32(by_rows) VKT_U32(elements) VKT_F32(beta)
         VKT_U32(begin4) VKT_U32(n) /* the dispatch's range: n elements, from vec4 begin4 of the tensor on */
         VKT_U32(per_block)   /* vec4s per block: loss.comp computes one partial sum for each block */
         VKT_U32(blocks)      /* number of blocks of the range */
         VKT_U32(first_block) /* index in LOSS_PART of the range's first block */)
#define LOSS_Y      0 /* f32 (B, ..) */
#define LOSS_TARGET 1 /* f32, like y */
#define LOSS_STEP   2 /* u32 (STEP_WORDS) */
#define LOSS_PART   3 /* loss.comp: f32 (all blocks), the sum of each block */
/* loss_dx.comp: f32 scalar, the gradient of the loss. LOSS_SPEC_EACH: f32, like y. LOSS_SPEC_TERM: any buffer, not read */
#define LOSS_DLOSS  3
#define LOSS_DY     4 /* loss_dx.comp: f32, like y: the gradient of y; with LOSS_SPEC_TERM the terms of the loss */
#define LOSS_WEIGHT 5 /* only LOSS_LOGITS: f32 (elements of a row), the weight of positive targets */

#define LOSS_SPEC_KIND 1
#define LOSS_SPEC_EACH 2 /* 1: each element has its own dloss */
#define LOSS_SPEC_TERM 3 /* 1: write the terms, not their gradients */
#define LOSS_MSE       0
#define LOSS_L1        1
#define LOSS_SMOOTH_L1 2
#define LOSS_HUBER     3
#define LOSS_BCE       4
#define LOSS_LOGITS    5
#define LOSS_KL        6
#define LOSS_KL_LOG    7 /* targets are log-probabilities too */
#define LOSS_RELATIVE  8
