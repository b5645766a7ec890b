/* common/table_data.c - see table_data.h. */
#include "common/table_data.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "common/message.h"
#include "common/table_text.h"
#include "vktrain/train.h"

/* 150 irises of three species: R. A. Fisher, "The use of multiple measurements in taxonomic problems" (1936), table I.
 */
static const char irises[] =
#include "iris.csv.h"
    ;

/* ---- reading ---- */

/* Tries each separator and uses the first one that gives two columns or more. */
static vkt_result read_records(const vkt_host *host, const char *path, vkt_records **out)
{
    static const char separators[] = { ',', ';', '\t', '|' };
    if (!path) return vkt_records_from_text(host, "irises", irises, 0, out);
    vkt_host quiet = *host;
    quiet.log_level = VKT_LOG_NONE;
    for (size_t i = 0; i < sizeof separators; i++) {
        const vkt_result r = vkt_records_read(&quiet, path, separators[i], out);
        if (r == VKT_OK && vkt_records_columns(*out) > 1) return VKT_OK;
        vkt_records_destroy(out);
        if (r != VKT_OK && r != VKT_E_FORMAT) break;
    }
    const vkt_result r = vkt_records_read(host, path, 0, out); /* logs the error */
    if (r != VKT_OK) return r;
    vkt_records_destroy(out);
    complain("%s: want two columns or more, parted by , ; | or tabs, got one", path);
    return VKT_E_FORMAT;
}

/* ---- choice of rows ---- */

/* Chooses the rows that have a target, in a random order. The caller frees all->index. */
static vkt_result choose_rows(const vkt_records *r, uint32_t target, uint64_t seed, table_rows *all)
{
    const uint32_t n = vkt_records_rows(r);
    uint32_t *order = malloc(((size_t)n + 1) * sizeof *order);
    *all = (table_rows){ .index = order };
    if (!order) return VKT_E_NOMEM;
    vkt_shuffle(order, n, seed, 0);
    for (uint32_t i = 0; i < n; i++)
        if (!schema_is_missing(table_field(r, order[i], target))) order[all->n++] = order[i];
    if (all->n >= 2) return VKT_OK;
    complain("the table has %u rows with a target: want 2 or more", all->n);
    return VKT_E_FORMAT;
}

/* ---- numbers ---- */

typedef struct numbers {
    float *x, *y;
    uint32_t *labels;
} numbers;

static bool fill(const table_schema *s, const vkt_records *r, const uint32_t *map, const table_rows *rows, numbers *n)
{
    const uint32_t inputs = schema_inputs(s);
    bool ok = true;
    char why[SCHEMA_WHY];
    for (uint32_t i = 0; ok && i < rows->n; i++) {
        ok = schema_encode(s, r, map, rows->index[i], n->x + (size_t)i * inputs, why);
        if (!ok) break;
        ok = schema_has_classes(s) ? schema_label(s, r, map, rows->index[i], &n->labels[i], why)
                                   : schema_value(s, r, map, rows->index[i], &n->y[i], why);
    }
    if (!ok) complain("%s", why);
    return ok;
}

static vkt_result make_part(const vkt_host *host, const table_schema *s, const vkt_records *r, const uint32_t *map,
                            const table_rows *rows, vkt_dataset **out)
{
    const table_column *target = &s->columns[s->target];
    const bool classes = schema_has_classes(s);
    vkt_dataset_params p = { .rows = rows->n, .width = schema_inputs(s), .type = VKT_ROW_F32 };
    numbers n = { .x = malloc((size_t)rows->n * p.width * sizeof *n.x),
                  .y = malloc(rows->n * sizeof *n.y),
                  .labels = malloc(rows->n * sizeof *n.labels) };
    vkt_result result = n.x && n.y && n.labels ? VKT_OK : VKT_E_NOMEM;
    if (result == VKT_OK && !fill(s, r, map, rows, &n)) result = VKT_E_FORMAT;
    if (classes) {
        p.labels = n.labels;
        p.classes = target->n_values;
        p.class_names = (const char *const *)target->values;
    } else {
        p.targets = n.y;
    }
    if (result == VKT_OK) result = vkt_dataset_from_arrays(host, &p, n.x, out);
    free(n.x);
    free(n.y);
    free(n.labels);
    return result;
}

static vkt_result make_parts(const vkt_host *host, const vkt_records *r, const table_rows *train,
                             const table_rows *check, table_data *d)
{
    uint32_t *map = malloc(d->schema.n * sizeof *map);
    char why[SCHEMA_WHY];
    vkt_result result = !map ? VKT_E_NOMEM : schema_match(&d->schema, r, map, why) ? VKT_OK : VKT_E_FORMAT;
    if (result == VKT_E_FORMAT) complain("%s", why);
    if (result == VKT_OK) result = make_part(host, &d->schema, r, map, train, &d->train);
    if (result == VKT_OK) result = make_part(host, &d->schema, r, map, check, &d->check);
    free(map);
    return result;
}

/* ---- the data sets ---- */

vkt_result table_schema_load(const vkt_host *host, const char *path, const char *target, table_schema *s)
{
    char *text, room[80];
    *s = (table_schema){ .n = 0 };
    const vkt_result r = vkt_read_attachment(host, path, TABLE_SCHEMA, &text);
    if (r != VKT_OK) return r;
    const bool ok = schema_from_text(text, s);
    vkt_text_release(&text);
    if (!ok) return VKT_E_FORMAT;
    if (!target || strcasecmp(s->columns[s->target].name, target) == 0) return VKT_OK;
    complain("--target %s: %s predicts \"%s\"", target, path,
             vkt_printable(s->columns[s->target].name, room, sizeof room));
    return VKT_E_ARG;
}

static vkt_result open_records(const vkt_host *host, const table_data_params *p, const vkt_records *r, table_data *d)
{
    const char *name = p->guess.target;
    uint32_t target;
    table_rows all = { .n = 0 };
    vkt_result result = p->like ? table_schema_load(host, p->like, name, &d->schema) : VKT_OK;
    if (result != VKT_OK) return result;
    if (p->like) name = d->schema.columns[d->schema.target].name;
    if (!schema_find_target(r, name, &target)) return VKT_E_FORMAT;
    result = choose_rows(r, target, p->seed, &all);
    d->rows = vkt_records_rows(r);
    d->without_target = d->rows - all.n;
    const uint32_t put_aside = (uint32_t)ceil(p->check_share * all.n),
                   n_check = put_aside < all.n ? put_aside : all.n - 1;
    const table_rows check = { all.index, n_check },
                     train = { all.index ? all.index + n_check : NULL, all.n - n_check };
    if (result == VKT_OK && !p->like && !schema_guess(r, &p->guess, &all, &train, &d->schema)) result = VKT_E_FORMAT;
    if (result == VKT_OK) result = make_parts(host, r, &train, &check, d);
    free(all.index);
    return result;
}

vkt_result table_data_open(const vkt_host *host, const table_data_params *p, table_data *out)
{
    *out = (table_data){ .source = p->path ? p->path : "Fisher's irises" };
    vkt_records *r;
    vkt_result result = read_records(host, p->path, &r);
    if (result != VKT_OK) return result;
    result = open_records(host, p, r, out);
    vkt_records_destroy(&r);
    if (result == VKT_E_NOMEM) complain("no memory for a table");
    if (result != VKT_OK) table_data_close(out);
    return result;
}

void table_data_close(table_data *d)
{
    schema_free(&d->schema);
    vkt_dataset_destroy(&d->train);
    vkt_dataset_destroy(&d->check);
}
