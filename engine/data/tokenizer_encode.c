/* data/tokenizer_encode.c - converts texts to ids: special tokens, normalization, pieces, merges (vktrain/tokenizer.h).
 */
#include "data/nfc.h"
#include "data/tokenizer.h"

/* The objects for encoding one text: the tokenizer, memory to split and merge, and the list to which ids are added. */
typedef struct encoding {
    const vkt_tokenizer *t;
    vkt_split_run *run;
    vkt_bpe bpe;
    vkt_tokens *list;
} encoding;

/* ---- the list ---- */

static vkt_result append(encoding *e, uint32_t id, bool answer)
{
    vkt_tokens *list = e->list;
    if (list->n == list->room) {
        const vkt_host h = { .alloc = list->alloc };
        const size_t room = list->room ? 2 * list->room : 64;
        uint32_t *ids = vkt_realloc(&h, list->ids, room * sizeof *ids);
        if (ids) list->ids = ids;
        uint8_t *marks = ids ? vkt_realloc(&h, list->marks, room) : NULL;
        if (!marks) return vkt_fail_nomem(&e->t->host, "token ids", room * sizeof *ids);
        list->marks = marks;
        list->room = room;
    }
    list->ids[list->n] = id;
    list->marks[list->n++] = answer;
    return VKT_OK;
}

void vkt_tokens_release(vkt_tokens *list)
{
    if (!list) return;
    const vkt_host h = vkt_host_resolve(&(vkt_host){ .alloc = list->alloc });
    vkt_free(&h, list->ids);
    vkt_free(&h, list->marks);
    *list = (vkt_tokens){ .n = 0 };
}

/* Returns whether a byte with an index from `begin` to `end` - 1 belongs to an answer. */
static bool is_answer(const uint8_t *marks, size_t begin, size_t end)
{
    for (size_t i = begin; marks && i < end; i++)
        if (marks[i] & VKT_MARK_ANSWER) return true;
    return false;
}

/* ---- pieces ---- */

static vkt_result encode_piece(encoding *e, const char *text, const uint8_t *marks, size_t begin, size_t end)
{
    const vkt_tokenizer *t = e->t;
    if (t->rules.whole_pieces) {
        const uint32_t id = vkt_tokenizer_plain_id(t, text + begin, end - begin);
        if (id != VKT_NO_TOKEN) return append(e, id, is_answer(marks, begin, end));
    }
    VKT_TRY(vkt_bpe_set(&e->bpe, t->byte_ids, text + begin, (uint32_t)begin, (uint32_t)end));
    vkt_bpe_merge(&e->bpe, &t->merges);
    for (uint32_t i = 0; i < e->bpe.n; i = e->bpe.symbols[i].behind) {
        const vkt_symbol *s = &e->bpe.symbols[i];
        VKT_TRY(append(e, s->id, is_answer(marks, s->begin, s->end)));
    }
    return VKT_OK;
}

/* Copies a text to *copy, with U+0001 instead of each byte that is not UTF-8. So *copy is UTF-8 and has n bytes. For
 * the regular expressions, U+0001 is like U+FFFD: neither a letter, nor a number, nor space. *copy stays NULL if the
 * text is UTF-8. */
static vkt_result make_utf8(const vkt_host *h, const char *text, size_t n, char **copy)
{
    for (size_t at = 0, bytes; at < n; at += bytes) {
        uint32_t c;
        bytes = vkt_utf8_decode(text + at, n - at, &c);
        if (bytes) continue;
        bytes = 1;
        if (!*copy) {
            *copy = vkt_alloc(h, n);
            if (!*copy) return vkt_fail_nomem(h, "a text", n);
            memcpy(*copy, text, n);
        }
        (*copy)[at] = 1;
    }
    return VKT_OK;
}

/* Splits a normalized text into pieces, and encodes each piece. Does not look for special tokens. */
static vkt_result encode_normalized(encoding *e, const char *text, const uint8_t *marks, size_t n)
{
    char *copy = NULL;
    VKT_TRY(make_utf8(&e->t->host, text, n, &copy));
    vkt_result r = VKT_OK;
    for (size_t at = 0, end; r == VKT_OK && at < n; at = end) {
        end = n;
        r = vkt_split_next(e->run, copy ? copy : text, n, at, &end);
        if (r == VKT_OK) r = encode_piece(e, text, marks, at, end);
    }
    vkt_free(&e->t->host, copy);
    return r;
}

