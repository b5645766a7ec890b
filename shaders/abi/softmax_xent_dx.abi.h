/* softmax_xent_dx.abi.h - gradient of the loss of softmax_xent.abi.h with respect to z (B,K), or to a range of its
 * rows, first .. end - 1. */
VKT_PUSH(vkt_softmax_xent_dx_push, VKT_U32(batch) VKT_U32(pitch4) VKT_U32(classes) VKT_U32(first) VKT_U32(end)
         VKT_U32(group) VKT_U32(ignore) VKT_F32(hard) VKT_F32(soft) /* all four as in softmax_xent.abi.h */)
#define XENT_DX_SPEC_BY_LANE  1
#define XENT_DX_SPEC_WEIGHTED 2
#define XENT_DX_SPEC_SMOOTH   3
#define XENT_DX_SPEC_EACH     4 /* 1, only with OPTIONS: XENT_DX_DLOSS is (B), one per row */
#define XENT_DX_Z     0 /* f32 (B,K) */
#define XENT_DX_T     1 /* u32 (B) */
#define XENT_DX_STEP  2 /* u32 (STEP_WORDS) */
#define XENT_DX_STAT  3 /* f32 (B,2) or (B,3), from softmax_xent */
#define XENT_DX_DLOSS 4 /* f32 scalar; EACH: f32 (B) */
#define XENT_DX_DZ    5 /* f32 (B,K), in the layout of z */
#define XENT_DX_NORM  6 /* OPTIONS: f32 scalar, the divisor of the loss */
#define XENT_DX_WEIGHT 7 /* OPTIONS: f32 (K) */
#define XENT_DX_CHUNK 64 /* classes that a work group processes per iteration of its loop along the grid's y axis */
