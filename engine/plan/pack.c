/* plan/pack.c - finds offsets for values whose live ranges are known.
 *
 * The values of a list are placed one after the other. Each value gets the lowest offset that no placed value with an
 * overlapping live range uses. There are two searches. The first search starts with the values in the order of size,
 * the second search in the order of size times live range (Pisarchyk & Lee, "Efficient Memory Management for Deep
 * Neural Net Inference", 2020, section 5.1). A search has at most 64 rounds. After a round, each value that ends above
 * the least possible size (lower_bound) moves to a random position in the list, not behind its old position. Then all
 * values are placed again: squeaky wheel optimization (Joslin & Clements, JAIR 10, 1999). If values moved by a fixed
 * distance, the search could cycle. The plan is the best of all rounds. The random numbers are from Philox with a fixed
 * key, so the plan of a graph is always the same.
 *
 * Most live ranges are a few stages long. The stages are divided into buckets, and each bucket lists the values that
 * are live in it, so most values need not be compared with all others. Values that are live in many buckets are in one
 * common list. */
#include "plan/plan.h"

#include <stdlib.h>

/* BUCKET_STAGES: number of stages of a bucket. MAX_BUCKETS: a value that is not long (is_long) is live in at most so
 * many buckets. */
enum { BUCKET_STAGES = 16, MAX_BUCKETS = 4 };

/* One value in the list of one bucket. */
typedef struct mark {
    vkt_packed *value;
    uint32_t next; /* index + 1, in packer.marks, of the next mark of this bucket; 0: none */
} mark;

typedef struct packer {
    vkt_packed *list;
    size_t n;
    const vkt_plan_options *o;
    uint64_t bound;
    vkt_packed **order;  /* the values, in the order in which they are placed */
    vkt_packed **placed; /* the placed values, sorted by block and offset */
    size_t n_placed;
    vkt_packed **longs; /* the placed values that are long (is_long), sorted by block and offset */
    size_t n_longs;
    mark *marks; /* entries of the lists of buckets, for the placed values that are not long */
    uint32_t n_marks;
    uint32_t *bucket; /* bucket[b]: index + 1, in `marks`, of the newest mark of bucket b; 0: bucket b has no marks */
    size_t n_buckets;
    vkt_packed **near; /* for the value v that is being placed: the placed values that are live at the same time as v
                        * and are not long, sorted by block and offset. If v itself is long: empty */
    size_t n_near;
    uint64_t work;   /* iterations of loops over values so far, for vkt_plan.work */
    uint64_t *ends;  /* end of each activation block in this round */
    size_t n_blocks; /* number of activation blocks in this round */
    vkt_packed *best;
    uint64_t best_bytes;
} packer;

static uint64_t area(const vkt_packed *v)
{
    return v->bytes / VKT_ALIGN_BYTES * (1 + (uint64_t)v->live_range.last - v->live_range.first);
}

/* Compares by id. No two ids are equal, so the order does not depend on how qsort handles equal elements. */
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

static uint32_t bucket_of(uint32_t stage)
{
    return stage / BUCKET_STAGES;
}

static bool is_long(const packer *s, const vkt_packed *v)
{
    return s->o->guard_bytes != 0 || bucket_of(v->live_range.last) - bucket_of(v->live_range.first) >= MAX_BUCKETS;
}

static bool is_before(const vkt_packed *a, const vkt_packed *b)
{
    return a->block != b->block ? a->block < b->block : a->offset < b->offset;
}

