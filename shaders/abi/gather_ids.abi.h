/* gather_ids.abi.h - gathers the rows of a batch from a table of integers. A row number is an index in the whole table,
 * not in the binding. For STEP_.., RING_.. and BATCH_SPEC_EARLY see step.abi.h. */
VKT_PUSH(vkt_gather_ids_push, VKT_U32(batch) VKT_U32(numbers) /* integers of a row */
         VKT_U32(parts)                                       /* parts of a row; a lane copies one part at a time */
         VKT_U32(n_order) VKT_U32(row_begin) VKT_U32(row_end) /* IDS_TABLE binds rows row_begin .. row_end - 1 */)
#define IDS_SPEC_KEEP 1 /* 1: rows of OUT whose table row is not in the binding do not change; 0: these rows become 0 */
#define IDS_TABLE 0     /* u32 (rows, numbers), or (rows, ceil(numbers / 2)) with two integers per word */
#define IDS_ORDER 1     /* u32 (n_order) */
#define IDS_STEP 2      /* u32 (STEP_WORDS) */
#define IDS_OUT 3       /* u32 (batch, numbers) */
#define IDS_WORDS 4  /* u32 (RING_ALL, RING_WORDS): read instead of IDS_STEP if BATCH_SPEC_EARLY is 1 */
#define IDS_RUN 5    /* u32 (1): STEP_RUN */
