/* autodiff/autodiff.c - the reverse traversal: appends the nodes that compute gradients.
 *
 * The method is reverse accumulation (Griewank & Walther, Evaluating Derivatives, 2nd ed. 2008, chapter 3). Nodes are
 * visited from last to first. Every reader of a value comes after its producer in the list, so a value's gradient is
 * complete when the producer of the value is visited. */
#include "autodiff/again.h"
#include "ops/ops.h"

#include <stdio.h>

typedef struct traversal {
    vkt_graph *g;
    size_t n_values, n_nodes; /* how many values and nodes the graph had before the traversal */
    bool *wanted;             /* [value id]: the value is in wrt (an argument of vkt_gradients), or depends on
                               * such a value through inputs that `passes` accepts */
    vkt_tensor *grad;         /* [value id]: the value's gradient so far; {0}: none yet */
    vkt_again again;          /* the nodes that compute values of blocks a second time */
} traversal;

/* Returns whether the traversal follows input i of the node. This is true if a gradient can pass through the input. It
 * is also true for a forward_only op, and for an input in `refuses`, so that `visit` can report an error. */
static bool passes(const vkt_node *n, uint32_t i)
{
    if (n->op->forward_only || (n->op->refuses >> i & 1)) return true;
    return (n->op->diff >> i & 1) && !(n->op->stops && n->op->stops(n, i));
}

static void find_wanted(traversal *w, const vkt_tensor *wrt, uint32_t n_wrt)
{
    for (uint32_t i = 0; i < n_wrt; i++) w->wanted[wrt[i].id] = true;
    for (size_t i = 0; i < w->n_nodes; i++) {
        const vkt_node *n = w->g->nodes[i];
        bool any = false;
        for (uint32_t k = 0; k < n->n_in; k++) any |= passes(n, k) && w->wanted[n->in[k].id];
        for (uint32_t k = 0; any && k < n->n_out; k++) w->wanted[n->out[k].id] = true;
    }
}

/* Adds `dx` to the gradient of `x`. */
static vkt_result accumulate(traversal *w, vkt_tensor x, vkt_tensor dx)
{
    vkt_graph *g = w->g;
    const vkt_value *v = &g->values[x.id], *d = &g->values[dx.id];
    if (!vkt_shape_equal(v->shape, d->shape) || v->layout != d->layout)
        return vkt_fail(&g->host, VKT_E_SHAPE, "backward: the gradient of %s has not its shape and layout", v->name);
    vkt_tensor *sum = &w->grad[x.id];
    *sum = sum->id ? vkt_add(g, *sum, dx) : dx;
    return g->status;
}

static vkt_result visit(traversal *w, const vkt_node *n)
{
    vkt_tensor dy[VKT_MAX_OUT] = { { 0 } }, dx[VKT_MAX_IN] = { { 0 } };
    bool any = false, wanted = false;
    for (uint32_t k = 0; k < n->n_out; k++) {
        dy[k] = w->grad[n->out[k].id];
        any |= dy[k].id != 0;
    }
    for (uint32_t k = 0; k < n->n_in; k++) wanted |= passes(n, k) && w->wanted[n->in[k].id];
    if (!any || !wanted) return VKT_OK;
    if (n->op->forward_only && n->op->tested_by) {
        vkt_refuse_second_gradient(w->g, n, 0);
        return w->g->status;
    }
    if (n->op->forward_only)
        return vkt_fail(&w->g->host, VKT_E_UNSUPPORTED, "backward: %s has no gradient, and '%s' is made by it",
                        n->op->name, w->g->values[n->out[0].id].name);
    for (uint32_t k = 0; k < n->n_in; k++)
        if ((n->op->refuses >> k & 1) && w->wanted[n->in[k].id])
            return vkt_fail(&w->g->host, VKT_E_UNSUPPORTED,
                            "backward: %s computes no gradient of '%s', but the gradient of an earlier value needs it "
                            "(vkt_stop_gradient leaves it out)",
                            n->op->name, w->g->values[n->in[k].id].name);
    n->op->backward(w->g, vkt_again_node(&w->again, n), dy, dx);
    for (uint32_t k = 0; k < n->n_in && w->g->status == VKT_OK; k++)
        if (dx[k].id && w->wanted[n->in[k].id]) VKT_TRY(accumulate(w, n->in[k], dx[k]));
    return w->g->status;
}

