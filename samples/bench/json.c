/* bench/json.c - see json.h. */
#include "bench/json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

#define SCHEMA "vktrain-bench-1"

static json_t *stat_json(const bench_stat *s)
{
    return s->n ? json_pack("{s:f, s:f, s:f, s:f, s:i}", "median", s->median, "q1", s->q1, "q3", s->q3, "min", s->min,
                            "samples", (int)s->n)
                : json_null();
}

static json_t *words_json(const char *text)
{
    json_t *list = json_array();
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        json_array_append_new(list, json_string(word));
    return list;
}

static json_t *result_json(const bench_result *r, const bench_roofline *roof)
{
    static const char *const kinds[] = { [BENCH_OP] = "op", [BENCH_STEP] = "step", [BENCH_MICRO] = "micro" };
    char name[320];
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:f, s:f, s:o, s:o}", "name", bench_name(r, name),
                          "kind", kinds[r->kind], "op", r->op, "phase", r->phase, "shape", r->shape, "variant",
                          r->variant, "preferred", r->preferred, "kernels", words_json(r->kernels), "flops", r->flops,
                          "bytes", r->bytes, "gpu_ns", stat_json(&r->gpu), "wall_ns", stat_json(&r->wall));
    json_t *more = json_pack("{s:f, s:f, s:f, s:s, s:s, s:f, s:I, s:i}", "gflops", bench_flops_per_s(r) / 1e9, "gbps",
                             bench_bytes_per_s(r) / 1e9, "roofline_percent", bench_roof_percent(r, roof), "bound",
                             bench_memory_bound(r, roof) ? "memory" : "arithmetic", "check", bench_check_text(r->check),
                             "error_of_allowed", r->excess <= 1e300 ? r->excess : 1e300, "working_bytes",
                             (json_int_t)r->working_bytes, "copies", (int)r->copies);
    json_object_update(o, more);
    json_decref(more);
    if (r->kind == BENCH_STEP)
        json_object_set_new(o, "step",
                            json_pack("{s:f, s:I, s:I}", "host_ns", r->host_ns, "activation_bytes",
                                      (json_int_t)r->packed_bytes, "activation_bound_bytes",
                                      (json_int_t)r->lower_bound_bytes));
    if (r->change.ratio > 0)
        json_object_set_new(o, "change",
                            json_pack("{s:f, s:s}", "ratio", r->change.ratio, "verdict",
                                      r->change.real < 0   ? "faster"
                                      : r->change.real > 0 ? "slower"
                                                           : "same"));
    return o;
}

static json_t *all_json(const bench_results *all, const bench_options *o, const vkt_device_info *device,
                        const char *date)
{
    static const char *const kinds[] = { [VKT_DEVICE_OTHER] = "other",
                                         [VKT_DEVICE_INTEGRATED] = "integrated",
                                         [VKT_DEVICE_DISCRETE] = "discrete",
                                         [VKT_DEVICE_VIRTUAL] = "virtual",
                                         [VKT_DEVICE_CPU] = "cpu" };
    json_t *command = json_array(), *list = json_array();
    for (int i = 1; i < o->argc; i++) json_array_append_new(command, json_string(o->argv[i]));
    for (size_t i = 0; i < all->n; i++) json_array_append_new(list, result_json(&all->list[i], &all->roof));
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", VKT_VERSION_MAJOR, VKT_VERSION_MINOR, VKT_VERSION_PATCH);
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:{s:s, s:s, s:s, s:i}, s:{s:f, s:f}, s:o}", "schema", SCHEMA,
                     "vktrain", version, "date", date, "arguments", command, "sizes", bench_sizes_name(o->sizes),
                     "device", "name", device->name, "driver", device->driver, "kind", kinds[device->kind],
                     "subgroup_size", (int)device->subgroup_size, "roofline", "gflops", all->roof.flops_per_s / 1e9,
                     "gbps", all->roof.bytes_per_s / 1e9, "results", list);
}

vkt_result bench_write_json(const vkt_host *h, const char *path, const bench_results *all, const bench_options *o,
                            const vkt_device_info *device, const char *date)
{
    json_t *root = all_json(all, o, device, date);
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (!text) return vkt_fail_nomem(h, path, 0);
    const vkt_result r = vkt_file_write(h, path, text, strlen(text));
    free(text);
    return r;
}

vkt_result bench_write_csv(const vkt_host *h, const char *path, const bench_results *all)
{
    vkt_text t = { .h = h };
    vkt_text_add(&t, "name,op,phase,shape,variant,preferred,flops,bytes,gpu_ns,gpu_q1_ns,gpu_q3_ns,wall_ns,gflops,gbps,"
                     "roofline_percent,check\n");
    for (size_t i = 0; i < all->n; i++) {
        const bench_result *r = &all->list[i];
        char name[320];
        vkt_text_add(&t, "\"%s\",%s,%s,\"%s\",%s,%d,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.6g,%.6g,%.4g,%s\n",
                     bench_name(r, name), r->op, r->phase, r->shape, r->variant, r->preferred, r->flops, r->bytes,
                     r->gpu.median, r->gpu.q1, r->gpu.q3, r->wall.median, bench_flops_per_s(r) / 1e9,
                     bench_bytes_per_s(r) / 1e9, bench_roof_percent(r, &all->roof), bench_check_text(r->check));
    }
    const vkt_result r = t.failed ? vkt_fail_nomem(h, path, t.len) : vkt_file_write(h, path, t.s, t.len);
    vkt_text_free(&t);
    return r;
}

/* ---- reading ---- */

static bench_stat stat_of_json(const json_t *result, const char *key)
{
    const json_t *s = json_object_get(result, key);
    return (bench_stat){ .median = json_number_value(json_object_get(s, "median")),
                         .q1 = json_number_value(json_object_get(s, "q1")),
                         .q3 = json_number_value(json_object_get(s, "q3")),
                         .min = json_number_value(json_object_get(s, "min")),
                         .n = (uint32_t)json_integer_value(json_object_get(s, "samples")) };
}

static const json_t *find(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *other = json_string_value(json_object_get(json_array_get(list, i), "name"));
        if (other && strcmp(other, name) == 0) return json_array_get(list, i);
    }
    return NULL;
}

static bool compare_one(const json_t *list, bench_result *r)
{
    char name[320];
    const json_t *old = find(list, bench_name(r, name));
    if (!old) return false;
    const bench_stat *now = bench_time(r);
    const bench_stat before = stat_of_json(old, now == &r->gpu ? "gpu_ns" : "wall_ns");
    if (!before.n || !now->n) return false;
    r->change = bench_compare(&before, now);
    return true;
}

vkt_result bench_compare_with(const vkt_host *h, const char *path, bench_results *all, size_t *matched)
{
    void *text;
    size_t n;
    *matched = 0;
    VKT_TRY(vkt_file_read(h, path, (uint64_t)64 << 20, &text, &n));
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);
    vkt_free(h, text);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *list = json_object_get(root, "results");
    if (!schema || strcmp(schema, SCHEMA) != 0 || !json_is_array(list)) {
        json_decref(root);
        return vkt_fail(h, VKT_E_FORMAT, "\"%s\" is no result of vkt-bench (schema \"%s\")", path, SCHEMA);
    }
    for (size_t i = 0; i < all->n; i++) *matched += compare_one(list, &all->list[i]);
    json_decref(root);
    return VKT_OK;
}
