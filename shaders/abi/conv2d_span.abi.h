/* conv2d_span.abi.h - see conv/span.comp. One vec4 has one pixel of four neighbouring samples, or four weights of A. */
VKT_PUSH(vkt_conv2d_span_push,
         VKT_U32(columns)                      /* lanes for a destination plane: n4 lanes for each span of each row */
         VKT_U32(n4)                           /* vec4s of one pixel: batch / 4, rounded up */
         VKT_U32(runs)                         /* spans of a row. A span has SPAN pixels; the last one may have fewer */
         VKT_U32(width)                        /* pixels in a destination row */
         VKT_U32(dst_plane)                    /* vec4s of one destination plane */
         VKT_U32(rows)                         /* destination channels of a group that are computed: rows of A */
         VKT_U32(row_tiles)                    /* rows / MB, rounded up */
         VKT_I32(src_height) VKT_I32(src_width)
         VKT_U32(src_row) VKT_U32(src_plane)   /* vec4s of one source row, and of one source plane */
         VKT_U32(depth)                        /* source channels of a group */
         VKT_U32(dst_group)                    /* destination channels of a group */
         VKT_U32(kernel_h) VKT_U32(stride_h)
         VKT_I32(offset_h) VKT_I32(reach_h)    /* tap r of destination row p reads source row
                                                * p * stride_h + offset_h + r * reach_h */
         VKT_I32(offset_w)                     /* tap s of pixel q reads source pixel q + offset_w + s */
         VKT_U32(a_group) VKT_U32(a_tile)      /* vec4s of A from group to group, and from one tile of MB rows to the next */
         VKT_U32(src_base) VKT_U32(dst_base)   /* index of the dispatch's first vec4 in each binding */
         VKT_U32(bias_base)                    /* index of the dispatch's first float in the binding */
         VKT_U32(zero))                        /* always 0: see conv/tile.comp */

#define SPAN_A    0 /* weights, f32 */
#define SPAN_SRC  1
#define SPAN_BIAS 2
#define SPAN_DST  3

#define SPAN_SPEC_LANES  0
#define SPAN_SPEC_MB     1 /* destination channels per lane; a multiple of 4 */
#define SPAN_SPEC_SPAN   2 /* pixels per lane */
#define SPAN_SPEC_TAPS   3 /* taps of a row of the kernel */
#define SPAN_SPEC_UNROLL 4 /* source channels per iteration: a divisor of depth */
#define SPAN_SPEC_PAD    5 /* taps may be outside the source */
#define SPAN_SPEC_BIAS   6
#define SPAN_SPECS       7
