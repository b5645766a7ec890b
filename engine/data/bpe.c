/* data/bpe.c - see bpe.h. */
#include "data/bpe.h"

#include "vktrain/tokenizer.h"

#define NONE UINT32_MAX

/* ---- merges ---- */

/* The hash of a pair is the upper bits of the product of the pair and an odd number. The number differs from run to
 * run, so no file can be made whose pairs all have the same hash (Dietzfelbinger et al., A Reliable Randomized
 * Algorithm for the Closest-Pair Problem, 1997, section 2). The tokens do not depend on the number. */

/* Returns the slot of a pair, or the free slot for a pair that is not in the table. n_slots must not be 0. */
static vkt_merge *slot_of(const vkt_merges *m, uint32_t left, uint32_t right)
{
    const uint64_t pair = (uint64_t)left << 32 | right;
    size_t i = (size_t)((pair * m->multiplier) >> m->shift);
    for (; m->slots[i].id != VKT_NO_TOKEN; i = (i + 1) & (m->n_slots - 1))
        if (m->slots[i].left == left && m->slots[i].right == right) break;
    return &m->slots[i];
}

vkt_result vkt_merges_begin(const vkt_host *h, size_t n, vkt_merges *m)
{
    size_t slots = 64;
    while (slots < 2 * n) slots *= 2;
    m->slots = vkt_alloc_array(h, slots, sizeof *m->slots);
    if (!m->slots) return vkt_fail_nomem(h, "the merges of a tokenizer", slots * sizeof *m->slots);
    m->n_slots = slots;
    for (m->shift = 64; slots > 1; slots /= 2) m->shift--;
    const uint64_t now_ns = vkt_now_ns();
    m->multiplier = vkt_hash(VKT_HASH_START, &now_ns, sizeof now_ns) | 1;
    for (size_t i = 0; i < m->n_slots; i++) m->slots[i].id = VKT_NO_TOKEN;
    return VKT_OK;
}

void vkt_merges_add(vkt_merges *m, const vkt_merge *merge)
{
    *slot_of(m, merge->left, merge->right) = *merge;
}

void vkt_merges_free(const vkt_host *h, vkt_merges *m)
{
    vkt_free(h, m->slots);
    *m = (vkt_merges){ .n_slots = 0 };
}

/* ---- a heap of candidates ---- */

static bool is_before(const vkt_candidate *a, const vkt_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(vkt_bpe *b, vkt_candidate c)
{
    size_t i = b->n_heap++;
    for (; i && is_before(&c, &b->heap[(i - 1) / 2]); i = (i - 1) / 2) b->heap[i] = b->heap[(i - 1) / 2];
    b->heap[i] = c;
}

static vkt_candidate pop(vkt_bpe *b)
{
    const vkt_candidate first = b->heap[0], last = b->heap[--b->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < b->n_heap; i = child) {
        if (child + 1 < b->n_heap && is_before(&b->heap[child + 1], &b->heap[child])) child++;
        if (!is_before(&b->heap[child], &last)) break;
        b->heap[i] = b->heap[child];
    }
    b->heap[i] = last;
    return first;
}

/* ---- a piece ---- */

static vkt_result make_room(vkt_bpe *b, size_t n)
{
    if (n <= b->room) return VKT_OK;
    const size_t room = VKT_MAX(VKT_MAX(n, 64), 2 * b->room);
    vkt_bpe_free(b);
    b->symbols = vkt_alloc_array(b->h, room, sizeof *b->symbols);
    /* At first there are at most n - 1 candidates. Each of at most n - 1 merges removes one candidate and adds up to
     * two. So 2 * n elements are enough. */
    b->heap = vkt_alloc_array(b->h, 2 * room, sizeof *b->heap);
    if (!b->symbols || !b->heap) return vkt_fail_nomem(b->h, "a piece of a text", room * sizeof *b->symbols);
    b->room = room;
    return VKT_OK;
}

vkt_result vkt_bpe_set(vkt_bpe *b, const uint32_t *ids, const char *piece, uint32_t begin, uint32_t end)
{
    VKT_TRY(make_room(b, end - begin));
    b->n = 0;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t id = ids[(unsigned char)piece[i - begin]];
        if (id == VKT_NO_TOKEN) continue;
        const uint32_t at = (uint32_t)b->n++;
        b->symbols[at] = (vkt_symbol){ .id = id, .begin = i, .end = i + 1, .before = at - 1, .behind = at + 1 };
    }
    if (b->n) b->symbols[b->n - 1].behind = NONE;
    return VKT_OK;
}

/* Adds the merge of symbol `at` and the symbol behind it to the candidates, if there is such a merge. */
static void consider(vkt_bpe *b, const vkt_merges *m, uint32_t at)
{
    if (at == NONE || b->symbols[at].behind == NONE) return;
    const vkt_merge *merge = slot_of(m, b->symbols[at].id, b->symbols[b->symbols[at].behind].id);
    if (merge->id != VKT_NO_TOKEN) push(b, (vkt_candidate){ .rank = merge->rank, .at = at, .id = merge->id });
}

/* Returns whether a candidate is still a merge of symbol c->at and the symbol behind it. Earlier merges may have
 * changed both symbols. */
static bool still_applies(const vkt_bpe *b, const vkt_merges *m, const vkt_candidate *c)
{
    const vkt_symbol *left = &b->symbols[c->at];
    if (left->id == VKT_NO_TOKEN || left->behind == NONE) return false;
    const vkt_merge *merge = slot_of(m, left->id, b->symbols[left->behind].id);
    return merge->id == c->id && merge->rank == c->rank;
}

void vkt_bpe_merge(vkt_bpe *b, const vkt_merges *m)
{
    b->n_heap = 0;
    for (uint32_t i = 0; i < b->n; i++) consider(b, m, i);
    while (b->n_heap) {
        const vkt_candidate c = pop(b);
        if (!still_applies(b, m, &c)) continue;
        vkt_symbol *left = &b->symbols[c.at], *right = &b->symbols[left->behind];
        left->id = c.id;
        left->end = right->end;
        left->behind = right->behind;
        right->id = VKT_NO_TOKEN;
        if (left->behind != NONE) b->symbols[left->behind].before = c.at;
        consider(b, m, left->before);
        consider(b, m, c.at);
    }
}

void vkt_bpe_free(vkt_bpe *b)
{
    vkt_free(b->h, b->symbols);
    vkt_free(b->h, b->heap);
    *b = (vkt_bpe){ .h = b->h };
}
