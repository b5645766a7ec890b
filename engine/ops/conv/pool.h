/* ops/conv/pool.h - functions that emit the dispatches of poolings and of their gradients (conv/pool_split.c), and that
 * add the node of a gradient (conv/pool_dx.c). Other ops that compute a pooling use them, too. */
#ifndef VKT_POOL_H
#define VKT_POOL_H

#include "ops/ops.h"

typedef struct vkt_pool2d_dx_attr {
    vkt_pool2d_attr pool;
    vkt_shape x; /* shape of the gradient */
} vkt_pool2d_dx_attr;

/* Returns the number of rows (axis 0) or columns (axis 1) from the first element of a window to its last, both
 * included; 0 if the pooling is adaptive. */
uint64_t vkt_pool2d_reach(const vkt_pool2d_attr *a, uint32_t axis);

/* Returns true if the windows of R x S elements are disjoint, without dilation or padding, and leave no gap except at
 * the far edges. In ceil mode, the far edges may clip the last windows. Sets cell to {R, S}. */
bool vkt_pool2d_is_disjoint(const vkt_pool2d_attr *a, vkt_shape x, uint32_t cell[2]);

/* Emits the dispatches that compute y from x (N,C,H,W). For a max pooling, they also write `index`. */
void vkt_emit_pool2d(vkt_emit *e, const vkt_pool2d_attr *a, vkt_tensor x, vkt_tensor y, vkt_tensor index);
/* Emits the dispatches that compute dx from dy. For a max pooling, they also read `index`. */
void vkt_emit_pool2d_dx(vkt_emit *e, const vkt_pool2d_dx_attr *a, vkt_tensor dy, vkt_tensor index, vkt_tensor dx);

/* Adds a node that computes the gradient dx, of shape `x`, of a max or average pooling. The node's inputs are dy
 * (N,C,P,Q) and, for a max pooling, the winners' indices from pool2d. For an average pooling, `index` is {0}. */
vkt_tensor vkt_max_pool2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor index, const vkt_pool2d_attr *a, vkt_shape x);
/* Returns true if n is the gradient of a max pooling whose windows are disjoint (vkt_pool2d_is_disjoint). Sets cell to
 * the size {R, S} of a window. Input 0 of n is dy, and input 1 is the index. */
bool vkt_is_unpool(const vkt_node *n, uint32_t cell[2]);
/* Emits the gradient dx (N,C,H,W) of a max pooling over disjoint windows of cell[0] x cell[1]. */
void vkt_emit_unpool(vkt_emit *e, vkt_tensor dy, vkt_tensor index, const uint32_t cell[2], vkt_tensor dx);

#endif
