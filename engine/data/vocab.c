/* data/vocab.c - makes vocabularies from texts, and ids from words (vktrain/text.h). */
#include "data/vocab.h"

#include <stdlib.h>

/* ---- words of a text ---- */

/* Capitals of two UTF-8 bytes whose small letters also have two bytes. A range contains every `step`-th letter from
 * first to last; the small letter is the capital plus `delta`. The ranges are from Unicode 14: Latin-1, Latin
 * Extended-A, modern Greek and Cyrillic. */
static const struct {
    uint16_t first, last;
    uint8_t step;
    int8_t delta;
} capitals[] = {
    { 0xc0, 0xd6, 1, 32 },   { 0xd8, 0xde, 1, 32 },   { 0x100, 0x12e, 2, 1 },    { 0x132, 0x136, 2, 1 },
    { 0x139, 0x147, 2, 1 },  { 0x14a, 0x176, 2, 1 },  { 0x178, 0x178, 1, -121 }, { 0x179, 0x17d, 2, 1 },
    { 0x386, 0x386, 1, 38 }, { 0x388, 0x38a, 1, 37 }, { 0x38c, 0x38c, 1, 64 },   { 0x38e, 0x38f, 1, 63 },
    { 0x391, 0x3a1, 1, 32 }, { 0x3a3, 0x3ab, 1, 32 }, { 0x400, 0x40f, 1, 80 },   { 0x410, 0x42f, 1, 32 },
    { 0x460, 0x480, 2, 1 },  { 0x48a, 0x4be, 2, 1 },  { 0x4c0, 0x4c0, 1, 15 },   { 0x4c1, 0x4cd, 2, 1 },
    { 0x4d0, 0x52e, 2, 1 },
};

static uint32_t lower(uint32_t c)
{
    for (size_t i = 0; i < VKT_COUNT(capitals); i++)
        if (c >= capitals[i].first && c <= capitals[i].last && (c - capitals[i].first) % capitals[i].step == 0)
            return (uint32_t)((int32_t)c + capitals[i].delta);
    return c;
}

static void lower_text(unsigned char *s)
{
    for (; *s; s++) {
        if (*s >= 'A' && *s <= 'Z') {
            *s = (unsigned char)(*s + 32);
        } else if (*s >= 0xc2 && *s <= 0xdf && (s[1] & 0xc0) == 0x80) {
            const uint32_t c = lower((*s & 0x1fu) << 6 | (s[1] & 0x3fu));
            *s = (unsigned char)(0xc0 | c >> 6);
            *++s = (unsigned char)(0x80 | (c & 0x3f));
        }
    }
}

/* Copies `text`, in small letters unless v->keep_case. A NUL replaces each character that separates words. *end is the
 * end of the copy. */
static vkt_result split(const vkt_vocab *v, const char *text, char **copy, char **end)
{
    const size_t n = strlen(text);
    char *s = vkt_alloc(&v->host, n + 2);
    if (!s) return vkt_fail_nomem(&v->host, "a text's words", n + 2);
    memcpy(s, text, n);
    if (!v->keep_case) lower_text((unsigned char *)s);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 128 && v->parts[(unsigned char)s[i]]) s[i] = 0;
    *copy = s;
    *end = s + n;
    return VKT_OK;
}

/* Returns the next word at or behind *at, and moves *at behind this word; NULL: there is none. */
static const char *next_word(char **at, const char *end)
{
    while (*at < end && !**at) ++*at;
    if (*at == end) return NULL;
    const char *word = *at;
    *at += strlen(word);
    return word;
}

/* ---- creation ---- */

vkt_result vkt_vocab_begin(const vkt_host *h, const vkt_vocab_params *p, vkt_vocab **out)
{
    *out = NULL;
    const uint32_t from = p->index_from ? p->index_from : VKT_ID_UNKNOWN + 1;
    if (from <= VKT_ID_UNKNOWN || (p->num_words && p->num_words < from))
        return vkt_fail(h, VKT_E_ARG, "vocabulary: want index_from above %d and num_words not below it, got %u and %u",
                        VKT_ID_UNKNOWN, from, p->num_words);
    vkt_vocab *v = vkt_alloc(h, sizeof *v);
    if (!v) return vkt_fail_nomem(h, "a vocabulary", sizeof *v);
    v->host = *h;
    v->words.h = &v->host;
    v->index_from = from;
    v->keep_case = p->keep_case;
    v->parts[' '] = true;
    for (const char *c = p->filters ? p->filters : VKT_TEXT_FILTERS; *c; c++) {
        if ((unsigned char)*c > 127) {
            vkt_vocab_destroy(&v);
            return vkt_fail(h, VKT_E_ARG, "vocabulary: want filters of ASCII characters, got a byte %u",
                            (unsigned char)*c);
        }
        v->parts[(unsigned char)*c] = true;
    }
    *out = v;
    return VKT_OK;
}

