/* data/tokenizer_decode.c - converts ids to texts (vktrain/tokenizer.h). */
#include "data/tokenizer.h"

static vkt_result check_id(const vkt_tokenizer *t, uint32_t id)
{
    if (id < t->n) return VKT_OK;
    return vkt_fail(&t->host, VKT_E_ARG, "tokenizer: want an id below %u, got %u", t->n, id);
}

static bool is_skipped(const vkt_tokenizer *t, uint32_t id, bool skip_special)
{
    return skip_special && t->kinds[id] == VKT_TOKEN_CONTROL;
}

vkt_result vkt_tokenizer_decode(const vkt_tokenizer *t, const uint32_t *ids, size_t n, bool skip_special, char *out,
                                size_t capacity, size_t *bytes)
{
    if (bytes) *bytes = 0;
    VKT_WANT(NULL, t);
    if (n) VKT_WANT(&t->host, ids);
    if (capacity) VKT_WANT(&t->host, out);
    VKT_WANT(&t->host, bytes);
    for (size_t i = 0; i < n; i++) VKT_TRY(check_id(t, ids[i]));
    for (size_t i = 0; i < n; i++) {
        size_t token_bytes;
        const char *token = vkt_tokenizer_token(t, ids[i], &token_bytes);
        if (is_skipped(t, ids[i], skip_special)) continue;
        if (*bytes < capacity) memcpy(out + *bytes, token, VKT_MIN(token_bytes, capacity - *bytes));
        *bytes += token_bytes;
    }
    return VKT_OK;
}

/* ---- decoding of one id at a time ---- */

/* Returns how many bytes a character of UTF-8 has, by its first byte; 1 if no character begins with this byte. */
static size_t character_bytes(unsigned char first)
{
    return first >= 0xf0 && first <= 0xf4  ? 4
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xc2 && first < 0xe0 ? 2
                                           : 1;
}

/* Returns whether n bytes are the beginning of a character, and its other bytes are missing. */
static bool is_incomplete(const char *text, size_t n)
{
    static const char ends[2][3] = { { '\x80', '\x80', '\x80' }, { '\xbf', '\xbf', '\xbf' } };
    char whole[4];
    uint32_t c;
    if (!n || n >= character_bytes((unsigned char)*text)) return false;
    /* The second byte of a character must be large after E0 and F0, and small after ED and F4. So if the bytes begin a
     * character, one of these two ends completes it. */
    for (size_t i = 0; i < 2; i++) {
        memcpy(whole, text, n);
        memcpy(whole + n, ends[i], sizeof whole - n);
        if (vkt_utf8_decode(whole, sizeof whole, &c)) return true;
    }
    return false;
}

vkt_result vkt_tokenizer_stream(const vkt_tokenizer *t, vkt_token_stream *stream, uint32_t id, char *out, size_t room)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, stream);
    VKT_WANT(&t->host, out);
    VKT_TRY(check_id(t, id));
    if (room < t->longest + 4 || stream->n_held > 3)
        return vkt_fail(&t->host, VKT_E_ARG, "tokenizer: want room for %zu bytes, got %zu", t->longest + 4, room);
    size_t bytes, n = stream->n_held;
    const char *token = vkt_tokenizer_token(t, id, &bytes);
    if (is_skipped(t, id, stream->skip_special)) bytes = 0;
    memcpy(out, stream->held, n);
    memcpy(out + n, token, bytes);
    n += bytes;
    /* Holds back the last three, two or one bytes, if they are the beginning of a character. Three bytes are tried
     * first. */
    size_t keep = VKT_MIN(n, 3);
    while (keep && !is_incomplete(out + n - keep, keep)) keep--;
    memcpy(stream->held, out + n - keep, keep);
    stream->n_held = (uint32_t)keep;
    out[n - keep] = 0;
    return VKT_OK;
}

void vkt_token_stream_end(vkt_token_stream *stream, char *out)
{
    if (!stream || !out) return;
    const uint32_t n = VKT_MIN(stream->n_held, 3);
    memcpy(out, stream->held, n);
    out[n] = 0;
    stream->n_held = 0;
}
