/* train/columns_guess.c - vkt_columns_guess: the use of each column of a table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/numbers.h"
#include "train/columns.h"

enum { MOST_CLASSES = 20, LEAST_ROWS_PER_CLASS = 5, USUAL_VALUES = 32 };

/* The facts of one column. */
typedef struct look {
    const char **texts; /* the n fields that are not missing. After sort_texts, the first `distinct` elements are the
                         * different texts, sorted */
    uint32_t n, distinct, missing;
    bool numbers, whole; /* numbers: all texts are numbers; whole: no number has a fraction */
    bool counts;         /* n > 2, no field is missing, and each value is the index of its row plus a constant */
    double mean, std;
} look;

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_number(const void *a, const void *b)
{
    double x = 0, y = 0;
    vkt_field_number(*(const char *const *)a, &x);
    vkt_field_number(*(const char *const *)b, &y);
    return x != y ? (x > y) - (x < y) : by_bytes(a, b);
}

/* Computes mean and biased standard deviation of a column of numbers. If the deviation is 0, std is 1. If the numbers
 * are very large, std or both results may be infinite. */
static void measure(look *l)
{
    double sum = 0, squares = 0, x = 0, first = 0;
    bool equal = true;
    for (uint32_t i = 0; i < l->n; i++) {
        vkt_field_number(l->texts[i], &x);
        if (i == 0) first = x;
        equal = equal && x == first;
        sum += x;
    }
    /* The sum of equal numbers may be rounded, so the deviation from sum / n would be tiny instead of 0. */
    l->mean = equal ? first : sum / l->n;
    for (uint32_t i = 0; i < l->n; i++) {
        vkt_field_number(l->texts[i], &x);
        squares += (x - l->mean) * (x - l->mean);
    }
    l->std = squares > 0 ? sqrt(squares / l->n) : 1;
}

static bool can_be_scaled(const look *l)
{
    return isfinite(l->mean) && isfinite(l->std);
}

static void sort_texts(look *l)
{
    if (l->n) qsort(l->texts, l->n, sizeof *l->texts, l->numbers ? by_number : by_bytes);
    for (uint32_t i = 0; i < l->n; i++)
        if (i == 0 || strcmp(l->texts[i], l->texts[l->distinct - 1]) != 0) l->texts[l->distinct++] = l->texts[i];
}

/* Finds the facts of a column in n rows of the table. `rows` has the indices of these rows; NULL: the first n rows. The
 * caller frees l->texts. */
static vkt_result look_at(const vkt_host *h, const vkt_records *r, uint32_t column, const uint32_t *rows, uint32_t n,
                          look *l)
{
    double first = 0;
    *l = (look){ .numbers = true, .whole = true, .counts = true };
    l->texts = vkt_alloc_array(h, (size_t)n + 1, sizeof *l->texts);
    if (!l->texts) return vkt_fail_nomem(h, "a column", (size_t)n * sizeof *l->texts);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = rows ? rows[i] : i;
        const char *field = vkt_column_field(r, row, column);
        double x = 0;
        if (vkt_field_missing(field)) {
            l->missing++;
            continue;
        }
        l->numbers = vkt_field_number(field, &x) && l->numbers;
        l->whole = l->whole && x == floor(x);
        if (l->n == 0) first = x - row;
        l->counts = l->counts && x - row == first;
        l->texts[l->n++] = field;
    }
    l->counts = l->counts && l->numbers && l->n > 2 && !l->missing;
    if (l->numbers) measure(l);
    sort_texts(l);
    return VKT_OK;
}

/* ---- guessing ---- */

static void take_number(vkt_column *c, const look *l)
{
    c->use = VKT_COLUMN_NUMBER;
    c->mean = l->mean;
    c->std = l->std;
}

static void leave_out(vkt_column *c, const char *why)
{
    snprintf(c->why, sizeof c->why, "%s", why);
}

static vkt_result use_input(const vkt_host *h, const vkt_columns_params *p, const look *l, vkt_column *c)
{
    const uint32_t most = p->most_values ? p->most_values : USUAL_VALUES;
    c->missing = l->missing;
    if (l->n == 0) {
        leave_out(c, "it has no values");
    } else if (l->distinct == 1 && !l->missing) {
        leave_out(c, "it is the same in all rows");
    } else if (l->counts) {
        leave_out(c, "it counts the rows");
    } else if (l->numbers && !can_be_scaled(l)) {
        leave_out(c, "its numbers are too large");
    } else if (l->numbers) {
        take_number(c, l);
    } else if (l->distinct > most) {
        c->distinct = l->distinct;
        snprintf(c->why, sizeof c->why, "%u different texts", l->distinct);
    } else {
        return vkt_column_set_values(h, c, l->texts, l->distinct);
    }
    return VKT_OK;
}

