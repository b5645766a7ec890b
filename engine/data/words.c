/* data/words.c - see words.h. */
#include "data/words.h"

/* Returns the slot of a text, or the free slot for a text that is not in the list. n_slots must not be 0. */
static size_t slot_of(const vkt_words *w, const char *text, size_t bytes)
{
    size_t i = vkt_hash(VKT_HASH_START, text, bytes) & (w->n_slots - 1);
    for (; w->slots[i]; i = (i + 1) & (w->n_slots - 1)) {
        const vkt_word *word = &w->items[w->slots[i] - 1];
        if (word->bytes == bytes && memcmp(w->pool + word->at, text, bytes) == 0) break;
    }
    return i;
}

static vkt_result double_slots(vkt_words *w)
{
    const size_t n = w->n_slots ? 2 * w->n_slots : 64;
    uint32_t *slots = vkt_alloc_array(w->h, n, sizeof *slots);
    if (!slots) return vkt_fail_nomem(w->h, "a table of words", n * sizeof *slots);
    vkt_free(w->h, w->slots);
    w->slots = slots;
    w->n_slots = n;
    for (uint32_t i = 0; i < w->n; i++) w->slots[slot_of(w, vkt_words_text(w, i), w->items[i].bytes)] = i + 1;
    return VKT_OK;
}

static vkt_result add_text(vkt_words *w, const char *text, size_t bytes, uint64_t count)
{
    if (w->n == VKT_NO_WORD - 1 || bytes > UINT32_MAX)
        return vkt_fail(w->h, VKT_E_ARG, "words: want fewer than 2^32, of as many bytes, got %zu and one of %zu", w->n,
                        bytes);
    const size_t want = w->pool_bytes + bytes + 1;
    if (want > w->pool_cap) {
        const size_t cap = VKT_MAX(want, w->pool_cap + w->pool_cap / 2);
        char *pool = vkt_realloc(w->h, w->pool, cap);
        if (!pool) return vkt_fail_nomem(w->h, "texts of words", cap);
        w->pool = pool;
        w->pool_cap = cap;
    }
    VKT_TRY(vkt_grow(w->h, &w->items, w->n, &w->cap, sizeof *w->items));
    memcpy(w->pool + w->pool_bytes, text, bytes);
    w->pool[w->pool_bytes + bytes] = 0;
    w->items[w->n++] = (vkt_word){ .at = w->pool_bytes, .bytes = (uint32_t)bytes, .count = count };
    w->pool_bytes = want;
    return VKT_OK;
}

vkt_result vkt_words_add(vkt_words *w, const char *text, size_t bytes, uint64_t count, uint32_t *number)
{
    if (2 * w->n >= w->n_slots) VKT_TRY(double_slots(w));
    const size_t slot = slot_of(w, text, bytes);
    if (w->slots[slot]) {
        w->items[w->slots[slot] - 1].count += count;
    } else {
        VKT_TRY(add_text(w, text, bytes, count));
        w->slots[slot] = (uint32_t)w->n;
    }
    *number = w->slots[slot] - 1;
    return VKT_OK;
}

uint32_t vkt_words_find(const vkt_words *w, const char *text, size_t bytes)
{
    const uint32_t found = w->n_slots ? w->slots[slot_of(w, text, bytes)] : 0;
    return found ? found - 1 : VKT_NO_WORD;
}

void vkt_words_free(vkt_words *w)
{
    vkt_free(w->h, w->items);
    vkt_free(w->h, w->pool);
    vkt_free(w->h, w->slots);
    *w = (vkt_words){ .h = w->h };
}
