/* plan/plan.c - assigns memory to values, finds their live ranges, and makes the plan as a whole. */
#include "plan/plan.h"

#define KEPT (UINT32_MAX - 1) /* end of the live range of a kept value: behind all real stages */

static const vkt_value *value_at(const vkt_emit *e, size_t id)
{
    return vkt_lowered_value(e, (vkt_tensor){ (uint32_t)id });
}

/* ---- owners: the owner of value v is the value whose memory v uses ---- */

/* The executions of nodes that touch the memory of a root value (vkt_root). A node that is recomputed is executed more
 * than once. */
typedef struct touch {
    uint32_t nodes; /* number of these executions */
    uint32_t last;  /* index + 1 of the node of the last execution */
    size_t run;     /* index of the last execution */
    bool kept;
} touch;

static void find_touches(const vkt_emit *e, const vkt_plan *p, touch *t)
{
    for (size_t i = 1; i < e->g->n_values; i++) t[p->owner[i]].kept |= e->g->values[i].keep;
    size_t run = 0; /* index of the current execution */
    for (size_t d = 0; d < e->n; d++) {
        if (d > 0 && e->list[d].node != e->list[d - 1].node) run++;
        for (uint32_t b = 0; b < e->list[d].n_bind; b++) {
            if (!e->list[d].bind[b].t.id) continue;
            touch *x = &t[p->owner[e->list[d].bind[b].t.id]];
            x->nodes += x->last != e->list[d].node + 1 || x->run != run;
            x->last = e->list[d].node + 1;
            x->run = run;
        }
    }
}

/* Returns whether the node may compute its first output in the memory of input i. This memory must be packed and not
 * kept, and only the input's producer and this node may touch it. So no dispatch reads the input after it is
 * overwritten. t[root] has the touches of the root value as they were before overwrite_input moved any output. */
static bool may_overwrite(const vkt_emit *e, const vkt_node *n, uint32_t i, const touch *t)
{
    const uint32_t root = vkt_root(e->g, n->in[i]);
    return vkt_is_packed(&e->g->values[root]) && t[root].nodes == 2 && t[root].last == n->index + 1 && !t[root].kept;
}

/* Moves the node's first output to the memory of an input, if the op descriptor (vkt_op.in_place) and may_overwrite
 * allow this. Moves nothing if one of the inputs in vkt_op.in_place differs from the output in type, storage, shape or
 * layout. */
static void overwrite_input(const vkt_emit *e, const vkt_node *n, const touch *t, vkt_plan *p)
{
    const vkt_value *y = vkt_lowered_value(e, n->out[0]);
    if (!n->op->in_place || y->alias || y->role != VKT_ROLE_ACTIVATION) return;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const vkt_value *x = vkt_lowered_value(e, n->in[i]);
        if ((n->op->in_place >> i & 1) && (x->dtype != y->dtype || x->storage != y->storage || x->layout != y->layout ||
                                           !vkt_shape_equal(x->shape, y->shape)))
            return;
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        if ((n->op->in_place >> i & 1) && may_overwrite(e, n, i, t)) {
            p->owner[n->out[0].id] = p->owner[vkt_root(e->g, n->in[i])];
            return;
        }
}

static vkt_result find_owners(const vkt_emit *e, bool in_place, vkt_plan *p)
{
    for (uint32_t i = 0; i < p->n; i++) p->owner[i] = i < e->g->n_values ? vkt_root(e->g, (vkt_tensor){ i }) : i;
    if (!in_place) return VKT_OK;
    touch *t = vkt_alloc_array(&p->host, p->n, sizeof *t);
    if (!t) return vkt_fail_nomem(&p->host, "the memory plan", p->n * sizeof *t);
    find_touches(e, p, t);
    for (size_t d = 0; d < e->n; d++)
        if (d == 0 || e->list[d].node != e->list[d - 1].node) overwrite_input(e, e->g->nodes[e->list[d].node], t, p);
    for (uint32_t i = 1; i < e->g->n_values; i++) /* an alias has the owner of its root */
        p->owner[i] = p->owner[vkt_root(e->g, (vkt_tensor){ i })];
    vkt_free(&p->host, t);
    return VKT_OK;
}

/* ---- live ranges ---- */

static void find_live_ranges(const vkt_emit *e, vkt_plan *p)
{
    for (size_t i = 0; i < p->n; i++) p->live_range[i] = (vkt_live_range){ UINT32_MAX, 0 };
    for (size_t d = 0; d < e->n; d++)
        for (uint32_t b = 0; b < e->list[d].n_bind; b++) {
            if (!e->list[d].bind[b].t.id) continue;
            vkt_live_range *l = &p->live_range[p->owner[e->list[d].bind[b].t.id]];
            l->first = VKT_MIN(l->first, p->stage[d]);
            l->last = VKT_MAX(l->last, p->stage[d]);
        }
    for (size_t i = 1; i < e->g->n_values; i++)
        if (e->g->values[i].keep) p->live_range[p->owner[i]] = (vkt_live_range){ 0, KEPT };
}

