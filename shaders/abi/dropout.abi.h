/* dropout.abi.h - y = x * mask * scale. `plane` 1: a draw per element; else per run of `plane` neighbouring vec4 columns. */
VKT_PUSH(vkt_dropout_push,
         VKT_U32(n) VKT_U32(begin) VKT_U32(threshold) VKT_F32(scale) VKT_U32(salt) VKT_U32(columns4) VKT_U32(rows) VKT_U32(plane))
#define DROPOUT_X    0
#define DROPOUT_Y    1
#define DROPOUT_STEP 2
