/* plan/plan.c - liveness and packing.
 *
 * Packing is greedy by size: the largest value first, each at the lowest offset where it fits between the values placed
 * already whose lives meet its own (Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020,
 * section 5.1). */
#include "plan/plan.h"

#include <stdlib.h>

static uint32_t root_of(const vkt_emit *e, vkt_tensor t)
{
    return t.id < e->g->n_values ? vkt_root(e->g, t) : t.id;
}

static const vkt_value *value_at(const vkt_emit *e, size_t id)
{
    return vkt_lowered_value(e, (vkt_tensor){ (uint32_t)id });
}

static bool is_packed(const vkt_value *v)
{
    return v->role == VKT_ROLE_ACTIVATION || v->role == VKT_ROLE_SCRATCH;
}

static void find_lives(const vkt_emit *e, vkt_plan *p)
{
    for (size_t i = 0; i < p->n; i++) p->life[i] = (vkt_life){ UINT32_MAX, 0 };
    for (size_t d = 0; d < e->n; d++)
        for (uint32_t b = 0; b < e->list[d].n_bind; b++) {
            if (!e->list[d].bind[b].t.id) continue;
            vkt_life *l = &p->life[root_of(e, e->list[d].bind[b].t)];
            l->first = VKT_MIN(l->first, (uint32_t)d);
            l->last = VKT_MAX(l->last, (uint32_t)d);
        }
    for (size_t i = 1; i < e->g->n_values; i++)
        if (e->g->values[i].keep) p->life[root_of(e, (vkt_tensor){ (uint32_t)i })] = (vkt_life){ 0, UINT32_MAX - 1 };
}

static bool lives_meet(vkt_life a, vkt_life b)
{
    return a.first <= b.last && b.first <= a.last;
}

typedef struct packed {
    uint32_t id, block;
    uint64_t bytes, offset;
    vkt_life life;
} packed;

static int larger_first(const void *a, const void *b)
{
    const packed *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id; /* a fixed order: the same plan every time */
}

static int lower_offset_first(const void *a, const void *b)
{
    const packed *const *x = a, *const *y = b;
    return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

/* The lowest offset in `block` where v fits among the `n` values of `done`, of which `near` has room for all. */
static uint64_t lowest_gap(const packed *v, uint32_t block, const packed *done, size_t n, const packed **near,
                           bool share)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (done[i].block == block && (!share || lives_meet(done[i].life, v->life))) near[k++] = &done[i];
    if (k) qsort(near, k, sizeof *near, lower_offset_first);
    uint64_t at = 0;
    for (size_t i = 0; i < k; i++) {
        if (at + v->bytes <= near[i]->offset) break;
        at = VKT_MAX(at, near[i]->offset + near[i]->bytes);
    }
    return at;
}

static vkt_result add_block(vkt_plan *p)
{
    VKT_TRY(vkt_grow(&p->host, &p->block_bytes, p->n_blocks, &p->cap_blocks, sizeof *p->block_bytes));
    p->block_bytes[p->n_blocks++] = 0;
    return VKT_OK;
}

static vkt_result place_all(packed *list, size_t n, const packed **near, const vkt_plan_options *o, vkt_plan *p)
{
    for (size_t i = 0; i < n; i++) {
        packed *v = &list[i];
        for (v->block = 0;; v->block++) {
            if (v->block == p->n_blocks) VKT_TRY(add_block(p));
            v->offset = lowest_gap(v, v->block, list, i, near, o->guard_bytes == 0);
            if (v->offset + v->bytes <= o->max_block_bytes) break;
        }
        uint64_t *size = &p->block_bytes[v->block];
        *size = VKT_MAX(*size, v->offset + v->bytes);
        p->place[v->id] = (vkt_place){ .role = VKT_ROLE_ACTIVATION, .index = v->block, .offset_bytes = v->offset };
    }
    for (size_t i = 0; i < p->n_blocks; i++) p->packed_bytes += p->block_bytes[i];
    return VKT_OK;
}

/* The most bytes alive at any one dispatch: no packing can need less. */
static uint64_t lower_bound(const packed *list, size_t n)
{
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t alive = 0; /* the maximum is reached where some life starts */
        for (size_t j = 0; j < n; j++)
            if (list[j].life.first <= list[i].life.first && list[i].life.first <= list[j].life.last)
                alive += list[j].bytes;
        most = VKT_MAX(most, alive);
    }
    return most;
}

