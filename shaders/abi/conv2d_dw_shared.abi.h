/* conv2d_dw_shared.abi.h - see conv/dw_shared.comp. */
VKT_PUSH(vkt_conv2d_dw_shared_push,
         VKT_U32(rows)                          /* O / groups */
         VKT_U32(columns)                       /* weights of an output channel: C/G * R * S */
         VKT_U32(bias)                          /* 1: there is one more column, which gives db */
         VKT_U32(plane)                         /* elements of a plane of dy: P * Q * 4 * N4 */
         VKT_U32(slice)                         /* elements of the plane per work group: a multiple of the tile's
                                                * length along k */
         VKT_U32(depth)                         /* C / groups */
         VKT_U32(src_height) VKT_U32(src_width) /* H, W */
         VKT_U32(stride_h) VKT_U32(stride_w)
         VKT_U32(pad_h) VKT_U32(pad_w)
         VKT_U32(dilation_h) VKT_U32(dilation_w)
         VKT_U32(part))                         /* floats from the outputs of one slice to those of the next slice */
#define CONV2D_DW_SHARED_SPEC_TAPS     6 /* R * S. The ids below 6 are in blocks.abi.h */
#define CONV2D_DW_SHARED_SPEC_KERNEL_W 7
#define CONV2D_DW_SHARED_SPEC_N4       8 /* vec4s of one pixel: batch / 4, rounded up */
#define CONV2D_DW_SHARED_SPEC_WIDTH    9 /* Q */
#define CONV2D_DW_SHARED_SPEC_INSIDE   10 /* 1: no tap is outside x */
#define CONV2D_DW_SHARED_SPECS         11
#define CONV2D_DW_SHARED_DY 0
#define CONV2D_DW_SHARED_X  1
#define CONV2D_DW_SHARED_DW 2 /* (O, C/G * R * S), per slice */
#define CONV2D_DW_SHARED_DB 3 /* (O), per slice */
