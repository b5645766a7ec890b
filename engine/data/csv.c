/* data/csv.c - see csv.h. Fields are unquoted in place, because a field never grows. The NUL of a plain field replaces
 * the separator or line end behind the field. The NUL of a quoted field replaces the closing quote, or an earlier byte
 * if the field has doubled quotes. A plain field at the end of the text has the text's own NUL. */
#include "data/csv.h"

#include <stdio.h>

#include "data/gz.h"

/* Fills in the reader, except for the text. On failure there is nothing to close. */
static vkt_result begin(const vkt_host *h, const char *name, const vkt_csv_format *format, vkt_csv *c)
{
    *c = (vkt_csv){ .h = h, .separator = ',', .quote = '"', .next_line = 1 };
    if (format && format->separator) c->separator = format->separator;
    if (format && format->no_quotes) c->quote = 0;
    const char s = c->separator;
    if (s == '\n' || s == '\r' || s == c->quote)
        return vkt_fail(h, VKT_E_ARG, "%s: want a separator that is no quote and no line end, got byte %d", name, s);
    c->name = vkt_strdup(h, name);
    return c->name ? VKT_OK : vkt_fail_nomem(h, "a file name", strlen(name) + 1);
}

/* Gives the reader ownership of `text`: n bytes and a NUL. */
static void set_text(vkt_csv *c, char *text, size_t n)
{
    c->text = c->at = text;
    c->end = text + n;
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) c->at += 3;
}

vkt_result vkt_csv_open(const vkt_host *h, const char *path, const vkt_csv_format *format, vkt_csv *c)
{
    VKT_TRY(begin(h, path, format, c));
    void *text;
    size_t n;
    const vkt_result r = vkt_gz_read_file(h, path, VKT_CSV_MAX_BYTES, &text, &n);
    if (r == VKT_OK)
        set_text(c, text, n);
    else
        vkt_csv_close(c);
    return r;
}

vkt_result vkt_csv_open_memory(const vkt_host *h, const char *name, const char *text, size_t n,
                               const vkt_csv_format *format, vkt_csv *c)
{
    VKT_TRY(begin(h, name, format, c));
    char *copy = vkt_alloc(h, n + 1);
    if (!copy) {
        vkt_csv_close(c);
        return vkt_fail_nomem(h, name, n + 1);
    }
    if (n > 0) memcpy(copy, text, n);
    set_text(c, copy, n);
    return VKT_OK;
}

void vkt_csv_close(vkt_csv *c)
{
    if (!c->h) return;
    const vkt_host *h = c->h;
    vkt_free(h, c->fields);
    vkt_free(h, c->text);
    vkt_free(h, c->name);
    *c = (vkt_csv){ 0 };
}

static vkt_result fail_at(const vkt_csv *c, size_t line, const char *what)
{
    return vkt_fail(c->h, VKT_E_FORMAT, "%s, line %zu: %s", c->name, line, what);
}

/* Ends the field that was written up to `write` and read up to `read`. Then skips the separator or the line end. */
static vkt_result end_field(vkt_csv *c, char *read, char *write, bool *last)
{
    *last = true;
    if (read < c->end && *read == c->separator) {
        *last = false;
        c->at = read + 1;
    } else if (read == c->end) {
        c->at = read;
    } else if (*read == '\n' || (*read == '\r' && read[1] == '\n')) {
        c->at = read + (*read == '\r' ? 2 : 1);
        c->next_line++;
    } else if (*read == '\r') {
        return fail_at(c, c->next_line, "a carriage return without a line feed");
    } else if (*read == 0) {
        return fail_at(c, c->next_line, "a byte 0");
    } else {
        return fail_at(c, c->next_line,
                       write == read ? "a quote in a field that does not begin with one"
                                     : "want a separator or a line end behind a closing quote");
    }
    *write = 0;
    return VKT_OK;
}

static vkt_result read_plain(vkt_csv *c, bool *last)
{
    char *p = c->at;
    while (p < c->end && *p != c->separator && *p != '\n' && *p != '\r' && *p && *p != c->quote) p++;
    return end_field(c, p, p, last);
}

/* Reads a quoted field. c->at is behind the opening quote. */
static vkt_result read_quoted(vkt_csv *c, bool *last)
{
    const size_t first_line = c->next_line;
    char *read = c->at, *write = c->at;
    for (;; read++) {
        if (read == c->end) return fail_at(c, first_line, "a quote that is never closed");
        if (*read == c->quote && *++read != c->quote) return end_field(c, read, write, last);
        if (*read == 0) return fail_at(c, c->next_line, "a byte 0");
        if (*read == '\n') c->next_line++;
        *write++ = *read;
    }
}

static void skip_blank_lines(vkt_csv *c)
{
    for (; c->at < c->end; c->at++) {
        if (*c->at == '\r' && c->at[1] == '\n') c->at++;
        if (*c->at != '\n') return;
        c->next_line++;
    }
}

vkt_result vkt_csv_next(vkt_csv *c, bool *more)
{
    *more = false;
    skip_blank_lines(c);
    if (c->at == c->end) return VKT_OK;
    c->line = c->next_line;
    size_t n = 0;
    for (bool last = false; !last; n++) {
        if (n == VKT_CSV_MAX_FIELDS) return vkt_csv_fail(c, "want at most %u fields", VKT_CSV_MAX_FIELDS);
        VKT_TRY(vkt_grow(c->h, &c->fields, n, &c->cap, sizeof *c->fields));
        const bool quoted = c->quote && *c->at == c->quote;
        c->at += quoted;
        c->fields[n] = c->at;
        VKT_TRY(quoted ? read_quoted(c, &last) : read_plain(c, &last));
    }
    if (c->n_fields && n != c->n_fields)
        return vkt_csv_fail(c, "want %zu fields, as in the first record, got %zu", c->n_fields, n);
    c->n_fields = n;
    *more = true;
    return VKT_OK;
}

size_t vkt_csv_find(const vkt_csv *c, const char *name)
{
    for (size_t i = 0; i < c->n_fields; i++)
        if (vkt_compare_names(c->fields[i], name) == 0) return i;
    return SIZE_MAX;
}

vkt_result vkt_csv_fail(const vkt_csv *c, const char *fmt, ...)
{
    char what[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return fail_at(c, c->line, what);
}
