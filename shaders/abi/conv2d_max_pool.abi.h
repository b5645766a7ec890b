/* conv2d_max_pool.abi.h - see conv/fused_max_pool.comp. z is the result of the convolution. y has the maximum of each
 * pooling window of z. One vec4 has four neighbouring samples of the batch. A column is vec4 n of pixel (p,q) of y. A
 * dispatch computes all channels of one or more groups of channels. If one group has too many channels for a dispatch,
 * the dispatch computes `rows` channels. */
VKT_PUSH(vkt_conv2d_max_pool_push,
         VKT_U32(columns)                       /* vec4s of one plane of y: P * Q * n4 */
         VKT_U32(n4)                            /* vec4s of one pixel: batch / 4, rounded up */
         VKT_U32(width)                         /* Q */
         VKT_U32(z_width)                       /* pixels of an image row of z */
         VKT_U32(strip)                         /* columns per work group and iteration; a multiple of LANES */
         VKT_U32(step_p) VKT_U32(step_q) VKT_U32(step_n) /* increments of p, q, n for LANES columns: lib/strip.glsl */
         VKT_U32(rows)                          /* output channels of a group that are computed */
         VKT_U32(dst_group)                     /* O / groups */
         VKT_U32(src_height) VKT_U32(src_width) /* H, W */
         VKT_U32(next_h) VKT_U32(next_w)        /* image rows and columns of x from pixel to pixel of z */
         VKT_U32(stride_h) VKT_U32(stride_w)    /* image rows and columns of x from window to window */
         VKT_I32(offset_h) VKT_I32(offset_w)    /* tap r of the first pixel of window p reads row
                                                 * p * stride + offset + r * reach of x */
         VKT_I32(reach_h) VKT_I32(reach_w)
         VKT_U32(w_group) VKT_U32(w_row) VKT_U32(w_depth) /* strides of w in floats: group, y channel, x channel */
         VKT_U32(w_tap_h) VKT_U32(w_tap_w)      /* floats of w from tap to tap */
         VKT_U32(w_base) VKT_U32(bias_base)     /* index of the dispatch's first float in each binding */
         VKT_U32(src_base) VKT_U32(y_base) VKT_U32(index_base) /* index of the dispatch's first vec4 in each binding */
         VKT_U32(zero))                         /* always 0: see conv/tile.comp */
#define CONV_POOL_W     0
#define CONV_POOL_X     1
#define CONV_POOL_BIAS  2
#define CONV_POOL_Y     3
#define CONV_POOL_INDEX 4 /* uvec4: see pool_index.abi.h */

#define CONV_POOL_SPEC_LANES    0
#define CONV_POOL_SPEC_ROWS     1 /* output channels per tile */
#define CONV_POOL_SPEC_CHANNELS 2 /* C / groups */
#define CONV_POOL_SPEC_KERNEL_H 3
#define CONV_POOL_SPEC_KERNEL_W 4
#define CONV_POOL_SPEC_PAD      5 /* taps may be outside the image */
#define CONV_POOL_SPEC_BIAS     6
#define CONV_POOL_SPEC_R        7 /* rows of a window */
#define CONV_POOL_SPEC_S        8 /* columns of a window */
#define CONV_POOL_SPEC_RELU     9
#define CONV_POOL_SPEC_UNROLL   10 /* elements of a window per iteration; a divisor of R * S */
#define CONV_POOL_SPECS         11
