/* loss.abi.h - losses that compare two tensors of one layout element by element, over the real rows, and their gradients. An
 * element counts when its column, the number of its vec4 modulo `period4`, lies below rows * `per_row` elements: a batch-last
 * tensor has columns of samples (per_row 1), a row-major tensor is one column after the other (period4 = all of it, per_row =
 * elements of a row). The sum is divided by `elements`, and by the real rows where `by_rows` is 1. */
VKT_PUSH(vkt_loss_push,
         VKT_U32(batch) VKT_U32(per_row) VKT_U32(period4) VKT_U32(by_rows) VKT_U32(elements) VKT_F32(beta)
         VKT_U32(begin4) VKT_U32(n) /* the window: elements from vec4 begin4 on */
         VKT_U32(per_block) VKT_U32(blocks) VKT_U32(first_block) /* forward: blocks of vec4s, and where their sums go */)
#define LOSS_Y      0 /* f32 (B, ..) */
#define LOSS_TARGET 1 /* f32, as y */
#define LOSS_STEP   2 /* u32 (STEP_WORDS) */
#define LOSS_PART   3 /* f32 (all blocks) */
#define LOSS_DLOSS  3 /* f32 scalar; with LOSS_SPEC_EACH, as y; with LOSS_SPEC_TERM any buffer, not read */
#define LOSS_DY     4 /* f32, as y; also the terms */
#define LOSS_WEIGHT 5 /* f32 (elements of a row): how much a positive counts, in LOSS_LOGITS */

#define LOSS_SPEC_KIND 1
#define LOSS_SPEC_EACH 2 /* elements have a dloss each */
#define LOSS_SPEC_TERM 3 /* what is written are the terms, not their gradients */
#define LOSS_MSE       0
#define LOSS_L1        1
#define LOSS_SMOOTH_L1 2
#define LOSS_HUBER     3
#define LOSS_BCE       4
#define LOSS_LOGITS    5
#define LOSS_KL        6
#define LOSS_KL_LOG    7 /* targets are log-probabilities too */
#define LOSS_RELATIVE  8
