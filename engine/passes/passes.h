/* passes/passes.h - what is worked out over a whole graph before it is lowered. */
#ifndef VKT_PASSES_H
#define VKT_PASSES_H

#include "ir/ir.h"

/* live[i]: node i has a side effect, writes a parameter, gradient or moment, makes a kept value, or feeds a live node.
 */
void vkt_find_live(const vkt_graph *g, bool *live);

#endif
