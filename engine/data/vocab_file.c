/* data/vocab_file.c - writes and reads a vocabulary as a text (vktrain/text.h describes the format). */
#include "data/vocab.h"

#include "data/gz.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_BYTES (UINT64_C(1) << 32)
#define HEADER "vktrain-vocabulary 1 index_from=%" PRIu32 " lower=%d words=%zu\n"

static bool is_escaped(unsigned char c)
{
    return c <= ' ' || c >= 127 || c == '%';
}

static void add_escaped(vkt_text *t, const char *s)
{
    while (*s) {
        int plain = 0;
        while (s[plain] && plain < 1000 && !is_escaped((unsigned char)s[plain])) plain++;
        if (plain)
            vkt_text_add(t, "%.*s", plain, s);
        else
            vkt_text_add(t, "%%%02X", (unsigned char)*s);
        s += plain ? plain : 1;
    }
}

vkt_result vkt_vocab_to_text(const vkt_vocab *v, char **out)
{
    VKT_WANT(NULL, out);
    *out = NULL;
    VKT_WANT(NULL, v);
    vkt_text t = { .h = &v->host };
    vkt_text_add(&t, HEADER "filters=", v->index_from, !v->keep_case, v->words.n);
    for (int c = 1; c < 128; c++)
        if (v->parts[c] && c != ' ') add_escaped(&t, (const char[2]){ (char)c, 0 });
    for (uint32_t i = 0; i < v->words.n && !t.failed; i++) {
        vkt_text_add(&t, "\n%" PRIu64 " ", v->words.items[i].count);
        add_escaped(&t, vkt_words_text(&v->words, i));
    }
    vkt_text_add(&t, "\n");
    return vkt_text_detach(&t, out);
}

/* ---- reading ---- */

typedef struct reader {
    const vkt_host *h;
    const char *name;
    char *at;
    size_t line; /* number of the line that was read last, from 1 */
} reader;

static vkt_result fail(const reader *r, const char *want)
{
    return vkt_fail(r->h, VKT_E_FORMAT, "%s, line %zu: want %s", r->name, r->line, want);
}

/* Returns the next line and replaces its line feed by a NUL; NULL: there is no line that ends with a line feed. */
static char *next_line(reader *r)
{
    char *line = r->at, *end = strchr(line, '\n');
    r->line++;
    if (!end) return NULL;
    *end = 0;
    r->at = end + 1;
    return line;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Unescapes in place. Returns false for text that add_escaped does not write. */
static bool unescape(char *s)
{
    char *to = s;
    for (; *s; s++) {
        if (*s != '%') {
            if (is_escaped((unsigned char)*s)) return false;
            *to++ = *s;
            continue;
        }
        const int high = hex(s[1]), low = high < 0 ? -1 : hex(s[2]);
        if (low < 0) return false;
        const unsigned char c = (unsigned char)(high * 16 + low);
        if (c == 0 || !is_escaped(c)) return false;
        *to++ = (char)c;
        s += 2;
    }
    *to = 0;
    return true;
}

/* Parses the text from `s` to `end` as a decimal number from 1 to UINT64_MAX. Returns false for any other text. A sign
 * or a leading zero is not allowed. */
static bool parse_count(const char *s, const char *end, uint64_t *out)
{
    *out = 0;
    if (s == end || *s == '0') return false;
    for (; s < end; s++) {
        if (*s < '0' || *s > '9') return false;
        if (__builtin_mul_overflow(*out, 10u, out) || __builtin_add_overflow(*out, (unsigned)(*s - '0'), out))
            return false;
    }
    return true;
}

/* Reads a line like "62304 the" as the next word. */
static vkt_result read_word(reader *r, vkt_vocab *v)
{
    char *line = next_line(r), *blank = line ? strchr(line, ' ') : NULL;
    uint64_t count;
    if (!blank || !parse_count(line, blank, &count) || !blank[1] || !unescape(blank + 1))
        return fail(r, "a count, a blank and a word, with %XX for special bytes");
    const size_t n = v->words.n;
    if (n && v->words.items[n - 1].count < count) return fail(r, "a count that is not above the one before");
    uint32_t number;
    VKT_TRY(vkt_words_add(&v->words, blank + 1, strlen(blank + 1), count, &number));
    return number == n ? VKT_OK : fail(r, "a word that was not there before");
}

/* Reads the vocabulary. May change the text at r->at. */
static vkt_result read(reader *r, vkt_vocab **out)
{
    char *line = next_line(r), copy[128];
    uint32_t index_from;
    int lower;
    size_t words;
    const bool header = line && sscanf(line, "vktrain-vocabulary 1 index_from=%10" SCNu32 " lower=%1d words=%10zu",
                                       &index_from, &lower, &words) == 3;
    if (header) snprintf(copy, sizeof copy, HEADER, index_from, lower, words);
    if (!header || strncmp(copy, line, strlen(line)) != 0 || strlen(copy) != strlen(line) + 1 || lower < 0 || lower > 1)
        return fail(r, "\"vktrain-vocabulary 1 index_from=.. lower=.. words=..\"");
    line = next_line(r);
    if (!line || strncmp(line, "filters=", 8) != 0 || !unescape(line + 8))
        return fail(r, "\"filters=\" and characters");
    const vkt_vocab_params p = { .index_from = index_from, .keep_case = !lower, .filters = line + 8 };
    if (!index_from || words > UINT32_MAX || index_from > UINT32_MAX - words)
        return fail(r, "ids from 3 on, below 2^32");
    vkt_result result = vkt_vocab_begin(r->h, &p, out);
    for (size_t i = 0; i < words && result == VKT_OK; i++) result = read_word(r, *out);
    if (result == VKT_OK && *r->at) {
        r->line++;
        result = fail(r, "nothing behind the last word");
    }
    return result == VKT_E_ARG ? VKT_E_FORMAT : result; /* VKT_E_ARG: wrong index_from, filters or words */
}

/* Reads `text`, and may change it. */
static vkt_result from_text(const vkt_host *h, const char *name, char *text, vkt_vocab **out)
{
    reader r = { .h = h, .name = name, .at = text };
    const vkt_result result = read(&r, out);
    if (result != VKT_OK) vkt_vocab_destroy(out);
    return result;
}

vkt_result vkt_vocab_from_text(const vkt_host *host, const char *name, const char *text, vkt_vocab **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, name);
    VKT_WANT(host, text);
    const vkt_host h = vkt_host_resolve(host);
    *out = NULL;
    char *copy = vkt_strdup(&h, text);
    if (!copy) return vkt_fail_nomem(&h, name, strlen(text) + 1);
    const vkt_result r = from_text(&h, name, copy, out);
    vkt_free(&h, copy);
    return r;
}

vkt_result vkt_vocab_load(const vkt_host *host, const char *path, vkt_vocab **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, path);
    const vkt_host h = vkt_host_resolve(host);
    void *text;
    size_t n;
    VKT_TRY(vkt_gz_read_file(&h, path, MAX_BYTES, &text, &n));
    const vkt_result r = strlen(text) == n ? from_text(&h, path, text, out)
                                           : vkt_fail(&h, VKT_E_FORMAT, "\"%s\" is no text: it has a byte 0", path);
    vkt_free(&h, text);
    return r;
}

vkt_result vkt_vocab_save(const vkt_vocab *v, const char *path)
{
    VKT_WANT(NULL, v);
    VKT_WANT(&v->host, path);
    char *text;
    VKT_TRY(vkt_vocab_to_text(v, &text));
    const vkt_result r = vkt_file_write(&v->host, path, text, strlen(text));
    vkt_text_release(&text);
    return r;
}
