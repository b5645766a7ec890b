/* sgd.abi.h - one window of the arenas; n4 vec4s, the same range of each. */
VKT_PUSH(vkt_sgd_push, VKT_U32(n4) VKT_F32(weight_decay) VKT_F32(momentum) VKT_F32(keep) /* 1 - dampening */
         VKT_U32(nesterov))
#define SGD_SPEC_SCALED 1 /* gradients are multiplied by STEP_SCALE; with STEP_FOUND nothing is done */
#define SGD_PARAM      0 /* vec4, read; SGD_PARAM_OUT is the same memory, written */
#define SGD_GRAD       1
#define SGD_BUF        2 /* only with momentum, as is SGD_BUF_OUT */
#define SGD_STEP       3 /* u32 (STEP_WORDS) */
#define SGD_PARAM_OUT  4
#define SGD_BUF_OUT    5
