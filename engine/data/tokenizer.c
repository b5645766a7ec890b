/* data/tokenizer.c - makes a tokenizer, and finds its tokens (vktrain/tokenizer.h). */
#include "data/tokenizer.h"

#include <stdlib.h>

/* ---- the alphabet of GPT-2, which writes each byte as a character ---- */

static bool is_itself(uint32_t byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

/* Returns the byte for which a character stands; 256: the character is not in the alphabet. The 68 bytes for which
 * is_itself is false are written as U+0100, U+0101, .., in ascending order (openai/gpt-2, src/encoder.py). */
static uint32_t byte_of(uint32_t character)
{
    if (character < 256) return is_itself(character) ? character : 256;
    uint32_t left = character - 256;
    for (uint32_t byte = 0; byte < 256; byte++)
        if (!is_itself(byte) && left-- == 0) return byte;
    return 256;
}

/* Writes the bytes for which the text of a token stands. `out` has space for `bytes` bytes. Returns the number of
 * written bytes. A text with a character outside of the alphabet stands for itself. If `normal` is false, any text
 * stands for itself. */
static size_t spell(const char *text, size_t bytes, bool normal, char *out)
{
    size_t n = 0;
    for (size_t at = 0, step; normal && at < bytes; at += step) {
        uint32_t c;
        step = vkt_utf8_decode(text + at, bytes - at, &c);
        const uint32_t byte = step ? byte_of(c) : 256;
        if (byte == 256) normal = false;
        out[n++] = (char)(unsigned char)byte;
    }
    if (normal) return n;
    memcpy(out, text, bytes);
    return bytes;
}

/* ---- tokens ---- */

static bool is_special(const vkt_tokenizer *t, uint32_t id)
{
    return t->kinds[id] == VKT_TOKEN_CONTROL || t->kinds[id] == VKT_TOKEN_USER_DEFINED;
}

static vkt_result add_tokens(vkt_tokenizer *t, const vkt_tokenizer_params *p, char *room)
{
    for (uint32_t i = 0; i < p->n_tokens; i++) {
        const int32_t kind = p->kinds ? p->kinds[i] : VKT_TOKEN_NORMAL;
        t->kinds[i] = kind >= VKT_TOKEN_NORMAL && kind <= VKT_TOKEN_BYTE ? (uint8_t)kind : VKT_TOKEN_NORMAL;
        const size_t n = spell(p->tokens[i].text, p->tokens[i].bytes, !is_special(t, i), room);
        VKT_TRY(vkt_words_add(&t->words, room, n, 1, &t->word_of[i]));
        t->id_of[t->word_of[i]] = i;
        if (t->kinds[i] != VKT_TOKEN_CONTROL) t->plain_of[t->word_of[i]] = i;
        t->longest = VKT_MAX(t->longest, n);
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        const char c = (char)(unsigned char)byte;
        t->byte_ids[byte] = vkt_tokenizer_plain_id(t, &c, 1);
    }
    return VKT_OK;
}

/* ---- merges ---- */

/* Returns the id of the token with this text, which is the left token, the right token or the result of a merge.
 * Returns a control token only if no other token has this text. VKT_NO_TOKEN: no token has this text. */
static uint32_t merged_id(const vkt_tokenizer *t, const char *text, size_t bytes)
{
    const uint32_t id = vkt_tokenizer_plain_id(t, text, bytes);
    return id != VKT_NO_TOKEN ? id : vkt_tokenizer_id(t, text, bytes);
}

/* Converts the text of the left or right token of a merge to bytes (see spell). `room` gets the bytes, and *n gets
 * their number. Returns the id of the token, as merged_id does. */
static uint32_t part_id(const vkt_tokenizer *t, const char *text, size_t bytes, char *room, size_t *n)
{
    *n = spell(text, bytes, true, room);
    return merged_id(t, room, *n);
}

static vkt_result add_merges(vkt_tokenizer *t, const vkt_tokenizer_params *p, char *room)
{
    VKT_TRY(vkt_merges_begin(&t->host, p->n_merges, &t->merges));
    for (uint32_t i = 0; i < p->n_merges; i++) {
        const vkt_gguf_string m = p->merges[i];
        const char *blank = memchr(m.text, ' ', m.bytes);
        size_t n_left = 0, n_right = 0;
        vkt_merge merge = { .rank = i, .id = VKT_NO_TOKEN };
        if (blank) {
            const size_t before = (size_t)(blank - m.text);
            merge.left = part_id(t, m.text, before, room, &n_left);
            merge.right = part_id(t, blank + 1, m.bytes - before - 1, room + n_left, &n_right);
            if (n_left && n_right && merge.left != VKT_NO_TOKEN && merge.right != VKT_NO_TOKEN)
                merge.id = merged_id(t, room, n_left + n_right);
        }
        if (merge.id == VKT_NO_TOKEN)
            return vkt_fail(&t->host, VKT_E_FORMAT,
                            "tokenizer: want a merge of two tokens to a token, got \"%.*s\" (number %u, from 0)",
                            (int)VKT_MIN(m.bytes, 80), m.text, i);
        vkt_merges_add(&t->merges, &merge);
    }
    return VKT_OK;
}

/* ---- special tokens ---- */

/* A special token, for sorting. */
typedef struct special {
    const char *text;
    size_t bytes;
    uint32_t id;
} special;

static int by_first_byte(const void *a, const void *b)
{
    const special *x = a, *y = b;
    const int first = (unsigned char)*x->text - (unsigned char)*y->text;
    if (first) return first;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->id < y->id ? 1 : -1; /* if texts are equal, the larger id is found first */
}

static vkt_result list_special(vkt_tokenizer *t)
{
    uint32_t n = 0, all = 0;
    for (uint32_t i = 0; i < t->n; i++) all += is_special(t, i);
    special *list = vkt_alloc_array(&t->host, (size_t)all + 1, sizeof *list);
    t->special = vkt_alloc_array(&t->host, (size_t)all + 1, sizeof *t->special);
    if (!list || !t->special) {
        vkt_free(&t->host, list);
        return vkt_fail_nomem(&t->host, "special tokens", all * sizeof *list);
    }
    for (uint32_t i = 0; i < t->n; i++) {
        special s = { .id = i };
        s.text = vkt_tokenizer_token(t, i, &s.bytes);
        if (is_special(t, i) && s.bytes) list[n++] = s;
    }
    if (n > 1) qsort(list, n, sizeof *list, by_first_byte);
    for (uint32_t i = 0; i < n; i++) {
        t->special[i] = list[i].id;
        t->special_from[(unsigned char)*list[i].text + 1]++;
    }
    for (uint32_t i = 1; i < VKT_COUNT(t->special_from); i++) t->special_from[i] += t->special_from[i - 1];
    vkt_free(&t->host, list);
    return VKT_OK;
}

/* ---- creation ---- */

/* Checks the pointers and ids of the parameters. *longest: bytes of the longest token or merge. */
static vkt_result check(const vkt_host *h, const vkt_tokenizer_params *p, size_t *longest)
{
    const uint32_t *const ids[] = { p->bos, p->eos, p->unk, p->pad };
    *longest = 0;
    if (!p->tokens || !p->n_tokens || p->n_tokens == VKT_NO_TOKEN || !p->pre || (p->n_merges && !p->merges))
        return vkt_fail(h, VKT_E_ARG, "tokenizer: want tokens, merges and the name of a pre-tokenizer, got %u tokens",
                        p->n_tokens);
    for (uint32_t i = 0; i < p->n_tokens; i++) {
        if (!p->tokens[i].text) return vkt_fail(h, VKT_E_ARG, "tokenizer: token %u is NULL", i);
        *longest = VKT_MAX(*longest, p->tokens[i].bytes);
    }
    for (uint32_t i = 0; i < p->n_merges; i++) {
        if (!p->merges[i].text) return vkt_fail(h, VKT_E_ARG, "tokenizer: merge %u is NULL", i);
        *longest = VKT_MAX(*longest, p->merges[i].bytes);
    }
    for (size_t i = 0; i < VKT_COUNT(ids); i++)
        if (ids[i] && *ids[i] >= p->n_tokens)
            return vkt_fail(h, VKT_E_ARG, "tokenizer: want ids below %u, got %u", p->n_tokens, *ids[i]);
    return VKT_OK;
}

static uint32_t id_or_none(const uint32_t *id)
{
    return id ? *id : VKT_NO_TOKEN;
}

static vkt_result fill(vkt_tokenizer *t, const vkt_tokenizer_params *p, size_t longest)
{
    t->n = p->n_tokens;
    t->words.h = &t->host;
    t->bos = id_or_none(p->bos);
    t->eos = id_or_none(p->eos);
    t->unk = id_or_none(p->unk);
    t->pad = id_or_none(p->pad);
    t->add_bos = p->add_bos && p->bos;
    VKT_TRY(vkt_splitter_create(&t->host, p->pre, &t->splitter, &t->rules));
    t->word_of = vkt_alloc_array(&t->host, t->n, sizeof *t->word_of);
    t->id_of = vkt_alloc_array(&t->host, t->n, sizeof *t->id_of);
    t->plain_of = vkt_alloc_array(&t->host, t->n, sizeof *t->plain_of);
    t->kinds = vkt_alloc(&t->host, t->n);
    for (uint32_t i = 0; t->plain_of && i < t->n; i++) t->plain_of[i] = VKT_NO_TOKEN;
    char *room = vkt_alloc(&t->host, longest + 1);
    vkt_result r = t->word_of && t->id_of && t->plain_of && t->kinds && room
                       ? VKT_OK
                       : vkt_fail_nomem(&t->host, "a tokenizer", t->n * 3 * sizeof *t->id_of + longest);
    if (r == VKT_OK) r = add_tokens(t, p, room);
    if (r == VKT_OK) r = add_merges(t, p, room);
    if (r == VKT_OK) r = list_special(t);
    vkt_free(&t->host, room);
    return r;
}

vkt_result vkt_tokenizer_create(const vkt_host *host, const vkt_tokenizer_params *params, vkt_tokenizer **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, params);
    const vkt_host h = vkt_host_resolve(host);
    size_t longest;
    VKT_TRY(check(&h, params, &longest));
    vkt_tokenizer *t = vkt_alloc(&h, sizeof *t);
    if (!t) return vkt_fail_nomem(&h, "a tokenizer", sizeof *t);
    t->host = h;
    const vkt_result r = fill(t, params, longest);
    if (r == VKT_OK)
        *out = t;
    else
        vkt_tokenizer_destroy(&t);
    return r;
}

