/* train/compare.c - see compare.h. */
#include "train/compare.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/numbers.h"
#include "ops/ops.h"

enum { MAX_REPORTED = 5, OPS = 128 };

/* A part of a text. It does not end with a NUL. */
typedef struct part {
    const char *s;
    int n;
} part;

void vkt_differences_add(vkt_differences *d, const char *fmt, ...)
{
    char one[256];
    if (d->n++ >= MAX_REPORTED) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(one, sizeof one, fmt, args);
    va_end(args);
    /* Replaces control characters: the text may be from a file, and a terminal would execute them. */
    for (char *c = one; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    vkt_text_add(&d->text, "%s%s", d->n > 1 ? "; " : "", one);
}

const char *vkt_differences_text(vkt_differences *d)
{
    if (d->n > MAX_REPORTED) vkt_text_add(&d->text, "; and %u more", d->n - MAX_REPORTED);
    d->n = VKT_MIN(d->n, (uint32_t)MAX_REPORTED);
    return d->text.failed || !d->text.s ? "" : d->text.s;
}

static bool same(part a, part b)
{
    return a.n == b.n && memcmp(a.s, b.s, (size_t)a.n) == 0;
}

/* Removes the part in front of `end`, and `end` itself, from *text. If *text has no `end`, removes all of it. *out gets
 * the removed part, without `end`. Returns false if *text is empty. */
static bool next(part *text, char end, part *out)
{
    if (text->n == 0) return false;
    const char *at = memchr(text->s, end, (size_t)text->n);
    *out = (part){ text->s, at ? (int)(at - text->s) : text->n };
    const int used = out->n + (at != NULL);
    text->s += used;
    text->n -= used;
    return true;
}

static part whole(const char *text)
{
    return (part){ text, (int)strlen(text) };
}

/* Returns the name in front of '='. *value gets the rest of the line. */
static part name_of(part line, part *value)
{
    part name = { line.s, 0 };
    *value = line;
    next(value, '=', &name);
    return name;
}

/* Finds `name` among the parts "name=value" of a text, which are separated by `end`. *value gets the value. */
static bool find(part text, char end, part name, part *value)
{
    for (part one; next(&text, end, &one);)
        if (same(name_of(one, value), name)) return true;
    return false;
}

static void report(vkt_differences *d, part of, part name, const part *was, const part *is)
{
    static const part none = { "none", 4 };
    const part a = was ? *was : none, b = is ? *is : none;
    const char *space = of.n ? " " : "", *old = d->was ? d->was : "checkpoint",
               *old_one = d->was ? d->was : "the checkpoint", *new = d->is ? d->is : "this run";
    if (a.n && b.n && a.s[0] == '#' && b.s[0] == '#')
        vkt_differences_add(d, "%.*s%s%.*s: not the same as in %s", of.n, of.s, space, name.n, name.s, old_one);
    else
        vkt_differences_add(d, "%.*s%s%.*s: %s %.*s, %s %.*s", of.n, of.s, space, name.n, name.s, old, VKT_MIN(a.n, 60),
                            a.s, new, VKT_MIN(b.n, 60), b.s);
}

/* Returns the field `name` of the attributes of an op; NULL: the op has no such field. */
static const vkt_field *field_of(part op, part name)
{
    const vkt_field *f = NULL;
    for (size_t i = 0; vkt_ops[i] && !f; i++)
        if (same(op, whole(vkt_ops[i]->name))) f = vkt_ops[i]->fields;
    while (f && f->name && !same(name, whole(f->name))) f++;
    return f && f->name ? f : NULL;
}

/* An op such as dropout stores its probability as a multiple of 2^-32. If `value` is a number from 0 to 2^32 - 1
 * ("858993472" or "1.28849024e+09"), writes value / 2^32 to `room`, and returns this text. If `value` is
 * NULL, returns "none". Returns any other text unchanged. */
static part as_fraction(const part *value, char room[32])
{
    char digits[32], *end;
    if (!value) return (part){ "none", 4 };
    if (value->n <= 0 || value->n >= (int)sizeof digits) return *value;
    memcpy(digits, value->s, (size_t)value->n);
    digits[value->n] = 0;
    const vkt_numbers locale = vkt_numbers_begin();
    const double count = strtod(digits, &end);
    const bool is_count = !*end && count >= 0 && count <= UINT32_MAX;
    if (is_count) vkt_number_text(count * 0x1p-32, true, room);
    vkt_numbers_end(locale);
    return is_count ? whole(room) : *value;
}

/* Adds the difference of one attribute. If the op's field has no label (vkt_field.label), or if there is no field, adds
 * both values unchanged under `name`. If the label is empty, adds nothing. Any other label replaces the name, and both
 * values are added as fractions. */
static void report_attribute(vkt_differences *d, part op, part of, part name, const part *was, const part *is)
{
    const vkt_field *f = op.n ? field_of(op, name) : NULL;
    char a[32], b[32];
    if (!f || !f->label) {
        report(d, of, name, was, is);
    } else if (*f->label) {
        const part before = as_fraction(was, a), now = as_fraction(is, b);
        report(d, of, whole(f->label), &before, &now);
    }
}

/* Calls report_attribute for each name whose value differs, and for each name that only one of the two texts has. `op`
 * is the name of the op whose attributes are compared, and `of` is the label of the node. For settings, `op` and `of`
 * are empty. */
static void compare(part op, part of, part was, part is, char end, vkt_differences *d)
{
    part value, other, at = is;
    for (part one; next(&at, end, &one);) {
        const part name = name_of(one, &value);
        const bool found = find(was, end, name, &other);
        if (!found || !same(value, other)) report_attribute(d, op, of, name, found ? &other : NULL, &value);
    }
    at = was;
    for (part one; next(&at, end, &one);) {
        const part name = name_of(one, &value);
        if (!find(is, end, name, &other)) report_attribute(d, op, of, name, &value, NULL);
    }
}

void vkt_compare_settings(const char *was, const char *is, vkt_differences *d)
{
    if (strcmp(was, is) == 0) return;
    compare((part){ "", 0 }, (part){ "", 0 }, whole(was), whole(is), '\n', d);
    if (!d->n) vkt_differences_add(d, "the settings are in another order");
}

/* ---- graphs ---- */

/* The number of nodes of each op in two graphs. */
typedef struct op_counts {
    part op[OPS];
    uint32_t was[OPS], is[OPS];
    uint32_t n;
} op_counts;

static void count(op_counts *c, part text, bool is)
{
    for (part line, op; next(&text, '\n', &line);) {
        if (!next(&line, ' ', &op)) continue;
        uint32_t i = 0;
        while (i < c->n && !same(c->op[i], op)) i++;
        if (i == OPS) continue;
        if (i == c->n) c->op[c->n++] = op;
        (is ? c->is : c->was)[i]++;
    }
}

/* Adds the ops whose counts differ in the two graphs. If all counts are equal, adds node number `node`, the first
 * node whose op differs. The node has the op `op` in the checkpoint, and the op `other` in this run. */
static void report_ops(part was, part is, uint32_t node, part op, part other, vkt_differences *d)
{
    op_counts c = { .n = 0 };
    const uint32_t before = d->n;
    count(&c, was, false);
    count(&c, is, true);
    for (uint32_t i = 0; i < c.n; i++)
        if (c.was[i] != c.is[i])
            vkt_differences_add(d, "%.*s: checkpoint has %u, this run %u of them", c.op[i].n, c.op[i].s, c.was[i],
                                c.is[i]);
    if (d->n == before)
        vkt_differences_add(d, "node %u: checkpoint %.*s, this run %.*s", node, op.n, op.s, other.n, other.s);
}

static bool is_scale(part word)
{
    static const char name[] = "scale=";
    const int n = (int)sizeof name - 1;
    return word.n > n && memcmp(word.s, name, (size_t)n) == 0;
}

/* Returns whether two lines are nodes of gather_rows that differ at most in `scale`. Until 29 November 2026,
 * checkpoints had a wrong number there. The settings have the means and standard deviations that `scale` follows from.
 */
static bool gathers_alike(part was, part is)
{
    part x, y;
    if (!next(&was, ' ', &x) || !next(&is, ' ', &y) || !same(x, whole("gather_rows")) || !same(x, y)) return false;
    for (;;) {
        const bool more = next(&was, ' ', &x), also = next(&is, ' ', &y);
        if (!more || !also) return more == also;
        if (!same(x, y) && !(is_scale(x) && is_scale(y))) return false;
    }
}

void vkt_compare_graphs(const char *was, const char *is, vkt_differences *d)
{
    const uint32_t before = d->n;
    bool alike = true;
    const size_t len = d->text.len;
    part a = whole(was), b = whole(is), x = { "", 0 }, y = x, op = x, other = x, label = x, ours = x;
    for (uint32_t node = 0; a.n || b.n; node++) {
        const bool both = next(&a, '\n', &x) && next(&b, '\n', &y);
        if (both && (same(x, y) || gathers_alike(x, y))) continue;
        alike = false;
        if (!both || !next(&x, ' ', &op) || !next(&y, ' ', &other) || !same(op, other)) {
            d->n = before;
            d->text.len = len; /* from here on, the two graphs do not have the same nodes. So the differences of earlier
                                * nodes are dropped */
            report_ops(whole(was), whole(is), node, op, other, d);
            return;
        }
        if (!next(&x, ' ', &label) || !next(&y, ' ', &ours)) continue;
        if (!same(label, ours))
            vkt_differences_add(d, "layer: checkpoint %.*s, this run %.*s", label.n, label.s, ours.n, ours.s);
        compare(op, ours, x, y, ' ', d);
    }
    if (!alike && d->n == before) vkt_differences_add(d, "the network is another one");
}
