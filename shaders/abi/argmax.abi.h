/* argmax.abi.h - finds the index of the largest element of each row of z (B,K). With COUNT, the kernel does not write
 * the indices. It compares them with the labels. For each block of vectors it writes one number: how many real rows of
 * the block have an index that equals the label. (STEP_ROWS in step.abi.h is the number of real rows.) For vectors,
 * blocks, first, end and part see softmax_xent.abi.h. */
VKT_PUSH(vkt_argmax_push,
         VKT_U32(batch) VKT_U32(pitch4) VKT_U32(classes) VKT_U32(first) VKT_U32(end)
         VKT_U32(vectors) VKT_U32(per_block) VKT_U32(blocks) VKT_U32(part))
#define ARGMAX_SPEC_BY_LANE 1
#define ARGMAX_Z    0 /* f32 (B,K) */
#define ARGMAX_OUT  1 /* u32 (B); COUNT: f32 (blocks) */
#define ARGMAX_T    2 /* COUNT: u32 (B) */
#define ARGMAX_STEP 3 /* COUNT: u32 (STEP_WORDS) */