/* Adds the second computation of a block, if a gradient enters the block. */
static vkt_result compute_again(traversal *w, const vkt_block *block)
{
    vkt_graph *g = w->g;
    bool any = false;
    uint32_t after = block->end; /* 1 + the index of the last node that makes a gradient of the block's values. If no
                                  * node behind the block makes such a gradient: the block's end */
    for (uint32_t i = block->first; i < block->end; i++)
        for (uint32_t k = 0; k < g->nodes[i]->n_out; k++) {
            const vkt_tensor dy = w->grad[g->nodes[i]->out[k].id];
            any |= dy.id != 0;
            after = VKT_MAX(after, g->values[vkt_root(g, dy)].producer);
        }
    if (!any) return VKT_OK;
    VKT_TRY(vkt_compute_again(&w->again, g, block, after));
    bool *wanted = vkt_alloc_array(&g->host, g->n_values, sizeof *wanted);
    if (!wanted) return vkt_fail_nomem(&g->host, "backward", g->n_values);
    memcpy(wanted, w->wanted, g->n_wanted * sizeof *wanted);
    for (uint32_t i = 1; i < w->n_values; i++)
        if (w->again.value[i].id) wanted[w->again.value[i].id] = wanted[i];
    vkt_free(&g->host, w->wanted);
    g->wanted = w->wanted = wanted;
    g->n_wanted = g->n_values;
    return VKT_OK;
}

static vkt_result traverse(traversal *w, const vkt_tensor *outs, const vkt_tensor *seeds, uint32_t n_outs)
{
    for (uint32_t i = 0; i < n_outs; i++)
        if (w->wanted[outs[i].id]) VKT_TRY(accumulate(w, outs[i], seeds[i]));
    size_t block = w->g->n_blocks;
    for (size_t i = w->n_nodes; i-- > 0;) {
        for (; block > 0 && w->g->blocks[block - 1].end > i; block--)
            if (w->g->blocks[block - 1].end == i + 1) VKT_TRY(compute_again(w, &w->g->blocks[block - 1]));
        VKT_TRY(visit(w, w->g->nodes[i]));
    }
    return VKT_OK;
}

/* Prepares a traversal of the graph as it is now. The caller calls traversal_end, also after a failure. */
static vkt_result traversal_begin(traversal *w, vkt_graph *g, const vkt_tensor *wrt, uint32_t n_wrt)
{
    *w = (traversal){ .g = g, .n_values = g->n_values, .n_nodes = g->n_nodes };
    w->wanted = vkt_alloc_array(&g->host, w->n_values, sizeof *w->wanted);
    w->grad = vkt_alloc_array(&g->host, w->n_values, sizeof *w->grad);
    if (!w->wanted || !w->grad) return vkt_fail_nomem(&g->host, "backward", w->n_values);
    VKT_TRY(vkt_again_begin(&w->again, g));
    find_wanted(w, wrt, n_wrt);
    g->wanted = w->wanted;
    g->n_wanted = w->n_values;
    return VKT_OK;
}

static void traversal_end(traversal *w)
{
    w->g->wanted = NULL;
    vkt_free(&w->g->host, w->wanted);
    vkt_free(&w->g->host, w->grad);
    vkt_again_end(&w->again, w->g);
}

/* Calls vkt_op.fuse for each node. vkt_op.fuse may fuse the node with its producers, or let the node compute gradients,
 * too. This happens before the reverse traversal: g->wanted says which gradients are needed, and no activation has a
 * gradient yet. */
static vkt_result fuse(vkt_graph *g, vkt_tensor loss, vkt_tensor seed, const vkt_tensor *wrt, uint32_t n_wrt)
{
    traversal w;
    vkt_result r = traversal_begin(&w, g, wrt, n_wrt);
    for (size_t i = 0; r == VKT_OK && i < w.n_nodes; i++) {
        vkt_node *n = g->nodes[i];
        if (n->op->fuse) n->op->fuse(g, n, n->out[0].id == loss.id ? seed : (vkt_tensor){ 0 });
        r = g->status;
    }
    traversal_end(&w);
    return r;
}

/* Checks that a seed is f32 and has its output's shape and layout. */
static vkt_result check_seed(const vkt_graph *g, vkt_tensor out, vkt_tensor seed)
{
    const vkt_value *y = &g->values[out.id], *s = &g->values[seed.id];
    char want[80], got[80];
    if (s->dtype == VKT_F32 && s->layout == y->layout && vkt_shape_equal(s->shape, y->shape)) return VKT_OK;
    return vkt_fail(&g->host, VKT_E_SHAPE, "gradients: want a seed f32 %s%s as '%s' is, got %s %s%s",
                    vkt_shape_text(y->shape, want), y->layout == VKT_BATCH_LAST ? " with the batch last" : " by rows",
                    y->name, vkt_dtype_name(s->dtype), vkt_shape_text(s->shape, got),
                    s->layout == VKT_BATCH_LAST ? " with the batch last" : " by rows");
}

/* Checks that all values are of the graph, and that each seed fits its output. */
static vkt_result check_values(const vkt_graph *g, const vkt_tensor *outs, const vkt_tensor *seeds, uint32_t n_outs,
                               const vkt_tensor *wrt, uint32_t n_wrt)
{
    for (uint32_t i = 0; i < n_outs + n_wrt; i++) {
        const uint32_t id = i < n_outs ? outs[i].id : wrt[i - n_outs].id;
        if (id == 0 || id >= g->n_values || (i < n_outs && (seeds[i].id == 0 || seeds[i].id >= g->n_values)))
            return vkt_fail(&g->host, VKT_E_ARG, "gradients: value %u is not of this graph", i);
        if (i < n_outs) VKT_TRY(check_seed(g, outs[i], seeds[i]));
    }
    return VKT_OK;
}

