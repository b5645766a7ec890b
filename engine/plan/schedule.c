/* plan/schedule.c - finds an order with few stages: list scheduling over hazards (Graham, "Bounds on Multiprocessing
 * Timing Anomalies", 1969; priorities by the longest path, Hu 1961). In these papers the number of processors limits
 * what runs at the same time. Here a memory budget limits a stage.
 *
 * A dispatch is ready if it depends on earlier stages only. A stage gets ready dispatches. First it gets those from
 * which the longest path of dependent dispatches starts, because the longest path determines the number of stages. Then
 * it gets other dispatches that free at least as much memory as they need. Both kinds must fit into the budget. The
 * remaining ready dispatches wait. Some of them would fit, but need more memory than they free. No longest path starts
 * from these dispatches, so they can run in a later stage. If they ran now, their results would occupy memory for a
 * longer time. If a stage would be empty, the first ready dispatch in the graph's order runs alone, because the graph's
 * order keeps to the budget. */
#include "plan/plan.h"

#include <stdlib.h>

#define NO_ACCESS UINT32_MAX

/* One binding of one dispatch. For each memory (memory_of) there is a list of reads and a list of writes. */
typedef struct access {
    uint32_t dispatch, next; /* next: index of the next older access of the list; NO_ACCESS: none */
    vkt_region region;
} access;

typedef struct edge {
    uint32_t to, next; /* to: dispatch at which the edge ends. next: next edge with the same start; 0: none */
} edge;

typedef struct scheduler {
    const vkt_emit *e;
    const vkt_plan *p;
    access *accesses;
    size_t n_accesses, cap_accesses;
    uint32_t *newest[2]; /* by memory (memory_of): newest[0] has the newest read, newest[1] the newest write */
    edge *edges;         /* [0] is unused */
    size_t n_edges, cap_edges;
    uint32_t *first_edge; /* by dispatch: the first edge of the list of edges that start from this dispatch; 0: none */
    uint32_t *waits;      /* by dispatch: number of edges that end at it and start from dispatches without a stage */
    uint32_t *height;     /* by dispatch: number of edges on the longest path that starts from it */
    uint32_t *uses;  /* by owner: number of dispatches without a stage that touch its memory, plus number of kept values
                      * in this memory */
    bool *live;      /* by owner: its memory is in use now */
    bool *taken;     /* by dispatch: it has a stage */
    uint32_t *ready; /* dispatches without a stage that wait for no other dispatch; rising indices */
    uint32_t n_ready;
    uint64_t live_bytes, budget_bytes;
    uint64_t work; /* number of scanned accesses, edges and ready dispatches */
} scheduler;

/* ---- dependences ---- */

static bool is_arena(vkt_role role)
{
    return role >= VKT_ROLE_PARAM && role <= VKT_ROLE_PUBLISHED;
}

/* Returns the index, for newest[0] and newest[1], of the memory to which t belongs. A packed value, an input,
 * or a range of an arena (such as a parameter) is a memory of its own. Whole arenas and all other values belong to the
 * memory of their role. */
static uint32_t memory_of(const scheduler *s, vkt_tensor t)
{
    const uint32_t owner = s->p->owner[t.id];
    const vkt_role role = s->p->region[owner].role;
    bool own = role == VKT_ROLE_ACTIVATION || role == VKT_ROLE_INPUT || is_arena(role);
    for (int i = 0; i < VKT_ARENAS; i++) own = own && s->e->g->arena[i].id != owner; /* false for a whole arena */
    return own ? owner : (uint32_t)s->p->n + role;
}

/* Returns the range of a binding as if each owner had memory of its own. In the plan s->p, owners share memory. This
 * sharing causes hazards, but only in the order of that plan. In another order, other owners share memory. */
static vkt_region region_of(const scheduler *s, const vkt_bind *b)
{
    vkt_region at = vkt_region_of(s->p, b);
    if (at.role == VKT_ROLE_ACTIVATION) at.index = s->p->owner[b->t.id];
    return at;
}

static vkt_result add_edge(scheduler *s, uint32_t from, uint32_t to)
{
    if (s->first_edge[from] && s->edges[s->first_edge[from]].to == to) return VKT_OK;
    VKT_TRY(vkt_grow(&s->e->host, &s->edges, s->n_edges, &s->cap_edges, sizeof *s->edges));
    s->edges[s->n_edges] = (edge){ .to = to, .next = s->first_edge[from] };
    s->first_edge[from] = (uint32_t)s->n_edges++;
    s->waits[to]++;
    return VKT_OK;
}

