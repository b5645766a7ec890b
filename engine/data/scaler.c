/* data/scaler.c - standardises samples of numbers (vktrain/table.h). */
#include "base/numbers.h"
#include "data/dataset.h"
#include "vktrain/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct vkt_scaler {
    vkt_host host;
    uint32_t n;
    double *mean, *std; /* n numbers each; both arrays are in one allocation */
};

static vkt_result make(const vkt_host *h, uint32_t n, vkt_scaler **out)
{
    vkt_scaler *s = vkt_alloc(h, sizeof *s);
    double *both = vkt_alloc_array(h, n, 2 * sizeof *both);
    if (!s || !both) {
        vkt_free(h, s);
        vkt_free(h, both);
        return vkt_fail_nomem(h, "a scaler", n * 2 * sizeof *both);
    }
    *s = (vkt_scaler){ .host = *h, .n = n, .mean = both, .std = both + n };
    *out = s;
    return VKT_OK;
}

void vkt_scaler_destroy(vkt_scaler **ps)
{
    vkt_scaler *s = ps ? *ps : NULL;
    if (!s) return;
    const vkt_host h = s->host;
    vkt_free(&h, s->mean);
    vkt_free(&h, s);
    *ps = NULL;
}

/* Returns how many numbers a sample has. If samples are not f32, logs an error and returns 0. */
static uint32_t columns_of(const vkt_dataset *ds)
{
    if (vkt_dataset_type(ds) == VKT_ROW_F32) return (uint32_t)(vkt_dataset_row_bytes(ds) / sizeof(float));
    vkt_fail(vkt_dataset_host(ds), VKT_E_ARG, "scaler: want rows of f32, got type %d", (int)vkt_dataset_type(ds));
    return 0;
}

/* Computes mean and standard deviation by Welford's update (1962). Until all samples are read, s->std has the sums of
 * squared deviations. */
static vkt_result fit(vkt_scaler *s, const vkt_dataset *ds, float *row)
{
    for (uint32_t i = 0; i < vkt_dataset_rows(ds); i++) {
        VKT_TRY(vkt_dataset_fetch(ds, i, row));
        for (uint32_t c = 0; c < s->n; c++) {
            const double x = (double)row[c], d = x - s->mean[c];
            if (!isfinite(x))
                return vkt_fail(&s->host, VKT_E_ARG, "scaler: row %u, column %u: want a finite number, got %g", i, c,
                                x);
            s->mean[c] += d / (i + 1.0);
            s->std[c] += d * (x - s->mean[c]);
        }
    }
    for (uint32_t c = 0; c < s->n; c++) s->std[c] = s->std[c] > 0 ? sqrt(s->std[c] / vkt_dataset_rows(ds)) : 1;
    return VKT_OK;
}

vkt_result vkt_scaler_fit(const vkt_dataset *ds, vkt_scaler **out)
{
    VKT_WANT(NULL, out);
    *out = NULL;
    VKT_WANT(NULL, ds);
    const vkt_host *h = vkt_dataset_host(ds);
    *out = NULL;
    const uint32_t n = columns_of(ds);
    if (!n) return VKT_E_ARG;
    vkt_scaler *s;
    VKT_TRY(make(h, n, &s));
    float *row = vkt_alloc_array(h, n, sizeof *row);
    const vkt_result r = row ? fit(s, ds, row) : vkt_fail_nomem(h, "a row", n * sizeof *row);
    vkt_free(h, row);
    if (r == VKT_OK)
        *out = s;
    else
        vkt_scaler_destroy(&s);
    return r;
}

uint32_t vkt_scaler_columns(const vkt_scaler *s)
{
    if (!s) return 0;
    return s->n;
}

const double *vkt_scaler_mean(const vkt_scaler *s)
{
    if (!s) return NULL;
    return s->mean;
}

const double *vkt_scaler_std(const vkt_scaler *s)
{
    if (!s) return NULL;
    return s->std;
}

void vkt_scaler_rows(const vkt_scaler *s, float *rows, size_t n)
{
    if (!s || !rows) return;
    for (; n > 0; n--, rows += s->n)
        for (uint32_t c = 0; c < s->n; c++) rows[c] = (float)(((double)rows[c] - s->mean[c]) / s->std[c]);
}

