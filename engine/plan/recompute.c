/* plan/recompute.c - needs less memory and more work: computes cheap values a second time, before their late readers,
 * instead of keeping them through the peak (rematerialization; Chen et al., "Training Deep Nets with Sublinear Memory
 * Cost", 2016).
 *
 * The peak is the first dispatch at which the most bytes are live. The search looks for nodes before it whose outputs
 * are kept only for a reader behind it. The op of such a node must be `cheap`, and its inputs must still be live and
 * unchanged at that reader. The search chooses the node with the largest such outputs. The node's dispatches are
 * inserted again before the reader, with outputs of their own. The search repeats this until no node helps. Each time,
 * the first run of a node loses a reader, so the search ends. Kernels are deterministic and the step state does not
 * change within a step, so the second run gives the same bits as the first one. */
#include "plan/plan.h"

#include <stdio.h>

typedef struct span {
    uint32_t first, last; /* dispatch numbers */
} span;

typedef struct recomputation {
    vkt_emit *e;
    vkt_access_fn access;
    uint32_t first_new;   /* values from this id on are outputs of second runs; these are not computed again */
    span *live_ranges;    /* live ranges by root value, for the present list */
    size_t n_live_ranges; /* capacity of `live_ranges` */
    uint64_t *live;       /* live bytes, by dispatch */
    size_t cap_dispatch;  /* capacity of `live` */
    uint32_t peak;        /* the first dispatch with the most live bytes */
} recomputation;

enum { MAX_ROOTS = 24 }; /* enough, because a cheap node binds few values */

/* The dispatches of one node, `first` .. end - 1, and what a second run of them would do. */
typedef struct candidate {
    uint32_t first, end;
    uint32_t roots[MAX_ROOTS]; /* the values that the dispatches bind */
    bool made[MAX_ROOTS];      /* written by the dispatches */
    bool late[MAX_ROOTS];      /* made, not touched at the peak, and read behind the peak */
    uint32_t n_roots;
    uint32_t reader; /* the first dispatch behind the peak that reads a late value */
    uint64_t gain_bytes;
} candidate;

static uint32_t root_of(const vkt_emit *e, vkt_tensor t)
{
    return t.id < e->g->n_values ? vkt_root(e->g, t) : t.id;
}

static const vkt_value *value_of(const vkt_emit *e, uint32_t root)
{
    return vkt_lowered_value(e, (vkt_tensor){ root });
}

static bool is_packed(const vkt_emit *e, uint32_t root)
{
    return vkt_is_packed(value_of(e, root));
}

static uint64_t bytes_of(const vkt_emit *e, uint32_t root)
{
    return vkt_round_up(value_of(e, root)->bytes, VKT_ALIGN_BYTES);
}

/* ---- live bytes ---- */

static vkt_result make_room(recomputation *m)
{
    const size_t values = m->e->g->n_values + m->e->n_extra;
    if (values > m->n_live_ranges) {
        vkt_free(&m->e->host, m->live_ranges);
        m->n_live_ranges = 2 * values;
        m->live_ranges = vkt_alloc_array(&m->e->host, m->n_live_ranges, sizeof *m->live_ranges);
    }
    if (m->e->n > m->cap_dispatch) {
        vkt_free(&m->e->host, m->live);
        m->cap_dispatch = 2 * m->e->n;
        m->live = vkt_alloc_array(&m->e->host, m->cap_dispatch, sizeof *m->live);
    }
    return m->live_ranges && m->live ? VKT_OK
                                     : vkt_fail_nomem(&m->e->host, "recomputation", values * sizeof *m->live_ranges);
}

