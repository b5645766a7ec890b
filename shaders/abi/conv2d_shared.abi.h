/* conv2d_shared.abi.h - see conv/shared.comp. "vec4s" count four neighbouring samples. */
VKT_PUSH(vkt_conv2d_shared_push,
         VKT_U32(rows)                          /* destination channels of a group: rows of A */
         VKT_U32(columns)                       /* elements of a destination plane: P Q N', a multiple of 4 */
         VKT_U32(K)                             /* source channels of a group times taps */
         VKT_U32(depth)                         /* source channels of a group */
         VKT_U32(src_height) VKT_U32(src_width)
         VKT_U32(pad_h) VKT_U32(pad_w)
         VKT_U32(dilation_h) VKT_U32(dilation_w)
         VKT_U32(w_group) VKT_U32(w_row) VKT_U32(w_depth) /* floats of w from group to group, m to m, source to source */
         VKT_U32(bias))                         /* 1: bias is present */
#define CONV2D_SHARED_SPEC_TAPS     5 /* R S; smaller ids: blocks.abi.h */
#define CONV2D_SHARED_SPEC_KERNEL_W 6
#define CONV2D_SHARED_SPEC_N4       7 /* vec4s of one pixel: pitch / 4 */
#define CONV2D_SHARED_SPEC_WIDTH    8 /* width of the destination */
#define CONV2D_SHARED_SPEC_STRIDE_H 9
#define CONV2D_SHARED_SPEC_STRIDE_W 10
#define CONV2D_SHARED_SPEC_VECTORS  11 /* 1: w is read by vec4s, along k or (TRANSPOSED) along m */
#define CONV2D_SHARED_SPECS         12
#define CONV2D_SHARED_W    0
#define CONV2D_SHARED_SRC  1
#define CONV2D_SHARED_BIAS 2
#define CONV2D_SHARED_DST  3
