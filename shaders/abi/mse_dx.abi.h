/* mse_dx.abi.h - gradient of the mean squared error with respect to y; elements count as mse.abi.h says. */
VKT_PUSH(vkt_mse_dx_push,
         VKT_U32(batch) VKT_U32(per_row) VKT_U32(elements_per_row) VKT_U32(period4) VKT_U32(begin4) VKT_U32(n))
#define MSE_DX_Y      0 /* f32 (B, ..) */
#define MSE_DX_TARGET 1 /* f32, as y */
#define MSE_DX_STEP   2 /* u32 (STEP_WORDS) */
#define MSE_DX_DLOSS  3 /* f32 scalar */
#define MSE_DX_DY     4 /* f32, as y */
