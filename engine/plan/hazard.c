/* plan/hazard.c - finds the dispatches that need a barrier in front of them.
 *
 * A hazard is between two ranges of memory, not between values. So two values that are packed into the same bytes are
 * ordered like one value. A barrier orders all accesses before it against all accesses after it, so accesses before the
 * last barrier need no check. A dispatch gets a barrier only if it conflicts with an access after the last barrier. */
#include "plan/plan.h"

typedef struct access {
    vkt_region region;
    bool writes;
    uint32_t dispatch;
} access;

bool vkt_regions_overlap(vkt_region a, vkt_region b)
{
    if (a.role != b.role) return false;
    if (a.role == VKT_ROLE_EXTERNAL && a.index != b.index) return true;
    const bool by_index = a.role == VKT_ROLE_ACTIVATION || a.role == VKT_ROLE_INPUT;
    return (!by_index || a.index == b.index) && a.offset_bytes < b.offset_bytes + b.bytes &&
           b.offset_bytes < a.offset_bytes + a.bytes;
}

vkt_region vkt_region_of(const vkt_plan *p, const vkt_bind *b)
{
    vkt_region at = p->region[b->t.id];
    at.offset_bytes += b->offset_bytes;
    at.bytes = vkt_round_up(b->bytes, 16);
    return at;
}

/* Finds a hazard between dispatch x and the accesses since the last barrier. Returns false if there is none. */
static bool find_hazard(vkt_plan *p, const vkt_dispatch *x, vkt_access a, const access *since, size_t n,
                        vkt_barrier *out)
{
    for (uint32_t b = 0; b < x->n_bind; b++) {
        if (!x->bind[b].t.id) continue;
        const vkt_region at = vkt_region_of(p, &x->bind[b]);
        const bool writes = a.writes >> b & 1;
        for (size_t i = n; i-- > 0;) {
            p->work++;
            if ((!writes && !since[i].writes) || !vkt_regions_overlap(at, since[i].region)) continue;
            *out = (vkt_barrier){ .hazard = !since[i].writes   ? VKT_WAR
                                            : a.reads >> b & 1 ? VKT_RAW
                                                               : VKT_WAW,
                                  .value = x->bind[b].t.id,
                                  .other = since[i].dispatch };
            return true;
        }
    }
    return false;
}

vkt_result vkt_find_barriers(const vkt_emit *e, vkt_access_fn masks, vkt_plan *p)
{
    access *since = NULL;
    size_t n = 0, cap = 0;
    vkt_result r = VKT_OK;
    for (uint32_t d = 0; d < e->n && r == VKT_OK; d++) {
        const vkt_dispatch *x = &e->list[d];
        const vkt_access a = masks(x);
        vkt_barrier b;
        if (find_hazard(p, x, a, since, n, &b)) {
            r = vkt_grow(&p->host, &p->barriers, p->n_barriers, &p->cap_barriers, sizeof *p->barriers);
            if (r != VKT_OK) break;
            b.before = d;
            p->barriers[p->n_barriers++] = b;
            n = 0;
        }
        for (uint32_t i = 0; i < x->n_bind && r == VKT_OK; i++) {
            if (!x->bind[i].t.id) continue;
            r = vkt_grow(&p->host, &since, n, &cap, sizeof *since);
            if (r == VKT_OK) since[n++] = (access){ vkt_region_of(p, &x->bind[i]), a.writes >> i & 1, d };
        }
    }
    vkt_free(&p->host, since);
    return r;
}
