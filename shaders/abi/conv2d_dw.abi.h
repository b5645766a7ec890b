/* conv2d_dw.abi.h - see conv/dw_tile.comp. One vec4 has four neighbouring samples. A dispatch reads all channels of dy
 * and of x of one or more groups of channels. If one group is too large for a dispatch, the dispatch reads
 * `rows` channels of dy and `channels` channels of x from this group. UNPOOL: DW_DY has the gradient of a max pooling's
 * output, and the kernel computes dy from this gradient. */
VKT_PUSH(vkt_conv2d_dw_push,
         VKT_U32(n4)                            /* vec4s of a pixel: batch / 4, rounded up. In some 1x1 convolutions, the
                                                 * kernel gets a whole plane as one pixel */
         VKT_U32(width)                         /* Q; 1 if a plane is one pixel */
         VKT_U32(plane)                         /* vec4s of one plane of dy: P * Q * (batch / 4, rounded up) */
         VKT_U32(slice)                         /* vec4s of one slice. A plane of dy is divided into `slices` slices */
         VKT_U32(src_height) VKT_U32(src_width) /* H and W; both are 1 if a plane is one pixel */
         VKT_U32(channels) VKT_U32(rows)        /* channels of x, and channels of dy, to read per channel group */
         VKT_U32(x_group) VKT_U32(dy_group)     /* channels from group to group: C / groups, O / groups */
         VKT_U32(kernel_h) VKT_U32(kernel_w)
         VKT_U32(stride_h) VKT_U32(stride_w)
         VKT_U32(pad_h) VKT_U32(pad_w)
         VKT_U32(dilation_h) VKT_U32(dilation_w)
         VKT_U32(row_tiles) VKT_U32(col_tiles) VKT_U32(slices)
         VKT_U32(part)                          /* floats from the results of one slice to those of the next */
         VKT_U32(pitch)                         /* weights of an output channel: C/G * R * S */
         VKT_U32(x_base) VKT_U32(dy_base)       /* index of the dispatch's first vec4 in each binding */
         VKT_U32(w_base) VKT_U32(b_base)        /* index of the dispatch's first float in each binding */
         VKT_U32(dy_height) VKT_U32(dy_width)   /* size of the images in DW_DY: P and Q; both are 1 if a plane is
                                                 * one pixel. UNPOOL: the pooled size */
         VKT_I32(to_index)                      /* UNPOOL: vec4 i + to_index of DW_INDEX has the indices
                                                 * (pool_index.abi.h) for vec4 i of DW_DY */
         VKT_U32(zero))                         /* always 0: see conv/tile.comp */
#define DW_DY 0
#define DW_X  1
#define DW_W  2 /* (O, C/G * R * S), per slice */
#define DW_B  3 /* (O), per slice */
#define DW_INDEX 4 /* UNPOOL: see abi/pool_index.abi.h */

#define DW_SPEC_LANES 0
#define DW_SPEC_COLS  1 /* weights (c,r,s) of an output channel per tile */
#define DW_SPEC_ROWS  2 /* output channels per lane */
#define DW_SPEC_PAD   3 /* taps may be outside the image */
#define DW_SPEC_BIAS  4
/* 1: dw is stored as vec4s. These must be multiples of 4: channels * R * S, pitch, w_base and COLS. If there are
 * several slices, `part` must be a multiple of 4 too. */
#define DW_SPEC_QUADS 5
#define DW_SPEC_WINDOW_H 6 /* UNPOOL: size of a pooling window */
#define DW_SPEC_WINDOW_W 7
#define DW_SPECS       8
