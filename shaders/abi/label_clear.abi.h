/* label_clear.abi.h - see label_clear.comp. A row has width4 vec4s. The first row of the dispatch starts at vec4 `base` of
 * LABEL_CLEAR_OUT. */
VKT_PUSH(vkt_label_clear_push, VKT_U32(first) VKT_U32(rows) /* first row of the dispatch, and number of its rows */
         VKT_U32(width4) VKT_U32(base)
         VKT_U32(n) VKT_U32(group) VKT_U32(classes) VKT_U32(ignore) /* as in label_rows.abi.h */)
#define LABEL_CLEAR_SPEC_ALL 1 /* 1: clears all rows; 0: the rows whose labels do not count (label_rows.abi.h) */
#define LABEL_CLEAR_T    0
#define LABEL_CLEAR_STEP 1
#define LABEL_CLEAR_OUT  2