/* Returns whether the packing must find an offset for the value. */
static bool is_owner(const vkt_emit *e, const vkt_plan *p, size_t i)
{
    return p->owner[i] == i && vkt_is_packed(value_at(e, i)) && p->live_range[i].first <= p->live_range[i].last;
}

static vkt_result pack(const vkt_emit *e, const vkt_plan_options *o, vkt_plan *p)
{
    vkt_packed *list = vkt_alloc_array(&p->host, p->n, sizeof *list);
    vkt_result r = list ? VKT_OK : vkt_fail_nomem(&p->host, "the memory plan", p->n * sizeof *list);
    size_t n = 0;
    for (size_t i = 1; r == VKT_OK && i < p->n; i++) {
        if (!is_owner(e, p, i)) continue;
        const uint64_t bytes = vkt_round_up(value_at(e, i)->bytes, VKT_ALIGN_BYTES) + o->guard_bytes;
        if (bytes > o->max_block_bytes) {
            char want[24], have[24];
            r = vkt_fail(&p->host, VKT_E_DEVICE_MEMORY, "%s needs %s; the largest allocation of this device is %s",
                         value_at(e, i)->name, vkt_bytes_text(bytes, want), vkt_bytes_text(o->max_block_bytes, have));
        }
        list[n++] = (vkt_packed){ .id = (uint32_t)i, .bytes = bytes, .live_range = p->live_range[i] };
    }
    if (r == VKT_OK) r = vkt_pack(list, n, o, p);
    for (size_t i = 0; r == VKT_OK && i < n; i++)
        p->region[list[i].id] =
            (vkt_region){ .role = VKT_ROLE_ACTIVATION, .index = list[i].block, .offset_bytes = list[i].offset };
    vkt_free(&p->host, list);
    return r;
}

/* Sets the memory of values that are not packed. Then gives each value the memory of its owner, with the value's own
 * size. */
static void set_other_regions(const vkt_emit *e, vkt_plan *p)
{
    for (size_t i = 1; i < p->n; i++) {
        const vkt_value *v = value_at(e, i);
        vkt_region *at = &p->region[i];
        if (v->alias || vkt_is_packed(v)) continue;
        *at = (vkt_region){ .role = v->role, .index = (uint32_t)i, .offset_bytes = v->arena_offset_bytes };
        if (v->role == VKT_ROLE_CONST) {
            at->offset_bytes = p->const_bytes;
            p->const_bytes += vkt_round_up(v->bytes, VKT_ALIGN_BYTES);
        }
        if (v->role == VKT_ROLE_INPUT) p->input_bytes += vkt_round_up(v->bytes, VKT_ALIGN_BYTES);
    }
    for (size_t i = 1; i < p->n; i++) {
        p->region[i] = p->region[p->owner[i]];
        p->region[i].bytes = value_at(e, i)->bytes;
    }
}

/* ---- the plan ---- */

/* Plans e->list in its present order. If `stage` is NULL, each dispatch is one stage. */
static vkt_result plan_order(const vkt_emit *e, const uint32_t *stage, const vkt_plan_options *o, vkt_plan *p)
{
    *p = (vkt_plan){ .host = e->host, .n = e->g->n_values + e->n_extra };
    p->region = vkt_alloc_array(&e->host, p->n, sizeof *p->region);
    p->owner = vkt_alloc_array(&e->host, p->n, sizeof *p->owner);
    p->live_range = vkt_alloc_array(&e->host, p->n, sizeof *p->live_range);
    p->stage = vkt_alloc_array(&e->host, e->n + 1, sizeof *p->stage);
    vkt_result r =
        p->region && p->owner && p->live_range && p->stage ? VKT_OK : vkt_fail_nomem(&e->host, "a plan", p->n);
    for (uint32_t d = 0; r == VKT_OK && d < e->n; d++) p->stage[d] = stage ? stage[d] : d;
    if (r == VKT_OK) r = find_owners(e, o->in_place, p);
    if (r == VKT_OK) {
        find_live_ranges(e, p);
        r = pack(e, o, p);
    }
    if (r == VKT_OK) {
        set_other_regions(e, p);
        r = vkt_find_barriers(e, o->access, p);
        p->emitted_barriers = p->n_barriers;
    }
    if (r != VKT_OK) vkt_plan_free(p);
    return r;
}

