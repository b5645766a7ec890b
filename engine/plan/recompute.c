/* plan/recompute.c - needs less memory and more work: computes cheap values a second time, before their late readers,
 * instead of keeping them through the peak (rematerialization; Chen et al., "Training Deep Nets with Sublinear Memory
 * Cost", 2016).
 *
 * The peak is the first dispatch at which the number of live bytes is largest. The search looks for nodes in front of
 * the peak with outputs that the peak does not touch, but that a dispatch behind the peak reads. The op of such a node
 * must be `cheap` (vkt_op.cheap). The inputs of the node must still be live and unchanged at the first reader behind
 * the peak. The search chooses the node whose outputs for readers behind the peak have the most bytes. The node's
 * dispatches are inserted again before the first of these readers, with outputs of their own. Then the search starts
 * again, until it finds no node. Each time, the first run of a node loses a reader, and a second run is never repeated.
 * So the search ends. Kernels are deterministic, and the second run has the same inputs. So it computes the same bits
 * as the first run. */
#include "plan/plan.h"

#include <stdio.h>

typedef struct span {
    uint32_t first, last; /* indices of dispatches; first > last: none */
} span;

/* The dispatches of the present list that use a root value, which is a value that owns memory (vkt_root). */
typedef struct usage {
    span live;     /* from the first to the last dispatch that touches the value; a kept value: from 0 to UINT32_MAX */
    span writes;   /* the first and the last dispatch that write the value */
    uint32_t late; /* the first dispatch behind the peak that touches the value. 0: no dispatch behind the peak touches
                    * it, or the peak touches it */
} usage;

typedef struct recomputation {
    vkt_emit *e;
    vkt_access_fn access;
    uint32_t first_new; /* values from this id on are outputs of second runs, which are not computed again */
    usage *use;         /* for the present list of dispatches; the index is the id of a value that owns memory
                         * (vkt_root) */
    size_t cap_use;     /* capacity of `use` */
    span writes[VKT_ROLE_SCRATCH + 1]; /* by role: the first and the last dispatch that write a value of this role */
    uint64_t *live;                    /* live bytes, by dispatch */
    size_t cap_dispatch;               /* capacity of `live` */
    uint32_t peak;                     /* the first dispatch at which the number of live bytes is largest */
} recomputation;

enum { MAX_ROOTS = 24 }; /* enough, because a cheap node binds few values */

/* The dispatches of one node, `first` .. end - 1, and the effect of a second run of these dispatches. */
typedef struct candidate {
    uint32_t first, end;
    uint32_t roots[MAX_ROOTS]; /* the values that the dispatches bind */
    bool made[MAX_ROOTS];      /* made[i]: the dispatches write roots[i] */
    bool late[MAX_ROOTS];      /* late[i]: made[i] is true, the peak does not touch roots[i], and a dispatch behind the
                                * peak reads roots[i] */
    uint32_t n_roots;
    uint32_t reader;     /* the first dispatch behind the peak that reads a late root */
    uint64_t gain_bytes; /* size of all late roots */
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
    if (values > m->cap_use) {
        vkt_free(&m->e->host, m->use);
        m->cap_use = 2 * values;
        m->use = vkt_alloc_array(&m->e->host, m->cap_use, sizeof *m->use);
    }
    if (m->e->n + 1 > m->cap_dispatch) {
        vkt_free(&m->e->host, m->live);
        m->cap_dispatch = 2 * (m->e->n + 1);
        m->live = vkt_alloc_array(&m->e->host, m->cap_dispatch, sizeof *m->live);
    }
    return m->use && m->live ? VKT_OK : vkt_fail_nomem(&m->e->host, "recomputation", values * sizeof *m->use);
}

static void widen(span *s, uint32_t d)
{
    s->first = VKT_MIN(s->first, d);
    s->last = VKT_MAX(s->last, d);
}

/* Fills `live` and `writes` of each root value's usage, and m->writes. */
static void measure_spans(recomputation *m)
{
    const vkt_emit *e = m->e;
    const span none = { UINT32_MAX, 0 };
    for (size_t i = 0; i < e->g->n_values + e->n_extra; i++) m->use[i] = (usage){ .live = none, .writes = none };
    for (size_t i = 0; i < VKT_COUNT(m->writes); i++) m->writes[i] = none;
    for (uint32_t d = 0; d < e->n; d++) {
        const uint32_t writes = m->access(&e->list[d]).writes;
        for (uint32_t b = 0; b < e->list[d].n_bind; b++) {
            if (!e->list[d].bind[b].t.id) continue;
            const uint32_t root = root_of(e, e->list[d].bind[b].t);
            widen(&m->use[root].live, d);
            if (!(writes >> b & 1)) continue;
            widen(&m->use[root].writes, d);
            widen(&m->writes[value_of(e, root)->role], d);
        }
    }
    for (uint32_t i = 1; i < e->g->n_values; i++)
        if (e->g->values[i].keep) m->use[root_of(e, (vkt_tensor){ i })].live = (span){ 0, UINT32_MAX };
}