/* Returns whether a contains all of b. */
static bool contains(vkt_region a, vkt_region b)
{
    return vkt_regions_overlap(a, b) && a.index == b.index && a.offset_bytes <= b.offset_bytes &&
           b.offset_bytes + b.bytes <= a.offset_bytes + a.bytes;
}

/* Adds the edges that end at the dispatch of x. They start from the dispatches of the earlier accesses to `memory` that
 * conflict with x. */
static vkt_result wait_for(scheduler *s, const access *x, bool writes, uint32_t memory)
{
    for (int of = writes ? 0 : 1; of < 2; of++) /* a reader waits for writers only */
        for (uint32_t *i = &s->newest[of][memory]; *i != NO_ACCESS;) {
            access *y = &s->accesses[*i];
            s->work++;
            if (y->dispatch != x->dispatch && vkt_regions_overlap(x->region, y->region))
                VKT_TRY(add_edge(s, y->dispatch, x->dispatch));
            if (writes && contains(x->region, y->region))
                *i = y->next; /* removes y: a later access that conflicts with y also conflicts with x */
            else
                i = &y->next;
        }
    return VKT_OK;
}

static vkt_result add_access(scheduler *s, uint32_t d, const vkt_bind *b, bool writes)
{
    access x = { .dispatch = d, .region = region_of(s, b) };
    const uint32_t memory = memory_of(s, b->t), whole = (uint32_t)s->p->n + x.region.role;
    VKT_TRY(wait_for(s, &x, writes, memory));
    if (is_arena(x.region.role) && memory != whole) VKT_TRY(wait_for(s, &x, writes, whole));
    for (uint32_t i = 1; is_arena(x.region.role) && memory == whole && i < s->p->n; i++)
        if (s->p->region[i].role == x.region.role && s->p->owner[i] == i) VKT_TRY(wait_for(s, &x, writes, i));
    x.next = s->newest[writes][memory];
    VKT_TRY(vkt_grow(&s->e->host, &s->accesses, s->n_accesses, &s->cap_accesses, sizeof *s->accesses));
    s->accesses[s->n_accesses] = x;
    s->newest[writes][memory] = (uint32_t)s->n_accesses++;
    return VKT_OK;
}

/* Follows fused_into from node `number` as far as possible, and returns the index of the last node. If node `number`
 * is not fused, returns `number`. */
static uint32_t doer_of(const vkt_graph *g, uint32_t number)
{
    while (g->nodes[number]->fused_into) number = g->nodes[number]->fused_into - 1;
    return number;
}

/* Adds the edges for nodes that compute a value again. Such a node must run behind the node that vkt_node.after names,
 * so the edges start from the last dispatch of the named node. If the named node has no dispatch, because it is a
 * companion and another node does its work, the edges start from the dispatch in front of the second computation. */
static vkt_result find_order(scheduler *s)
{
    const vkt_graph *g = s->e->g;
    /* last: the newest value of `after`. from: the dispatch at which the edges for this value start; NO_ACCESS: none */
    uint32_t last = 0, from = NO_ACCESS;
    for (uint32_t d = 0; d < s->e->n; d++) {
        const uint32_t after = g->nodes[s->e->list[d].node]->after;
        if (!after) continue;
        if (after != last) {
            last = after;
            from = d;
            while (from > 0 && s->e->list[from - 1].node != doer_of(g, after - 1)) from--;
            from = from ? from - 1 : d ? d - 1 : NO_ACCESS;
        }
        if (from != NO_ACCESS) VKT_TRY(add_edge(s, from, d));
    }
    return VKT_OK;
}

static vkt_result find_edges(scheduler *s, vkt_access_fn masks)
{
    for (size_t i = 0; i < s->p->n + VKT_ROLE_SCRATCH + 1; i++) s->newest[0][i] = s->newest[1][i] = NO_ACCESS;
    VKT_TRY(vkt_grow(&s->e->host, &s->edges, 0, &s->cap_edges, sizeof *s->edges));
    s->n_edges = 1;
    for (uint32_t d = 0; d < s->e->n; d++) {
        const vkt_dispatch *x = &s->e->list[d];
        const uint32_t writes = masks(x).writes;
        for (uint32_t b = 0; b < x->n_bind; b++)
            if (x->bind[b].t.id && s->p->region[x->bind[b].t.id].role != VKT_ROLE_CONST)
                VKT_TRY(add_access(s, d, &x->bind[b], writes >> b & 1));
    }
    VKT_TRY(find_order(s));
    for (size_t d = s->e->n; d-- > 0;)
        for (uint32_t i = s->first_edge[d]; i; i = s->edges[i].next)
            s->height[d] = VKT_MAX(s->height[d], s->height[s->edges[i].to] + 1), s->work++;
    return VKT_OK;
}

