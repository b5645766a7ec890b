/* common/table_schema.c - see table_schema.h: guesses a schema and prints it. table_rows.c has the rest. */
#include "common/table_schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/message.h"
#include "common/table_text.h"

enum { MAX_CLASSES = 20, MIN_ROWS_PER_CLASS = 5, SHOWN_VALUES = 4, NAME_ROOM = 48 };

/* ---- one column ---- */

/* The facts of one column. */
typedef struct look {
    const char **texts; /* the n texts that are not missing; after sort_texts the `distinct` different ones */
    uint32_t n, distinct, missing;
    bool numbers, whole; /* all of them are */
    bool counts;         /* each value is the number of its row plus a constant */
    double mean, deviation;
} look;

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_number(const void *a, const void *b)
{
    double x = 0, y = 0;
    table_number(*(const char *const *)a, &x);
    table_number(*(const char *const *)b, &y);
    return x != y ? (x > y) - (x < y) : by_bytes(a, b);
}

/* Computes mean and biased standard deviation of a column of numbers. */
static void measure(look *l)
{
    double sum = 0, squares = 0, x = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        table_number(l->texts[i], &x);
        sum += x;
    }
    l->mean = l->n ? sum / l->n : 0;
    for (uint32_t i = 0; i < l->n; i++) {
        table_number(l->texts[i], &x);
        squares += (x - l->mean) * (x - l->mean);
    }
    l->deviation = squares > 0 ? sqrt(squares / l->n) : 1;
}

static void sort_texts(look *l)
{
    if (l->n) qsort(l->texts, l->n, sizeof *l->texts, l->numbers ? by_number : by_bytes);
    for (uint32_t i = 0; i < l->n; i++)
        if (i == 0 || strcmp(l->texts[i], l->texts[l->distinct - 1]) != 0) l->texts[l->distinct++] = l->texts[i];
}

/* Finds the facts of a column. The caller frees l->texts. */
static bool look_at(const vkt_records *r, uint32_t column, const table_rows *rows, look *l)
{
    double first = 0;
    *l = (look){ .texts = malloc((rows->n + 1) * sizeof *l->texts), .numbers = true, .whole = true, .counts = true };
    if (!l->texts) {
        complain("no memory for a column");
        return false;
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        const char *field = table_field(r, rows->index[i], column);
        double x = 0;
        if (schema_is_missing(field)) {
            l->missing++;
            continue;
        }
        l->numbers = table_number(field, &x) && l->numbers;
        l->whole = l->whole && x == floor(x);
        if (l->n == 0) first = x - rows->index[i];
        l->counts = l->counts && x - rows->index[i] == first;
        l->texts[l->n++] = field;
    }
    l->counts = l->counts && l->numbers && l->n > 2 && !l->missing;
    if (l->numbers) measure(l);
    sort_texts(l);
    return true;
}

bool schema_is_missing(const char *field)
{
    static const char *const marks[] = { "", "?", "NA", "N/A", "NaN", "null" };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strcasecmp(field, marks[i]) == 0) return true;
    return false;
}

/* ---- guessing ---- */

static bool take_values(table_column *c, const look *l)
{
    c->use = COLUMN_VALUES;
    c->values = calloc(l->distinct + 1, sizeof *c->values);
    for (; c->values && c->n_values < l->distinct; c->n_values++)
        if (!(c->values[c->n_values] = strdup(l->texts[c->n_values]))) break;
    if (c->n_values == l->distinct) return true;
    complain("no memory for the values of a column");
    return false;
}

static bool take_number(table_column *c, const look *l)
{
    c->use = COLUMN_NUMBER;
    c->mean = l->mean;
    c->deviation = l->deviation;
    return true;
}

static bool leave_out(table_column *c, const char *why)
{
    snprintf(c->why, sizeof c->why, "%s", why);
    return true;
}

static bool guess_input(const vkt_records *r, uint32_t k, const schema_params *p, const table_rows *train,
                        table_column *c)
{
    for (uint32_t i = 0; i < p->n_left_out; i++)
        if (strcasecmp(c->name, p->left_out[i]) == 0) return leave_out(c, "by --leave-out");
    look l;
    if (!look_at(r, k, train, &l)) return false;
    c->missing = l.missing;
    char why[96];
    bool ok;
    snprintf(why, sizeof why, "%u different texts (--most-values %u)", l.distinct, p->most_values);
    if (l.n == 0)
        ok = leave_out(c, "it has no values");
    else if (l.distinct == 1 && !l.missing)
        ok = leave_out(c, "it is the same in all rows");
    else if (l.counts)
        ok = leave_out(c, "it counts the rows");
    else if (l.numbers)
        ok = take_number(c, &l);
    else if (l.distinct > p->most_values)
        ok = leave_out(c, why);
    else
        ok = take_values(c, &l);
    free(l.texts);
    return ok;
}

