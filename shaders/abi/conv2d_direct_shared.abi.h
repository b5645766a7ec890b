/* conv2d_direct_shared.abi.h - see conv/direct_shared.comp. One vec4 has four neighbouring samples. A dispatch computes
 * all channels of one or more groups of channels. If one group has too many channels for a dispatch, the dispatch
 * computes `rows` channels of this group. conv/direct.comp explains phases. The specialization constants are in
 * direct_tiles.abi.h. */
VKT_PUSH(vkt_conv2d_direct_shared_push,
         VKT_U32(columns)                       /* vec4s of a plane of y to compute: all (P * Q * N4), or those of one phase */
         VKT_U32(dst_plane)                     /* vec4s of one plane of y */
         VKT_U32(dst_row) VKT_U32(dst_col)      /* vec4s of y between computed image rows and between computed pixels */
         VKT_U32(rows)                          /* output channels to compute in each group of channels */
         VKT_U32(dst_group)                     /* O / groups */
         VKT_U32(K)                             /* products per element: C / groups * taps; 0: no tap reaches the phase */
         VKT_U32(taps) VKT_U32(kernel_w)        /* taps of a channel, and of a row of the kernel */
         VKT_U32(src_height) VKT_U32(src_width) /* H, W */
         VKT_U32(stride_h) VKT_U32(stride_w)    /* along each axis (_h, _w), tap r of pixel p reads x at index
                                                * p * stride + offset + r * reach */
         VKT_I32(offset_h) VKT_I32(offset_w)
         VKT_I32(reach_h) VKT_I32(reach_w)
         VKT_U32(w_group) VKT_U32(w_row) VKT_U32(w_depth) /* strides of w in floats: group, y channel, x channel */
         VKT_U32(w_tap_h) VKT_U32(w_tap_w)      /* floats of w from tap to tap */
         VKT_U32(w_base) VKT_U32(bias_base)     /* index of the dispatch's first float in each binding */
         VKT_U32(src_base) VKT_U32(dst_base)    /* index of the dispatch's first vec4 in each binding */
         VKT_I32(to_slope))                     /* SLOPE: vec4 i of y belongs to vec4 i + to_slope of DIRECT_SHARED_V */
#define DIRECT_SHARED_W    0
#define DIRECT_SHARED_X    1
#define DIRECT_SHARED_BIAS 2
#define DIRECT_SHARED_Y    3
#define DIRECT_SHARED_V    4 /* SLOPE: v, the result of a relu, with the layout of y. y becomes 0 where v is at most 0 */
