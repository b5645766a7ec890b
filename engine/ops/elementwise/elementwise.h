/* ops/elementwise/elementwise.h - functions that the families of elementwise ops share. */
#ifndef VKT_ELEMENTWISE_H
#define VKT_ELEMENTWISE_H

#include "kernel/ids.h"
#include "ops/ops.h"

/* A kernel of elementwise.comp or dropout.comp, its function (functions.abi.h, or DROPOUT_SUM of dropout.abi.h) and the
 * parameters of the function. */
typedef struct vkt_flat {
    uint16_t kernel;
    uint32_t function;
    float p, q;
} vkt_flat;
/* Emits output 0 of n, as function f of all inputs, element by element. Inputs have the output's shape and layout. */
void vkt_emit_flat(const vkt_node *n, vkt_emit *e, vkt_flat f);
/* Emits y = x. The two tensors have the same shape and layout, and each is f32 or f16. */
void vkt_emit_convert(vkt_emit *e, vkt_tensor x, vkt_tensor y);
/* Emits y = dropout(f(x)), with the attributes of the node `dropout`. If f.kernel is VKT_K_DROPOUT, there is no
 * function: emits y = dropout(x). The attribute `planes` of the dropout must be false. */
void vkt_emit_dropout(vkt_emit *e, const vkt_node *dropout, vkt_tensor x, vkt_tensor y, vkt_flat f);
/* Returns the next epilogue of the node being lowered, if this epilogue is a dropout that vkt_emit_dropout can compute
 * together with the node. The caller must then emit the node and the dropout. Else returns NULL. */
const vkt_node *vkt_take_dropout(vkt_emit *e);
/* Returns the next epilogue of the node being lowered, if this epilogue is a dropout with one random number for each
 * element, or for each plane (n,c) of a tensor (N,C,H,W) with C = `channels`. The caller must then emit the node and
 * the dropout. Else returns NULL. */
const vkt_node *vkt_take_dropout_of_image(vkt_emit *e, uint32_t channels);
/* Attributes of unary_dx. */
typedef struct vkt_slope_attr {
    float p, q;      /* parameters of the function */
    uint32_t number; /* the function: UNARY_ of functions.abi.h */
    uint32_t flops;  /* per element */
} vkt_slope_attr;
/* Returns the kernel, function and parameters for n, a node of unary_dx. */
static inline vkt_flat vkt_slope_of(const vkt_node *n)
{
    const vkt_slope_attr *a = n->attr;
    return (vkt_flat){ VKT_K_UNARY_DX, a->number, a->p, a->q };
}
/* Infers one output like input 0, which must be f32. */
vkt_result vkt_infer_same(vkt_infer *f);
/* Returns true if n is the gradient of relu. */
bool vkt_is_relu_dx(const vkt_node *n);
vkt_layout vkt_draw_layout(vkt_rng *r);

#endif
