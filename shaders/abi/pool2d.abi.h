/* pool2d.abi.h - max and average pooling of BATCH_LAST images, a range of `channels` channels; forward and gradient.
 * Vectors run over the batch: x is vec4 [channels][H][W][N4], y, dy and index are [channels][P][Q][N4]. */
VKT_PUSH(vkt_pool2d_push, VKT_U32(channels) VKT_U32(H) VKT_U32(W) VKT_U32(P) VKT_U32(Q) VKT_U32(stride_h) VKT_U32(stride_w)
         VKT_U32(pad_h) VKT_U32(pad_w) VKT_U32(exclude_pad) /* average: count only real elements in the divisor */
         VKT_U32(rows) VKT_U32(first_row)                   /* the dispatch computes these rows of each channel */
         VKT_U32(hw_base) VKT_U32(pq_base) VKT_U32(index_base) /* modulo 2^32: start of the H x W and P x Q images */
         VKT_U32(part) VKT_U32(part_h) VKT_U32(part_w) VKT_U32(parts_across) /* PART: first part, its size, parts per row */
         VKT_U32(parts) VKT_U32(part_pitch) /* JOIN: number of parts; vec4s from part to part */
         VKT_U32(samples)) /* with dilation: real samples, of 4 N4 */
#define POOL_SPEC_R      1 /* the kernel; both 0: adaptive windows */
#define POOL_SPEC_S      2
#define POOL_SPEC_N4     3 /* pitch of the batch / 4 */
#define POOL_SPEC_INSIDE 4 /* 1: no window reaches outside the image, and in POOL2D_DX_DISJOINT the windows cover it exactly */
#define POOL_SPEC_RELU   5 /* 1: maximum of max(x, 0) */
#define POOL_SPEC_DILATION_H 6 /* maximum: rows from one element of a window to the next */
#define POOL_SPEC_DILATION_W 7 /* columns */
#define POOL_X     0       /* forward */
#define POOL_Y     1
#define POOL_INDEX 2       /* uvec4, max only: see pool_index.abi.h */
#define POOL_WINNERS 3     /* JOIN, max only: winners of the parts; their values are POOL_X */
#define POOL_DY    0       /* gradient; POOL_INDEX is read */
#define POOL_DX    1
