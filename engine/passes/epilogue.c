/* passes/epilogue.c - fuses epilogues. An epilogue is a node that reads the output of an earlier node: a relu, a
 * dropout, a sum, or an activation's gradient. The earlier node also computes the epilogue, before it stores its
 * output. The other operand of a sum or of a gradient must exist before the earlier node runs.
 *
 * The graph keeps both nodes, so gradients and audits (vktrain/audit.h) are not affected, and a printed program shows
 * the fusion. The output of the later node becomes an alias of the earlier node's output, as for a reshape, and the
 * lowering skips the later node. The dispatches of the earlier node do the work of the later node (vkt_fuse_epilogue).
 * This saves one store and one load of the tensor. If emit does not call vkt_fuse_epilogue, additional dispatches do
 * the work in place.
 *
 * The gradient of a relu behind a norm is fused the other way round: the later node, which is the norm's gradient, does
 * the work of the relu's gradient (vkt_fuse_slope). */
#include "passes/passes.h"

#include "ops/elementwise/elementwise.h"

static bool have_same_storage(const vkt_value *a, const vkt_value *b)
{
    return a->dtype == b->dtype && a->layout == b->layout && vkt_shape_equal(a->shape, b->shape);
}

/* Returns the node that produces t's root value. NULL: no node produces it (it is a parameter, for instance). */
static vkt_node *producer_of(const vkt_graph *g, vkt_tensor t)
{
    const uint32_t producer = g->values[vkt_root(g, t)].producer;
    return producer ? g->nodes[producer - 1] : NULL;
}

/* Returns whether n may be fused as the next epilogue of the producer of its input i. One condition is that no other
 * node reads this input. */
static bool fits_behind(const vkt_graph *g, const vkt_node *n, uint32_t i, bool late)
{
    const vkt_node *last = vkt_sole_producer_past_views(g, n->in[i]), *head = producer_of(g, n->in[i]);
    if (!last || !head || (last != head && !last->fused_into) || last->epilogue) return false;
    const vkt_value *y = vkt_node_out(head, 0);
    const uint32_t kinds = late ? head->op->late_epilogues : head->op->epilogues;
    return vkt_root(g, n->in[i]) == head->out[0].id && y->role == VKT_ROLE_ACTIVATION &&
           (kinds >> n->op->fuse_kind & 1) && have_same_storage(vkt_node_in(n, i), vkt_node_out(n, 0));
}

/* Returns whether `head` may write its output into t's memory (plan/plan.c). If `head` did so, its first dispatch could
 * overwrite t. Then a later dispatch with the epilogue would read wrong numbers. */
static bool may_overwrite(const vkt_graph *g, const vkt_node *head, vkt_tensor t)
{
    bool may = false;
    for (uint32_t i = 0; i < head->n_in; i++)
        may |= (head->op->in_place >> i & 1) && vkt_root(g, head->in[i]) == vkt_root(g, t);
    return may;
}

/* If n computes a block again (vkt_recompute_begin), returns the node that computes the same outputs first. Else
 * returns n. */
static const vkt_node *first_of(const vkt_graph *g, const vkt_node *n)
{
    for (uint32_t id = 1; n->after && id < n->out[0].id; id++)
        for (uint32_t k = 0; k < n->n_out; k++)
            if (g->values[id].again == n->out[k].id) return first_of(g, g->nodes[g->values[id].producer - 1]);
    return n;
}

/* Returns whether t is computed before `head` runs, and does not change afterwards. If `again` is set, the node that
 * reads t computes a block again. Then the same must be true in the first computation, so that a value is rounded to 16
 * bits in both computations or in none. */
static bool is_ready(const vkt_graph *g, vkt_tensor t, const vkt_node *head, bool again)
{
    const vkt_role role = g->values[vkt_root(g, t)].role;
    const vkt_node *producer = producer_of(g, t);
    return (role == VKT_ROLE_ACTIVATION || role == VKT_ROLE_INPUT) && (!producer || producer->index < head->index) &&
           (!producer || !again || first_of(g, producer)->index < first_of(g, head)->index) &&
           !may_overwrite(g, head, t);
}

static void put_behind(vkt_graph *g, vkt_node *n, uint32_t i)
{
    vkt_node *last = g->nodes[vkt_sole_producer_past_views(g, n->in[i])->index];
    last->epilogue = n->index + 1;
    n->fused_into = producer_of(g, n->in[i])->index + 1;
    g->values[n->out[0].id].alias = n->in[i].id;
}

/* Fuses n with the node that produces input slope_in - 1 of n, if that node is a relu's gradient and only n reads its
 * output. That node must not be fused yet, and its inputs and its output must have the same type, shape and layout.
 * After the fusion, n computes the gradient as it loads the input. */
static void fuse_slope(vkt_graph *g, vkt_node *n)
{
    const vkt_node *slope = vkt_sole_producer(g, n->in[n->op->slope_in - 1]);
    if (!slope || !vkt_is_relu_dx(slope) || slope->fused_into || slope->epilogue ||
        vkt_node_out(slope, 0)->role != VKT_ROLE_ACTIVATION ||
        !have_same_storage(vkt_node_in(slope, 0), vkt_node_in(slope, 1)) ||
        !have_same_storage(vkt_node_in(slope, 0), vkt_node_out(slope, 0)))
        return;
    n->slope = slope->index + 1;
    g->nodes[slope->index]->fused_into = n->index + 1;
}

static void fuse(vkt_graph *g, vkt_node *n, bool late)
{
    const vkt_fuse_kind kind = n->op->fuse_kind;
    if ((kind == VKT_FUSE_RELU || kind == VKT_FUSE_DROPOUT) && fits_behind(g, n, 0, late)) put_behind(g, n, 0);
    if (kind != VKT_FUSE_SUM && kind != VKT_FUSE_SLOPE) return;
    for (uint32_t i = kind == VKT_FUSE_SLOPE; i < 2 && !n->fused_into; i++)
        if (have_same_storage(vkt_node_in(n, 0), vkt_node_in(n, 1)) && fits_behind(g, n, i, late) &&
            is_ready(g, n->in[1 - i], producer_of(g, n->in[i]), n->after != 0))
            put_behind(g, n, i);
}

/* The first pass calls fuse_slope, and fuses nodes of the kinds in vkt_op.epilogues. The second pass fuses nodes of the
 * kinds in vkt_op.late_epilogues. By then it is known which nodes the first pass has fused. */
void vkt_find_epilogues(vkt_graph *g, const bool *live)
{
    if (g->no_fuse) return;
    for (int late = 0; late < 2; late++)
        for (size_t i = 0; i < g->n_nodes; i++) {
            vkt_node *n = g->nodes[i];
            const vkt_value *y = n->n_out ? vkt_node_out(n, 0) : NULL;
            if (live[i] && n->op->slope_in && !late) fuse_slope(g, n);
            if (live[i] && y && y->role == VKT_ROLE_ACTIVATION && !y->alias && !n->fused_into && !n->epilogue)
                fuse(g, n, late);
        }
}
