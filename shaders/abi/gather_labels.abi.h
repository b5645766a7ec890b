/* gather_labels.abi.h - gathers the labels of a batch. For STEP_.., RING_.. and BATCH_SPEC_EARLY see step.abi.h. */
VKT_PUSH(vkt_gather_labels_push, VKT_U32(batch) VKT_U32(n_order) VKT_U32(n_table))
#define LABELS_TABLE 0 /* u32 (n_table) */
#define LABELS_ORDER 1 /* u32 (n_order) */
#define LABELS_STEP  2 /* u32 (STEP_WORDS) */
#define LABELS_OUT   3 /* u32 (batch) */
#define LABELS_WORDS 4  /* u32 (RING_ALL, RING_WORDS): read instead of LABELS_STEP if BATCH_SPEC_EARLY is 1 */
#define LABELS_RUN 5    /* u32 (1): STEP_RUN */
