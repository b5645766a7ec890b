/* common/table_rows.c - see table_schema.h: converts rows to numbers, and the schema to a text and back. */
#include "common/table_schema.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/message.h"
#include "common/table_text.h"

enum { NAME_ROOM = 80, VERSION = 1 };
static const char *const uses[] = { "left out", "number", "values" };

bool table_number(const char *field, double *x)
{
    const char *text = field + strspn(field, " \t");
    const size_t n = strspn(text, "0123456789+-.eE"); /* excludes hexadecimal numbers, and names of infinity and NaN */
    char *end = NULL;
    const double value = n ? strtod(text, &end) : 0;
    if (n == 0 || end != text + n || text[n + strspn(text + n, " \t")] || !isfinite(value)) return false;
    *x = value;
    return true;
}

uint32_t schema_inputs(const table_schema *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const table_column *c = &s->columns[i];
        if (i == s->target || c->use == COLUMN_LEFT_OUT) continue;
        n += (c->use == COLUMN_NUMBER ? 1 : c->n_values) + (c->missing > 0);
    }
    return n;
}

bool schema_has_classes(const table_schema *s)
{
    return s->columns[s->target].use == COLUMN_VALUES;
}

/* ---- rows ---- */

bool schema_match(const table_schema *s, const vkt_records *r, uint32_t *map, char why[SCHEMA_WHY])
{
    const uint32_t columns = vkt_records_columns(r);
    char room[NAME_ROOM];
    for (uint32_t i = 0; i < s->n; i++) {
        map[i] = UINT32_MAX;
        for (uint32_t k = 0; k < columns && map[i] == UINT32_MAX; k++)
            if (strcasecmp(table_name(r, k), s->columns[i].name) == 0) map[i] = k;
        if (map[i] != UINT32_MAX || i == s->target || s->columns[i].use == COLUMN_LEFT_OUT) continue;
        snprintf(why, SCHEMA_WHY, "the table has no column \"%s\", which was learned from",
                 vkt_printable(s->columns[i].name, room, sizeof room));
        return false;
    }
    return true;
}

static bool fail_field(const table_column *c, uint32_t row, const char *want, const char *field, char why[SCHEMA_WHY])
{
    char name[NAME_ROOM], got[NAME_ROOM];
    snprintf(why, SCHEMA_WHY, "row %u, column \"%s\": want %s, got \"%s\"", row + 1,
             vkt_printable(c->name, name, sizeof name), want, vkt_printable(field, got, sizeof got));
    return false;
}

/* Returns the index of a value. n_values: the column has no such value. */
static uint32_t value_of(const table_column *c, const char *field)
{
    uint32_t k = 0;
    while (k < c->n_values && strcmp(c->values[k], field) != 0) k++;
    return k;
}

bool schema_encode(const table_schema *s, const vkt_records *r, const uint32_t *map, uint32_t row, float *x,
                   char why[SCHEMA_WHY])
{
    for (uint32_t i = 0; i < s->n; i++) {
        const table_column *c = &s->columns[i];
        if (i == s->target || c->use == COLUMN_LEFT_OUT) continue;
        const char *field = table_field(r, row, map[i]);
        const bool missing = schema_is_missing(field);
        double number = c->mean;
        if (c->use == COLUMN_NUMBER) {
            if (!missing && !table_number(field, &number)) return fail_field(c, row, "a number", field, why);
            *x++ = (float)((number - c->mean) / c->deviation);
        } else {
            const uint32_t value = missing ? c->n_values : value_of(c, field);
            for (uint32_t k = 0; k < c->n_values; k++) *x++ = k == value;
        }
        if (c->missing) *x++ = missing;
    }
    return true;
}

bool schema_label(const table_schema *s, const vkt_records *r, const uint32_t *map, uint32_t row, uint32_t *label,
                  char why[SCHEMA_WHY])
{
    const table_column *c = &s->columns[s->target];
    const char *field = table_field(r, row, map[s->target]);
    *label = value_of(c, field);
    return *label < c->n_values || fail_field(c, row, "one of the classes that were learned", field, why);
}

bool schema_value(const table_schema *s, const vkt_records *r, const uint32_t *map, uint32_t row, float *y,
                  char why[SCHEMA_WHY])
{
    const table_column *c = &s->columns[s->target];
    const char *field = table_field(r, row, map[s->target]);
    double number = 0;
    if (!table_number(field, &number)) return fail_field(c, row, "a number", field, why);
    *y = (float)((number - c->mean) / c->deviation);
    return true;
}

