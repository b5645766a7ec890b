/* label_rows.abi.h - see label_rows.comp. A label counts if its row is real, and the label is a class and not ignored. */
VKT_PUSH(vkt_label_rows_push, VKT_U32(n) /* number of labels */
         VKT_U32(group)                  /* number of labels of each sample of the batch */
         VKT_U32(classes) VKT_U32(ignore))
#define LABEL_ROWS_MOST_LANES 256 /* upper limit of the number of lanes of the work group */
#define LABEL_ROWS_T     0 /* u32 (n) */
#define LABEL_ROWS_STEP  1
#define LABEL_ROWS_OUT   2 /* u32 (n): the indices of the rows whose labels count, in ascending order */
#define LABEL_ROWS_FOUND 3 /* u32 (FOUND_WORDS): label_found.abi.h */
#define LABEL_ROWS_COUNT 4 /* f32 scalar: number of labels that count */