void vkt_tokenizer_destroy(vkt_tokenizer **pt)
{
    vkt_tokenizer *t = pt ? *pt : NULL;
    if (!t) return;
    const vkt_host h = t->host;
    vkt_splitter_destroy(&t->splitter);
    vkt_merges_free(&h, &t->merges);
    if (t->words.h) vkt_words_free(&t->words);
    vkt_free(&h, t->word_of);
    vkt_free(&h, t->id_of);
    vkt_free(&h, t->plain_of);
    vkt_free(&h, t->kinds);
    vkt_free(&h, t->special);
    vkt_free(&h, t);
    *pt = NULL;
}

/* ---- lookup ---- */

uint32_t vkt_tokenizer_size(const vkt_tokenizer *t)
{
    return t ? t->n : 0;
}

size_t vkt_tokenizer_longest(const vkt_tokenizer *t)
{
    return t ? t->longest : 0;
}

uint32_t vkt_tokenizer_bos(const vkt_tokenizer *t)
{
    return t ? t->bos : VKT_NO_TOKEN;
}

uint32_t vkt_tokenizer_eos(const vkt_tokenizer *t)
{
    return t ? t->eos : VKT_NO_TOKEN;
}

uint32_t vkt_tokenizer_unk(const vkt_tokenizer *t)
{
    return t ? t->unk : VKT_NO_TOKEN;
}

