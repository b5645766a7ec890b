/* shard_sum.abi.h - see shard_sum.comp. A dispatch adds the gradients of one range of a bucket to the partial sums of this
 * range. */
VKT_PUSH(vkt_shard_sum_push, VKT_U32(n4) /* vec4s of the range, and of each plane of SHARD_SUM_PLANES */
         VKT_U32(levels)                 /* number of planes of partial sums. This rank has 2^levels shards */
         VKT_U32(parts)                  /* runs per shard; if above 1, one more plane has the shard's sum so far */
         VKT_U32(block)                  /* index of the range's first block of SHARD_SUM_BLOCK vec4s in the arena */)
#define SHARD_SUM_SPEC_BF16   1 /* 1: each summand of the binary tree (shard_sum.comp) is rounded to bfloat16 */
#define SHARD_SUM_SPEC_STATES 2 /* 1: SHARD_SUM_STATES is bound and used */
#define SHARD_SUM_BLOCK       16 /* vec4s */
#define SHARD_SUM_GRAD        0 /* vec4 */
#define SHARD_SUM_STEP        1 /* u32 (STEP_WORDS) */
#define SHARD_SUM_PLANES      2 /* vec4 (planes,n4), read; SHARD_SUM_PLANES_OUT is the same memory, written */
#define SHARD_SUM_PLANES_OUT  3
#define SHARD_SUM_SUM         4 /* vec4: the sum over the shards of this rank, written in the last run of the step */
#define SHARD_SUM_STATES      5 /* u32: one bit for each block of the arena. 1: summands of the block are not rounded, because
                                 * the block belongs to a state. If SHARD_SUM_SPEC_STATES is 0: any buffer, not read */
