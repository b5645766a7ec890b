/* data/table.c - makes data sets from CSV files of numbers (vktrain/table.h). */
#include "base/numbers.h"
#include "data/csv.h"
#include "data/dataset.h"
#include "data/words.h"
#include "vktrain/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Either the features or the targets. `columns` has the indices of their columns in the file. */
typedef struct part {
    size_t *columns;
    uint32_t n;
    float *values; /* (rows, n) */
    size_t cap;    /* number of rows for which `values` has space */
} part;

typedef struct reader {
    const vkt_host *h;
    const vkt_csv_params *p;
    vkt_csv csv;
    char **header;   /* names of all columns: pointers into the CSV's memory; NULL: no header */
    size_t n_header; /* number of columns */
    part features, targets;
    size_t label; /* column of the labels; SIZE_MAX: none */
    uint32_t *labels;
    size_t cap_labels;
    vkt_words classes;
    size_t rows;
} reader;

/* ---- columns ---- */

static vkt_result find_column(const reader *r, const char *name, size_t *column)
{
    *column = SIZE_MAX;
    if (!name) return vkt_fail(r->h, VKT_E_ARG, "%s: a column's name is NULL", r->csv.name);
    if (r->header) *column = vkt_csv_find(&r->csv, name);
    if (*column != SIZE_MAX) return VKT_OK;
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(name, &end, 10);
    if (*name < '0' || *name > '9' || *end || errno || number >= r->n_header)
        return vkt_csv_fail(&r->csv, "want a column \"%s\"%s among %zu", name,
                            r->header ? "" : " (a number from 0 on, without a header)", r->n_header);
    *column = (size_t)number;
    return VKT_OK;
}

static vkt_result find_columns(reader *r, const char *const *names, uint32_t n, part *out)
{
    if (n == 0) return VKT_OK;
    if (!names) return vkt_fail(r->h, VKT_E_ARG, "%s: %u columns without names", r->csv.name, n);
    out->columns = vkt_alloc_array(r->h, n, sizeof *out->columns);
    if (!out->columns) return vkt_fail_nomem(r->h, "columns", n * sizeof *out->columns);
    for (; out->n < n; out->n++) VKT_TRY(find_column(r, names[out->n], &out->columns[out->n]));
    return VKT_OK;
}

/* Makes features of all columns that are neither target nor label. */
static vkt_result add_other_columns(reader *r)
{
    part *f = &r->features;
    f->columns = vkt_alloc_array(r->h, r->n_header, sizeof *f->columns);
    if (!f->columns) return vkt_fail_nomem(r->h, "columns", r->n_header * sizeof *f->columns);
    for (size_t c = 0; c < r->n_header; c++) {
        bool used = c == r->label;
        for (uint32_t i = 0; i < r->targets.n; i++) used = used || r->targets.columns[i] == c;
        if (!used) f->columns[f->n++] = c;
    }
    return f->n ? VKT_OK : vkt_csv_fail(&r->csv, "want a column of features, all %zu are something else", r->n_header);
}

/* Chooses the columns. The first record must have been read. */
static vkt_result choose_columns(reader *r)
{
    const vkt_csv_params *p = r->p;
    r->n_header = r->csv.n_fields;
    if (r->n_header > UINT32_MAX) return vkt_csv_fail(&r->csv, "want fewer than 2^32 columns");
    if (!p->no_header) {
        r->header = vkt_alloc_array(r->h, r->n_header, sizeof *r->header);
        if (!r->header) return vkt_fail_nomem(r->h, "a header", r->n_header * sizeof *r->header);
        memcpy(r->header, r->csv.fields, r->n_header * sizeof *r->header);
    }
    r->label = SIZE_MAX;
    if (p->label) VKT_TRY(find_column(r, p->label, &r->label));
    VKT_TRY(find_columns(r, p->targets, p->n_targets, &r->targets));
    VKT_TRY(find_columns(r, p->features, p->n_features, &r->features));
    return r->features.n ? VKT_OK : add_other_columns(r);
}

/* ---- rows ---- */

static vkt_result fail_field(const reader *r, size_t column, const char *what)
{
    const char *text = r->csv.fields[column];
    if (r->header)
        return vkt_csv_fail(&r->csv, "column \"%.60s\": want %s, got \"%.60s\"", r->header[column], what, text);
    return vkt_csv_fail(&r->csv, "column %zu: want %s, got \"%.60s\"", column, what, text);
}

static vkt_result read_number(const reader *r, size_t column, float *out)
{
    const char *text = r->csv.fields[column] + strspn(r->csv.fields[column], " \t");
    char *end = NULL;
    const size_t n = strspn(text, "0123456789+-.eE"); /* no hexadecimal numbers, no names of NaN and infinity */
    const double x = n ? strtod(text, &end) : 0;
    if (n == 0 || end != text + n || text[n + strspn(text + n, " \t")]) return fail_field(r, column, "a number");
    *out = (float)x;
    return isfinite(*out) ? VKT_OK : fail_field(r, column, "a number that f32 can hold");
}

