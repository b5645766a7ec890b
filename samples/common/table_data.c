/* common/table_data.c - see table_data.h. */
#include "common/table_data.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "common/message.h"

#define ATTACHMENT "table"
#define SPLIT "split" /* name of the attached text with the seed that selected the validation rows */
enum { SHOWN_VALUES = 4, NAME_ROOM = 48 };

/* 150 irises of three species: R. A. Fisher, "The use of multiple measurements in taxonomic problems" (1936), table I.
 */
static const char irises[] =
#include "iris.csv.h"
    ;

/* ---- reading ---- */

static vkt_result read_with(const vkt_host *h, const char *path, const char *text, char separator, vkt_records **out)
{
    return text ? vkt_records_from_text(h, path, text, separator, out) : vkt_records_read(h, path, separator, out);
}

vkt_result table_read(const vkt_host *host, const char *path, const char *text, vkt_records **out)
{
    static const char separators[] = { ',', ';', '\t', '|' };
    vkt_host quiet = *host;
    quiet.log_level = VKT_LOG_NONE;
    char best = ',';
    uint32_t most = 1;
    for (size_t i = 0; i < sizeof separators; i++) {
        const vkt_result r = read_with(&quiet, path, text, separators[i], out);
        const uint32_t columns = r == VKT_OK ? vkt_records_columns(*out) : 0;
        vkt_records_destroy(out);
        if (columns > most) {
            most = columns;
            best = separators[i];
        }
        if (r != VKT_OK && r != VKT_E_FORMAT) break;
    }
    return read_with(host, path, text, best, out);
}

static vkt_result read_table(const vkt_host *host, const char *path, vkt_records **out)
{
    const vkt_result r = path ? table_read(host, path, NULL, out) : table_read(host, "irises", irises, out);
    if (r != VKT_OK || vkt_records_columns(*out) > 1) return r;
    vkt_records_destroy(out);
    complain("%s: want two columns or more, parted by , ; | or tabs, got one", path);
    return VKT_E_FORMAT;
}

/* ---- the columns ---- */

const vkt_column *table_target(const vkt_columns *c)
{
    return vkt_columns_at(c, vkt_columns_target(c));
}

vkt_result table_attach(vkt_trainer *t, const table_data *d)
{
    char *text, seed[24];
    vkt_result r = vkt_columns_to_text(d->columns, &text);
    if (r == VKT_OK) r = vkt_trainer_attach(t, ATTACHMENT, text);
    vkt_text_release(&text);
    snprintf(seed, sizeof seed, "%" PRIu64, d->seed);
    return r == VKT_OK ? vkt_trainer_attach(t, SPLIT, seed) : r;
}

/* Returns the seed that table_attach attached to the checkpoint `path`. If there is none, as in files of versions that
 * did not attach it, returns `otherwise`. */
static uint64_t seed_of(const vkt_host *host, const char *path, uint64_t otherwise)
{
    vkt_host quiet = *host;
    quiet.log_level = VKT_LOG_NONE;
    char *text, *end;
    if (vkt_read_attachment(&quiet, path, SPLIT, &text) != VKT_OK) return otherwise;
    const unsigned long long seed = strtoull(text, &end, 10);
    const bool whole = end > text && *end == 0;
    vkt_text_release(&text);
    return whole ? seed : otherwise;
}

vkt_result table_columns_of(const vkt_host *host, const char *path, const char *target, vkt_columns **out)
{
    char *text, room[80];
    *out = NULL;
    vkt_result r = vkt_read_attachment(host, path, ATTACHMENT, &text);
    if (r == VKT_OK) r = vkt_columns_from_text(host, path, text, out);
    vkt_text_release(&text);
    if (r != VKT_OK || !target || strcasecmp(table_target(*out)->name, target) == 0) return r;
    complain("--target %s: %s predicts \"%s\"", target, path,
             vkt_printable(table_target(*out)->name, room, sizeof room));
    vkt_columns_destroy(out);
    return VKT_E_ARG;
}

static vkt_result guess(const vkt_host *host, const vkt_records *r, const vkt_columns_params *p, vkt_columns **out)
{
    const vkt_host left_out = message_host("leave-out");
    uint32_t column;
    vkt_result result = VKT_OK;
    for (uint32_t i = 0; i < p->n_left_out && result == VKT_OK; i++)
        result = vkt_records_column(&left_out, r, p->left_out[i], &column);
    if (result == VKT_OK) result = vkt_columns_guess(host, r, p, out);
    if (result == VKT_E_ARG) complain("--task regression wants numbers");
    return result;
}

