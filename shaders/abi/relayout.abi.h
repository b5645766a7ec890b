/* relayout.abi.h - converts row-major (batch, stride) to batch last [stride][4 * pitch4], or back. `stride` is the
 * number of features of a sample, and pitch4 is batch / 4 rounded up. The dispatch converts one tile: `features`
 * features of 4 * `columns` samples, from sample 4 * `column` on. rows_base: index of the tile's first element in the
 * binding of the row-major tensor. last_base: index of the tile's first vec4 in the binding of the other tensor. */
VKT_PUSH(vkt_relayout_push,
         VKT_U32(batch) VKT_U32(pitch4) VKT_U32(stride)
         VKT_U32(column) VKT_U32(columns) VKT_U32(features) VKT_U32(rows_base) VKT_U32(last_base))
#define RELAYOUT_X 0
#define RELAYOUT_Y 1
#define RELAYOUT_CHUNK 64 /* blocks of 4 features in a chunk; the grid's y axis counts chunks */