static vkt_result use_target(const vkt_host *h, vkt_target_kind kind, const look *l, vkt_column *c)
{
    const bool few = l->whole && l->distinct <= MOST_CLASSES && (uint64_t)l->distinct * LEAST_ROWS_PER_CLASS <= l->n;
    const bool classes = kind == VKT_TARGET_CLASSES || (kind == VKT_TARGET_GUESSED && (!l->numbers || few));
    if (l->distinct < 2)
        return vkt_fail(h, VKT_E_FORMAT, "target \"%s\": want two different values or more, got %u", c->name,
                        l->distinct);
    if (!classes && !l->numbers)
        return vkt_fail(h, VKT_E_ARG, "target \"%s\": want numbers; some of its fields are texts", c->name);
    if (classes && l->distinct > l->n / 2)
        return vkt_fail(h, VKT_E_FORMAT, "target \"%s\": %u different texts in %u rows are no classes", c->name,
                        l->distinct, l->n);
    if (classes) return vkt_column_set_values(h, c, l->texts, l->distinct);
    if (!can_be_scaled(l))
        return vkt_fail(
            h, VKT_E_FORMAT,
            "target \"%s\": want numbers with a finite mean and deviation, got larger ones: correct them, or "
            "leave these fields empty",
            c->name);
    take_number(c, l);
    return VKT_OK;
}

static vkt_result guess_column(const vkt_columns *all, const vkt_records *r, const vkt_columns_params *p, vkt_column *c)
{
    const vkt_host *h = &all->h;
    const uint32_t k = (uint32_t)(c - all->columns);
    const bool target = k == all->target;
    for (uint32_t i = 0; !target && i < p->n_left_out; i++)
        if (vkt_compare_names(c->name, p->left_out[i]) == 0) {
            leave_out(c, "by request");
            return VKT_OK;
        }
    look l;
    VKT_TRY(look_at(h, r, k, target ? NULL : p->rows, target || !p->rows ? vkt_records_rows(r) : p->n_rows, &l));
    const vkt_result result = target ? use_target(h, p->kind, &l, c) : use_input(h, p, &l, c);
    vkt_free(h, l.texts);
    return result;
}

/* Logs why each column except the target is left out, and returns VKT_E_FORMAT. If the table has many columns, the
 * message has only the first ones. */
static vkt_result fail_empty(const vkt_columns *all)
{
    char why[800] = "";
    for (uint32_t i = 0; i < all->n && strlen(why) < sizeof why / 2; i++)
        if (i != all->target)
            snprintf(why + strlen(why), sizeof why - strlen(why), "; \"%.80s\": %s", all->columns[i].name,
                     all->columns[i].why);
    return vkt_fail(&all->h, VKT_E_FORMAT, "the table has no column to learn from%s", why);
}

static vkt_result guess(vkt_columns *all, const vkt_records *r, const vkt_columns_params *p)
{
    const uint32_t n = vkt_records_columns(r);
    const vkt_host *h = &all->h;
    all->target = n - 1;
    uint32_t column;
    if (p->target) VKT_TRY(vkt_records_column(h, r, p->target, &all->target));
    for (uint32_t i = 0; i < p->n_left_out; i++) VKT_TRY(vkt_records_column(h, r, p->left_out[i], &column));
    for (uint32_t i = 0; p->rows && i < p->n_rows; i++)
        if (p->rows[i] >= vkt_records_rows(r))
            return vkt_fail(h, VKT_E_ARG, "columns: want rows below %u, got %u", vkt_records_rows(r), p->rows[i]);
    while (all->n < n) {
        vkt_column *c = &all->columns[all->n++]; /* all->n counts this column now, so vkt_columns_destroy frees it */
        c->name = vkt_strdup(h, vkt_column_name(r, all->n - 1));
        if (!c->name) return vkt_fail_nomem(h, "the name of a column", 0);
        VKT_TRY(guess_column(all, r, p, c));
    }
    VKT_TRY(vkt_columns_check_names(all, "the table"));
    return vkt_columns_inputs(all) ? VKT_OK : fail_empty(all);
}

vkt_result vkt_columns_guess(const vkt_host *host, const vkt_records *r, const vkt_columns_params *params,
                             vkt_columns **out)
{
    static const vkt_columns_params none;
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, r);
    if (params && params->n_left_out) VKT_WANT(host, params->left_out);
    const vkt_host h = vkt_host_resolve(host);
    const vkt_numbers locale = vkt_numbers_begin();
    vkt_result result = vkt_columns_create(&h, vkt_records_columns(r), out);
    if (result == VKT_OK) result = guess(*out, r, params ? params : &none);
    vkt_numbers_end(locale);
    if (result != VKT_OK) vkt_columns_destroy(out);
    return result;
}
