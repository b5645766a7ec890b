/* ops/product/mlp.h - fully connected networks in one node: their inputs and outputs, and the dispatches that compute
 * the networks. User: mlp.c. */
#ifndef VKT_MLP_H
#define VKT_MLP_H

#include "ops/ops.h"

#include "abi/mlp_layout.abi.h"

_Static_assert(MLP_LAYERS == VKT_MLP_MAX_LAYERS, "the public header and the shaders agree");

/* The first inputs of a node: x, then dy (GRAD) or target and dloss (MSE). The parameters follow. vkt_mlp_pass says
 * what the node computes. */
enum { VKT_MLP_IN_X = 0, VKT_MLP_IN_DY = 1, VKT_MLP_IN_TARGET = 1, VKT_MLP_IN_DLOSS = 2 };
typedef enum vkt_mlp_pass {
    VKT_MLP_FORWARD, /* x -> y */
    VKT_MLP_MSE,     /* x, target, dloss -> loss, gradients */
    VKT_MLP_GRAD     /* x, dy -> gradients */
} vkt_mlp_pass;

static inline vkt_tensor vkt_mlp_weight(const vkt_node *n, uint32_t layer)
{
    return n->in[((const vkt_mlp_attr *)n->attr)->params + 2 * layer];
}
static inline vkt_tensor vkt_mlp_bias(const vkt_node *n, uint32_t layer)
{
    return n->in[((const vkt_mlp_attr *)n->attr)->params + 2 * layer + 1];
}
/* Returns the output of n that is the gradient of input i, or {0} if this gradient is not wanted. Output `first` is the
 * first gradient. */
vkt_tensor vkt_mlp_grad(const vkt_node *n, uint32_t first, uint32_t i);

void vkt_emit_mlp(const vkt_node *n, vkt_emit *e, vkt_mlp_pass pass);

#endif