static vkt_result measure_live_ranges(recomputation *m)
{
    const vkt_emit *e = m->e;
    VKT_TRY(make_room(m));
    const size_t values = e->g->n_values + e->n_extra;
    for (size_t i = 0; i < values; i++) m->live_ranges[i] = (span){ UINT32_MAX, 0 };
    for (uint32_t d = 0; d < e->n; d++)
        for (uint32_t b = 0; b < e->list[d].n_bind; b++) {
            if (!e->list[d].bind[b].t.id) continue;
            span *s = &m->live_ranges[root_of(e, e->list[d].bind[b].t)];
            s->first = VKT_MIN(s->first, d);
            s->last = VKT_MAX(s->last, d);
        }
    for (uint32_t i = 1; i < e->g->n_values; i++)
        if (e->g->values[i].keep) m->live_ranges[root_of(e, (vkt_tensor){ i })] = (span){ 0, UINT32_MAX };
    memset(m->live, 0, e->n * sizeof *m->live);
    for (uint32_t i = 1; i < values; i++)
        for (uint32_t d = m->live_ranges[i].first; is_packed(e, i) && d < e->n && d <= m->live_ranges[i].last; d++)
            m->live[d] += bytes_of(e, i);
    m->peak = 0;
    for (uint32_t d = 1; d < e->n; d++)
        if (m->live[d] > m->live[m->peak]) m->peak = d;
    return VKT_OK;
}

/* ---- nodes that may be computed again ---- */

static bool touches(const vkt_emit *e, uint32_t d, uint32_t root)
{
    for (uint32_t b = 0; b < e->list[d].n_bind; b++)
        if (e->list[d].bind[b].t.id && root_of(e, e->list[d].bind[b].t) == root) return true;
    return false;
}

/* Returns whether a dispatch of [from, to) writes to `root`, or to a value that may have the same memory. A packed
 * value, an input or a constant shares its memory with no other value. Any other value may share its memory with all
 * values of the same role. */
static bool is_written(const recomputation *m, uint32_t root, uint32_t from, uint32_t to)
{
    const vkt_emit *e = m->e;
    const vkt_role role = value_of(e, root)->role;
    const bool alone = is_packed(e, root) || role == VKT_ROLE_INPUT || role == VKT_ROLE_CONST;
    for (uint32_t d = from; d < to; d++)
        for (uint32_t b = 0; b < e->list[d].n_bind; b++) {
            if (!e->list[d].bind[b].t.id || !(m->access(&e->list[d]).writes >> b & 1)) continue;
            const uint32_t other = root_of(e, e->list[d].bind[b].t);
            if (alone ? other == root : value_of(e, other)->role == role) return true;
        }
    return false;
}

/* Finds the root values that c's dispatches bind. Returns false if there are too many. */
static bool find_roots(const vkt_emit *e, candidate *c)
{
    for (uint32_t d = c->first; d < c->end; d++)
        for (uint32_t b = 0; b < e->list[d].n_bind; b++) {
            if (!e->list[d].bind[b].t.id) continue;
            const uint32_t root = root_of(e, e->list[d].bind[b].t);
            uint32_t i = 0;
            while (i < c->n_roots && c->roots[i] != root) i++;
            if (i == MAX_ROOTS) return false;
            if (i == c->n_roots) c->roots[c->n_roots++] = root;
        }
    return true;
}

/* Returns the first dispatch behind the peak that touches `root`, which is a reader. Returns 0 if there is none, or if
 * the dispatch at the peak touches `root`. */
static uint32_t late_reader(const recomputation *m, uint32_t root)
{
    if (touches(m->e, m->peak, root)) return 0;
    for (uint32_t d = m->peak + 1; d < m->e->n && d <= m->live_ranges[root].last; d++)
        if (touches(m->e, d, root)) return d;
    return 0;
}

/* Returns whether a second run of the node is allowed and saves memory. */
static bool evaluate(const recomputation *m, candidate *c)
{
    if (!find_roots(m->e, c)) return false;
    uint64_t idle_bytes = 0; /* outputs of the second run that have no reader */
    c->reader = UINT32_MAX;
    for (uint32_t i = 0; i < c->n_roots; i++) {
        const uint32_t root = c->roots[i];
        c->made[i] = is_written(m, root, c->first, c->end);
        if (!c->made[i]) continue;
        if (root >= m->first_new) return false;
        if (!is_packed(m->e, root) || m->live_ranges[root].first < c->first || m->live_ranges[root].last == UINT32_MAX)
            return false;
        const uint32_t reader = late_reader(m, root);
        c->late[i] = reader != 0;
        *(reader ? &c->gain_bytes : &idle_bytes) += bytes_of(m->e, root);
        if (reader) c->reader = VKT_MIN(c->reader, reader);
    }
    if (!c->gain_bytes || m->live[c->reader] + idle_bytes > m->live[m->peak]) return false;
    for (uint32_t i = 0; i < c->n_roots; i++) {
        if (c->made[i]) continue;
        const bool there = !is_packed(m->e, c->roots[i]) || m->live_ranges[c->roots[i]].last >= c->reader;
        if (!there || is_written(m, c->roots[i], c->end, c->reader)) return false;
    }
    return true;
}

