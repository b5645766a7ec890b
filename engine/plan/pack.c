/* plan/pack.c - offsets for values whose live ranges are known.
 *
 * The values of a list are placed one after the other, each at the lowest offset that is free among the placed values
 * with overlapping live ranges. The order is greedy: by size, then by size times live range (Pisarchyk & Lee,
 * "Efficient Memory Management for Deep Neural Net Inference", 2020, section 5.1). Then each value that ends above the
 * lower bound moves to a random earlier position in the list, and the list is placed again: squeaky wheel optimization
 * (Joslin & Clements, JAIR 10, 1999; with a fixed distance the search would cycle). The best of all rounds is used. The
 * random numbers are Philox's, so the plan is always the same. */
#include "plan/plan.h"

#include <stdlib.h>

typedef struct packer {
    vkt_packed *list;
    size_t n;
    const vkt_plan_options *o;
    uint64_t bound;
    vkt_packed **order;  /* the order in which values are placed */
    vkt_packed **placed; /* sorted by block and offset */
    size_t n_placed;
    uint64_t *ends;  /* end of each block in this round */
    size_t n_blocks; /* number of blocks in this round */
    vkt_packed *best;
    uint64_t best_bytes;
} packer;

static uint64_t area(const vkt_packed *v)
{
    return v->bytes / VKT_ALIGN_BYTES * (1 + (uint64_t)v->life.last - v->life.first);
}

/* Compares by id. No two ids are equal, so the result does not depend on qsort. */
static int by_id(const vkt_packed *x, const vkt_packed *y)
{
    return x->id < y->id ? -1 : x->id > y->id;
}

