/* passes/epilogue.c - a relu, a dropout, or a sum or an activation's gradient with what is there already, is done by
 * the node before it as it stores.
 *
 * The graph keeps both nodes: gradients and audits know nothing of it, and a printed program says what is within what.
 * The later one's output becomes an alias of the earlier one's, like that of a reshape, and the lowering passes over
 * it: the dispatches of the earlier one do its work (vkt_take), or others in place. So one store of the tensor is left
 * of two, and one load less. */
#include "passes/passes.h"

static bool lie_alike(const vkt_value *a, const vkt_value *b)
{
    return a->dtype == b->dtype && a->layout == b->layout && vkt_shape_equal(a->shape, b->shape);
}

/* The node whose dispatches make what t's memory holds; NULL: none of this graph's. */
static vkt_node *maker_of(const vkt_graph *g, vkt_tensor t)
{
    const uint32_t producer = g->values[vkt_root(g, t)].producer;
    return producer ? g->nodes[producer - 1] : NULL;
}

/* Whether n may be the next one within the node that makes its input i, for which nobody else waits. */
static bool fits_behind(const vkt_graph *g, const vkt_node *n, uint32_t i)
{
    const vkt_node *last = vkt_sole_maker(g, n->in[i]), *head = maker_of(g, n->in[i]);
    if (!last || !head || (last != head && !last->within) || last->then) return false;
    const vkt_value *y = vkt_node_out(head, 0);
    return vkt_root(g, n->in[i]) == head->out[0].id && y->role == VKT_ROLE_ACTIVATION &&
           (head->op->takes >> n->op->stage & 1) && lie_alike(vkt_node_in(n, i), vkt_node_out(n, 0));
}

/* Whether head may put its output where t lies (plan/plan.c), which a dispatch behind its first would then not find. */
static bool may_overwrite(const vkt_graph *g, const vkt_node *head, vkt_tensor t)
{
    bool may = false;
    for (uint32_t i = 0; i < head->n_in; i++)
        may |= (head->op->in_place >> i & 1) && vkt_root(g, head->in[i]) == vkt_root(g, t);
    return may;
}

/* Whether t is there before `head` is run, and the same as when it was made. */
static bool is_ready(const vkt_graph *g, vkt_tensor t, const vkt_node *head)
{
    const vkt_role role = g->values[vkt_root(g, t)].role;
    const vkt_node *maker = maker_of(g, t);
    return (role == VKT_ROLE_ACTIVATION || role == VKT_ROLE_INPUT) && (!maker || maker->index < head->index) &&
           !may_overwrite(g, head, t);
}

static void put_behind(vkt_graph *g, vkt_node *n, uint32_t i)
{
    vkt_node *last = g->nodes[vkt_sole_maker(g, n->in[i])->index];
    last->then = n->index + 1;
    n->within = true;
    g->values[n->out[0].id].alias = n->in[i].id;
}

static void place(vkt_graph *g, vkt_node *n)
{
    const vkt_stage stage = n->op->stage;
    if ((stage == VKT_STAGE_RELU || stage == VKT_STAGE_DROPOUT) && fits_behind(g, n, 0)) put_behind(g, n, 0);
    if (stage != VKT_STAGE_SUM && stage != VKT_STAGE_SLOPE) return;
    for (uint32_t i = stage == VKT_STAGE_SLOPE; i < 2 && !n->within; i++)
        if (lie_alike(vkt_node_in(n, 0), vkt_node_in(n, 1)) && fits_behind(g, n, i) &&
            is_ready(g, n->in[1 - i], maker_of(g, n->in[i])))
            put_behind(g, n, i);
}

void vkt_find_epilogues(vkt_graph *g, const bool *live)
{
    if (g->no_fuse) return;
    for (size_t i = 0; i < g->n_nodes; i++) {
        vkt_node *n = g->nodes[i];
        const vkt_value *y = n->n_out ? vkt_node_out(n, 0) : NULL;
        if (live[i] && y && y->role == VKT_ROLE_ACTIVATION && !y->alias && !n->within) place(g, n);
    }
}
