/* autodiff/again.c - computes the nodes of a block (vkt_recompute_begin) a second time, just before their gradients.
 * So most values inside a block need not stay in memory between the forward and the backward pass (gradient
 * checkpointing; Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
 *
 * A second node has the op and the attributes of the first node. The step state, parameters and inputs do not change
 * before the update. So the second node generates the same random numbers and computes the same bits. A second node
 * whose outputs no gradient needs is dead code, and passes/live.c removes it.
 *
 * Some nodes get no second node: nodes with side effects, because an effect must not happen twice; nodes that run
 * before all others (vkt_op.prologue); and nodes whose outputs are all kept (vkt_keep). Kept values stay in memory
 * anyway. So a second node reads the output of a first node if this output is kept, or if the first node has no second
 * node.
 *
 * The inputs of a block exist long before its gradients. A schedule could therefore run the second nodes early, and
 * their results would stay in memory. So plan/schedule.c runs each second node behind the node that vkt_node.after
 * names: the last node that computes a gradient which enters the block from later nodes. If no node behind the block
 * computes such a gradient, vkt_node.after names the last node of the block. */
#include "autodiff/again.h"

#include <stdio.h>

vkt_result vkt_again_begin(vkt_again *a, vkt_graph *g)
{
    *a = (vkt_again){ NULL };
    if (!g->n_blocks) return VKT_OK;
    a->value = vkt_alloc_array(&g->host, g->n_values, sizeof *a->value);
    a->node = vkt_alloc_array(&g->host, g->n_nodes + 1, sizeof *a->node);
    return a->value && a->node ? VKT_OK : vkt_fail_nomem(&g->host, "backward", g->n_values * sizeof *a->value);
}

void vkt_again_end(vkt_again *a, vkt_graph *g)
{
    vkt_free(&g->host, a->value);
    vkt_free(&g->host, a->node);
}

static bool is_repeated(const vkt_graph *g, const vkt_node *n)
{
    bool all_kept = n->n_out > 0;
    for (uint32_t k = 0; k < n->n_out; k++) all_kept &= g->values[n->out[k].id].keep;
    return !n->op->side_effect && !n->op->prologue && !all_kept;
}

/* Returns the first node behind n that changes the state t in place. NULL: there is none, or t is not a state. */
static const vkt_node *changed_by(const vkt_graph *g, const vkt_node *n, vkt_tensor t)
{
    const uint32_t root = vkt_root(g, t);
    if (!g->values[root].state) return NULL;
    for (size_t i = n->index + 1; i < g->n_nodes; i++)
        for (uint32_t k = 0; g->nodes[i]->op->side_effect && k < g->nodes[i]->n_out; k++)
            if (vkt_root(g, g->nodes[i]->out[k]) == root) return g->nodes[i];
    return NULL;
}

static vkt_result check_states(const vkt_graph *g, const vkt_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++) {
        const vkt_node *by = n->in[k].id ? changed_by(g, n, n->in[k]) : NULL;
        if (by)
            return vkt_fail(&g->host, VKT_E_STATE,
                            "recompute: '%s' cannot be computed again, because it reads the state '%s', which %s "
                            "changes; leave it out of the block",
                            n->n_out ? g->values[n->out[0].id].name : n->op->name,
                            g->values[vkt_root(g, n->in[k])].name, by->op->name);
    }
    return VKT_OK;
}

static vkt_result repeat(vkt_again *a, vkt_graph *g, const vkt_node *n, uint32_t after)
{
    vkt_tensor in[VKT_MAX_IN] = { { 0 } }, out[VKT_MAX_OUT];
    VKT_TRY(check_states(g, n));
    const uint32_t n_in = n->op->uses_step ? n->op->max_in : n->n_in; /* without the step state: vkt_apply adds it */
    for (uint32_t k = 0; k < n_in; k++) in[k] = a->value[n->in[k].id].id ? a->value[n->in[k].id] : n->in[k];
    vkt_apply(g, n->op, in, n_in, n->attr, out);
    VKT_TRY(g->status);
    a->node[n->index] = g->nodes[g->n_nodes - 1];
    a->node[n->index]->after = after;
    for (uint32_t k = 0; k < n->n_out; k++) {
        char name[VKT_NAME_MAX];
        snprintf(name, sizeof name, "%.40s again", g->values[n->out[k].id].name);
        memcpy(g->values[out[k].id].name, name, sizeof name);
        if (!g->values[n->out[k].id].keep) a->value[n->out[k].id] = out[k];
    }
    return VKT_OK;
}

/* Makes value `again` the second value of value `id`. If value `id` has second values already, makes value `again` the
 * second value of the newest of them. From then on, `readers` of value `again` counts the readers of all these values
 * (vkt_readers). */
static void link_values(vkt_graph *g, uint32_t id, uint32_t again)
{
    g->values[again].readers = vkt_readers(g, (vkt_tensor){ id });
    while (g->values[id].again) id = g->values[id].again;
    g->values[id].again = again;
}

vkt_result vkt_compute_again(vkt_again *a, vkt_graph *g, const vkt_block *block, uint32_t after)
{
    for (uint32_t i = block->first; i < block->end; i++)
        if (is_repeated(g, g->nodes[i])) VKT_TRY(repeat(a, g, g->nodes[i], after));
    for (uint32_t i = block->first; i < block->end; i++)
        for (uint32_t k = 0; k < g->nodes[i]->n_out; k++) {
            const uint32_t id = g->nodes[i]->out[k].id;
            if (a->value[id].id) link_values(g, id, a->value[id].id);
        }
    return VKT_OK;
}
