/* relayout.abi.h - (batch, features) by rows <-> [features][batch'], batch' = 4 pitch4. */
VKT_PUSH(vkt_relayout_push, VKT_U32(batch) VKT_U32(pitch4) VKT_U32(features))
#define RELAYOUT_X 0
#define RELAYOUT_Y 1
#define RELAYOUT_CHUNK 64 /* blocks of 4 features that a work group in y takes at once */
