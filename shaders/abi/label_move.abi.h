/* label_move.abi.h - copies the rows of a slice: see label_move.comp. A row counts if its label counts
 * (label_rows.abi.h). A row has width4 vec4s. The binding of the tensor with all rows has the rows
 * row_begin .. row_end - 1. Row row_begin starts at vec4 `base` of the binding. */
VKT_PUSH(vkt_label_move_push, VKT_U32(first) /* index of the slice's first row among the rows that count */
         VKT_U32(rows)                       /* rows of the slice */
         VKT_U32(width4) VKT_U32(base) VKT_U32(row_begin) VKT_U32(row_end)
         VKT_U32(fill) /* 1: clears the slice's rows behind the last row that counts. Not used with SCATTER */)
#define LABEL_MOVE_FROM  0
#define LABEL_MOVE_ROWS  1 /* u32: the indices of the rows that count */
#define LABEL_MOVE_FOUND 2 /* label_found.abi.h */
#define LABEL_MOVE_TO    3
