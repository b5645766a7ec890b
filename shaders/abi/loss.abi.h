/* loss.abi.h - losses that compare two tensors of one layout element by element, and their gradients. Only the real
 * rows count: the rest of the batch is padding. The column of a vec4 is its number modulo `period4`. Element j of the
 * vec4 counts if 4 * column + j < rows * per_row. For a batch-last tensor, period4 is the vec4s of the batch, and
 * per_row is 1. For a row-major tensor, period4 is the vec4s of the whole tensor, and per_row is the elements of a row.
 * The sum is divided by `elements`, and also by the number of real rows if `by_rows` is 1. */
VKT_PUSH(vkt_loss_push,
         VKT_U32(batch) VKT_U32(per_row) VKT_U32(period4) VKT_U32(by_rows) VKT_U32(elements) VKT_F32(beta)
         VKT_U32(begin4) VKT_U32(n) /* the range: n elements, from vec4 begin4 of the tensor on */
         VKT_U32(per_block) VKT_U32(blocks) VKT_U32(first_block) /* vec4s per block, blocks, first block's index */)
#define LOSS_Y      0 /* f32 (B, ..) */
#define LOSS_TARGET 1 /* f32, like y */
#define LOSS_STEP   2 /* u32 (STEP_WORDS) */
#define LOSS_PART   3 /* f32 (all blocks) */
#define LOSS_DLOSS  3 /* f32 scalar; LOSS_SPEC_EACH: like y; LOSS_SPEC_TERM: any buffer, which is not read */
#define LOSS_DY     4 /* f32, like y: its gradient; with LOSS_SPEC_TERM the terms */
#define LOSS_WEIGHT 5 /* f32 (elements of a row): weight of positives in LOSS_LOGITS */

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
