/* run_words.abi.h - copies the learning rate, the number of rows and the index of the first row of a run to a slot of
 * the host's ring (step.abi.h). The device wrote these values to an array (vkt_program_params.run_values). */
VKT_PUSH(vkt_run_words_push, VKT_U32(slot) VKT_U32(most_rows) /* upper limit of the number of rows; ROWS_ALL: no limit */)
#define RUN_WORDS_ARRAY 0 /* the members of vkt_run_values */
#define RUN_WORDS_SLOTS 1 /* u32 (RING_ALL, RING_WORDS) */
#define VALUES_LR    0 /* f32 */
#define VALUES_ROWS  1
#define VALUES_FIRST 2