vkt_result vkt_scaler_transform(const vkt_scaler *s, const vkt_dataset *ds, vkt_dataset **out)
{
    VKT_WANT(NULL, out);
    *out = NULL;
    VKT_WANT(NULL, s);
    VKT_WANT(&s->host, ds);
    const vkt_host *h = vkt_dataset_host(ds);
    const uint32_t rows = vkt_dataset_rows(ds), columns = columns_of(ds);
    *out = NULL;
    if (!columns) return VKT_E_ARG;
    if (columns != s->n) return vkt_fail(h, VKT_E_SHAPE, "scaler: want rows of %u numbers, got %u", s->n, columns);
    float *all = vkt_alloc_array(h, rows, columns * sizeof *all);
    if (!all) return vkt_fail_nomem(h, "standardised rows", (size_t)rows * columns * sizeof *all);
    vkt_result r = VKT_OK;
    for (uint32_t i = 0; i < rows && r == VKT_OK; i++) r = vkt_dataset_fetch(ds, i, all + (size_t)i * columns);
    if (r == VKT_OK) {
        vkt_scaler_rows(s, all, rows);
        r = vkt_dataset_derive(ds, NULL, rows, all, out);
    }
    if (r != VKT_OK) vkt_free(h, all);
    return r;
}

/* ---- as text ---- */

#define HEADER "vktrain-scaler 1 columns="

vkt_result vkt_scaler_to_text(const vkt_scaler *s, char **out)
{
    VKT_WANT(NULL, out);
    *out = NULL;
    VKT_WANT(NULL, s);
    vkt_text t = { .h = &s->host };
    const vkt_numbers locale = vkt_numbers_begin();
    vkt_text_add(&t, HEADER "%u\n", s->n);
    for (uint32_t c = 0; c < s->n; c++) vkt_text_add(&t, "%.17g %.17g\n", s->mean[c], s->std[c]);
    vkt_numbers_end(locale);
    return vkt_text_detach(&t, out);
}

/* Reads a finite number from *at, up to the character `end`. Moves *at behind that character. */
static bool read_number(const char **at, char end, double *x)
{
    if (strspn(*at, "0123456789+-.e") == 0) return false; /* no number, or a blank, which strtod would skip */
    char *behind;
    *x = strtod(*at, &behind);
    if (*behind != end || !isfinite(*x)) return false;
    *at = behind + 1;
    return true;
}

/* Reads the first line, and moves *at behind it. Returns the number of columns; 0: the line is wrong, or the text is
 * too short for so many columns. */
static uint32_t read_header(const char **at)
{
    if (strncmp(*at, HEADER, sizeof HEADER - 1) != 0) return 0;
    *at += sizeof HEADER - 1;
    const size_t digits = strspn(*at, "0123456789");
    const unsigned long n = digits && digits <= 10 && (*at)[digits] == '\n' ? strtoul(*at, NULL, 10) : 0;
    *at += n ? digits + 1 : 0;
    return n <= strlen(*at) && n <= UINT32_MAX ? (uint32_t)n : 0;
}

vkt_result vkt_scaler_from_text(const vkt_host *host, const char *name, const char *text, vkt_scaler **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, name);
    VKT_WANT(host, text);
    const vkt_host h = vkt_host_resolve(host);
    const vkt_numbers locale = vkt_numbers_begin();
    const uint32_t n = read_header(&text);
    vkt_scaler *s = NULL;
    *out = NULL;
    vkt_result r = n ? make(&h, n, &s) : vkt_fail(&h, VKT_E_FORMAT, "%s, line 1: want \"" HEADER "..\"", name);
    for (uint32_t c = 0; c < n && r == VKT_OK; c++)
        if (!read_number(&text, ' ', &s->mean[c]) || !read_number(&text, '\n', &s->std[c]) || s->std[c] <= 0)
            r = vkt_fail(&h, VKT_E_FORMAT, "%s, line %u: want a mean, a blank and a deviation above 0", name, c + 2);
    vkt_numbers_end(locale);
    if (r == VKT_OK && *text) r = vkt_fail(&h, VKT_E_FORMAT, "%s: want nothing behind line %u", name, n + 1);
    if (r == VKT_OK)
        *out = s;
    else
        vkt_scaler_destroy(&s);
    return r;
}
