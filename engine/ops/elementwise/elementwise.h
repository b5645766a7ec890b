/* ops/elementwise/elementwise.h - what the families of elementwise ops share. */
#ifndef VKT_ELEMENTWISE_H
#define VKT_ELEMENTWISE_H

#include "kernel/ids.h"
#include "ops/ops.h"

/* A kernel of elementwise.comp, its function (functions.abi.h) and the parameters of that. */
typedef struct vkt_flat {
    uint16_t kernel;
    uint32_t function;
    float p, q;
} vkt_flat;
/* Output 0 from all inputs, which have its shape and layout. */
void vkt_emit_flat(const vkt_node *n, vkt_emit *e, vkt_flat f);
/* y = dropout(f(x)), as the node `dropout` has it; {VKT_K_DROPOUT}: dropout(x). Not of planes. */
void vkt_emit_dropout(vkt_emit *e, const vkt_node *dropout, vkt_tensor x, vkt_tensor y, vkt_flat f);
/* The dropout that follows within the node being lowered, if vkt_emit_dropout can do both; then it is the caller's. */
const vkt_node *vkt_take_dropout(vkt_emit *e);
/* Attributes of unary_dx. */
typedef struct vkt_slope_attr {
    float p, q; /* the function's attributes */
    uint32_t number;
    uint32_t flops;
} vkt_slope_attr;
/* The function of unary.glsl whose gradient n is. */
static inline vkt_flat vkt_slope_of(const vkt_node *n)
{
    const vkt_slope_attr *a = n->attr;
    return (vkt_flat){ VKT_K_UNARY_DX, a->number, a->p, a->q };
}
/* One output like input 0, which is f32. */
vkt_result vkt_infer_same(vkt_infer *f);
/* Whether n is the gradient of relu. */
bool vkt_is_relu_dx(const vkt_node *n);
vkt_layout vkt_draw_layout(vkt_rng *r);

#endif
