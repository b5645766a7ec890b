/* ops/loss/linear_xent.h - what the two files of linear_cross_entropy share: linear_xent.c has the op descriptors,
 * linear_xent_emit.c the dispatches. */
#ifndef VKT_LINEAR_XENT_H
#define VKT_LINEAR_XENT_H

#include "ops/ops.h"

/* Inputs and outputs. The gradients are outputs of linear_cross_entropy_dx. */
enum { VKT_XENT_X = 0, VKT_XENT_W, VKT_XENT_T, VKT_XENT_DLOSS };
enum { VKT_XENT_OUT_LOSS = 0, VKT_XENT_OUT_COUNT, VKT_XENT_OUT_GRADS };
/* Bits of vkt_linear_xent_attr.grads. */
enum { VKT_XENT_GRAD_X = 1, VKT_XENT_GRAD_W = 2 };

/* Returns the attributes of the weights, if they are quantized. */
static inline vkt_quantized_attr vkt_linear_xent_weights(const vkt_linear_xent_attr *a)
{
    return (vkt_quantized_attr){ .format = a->format, .rows = a->rows, .columns = a->columns };
}

/* Returns the output of a gradient; {0}: the node does not compute it. */
static inline vkt_tensor vkt_linear_xent_gradient(const vkt_node *n, uint32_t grad)
{
    const vkt_linear_xent_attr *a = n->attr;
    if (!(a->grads & grad)) return (vkt_tensor){ 0 };
    return n->out[VKT_XENT_OUT_GRADS + (grad == VKT_XENT_GRAD_W && a->grads & VKT_XENT_GRAD_X)];
}

/* vkt_op.emit of both ops. */
void vkt_linear_xent_emit(const vkt_node *n, vkt_emit *e);

#endif
