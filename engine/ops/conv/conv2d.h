/* ops/conv/conv2d.h - the nodes of a convolution, for ops whose gradient is a convolution and for ops that are fused
 * with one. */
#ifndef VKT_CONV2D_H
#define VKT_CONV2D_H

#include "ops/conv/geometry.h"

/* Fuses the max pooling n with `conv` and, if `relu`, with the relu between them. Returns false if there is no kernel
 * for it (conv/fused_max_pool.c). No other node may read the values between them. */
bool vkt_conv2d_fuse_max_pool(vkt_graph *g, vkt_node *n, const vkt_node *conv, bool relu);

/* Adds the gradients of a node whose inputs are x, w and, optionally, bias: those of dx[0..2] that are wanted. */
void vkt_conv2d_backward(vkt_graph *g, const vkt_node *n, const vkt_conv2d_attr *a, vkt_tensor dy, vkt_tensor *dx);
/* Add the gradients as nodes. dx (N,C,H,W) for `in` = {H, W}. dw (O,C/G,R,S) for `kernel` = {R, S} and, if `bias`, db.
 */
vkt_tensor vkt_conv2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor w, const vkt_conv2d_attr *a, const uint32_t in[2]);
vkt_tensor vkt_conv2d_dw(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a, const uint32_t kernel[2],
                         bool bias, vkt_tensor *db);
/* Adds dw and db, fused with the gradient of a max pooling (conv/fused_unpool.c). The producer of dy must be such a
 * gradient, and no node may read dy yet; else it returns {0}. */
vkt_tensor vkt_conv2d_dw_unpool(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a,
                                const uint32_t kernel[2], bool bias, vkt_tensor *db);

#endif
