/* conv2d_shared.abi.h - see conv/shared.comp. One vec4 has four neighbouring samples of the batch. */
VKT_PUSH(vkt_conv2d_shared_push,
         VKT_U32(rows)                          /* destination channels of a group: rows of A */
         VKT_U32(columns)                       /* elements of a destination plane: pixels * 4 * N4 */
         VKT_U32(K)                             /* taps * source channels of a group; the number of channels is rounded
                                                 * up to a multiple of 4 */
         VKT_U32(src_height) VKT_U32(src_width)
         VKT_U32(pad_h) VKT_U32(pad_w)
         VKT_U32(dilation_h) VKT_U32(dilation_w)
         VKT_U32(w_group)                       /* elements of w from group to group: rows * K */
         VKT_U32(bias)                          /* 1: bias is present; slice 0 of the sum over k adds it */
         VKT_U32(slice)                         /* number of values of k that one work group sums */
         VKT_U32(part))                         /* elements of DST from slice to slice; 0 if there is only one slice */
#define CONV2D_SHARED_SPEC_DEPTH    6 /* source channels of a group. The ids below 6 are in blocks.abi.h */
#define CONV2D_SHARED_SPEC_KERNEL_W 7
#define CONV2D_SHARED_SPEC_N4       8 /* vec4s of one pixel: batch / 4, rounded up */
#define CONV2D_SHARED_SPEC_WIDTH    9 /* width of the destination */
#define CONV2D_SHARED_SPEC_STRIDE_H 10
#define CONV2D_SHARED_SPEC_STRIDE_W 11
#define CONV2D_SHARED_SPEC_ALONG_M  12 /* 1: w is (K,M), and `rows` (M) is a multiple of 4. 0: w is (M,K) */
#define CONV2D_SHARED_SPEC_INSIDE   13 /* 1: no tap is outside the source */
#define CONV2D_SHARED_SPECS         14
#define CONV2D_SHARED_W    0 /* f32, f16 or bf16: w, or its copy from conv/pack_rows.comp (see conv/shared.comp) */
#define CONV2D_SHARED_SRC  1
#define CONV2D_SHARED_BIAS 2
#define CONV2D_SHARED_DST  3 /* f32 if there are several slices */
