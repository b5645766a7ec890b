/* passes/half.c - mixed precision: chooses the values that are stored in 16 bits. A value stays f32 if an op that reads
 * or writes it does not support 16 bits. So support of 16 bits can be added op by op. */
#include "passes/passes.h"

/* Returns whether the rows of the value consist of whole vec4s. With the batch last, they always do, because the batch
 * is padded. */
static bool is_whole(const vkt_value *v)
{
    return v->layout == VKT_BATCH_LAST || (v->shape.rank > 0 && v->shape.dim[v->shape.rank - 1] % 4 == 0);
}

static bool is_candidate(const vkt_value *v)
{
    return v->dtype == VKT_F32 && is_whole(v) && (v->role == VKT_ROLE_ACTIVATION || v->role == VKT_ROLE_INPUT);
}

/* Returns whether n's kernels can read or write t in 16 bits. `bit` is VKT_HALF_IN(i) or VKT_HALF_OUT(i) of t. */
static bool takes(const vkt_node *n, vkt_tensor t, uint32_t bit)
{
    const vkt_value *v = vkt_value_of(n->g, t);
    const uint32_t can = v->layout == VKT_BATCH_LAST ? n->op->half : n->op->half_rows;
    return (can & bit) && is_whole(v) && (!n->op->half_when || n->op->half_when(n));
}

/* A value that is computed a second time (vkt_recompute_begin) must have the same bits both times. So the first value
 * and the second value are both stored in 16 bits, or neither is. The second value has a larger id than the first
 * one, so one loop over rising ids and one loop over falling ids are enough. */
static void share_with_second_values(const vkt_graph *g, bool *half)
{
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i].again && !half[i]) half[g->values[i].again] = false;
    for (size_t i = g->n_values; i-- > 0;)
        if (g->values[i].again) half[i] = half[g->values[i].again];
}

void vkt_find_half(const vkt_graph *g, const bool *live, bool *half)
{
    for (size_t i = 0; i < g->n_values; i++) half[i] = !g->values[i].alias && is_candidate(&g->values[i]);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const vkt_node *n = g->nodes[i];
        if (!live[i] || !n->op->emit) continue; /* a node without emit, such as a reshape, does not access the memory */
        for (uint32_t k = 0; k < n->n_in; k++)
            if (!takes(n, n->in[k], VKT_HALF_IN(k))) half[vkt_root(g, n->in[k])] = false;
        for (uint32_t k = 0; k < n->n_out; k++)
            if (!takes(n, n->out[k], VKT_HALF_OUT(k))) half[vkt_root(g, n->out[k])] = false;
    }
    share_with_second_values(g, half);
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i].alias) half[i] = half[vkt_root(g, (vkt_tensor){ (uint32_t)i })];
}
