/* conv2d_dw_direct.abi.h - see conv/dw_direct.comp. One vec4 has four neighbouring samples of the batch. A column is
 * vec4 n of pixel (p,q) of dy. A dispatch processes all channels of one or more groups of channels. */
VKT_PUSH(vkt_conv2d_dw_direct_push,
         VKT_U32(n4)                            /* vec4s of one pixel: batch / 4, rounded up */
         VKT_U32(width)                         /* Q */
         VKT_U32(plane)                         /* vec4s of one plane of dy: P * Q * n4 */
         VKT_U32(strip)                         /* vec4s of a plane per work group (a slice); a multiple of LANES */
         VKT_U32(step_p) VKT_U32(step_q) VKT_U32(step_n) /* increments of p, q, n for LANES columns: lib/strip.glsl */
         VKT_U32(rows)                          /* O / groups */
         VKT_U32(src_height) VKT_U32(src_width) /* H, W */
         VKT_U32(stride_h) VKT_U32(stride_w)    /* tap r of pixel p reads row p * stride + offset + r * reach of x */
         VKT_I32(offset_h) VKT_I32(offset_w)
         VKT_I32(reach_h) VKT_I32(reach_w)
         VKT_U32(part)                          /* floats from the outputs of one slice to those of the next slice */
         VKT_U32(x_base) VKT_U32(dy_base)       /* index of the dispatch's first vec4 in each binding */
         VKT_U32(w_base) VKT_U32(b_base))       /* index of the dispatch's first float in each binding */
#define DW_DIRECT_DY 0
#define DW_DIRECT_X  1
#define DW_DIRECT_W  2 /* (O, C/G * R * S), per slice */
#define DW_DIRECT_B  3 /* (O), per slice */

#define DW_DIRECT_SPEC_LANES    0
#define DW_DIRECT_SPEC_ROWS     1 /* output channels per tile */
#define DW_DIRECT_SPEC_CHANNELS 2 /* C / groups */
#define DW_DIRECT_SPEC_KERNEL_H 3
#define DW_DIRECT_SPEC_KERNEL_W 4
#define DW_DIRECT_SPEC_PAD      5 /* taps may be outside the image */
#define DW_DIRECT_SPEC_BIAS     6
#define DW_DIRECT_SPECS         7
