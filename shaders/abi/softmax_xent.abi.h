/* softmax_xent.abi.h - mean cross-entropy of integer labels over z (B,K). A vector is what one subgroup takes at once: four
 * samples a lane where the batch is the fastest dimension, else one row or, with XENT_SPEC_BY_LANE, one row a lane. A block of
 * vectors makes one partial sum. By rows, z is a window that holds rows first .. end - 1, with blocks from `part` on. */
VKT_PUSH(vkt_softmax_xent_push,
         VKT_U32(batch) VKT_U32(pitch4) VKT_U32(classes) VKT_U32(first) VKT_U32(end)
         VKT_U32(vectors) VKT_U32(per_block) VKT_U32(blocks) VKT_U32(part))
#define XENT_SPEC_BY_LANE 1 /* by rows: lanes take rows, not classes */
#define XENT_Z    0 /* f32 (B,K) */
#define XENT_T    1 /* u32 (B) */
#define XENT_STEP 2 /* u32 (STEP_WORDS) */
#define XENT_STAT 3 /* f32 (B,2): the row's largest logit m, and 1 / sum_k exp(z[k] - m) */
#define XENT_PART 4 /* f32 (blocks) */
