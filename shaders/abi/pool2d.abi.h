/* pool2d.abi.h - max and average pooling of images in the layout BATCH_LAST, and the gradient. A dispatch has
 * `channels` channels. A vec4 has four neighbouring samples of the batch: x and dx are vec4 [channels][H][W][N4]; y, dy
 * and index are vec4 [channels][P][Q][N4]. PART and JOIN are macros of pool2d.comp, DISJOINT is a macro of
 * pool2d_dx.comp, and both shaders have the macro DROPOUT: see there. */
VKT_PUSH(vkt_pool2d_push, VKT_U32(channels) VKT_U32(H) VKT_U32(W) VKT_U32(P) VKT_U32(Q) VKT_U32(stride_h) VKT_U32(stride_w)
         VKT_U32(pad_h) VKT_U32(pad_w) VKT_U32(exclude_pad) /* 1: the divisor of a mean counts no padding */
         VKT_U32(rows)         /* number of rows to compute in each channel. DISJOINT: rows of windows */
         VKT_U32(first_row)    /* index of the first of these rows */
         /* A base is the index, in the binding, of the first vec4 of the dispatch's first channel. It is modulo 2^32,
          * because the channel may start before the binding */
         VKT_U32(hw_base)      /* base of x or dx */
         VKT_U32(pq_base)      /* base of y or dy */
         VKT_U32(index_base)   /* base of POOL_INDEX */
         VKT_U32(part)         /* PART: index, among the parts of a window, of the dispatch's first part */
         VKT_U32(part_h) VKT_U32(part_w) /* PART: rows and columns of a part */
         VKT_U32(parts_across) /* PART: number of parts of a window along the width */
         VKT_U32(parts)        /* JOIN: number of parts of a window */
         VKT_U32(part_pitch)   /* PART, JOIN: vec4s from the results of one part to the results of the next part */
         VKT_U32(samples)      /* with dilation: samples of the batch, without the padding up to 4 * N4 samples */
         VKT_U32(threshold) VKT_F32(scale) VKT_U32(salt) /* DROPOUT: as in dropout.abi.h */
         VKT_U32(first_channel)) /* DROPOUT: index of the dispatch's first channel in the tensor */
#define POOL_SPEC_R      1 /* rows (R) and columns (S) of the kernel; both 0: adaptive windows */
#define POOL_SPEC_S      2
#define POOL_SPEC_N4     3 /* vec4s of one pixel: batch / 4, rounded up */
#define POOL_SPEC_INSIDE 4 /* 1: no window reaches outside the image. With DISJOINT, the windows also cover the image */
#define POOL_SPEC_RELU   5 /* 1: y is the maximum of max(x, 0). 0: y is the maximum of x */
#define POOL_SPEC_DILATION_H 6 /* max pooling: rows from one element of a window to the next */
#define POOL_SPEC_DILATION_W 7 /* max pooling: columns from one element of a window to the next */
#define POOL_SPEC_PLANES 8 /* DROPOUT. 1: one random number for each channel of each sample. 0: one for each element */
#define POOL_X     0       /* POOL_X, POOL_Y, POOL_INDEX, POOL_WINNERS and POOL_STEP are bindings of pool2d.comp */
#define POOL_Y     1
#define POOL_INDEX 2       /* uvec4, max only: see pool_index.abi.h */
#define POOL_WINNERS 3     /* JOIN, max only: index of the largest element of each part (pool_index.abi.h). With JOIN,
                            * POOL_X has the values of these elements */
#define POOL_STEP  3       /* DROPOUT, in pool2d.comp and pool2d_dx.comp: the step state */
#define POOL_DY    0       /* POOL_DY and POOL_DX are bindings of pool2d_dx.comp. For max pooling,
                            * pool2d_dx.comp also reads POOL_INDEX */
#define POOL_DX    1
