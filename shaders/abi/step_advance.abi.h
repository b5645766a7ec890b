/* step_advance.abi.h - computes this run's step state from the host's words and the clock. step.abi.h has the layout of
 * all three. */
VKT_PUSH(vkt_step_advance_push, VKT_U32(micro) /* micro-batches per step of the optimizer; 0: this program has no update */
         VKT_U32(scaled) /* 1: the loss is scaled, and loss_scale.comp advances the clock */
         VKT_U32(beta1_low) VKT_U32(beta1_high) VKT_U32(beta2_low) VKT_U32(beta2_high) /* 0.64 fixed point */
         VKT_U32(decay_low) VKT_U32(decay_high) /* NAdam: 0.96^momentum_decay; else 0 */
         VKT_U32(draws) /* graph of shards: number of runs that make one step, on all ranks together; else 0 */
         VKT_U32(sums)  /* 1: the gradient is the sum of STEP_WEIGHT * (gradient of the run) over all runs of all shards */)
#define ADVANCE_WORDS 0 /* u32 (RING_ALL, RING_WORDS) */
#define ADVANCE_CLOCK 1 /* u32 (CLOCK_WORDS) */
#define ADVANCE_STEP  2 /* u32 (STEP_WORDS) */