static vkt_result add_numbers(const reader *r, part *p)
{
    if (p->n == 0) return VKT_OK;
    VKT_TRY(vkt_grow(r->h, &p->values, r->rows, &p->cap, p->n * sizeof *p->values));
    for (uint32_t i = 0; i < p->n; i++) VKT_TRY(read_number(r, p->columns[i], &p->values[r->rows * p->n + i]));
    return VKT_OK;
}

static vkt_result add_label(reader *r)
{
    if (r->label == SIZE_MAX) return VKT_OK;
    const char *name = r->csv.fields[r->label];
    VKT_TRY(vkt_grow(r->h, &r->labels, r->rows, &r->cap_labels, sizeof *r->labels));
    uint32_t *number = &r->labels[r->rows];
    if (!*name) return fail_field(r, r->label, "a class");
    if (!r->p->class_names) return vkt_words_add(&r->classes, name, strlen(name), 1, number);
    *number = vkt_words_find(&r->classes, name, strlen(name));
    return *number != VKT_NO_WORD ? VKT_OK : fail_field(r, r->label, "one of the class names");
}

static vkt_result add_class_names(reader *r)
{
    const vkt_csv_params *p = r->p;
    for (uint32_t i = 0; p->class_names && i < p->classes; i++) {
        uint32_t number = i;
        if (!p->class_names[i]) return vkt_fail(r->h, VKT_E_ARG, "%s: class name %u is NULL", r->csv.name, i);
        VKT_TRY(vkt_words_add(&r->classes, p->class_names[i], strlen(p->class_names[i]), 1, &number));
        if (number != i)
            return vkt_fail(r->h, VKT_E_ARG, "%s: class names %u and %u are the same", r->csv.name, number, i);
    }
    return VKT_OK;
}

static vkt_result read_rows(reader *r)
{
    bool more;
    VKT_TRY(add_class_names(r));
    VKT_TRY(vkt_csv_next(&r->csv, &more));
    if (more) VKT_TRY(choose_columns(r));
    if (more && !r->p->no_header) VKT_TRY(vkt_csv_next(&r->csv, &more));
    while (more) {
        if (r->rows == UINT32_MAX) return vkt_csv_fail(&r->csv, "want fewer than 2^32 rows");
        VKT_TRY(add_numbers(r, &r->features));
        VKT_TRY(add_numbers(r, &r->targets));
        VKT_TRY(add_label(r));
        r->rows++;
        VKT_TRY(vkt_csv_next(&r->csv, &more));
    }
    return r->rows ? VKT_OK : vkt_fail(r->h, VKT_E_FORMAT, "\"%s\": want rows of numbers, found none", r->csv.name);
}

/* Creates the data set. Afterwards, the reader's pointers to arrays that the data set owns are NULL. */
static vkt_result make(reader *r, vkt_dataset **out)
{
    const char **names = NULL;
    vkt_dataset_params p = { .rows = (uint32_t)r->rows,
                             .width = r->features.n,
                             .type = VKT_ROW_F32,
                             .labels = r->labels,
                             .targets = r->targets.values,
                             .target_width = r->targets.n };
    if (r->labels) {
        names = vkt_alloc_array(r->h, r->classes.n, sizeof *names);
        if (!names) return vkt_fail_nomem(r->h, "class names", r->classes.n * sizeof *names);
        for (uint32_t i = 0; i < r->classes.n; i++) names[i] = vkt_words_text(&r->classes, i);
        p.classes = (uint32_t)r->classes.n;
        p.class_names = names;
    }
    const vkt_result result = vkt_dataset_adopt(r->h, &p, r->features.values, out);
    if (result == VKT_OK) {
        r->features.values = r->targets.values = NULL;
        r->labels = NULL;
    }
    vkt_free(r->h, names);
    return result;
}

vkt_result vkt_dataset_from_csv(const vkt_host *host, const char *path, const vkt_csv_params *params, vkt_dataset **out)
{
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    const vkt_csv_params defaults = { 0 };
    *out = NULL;
    if (!path) return vkt_fail(&h, VKT_E_ARG, "data set: path is NULL");
    reader r = { .h = &h, .p = params ? params : &defaults, .classes = { .h = &h } };
    VKT_TRY(vkt_csv_open(&h, path, &(vkt_csv_format){ .separator = r.p->separator }, &r.csv));
    const vkt_numbers locale = vkt_numbers_begin();
    vkt_result result = read_rows(&r);
    vkt_numbers_end(locale);
    if (result == VKT_OK) result = make(&r, out);
    vkt_words_free(&r.classes);
    vkt_free(&h, r.labels);
    vkt_free(&h, r.targets.values);
    vkt_free(&h, r.targets.columns);
    vkt_free(&h, r.features.values);
    vkt_free(&h, r.features.columns);
    vkt_free(&h, r.header);
    vkt_csv_close(&r.csv);
    return result;
}
