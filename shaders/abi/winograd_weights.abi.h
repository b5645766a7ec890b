/* winograd_weights.abi.h - see winograd_weights.comp. */
VKT_PUSH(vkt_winograd_weights_push,
         VKT_U32(out_channels)
         VKT_U32(c4)     /* input channels / 4 */
         VKT_U32(panel)  /* vec4s from one tile of MB rows to the next tile of the same matrix */
         VKT_U32(point)) /* vec4s from one of the 16 matrices to the next */
#define WINOGRAD_W 0
#define WINOGRAD_A 1

#define WINOGRAD_WEIGHTS_SPEC_LANES 0
#define WINOGRAD_WEIGHTS_SPEC_MB    1 /* rows of a tile of the weights; for dx a multiple of 4 */
#define WINOGRAD_WEIGHTS_SPEC_BACK  2 /* 1: weights for dx */
#define WINOGRAD_WEIGHTS_SPECS      3