static bool guess_target(const vkt_records *r, uint32_t k, table_task task, const table_rows *all, table_column *c)
{
    look l;
    if (!look_at(r, k, all, &l)) return false;
    const bool few = l.whole && l.distinct <= MAX_CLASSES && (uint64_t)l.distinct * MIN_ROWS_PER_CLASS <= l.n;
    const bool classes = task == TASK_CLASSES || (task == TASK_GUESSED && (!l.numbers || few));
    char name[NAME_ROOM];
    vkt_printable(c->name, name, sizeof name);
    bool ok = false;
    if (l.distinct < 2)
        complain("target \"%s\": want two different values or more, got %u", name, l.distinct);
    else if (!classes && !l.numbers)
        complain("target \"%s\": --task regression wants numbers; some of its fields are texts", name);
    else if (classes && l.distinct > l.n / 2)
        complain("target \"%s\": %u different texts in %u rows are no classes; --target names another column", name,
                 l.distinct, l.n);
    else
        ok = classes ? take_values(c, &l) : take_number(c, &l);
    free(l.texts);
    return ok;
}

bool schema_find_target(const vkt_records *r, const char *name, uint32_t *target)
{
    const uint32_t n = vkt_records_columns(r);
    char room[NAME_ROOM];
    *target = n - 1;
    if (!name) return true;
    for (*target = 0; *target < n; ++*target)
        if (strcasecmp(table_name(r, *target), name) == 0) return true;
    char names[1024] = "";
    for (uint32_t i = 0; i < n && strlen(names) + NAME_ROOM + 8 < sizeof names; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s \"%s\"", i ? "," : "",
                 vkt_printable(table_name(r, i), room, sizeof room));
    complain("--target: there is no column \"%s\"; the columns are%s", name, names);
    return false;
}

/* Returns false if --leave-out has a name that the table does not have. */
static bool check_left_out(const vkt_records *r, const schema_params *p)
{
    for (uint32_t i = 0; i < p->n_left_out; i++) {
        uint32_t k = 0;
        while (k < vkt_records_columns(r) && strcasecmp(table_name(r, k), p->left_out[i]) != 0) k++;
        if (k < vkt_records_columns(r)) continue;
        complain("--leave-out: there is no column \"%s\"", p->left_out[i]);
        return false;
    }
    return true;
}

bool schema_guess(const vkt_records *r, const schema_params *p, const table_rows *all, const table_rows *train,
                  table_schema *out)
{
    const uint32_t n = vkt_records_columns(r);
    *out = (table_schema){ .columns = calloc(n, sizeof *out->columns) };
    bool ok = out->columns && schema_find_target(r, p->target, &out->target) && check_left_out(r, p);
    while (ok && out->n < n) {
        const uint32_t k = out->n++; /* from now on schema_free frees it */
        table_column *c = &out->columns[k];
        ok = (c->name = strdup(table_name(r, k))) != NULL;
        if (ok) ok = k == out->target ? guess_target(r, k, p->task, all, c) : guess_input(r, k, p, train, c);
    }
    if (ok && schema_inputs(out) == 0) {
        complain("the table has no column to learn from");
        schema_print(out, stderr);
        ok = false;
    }
    if (!ok) schema_free(out);
    return ok;
}

void schema_free(table_schema *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t k = 0; k < s->columns[i].n_values; k++) free(s->columns[i].values[k]);
        free(s->columns[i].values);
        free(s->columns[i].name);
    }
    free(s->columns);
    *s = (table_schema){ .n = 0 };
}

/* ---- printing ---- */

static void print_values(const table_column *c, const char *what, FILE *to)
{
    char room[NAME_ROOM];
    fprintf(to, "%u %s: ", c->n_values, what);
    for (uint32_t i = 0; i < c->n_values && i < SHOWN_VALUES; i++)
        fprintf(to, "%s%s", i ? ", " : "", vkt_printable(c->values[i], room, sizeof room));
    if (c->n_values > SHOWN_VALUES) fputs(", ..", to);
}

void schema_print(const table_schema *s, FILE *to)
{
    char room[NAME_ROOM];
    for (uint32_t i = 0; i < s->n; i++) {
        const table_column *c = &s->columns[i];
        static const char *const uses[] = { "left out", "number", "text" };
        const char *use = i == s->target ? "target" : uses[c->use];
        fprintf(to, "  %-20s %-9s ", vkt_printable(c->name, room, sizeof room), use);
        if (c->use == COLUMN_LEFT_OUT) fputs(c->why, to);
        if (c->use == COLUMN_NUMBER) fprintf(to, "mean %.4g, deviation %.4g", c->mean, c->deviation);
        if (c->use == COLUMN_VALUES) print_values(c, i == s->target ? "classes" : "values", to);
        if (c->missing && c->use != COLUMN_LEFT_OUT) fprintf(to, "; missing in %u rows", c->missing);
        fputc('\n', to);
    }
}
