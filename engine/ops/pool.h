/* ops/pool.h - the gradient of a max pooling, for who has the pooling or its gradient within a node of their own. */
#ifndef VKT_POOL_H
#define VKT_POOL_H

#include "ops/ops.h"

/* dx (`x`) of dy (N,C,P,Q) and of the winners' indices, as pool2d has them. */
vkt_tensor vkt_max_pool2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor index, const vkt_pool2d_attr *a, vkt_shape x);
/* Whether n is the gradient of a max pooling whose windows are disjoint cells R x S: in[0] is dy, in[1] the index. */
bool vkt_is_unpool(const vkt_node *n, uint32_t cell[2]);
/* Its dispatches, for dx (N,C,H,W). */
void vkt_emit_unpool(vkt_emit *e, vkt_tensor dy, vkt_tensor index, const uint32_t cell[2], vkt_tensor dx);

#endif