/* Finds the live bytes at each dispatch, and the peak. First, live[d] gets the live bytes at dispatch d minus those at
 * dispatch d - 1. Then these differences are summed. */
static void measure_peak(recomputation *m)
{
    const vkt_emit *e = m->e;
    memset(m->live, 0, (e->n + 1) * sizeof *m->live);
    for (uint32_t i = 1; i < e->g->n_values + e->n_extra; i++) {
        const span s = m->use[i].live;
        if (!is_packed(e, i) || s.first > s.last) continue;
        m->live[s.first] += bytes_of(e, i);
        m->live[VKT_MIN(s.last, (uint32_t)e->n - 1) + 1] -= bytes_of(e, i);
    }
    m->peak = 0;
    for (uint32_t d = 1; d < e->n; d++) {
        m->live[d] += m->live[d - 1];
        if (m->live[d] > m->live[m->peak]) m->peak = d;
    }
}

/* Fills `late` of each root value's usage. */
static void find_late(recomputation *m)
{
    const vkt_emit *e = m->e;
    for (uint32_t d = (uint32_t)e->n; d-- > m->peak;)
        for (uint32_t b = 0; b < e->list[d].n_bind; b++)
            if (e->list[d].bind[b].t.id) m->use[root_of(e, e->list[d].bind[b].t)].late = d > m->peak ? d : 0;
}

static vkt_result measure(recomputation *m)
{
    VKT_TRY(make_room(m));
    measure_spans(m);
    measure_peak(m);
    find_late(m);
    return VKT_OK;
}

/* ---- nodes that may be computed again ---- */

/* Returns whether a dispatch of [from, to) writes to `root`, or to a value that may have the same memory as `root`.
 * Inputs and constants share no memory with other values. Activations and scratch values share none before the plan is
 * made. A value of any other role may share memory with all values of that role. */
static bool is_written(const recomputation *m, uint32_t root, uint32_t from, uint32_t to)
{
    const vkt_emit *e = m->e;
    const vkt_role role = value_of(e, root)->role;
    const bool alone = is_packed(e, root) || role == VKT_ROLE_INPUT || role == VKT_ROLE_CONST;
    const span all = alone ? m->use[root].writes : m->writes[role];
    if (all.first > all.last || all.first >= to || all.last < from) return false;
    for (uint32_t d = from; d < to; d++)
        for (uint32_t b = 0; b < e->list[d].n_bind; b++) {
            if (!e->list[d].bind[b].t.id || !(m->access(&e->list[d]).writes >> b & 1)) continue;
            const uint32_t other = root_of(e, e->list[d].bind[b].t);
            if (alone ? other == root : value_of(e, other)->role == role) return true;
        }
    return false;
}

/* Finds the root values that c's dispatches bind. Returns false if there are more than MAX_ROOTS. */
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

/* Returns whether a second run of the node is allowed and saves memory. If so, all members of *c except `first` and
 * `end` are filled. */
static bool evaluate(const recomputation *m, candidate *c)
{
    if (!find_roots(m->e, c)) return false;
    uint64_t idle_bytes = 0; /* size of those outputs of the second run that no later node reads */
    c->reader = UINT32_MAX;
    for (uint32_t i = 0; i < c->n_roots; i++) {
        const uint32_t root = c->roots[i];
        c->made[i] = is_written(m, root, c->first, c->end);
        if (!c->made[i]) continue;
        if (root >= m->first_new) return false;
        if (!is_packed(m->e, root) || m->use[root].live.first < c->first || m->use[root].live.last == UINT32_MAX)
            return false;
        const uint32_t reader = m->use[root].late;
        c->late[i] = reader != 0;
        *(reader ? &c->gain_bytes : &idle_bytes) += bytes_of(m->e, root);
        if (reader) c->reader = VKT_MIN(c->reader, reader);
    }
    if (!c->gain_bytes || m->live[c->reader] + idle_bytes > m->live[m->peak]) return false;
    for (uint32_t i = 0; i < c->n_roots; i++) {
        if (c->made[i]) continue;
        const bool there = !is_packed(m->e, c->roots[i]) || m->use[c->roots[i]].live.last >= c->reader;
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

/* Adds a value with the same description as `root`. *id gets the id of the new value. */
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

/* In the bindings of the dispatches `from` .. end - 1, replaces c->roots[i] by ids[i] if which[i] is true. */
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
    vkt_result r = e->n ? measure(&m) : VKT_OK;
    while (r == VKT_OK && e->n && find_best(&m, &best)) {
        r = make_again(e, &best);
        if (r == VKT_OK) r = measure(&m);
    }
    *again = (uint32_t)(e->n - n);
    vkt_free(&e->host, m.use);
    vkt_free(&e->host, m.live);
    return r;
}
