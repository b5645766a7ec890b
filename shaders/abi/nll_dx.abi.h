/* nll_dx.abi.h - gradient of the negative log-likelihood with respect to log-probabilities (B,K), or to a range of their
 * rows. */
VKT_PUSH(vkt_nll_dx_push, VKT_U32(batch) VKT_U32(pitch4) VKT_U32(classes) VKT_U32(first) /* first row of the range */
         VKT_U32(n) /* elements of the range */ VKT_U32(group) VKT_U32(ignore) /* both as in softmax_xent.abi.h */)
#define NLL_DX_SPEC_WEIGHTED 1 /* 1: NLL_DX_WEIGHT holds weights; 0: it is not read */
#define NLL_DX_SPEC_EACH     2 /* 1: NLL_DX_DLOSS is (B), one per row */
#define NLL_DX_T      0 /* u32 (B) */
#define NLL_DX_STEP   1 /* u32 (STEP_WORDS) */
#define NLL_DX_DLOSS  2 /* f32 scalar; EACH: f32 (B) */
#define NLL_DX_NORM   3 /* f32 scalar: the divisor of the loss */
#define NLL_DX_WEIGHT 4 /* f32 (K) */
#define NLL_DX_DZ     5 /* f32 (B,K) */