/* Tries another order of the dispatches (schedule.c). If more_bytes is 0, the order replaces *p if it needs no more
 * barriers and no more memory than *p. Otherwise the order replaces *p if it needs fewer barriers, and at most
 * more_bytes more memory. */
static vkt_result try_order(vkt_emit *e, const vkt_plan_options *o, uint64_t more_bytes, vkt_plan *p, bool *better)
{
    vkt_dispatch *emitted = e->list, *list = vkt_alloc_array(&e->host, e->n + 1, sizeof *list);
    uint32_t *order = vkt_alloc_array(&e->host, e->n + 1, sizeof *order);
    uint32_t *stage = vkt_alloc_array(&e->host, e->n + 1, sizeof *stage);
    const uint64_t most_bytes = p->packed_bytes + more_bytes;
    vkt_result r = list && order && stage ? VKT_OK : vkt_fail_nomem(&e->host, "a plan", e->n * sizeof *list);
    if (r == VKT_OK) r = vkt_plan_schedule(e, p, o->access, most_bytes, order, stage, &p->work);
    *better = false;
    if (r == VKT_OK) {
        vkt_plan other;
        for (size_t i = 0; i < e->n; i++) list[i] = emitted[order[i]];
        e->list = list;
        r = plan_order(e, stage, o, &other);
        *better =
            r == VKT_OK && other.packed_bytes <= most_bytes && other.n_barriers + (more_bytes > 0) <= p->n_barriers;
        if (*better) {
            other.emitted_barriers = p->n_barriers;
            other.work += p->work;
            vkt_plan_free(p);
            *p = other;
        } else {
            p->work += other.work;
            vkt_plan_free(&other);
        }
    }
    e->list = *better ? list : emitted;
    if (*better) e->cap = e->n + 1;
    vkt_free(&e->host, *better ? emitted : list);
    vkt_free(&e->host, order);
    vkt_free(&e->host, stage);
    return r;
}

/* Looks for a better order. First tries an order that may use o->more_bytes more memory, if o->most_bytes allows
 * this. If that order is not better, tries an order without more memory. */
static vkt_result improve(vkt_emit *e, const vkt_plan_options *o, vkt_plan *p)
{
    const uint64_t all_bytes = p->packed_bytes + p->const_bytes + p->input_bytes + o->more_bytes;
    bool better = false;
    if (o->more_bytes && all_bytes <= o->most_bytes) VKT_TRY(try_order(e, o, o->more_bytes, p, &better));
    return better ? VKT_OK : try_order(e, o, 0, p, &better);
}

vkt_result vkt_plan_make(vkt_emit *e, const vkt_plan_options *o, vkt_plan *out)
{
    vkt_run_early(e, o->access);
    VKT_TRY(plan_order(e, NULL, o, out));
    const vkt_result r = improve(e, o, out);
    if (r != VKT_OK) vkt_plan_free(out);
    return r;
}

void vkt_plan_free(vkt_plan *p)
{
    vkt_free(&p->host, p->region);
    vkt_free(&p->host, p->owner);
    vkt_free(&p->host, p->live_range);
    vkt_free(&p->host, p->stage);
    vkt_free(&p->host, p->block_bytes);
    vkt_free(&p->host, p->barriers);
    *p = (vkt_plan){ .host = p->host };
}

void vkt_plan_text(const vkt_plan *p, const vkt_emit *e, vkt_text *t)
{
    char a[24], b[24];
    vkt_text_add(t, "memory: %zu block(s), %s packed, %s at least (%.3fx)\n", p->n_blocks,
                 vkt_bytes_text(p->packed_bytes, a), vkt_bytes_text(p->lower_bound_bytes, b),
                 p->lower_bound_bytes ? (double)p->packed_bytes / (double)p->lower_bound_bytes : 1.0);
    for (size_t i = 1; i < p->n; i++) {
        const vkt_value *v = value_at(e, i);
        const vkt_live_range l = p->live_range[p->owner[i]];
        if (!vkt_is_packed(v) || v->alias || l.first > l.last) continue;
        vkt_text_add(t, "  block %u @ %10llu  %10llu B  ", p->region[i].index,
                     (unsigned long long)p->region[i].offset_bytes, (unsigned long long)v->bytes);
        if (p->owner[i] != i)
            vkt_text_add(t, "in place   %s, of %s\n", v->name, value_at(e, p->owner[i])->name);
        else if (l.last == KEPT)
            vkt_text_add(t, "kept       %s\n", v->name);
        else
            vkt_text_add(t, "[%3u..%3u] %s\n", l.first, l.last, v->name);
    }
}