/* ---- as a text ---- */

static json_t *column_to_json(const table_column *c)
{
    json_t *o = json_pack("{s:s, s:s}", "name", c->name, "use", uses[c->use]);
    if (!o) return NULL;
    if (c->use == COLUMN_LEFT_OUT) {
        json_object_set_new(o, "why", json_string(c->why));
        return o;
    }
    if (c->use == COLUMN_NUMBER) {
        json_object_set_new(o, "mean", json_real(c->mean));
        json_object_set_new(o, "deviation", json_real(c->deviation));
    } else {
        json_t *values = json_array();
        bool ok = true;
        for (uint32_t k = 0; k < c->n_values; k++)
            ok = json_array_append_new(values, json_string(c->values[k])) == 0 && ok;
        json_object_set_new(o, "values", values);
        if (!ok) {
            json_decref(o);
            return NULL;
        }
    }
    json_object_set_new(o, "missing", json_integer(c->missing));
    return o;
}

char *schema_to_text(const table_schema *s)
{
    json_t *list = json_array();
    char room[NAME_ROOM], *text = NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        json_t *column = column_to_json(&s->columns[i]);
        if (json_array_append_new(list, column) == 0) continue;
        complain("column \"%s\": want names and values in UTF-8", vkt_printable(s->columns[i].name, room, sizeof room));
        json_decref(list);
        return NULL;
    }
    json_t *all = json_pack("{s:s, s:i, s:s, s:o}", "format", "vktrain-table", "version", VERSION, "target",
                            s->columns[s->target].name, "columns", list);
    if (all) text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(all);
    if (!text) complain("no memory for a table's schema");
    return text;
}

static bool values_from_json(const json_t *list, table_column *c)
{
    const size_t n = json_array_size(list);
    c->values = calloc(n + 1, sizeof *c->values);
    for (size_t k = 0; c->values && k < n; k++) {
        const char *value = json_string_value(json_array_get(list, k));
        if (!value || !(c->values[c->n_values] = strdup(value))) return false;
        c->n_values++;
    }
    return c->values && n > 0 && n < UINT32_MAX;
}

static bool column_from_json(const json_t *o, table_column *c)
{
    const char *name = json_string_value(json_object_get(o, "name")),
               *use = json_string_value(json_object_get(o, "use"));
    const json_t *mean = json_object_get(o, "mean"), *deviation = json_object_get(o, "deviation");
    const json_int_t missing = json_integer_value(json_object_get(o, "missing"));
    size_t k = 0;
    if (!name || !use || !(c->name = strdup(name)) || missing < 0 || missing > UINT32_MAX) return false;
    while (k < sizeof uses / sizeof *uses && strcmp(use, uses[k]) != 0) k++;
    c->use = (column_use)k;
    c->missing = (uint32_t)missing;
    c->mean = json_number_value(mean);
    c->deviation = json_number_value(deviation);
    switch (c->use) {
    case COLUMN_LEFT_OUT: snprintf(c->why, sizeof c->why, "as in training"); return true;
    case COLUMN_NUMBER: return json_is_number(mean) && c->deviation > 0;
    case COLUMN_VALUES: return values_from_json(json_object_get(o, "values"), c);
    default: return false;
    }
}

static bool schema_from_json(const json_t *all, table_schema *s)
{
    const char *format = json_string_value(json_object_get(all, "format")),
               *target = json_string_value(json_object_get(all, "target"));
    const json_t *list = json_object_get(all, "columns");
    const size_t n = json_array_size(list);
    if (!format || strcmp(format, "vktrain-table") != 0 || !target || n == 0 || n >= UINT32_MAX ||
        json_integer_value(json_object_get(all, "version")) != VERSION || !(s->columns = calloc(n, sizeof *s->columns)))
        return false;
    s->target = UINT32_MAX;
    while (s->n < n) {
        table_column *c = &s->columns[s->n++];
        if (!column_from_json(json_array_get(list, s->n - 1), c)) return false;
        if (strcmp(c->name, target) == 0) s->target = s->n - 1;
    }
    return s->target < s->n && s->columns[s->target].use != COLUMN_LEFT_OUT && schema_inputs(s) > 0;
}

bool schema_from_text(const char *text, table_schema *out)
{
    json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    *out = (table_schema){ .n = 0 };
    const bool ok = schema_from_json(all, out);
    json_decref(all);
    if (ok) return true;
    schema_free(out);
    complain("the weights have no table's schema of version 1");
    return false;
}
