/* ops/conv/conv2d.h - the nodes of a convolution: for other ops whose gradient is one, or that are fused with one. */
#ifndef VKT_CONV2D_H
#define VKT_CONV2D_H

#include "ops/conv/geometry.h"

/* Makes n, a max pooling of what `conv` and, with `relu`, a relu make, one node with them, if there is a kernel for it
 * (conv/fused_max_pool.c). Nobody else may read what is in between. */
bool vkt_conv2d_fuse_max_pool(vkt_graph *g, vkt_node *n, const vkt_node *conv, bool relu);

/* What backward does for a node whose inputs are x, w and, if there, bias: dx[0..2], as they are wanted. */
void vkt_conv2d_backward(vkt_graph *g, const vkt_node *n, const vkt_conv2d_attr *a, vkt_tensor dy, vkt_tensor *dx);
/* The gradients as nodes: dx (N,C,H,W) for `in` = {H, W}; dw (O,C/G,R,S) for `kernel` = {R, S}, and, with `bias`, db.
 */
vkt_tensor vkt_conv2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor w, const vkt_conv2d_attr *a, const uint32_t in[2]);
vkt_tensor vkt_conv2d_dw(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a, const uint32_t kernel[2],
                         bool bias, vkt_tensor *db);
/* The same where dy, which nobody reads so far, is made by a max pooling's gradient (conv/fused_unpool.c); else {0}. */
vkt_tensor vkt_conv2d_dw_unpool(vkt_graph *g, vkt_tensor x, vkt_tensor dy, const vkt_conv2d_attr *a,
                                const uint32_t kernel[2], bool bias, vkt_tensor *db);

#endif