static vkt_result pack(const vkt_emit *e, const vkt_plan_options *o, vkt_plan *p)
{
    packed *list = vkt_alloc_array(&p->host, p->n, sizeof *list);
    const packed **near = vkt_alloc_array(&p->host, p->n, sizeof *near);
    vkt_result r = list && near ? VKT_OK : vkt_fail_nomem(&p->host, "the memory plan", p->n * sizeof *list);
    size_t n = 0;
    for (size_t i = 1; r == VKT_OK && i < p->n; i++) {
        const vkt_value *v = value_at(e, i);
        if (!is_packed(v) || v->alias || p->life[i].first > p->life[i].last) continue;
        const uint64_t bytes = vkt_round_up(v->bytes, VKT_ALIGN_BYTES) + o->guard_bytes;
        if (bytes > o->max_block_bytes) {
            char want[24], have[24];
            r = vkt_fail(&p->host, VKT_E_DEVICE_MEMORY, "%s needs %s; the largest allocation of this device is %s",
                         v->name, vkt_bytes_text(bytes, want), vkt_bytes_text(o->max_block_bytes, have));
        }
        list[n++] = (packed){ .id = (uint32_t)i, .bytes = bytes, .life = p->life[i] };
    }
    if (r == VKT_OK && n) {
        qsort(list, n, sizeof *list, larger_first);
        p->lower_bound_bytes = lower_bound(list, n);
        r = place_all(list, n, near, o, p);
    }
    vkt_free(&p->host, near);
    vkt_free(&p->host, list);
    return r;
}

/* Places of values that are not packed, then of aliases. */
static void place_rest(const vkt_emit *e, vkt_plan *p)
{
    for (size_t i = 1; i < p->n; i++) {
        const vkt_value *v = value_at(e, i);
        vkt_place *at = &p->place[i];
        if (v->alias) continue;
        if (!is_packed(v)) {
            at->role = v->role;
            at->index = (uint32_t)i;
            at->offset_bytes = v->arena_offset_bytes;
        }
        if (v->role == VKT_ROLE_CONST) {
            at->offset_bytes = p->const_bytes;
            p->const_bytes += vkt_round_up(v->bytes, VKT_ALIGN_BYTES);
        }
        if (v->role == VKT_ROLE_INPUT) p->input_bytes += vkt_round_up(v->bytes, VKT_ALIGN_BYTES);
        at->bytes = v->bytes;
    }
    for (size_t i = 1; i < e->g->n_values; i++)
        if (e->g->values[i].alias) {
            p->place[i] = p->place[vkt_root(e->g, (vkt_tensor){ (uint32_t)i })];
            p->place[i].bytes = e->g->values[i].bytes;
        }
}

vkt_result vkt_plan_make(const vkt_emit *e, const vkt_plan_options *o, vkt_plan *out)
{
    *out = (vkt_plan){ .host = e->host, .n = e->g->n_values + e->n_extra };
    out->place = vkt_alloc_array(&e->host, out->n, sizeof *out->place);
    out->life = vkt_alloc_array(&e->host, out->n, sizeof *out->life);
    vkt_result r = out->place && out->life ? VKT_OK : vkt_fail_nomem(&e->host, "the memory plan", out->n);
    if (r == VKT_OK) {
        find_lives(e, out);
        r = pack(e, o, out);
    }
    if (r == VKT_OK)
        place_rest(e, out);
    else
        vkt_plan_free(out);
    return r;
}

void vkt_plan_free(vkt_plan *p)
{
    vkt_free(&p->host, p->place);
    vkt_free(&p->host, p->life);
    vkt_free(&p->host, p->block_bytes);
    p->place = NULL;
    p->life = NULL;
    p->block_bytes = NULL;
    p->n_blocks = p->n = 0;
}

void vkt_plan_text(const vkt_plan *p, const vkt_emit *e, vkt_text *t)
{
    char a[24], b[24];
    vkt_text_add(t, "memory: %zu block(s), %s packed, %s at least\n", p->n_blocks, vkt_bytes_text(p->packed_bytes, a),
                 vkt_bytes_text(p->lower_bound_bytes, b));
    for (size_t i = 1; i < p->n; i++) {
        const vkt_value *v = value_at(e, i);
        if (!is_packed(v) || v->alias || p->life[i].first > p->life[i].last) continue;
        const bool kept = p->life[i].last == UINT32_MAX - 1;
        vkt_text_add(t, "  block %u @ %10llu  %10llu B  ", p->place[i].index,
                     (unsigned long long)p->place[i].offset_bytes, (unsigned long long)v->bytes);
        if (kept)
            vkt_text_add(t, "kept       %s\n", v->name);
        else
            vkt_text_add(t, "[%3u..%3u] %s\n", p->life[i].first, p->life[i].last, v->name);
    }
}