static vkt_result encode_plain(encoding *e, const char *text, const uint8_t *marks, size_t n)
{
    if (!e->t->rules.nfc || vkt_is_nfc(text, n)) return encode_normalized(e, text, marks, n);
    vkt_marked normal;
    VKT_TRY(vkt_nfc(&e->t->host, text, marks, n, &normal));
    const vkt_result r = normal.n <= INT32_MAX
                             ? encode_normalized(e, normal.text, normal.marks, normal.n)
                             : vkt_fail(&e->t->host, VKT_E_ARG,
                                        "tokenizer: want a text of fewer than 2^31 bytes, got %zu after NFC", normal.n);
    vkt_free(&e->t->host, normal.text);
    vkt_free(&e->t->host, normal.marks);
    return r;
}

/* ---- special tokens ---- */

static bool has_content(const uint8_t *marks, size_t begin, size_t end)
{
    for (size_t i = begin; marks && i < end; i++)
        if (marks[i] & VKT_MARK_CONTENT) return true;
    return false;
}

/* Returns whether a token has the form <|name|>. Chat templates begin and end messages with such tokens. */
static bool is_turn(const char *token, size_t bytes)
{
    return bytes > 4 && memcmp(token, "<|", 2) == 0 && memcmp(token + bytes - 2, "|>", 2) == 0;
}

/* Returns the longest allowed special token that begins at `at`, and its length in *bytes; VKT_NO_TOKEN: none.
 * `control`: control tokens are allowed. `marks` may forbid tokens (VKT_MARK_CONTENT). */
static uint32_t special_at(const vkt_tokenizer *t, const char *text, const uint8_t *marks, size_t at, size_t n,
                           bool control, size_t *bytes)
{
    const unsigned char first = (unsigned char)text[at];
    for (uint32_t i = t->special_from[first]; i < t->special_from[first + 1]; i++) {
        const uint32_t id = t->special[i];
        const char *token = vkt_tokenizer_token(t, id, bytes);
        if (*bytes > n - at || memcmp(token, text + at, *bytes) != 0) continue;
        const bool is_user = t->kinds[id] == VKT_TOKEN_USER_DEFINED, content = has_content(marks, at, at + *bytes);
        if (is_user ? !content || !is_turn(token, *bytes) : control && !content) return id;
    }
    return VKT_NO_TOKEN;
}

static vkt_result encode_all(encoding *e, const char *text, const uint8_t *marks, size_t n, uint32_t flags)
{
    if (flags & VKT_TOKENS_BOS && e->t->add_bos) VKT_TRY(append(e, e->t->bos, false));
    size_t from = 0;
    for (size_t at = 0, bytes; at < n;) {
        const uint32_t id = special_at(e->t, text, marks, at, n, flags & VKT_TOKENS_SPECIAL, &bytes);
        if (id == VKT_NO_TOKEN) {
            at++;
            continue;
        }
        VKT_TRY(encode_plain(e, text + from, marks ? marks + from : NULL, at - from));
        VKT_TRY(append(e, id, is_answer(marks, at, at + bytes)));
        from = at += bytes;
    }
    return encode_plain(e, text + from, marks ? marks + from : NULL, n - from);
}

vkt_result vkt_tokenizer_encode_marked(const vkt_tokenizer *t, const char *text, const uint8_t *marks, size_t bytes,
                                       uint32_t flags, vkt_tokens *list)
{
    if (bytes > INT32_MAX)
        return vkt_fail(&t->host, VKT_E_ARG, "tokenizer: want a text of fewer than 2^31 bytes, got %zu", bytes);
    const size_t before = list->n;
    if (!list->alloc.resize) list->alloc = t->host.alloc;
    encoding e = { .t = t, .bpe = { .h = &t->host }, .list = list };
    VKT_TRY(vkt_split_run_create(t->splitter, &e.run));
    const vkt_result r = encode_all(&e, text, marks, bytes, flags);
    vkt_split_run_destroy(&e.run);
    vkt_bpe_free(&e.bpe);
    if (r != VKT_OK) list->n = before;
    return r;
}

vkt_result vkt_tokenizer_encode(const vkt_tokenizer *t, const char *text, size_t bytes, uint32_t flags,
                                vkt_tokens *list)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, text);
    VKT_WANT(&t->host, list);
    return vkt_tokenizer_encode_marked(t, text, NULL, bytes, flags, list);
}
