/* passes/passes.h - analyses of a whole graph before it is lowered.
 *
 * Four ways to fuse nodes exist. Use the first one that fits:
 *
 * - Epilogue (passes/epilogue.c): the later node works element by element on the result of the earlier node. Gradients
 *   and graph do not change; only the lowering does. vkt_op.epilogues names the kinds that the earlier node's op
 *   supports. Examples: relu, dropout, sums, gradients of activations. There is one case the other way round: the
 *   gradient of a batch norm, which is the later node, computes the gradient of the relu behind the norm
 *   (vkt_op.slope_in).
 *
 * - Companion (passes/companion.c): each operand of the later node exists when the earlier node runs, or is a result of
 *   the earlier node. The dispatches of the earlier node can do the work of both nodes (vkt_op.is_companion).
 *   Examples: running statistics, the gradient of cross-entropy.
 *
 * - vkt_op.fuse, called by vkt_backward before the reverse traversal: the nodes of a chain become one node
 *   (vkt_node_become). If the chain ends with the loss, this node may also compute the gradients. No other node may
 *   read the values inside the chain, which are not stored. Examples: convolution, relu and max pooling
 *   (conv2d_max_pool); linear layers and mse (mlp_mse).
 *
 * - vkt_op.backward: a gradient is computed from the inputs of the node that produces dy, instead of from dy. The
 *   forward nodes stay. Example: the gradient of a convolution's weights from a pooled gradient (conv2d_dw_unpool).
 *
 * A network that the user builds as one node (vkt_mlp) is an op, not a fusion. VKT_NO_FUSE=1 switches all four off.
 * Tests compare the results with and without fusion. */
#ifndef VKT_PASSES_H
#define VKT_PASSES_H

#include "ir/ir.h"

/* Sets live[i] if node i has a side effect, or writes a kept value, or writes a value that is not an activation (for
 * instance a parameter or a gradient), or feeds a live node. */
void vkt_find_live(const vkt_graph *g, bool *live);
/* Sets half[id] if value `id` may be stored in 16 bits. The value must be an f32 activation or input that consists of
 * whole vec4s. Every live node that writes or reads the value must support 16 bits (vkt_op.half, vkt_op.half_rows). */
void vkt_find_half(const vkt_graph *g, const bool *live, bool *half);

/* Fuses live nodes as epilogues with the producer of their operand, if the producer's op supports epilogues of
 * their kind (vkt_op.epilogues, vkt_op.late_epilogues). The nodes are relus, dropouts, sums, and gradients of
 * activations. The other operand of a sum or of a gradient must exist before the producer runs. Also fuses the gradient
 * of a relu with the node that reads this gradient (vkt_op.slope_in). Call this function after the graph's gradients
 * have been added. If g->no_fuse is set, the function does nothing. */
void vkt_find_epilogues(vkt_graph *g, const bool *live);

/* Finds the companions of live nodes. The companion of a node is a later node. Each operand of the companion exists
 * when the first node runs, or is a result of the first node. If the emit of the first node calls vkt_fuse_companion,
 * the dispatches of this node do the companion's work. Examples: the running statistics of a norm, and the gradient of
 * cross-entropy. If g->no_fuse is set, the function does nothing. */
void vkt_find_companions(vkt_graph *g, const bool *live);

#endif
