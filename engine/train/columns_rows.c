/* train/columns_rows.c - vkt_dataset_from_columns: rows of a table as numbers. */
#include <stdio.h>

#include "base/numbers.h"
#include "train/columns.h"

/* The data of one conversion. */
typedef struct rows {
    vkt_host h;
    const vkt_columns *c;
    const vkt_records *r;
    uint32_t *map;    /* index in r of each column of c; UINT32_MAX: the column is not needed */
    float *x, *y;     /* x: inputs (n, inputs); y: targets (n) */
    uint32_t *labels; /* classes (n) */
} rows;

static vkt_result fail_twice(const rows *w, const vkt_column *c, uint32_t first, uint32_t second)
{
    char name[VKT_COLUMN_NAME_ROOM];
    return vkt_fail(&w->h, VKT_E_FORMAT,
                    "the table: want one column \"%s\", got column %u and column %u: rename or remove one of them",
                    vkt_printable(c->name, name, sizeof name), first + 1, second + 1);
}

/* Finds the columns of the table that are needed. */
static vkt_result match(rows *w, bool with_target)
{
    for (uint32_t i = 0; i < w->c->n; i++) {
        const vkt_column *c = &w->c->columns[i];
        w->map[i] = UINT32_MAX;
        if (i == w->c->target ? !with_target : c->use == VKT_COLUMN_LEFT_OUT) continue;
        for (uint32_t k = 0; k < vkt_records_columns(w->r); k++) {
            if (vkt_compare_names(vkt_column_name(w->r, k), c->name) != 0) continue;
            if (w->map[i] != UINT32_MAX) return fail_twice(w, c, w->map[i], k);
            w->map[i] = k;
        }
        if (w->map[i] == UINT32_MAX)
            return vkt_fail(&w->h, VKT_E_FORMAT,
                            "the table has no column \"%s\", which was learned from; want a first line with the names "
                            "of the columns",
                            c->name);
    }
    return VKT_OK;
}

static vkt_result fail_field(const rows *w, const vkt_column *c, uint32_t row, const char *want, const char *field)
{
    char name[VKT_COLUMN_NAME_ROOM], got[VKT_COLUMN_NAME_ROOM];
    return vkt_fail(&w->h, VKT_E_FORMAT, "row %u, column \"%s\": want %s, got \"%s\"", row + 1,
                    vkt_printable(c->name, name, sizeof name), want, vkt_printable(field, got, sizeof got));
}

/* Returns the index of a text among the values of a column, or n_values if the column has no such value. */
static uint32_t value_of(const vkt_column *c, const char *field)
{
    uint32_t k = 0;
    while (k < c->n_values && strcmp(c->values[k], field) != 0) k++;
    return k;
}

static vkt_result encode(const rows *w, uint32_t row, float *x)
{
    for (uint32_t i = 0; i < w->c->n; i++) {
        const vkt_column *c = &w->c->columns[i];
        if (i == w->c->target || c->use == VKT_COLUMN_LEFT_OUT) continue;
        const char *field = vkt_column_field(w->r, row, w->map[i]);
        const bool missing = vkt_field_missing(field);
        double number = c->mean;
        if (c->use == VKT_COLUMN_NUMBER) {
            if (!missing && !vkt_field_number(field, &number)) return fail_field(w, c, row, "a number", field);
            *x++ = (float)((number - c->mean) / c->std);
        } else {
            const uint32_t value = missing ? c->n_values : value_of(c, field);
            for (uint32_t k = 0; k < c->n_values; k++) *x++ = k == value;
        }
        if (c->missing) *x++ = missing;
    }
    return VKT_OK;
}

static vkt_result encode_target(const rows *w, uint32_t row, uint32_t i)
{
    const vkt_column *c = &w->c->columns[w->c->target];
    const char *field = vkt_column_field(w->r, row, w->map[w->c->target]);
    if (c->use == VKT_COLUMN_VALUES) {
        w->labels[i] = value_of(c, field);
        return w->labels[i] < c->n_values ? VKT_OK
                                          : fail_field(w, c, row, "one of the classes that were learned", field);
    }
    double number = 0;
    if (!vkt_field_number(field, &number)) return fail_field(w, c, row, "a number", field);
    w->y[i] = (float)((number - c->mean) / c->std);
    return VKT_OK;
}

static vkt_result convert(rows *w, const uint32_t *list, uint32_t n, bool with_target, vkt_dataset **out)
{
    const uint32_t inputs = vkt_columns_inputs(w->c);
    const vkt_column *target = &w->c->columns[w->c->target];
    const bool classes = with_target && target->use == VKT_COLUMN_VALUES;
    w->map = vkt_alloc_array(&w->h, w->c->n, sizeof *w->map);
    w->x = vkt_alloc_array(&w->h, n, inputs * sizeof *w->x);
    w->y = vkt_alloc_array(&w->h, n, sizeof *w->y);
    w->labels = vkt_alloc_array(&w->h, n, sizeof *w->labels);
    if (!w->map || !w->x || !w->y || !w->labels)
        return vkt_fail_nomem(&w->h, "rows of a table", (size_t)n * inputs * sizeof *w->x);
    VKT_TRY(match(w, with_target));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = list ? list[i] : i;
        if (row >= vkt_records_rows(w->r))
            return vkt_fail(&w->h, VKT_E_ARG, "columns: want rows below %u, got %u", vkt_records_rows(w->r), row);
        VKT_TRY(encode(w, row, w->x + (size_t)i * inputs));
        if (with_target) VKT_TRY(encode_target(w, row, i));
    }
    const vkt_dataset_params p = { .rows = n,
                                   .width = inputs,
                                   .type = VKT_ROW_F32,
                                   .labels = classes ? w->labels : NULL,
                                   .classes = classes ? target->n_values : 0,
                                   .class_names = classes ? target->values : NULL,
                                   .targets = with_target && !classes ? w->y : NULL };
    return vkt_dataset_from_arrays(&w->h, &p, w->x, out);
}

vkt_result vkt_dataset_from_columns(const vkt_host *host, const vkt_columns *c, const vkt_records *r,
                                    const uint32_t *list, uint32_t n, bool with_target, vkt_dataset **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, c);
    VKT_WANT(host, r);
    rows w = { .h = vkt_host_resolve(host), .c = c, .r = r };
    if (!list) n = vkt_records_rows(r);
    if (n == 0) return vkt_fail(&w.h, VKT_E_FORMAT, "the table has no rows");
    const vkt_numbers locale = vkt_numbers_begin();
    const vkt_result result = convert(&w, list, n, with_target, out);
    vkt_numbers_end(locale);
    void *const parts[] = { w.map, w.x, w.y, w.labels };
    for (size_t i = 0; i < VKT_COUNT(parts); i++) vkt_free(&w.h, parts[i]);
    return result;
}
