/* plan/early.c - moves dispatches of `early` ops (vkt_op.early) towards the start of the list, each behind the last
 * node on which it depends.
 *
 * Sums of gradients are added to the graph behind the whole backward pass, but each sum needs only the gradients of its
 * bucket. The earlier a sum runs, the earlier another rank can get the sum. */
#include "plan/plan.h"

/* Returns the range of a binding. The plan is not made yet, so each activation and each scratch value counts as memory
 * of its own. */
static vkt_region region_of(const vkt_emit *e, const vkt_bind *b)
{
    const uint32_t root = b->t.id < e->g->n_values ? vkt_root(e->g, b->t) : b->t.id;
    const vkt_value *v = vkt_lowered_value(e, (vkt_tensor){ root });
    return (vkt_region){ .role = vkt_is_packed(v) ? VKT_ROLE_ACTIVATION : v->role,
                         .index = root,
                         .offset_bytes = v->arena_offset_bytes + b->offset_bytes,
                         .bytes = vkt_round_up(b->bytes, 16) };
}

/* Returns whether the order of two dispatches matters. */
static bool depends(const vkt_emit *e, vkt_access_fn masks, const vkt_dispatch *x, const vkt_dispatch *y)
{
    const uint32_t x_writes = masks(x).writes, y_writes = masks(y).writes;
    for (uint32_t i = 0; i < x->n_bind; i++) {
        if (!x->bind[i].t.id) continue;
        const vkt_region at = region_of(e, &x->bind[i]);
        for (uint32_t k = 0; k < y->n_bind; k++)
            if (y->bind[k].t.id && ((x_writes >> i | y_writes >> k) & 1) &&
                vkt_regions_overlap(at, region_of(e, &y->bind[k])))
                return true;
    }
    return false;
}

void vkt_run_early(vkt_emit *e, vkt_access_fn masks)
{
    for (uint32_t d = 0; d < e->n; d++) {
        const vkt_dispatch x = e->list[d];
        if (!e->g->nodes[x.node]->op->early) continue;
        uint32_t to = d;
        while (to > 0 && !depends(e, masks, &x, &e->list[to - 1])) to--;
        while (to > 0 && to < d && e->list[to].node == e->list[to - 1].node)
            to++; /* x must not separate the dispatches of another node */
        memmove(e->list + to + 1, e->list + to, (d - to) * sizeof x);
        e->list[to] = x;
    }
}
