/* Makes a vocabulary and a text from the input, encodes the text, and decodes its ids. Byte 0 of the input chooses the
 * pre-tokenizer and the flags. Byte 1 is the largest number of merges. From byte 2 on, two bytes for each merge choose
 * the two tokens that the merge joins. The rest of the input is the text. */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "vktrain/tokenizer.h"

enum { BYTES = 256, SPECIAL = 2, MOST = BYTES + SPECIAL + 255, LONGEST = 32 };

/* A byte-level vocabulary. The text of a token has a character for each byte of the token. This character has one or
 * two bytes in UTF-8. */
typedef struct vocabulary {
    char tokens[MOST][2 * LONGEST], merges[255][2 * LONGEST + 1];
    vkt_gguf_string token_texts[MOST], merge_texts[255];
    int32_t kinds[MOST];
    uint32_t n, n_merges;
} vocabulary;

static void add(vocabulary *v, const char *token, int32_t kind)
{
    const size_t bytes = strlen(token);
    memcpy(v->tokens[v->n], token, bytes);
    v->token_texts[v->n] = (vkt_gguf_string){ v->tokens[v->n], bytes };
    v->kinds[v->n++] = kind;
}

static void add_bytes(vocabulary *v)
{
    uint32_t next = 256;
    for (uint32_t b = 0; b < BYTES; b++) {
        const bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad);
        const uint32_t c = itself ? b : next++;
        char text[3] = { (char)(unsigned char)c };
        if (c >= 0x80) {
            text[0] = (char)(unsigned char)(0xc0 | c >> 6);
            text[1] = (char)(unsigned char)(0x80 | (c & 0x3f));
        }
        add(v, text, VKT_TOKEN_NORMAL);
    }
}

static void add_merge(vocabulary *v, uint32_t a, uint32_t b)
{
    const vkt_gguf_string left = v->token_texts[a], right = v->token_texts[b];
    if (left.bytes + right.bytes > 2 * LONGEST) return;
    char *merge = v->merges[v->n_merges], both[2 * LONGEST + 1] = "";
    memcpy(merge, left.text, left.bytes);
    merge[left.bytes] = ' ';
    memcpy(merge + left.bytes + 1, right.text, right.bytes);
    v->merge_texts[v->n_merges++] = (vkt_gguf_string){ merge, left.bytes + 1 + right.bytes };
    memcpy(both, left.text, left.bytes);
    memcpy(both + left.bytes, right.text, right.bytes);
    add(v, both, VKT_TOKEN_NORMAL);
}

/* Checks that a stream prints exactly the text for the ids of the list. */
static void check_stream(const vkt_tokenizer *t, const vkt_tokens *list, const char *text, size_t n)
{
    char out[4 * LONGEST + 8];
    vkt_token_stream s = { .n_held = 0 };
    size_t at = 0;
    for (size_t i = 0; i <= list->n; i++) {
        size_t bytes, held = s.n_held;
        if (i == list->n) {
            vkt_token_stream_end(&s, out);
            bytes = 0;
        } else {
            fuzz_require(vkt_tokenizer_stream(t, &s, list->ids[i], out, sizeof out) == VKT_OK, "a stream");
            (void)vkt_tokenizer_token(t, list->ids[i], &bytes);
        }
        const size_t printed = held + bytes - s.n_held;
        fuzz_require(at + printed <= n && memcmp(text + at, out, printed) == 0, "other bytes in a stream");
        at += printed;
    }
    fuzz_require(at == n, "a stream that lacks bytes");
}

static void check(const vkt_tokenizer *t, const char *text, size_t n, uint32_t flags, bool normalizes)
{
    vkt_tokens list = { 0 }, again = { 0 };
    fuzz_require(vkt_tokenizer_encode(t, text, n, flags, &list) == VKT_OK, "a text that is not encoded");
    const size_t room = normalizes ? 12 * n + 1 : n; /* more than enough: the normal form has at most 3 n bytes */
    char *out = malloc(room + 1);
    size_t bytes = 0;
    fuzz_require(out && vkt_tokenizer_decode(t, list.ids, list.n, false, out, room, &bytes) == VKT_OK, "decoding");
    fuzz_require(bytes <= room, "a text that grows");
    if (!normalizes) fuzz_require(bytes == n && memcmp(out, text, n) == 0, "another text");
    fuzz_require(vkt_tokenizer_encode(t, out, bytes, flags, &again) == VKT_OK, "a text that is not encoded again");
    /* The ids are compared only without VKT_TOKENS_SPECIAL. With this flag, normalization may complete the text of a
     * special token. For instance, U+212A becomes K, so <|K|> would appear if the vocabulary had this token. */
    if (!flags)
        fuzz_require(again.n == list.n && (!list.n || memcmp(again.ids, list.ids, list.n * sizeof *list.ids) == 0),
                     "other ids");
    check_stream(t, &list, out, bytes);
    free(out);
    vkt_tokens_release(&list);
    vkt_tokens_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const pres[] = { "gpt-2", "smollm", "llama-bpe", "qwen2" };
    static vocabulary v;
    if (size < 2) return 0;
    const uint32_t pre = data[0] & 3, flags = data[0] & 4 ? VKT_TOKENS_SPECIAL : 0;
    v.n = v.n_merges = 0;
    add_bytes(&v);
    size_t at = 2;
    for (uint32_t i = 0; i < data[1] && at + 2 <= size; i++, at += 2) {
        /* Ids above 255 are the tokens of earlier merges. If there are such tokens, a first byte of 0xc0 or more
         * chooses one of them as the left token of the pair. */
        const uint32_t a = data[at], b = data[at + 1];
        add_merge(&v, a >= 0xc0 && v.n > BYTES ? BYTES + a % (v.n - BYTES) : a, b);
    }
    add(&v, "<|x|>", VKT_TOKEN_CONTROL);
    add(&v, "<u>", VKT_TOKEN_USER_DEFINED);
    const vkt_tokenizer_params p = { .tokens = v.token_texts,
                                     .n_tokens = v.n,
                                     .kinds = v.kinds,
                                     .merges = v.merge_texts,
                                     .n_merges = v.n_merges,
                                     .pre = pres[pre] };
    vkt_tokenizer *t;
    fuzz_require(vkt_tokenizer_create(fuzz_host(), &p, &t) == VKT_OK && vkt_tokenizer_covers(t), "a vocabulary");
    check(t, (const char *)data + at, size - at, flags, pre == 3);
    vkt_tokenizer_destroy(&t);
    fuzz_end();
    return 0;
}
