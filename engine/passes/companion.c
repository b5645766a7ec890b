/* passes/companion.c - finds companions. The dispatches of some nodes can also do the work of a later node. Such a
 * later node is called the companion of the earlier node, and the earlier node is its head.
 *
 * The graph keeps both nodes. The lowering leaves out the companion only if the emit of the head calls
 * vkt_fuse_companion. Emit calls this function only where a companion saves time. Without the call, the dispatches and
 * their order are the same as without companions. A companion saves a dispatch. A companion also saves a barrier if the
 * two nodes are neighbours on the longest path of the graph. */
#include "passes/passes.h"

/* Returns whether n, as the companion of `head`, may read t when `head` runs. t must exist before `head` runs, or be an
 * output of `head`. No node between `head` and n may change t. No node changes an activation, an input or a constant.
 * Between `head` and n, no node changes the words of the step state that n reads. Nodes may change all other values in
 * place, for instance parameters. If t is one of these other values, n must be the node right after `head`. */
static bool is_ready(const vkt_graph *g, vkt_tensor t, const vkt_node *head, const vkt_node *n)
{
    const vkt_value *v = &g->values[vkt_root(g, t)];
    if (!t.id || v->role == VKT_ROLE_CONST || v->role == VKT_ROLE_STEP) return true;
    if (v->role != VKT_ROLE_ACTIVATION && v->role != VKT_ROLE_INPUT) return n->index == head->index + 1;
    return !v->producer || v->producer <= head->index + 1;
}

/* Returns whether n changes the memory of an input of `head` in place. Any work group of `head` may read this input at
 * any time, so no dispatch of `head` may change it. */
static bool changes_input(const vkt_graph *g, const vkt_node *head, const vkt_node *n)
{
    for (uint32_t o = 0; o < n->n_out; o++)
        for (uint32_t i = 0; i < head->n_in; i++)
            if (n->out[o].id && head->in[i].id && vkt_root(g, n->out[o]) == vkt_root(g, head->in[i])) return true;
    return false;
}

static void find(vkt_graph *g, vkt_node *n)
{
    const uint32_t producer = g->values[vkt_root(g, n->in[n->op->head_in - 1])].producer;
    vkt_node *head = producer ? g->nodes[producer - 1] : NULL;
    bool fits = head && head->op->is_companion && !head->companion && !n->epilogue && !n->fused_into &&
                head->op->is_companion(head, n) && !changes_input(g, head, n);
    for (uint32_t i = 0; fits && i < n->n_in; i++) fits = is_ready(g, n->in[i], head, n);
    if (fits) head->companion = n->index + 1;
}

void vkt_find_companions(vkt_graph *g, const bool *live)
{
    for (size_t i = 0; i < g->n_nodes && !g->no_fuse; i++)
        if (live[i] && g->nodes[i]->op->head_in) find(g, g->nodes[i]);
}
