/* update.abi.h - what the optimizers' kernels share. Each dispatch takes one window of the arenas, the same range of all.
 *
 * Parameters start at multiples of UPDATE_BLOCK floats, so what differs from one to another is a table with a pair for each
 * such block: factor of the learning rate, negative for a parameter that is frozen; and weight decay. */
#ifndef VKT_UPDATE_ABI_H
#define VKT_UPDATE_ABI_H
#define UPDATE_PUSH                                                                                            \
    VKT_U32(n4)           /* vec4s of the window */                                                            \
    VKT_U32(block)        /* the window's first pair of UPDATE_GROUPS */                                       \
    VKT_F32(weight_decay) /* where there are no groups */                                                      \
    VKT_U32(decoupled)    /* 1: weight decay is p -= lr wd p, else it is added to the gradient */              \
    VKT_F32(clip)         /* with UPDATE_SPEC_CLIP, the most that an element of the gradient may be */
#define UPDATE_SPEC_FACTOR 1 /* gradients are multiplied by STEP_FACTOR; with STEP_HOLD nothing is done */
#define UPDATE_SPEC_GROUPS 2
#define UPDATE_SPEC_CLIP   3
#define UPDATE_BLOCK       64
#define UPDATE_PARAM       0 /* vec4, read; UPDATE_PARAM_OUT is the same memory, written */
#define UPDATE_GRAD        1 /* vec4: gradients, or their sum over micro-batches */
#define UPDATE_STEP        2 /* u32 (STEP_WORDS) */
#define UPDATE_GROUPS      3 /* f32 (blocks,2); any buffer, not read, where there are no groups */
#define UPDATE_PARAM_OUT   4
#define UPDATE_MOMENT1     5 /* vec4, as the optimizer has moments; each is followed by its output, the same memory */
#define UPDATE_MOMENT1_OUT 6
#define UPDATE_MOMENT2     7
#define UPDATE_MOMENT2_OUT 8
#define UPDATE_MOMENT3     9
#define UPDATE_MOMENT3_OUT 10
#endif
