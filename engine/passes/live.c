/* passes/live.c - dead code elimination: a node without side effect does not run if its results are not used. */
#include "passes/passes.h"

static bool has_effect(const vkt_graph *g, const vkt_node *n)
{
    if (n->op->side_effect) return true;
    for (uint32_t k = 0; k < n->n_out; k++)
        if (g->values[n->out[k].id].keep || g->values[vkt_root(g, n->out[k])].role != VKT_ROLE_ACTIVATION) return true;
    return false;
}

void vkt_find_live(const vkt_graph *g, bool *live)
{
    memset(live, 0, g->n_nodes * sizeof *live);
    for (size_t i = g->n_nodes; i-- > 0;) {
        const vkt_node *n = g->nodes[i];
        live[i] |= has_effect(g, n);
        for (uint32_t k = 0; live[i] && k < n->n_in; k++) {
            const uint32_t producer = g->values[n->in[k].id].producer;
            if (producer) live[producer - 1] = true;
        }
    }
}