static int larger_first(const void *a, const void *b)
{
    const vkt_packed *x = *(vkt_packed *const *)a, *y = *(vkt_packed *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : by_id(x, y);
}

static int larger_area_first(const void *a, const void *b)
{
    const vkt_packed *x = *(vkt_packed *const *)a, *y = *(vkt_packed *const *)b;
    return area(x) != area(y) ? (area(x) < area(y) ? 1 : -1) : by_id(x, y);
}

/* Finds the lowest free offset for v among the placed values, and inserts it. */
static void place_one(packer *s, vkt_packed *v)
{
    v->block = 0;
    uint64_t at = 0;
    for (size_t i = 0; i < s->n_placed; i++) {
        const vkt_packed *w = s->placed[i];
        for (; w->block > v->block && at + v->bytes > s->o->max_block_bytes; v->block++) at = 0;
        if (w->block > v->block) break; /* it fits at the end of its block */
        if (s->o->guard_bytes == 0 && !vkt_lives_meet(w->life, v->life)) continue;
        if (at + v->bytes <= w->offset) break;
        at = VKT_MAX(at, w->offset + w->bytes);
    }
    if (at + v->bytes > s->o->max_block_bytes) {
        v->block++;
        at = 0;
    }
    v->offset = at;
    size_t k = s->n_placed++;
    for (; k && (s->placed[k - 1]->block > v->block ||
                 (s->placed[k - 1]->block == v->block && s->placed[k - 1]->offset > at));
         k--)
        s->placed[k] = s->placed[k - 1];
    s->placed[k] = v;
}

/* Places all values in order. Returns the sum of the block sizes. */
static uint64_t place_all(packer *s)
{
    s->n_placed = s->n_blocks = 0;
    for (size_t i = 0; i < s->n; i++) {
        vkt_packed *v = s->order[i];
        place_one(s, v);
        if (v->block == s->n_blocks) s->ends[s->n_blocks++] = 0;
        s->ends[v->block] = VKT_MAX(s->ends[v->block], v->offset + v->bytes);
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n_blocks; i++) sum += s->ends[i];
    if (sum < s->best_bytes) {
        memcpy(s->best, s->list, s->n * sizeof *s->list);
        s->best_bytes = sum;
    }
    return sum;
}

static void blame(packer *s, vkt_rng *r)
{
    for (size_t i = 0; i < s->n; i++) {
        vkt_packed *v = s->order[i];
        uint64_t end = v->offset + v->bytes;
        for (uint32_t b = 0; b < v->block; b++) end += s->ends[b];
        if (end <= s->bound) continue;
        const size_t to = vkt_rng_range(r, 0, (uint32_t)i);
        memmove(&s->order[to + 1], &s->order[to], (i - to) * sizeof(vkt_packed *));
        s->order[to] = v;
    }
}

static void search(packer *s)
{
    /* 64 rounds are enough for a few hundred values. A round costs n^2; thousands of values get 2^28 operations in all.
     */
    const uint64_t rounds = s->o->guard_bytes ? 1 : VKT_MAX(1, VKT_MIN(64, (1u << 28) / ((uint64_t)s->n * s->n)));
    vkt_rng r = vkt_rng_make(0, VKT_STREAM_PLAN, 0, 0);
    s->best_bytes = UINT64_MAX;
    for (int start = 0; start < 2; start++) {
        for (size_t i = 0; i < s->n; i++) s->order[i] = &s->list[i];
        qsort(s->order, s->n, sizeof(vkt_packed *), start ? larger_area_first : larger_first);
        for (uint64_t i = 0; i < rounds && s->best_bytes > s->bound; i++) {
            if (i) blame(s, &r);
            place_all(s);
        }
    }
    memcpy(s->list, s->best, s->n * sizeof *s->list);
}

/* Computes the most bytes that are live in any one stage. */
static vkt_result lower_bound(const vkt_packed *list, size_t n, vkt_plan *p)
{
    uint32_t stages = 0; /* number of the last stage in which a live range starts, plus 1 */
    for (size_t i = 0; i < n; i++) stages = VKT_MAX(stages, list[i].life.first + 1);
    uint64_t *born = vkt_alloc_array(&p->host, 2 * ((size_t)stages + 1), sizeof *born); /* bytes that become live, by
                                                                                         * stage; then bytes that die */
    if (!born) return vkt_fail_nomem(&p->host, "the memory plan", stages * sizeof *born);
    uint64_t *gone = born + stages + 1, alive = 0;
    for (size_t i = 0; i < n; i++) {
        born[list[i].life.first] += list[i].bytes;
        if (list[i].life.last < stages) gone[list[i].life.last + 1] += list[i].bytes;
    }
    for (uint32_t s = 0; s < stages; s++) {
        alive = alive + born[s] - gone[s];
        p->lower_bound_bytes = VKT_MAX(p->lower_bound_bytes, alive);
    }
    vkt_free(&p->host, born);
    return VKT_OK;
}

static void take_blocks(const packer *s, vkt_plan *p)
{
    p->packed_bytes = s->best_bytes;
    for (size_t i = 0; i < s->n; i++) {
        p->n_blocks = VKT_MAX(p->n_blocks, s->list[i].block + 1);
        uint64_t *size = &p->block_bytes[s->list[i].block];
        *size = VKT_MAX(*size, s->list[i].offset + s->list[i].bytes);
    }
}

vkt_result vkt_pack(vkt_packed *list, size_t n, const vkt_plan_options *o, vkt_plan *p)
{
    if (n == 0) return VKT_OK;
    p->lower_bound_bytes = 0;
    VKT_TRY(lower_bound(list, n, p));
    packer s = { .list = list, .n = n, .o = o, .bound = p->lower_bound_bytes };
    s.order = vkt_alloc_array(&p->host, n, sizeof(vkt_packed *));
    s.placed = vkt_alloc_array(&p->host, n, sizeof(vkt_packed *));
    s.ends = vkt_alloc_array(&p->host, n, sizeof *s.ends);
    s.best = vkt_alloc_array(&p->host, n, sizeof *s.best);
    p->block_bytes = vkt_alloc_array(&p->host, n, sizeof *p->block_bytes); /* each block holds at least one value, so n
                                                                            * is enough */
    const bool ok = s.order && s.placed && s.ends && s.best && p->block_bytes;
    if (ok) {
        search(&s);
        take_blocks(&s, p);
    }
    vkt_free(&p->host, s.order);
    vkt_free(&p->host, s.placed);
    vkt_free(&p->host, s.ends);
    vkt_free(&p->host, s.best);
    return ok ? VKT_OK : vkt_fail_nomem(&p->host, "the memory plan", n * sizeof *list);
}
