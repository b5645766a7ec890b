/* passes/half.c - mixed precision: which values are stored in 16 bits. What one op cannot handle stays f32 for all, so
 * ops can learn it one by one. */
#include "passes/passes.h"

static bool is_candidate(const vkt_value *v)
{
    return v->dtype == VKT_F32 && v->layout == VKT_BATCH_LAST &&
           (v->role == VKT_ROLE_ACTIVATION || v->role == VKT_ROLE_INPUT);
}

void vkt_find_half(const vkt_graph *g, const bool *live, bool *half)
{
    for (size_t i = 0; i < g->n_values; i++) half[i] = !g->values[i].alias && is_candidate(&g->values[i]);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const vkt_node *n = g->nodes[i];
        if (!live[i] || !n->op->emit) continue; /* an alias touches nothing */
        const uint32_t can = !n->op->half_when || n->op->half_when(n) ? n->op->half : 0;
        for (uint32_t k = 0; k < n->n_in; k++)
            if (!(can & VKT_HALF_IN(k))) half[vkt_root(g, n->in[k])] = false;
        for (uint32_t k = 0; k < n->n_out; k++)
            if (!(can & VKT_HALF_OUT(k))) half[vkt_root(g, n->out[k])] = false;
    }
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i].alias) half[i] = half[vkt_root(g, (vkt_tensor){ (uint32_t)i })];
}
