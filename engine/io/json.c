/* io/json.c - see json.h. */
#include "io/json.h"

#include <stdlib.h>

/* A text that is being read. */
typedef struct reader {
    const char *text;
    size_t at, n;
    const char *why; /* NULL: no error so far */
} reader;

static bool fail(reader *r, const char *why)
{
    if (!r->why) r->why = why;
    return false;
}

/* Returns the next byte; 0 at the end. */
static char next(const reader *r)
{
    return r->at < r->n ? r->text[r->at] : 0;
}

static void skip_blanks(reader *r)
{
    while (r->at < r->n && memchr(" \t\r\n", r->text[r->at], 4)) r->at++;
}

static bool skip(reader *r, char c)
{
    if (r->at == r->n || r->text[r->at] != c) return false;
    r->at++;
    return true;
}

/* ---- texts ---- */

/* Reads the four hexadecimal digits of an escape. Returns false if they are not there. */
static bool read_hex4(reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        const char c = next(r);
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return fail(r, "want four hexadecimal digits after \\u");
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* Reads the rest of a \u escape, and the second half of a surrogate pair. */
static bool read_unicode(reader *r, uint32_t *character)
{
    uint32_t low;
    if (!read_hex4(r, character)) return false;
    if (*character == 0) return fail(r, "\\u0000 is not allowed");
    if (*character >> 11 != 0x1b) return true;
    if (*character >= 0xdc00 || !skip(r, '\\') || !skip(r, 'u')) return fail(r, "half of a surrogate pair");
    if (!read_hex4(r, &low)) return false;
    if (low >> 10 != 0x37) return fail(r, "half of a surrogate pair");
    *character = 0x10000 + ((*character & 0x3ff) << 10 | (low & 0x3ff));
    return true;
}

/* Reads an escape, behind its backslash. */
static bool read_escape(reader *r, uint32_t *character)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char c = next(r);
    const char *found = c ? strchr(names, c) : NULL;
    if (c) r->at++;
    if (c == 'u') return read_unicode(r, character);
    if (!found) return fail(r, "an unknown escape");
    *character = (uint32_t)(unsigned char)meanings[found - names];
    return true;
}

/* Writes a character in UTF-8. Returns its number of bytes. */
static size_t encode(uint32_t c, char *out)
{
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(first[n] | c);
    return n;
}

/* Reads a text in quotes. Writes what it means to `out` if that is not NULL; `out` may be the text itself, because no
 * character is longer than its JSON. *bytes: number of bytes of the meaning. */
static bool read_text(reader *r, char *out, size_t *bytes)
{
    *bytes = 0;
    if (!skip(r, '"')) return fail(r, "want a text in quotes");
    while (!skip(r, '"')) {
        uint32_t c;
        char plain[4];
        if (r->at == r->n) return fail(r, "a text that never ends");
        if ((unsigned char)r->text[r->at] < 0x20) return fail(r, "a control character in a text");
        const size_t n = vkt_utf8_decode(r->text + r->at, r->n - r->at, &c);
        if (n == 0) return fail(r, "a text that is not UTF-8");
        r->at += n;
        if (c == '\\' && !read_escape(r, &c)) return false;
        const size_t put = encode(c, plain);
        if (out) memcpy(out + *bytes, plain, put);
        *bytes += put;
    }
    return true;
}

bool vkt_json_decode(char *text, size_t n, vkt_json_error *e)
{
    reader r = { .text = text, .n = n };
    size_t bytes;
    if (read_text(&r, text, &bytes) && (r.at == n || fail(&r, "want nothing behind a text"))) {
        text[bytes] = 0;
        return true;
    }
    *e = (vkt_json_error){ r.why, r.at };
    return false;
}

bool vkt_json_add(vkt_text *t, const char *s)
{
    static const char names[] = "bfnrt\"\\", meanings[] = "\b\f\n\r\t\"\\";
    const size_t n = strlen(s);
    uint32_t c;
    for (size_t i = 0, k; i < n; i += k) {
        k = vkt_utf8_decode(s + i, n - i, &c);
        if (k == 0) return false;
    }
    vkt_text_add(t, "\"");
    while (*s) {
        size_t plain = 0;
        while ((unsigned char)s[plain] >= 0x20 && !strchr("\"\\", s[plain])) plain++;
        if (plain) vkt_text_add(t, "%.*s", (int)VKT_MIN(plain, (size_t)1 << 20), s);
        s += VKT_MIN(plain, (size_t)1 << 20);
        if (plain || !*s) continue;
        const char *named = strchr(meanings, *s);
        if (named)
            vkt_text_add(t, "\\%c", names[named - meanings]);
        else
            vkt_text_add(t, "\\u%04X", (unsigned)*s);
        s++;
    }
    vkt_text_add(t, "\"");
    return true;
}

