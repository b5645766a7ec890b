/* info/json.c - see json.h. */
#include "info/json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "gpu/gpu.h"
#include "info/text.h"

static json_int_t big(uint64_t x)
{
    return x <= INT64_MAX ? (json_int_t)x : INT64_MAX;
}

static json_t *device_json(const vkt_device_info *d)
{
    char version[24];
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:i, s:b, s:s}", "index", (int)d->index, "name", d->name, "driver",
                     d->driver, "kind", info_kind_name(d->kind), "vulkan", info_version_text(d->api_version, version),
                     "memory_bytes", big(d->memory_bytes), "subgroup_size", (int)d->subgroup_size, "usable", d->usable,
                     "reason", d->reason);
}

static json_t *devices_json(const info_facts *f)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < f->n_devices; i++) json_array_append_new(list, device_json(&f->devices[i]));
    return list;
}

static json_t *needs_json(void)
{
    json_t *list = json_array();
    for (uint32_t i = 0; vkt_device_need(i); i++) json_array_append_new(list, json_string(vkt_device_need(i)));
    return list;
}

static json_t *limits_json(const vkt_device_limits *l)
{
    return json_pack("{s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:b, s:b, s:b, s:[i, i, i], s:[i, i, i]}",
                     "cores", (int)l->cores, "subgroup_size", (int)l->subgroup_size, "max_workgroup_lanes",
                     (int)l->max_workgroup_lanes, "max_workgroups", big(l->max_workgroups), "shared_bytes",
                     big(l->shared_bytes), "max_binding_bytes", big(l->max_binding_bytes), "max_texel_elements",
                     big(l->max_texel_elements), "max_allocation_bytes", big(l->max_allocation_bytes), "timestamp_ns",
                     l->timestamp_ns, "transfer_queue", l->transfer_queue, "memory_budget", l->memory_budget,
                     "host_import", l->host_import, "lacks_tuning", l->lacks_tuning, "matrix", (int)l->matrix[0],
                     (int)l->matrix[1], (int)l->matrix[2], "matrix_bf16", (int)l->matrix_bf16[0],
                     (int)l->matrix_bf16[1], (int)l->matrix_bf16[2]);
}

static json_t *traits_json(const vkt_ctx *ctx)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < VKT_TRAIT_COUNT; i++)
        json_object_set_new(all, vkt_trait_name(i),
                            json_pack("{s:f, s:b}", "value", vkt_trait_value(ctx->limits.traits, i), "set",
                                      (int)vkt_trait_is_set(&ctx->traits_set, i)));
    return all;
}

static json_t *file_json(const info_file *file)
{
    static const char *const states[] = {
        [INFO_FILE_NONE] = "none", [INFO_FILE_USED] = "used", [INFO_FILE_IGNORED] = "ignored", [INFO_FILE_OFF] = "off"
    };
    return json_pack("{s:s?, s:s, s:I}", "path", file->path, "state", states[file->state], "bytes", big(file->bytes));
}

static json_t *variants_json(uint64_t set)
{
    json_t *list = json_array();
    for (int v = 0; v < VKT_V_COUNT; v++)
        if (set >> v & 1) json_array_append_new(list, json_string(vkt_variant_name((vkt_variant)v)));
    return list;
}

static json_t *choice_json(const info_choice *c)
{
    return json_pack("{s:s, s:s, s:i, s:s, s:b, s:o}", "op", c->op, "case", c->text, "times", (int)c->times, "variant",
                     vkt_variant_name(c->taken), "tuned", c->tuned, "usable", variants_json(c->usable));
}

static json_t *works_json(const info_facts *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->n_works; i++) {
        const info_work *w = &f->works[i];
        json_t *choices = json_array();
        for (size_t k = 0; k < w->n; k++) json_array_append_new(choices, choice_json(&w->choices[k]));
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", w->name, "what", w->what, "choices", choices));
    }
    return list;
}

static json_t *all_json(const info_facts *f)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", VKT_VERSION_MAJOR, VKT_VERSION_MINOR, VKT_VERSION_PATCH);
    json_t *memory = json_pack("{s:I, s:I}", "cap_bytes", big(f->memory.cap_bytes), "heap_budget_bytes",
                               big(f->memory.heap_budget_bytes));
    json_t *files =
        json_pack("{s:o, s:o}", "pipeline_cache", file_json(&f->pipelines), "tuning", file_json(&f->tuning));
    return json_pack("{s:s, s:s, s:o, s:i, s:o, s:o, s:s, s:o, s:o, s:o, s:i, s:o, s:o}", "schema", "vktrain-info-1",
                     "vktrain", version, "devices", devices_json(f), "device", (int)vkt_ctx_device(f->ctx)->index,
                     "needs", needs_json(), "limits", limits_json(&f->limits), "class",
                     vkt_class_name(f->ctx->device_class), "traits", traits_json(f->ctx), "memory", memory, "files",
                     files, "tuned_nodes", (int)f->n_tuned, "off", variants_json(f->off), "work", works_json(f));
}

vkt_result info_write_json(const info_options *o, const info_facts *f)
{
    const vkt_host h = vkt_ctx_host(f->ctx);
    json_t *root = all_json(f);
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (!text) return vkt_fail_nomem(&h, o->json, 0);
    const vkt_result r = vkt_file_write(&h, o->json, text, strlen(text));
    free(text);
    return r;
}
