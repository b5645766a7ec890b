/* adam.abi.h - one window of the arenas; n4 vec4s, the same range of each. Complements are formed in double by the host. */
VKT_PUSH(vkt_adam_push, VKT_U32(n4) VKT_F32(weight_decay) VKT_F32(beta1) VKT_F32(one_minus_beta1) VKT_F32(beta2)
         VKT_F32(one_minus_beta2) VKT_F32(eps) VKT_U32(keras))
#define ADAM_SPEC_SCALED 1 /* gradients are multiplied by STEP_SCALE; with STEP_FOUND nothing is done */
#define ADAM_PARAM       0 /* vec4, read; ADAM_PARAM_OUT is the same memory, written; so with the moments */
#define ADAM_GRAD        1
#define ADAM_MOMENT1     2
#define ADAM_MOMENT2     3
#define ADAM_STEP        4 /* u32 (STEP_WORDS) */
#define ADAM_PARAM_OUT   5
#define ADAM_MOMENT1_OUT 6
#define ADAM_MOMENT2_OUT 7
