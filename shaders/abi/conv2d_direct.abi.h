/* conv2d_direct.abi.h - see conv/direct.comp. One vec4 has four neighbouring samples. A column is vec4 n of pixel (p,q) of
 * y. A dispatch computes all channels of one or more groups of channels. If one group has too many channels for a
 * dispatch, the dispatch computes `rows` channels of this group. */
VKT_PUSH(vkt_conv2d_direct_push,
         VKT_U32(columns)                       /* vec4s of a plane of y to compute: all (P * Q * n4), or those of one phase */
         VKT_U32(n4)                            /* vec4s of one pixel: batch / 4, rounded up */
         VKT_U32(width)                         /* pixels to compute in an image row of y: all (Q), or those of one phase */
         VKT_U32(dst_plane)                     /* vec4s of one plane of y */
         VKT_U32(dst_row) VKT_U32(dst_col)      /* vec4s of y between computed image rows and between computed pixels */
         VKT_U32(strip)                         /* columns per work group and iteration; a multiple of LANES */
         VKT_U32(step_p) VKT_U32(step_q) VKT_U32(step_n) /* increments of p, q, n for LANES columns: lib/strip.glsl */
         VKT_U32(rows)                          /* output channels to compute in each group of channels */
         VKT_U32(dst_group)                     /* O / groups */
         VKT_U32(src_height) VKT_U32(src_width) /* H, W */
         VKT_U32(stride_h) VKT_U32(stride_w)    /* tap r of pixel p reads row p * stride + offset + r * reach of x */
         VKT_I32(offset_h) VKT_I32(offset_w)
         VKT_I32(reach_h) VKT_I32(reach_w)
         VKT_U32(w_group) VKT_U32(w_row) VKT_U32(w_depth) /* strides of w in floats: group, y channel, x channel */
         VKT_U32(w_tap_h) VKT_U32(w_tap_w)      /* floats of w from tap to tap */
         VKT_U32(w_base) VKT_U32(bias_base)     /* index of the dispatch's first float in each binding */
         VKT_U32(src_base) VKT_U32(dst_base)    /* index of the dispatch's first vec4 in each binding */
         VKT_U32(zero))                         /* always 0: see conv/tile.comp */
#define DIRECT_W    0
#define DIRECT_X    1
#define DIRECT_BIAS 2
#define DIRECT_Y    3

#define DIRECT_SPEC_LANES    0
#define DIRECT_SPEC_ROWS     1 /* output channels of a tile */
#define DIRECT_SPEC_CHANNELS 2 /* C / groups */
#define DIRECT_SPEC_KERNEL_H 3
#define DIRECT_SPEC_KERNEL_W 4
#define DIRECT_SPEC_PAD      5 /* taps may be outside the image */
#define DIRECT_SPEC_BIAS     6
#define DIRECT_SPECS         7
