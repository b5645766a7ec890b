/* softmax_xent.abi.h - mean cross-entropy of integer labels over z (B,K). A vector is what one subgroup takes at once: four
 * samples a lane where the batch is the fastest dimension, else one row or, with XENT_SPEC_BY_LANE, one row a lane. A block of
 * vectors makes one partial sum. By rows, z is a window that holds rows first .. end - 1, with blocks from `part` on. */
VKT_PUSH(vkt_softmax_xent_push,
         VKT_U32(batch) VKT_U32(pitch4) VKT_U32(classes) VKT_U32(first) VKT_U32(end)
         VKT_U32(vectors) VKT_U32(per_block) VKT_U32(blocks) VKT_U32(part)
         VKT_U32(group)  /* rows of z for each real row of the step */
         VKT_U32(ignore) /* from here on with OPTIONS: the label that does not count */
         VKT_F32(hard) VKT_F32(soft)    /* 1 - label smoothing; smoothing / K */
         VKT_U32(divide)                /* one of XENT_DIVIDE_ */
         VKT_U32(row_stride) VKT_U32(class_stride) /* of z, for NLL */)
#define XENT_DIVIDE_LATER 0 /* several blocks make the loss: their sums and weights are added by loss_divide.comp */
#define XENT_DIVIDE_MEAN  1 /* one block makes it: it divides by its weights */
#define XENT_DIVIDE_NOT   2 /* the same, for the sum */
#define XENT_SPEC_BY_LANE  1 /* by rows: lanes take rows, not classes */
#define XENT_SPEC_WEIGHTED 2 /* XENT_WEIGHT is one; else it is not read */
#define XENT_SPEC_SMOOTH   3 /* soft is not 0 */
#define XENT_SPEC_EACH     4 /* with OPTIONS: XENT_PART has the loss of each row instead, 0 past the real ones; XENT_NORM is 1 */
#define XENT_Z    0 /* f32 (B,K) */
#define XENT_T    1 /* u32 (B) */
#define XENT_STEP 2 /* u32 (STEP_WORDS) */
#define XENT_STAT 3 /* f32 (B,2): the row's largest logit m, and 1 / sum_k exp(z[k] - m); with OPTIONS (B,3): the factor of p too */
#define XENT_PART 4 /* f32 (blocks) */
#define XENT_WEIGHT 5 /* f32 (K) */
#define XENT_NORM   6 /* f32 (blocks): weights of the rows that count */