/* ---- memory ---- */

/* Finds the owners of the packed values that a dispatch touches, without duplicates. Returns their number. */
static uint32_t owners_of(const scheduler *s, size_t d, uint32_t owners[VKT_MAX_BINDINGS])
{
    const vkt_dispatch *x = &s->e->list[d];
    uint32_t n = 0;
    for (uint32_t b = 0; b < x->n_bind; b++) {
        if (!x->bind[b].t.id || s->p->region[x->bind[b].t.id].role != VKT_ROLE_ACTIVATION) continue;
        const uint32_t owner = s->p->owner[x->bind[b].t.id];
        uint32_t i = 0;
        while (i < n && owners[i] != owner) i++;
        if (i == n) owners[n++] = owner;
    }
    return n;
}

static uint64_t bytes_of(const scheduler *s, uint32_t owner)
{
    return vkt_round_up(vkt_lowered_value(s->e, (vkt_tensor){ owner })->bytes, VKT_ALIGN_BYTES);
}

/* Computes two sizes for a dispatch d. *starting is the size of the owners that become live with d. *freed is the size
 * of the owners whose memory is free behind d: no kept value is in this memory, and all other dispatches that touch it
 * have a stage already. */
static void weigh(const scheduler *s, size_t d, uint64_t *starting, uint64_t *freed)
{
    uint32_t owners[VKT_MAX_BINDINGS];
    *starting = *freed = 0;
    for (uint32_t i = owners_of(s, d, owners); i-- > 0;) {
        if (!s->live[owners[i]]) *starting += bytes_of(s, owners[i]);
        if (s->uses[owners[i]] == 1) *freed += bytes_of(s, owners[i]);
    }
}

static void count_uses(scheduler *s)
{
    uint32_t owners[VKT_MAX_BINDINGS];
    for (size_t d = 0; d < s->e->n; d++)
        for (uint32_t i = owners_of(s, d, owners); i-- > 0;) s->uses[owners[i]]++;
    for (size_t i = 1; i < s->e->g->n_values; i++) { /* a kept value is live from the start to the end */
        const uint32_t owner = s->p->owner[i];
        if (!s->e->g->values[i].keep || s->p->region[owner].role != VKT_ROLE_ACTIVATION) continue;
        s->uses[owner]++;
        if (!s->live[owner]) s->live_bytes += bytes_of(s, owner);
        s->live[owner] = true;
    }
}

/* ---- stages ---- */

static void issue(scheduler *s, uint32_t d)
{
    uint32_t owners[VKT_MAX_BINDINGS];
    for (uint32_t i = owners_of(s, d, owners); i-- > 0;) {
        if (!s->live[owners[i]]) s->live_bytes += bytes_of(s, owners[i]);
        s->live[owners[i]] = true;
        s->uses[owners[i]]--;
    }
    s->taken[d] = true;
}

/* Chooses the dispatches of one stage among the ready ones, and writes them to order. Returns their number. */
static uint32_t fill_stage(scheduler *s, uint32_t *order)
{
    uint32_t n = 0, top = 0;
    uint64_t starting, freed;
    s->work += s->n_ready;
    for (uint32_t i = 0; i < s->n_ready; i++) top = VKT_MAX(top, s->height[s->ready[i]]);
    for (int others = 0; others < 2; others++)
        for (uint32_t i = 0; i < s->n_ready; i++) {
            const uint32_t d = s->ready[i];
            if (s->taken[d] || (s->height[d] == top) == others) continue;
            weigh(s, d, &starting, &freed);
            if (s->live_bytes + starting > s->budget_bytes || (others && starting > freed)) continue;
            issue(s, d);
            order[n++] = d;
        }
    if (n == 0) {
        issue(s, s->ready[0]);
        order[n++] = s->ready[0];
    }
    return n;
}

