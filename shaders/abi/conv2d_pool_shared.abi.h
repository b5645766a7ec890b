/* conv2d_pool_shared.abi.h - see conv/pool_shared.comp. z is the result of the convolution. y has the maximum of each
 * pooling window of z. One vec4 has four neighbouring samples of the batch. A dispatch computes all channels of one or
 * more groups of channels. If one group has too many channels for a dispatch, the dispatch computes `rows` channels. */
VKT_PUSH(vkt_conv2d_pool_shared_push,
         VKT_U32(columns)                       /* vec4s of one plane of y: P * Q * N4 */
         VKT_U32(z_width)                       /* pixels of an image row of z */
         VKT_U32(rows)                          /* output channels of a group that are computed */
         VKT_U32(dst_group)                     /* O / groups */
         VKT_U32(K)                             /* products per element of z: C / groups * taps */
         VKT_U32(taps) VKT_U32(kernel_w)        /* taps of a channel, and of a row of the kernel */
         VKT_U32(src_height) VKT_U32(src_width) /* H, W */
         VKT_U32(next_h) VKT_U32(next_w)        /* image rows and columns of x from pixel to pixel of z */
         VKT_U32(stride_h) VKT_U32(stride_w)    /* image rows and columns of x from window to window */
         VKT_I32(offset_h) VKT_I32(offset_w)    /* tap r of the first pixel of window p reads row
                                                 * p * stride + offset + r * reach of x */
         VKT_I32(reach_h) VKT_I32(reach_w)
         VKT_U32(w_group) VKT_U32(w_row) VKT_U32(w_depth) /* strides of w in floats: group, y channel, x channel */
         VKT_U32(w_tap_h) VKT_U32(w_tap_w)      /* floats of w from tap to tap */
         VKT_U32(w_base) VKT_U32(bias_base)     /* index of the dispatch's first float in each binding */
         VKT_U32(src_base) VKT_U32(y_base) VKT_U32(index_base)) /* index of the dispatch's first vec4 in each binding */
#define POOL_SHARED_W     0
#define POOL_SHARED_X     1
#define POOL_SHARED_BIAS  2
#define POOL_SHARED_Y     3
#define POOL_SHARED_INDEX 4 /* uvec4: see pool_index.abi.h */

/* The ids 0 to 8 are in direct_tiles.abi.h. */
#define POOL_SHARED_SPEC_R    9  /* rows of a window */
#define POOL_SHARED_SPEC_S    10 /* columns of a window */
#define POOL_SHARED_SPEC_RELU 11
#define POOL_SHARED_SPECS     12