/* ---- values ---- */

static bool read_digits(reader *r)
{
    const size_t from = r->at;
    while (next(r) >= '0' && next(r) <= '9') r->at++;
    return r->at > from;
}

/* Returns whether the integer of `n` characters fits int64_t. The caller has checked its grammar. */
static bool fits(const char *text, size_t n)
{
    int64_t value = 0;
    const bool negative = *text == '-';
    for (size_t i = negative; i < n; i++) {
        const int64_t digit = text[i] - '0';
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return false;
    }
    return true;
}

static bool read_number(reader *r)
{
    const size_t from = r->at;
    bool integer = true;
    skip(r, '-');
    if (!skip(r, '0') && !read_digits(r)) return fail(r, "want a value");
    if (skip(r, '.')) {
        integer = false;
        if (!read_digits(r)) return fail(r, "want digits behind '.'");
    }
    if (skip(r, 'e') || skip(r, 'E')) {
        integer = false;
        if (!skip(r, '+')) skip(r, '-');
        if (!read_digits(r)) return fail(r, "want digits in an exponent");
    }
    return !integer || fits(r->text + from, r->at - from) || fail(r, "an integer that does not fit 64 bits");
}

static bool read_value(reader *r, uint32_t depth);

/* Reads the items of a list or the members of an object, behind the opening bracket. */
static bool read_items(reader *r, uint32_t depth, bool object)
{
    const char end = object ? '}' : ']';
    size_t bytes;
    if (depth == 0) return fail(r, "values that are nested too deeply");
    skip_blanks(r);
    if (skip(r, end)) return true;
    for (;;) {
        skip_blanks(r);
        if (object) {
            if (!read_text(r, NULL, &bytes)) return false;
            skip_blanks(r);
            if (!skip(r, ':')) return fail(r, "want ':'");
        }
        if (!read_value(r, depth - 1)) return false;
        skip_blanks(r);
        if (skip(r, end)) return true;
        if (!skip(r, ',')) return fail(r, object ? "want ',' or '}'" : "want ',' or ']'");
    }
}

/* Reads a value and the white space before it. */
static bool read_value(reader *r, uint32_t depth)
{
    static const char *const words[] = { "true", "false", "null" };
    size_t bytes;
    skip_blanks(r);
    if (next(r) == '"') return read_text(r, NULL, &bytes);
    if (skip(r, '{')) return read_items(r, depth, true);
    if (skip(r, '[')) return read_items(r, depth, false);
    for (size_t i = 0; i < VKT_COUNT(words); i++) {
        const size_t n = strlen(words[i]);
        if (r->n - r->at < n || memcmp(r->text + r->at, words[i], n) != 0) continue;
        r->at += n;
        return true;
    }
    return read_number(r);
}

bool vkt_json_check(const char *text, size_t n, vkt_json_error *e)
{
    reader r = { .text = text, .n = n };
    if (read_value(&r, VKT_JSON_DEPTH)) {
        skip_blanks(&r);
        if (r.at == n || fail(&r, "want nothing behind a value")) return true;
    }
    *e = (vkt_json_error){ r.why, r.at };
    return false;
}

bool vkt_json_integers(const char *text, size_t n, uint64_t *items, size_t most, size_t *count)
{
    reader r = { .text = text, .n = n };
    *count = 0;
    skip_blanks(&r);
    if (!skip(&r, '[')) return false;
    skip_blanks(&r);
    while (r.at < n && !skip(&r, ']')) {
        const size_t from = r.at;
        if (!read_value(&r, VKT_JSON_DEPTH)) return false;
        bool digits = true;
        uint64_t value = 0;
        for (size_t i = from; i < r.at; i++) {
            digits &= text[i] >= '0' && text[i] <= '9';
            value = value * 10 + (uint64_t)(text[i] - '0');
        }
        if (*count < most) items[*count] = digits ? value : UINT64_MAX;
        ++*count;
        skip_blanks(&r);
        skip(&r, ',');
        skip_blanks(&r);
    }
    return true;
}
