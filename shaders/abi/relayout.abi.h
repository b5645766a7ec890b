/* relayout.abi.h - (batch, stride) by rows <-> [stride][batch'], batch' = 4 pitch4. A tile of it: `features` of them from
 * `feature` on, `columns` columns of 4 samples from `column` on. The rows' window begins with the tile's first sample, the
 * other one with its first feature. */
VKT_PUSH(vkt_relayout_push,
         VKT_U32(batch) VKT_U32(pitch4) VKT_U32(stride)
         VKT_U32(column) VKT_U32(columns) VKT_U32(feature) VKT_U32(features))
#define RELAYOUT_X 0
#define RELAYOUT_Y 1
#define RELAYOUT_CHUNK 64 /* blocks of 4 features that a work group in y takes at once */
