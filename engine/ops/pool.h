/* ops/pool.h - the gradient of a max pooling as a node, for who has the pooling within a node of its own. */
#ifndef VKT_POOL_H
#define VKT_POOL_H

#include "ops/ops.h"

/* dx (`x`) of dy (N,C,P,Q) and of the winners' indices, as pool2d has them. */
vkt_tensor vkt_max_pool2d_dx(vkt_graph *g, vkt_tensor dy, vkt_tensor index, const vkt_pool2d_attr *a, vkt_shape x);

#endif
