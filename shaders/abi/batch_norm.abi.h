/* batch_norm.abi.h - normalisation of channels, batch last: x is (C, positions, N'), a channel `channel4` vec4s long, of which
 * those lanes count whose column lies below the real rows. Vec4 i of a channel has the column i % period4. */
VKT_PUSH(vkt_batch_norm_push,
         VKT_U32(channels) VKT_U32(first) /* of this dispatch, counted from channel `first` */
         VKT_U32(channel4) VKT_U32(period4) VKT_U32(batch)
         VKT_U32(per_block) VKT_U32(blocks) /* vec4s of a channel that one work group takes, and how many such there are */
         VKT_U32(x4) VKT_U32(dy4) VKT_U32(y4) VKT_U32(plus4) /* where channel `first` begins in the bindings */
         VKT_U32(all_channels) VKT_F32(eps))
#define BATCH_NORM_X     0
#define BATCH_NORM_STEP  1
#define BATCH_NORM_MEAN  2 /* f32 (C) */
#define BATCH_NORM_VAR   3 /* f32 (C), biased */
#define BATCH_NORM_GAMMA 4 /* f32 (C) */
#define BATCH_NORM_BETA  5 /* f32 (C) */
#define BATCH_NORM_Y     6 /* y, or dx */
#define BATCH_NORM_DY    7
#define BATCH_NORM_PART  8 /* vec4 (blocks, all_channels): numbers, their mean, sum of squares about it; or sums of dy and dy xhat */
#define BATCH_NORM_DGAMMA 9
#define BATCH_NORM_DBETA 10
#define BATCH_NORM_PLUS  11
#define BATCH_NORM_BINDINGS 12
#define BATCH_NORM_SPEC_GAMMA 1 /* 1: there is one */
#define BATCH_NORM_SPEC_BETA  2
#define BATCH_NORM_SPEC_GIVEN 3 /* 1: mean and variance are no functions of x */
#define BATCH_NORM_SPEC_PLUS  4 /* 1: y is a sum with another tensor */
