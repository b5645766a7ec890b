/* record/hazard.c - barriers as data.
 *
 * Memory ranges decide, not values: two values packed into the same bytes are ordered like one. A barrier orders
 * everything before it against everything after it, so accesses older than the last barrier can be forgotten; a
 * dispatch gets one only if it meets an access that came since. */
#include "record/record.h"

typedef struct access {
    vkt_range range;
    bool writes;
    uint32_t dispatch;
} access;

static bool overlap(vkt_range a, vkt_range b)
{
    return a.buffer == b.buffer && a.offset_bytes < b.offset_bytes + b.bytes &&
           b.offset_bytes < a.offset_bytes + a.bytes;
}

/* The first hazard between dispatch d and the accesses since the last barrier. */
static bool find_hazard(const vkt_program *p, uint32_t d, const access *since, size_t n, vkt_barrier *out)
{
    const vkt_dispatch *x = &p->lowered.list[d];
    const vkt_kernel_row *row = vkt_kernel_get((vkt_kernel_id)x->kernel);
    for (uint32_t b = 0; b < x->n_bind; b++) {
        if (!x->bind[b].t.id) continue;
        const vkt_range r = vkt_range_of(p, &x->bind[b]);
        const bool writes = row->writes >> b & 1;
        for (size_t i = n; i-- > 0;) {
            if ((!writes && !since[i].writes) || !overlap(r, since[i].range)) continue;
            *out = (vkt_barrier){ .before = d,
                                  .hazard = !since[i].writes      ? VKT_WAR
                                            : row->reads >> b & 1 ? VKT_RAW
                                                                  : VKT_WAW,
                                  .value = x->bind[b].t.id,
                                  .other = since[i].dispatch };
            return true;
        }
    }
    return false;
}

vkt_result vkt_find_barriers(vkt_program *p)
{
    access *since = NULL;
    size_t n = 0, cap = 0;
    vkt_result r = VKT_OK;
    for (uint32_t d = 0; d < p->lowered.n && r == VKT_OK; d++) {
        vkt_barrier b;
        if (find_hazard(p, d, since, n, &b)) {
            r = vkt_grow(&p->ctx->host, &p->barriers, p->n_barriers, &p->cap_barriers, sizeof *p->barriers);
            if (r != VKT_OK) break;
            p->barriers[p->n_barriers++] = b;
            n = 0;
        }
        const vkt_dispatch *x = &p->lowered.list[d];
        const vkt_kernel_row *row = vkt_kernel_get((vkt_kernel_id)x->kernel);
        for (uint32_t i = 0; i < x->n_bind && r == VKT_OK; i++) {
            if (!x->bind[i].t.id) continue;
            r = vkt_grow(&p->ctx->host, &since, n, &cap, sizeof *since);
            if (r == VKT_OK) since[n++] = (access){ vkt_range_of(p, &x->bind[i]), row->writes >> i & 1, d };
        }
    }
    vkt_free(&p->ctx->host, since);
    return r;
}
