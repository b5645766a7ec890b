/* io/members.c - see members.h. vkt_members_next only finds quotes, brackets and separators. vkt_members_parse lets
 * jansson check a key or a value. */
#include "io/members.h"

#include <stdio.h>

vkt_members vkt_members_of(char *text, size_t n)
{
    return (vkt_members){ .text = text, .n = n, .at = 1, .first = true };
}

static bool fail(vkt_members *w, const char *why)
{
    snprintf(w->why, sizeof w->why, "%s", why);
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

json_t *vkt_members_parse(vkt_members *w, const char *text, size_t n, bool *no_memory)
{
    json_error_t e;
    json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (value) return value;
    *no_memory = json_error_code(&e) == json_error_out_of_memory;
    w->at = (size_t)(text - w->text) + (size_t)VKT_MAX(e.position, 0);
    fail(w, e.text);
    return NULL;
}

const char *vkt_members_text(vkt_members *w, char *text, size_t n, bool *no_memory)
{
    json_t *value = vkt_members_parse(w, text, n, no_memory);
    if (value) memcpy(text, json_string_value(value), json_string_length(value) + 1);
    json_decref(value);
    return value ? text : NULL;
}