vkt_result vkt_gradients(vkt_graph *g, const vkt_tensor *outs, const vkt_tensor *seeds, uint32_t n_outs,
                         const vkt_tensor *wrt, uint32_t n_wrt, vkt_tensor *grads)
{
    VKT_WANT(NULL, g);
    if (n_outs) VKT_WANT(&g->host, outs);
    if (n_outs) VKT_WANT(&g->host, seeds);
    if (n_wrt) VKT_WANT(&g->host, wrt);
    if (n_wrt) VKT_WANT(&g->host, grads);
    if (n_wrt) memset(grads, 0, n_wrt * sizeof *grads);
    if (g->status != VKT_OK) return g->status;
    VKT_TRY(vkt_check_blocks(g, "gradients"));
    vkt_graph_error(g, check_values(g, outs, seeds, n_outs, wrt, n_wrt));
    VKT_TRY(g->status);
    traversal w;
    vkt_result r = traversal_begin(&w, g, wrt, n_wrt);
    if (r == VKT_OK) r = traverse(&w, outs, seeds, n_outs);
    for (uint32_t i = 0; r == VKT_OK && i < n_wrt; i++) grads[i] = w.grad[wrt[i].id];
    traversal_end(&w);
    vkt_graph_error(g, r);
    return r;
}

/* Places the gradient `d` of parameter `p` in the range of `p` in the gradient arena. A copy of `d` is placed instead
 * if the memory of `d` cannot become that range. This happens if the memory is another parameter's gradient already (in
 * a + b, dy is the gradient of both), an input or a constant, or if its size or layout differs. */
static void move_to_arena(vkt_graph *g, uint32_t p, vkt_tensor d)
{
    const vkt_value *root = &g->values[vkt_root(g, d)];
    if (root->role != VKT_ROLE_ACTIVATION || root->bytes != g->values[p].bytes || root->layout != VKT_ROWS)
        d = vkt_expand(g, d, g->values[p].shape, VKT_ROWS);
    if (g->status != VKT_OK) return;
    vkt_value *v = &g->values[vkt_root(g, d)];
    v->role = VKT_ROLE_GRAD;
    const vkt_value param = g->values[p];
    v->arena_offset_bytes = param.arena_offset_bytes;
    snprintf(v->name, sizeof v->name, "d.%.40s", param.name);
}

vkt_result vkt_backward(vkt_graph *g, vkt_tensor loss)
{
    VKT_WANT(NULL, g);
    if (g->status != VKT_OK) return g->status;
    VKT_TRY(vkt_check_blocks(g, "backward"));
    if (loss.id == 0 || loss.id >= g->n_values || g->values[loss.id].shape.rank != 0) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "backward: want a scalar loss"));
        return g->status;
    }
    if (g->arena[VKT_ROLE_GRAD - VKT_ROLE_PARAM].id) { /* a second gradient would overwrite the first in the arena */
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_STATE,
                                    "backward: this graph has its gradients already; add the losses and go back once"));
        return g->status;
    }
    if (g->n_params == 0) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_STATE,
                                    "backward: the graph has no parameters (vkt_param); vkt_gradients differentiates "
                                    "by other values"));
        return g->status;
    }
    const float one = 1.0f;
    const vkt_tensor seed = vkt_graph_const(g, "one", VKT_F32, vkt_shape0(), &one);
    g->seed = seed;
    vkt_graph_arena(g, VKT_ROLE_GRAD);
    vkt_tensor *wrt = vkt_alloc_array(&g->host, g->n_params, sizeof *wrt);
    vkt_tensor *grads = vkt_alloc_array(&g->host, g->n_params, sizeof *grads);
    vkt_result r = wrt && grads ? g->status : vkt_fail_nomem(&g->host, "backward", g->n_params * sizeof *wrt);
    uint32_t n = 0;
    for (size_t i = 0; r == VKT_OK && i < g->n_params; i++)
        if (!vkt_is_fixed(&g->values[g->params[i]])) wrt[n++].id = g->params[i];
    if (r == VKT_OK && n == 0) r = vkt_fail(&g->host, VKT_E_STATE, "backward: every parameter is frozen");
    if (r == VKT_OK) r = fuse(g, loss, seed, wrt, n);
    if (r == VKT_OK) r = vkt_gradients(g, &loss, &seed, 1, wrt, n, grads);
    for (uint32_t i = 0; r == VKT_OK && i < n; i++) {
        if (grads[i].id)
            move_to_arena(g, wrt[i].id, grads[i]);
        else
            g->status = vkt_fail(&g->host, VKT_E_ARG, "backward: parameter '%s' does not influence the loss",
                                 g->values[wrt[i].id].name);
        r = g->status;
    }
    vkt_free(&g->host, wrt);
    vkt_free(&g->host, grads);
    vkt_graph_error(g, r);
    return r;
}
