/* ops/conv/conv2d.h - functions that add the nodes of a convolution's gradients, and that fuse a convolution with a max
 * pooling. Users: ops whose gradient is a convolution, and pool.c. */
#ifndef VKT_CONV2D_H
#define VKT_CONV2D_H

#include "ops/conv/geometry.h"

/* Fuses the max pooling n with `conv` and, if `relu` is true, with the relu between them. Returns false, and changes
 * nothing, if no kernel computes the fused node, or if separate nodes may be better (conv/fused_max_pool.c). Before the
 * call, the caller checks that only these nodes read the values between them. */
bool vkt_conv2d_fuse_max_pool(vkt_graph *g, vkt_node *n, const vkt_node *conv, bool relu);

/* Adds the gradients of a node whose inputs are x, w and, optionally, bias. Sets dx[i] if input i needs a gradient.
 * dx[1] is also set if bias needs a gradient and w does not, because dw and db are outputs of one node. */
void vkt_conv2d_backward(vkt_graph *g, const vkt_node *n, const vkt_conv2d_attr *a, vkt_tensor dy, vkt_tensor *dx);
/* Each of the next two functions adds a node that computes gradients. vkt_conv2d_dx returns dx (N,C,H,W), with `in` =
 * {H, W}. vkt_conv2d_dw returns dw (O,C/G,R,S), with `kernel` = {R, S}; *db is {0} unless `bias` is true. */
vkt_tensor vkt_conv2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor w, const vkt_conv2d_attr *a, const uint32_t in[2]);
vkt_tensor vkt_conv2d_dw(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a, const uint32_t kernel[2],
                         bool bias, vkt_tensor *db);
/* Adds dw and db, fused with the gradient of a max pooling (conv/fused_unpool.c). Returns {0} if dy is not the gradient
 * of a max pooling over disjoint windows, if a node reads dy already, or if the graph does not fuse (no_fuse). */
vkt_tensor vkt_conv2d_dw_unpool(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a,
                                const uint32_t kernel[2], bool bias, vkt_tensor *db);

#endif
