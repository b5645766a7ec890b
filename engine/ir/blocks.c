/* ir/blocks.c - marks nodes as a block that is computed again for its gradients (vkt_recompute_begin). The list of
 * blocks is read by vkt_backward and vkt_gradients (autodiff/autodiff.c). */
#include "ir/ir.h"

static bool is_open(const vkt_graph *g)
{
    return g->n_blocks && g->blocks[g->n_blocks - 1].end == UINT32_MAX;
}

void vkt_recompute_begin(vkt_graph *g)
{
    if (vkt_graph_status(g) != VKT_OK) return;
    vkt_result r = VKT_OK;
    if (g->finished)
        r = vkt_fail(&g->host, VKT_E_STATE, "recompute_begin: a program was made from this graph already");
    else if (is_open(g))
        r = vkt_fail(&g->host, VKT_E_STATE,
                     "recompute_begin: a block is open already; end it first, because blocks cannot be nested");
    else
        r = vkt_grow(&g->host, &g->blocks, g->n_blocks, &g->cap_blocks, sizeof *g->blocks);
    if (r == VKT_OK)
        g->blocks[g->n_blocks++] = (vkt_block){ (uint32_t)g->n_nodes, UINT32_MAX };
    else
        vkt_graph_error(g, r);
}

void vkt_recompute_end(vkt_graph *g)
{
    if (vkt_graph_status(g) != VKT_OK) return;
    if (is_open(g))
        g->blocks[g->n_blocks - 1].end = (uint32_t)g->n_nodes;
    else
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_STATE, "recompute_end: no block is open; want a recompute_begin"));
}

vkt_result vkt_check_blocks(vkt_graph *g, const char *what)
{
    if (is_open(g))
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_STATE, "%s: a block is open; want a recompute_end before", what));
    return g->status;
}