static void print_values(const vkt_column *c, const char *what)
{
    char room[NAME_ROOM];
    printf("%u %s: ", c->n_values, what);
    for (uint32_t i = 0; i < c->n_values && i < SHOWN_VALUES; i++)
        printf("%s%s", i ? ", " : "", vkt_printable(c->values[i], room, sizeof room));
    if (c->n_values > SHOWN_VALUES) fputs(", ..", stdout);
}

void table_print(const vkt_columns *columns, uint32_t most_values)
{
    static const char *const uses[] = { "left out", "number", "text" };
    char room[NAME_ROOM];
    for (uint32_t i = 0; i < vkt_columns_count(columns); i++) {
        const vkt_column *c = vkt_columns_at(columns, i);
        const bool target = i == vkt_columns_target(columns);
        printf("  %-20s %-9s ", vkt_printable(c->name, room, sizeof room), target ? "target" : uses[c->use]);
        if (c->use == VKT_COLUMN_LEFT_OUT) fputs(c->why, stdout);
        if (c->distinct) printf(" (--most-values %u)", most_values);
        if (c->use == VKT_COLUMN_NUMBER) printf("mean %.4g, deviation %.4g", c->mean, c->std);
        if (c->use == VKT_COLUMN_VALUES) print_values(c, target ? "classes" : "values");
        if (c->missing && c->use != VKT_COLUMN_LEFT_OUT) printf("; missing in %u rows", c->missing);
        putchar('\n');
    }
}

/* ---- the data sets ---- */

/* Makes the two data sets of the n rows in `order`: the first rows are for validation, the others for training. */
static vkt_result make_parts(const vkt_host *host, const table_data_params *p, const vkt_records *r, uint32_t *order,
                             uint32_t n, table_data *d)
{
    if (n < 2) {
        complain("the table has %u rows with a target: want 2 or more", n);
        return VKT_E_FORMAT;
    }
    const uint32_t put_aside = (uint32_t)ceil(p->check_share * n), n_check = put_aside < n ? put_aside : n - 1;
    vkt_columns_params with = p->guess;
    with.rows = order + n_check;
    with.n_rows = n - n_check;
    vkt_result result = p->like ? VKT_OK : guess(host, r, &with, &d->columns);
    if (result == VKT_OK)
        result = vkt_dataset_from_columns(host, d->columns, r, with.rows, with.n_rows, true, &d->train);
    if (result == VKT_OK) result = vkt_dataset_from_columns(host, d->columns, r, order, n_check, true, &d->check);
    return result;
}

static vkt_result open_records(const vkt_host *host, const table_data_params *p, const vkt_records *r, table_data *d)
{
    const vkt_host option = message_host("target");
    const char *name = p->guess.target;
    uint32_t target = vkt_records_columns(r) - 1, n = 0;
    vkt_result result = p->like ? table_columns_of(host, p->like, name, &d->columns) : VKT_OK;
    if (result == VKT_OK && p->like) name = table_target(d->columns)->name;
    if (result == VKT_OK && name) result = vkt_records_column(&option, r, name, &target);
    if (result != VKT_OK) return result;
    d->rows = vkt_records_rows(r);
    uint32_t *order = malloc(((size_t)d->rows + 1) * sizeof *order);
    if (!order) {
        complain("no memory for a table");
        return VKT_E_NOMEM;
    }
    vkt_shuffle(order, d->rows, d->seed, 0);
    for (uint32_t i = 0; i < d->rows; i++)
        if (!vkt_records_missing(r, order[i], target)) order[n++] = order[i];
    d->without_target = d->rows - n;
    result = make_parts(host, p, r, order, n, d);
    free(order);
    return result;
}

vkt_result table_data_open(const vkt_host *host, const table_data_params *p, table_data *out)
{
    *out = (table_data){ .source = p->path ? p->path : "Fisher's irises", .seed = p->seed };
    if (p->resumed) out->seed = seed_of(host, p->resumed, p->seed);
    vkt_records *r;
    vkt_result result = read_table(host, p->path, &r);
    if (result != VKT_OK) return result;
    result = open_records(host, p, r, out);
    vkt_records_destroy(&r);
    if (result != VKT_OK) table_data_close(out);
    return result;
}

void table_data_close(table_data *d)
{
    vkt_columns_destroy(&d->columns);
    vkt_dataset_destroy(&d->train);
    vkt_dataset_destroy(&d->check);
}
