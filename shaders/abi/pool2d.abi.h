/* pool2d.abi.h - max and average pooling of `channels` channels of BATCH_LAST images, and its gradient. A vec4 has four
 * neighbouring samples: x and dx are vec4 [channels][H][W][N4]; y, dy and index are [channels][P][Q][N4]. */
VKT_PUSH(vkt_pool2d_push, VKT_U32(channels) VKT_U32(H) VKT_U32(W) VKT_U32(P) VKT_U32(Q) VKT_U32(stride_h) VKT_U32(stride_w)
         VKT_U32(pad_h) VKT_U32(pad_w) VKT_U32(exclude_pad) /* 1: a divisor counts no padding */
         VKT_U32(rows) VKT_U32(first_row)                   /* number of rows to compute in each channel; the first row */
         VKT_U32(hw_base) VKT_U32(pq_base) VKT_U32(index_base) /* start of x, y, index in vec4s, modulo 2^32 */
         VKT_U32(part) VKT_U32(part_h) VKT_U32(part_w) VKT_U32(parts_across) /* PART: first part, size, parts per row */
         VKT_U32(parts) VKT_U32(part_pitch) /* JOIN: number of parts. PART, JOIN: vec4s from part to part */
         VKT_U32(samples) /* with dilation: the batch, without the padding up to 4 N4 */
         VKT_U32(threshold) VKT_F32(scale) VKT_U32(salt) /* DROPOUT: as in dropout.abi.h */
         VKT_U32(first_channel)) /* DROPOUT: index in the tensor of the first of the `channels` channels */
#define POOL_SPEC_R      1 /* rows and columns of the kernel; both 0: adaptive windows */
#define POOL_SPEC_S      2
#define POOL_SPEC_N4     3 /* vec4s of one pixel: batch / 4, rounded up */
#define POOL_SPEC_INSIDE 4 /* 1: no window reaches outside the image. With DISJOINT, the windows also cover the image */
#define POOL_SPEC_RELU   5 /* 1: the maximum of max(x, 0) instead of x */
#define POOL_SPEC_DILATION_H 6 /* max pooling: rows from one element of a window to the next */
#define POOL_SPEC_DILATION_W 7 /* max pooling: columns from one element of a window to the next */
#define POOL_SPEC_PLANES 8 /* DROPOUT: one random number for each plane (n,c) */
#define POOL_X     0       /* bindings 0 to 3 of pool2d.comp */
#define POOL_Y     1
#define POOL_INDEX 2       /* uvec4, max only: see pool_index.abi.h */
#define POOL_WINNERS 3     /* JOIN, max only: winners of the parts; POOL_X has their values */
#define POOL_STEP  3       /* DROPOUT, in both kernels: the step state */
#define POOL_DY    0       /* bindings 0 and 1 of pool2d_dx.comp, which reads POOL_INDEX, too */
#define POOL_DX    1
