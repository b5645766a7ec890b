/* conv2d_dw_direct_shared.abi.h - see conv/dw_direct_shared.comp. One vec4 has four neighbouring samples of
 * the batch. A dispatch processes all channels of one or more groups of channels. UNPOOL: the binding
 * DW_DIRECT_SHARED_DY has the gradient of a max pooling's output, and the kernel computes dy from this gradient. */
VKT_PUSH(vkt_conv2d_dw_direct_shared_push,
         VKT_U32(plane)                         /* vec4s of one plane of dy: P * Q * N4 */
         VKT_U32(slice)                         /* vec4s of a plane per work group */
         VKT_U32(rows)                          /* O / groups */
         VKT_U32(col_tiles)                     /* tiles along the K weights: K / COLS, rounded up */
         VKT_U32(K)                             /* weights of an output channel: C / groups * taps */
         VKT_U32(taps) VKT_U32(kernel_w)        /* taps of a channel, and of a row of the kernel */
         VKT_U32(src_height) VKT_U32(src_width) /* H, W */
         VKT_U32(stride_h) VKT_U32(stride_w)    /* tap r of pixel p reads row p * stride + offset + r * reach of x */
         VKT_I32(offset_h) VKT_I32(offset_w)
         VKT_I32(reach_h) VKT_I32(reach_w)
         VKT_U32(part)                          /* floats from the outputs of one slice to those of the next slice */
         VKT_U32(dy_height) VKT_U32(dy_width)   /* size of the images in DW_DIRECT_SHARED_DY: P, Q; UNPOOL: the pooled size */
         VKT_I32(to_index)                      /* UNPOOL: vec4 i + to_index of binding INDEX has the indices
                                                 * (pool_index.abi.h) for vec4 i of binding DY */
         VKT_U32(x_base) VKT_U32(dy_base)       /* index of the dispatch's first vec4 in each binding */
         VKT_U32(w_base) VKT_U32(b_base))       /* index of the dispatch's first float in each binding */
#define DW_DIRECT_SHARED_DY 0
#define DW_DIRECT_SHARED_X  1
#define DW_DIRECT_SHARED_W  2 /* (O, C/G * R * S), per slice */
#define DW_DIRECT_SHARED_B  3 /* (O), per slice */
#define DW_DIRECT_SHARED_INDEX 4 /* UNPOOL: see abi/pool_index.abi.h */

#define DW_DIRECT_SHARED_SPEC_LANES 0 /* a power of two, DW_DIRECT_SHARED_TOGETHER or more */
#define DW_DIRECT_SHARED_SPEC_ROWS  1 /* output channels per tile */
#define DW_DIRECT_SHARED_SPEC_COLS  2 /* weights of an output channel per tile */
#define DW_DIRECT_SHARED_SPEC_PAD   3 /* taps may be outside the image */
#define DW_DIRECT_SHARED_SPEC_BIAS  4
#define DW_DIRECT_SHARED_SPEC_N4    5 /* vec4s of one pixel: batch / 4, rounded up */
#define DW_DIRECT_SHARED_SPEC_WIDTH 6 /* Q */
#define DW_DIRECT_SHARED_SPEC_WINDOW_H 7 /* UNPOOL: size of a pooling window */
#define DW_DIRECT_SHARED_SPEC_WINDOW_W 8
#define DW_DIRECT_SHARED_SPECS      9

#define DW_DIRECT_SHARED_TOGETHER 16 /* number of sums that are added over all lanes at a time */
