/* update.abi.h - shared by the optimizers' kernels. Each dispatch processes one range of the parameters, and the same
 * range of the gradients and moments.
 *
 * Parameters start at multiples of UPDATE_BLOCK floats. The table UPDATE_GROUPS has a pair for each block of
 * UPDATE_BLOCK floats: the factor of the learning rate (negative for a frozen parameter), and the weight decay. */
#ifndef VKT_UPDATE_ABI_H
#define VKT_UPDATE_ABI_H
#define UPDATE_PUSH                                                                                            \
    VKT_U32(n4)           /* vec4s of the range */                                                             \
    VKT_U32(block)        /* index of the range's first pair in UPDATE_GROUPS */                               \
    VKT_F32(weight_decay) /* used if UPDATE_SPEC_GROUPS is 0 */                                                \
    VKT_U32(decoupled)    /* 1: p -= lr * wd * p; 0: gradient += wd * p (wd is the weight decay) */            \
    VKT_F32(clip)         /* with UPDATE_SPEC_CLIP: elements of the gradient are limited to -clip .. clip */
#define UPDATE_SPEC_FACTOR 1 /* 1: gradients are multiplied by STEP_FACTOR, and nothing is done if STEP_HOLD is not 0 */
#define UPDATE_SPEC_GROUPS 2 /* 1: UPDATE_GROUPS is bound and used */
#define UPDATE_SPEC_CLIP   3 /* 1: gradients are clipped by value */
#define UPDATE_BLOCK       64
#define UPDATE_PARAM       0 /* vec4, read; UPDATE_PARAM_OUT is the same memory, written */
#define UPDATE_GRAD        1 /* vec4: gradients, or their sum over micro-batches or shards */
#define UPDATE_STEP        2 /* u32 (STEP_WORDS) */
#define UPDATE_GROUPS      3 /* f32 (blocks,2); if UPDATE_SPEC_GROUPS is 0: any buffer, not read */
#define UPDATE_PARAM_OUT   4
#define UPDATE_MOMENT1     5 /* vec4: a moment, read; UPDATE_MOMENT1_OUT is the same memory, written */
#define UPDATE_MOMENT1_OUT 6
#define UPDATE_MOMENT2     7
#define UPDATE_MOMENT2_OUT 8
#define UPDATE_MOMENT3     9
#define UPDATE_MOMENT3_OUT 10
#endif