uint32_t vkt_tokenizer_pad(const vkt_tokenizer *t)
{
    return t ? t->pad : VKT_NO_TOKEN;
}

const char *vkt_tokenizer_token(const vkt_tokenizer *t, uint32_t id, size_t *bytes)
{
    if (bytes) *bytes = 0;
    if (!t || id >= t->n) return NULL;
    if (bytes) *bytes = t->words.items[t->word_of[id]].bytes;
    return vkt_words_text(&t->words, t->word_of[id]);
}

vkt_token_kind vkt_tokenizer_kind(const vkt_tokenizer *t, uint32_t id)
{
    return t && id < t->n ? (vkt_token_kind)t->kinds[id] : (vkt_token_kind)0;
}

uint32_t vkt_tokenizer_id(const vkt_tokenizer *t, const char *text, size_t bytes)
{
    if (!t || !text) return VKT_NO_TOKEN;
    const uint32_t word = vkt_words_find(&t->words, text, bytes);
    return word == VKT_NO_WORD ? VKT_NO_TOKEN : t->id_of[word];
}

uint32_t vkt_tokenizer_plain_id(const vkt_tokenizer *t, const char *text, size_t bytes)
{
    const uint32_t word = vkt_words_find(&t->words, text, bytes);
    return word == VKT_NO_WORD ? VKT_NO_TOKEN : t->plain_of[word];
}

bool vkt_tokenizer_covers(const vkt_tokenizer *t)
{
    if (!t) return false;
    for (size_t i = 0; i < VKT_COUNT(t->byte_ids); i++)
        if (t->byte_ids[i] == VKT_NO_TOKEN) return false;
    return true;
}