/* Inserts v into a list that is sorted by block and offset. */
static void enter(vkt_packed **list, size_t *n, vkt_packed *v)
{
    size_t low = 0, high = *n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (is_before(v, list[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    memmove(&list[low + 1], &list[low], ((*n)++ - low) * sizeof *list);
    list[low] = v;
}

/* Finds the placed values that are not long (is_long) and whose live ranges overlap the live range of v. v must not be
 * long either. */
static void find_near(packer *s, const vkt_packed *v)
{
    for (uint32_t b = bucket_of(v->live_range.first); b <= bucket_of(v->live_range.last); b++)
        for (uint32_t m = s->bucket[b]; m; m = s->marks[m - 1].next) {
            vkt_packed *w = s->marks[m - 1].value;
            s->work++;
            if (!vkt_live_ranges_overlap(w->live_range, v->live_range)) continue;
            /* v and w may both be live in several buckets. Only the first of these buckets adds w to s->near. */
            if (b == VKT_MAX(bucket_of(v->live_range.first), bucket_of(w->live_range.first)))
                enter(s->near, &s->n_near, w);
        }
}

static void insert_placed(packer *s, vkt_packed *v)
{
    enter(s->placed, &s->n_placed, v);
    if (is_long(s, v)) {
        enter(s->longs, &s->n_longs, v);
        return;
    }
    for (uint32_t b = bucket_of(v->live_range.first); b <= bucket_of(v->live_range.last); b++) {
        s->marks[s->n_marks++] = (mark){ v, s->bucket[b] };
        s->bucket[b] = s->n_marks;
    }
}

/* Finds the lowest free offset for v among the placed values, and inserts v. */
static void place_one(packer *s, vkt_packed *v)
{
    const bool all = is_long(s, v);
    vkt_packed *const *others = all ? s->placed : s->longs;
    const size_t n = all ? s->n_placed : s->n_longs;
    uint64_t at = 0;
    s->n_near = 0;
    if (!all) find_near(s, v);
    v->block = 0;
    for (size_t i = 0, k = 0; i < n || k < s->n_near;) {
        const bool near = i == n || (k < s->n_near && is_before(s->near[k], others[i]));
        const vkt_packed *w = near ? s->near[k++] : others[i++];
        s->work++;
        for (; w->block > v->block && at + v->bytes > s->o->max_block_bytes; v->block++) at = 0;
        if (w->block > v->block) break; /* w is in a later block, and v->block has space for v at `at` */
        if (s->o->guard_bytes == 0 && !vkt_live_ranges_overlap(w->live_range, v->live_range)) continue;
        if (at + v->bytes <= w->offset) break;
        at = VKT_MAX(at, w->offset + w->bytes);
    }
    if (at + v->bytes > s->o->max_block_bytes) {
        v->block++;
        at = 0;
    }
    v->offset = at;
    insert_placed(s, v);
}

/* Places all values in the order of s->order. Returns the sum of the block sizes. If this sum is the smallest so far,
 * stores the offsets in s->best. */
static uint64_t place_all(packer *s)
{
    s->n_placed = s->n_blocks = s->n_longs = s->n_marks = 0;
    memset(s->bucket, 0, s->n_buckets * sizeof *s->bucket);
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
    /* 64 rounds per search are enough for a few hundred values. A round counts as n^2 operations, but it can be faster.
     * If n is above 2048, a search has as many rounds as fit into 2^28 operations, but at least one. */
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

/* Computes the largest number of bytes that are live in one stage. */
static vkt_result lower_bound(const vkt_packed *list, size_t n, vkt_plan *p)
{
    uint32_t stages = 0; /* index of the last stage in which a live range starts, plus 1 */
    for (size_t i = 0; i < n; i++) stages = VKT_MAX(stages, list[i].live_range.first + 1);
    /* starting[s]: bytes of the values whose live range starts at stage s. ending[s], in the second half of the array:
     * bytes of the values whose last live stage is s - 1. */
    uint64_t *starting = vkt_alloc_array(&p->host, 2 * ((size_t)stages + 1), sizeof *starting);
    if (!starting) return vkt_fail_nomem(&p->host, "the memory plan", stages * sizeof *starting);
    uint64_t *ending = starting + stages + 1, live = 0;
    for (size_t i = 0; i < n; i++) {
        starting[list[i].live_range.first] += list[i].bytes;
        if (list[i].live_range.last < stages) ending[list[i].live_range.last + 1] += list[i].bytes;
    }
    for (uint32_t s = 0; s < stages; s++) {
        live = live + starting[s] - ending[s];
        p->lower_bound_bytes = VKT_MAX(p->lower_bound_bytes, live);
    }
    vkt_free(&p->host, starting);
    return VKT_OK;
}

static void set_blocks(const packer *s, vkt_plan *p)
{
    p->packed_bytes = s->best_bytes;
    for (size_t i = 0; i < s->n; i++) {
        p->n_blocks = VKT_MAX(p->n_blocks, s->list[i].block + 1);
        uint64_t *size = &p->block_bytes[s->list[i].block];
        *size = VKT_MAX(*size, s->list[i].offset + s->list[i].bytes);
    }
}

/* Allocates the lists of placed values. */
static bool make_lists(packer *s, const vkt_host *h)
{
    uint32_t last = 0; /* the last bucket in which a value that is not long is live */
    for (size_t i = 0; i < s->n; i++)
        if (!is_long(s, &s->list[i])) last = VKT_MAX(last, bucket_of(s->list[i].live_range.last));
    s->n_buckets = (size_t)last + 1;
    s->placed = vkt_alloc_array(h, s->n, sizeof *s->placed);
    s->longs = vkt_alloc_array(h, s->n, sizeof *s->longs);
    s->near = vkt_alloc_array(h, s->n, sizeof *s->near);
    s->marks = vkt_alloc_array(h, s->n * MAX_BUCKETS, sizeof *s->marks);
    s->bucket = vkt_alloc_array(h, s->n_buckets, sizeof *s->bucket);
    return s->placed && s->longs && s->near && s->marks && s->bucket;
}

static void free_lists(packer *s, const vkt_host *h)
{
    vkt_free(h, s->placed);
    vkt_free(h, s->longs);
    vkt_free(h, s->near);
    vkt_free(h, s->marks);
    vkt_free(h, s->bucket);
}

vkt_result vkt_pack(vkt_packed *list, size_t n, const vkt_plan_options *o, vkt_plan *p)
{
    if (n == 0) return VKT_OK;
    p->lower_bound_bytes = 0;
    VKT_TRY(lower_bound(list, n, p));
    packer s = { .list = list, .n = n, .o = o, .bound = p->lower_bound_bytes };
    s.order = vkt_alloc_array(&p->host, n, sizeof(vkt_packed *));
    s.ends = vkt_alloc_array(&p->host, n, sizeof *s.ends);
    s.best = vkt_alloc_array(&p->host, n, sizeof *s.best);
    p->block_bytes = vkt_alloc_array(&p->host, n, sizeof *p->block_bytes); /* each block holds at least one value, so n
                                                                            * is enough */
    const bool ok = make_lists(&s, &p->host) && s.order && s.ends && s.best && p->block_bytes;
    if (ok) {
        search(&s);
        set_blocks(&s, p);
        p->work += s.work;
    }
    vkt_free(&p->host, s.order);
    free_lists(&s, &p->host);
    vkt_free(&p->host, s.ends);
    vkt_free(&p->host, s.best);
    return ok ? VKT_OK : vkt_fail_nomem(&p->host, "the memory plan", n * sizeof *list);
}
