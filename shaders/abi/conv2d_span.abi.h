/* conv2d_span.abi.h - see conv/span.comp. "vec4s" count four neighbouring samples of a picture, or four floats of A. */
VKT_PUSH(vkt_conv2d_span_push,
         VKT_U32(columns)                      /* vec4s of one destination plane, a run of SPAN pixels counted once: height * runs * n4 */
         VKT_U32(n4)                           /* vec4s of one pixel: pitch / 4 */
         VKT_U32(runs)                         /* runs of SPAN pixels in a row of the destination, the last one maybe cut */
         VKT_U32(width)                        /* pixels in such a row */
         VKT_U32(dst_plane)                    /* vec4s of one destination plane */
         VKT_U32(rows)                         /* destination channels of a group that are made: rows of A */
         VKT_U32(row_tiles)                    /* rows / MB, rounded up */
         VKT_I32(src_height) VKT_I32(src_width)
         VKT_U32(src_row) VKT_U32(src_plane)   /* vec4s of one row, and of one source plane */
         VKT_U32(depth)                        /* source channels of a group */
         VKT_U32(dst_group)                    /* destination channels of a group */
         VKT_U32(kernel_h) VKT_U32(stride_h)
         VKT_I32(offset_h) VKT_I32(reach_h)    /* row p meets source row p stride_h + offset_h + r reach_h */
         VKT_I32(offset_w)                     /* pixel q meets source pixels q + offset_w + s */
         VKT_U32(a_group) VKT_U32(a_tile)      /* vec4s of A from group to group, from MB rows to the next */
         VKT_U32(src_base) VKT_U32(dst_base)   /* where the first group starts in its binding, in vec4s */
         VKT_U32(bias_base)                    /* ... in floats */
         VKT_U32(zero))                        /* 0 */

#define SPAN_A    0 /* weights, f32 */
#define SPAN_SRC  1
#define SPAN_BIAS 2
#define SPAN_DST  3

#define SPAN_SPEC_LANES  0
#define SPAN_SPEC_MB     1 /* destination channels of a lane; a multiple of 4 */
#define SPAN_SPEC_SPAN   2 /* pixels of a lane */
#define SPAN_SPEC_TAPS   3 /* of a row of the kernel */
#define SPAN_SPEC_UNROLL 4 /* source channels of a step; divides depth */
#define SPAN_SPEC_PAD    5 /* some taps fall off the source */
#define SPAN_SPEC_BIAS   6
#define SPAN_SPECS       7