static bool find_best(const recomputation *m, candidate *best)
{
    const vkt_emit *e = m->e;
    best->gain_bytes = 0;
    for (uint32_t first = 0, end; first < m->peak; first = end) {
        for (end = first + 1; end < e->n && e->list[end].node == e->list[first].node; end++) {
        }
        candidate c = { .first = first, .end = end };
        const vkt_op *op = e->g->nodes[e->list[first].node]->op;
        if (op->cheap && end <= m->peak && evaluate(m, &c) && c.gain_bytes > best->gain_bytes) *best = c;
    }
    return best->gain_bytes > 0;
}

/* ---- computing again ---- */

/* Adds a copy of the value `root`. *id gets the id of the copy. */
static vkt_result add_value(vkt_emit *e, uint32_t root, uint32_t *id)
{
    VKT_TRY(vkt_grow(&e->host, &e->extra, e->n_extra, &e->cap_extra, sizeof *e->extra));
    vkt_value v = *value_of(e, root);
    char name[VKT_NAME_MAX];
    snprintf(name, sizeof name, "%.40s again", v.name);
    memcpy(v.name, name, sizeof name);
    *id = (uint32_t)(e->g->n_values + e->n_extra);
    e->extra[e->n_extra++] = v;
    return VKT_OK;
}

/* For each i with which[i], replaces c->roots[i] by ids[i] in the bindings of the dispatches `from` .. end - 1. */
static void rebind(vkt_emit *e, uint32_t from, size_t end, const candidate *c, const bool *which, const uint32_t *ids)
{
    for (size_t d = from; d < end; d++)
        for (uint32_t b = 0; b < e->list[d].n_bind; b++)
            for (uint32_t i = 0; e->list[d].bind[b].t.id && i < c->n_roots; i++)
                if (which[i] && root_of(e, e->list[d].bind[b].t) == c->roots[i]) {
                    e->list[d].bind[b].t.id = ids[i];
                    break;
                }
}

static vkt_result make_again(vkt_emit *e, const candidate *c)
{
    const uint32_t n = c->end - c->first;
    uint32_t ids[MAX_ROOTS] = { 0 };
    for (uint32_t k = 0; k < n; k++) VKT_TRY(vkt_grow(&e->host, &e->list, e->n + k, &e->cap, sizeof *e->list));
    for (uint32_t i = 0; i < c->n_roots; i++)
        if (c->made[i]) VKT_TRY(add_value(e, c->roots[i], &ids[i]));
    memmove(&e->list[c->reader + n], &e->list[c->reader], (e->n - c->reader) * sizeof *e->list);
    memcpy(&e->list[c->reader], &e->list[c->first], n * sizeof *e->list);
    e->n += n;
    rebind(e, c->reader, c->reader + n, c, c->made, ids);
    rebind(e, c->reader + n, e->n, c, c->late, ids);
    return VKT_OK;
}

vkt_result vkt_recompute(vkt_emit *e, vkt_access_fn access, uint32_t *again)
{
    recomputation m = { .e = e, .access = access, .first_new = (uint32_t)(e->g->n_values + e->n_extra) };
    const size_t n = e->n;
    candidate best;
    vkt_result r = e->n ? measure_live_ranges(&m) : VKT_OK;
    while (r == VKT_OK && e->n && find_best(&m, &best)) {
        r = make_again(e, &best);
        if (r == VKT_OK) r = measure_live_ranges(&m);
    }
    *again = (uint32_t)(e->n - n);
    vkt_free(&e->host, m.live_ranges);
    vkt_free(&e->host, m.live);
    return r;
}
