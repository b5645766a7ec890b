/* conv2d_pack_rows.abi.h - see conv/pack_rows.comp. */
VKT_PUSH(vkt_conv2d_pack_rows_push,
         VKT_U32(vec4s)       /* vec4s of a group of channels in A: destination channels * taps * depth_vec4s */
         VKT_U32(depth)       /* source channels of a group */
         VKT_U32(depth_vec4s) /* depth / 4, rounded up */
         VKT_U32(taps)        /* R * S */
         VKT_U32(w_group) VKT_U32(w_row) VKT_U32(w_depth)) /* strides in floats: group, dst channel, src channel */
#define PACK_ROWS_W 0 /* f32 (O,C/G,R,S) */
#define PACK_ROWS_A 1 /* f32, f16 or bf16 */
