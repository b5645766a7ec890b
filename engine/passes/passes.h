/* passes/passes.h - what is worked out over a whole graph before it is lowered. */
#ifndef VKT_PASSES_H
#define VKT_PASSES_H

#include "ir/ir.h"

/* live[i]: node i has a side effect, writes a parameter, gradient or moment, makes a kept value, or feeds a live node.
 */
void vkt_find_live(const vkt_graph *g, bool *live);
/* half[id]: value `id` may be stored in 16 bits: it is f32 with the batch last, an activation or an input, and every
 * live node that makes or reads it says that its kernels can (vkt_op.half). */
void vkt_find_half(const vkt_graph *g, const bool *live, bool *half);

/* Has live nodes lowered within the one that makes their operand, where its row takes such a stage (vkt_op.takes):
 * relu, dropout, the sum with a tensor that is there already, the gradient of an activation that is. The graph's
 * gradients have been added before. `no_fuse`: does nothing. */
void vkt_find_epilogues(vkt_graph *g, const bool *live);

#endif
