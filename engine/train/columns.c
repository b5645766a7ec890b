/* train/columns.c - vkt_columns objects, and the fields of a table; see vktrain/columns.h. */
#include "train/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

vkt_result vkt_columns_create(const vkt_host *h, size_t room, vkt_columns **out)
{
    vkt_columns *c = *out = vkt_alloc(h, sizeof *c);
    if (!c) return vkt_fail_nomem(h, "columns", sizeof *c);
    c->h = *h;
    c->columns = vkt_alloc_array(h, room, sizeof *c->columns);
    if (c->columns) return VKT_OK;
    vkt_columns_destroy(out);
    return vkt_fail_nomem(h, "columns", room * sizeof *c->columns);
}

void vkt_columns_destroy(vkt_columns **pc)
{
    if (!pc || !*pc) return;
    vkt_columns *c = *pc;
    const vkt_host h = c->h;
    for (uint32_t i = 0; i < c->n; i++) {
        const vkt_column *one = &c->columns[i];
        for (uint32_t k = 0; k < one->n_values; k++) vkt_free(&h, (char *)(size_t)one->values[k]);
        vkt_free(&h, (void *)(size_t)one->values);
        vkt_free(&h, (char *)(size_t)one->name);
    }
    vkt_free(&h, c->columns);
    vkt_free(&h, c);
    *pc = NULL;
}

vkt_result vkt_column_set_values(const vkt_host *h, vkt_column *c, const char *const *values, size_t n)
{
    char **copies = vkt_alloc_array(h, n + 1, sizeof *copies);
    c->use = VKT_COLUMN_VALUES;
    c->values = (const char *const *)copies;
    for (c->n_values = 0; copies && c->n_values < n; c->n_values++)
        if (!(copies[c->n_values] = vkt_strdup(h, values[c->n_values]))) break;
    return copies && c->n_values == n ? VKT_OK : vkt_fail_nomem(h, "the values of a column", n * sizeof *copies);
}

static int by_name(const void *a, const void *b)
{
    const vkt_column *x = *(const vkt_column *const *)a, *y = *(const vkt_column *const *)b;
    const int order = vkt_compare_names(x->name, y->name);
    return order ? order : (x > y) - (x < y);
}

vkt_result vkt_columns_check_names(const vkt_columns *c, const char *table)
{
    char name[VKT_COLUMN_NAME_ROOM];
    vkt_result r = VKT_OK;
    const vkt_column **sorted = vkt_alloc_array(&c->h, c->n, sizeof *sorted);
    if (!sorted) return vkt_fail_nomem(&c->h, "names of columns", c->n * sizeof *sorted);
    for (uint32_t i = 0; i < c->n; i++) sorted[i] = &c->columns[i];
    qsort(sorted, c->n, sizeof *sorted, by_name);
    for (uint32_t i = 1; i < c->n && r == VKT_OK; i++) {
        const vkt_column *x = sorted[i - 1], *y = sorted[i];
        if (vkt_compare_names(x->name, y->name) != 0) continue;
        if (x->use == VKT_COLUMN_LEFT_OUT && y->use == VKT_COLUMN_LEFT_OUT) continue;
        r = vkt_fail(&c->h, VKT_E_FORMAT,
                     "%s: want different names of columns, got \"%s\" for column %u and for column %u: rename one of "
                     "them, or leave both out",
                     table, vkt_printable(y->name, name, sizeof name), (unsigned)(x - c->columns) + 1,
                     (unsigned)(y - c->columns) + 1);
    }
    vkt_free(&c->h, (void *)sorted);
    return r;
}

uint32_t vkt_columns_count(const vkt_columns *c)
{
    return c ? c->n : 0;
}

const vkt_column *vkt_columns_at(const vkt_columns *c, uint32_t at)
{
    return c && at < c->n ? &c->columns[at] : NULL;
}

uint32_t vkt_columns_target(const vkt_columns *c)
{
    return c ? c->target : 0;
}

uint32_t vkt_columns_inputs(const vkt_columns *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; c && i < c->n; i++) {
        const vkt_column *one = &c->columns[i];
        if (i == c->target || one->use == VKT_COLUMN_LEFT_OUT) continue;
        n += (one->use == VKT_COLUMN_NUMBER ? 1 : one->n_values) + (one->missing > 0);
    }
    return n;
}

/* ---- a table ---- */

static const char *without_blanks(const char *s)
{
    return s ? s + strspn(s, " \t") : "";
}

const char *vkt_column_name(const vkt_records *r, uint32_t column)
{
    return without_blanks(vkt_records_name(r, column));
}

const char *vkt_column_field(const vkt_records *r, uint32_t row, uint32_t column)
{
    return without_blanks(vkt_records_field(r, row, column));
}

bool vkt_field_missing(const char *field)
{
    static const char *const marks[] = { "", "?", "NA", "N/A", "NaN", "null" };
    for (size_t i = 0; i < VKT_COUNT(marks); i++)
        if (vkt_compare_names(field, marks[i]) == 0) return true;
    return false;
}

bool vkt_field_number(const char *field, double *x)
{
    const char *text = without_blanks(field);
    const size_t n = strspn(text, "0123456789+-.eE"); /* excludes hexadecimal numbers, "inf" and "nan" */
    char *end = NULL;
    const double value = n ? strtod(text, &end) : 0;
    if (n == 0 || end != text + n || *without_blanks(text + n) || !isfinite(value)) return false;
    *x = value;
    return true;
}

bool vkt_records_missing(const vkt_records *r, uint32_t row, uint32_t column)
{
    return !r || vkt_field_missing(vkt_column_field(r, row, column));
}

vkt_result vkt_records_column(const vkt_host *host, const vkt_records *r, const char *name, uint32_t *column)
{
    VKT_WANT(host, column);
    *column = UINT32_MAX;
    VKT_WANT(host, r);
    VKT_WANT(host, name);
    const vkt_host h = vkt_host_resolve(host);
    const uint32_t n = vkt_records_columns(r);
    char names[1024] = "";
    for (uint32_t i = 0; i < n; i++) {
        const size_t len = strlen(names);
        if (vkt_compare_names(vkt_column_name(r, i), name) == 0) {
            *column = i;
            return VKT_OK;
        }
        if (len + VKT_COLUMN_NAME_ROOM + 8 < sizeof names)
            snprintf(names + len, sizeof names - len, "%s \"%.*s\"", i ? "," : "", VKT_COLUMN_NAME_ROOM,
                     vkt_column_name(r, i));
    }
    return vkt_fail(&h, VKT_E_NOT_FOUND, "there is no column \"%s\"; the columns are%s", name, names);
}
