/* softmax_xent.abi.h - cross-entropy of integer labels over z (B,K), of softmax_xent.comp and softmax_xent_spread.comp.
 * OPTIONS and NLL are macros of softmax_xent.comp. The result is the mean of the rows' losses. With OPTIONS, the result
 * can also be the sum of these losses, or the loss of each row. What a work group of softmax_xent.comp processes at a
 * time is called a vector here. If z is batch last, the vector has four samples for each lane. If z is row-major, the
 * vector is one row. With XENT_SPEC_BY_LANE or NLL, the vector has one row for each lane. Each block of vectors gives
 * one partial sum. (In softmax_xent_spread.comp, each vec4 of samples gives one partial sum.)
 * Several dispatches may process a row-major z, each a range of rows. In each dispatch, XENT_Z has rows `first` to `end` - 1
 * of z, and `part` is the index of the first block of these rows. */
VKT_PUSH(vkt_softmax_xent_push,
         VKT_U32(batch) VKT_U32(pitch4) VKT_U32(classes) VKT_U32(first) VKT_U32(end)
         VKT_U32(vectors) VKT_U32(per_block) VKT_U32(blocks) VKT_U32(part)
         VKT_U32(group)  /* rows of z for each sample of the batch */
         VKT_U32(ignore) /* the ignored label. Only OPTIONS uses this member and those below */
         VKT_F32(hard)   /* 1 - s, where s is the label smoothing */
         VKT_F32(soft)   /* s / K */
         VKT_U32(divide) /* XENT_DIVIDE_LATER, XENT_DIVIDE_MEAN or XENT_DIVIDE_NOT */
         VKT_U32(row_stride) VKT_U32(class_stride) /* NLL: strides of z */)
#define XENT_DIVIDE_LATER 0 /* the loss has several blocks: loss_divide.comp adds their sums and weights */
#define XENT_DIVIDE_MEAN  1 /* the loss has one block: softmax_xent.comp divides by the sum of the block's weights */
#define XENT_DIVIDE_NOT   2 /* the loss has one block and the reduction "sum": no division */
#define XENT_SPEC_BY_LANE  1 /* 1, only for row-major z: a lane processes a whole row */
#define XENT_SPEC_WEIGHTED 2 /* 1: XENT_WEIGHT holds weights; 0: it is not read */
#define XENT_SPEC_SMOOTH   3 /* 1: soft is not 0 */
#define XENT_SPEC_EACH     4 /* 1 (OPTIONS): XENT_PART has the loss of each row, 0 past the real rows; XENT_NORM is 1 */
#define XENT_SPEC_HELD     1 /* softmax_xent_spread: number of classes that a lane keeps in registers */
#define XENT_SPEC_DX       2 /* softmax_xent_spread: 1: XENT_DZ is computed */
#define XENT_Z    0 /* f32 (B,K) */
#define XENT_T    1 /* u32 (B) */
#define XENT_STEP 2 /* u32 (STEP_WORDS) */
/* f32 (B,2): [0] m = the largest logit; [1] 1 / sum_k exp(z[k] - m). OPTIONS: (B,3); [2] the factor of softmax(z) in dz */
#define XENT_STAT 3
/* f32, the partial sums of the loss: one for each block, or for each vec4 of samples in softmax_xent_spread. With
 * XENT_SPEC_EACH: (B), the loss of each row */
#define XENT_PART 4
#define XENT_DLOSS 5 /* softmax_xent_spread: f32 scalar, the gradient of the loss */
#define XENT_DZ    6 /* softmax_xent_spread: f32 (B,K), the gradient of z */
#define XENT_WEIGHT 5 /* f32 (K) */
/* f32, one number for each block: the sum of w[t] over its rows that count (softmax_xent.comp). With XENT_DIVIDE_NOT,
 * this number is 1. With XENT_SPEC_EACH, there is only one number, and it is 1 */
#define XENT_NORM   6
