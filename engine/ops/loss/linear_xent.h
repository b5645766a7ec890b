/* ops/loss/linear_xent.h - what the two files of linear_cross_entropy share: linear_xent.c has the op descriptors, and
 * linear_xent_emit.c emits the dispatches. */
#ifndef VKT_LINEAR_XENT_H
#define VKT_LINEAR_XENT_H

#include "ops/ops.h"

/* Inputs and outputs. Only linear_cross_entropy_dx has the input DLOSS, and outputs from GRADS on: dx, dw or both. */
enum { VKT_XENT_X = 0, VKT_XENT_W, VKT_XENT_T, VKT_XENT_DLOSS };
enum { VKT_XENT_OUT_LOSS = 0, VKT_XENT_OUT_COUNT, VKT_XENT_OUT_GRADS };
/* Bits of vkt_linear_xent_attr.grads. */
enum { VKT_XENT_GRAD_X = 1, VKT_XENT_GRAD_W = 2 };

/* Returns the format and the shape of the weights. Format 0: the weights are f32. */
static inline vkt_quantized_attr vkt_linear_xent_weights(const vkt_linear_xent_attr *a)
{
    return (vkt_quantized_attr){ .format = a->format, .rows = a->rows, .columns = a->columns };
}

/* Returns the output that has the gradient `grad` (one bit of `grads`). {0}: the node does not compute it. */
static inline vkt_tensor vkt_linear_xent_gradient(const vkt_node *n, uint32_t grad)
{
    const vkt_linear_xent_attr *a = n->attr;
    if (!(a->grads & grad)) return (vkt_tensor){ 0 };
    return n->out[VKT_XENT_OUT_GRADS + (grad == VKT_XENT_GRAD_W && a->grads & VKT_XENT_GRAD_X)];
}

/* The function `emit` of linear_cross_entropy and of linear_cross_entropy_dx. */
void vkt_linear_xent_emit(const vkt_node *n, vkt_emit *e);

#endif
