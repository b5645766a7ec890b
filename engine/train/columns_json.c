/* train/columns_json.c - converts the columns of a table to a JSON text, and back. */
#include <stdio.h>

#include "train/columns.h"
#include "train/json.h"

enum { VERSION = 1 };
static const char *const uses[] = { "left out", "number", "values" };

/* ---- writing ---- */

static json_t *column_to_json(const vkt_column *c)
{
    if (c->use == VKT_COLUMN_LEFT_OUT)
        return json_pack("{s:s, s:s, s:s}", "name", c->name, "use", uses[c->use], "why", c->why);
    if (c->use == VKT_COLUMN_NUMBER)
        return json_pack("{s:s, s:s, s:f, s:f, s:I}", "name", c->name, "use", uses[c->use], "mean", c->mean,
                         "deviation", c->std, "missing", (json_int_t)c->missing);
    json_t *values = json_array();
    bool ok = true;
    for (uint32_t k = 0; k < c->n_values; k++) ok = json_array_append_new(values, json_string(c->values[k])) == 0 && ok;
    if (ok)
        return json_pack("{s:s, s:s, s:o, s:I}", "name", c->name, "use", uses[c->use], "values", values, "missing",
                         (json_int_t)c->missing);
    json_decref(values);
    return NULL;
}

vkt_result vkt_columns_to_text(const vkt_columns *c, char **text)
{
    if (text) *text = NULL;
    VKT_WANT(NULL, c);
    VKT_WANT(&c->h, text);
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->n; i++) {
        if (json_array_append_new(list, column_to_json(&c->columns[i])) == 0) continue;
        json_decref(list);
        return vkt_fail(&c->h, VKT_E_FORMAT, "column \"%s\": want names and values in UTF-8", c->columns[i].name);
    }
    return vkt_json_give(&c->h,
                         json_pack("{s:s, s:i, s:s, s:o}", "format", "vktrain-table", "version", VERSION, "target",
                                   c->columns[c->target].name, "columns", list),
                         JSON_COMPACT | JSON_REAL_PRECISION(17), text);
}

/* ---- reading: if the JSON is wrong, the static functions return VKT_E_FORMAT without a message ---- */

static vkt_result read_values(const vkt_host *h, const json_t *list, vkt_column *c)
{
    const size_t n = json_array_size(list);
    if (n == 0 || n >= UINT32_MAX) return VKT_E_FORMAT;
    const char **values = vkt_alloc_array(h, n, sizeof *values);
    if (!values) return vkt_fail_nomem(h, "values", n * sizeof *values);
    vkt_result r = VKT_OK;
    for (size_t k = 0; k < n; k++)
        if (!(values[k] = json_string_value(json_array_get(list, k)))) r = VKT_E_FORMAT;
    if (r == VKT_OK) r = vkt_column_set_values(h, c, values, n);
    vkt_free(h, values);
    return r;
}

static vkt_result read_column(const vkt_host *h, const json_t *o, vkt_column *c)
{
    const char *name = json_string_value(json_object_get(o, "name")),
               *use = json_string_value(json_object_get(o, "use"));
    const json_t *mean = json_object_get(o, "mean"), *std = json_object_get(o, "deviation");
    const json_int_t missing = json_integer_value(json_object_get(o, "missing"));
    size_t k = 0;
    if (!name || !use || missing < 0 || missing > UINT32_MAX) return VKT_E_FORMAT;
    if (!(c->name = vkt_strdup(h, name))) return vkt_fail_nomem(h, "a name", strlen(name));
    while (k < VKT_COUNT(uses) && strcmp(use, uses[k]) != 0) k++;
    c->use = (vkt_column_use)k;
    c->missing = (uint32_t)missing;
    c->mean = json_number_value(mean);
    c->std = json_number_value(std);
    switch (c->use) {
    case VKT_COLUMN_LEFT_OUT: snprintf(c->why, sizeof c->why, "as in training"); return VKT_OK;
    case VKT_COLUMN_NUMBER: return json_is_number(mean) && c->std > 0 ? VKT_OK : VKT_E_FORMAT;
    case VKT_COLUMN_VALUES: return read_values(h, json_object_get(o, "values"), c);
    default: return VKT_E_FORMAT;
    }
}

static vkt_result read_columns(const vkt_host *h, const json_t *all, vkt_columns **out)
{
    const char *format = json_string_value(json_object_get(all, "format")),
               *target = json_string_value(json_object_get(all, "target"));
    const json_t *list = json_object_get(all, "columns");
    const size_t n = json_array_size(list);
    if (!format || strcmp(format, "vktrain-table") != 0 || !target || n == 0 || n >= UINT32_MAX ||
        json_integer_value(json_object_get(all, "version")) != VERSION)
        return VKT_E_FORMAT;
    VKT_TRY(vkt_columns_create(h, n, out));
    vkt_columns *c = *out;
    c->target = UINT32_MAX;
    while (c->n < n) {
        vkt_column *one = &c->columns[c->n++];
        VKT_TRY(read_column(h, json_array_get(list, c->n - 1), one));
        if (strcmp(one->name, target) == 0) c->target = c->n - 1;
    }
    return c->target < c->n && c->columns[c->target].use != VKT_COLUMN_LEFT_OUT && vkt_columns_inputs(c) > 0
               ? VKT_OK
               : VKT_E_FORMAT;
}

vkt_result vkt_columns_from_text(const vkt_host *host, const char *name, const char *text, vkt_columns **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, name);
    VKT_WANT(host, text);
    const vkt_host h = vkt_host_resolve(host);
    json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    vkt_result r = read_columns(&h, all, out);
    json_decref(all);
    if (r == VKT_E_FORMAT) vkt_fail(&h, r, "%s: want a table's columns, version %d", name, VERSION);
    if (r == VKT_OK) r = vkt_columns_check_names(*out, name);
    if (r != VKT_OK) vkt_columns_destroy(out);
    return r;
}
