/* linear_xent.abi.h - see linear_xent.comp. A row counts if its label counts (label_rows.abi.h). */
VKT_PUSH(vkt_linear_xent_push, VKT_U32(first) /* index of the slice's first row among the rows that count */
         VKT_U32(rows)                        /* rows of the slice */
         VKT_U32(classes)
         VKT_U32(pitch4) /* vec4s from one row of logits to the next */
         VKT_U32(mean) /* 1: the gradient is divided by the number of labels that count */)
#define LINEAR_XENT_SPEC_GRADIENT 1
#define LINEAR_XENT_Z     0 /* f32 (rows, 4 * pitch4) */
#define LINEAR_XENT_T     1 /* u32: the labels of all rows */
#define LINEAR_XENT_ROWS  2 /* u32: the indices of the rows that count */
#define LINEAR_XENT_FOUND 3 /* label_found.abi.h */
#define LINEAR_XENT_DLOSS 4 /* f32 scalar; any buffer if LINEAR_XENT_SPEC_GRADIENT is 0 */
#define LINEAR_XENT_PART  5 /* f32: the losses of the rows that count */
#define LINEAR_XENT_DZ    6 /* the same memory as LINEAR_XENT_Z */
