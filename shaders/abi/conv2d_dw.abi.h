/* conv2d_dw.abi.h - see conv2d_dw.comp. */
VKT_PUSH(vkt_conv2d_dw_push,
         VKT_U32(plane)                     /* vec4s of one plane of dy: P Q n4 */
         VKT_U32(n4)                        /* vec4s of one pixel: pitch / 4 */
         VKT_U32(width)                     /* Q */
         VKT_U32(slice)                     /* vec4s of a plane that one slice of the sum takes; a multiple of LANES UNROLL */
         VKT_U32(step_p) VKT_U32(step_q) VKT_U32(step_n) /* LANES vec4s on: (p,q,n) each grow by these, then carry */
         VKT_U32(src_height) VKT_U32(src_width) /* H W */
         VKT_U32(src_group)                 /* C / groups */
         VKT_U32(kernel_h) VKT_U32(kernel_w)
         VKT_U32(stride_h) VKT_U32(stride_w) VKT_U32(pad_h) VKT_U32(pad_w) VKT_U32(dilation_h) VKT_U32(dilation_w)
         VKT_U32(rows)                      /* O / groups */
         VKT_U32(row_tiles) VKT_U32(col_tiles)
         VKT_U32(part))                     /* floats of the outputs from slice to slice */
#define DW_DY 0
#define DW_X  1
#define DW_W  2 /* (O, C/G R S), of each slice */
#define DW_B  3 /* (O), of each slice */

#define DW_SPEC_LANES  0
#define DW_SPEC_ROWS   1 /* output channels of a tile */
#define DW_SPEC_COLS   2 /* weights of an output channel in a tile */
#define DW_SPEC_UNROLL 3
#define DW_SPEC_PAD    4 /* taps may fall off the picture */
#define DW_SPEC_TAIL   5 /* the plane is no multiple of LANES UNROLL */
#define DW_SPEC_BIAS   6
#define DW_SPECS       7