static int rising(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Updates the list of ready dispatches, and which owners are live. An owner stays live as long as a dispatch without a
 * stage touches its memory, or a kept value is in its memory. */
static void end_stage(scheduler *s, const uint32_t *order, uint32_t n)
{
    uint32_t owners[VKT_MAX_BINDINGS], left = 0;
    for (uint32_t i = 0; i < s->n_ready; i++)
        if (!s->taken[s->ready[i]]) s->ready[left++] = s->ready[i];
    s->n_ready = left;
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = s->first_edge[order[k]]; i; i = s->edges[i].next)
            if (--s->waits[s->edges[i].to] == 0) s->ready[s->n_ready++] = s->edges[i].to;
        for (uint32_t i = owners_of(s, order[k], owners); i-- > 0;) {
            if (s->uses[owners[i]] || !s->live[owners[i]]) continue;
            s->live[owners[i]] = false;
            s->live_bytes -= bytes_of(s, owners[i]);
        }
    }
    if (s->n_ready > left) qsort(s->ready, s->n_ready, sizeof *s->ready, rising);
}

static bool make_room(scheduler *s)
{
    const vkt_host *h = &s->e->host;
    for (int i = 0; i < 2; i++) s->newest[i] = vkt_alloc_array(h, s->p->n + VKT_ROLE_SCRATCH + 1, sizeof *s->newest[i]);
    s->ready = vkt_alloc_array(h, s->e->n + 1, sizeof *s->ready);
    s->first_edge = vkt_alloc_array(h, s->e->n + 1, sizeof *s->first_edge);
    s->waits = vkt_alloc_array(h, s->e->n + 1, sizeof *s->waits);
    s->height = vkt_alloc_array(h, s->e->n + 1, sizeof *s->height);
    s->taken = vkt_alloc_array(h, s->e->n + 1, sizeof *s->taken);
    s->uses = vkt_alloc_array(h, s->p->n, sizeof *s->uses);
    s->live = vkt_alloc_array(h, s->p->n, sizeof *s->live);
    return s->newest[0] && s->newest[1] && s->ready && s->first_edge && s->waits && s->height && s->taken && s->uses &&
           s->live;
}

vkt_result vkt_plan_schedule(const vkt_emit *e, const vkt_plan *p, vkt_access_fn masks, uint64_t budget_bytes,
                             uint32_t *order, uint32_t *stage, uint64_t *work)
{
    scheduler s = { .e = e, .p = p, .budget_bytes = budget_bytes };
    vkt_result r = make_room(&s) ? find_edges(&s, masks) : vkt_fail_nomem(&e->host, "a schedule", e->n);
    if (r == VKT_OK) {
        count_uses(&s);
        for (uint32_t d = 0; d < e->n; d++)
            if (!s.waits[d]) s.ready[s.n_ready++] = d;
        uint32_t number = 0;
        for (uint32_t at = 0, n; at < e->n; at += n, number++) {
            n = fill_stage(&s, order + at);
            end_stage(&s, order + at, n);
            qsort(order + at, n, sizeof *order, rising); /* dispatches of one stage stay in the graph's order */
            for (uint32_t i = 0; i < n; i++) stage[at + i] = number;
        }
    }
    *work += s.work;
    vkt_free(&e->host, s.accesses);
    vkt_free(&e->host, s.edges);
    vkt_free(&e->host, s.newest[0]);
    vkt_free(&e->host, s.newest[1]);
    vkt_free(&e->host, s.ready);
    vkt_free(&e->host, s.first_edge);
    vkt_free(&e->host, s.waits);
    vkt_free(&e->host, s.height);
    vkt_free(&e->host, s.taken);
    vkt_free(&e->host, s.uses);
    vkt_free(&e->host, s.live);
    return r;
}

uint32_t vkt_split_submissions(const uint64_t *ns, const uint32_t *stage, uint32_t n, uint64_t limit_ns, uint32_t *ends)
{
    uint32_t parts = 0;
    for (uint32_t first = 0; first < n; first = ends[parts++]) {
        uint32_t end = first + 1;
        for (uint64_t sum = ns[first]; end < n && sum + ns[end] <= limit_ns; end++) sum += ns[end];
        uint32_t at = end;
        while (at > first && at < n && stage[at] == stage[at - 1]) at--;
        ends[parts] = at > first ? at : end;
    }
    return parts;
}
