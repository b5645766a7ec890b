/* batch_norm.abi.h - normalisation of channels, batch last: x is (C, positions, N'), where N' is the batch rounded up
 * to a multiple of 4. A channel has `channel4` vec4s. Vec4 i of a channel has four samples, from sample
 * 4 * (i % period4) on. A sample counts if it is a real row of the batch and not padding.
 * xhat = (x - mean) / sqrt(var + eps). */
VKT_PUSH(vkt_batch_norm_push,
         VKT_U32(channels) VKT_U32(first) /* the dispatch has `channels` channels from channel `first` on */
         VKT_U32(channel4) VKT_U32(period4) VKT_U32(batch)
         VKT_U32(per_block) VKT_U32(blocks) /* a channel has `blocks` blocks of at most `per_block` vec4s */
         VKT_U32(x4) VKT_U32(dy4) VKT_U32(y4) VKT_U32(plus4) /* index of the first vec4 of channel `first` in each binding */
         VKT_U32(all_channels) VKT_F32(eps)
         VKT_U32(unbiased) VKT_F32(momentum)) /* running += momentum * (new - running). If unbiased
                                               * is 1, the new variance is the unbiased one */
#define BATCH_NORM_X     0
#define BATCH_NORM_STEP  1
#define BATCH_NORM_MEAN  2 /* f32 (C) */
#define BATCH_NORM_VAR   3 /* f32 (C), biased */
#define BATCH_NORM_GAMMA 4 /* f32 (C) */
#define BATCH_NORM_BETA  5 /* f32 (C) */
#define BATCH_NORM_Y     6 /* y, or dx */
#define BATCH_NORM_DY    7
#define BATCH_NORM_PART  8 /* vec4 (blocks, all_channels): count, mean, sum of (x - mean)^2. Backward: sum dy, sum dy * xhat */
#define BATCH_NORM_DGAMMA 9
#define BATCH_NORM_DBETA 10
#define BATCH_NORM_RUNNING_MEAN 9 /* f32 (C): forward only, read and written */
#define BATCH_NORM_RUNNING_VAR 10
#define BATCH_NORM_PLUS  11
#define BATCH_NORM_MASK  11 /* backward: output of a relu, if dy is the gradient of this output */
#define BATCH_NORM_BINDINGS 12
#define BATCH_NORM_SPEC_GAMMA 1 /* 1: gamma is present */
#define BATCH_NORM_SPEC_BETA  2
#define BATCH_NORM_SPEC_GIVEN 3 /* 1: mean and variance are constants and do not depend on x */
#define BATCH_NORM_SPEC_PLUS  4 /* 1: the tensor of BATCH_NORM_PLUS is added to y */
#define BATCH_NORM_SPEC_MASK  4 /* 1: dy counts only where BATCH_NORM_MASK is above zero or NaN */
#define BATCH_NORM_SPEC_ALONE 5 /* 1: a channel is one block, whose work group also computes the statistics or sums */
#define BATCH_NORM_SPEC_RUNNING 6 /* 1: the running statistics are updated */
