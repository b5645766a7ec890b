/* passes/passes.h - analyses of a whole graph before it is lowered. */
#ifndef VKT_PASSES_H
#define VKT_PASSES_H

#include "ir/ir.h"

/* Sets live[i] if node i has a side effect, writes a parameter, gradient or moment, makes a kept value, or feeds a live
 * node. */
void vkt_find_live(const vkt_graph *g, bool *live);
/* Sets half[id] if value `id` may be stored in 16 bits. It must be f32, an activation or an input, and consist of whole
 * vec4s, and every live node that makes or reads it must support this (vkt_op.half, vkt_op.half_rows). */
void vkt_find_half(const vkt_graph *g, const bool *live, bool *half);

/* Fuses live nodes as epilogues to the producer of their operand, if its op descriptor supports this kind
 * (vkt_op.epilogues): relu, dropout, the sum with an existing tensor, and the gradient of an activation whose other
 * operand exists. Call it after the graph's gradients have been added. With `no_fuse` it does nothing. */
void vkt_find_epilogues(vkt_graph *g, const bool *live);

#endif
