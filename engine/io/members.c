/* io/members.c - see members.h. These functions only find quotes, brackets and separators; json.c checks the keys and
 * values. */
#include "io/members.h"

vkt_members vkt_members_of(char *text, size_t n)
{
    return (vkt_members){ .text = text, .n = n, .at = 1, .first = true };
}

static bool fail(vkt_members *w, const char *why)
{
    w->why = why;
    return false;
}

static void skip_blanks(vkt_members *w)
{
    while (w->at < w->n && memchr(" \t\r\n", w->text[w->at], 4)) w->at++;
}

/* Skips `c` and the white space around it. Returns false if the next character is not `c`. */
static bool skip_mark(vkt_members *w, char c)
{
    skip_blanks(w);
    if (w->at == w->n || w->text[w->at] != c) return false;
    w->at++;
    skip_blanks(w);
    return true;
}

/* Skips a JSON string: w->at moves from its opening quote to the byte after its closing quote. */
static bool skip_text(vkt_members *w)
{
    for (w->at++; w->at < w->n && w->text[w->at] != '"'; w->at++) w->at += w->text[w->at] == '\\';
    if (w->at >= w->n) {
        w->at = w->n;
        return fail(w, "a text that never ends");
    }
    w->at++;
    return true;
}

/* Skips a value: w->at moves to the separator, closing bracket or white space after it, or to the end of the text. */
static bool skip_value(vkt_members *w)
{
    size_t depth = 0;
    while (w->at < w->n) {
        const char c = w->text[w->at];
        if (depth == 0 && memchr(",}] \t\r\n", c, 7)) return true;
        if (c == '"') {
            if (!skip_text(w)) return false;
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        w->at++;
    }
    return depth == 0 || fail(w, "a bracket that is never closed");
}

bool vkt_members_next(vkt_members *w, vkt_member *m, bool *more)
{
    *more = false;
    if (skip_mark(w, '}')) return w->at == w->n || fail(w, "want nothing behind the object");
    if (!w->first && !skip_mark(w, ',')) return fail(w, "want ',' or '}'");
    w->first = false;
    skip_blanks(w);
    if (w->at == w->n || w->text[w->at] != '"') return fail(w, "want a name in quotes");
    *m = (vkt_member){ .key = w->text + w->at };
    if (!skip_text(w)) return false;
    m->key_bytes = (size_t)(w->text + w->at - m->key);
    if (!skip_mark(w, ':')) return fail(w, "want ':'");
    m->value = w->text + w->at;
    if (!skip_value(w)) return false;
    m->value_bytes = (size_t)(w->text + w->at - m->value);
    *more = m->value_bytes > 0;
    return *more || fail(w, "want a value");
}

/* Keeps the error of a part of the text. */
static void take_error(vkt_members *w, const char *part, const vkt_json_error *e)
{
    w->at = (size_t)(part - w->text) + e->at;
    fail(w, e->why);
}

bool vkt_members_check(vkt_members *w, const char *text, size_t n)
{
    vkt_json_error e;
    if (vkt_json_check(text, n, &e)) return true;
    take_error(w, text, &e);
    return false;
}

const char *vkt_members_text(vkt_members *w, char *text, size_t n)
{
    vkt_json_error e;
    if (vkt_json_decode(text, n, &e)) return text;
    take_error(w, text, &e);
    return NULL;
}
