/* data/words.h - a list of different texts, numbered in the order of their first occurrence, with counts.
 *
 * A zeroed list with `h` set is empty. Threads: any number may read at once. */
#ifndef VKT_WORDS_H
#define VKT_WORDS_H

#include "base/base.h"

#define VKT_NO_WORD UINT32_MAX

typedef struct vkt_word {
    size_t at; /* offset of the word's text in the pool; a NUL follows the text */
    uint32_t bytes;
    uint64_t count;
} vkt_word;

typedef struct vkt_words {
    const vkt_host *h; /* not owned */
    vkt_word *items;
    size_t n, cap; /* n is below VKT_NO_WORD */
    char *pool;
    size_t pool_bytes, pool_cap;
    uint32_t *slots; /* hash table with open addressing. A used slot has the number of a word plus 1, a free slot has 0.
                      * At most half of the slots are used */
    size_t n_slots;  /* a power of two, or 0 */
} vkt_words;

/* Adds `count` to the count of a text. A new text is added to the list. *number is the number of the text. VKT_E_NOMEM;
 * VKT_E_ARG: there are too many words, or the text is too long. */
vkt_result vkt_words_add(vkt_words *w, const char *text, size_t bytes, uint64_t count, uint32_t *number);
/* Returns the number of a text; VKT_NO_WORD if it is not in the list. */
uint32_t vkt_words_find(const vkt_words *w, const char *text, size_t bytes);
static inline const char *vkt_words_text(const vkt_words *w, uint32_t number)
{
    return w->pool + w->items[number].at;
}
void vkt_words_free(vkt_words *w);

#endif
