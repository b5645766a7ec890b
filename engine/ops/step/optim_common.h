/* ops/step/optim_common.h - what all optimizers have in common. Inputs of their ops: param, grad, moments, groups or
 * null, sum of gradients or null, step. The op updates param in place, and also the moments and the sum if they are
 * present. */
#ifndef VKT_OPTIM_COMMON_H
#define VKT_OPTIM_COMMON_H

#include "ops/step/optimizer.h"

#include "abi/abi.h"
#include "abi/update.abi.h"

/* Checks inputs 0 .. max_in - 2 and adds the outputs. The caller has checked the settings. */
vkt_result vkt_optim_infer(vkt_infer *f);
/* Emits the update by `kernel`, and the kernels that run before it. `push` has the kernel's push constants, which begin
 * with `n4` and `block` of abi/update.abi.h; this function sets these two. `extra`: specialisation constant 4. */
void vkt_optim_emit(const vkt_node *n, vkt_emit *e, uint16_t kernel, void *push, size_t push_bytes, uint32_t extra);
/* Generates the settings that all optimizers have, and the inputs: param, grad, the moments that are present, and
 * perhaps groups. The elements of the moment in input i + 2 are from range[i][0] to range[i][1]. */
void vkt_optim_sample(vkt_rng *r, vkt_case *c, vkt_optimizer *o, const float (*range)[2], uint32_t moments);
/* Counts the operations per element that all optimizers have in common: weight decay and clipping. */
double vkt_optim_flops(const vkt_optimizer *o);

/* Push constants that all optimizers have. */
#define VKT_OPTIM_PUSH(o) .weight_decay = (o)->weight_decay, .decoupled = (o)->decoupled, .clip = (o)->clip_value

/* Fields (vkt_op) that all optimizers have. */
#define VKT_OPTIM_FIELDS(default_value)                                                                       \
    VKT_FIELD(vkt_optimizer, kind, U32, 1, default_value), VKT_FIELD(vkt_optimizer, weight_decay, F32, 1, 0), \
        VKT_FIELD(vkt_optimizer, decoupled, BOOL, 1, 0), VKT_FIELD(vkt_optimizer, keras, BOOL, 1, 0),         \
        VKT_FIELD(vkt_optimizer, clip_norm, F32, 1, 0), VKT_FIELD(vkt_optimizer, clip_value, F32, 1, 0),      \
        VKT_FIELD(vkt_optimizer, micro_batches, U32, 1, 1)

#endif