static vkt_result count_words(const vkt_vocab *v, const char *const *texts, size_t n, vkt_words *words)
{
    vkt_result r = VKT_OK;
    for (size_t i = 0; i < n && r == VKT_OK; i++) {
        char *copy, *end;
        VKT_TRY(split(v, texts[i], &copy, &end));
        char *at = copy;
        for (const char *word; r == VKT_OK && (word = next_word(&at, end));) {
            uint32_t number;
            r = vkt_words_add(words, word, strlen(word), 1, &number);
        }
        vkt_free(&v->host, copy);
    }
    return r;
}

/* Compares by falling count. Words of equal counts keep the order in which they were first seen, which is the order of
 * their texts in the pool. */
static int by_rank(const void *a, const void *b)
{
    const vkt_word *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Sorts `words`, and copies the most frequent words to the vocabulary. */
static vkt_result rank_words(vkt_vocab *v, vkt_words *words, uint32_t num_words)
{
    const size_t most = num_words ? num_words - v->index_from : UINT32_MAX - v->index_from;
    if (words->n > 1) qsort(words->items, words->n, sizeof *words->items, by_rank);
    for (size_t i = 0; i < words->n && i < most; i++) {
        const vkt_word *word = &words->items[i];
        uint32_t number;
        VKT_TRY(vkt_words_add(&v->words, words->pool + word->at, word->bytes, word->count, &number));
    }
    return VKT_OK;
}

vkt_result vkt_vocab_create(const vkt_host *host, const vkt_vocab_params *params, const char *const *texts, size_t n,
                            vkt_vocab **out)
{
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    const vkt_vocab_params defaults = { 0 };
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (!texts || !texts[i]) return vkt_fail(&h, VKT_E_ARG, "vocabulary: text %zu is NULL", i);
    if (!params) params = &defaults;
    vkt_vocab *v;
    VKT_TRY(vkt_vocab_begin(&h, params, &v));
    vkt_words seen = { .h = &h };
    vkt_result r = count_words(v, texts, n, &seen);
    if (r == VKT_OK) r = rank_words(v, &seen, params->num_words);
    vkt_words_free(&seen);
    if (r == VKT_OK)
        *out = v;
    else
        vkt_vocab_destroy(&v);
    return r;
}

void vkt_vocab_destroy(vkt_vocab **pv)
{
    vkt_vocab *v = pv ? *pv : NULL;
    if (!v) return;
    const vkt_host h = v->host;
    vkt_words_free(&v->words);
    vkt_free(&h, v);
    *pv = NULL;
}

/* ---- lookup ---- */

uint32_t vkt_vocab_size(const vkt_vocab *v)
{
    if (!v) return 0;
    return v->index_from + (uint32_t)v->words.n;
}

const char *vkt_vocab_word(const vkt_vocab *v, uint32_t id, uint64_t *count)
{
    if (!v) return NULL;
    if (id < v->index_from || id >= vkt_vocab_size(v)) return NULL;
    if (count) *count = v->words.items[id - v->index_from].count;
    return vkt_words_text(&v->words, id - v->index_from);
}

uint32_t vkt_vocab_id(const vkt_vocab *v, const char *word)
{
    if (!v || !word) return 0;
    const uint32_t number = vkt_words_find(&v->words, word, strlen(word));
    return number == VKT_NO_WORD ? VKT_ID_UNKNOWN : v->index_from + number;
}

vkt_result vkt_vocab_encode(const vkt_vocab *v, const char *text, uint32_t *ids, uint32_t capacity, uint32_t *n)
{
    VKT_WANT(NULL, v);
    if (capacity) VKT_WANT(&v->host, ids);
    VKT_WANT(&v->host, n);
    VKT_WANT(&v->host, text);
    char *copy, *end;
    *n = 0;
    VKT_TRY(split(v, text, &copy, &end));
    char *at = copy;
    for (const char *word; (word = next_word(&at, end)); ++*n)
        if (*n < capacity) ids[*n] = vkt_vocab_id(v, word);
    vkt_free(&v->host, copy);
    return VKT_OK;
}

void vkt_pad_sequence(const vkt_sequence_params *p, const uint32_t *ids, uint32_t n, uint32_t *out)
{
    if (!p || !out || (n && !ids)) return;
    const uint32_t kept = VKT_MIN(n, p->maxlen), fill = p->maxlen - kept;
    uint32_t *at = out + (p->padding_post ? 0 : fill);
    for (uint32_t i = 0; i < kept; i++) at[i] = ids[i + (p->truncating_post ? 0 : n - kept)];
    at = p->padding_post ? out + kept : out;
    for (uint32_t i = 0; i < fill; i++) at[i] = p->value;
}
