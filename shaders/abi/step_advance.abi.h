/* step_advance.abi.h - the host's words and the clock become this run's step state; words are those of step.abi.h. */
VKT_PUSH(vkt_step_advance_push, VKT_U32(update) /* 1: the optimizer's clock advances too */
         VKT_U32(scaled) /* 1: ... not yet: loss_scale.comp sees to that */
         VKT_U32(beta1_low) VKT_U32(beta1_high) VKT_U32(beta2_low) VKT_U32(beta2_high) /* 0.64 fixed point */)
#define ADVANCE_WORDS 0 /* u32 (RING_SLOTS RING_WORDS) */
#define ADVANCE_CLOCK 1 /* u32 (CLOCK_WORDS) */
#define ADVANCE_STEP  2 /* u32 (STEP_WORDS) */
