/* gather_rows.abi.h - gathers the rows of a batch from a data table, converts them to floats and normalises them. The
 * result is a BATCH_LAST batch. A word has 4 elements of a u8 table, 2 of an f16 table, or 1 of an f32 table. A row
 * number is an index in the whole table, not in the binding. For STEP_.., RING_.. and BATCH_SPEC_EARLY see
 * step.abi.h. */
VKT_PUSH(vkt_gather_rows_push, VKT_U32(batch4) /* batch / 4, rounded up */
         VKT_U32(words)                        /* words of one row */
         VKT_U32(plane)                        /* elements of a channel, which have the same scale and shift */
         VKT_U32(parts)                        /* number of lanes that share the words of one channel of four samples */
         VKT_U32(n_order) VKT_U32(row_begin) VKT_U32(row_end) /* GATHER_TABLE binds rows row_begin .. row_end - 1 */)
#define GATHER_SPEC_KEEP 1 /* 1: samples of OUT whose table row is not in the binding do not change; 0: such samples become 0 */
#define GATHER_TABLE 0
#define GATHER_ORDER 1  /* u32 (n_order) */
#define GATHER_STEP 2   /* u32 (STEP_WORDS) */
#define GATHER_AFFINE 3 /* vec4 (C): a channel's scale is x + y, its shift z + w. One float would be too inexact */
#define GATHER_OUT 4    /* vec4 ([F][batch4]) */
#define GATHER_WORDS 5  /* u32 (RING_ALL, RING_WORDS): read instead of GATHER_STEP if BATCH_SPEC_EARLY is 1 */
#define GATHER_RUN 6    /* u32 (1): STEP_RUN */
