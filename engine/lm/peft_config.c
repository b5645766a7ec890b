/* lm/peft_config.c - reads and writes adapter_config.json of a folder of PEFT. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "lm/peft.h"

enum { MOST_BYTES = 1 << 20, MOST_RANK = 1 << 16, MOST_TARGETS = 1 << 16 };

/* Options that say how an adapter was made or is stored, and do not change what it computes. */
static const char *const without_effect[] = { "auto_mapping",      "inference_mode", "revision",      "peft_version",
                                              "eva_config",        "corda_config",   "loftq_config",  "runtime_config",
                                              "qalora_group_size", "megatron_core",  "layers_pattern" };
/* Options that read_all reads. */
static const char *const used[] = {
    "peft_type",      "task_type",  "r",    "lora_alpha",        "lora_dropout",
    "target_modules", "use_rslora", "bias", "init_lora_weights", "base_model_name_or_path"
};
/* The text "all-linear" selects the layers with these names in each transformer block. */
static const char *const all_linear[] = { "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj" };

static bool is_in(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, list[i]) == 0) return true;
    return false;
}

/* A file that is read. */
typedef struct source {
    const vkt_host *h;
    const char *path;
    const json_t *all;
    vkt_peft_config *c;
} source;

static vkt_result malformed(const source *f, const char *key, const char *want)
{
    return vkt_fail(f->h, VKT_E_FORMAT, "%s: \"%s\": want %s", f->path, key, want);
}

static vkt_result refuse(const source *f, const char *key, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const vkt_result r = vkt_fail(f->h, VKT_E_UNSUPPORTED, "%s: the option \"%s\": %.80s is not supported", f->path,
                                  key, text ? text : "?");
    free(text);
    return r;
}

/* ---- reading ---- */

static bool is_off(const json_t *v)
{
    return json_is_null(v) || json_is_false(v) || (json_is_array(v) && json_array_size(v) == 0) ||
           (json_is_object(v) && json_object_size(v) == 0);
}

/* Returns whether a text option is absent, null, or one of two texts. */
static bool is_text_of(const json_t *v, const char *one, const char *other)
{
    const char *text = json_string_value(v);
    return !v || json_is_null(v) || (text && (strcmp(text, one) == 0 || strcmp(text, other) == 0));
}

/* Refuses an option that makes PEFT compute something else than this library does. Also refuses an unknown option,
 * unless it is off. */
static vkt_result check_options(const source *f)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(size_t)f->all, key, v)
    {
        if (!is_in(key, used, VKT_COUNT(used)) && !is_in(key, without_effect, VKT_COUNT(without_effect)) && !is_off(v))
            return refuse(f, key, v);
    }
    v = json_object_get(f->all, "peft_type");
    if (!json_is_string(v)) return malformed(f, "peft_type", "a text");
    if (!is_text_of(v, "LORA", "LORA")) return refuse(f, "peft_type", v);
    v = json_object_get(f->all, "task_type");
    if (!is_text_of(v, "CAUSAL_LM", "CAUSAL_LM")) return refuse(f, "task_type", v);
    v = json_object_get(f->all, "bias");
    if (!is_text_of(v, "none", "none")) return refuse(f, "bias", v);
    v = json_object_get(f->all, "init_lora_weights");
    if (!json_is_boolean(v) && !is_text_of(v, "gaussian", "orthogonal") && !is_text_of(v, "eva", "eva"))
        return refuse(f, "init_lora_weights", v);
    return VKT_OK;
}

static vkt_result read_numbers(const source *f)
{
    vkt_lora_params *lora = &f->c->lora;
    const json_t *r = json_object_get(f->all, "r"), *alpha = json_object_get(f->all, "lora_alpha");
    const json_t *dropout = json_object_get(f->all, "lora_dropout"), *rs = json_object_get(f->all, "use_rslora");
    const double p = json_number_value(dropout);
    double a = json_number_value(alpha);
    if (!json_is_integer(r) || json_integer_value(r) < 1 || json_integer_value(r) > MOST_RANK)
        return malformed(f, "r", "an integer from 1 to 65536");
    if ((dropout && !json_is_number(dropout)) || !(p >= 0 && p < 1))
        return malformed(f, "lora_dropout", "a number from 0 to below 1");
    if (rs && !json_is_boolean(rs) && !json_is_null(rs)) return malformed(f, "use_rslora", "true or false");
    lora->rank = (uint32_t)json_integer_value(r);
    if (json_is_true(rs)) a *= sqrt((double)lora->rank);
    if (!json_is_number(alpha) || !isfinite((float)a) || (float)a == 0)
        return malformed(f, "lora_alpha", "a number other than 0 that is finite as float32");
    lora->alpha = (float)a;
    lora->dropout = (float)p;
    return VKT_OK;
}

static vkt_result add_target(const source *f, const char *name)
{
    if (!*name) return malformed(f, "target_modules", "names that are not empty");
    if (strchr(name, '*'))
        return vkt_fail(f->h, VKT_E_UNSUPPORTED, "%s: the target \"%.80s\": patterns are not supported", f->path, name);
    return vkt_peft_config_add(f->c, name);
}

static vkt_result read_targets(const source *f)
{
    const json_t *v = json_object_get(f->all, "target_modules");
    const char *text = json_string_value(v);
    const bool all = text && strcmp(text, "all-linear") == 0;
    const size_t n = all ? VKT_COUNT(all_linear) : json_array_size(v);
    if (text && !all) return refuse(f, "target_modules", v);
    if (n == 0 || n > MOST_TARGETS) return malformed(f, "target_modules", "a list of names");
    VKT_TRY(vkt_peft_config_reserve(f->c, n));
    for (size_t i = 0; i < n; i++) {
        const char *name = all ? all_linear[i] : json_string_value(json_array_get(v, i));
        if (!name) return malformed(f, "target_modules", "a list of names");
        VKT_TRY(add_target(f, name));
    }
    return VKT_OK;
}

static vkt_result read_all(const source *f)
{
    const json_t *base = json_object_get(f->all, "base_model_name_or_path");
    if (!json_is_object(f->all)) return vkt_fail(f->h, VKT_E_FORMAT, "%s: want a JSON object", f->path);
    VKT_TRY(check_options(f));
    VKT_TRY(read_numbers(f));
    VKT_TRY(read_targets(f));
    if (base && !json_is_string(base) && !json_is_null(base))
        return malformed(f, "base_model_name_or_path", "a text or null");
    f->c->base = vkt_strdup(f->h, json_is_string(base) ? json_string_value(base) : "");
    return f->c->base ? VKT_OK : vkt_fail_nomem(f->h, "a name", 1);
}

vkt_result vkt_peft_config_parse(const vkt_host *h, const char *path, const char *text, size_t n, vkt_peft_config **out)
{
    json_error_t why;
    vkt_peft_config *c;
    *out = NULL;
    VKT_TRY(vkt_peft_config_create(h, &c));
    json_t *all = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    const vkt_result r = all ? read_all(&(source){ &c->host, path, all, c })
                             : vkt_fail(h, VKT_E_FORMAT, "%s: line %d: %s", path, why.line, why.text);
    json_decref(all);
    if (r != VKT_OK) vkt_peft_config_destroy(&c);
    *out = c;
    return r;
}

char *vkt_peft_path(const vkt_host *h, const char *folder, const char *name)
{
    const size_t room = strlen(folder) + strlen(name) + 2;
    char *path = vkt_alloc(h, room);
    if (path) snprintf(path, room, "%s/%s", folder, name);
    return path;
}

vkt_result vkt_peft_config_open(const vkt_host *host, const char *folder, vkt_peft_config **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, folder);
    const vkt_host h = vkt_host_resolve(host);
    void *bytes = NULL;
    size_t n = 0;
    char *path = vkt_peft_path(&h, folder, VKT_PEFT_CONFIG);
    if (!path) return vkt_fail_nomem(&h, "a path", strlen(folder));
    vkt_result r = vkt_file_read(&h, path, MOST_BYTES, &bytes, &n);
    if (r == VKT_OK) r = vkt_peft_config_parse(&h, path, bytes, n, out);
    vkt_free(&h, bytes);
    vkt_free(&h, path);
    return r;
}

/* ---- writing ---- */

static vkt_result check_targets(const vkt_host *h, const vkt_lora_params *lora)
{
    if (lora->n_targets && !lora->targets)
        return vkt_fail(h, VKT_E_ARG, "lora: want %u targets, got NULL", lora->n_targets);
    for (uint32_t i = 0; i < lora->n_targets; i++)
        if (!lora->targets[i] || !*lora->targets[i])
            return vkt_fail(h, VKT_E_ARG, "lora: want targets that are not empty, got none at %u", i);
    return VKT_OK;
}

/* Returns whether the targets can be written as they are: there are some, and none has a '*'. */
static bool are_names(const vkt_lora_params *lora)
{
    for (uint32_t i = 0; i < lora->n_targets; i++)
        if (strchr(lora->targets[i], '*')) return false;
    return lora->n_targets > 0;
}

static json_t *targets_to_json(const vkt_lora_params *lora, const vkt_adapter *list, uint32_t n)
{
    json_t *targets = json_array();
    bool ok = targets;
    if (are_names(lora))
        for (uint32_t i = 0; i < lora->n_targets; i++)
            ok = json_array_append_new(targets, json_string(lora->targets[i])) == 0 && ok;
    else
        for (uint32_t i = 0; i < n; i++)
            ok = json_array_append_new(targets, json_stringn(list[i].name, list[i].layer_bytes)) == 0 && ok;
    if (ok) return targets;
    json_decref(targets);
    return NULL;
}

/* Returns a JSON integer if x is a whole number below 1e9 in magnitude (8, not 8.0), because PEFT writes lora_alpha as
 * an integer. */
static json_t *number(double x)
{
    return x == floor(x) && fabs(x) < 1e9 ? json_integer((json_int_t)x) : json_real(x);
}

vkt_result vkt_peft_config_text(const vkt_host *h, const char *path, const vkt_peft_params *p, const vkt_adapter *list,
                                uint32_t n, char **text)
{
    *text = NULL;
    VKT_TRY(check_targets(h, &p->lora));
    json_t *all = json_pack(
        "{s:{}, s:n, s:s?, s:s, s:b, s:b, s:b, s:o, s:f, s:n, s:s, s:i, s:{}, s:o, s:s, s:b, s:b}", "alpha_pattern",
        "auto_mapping", "base_model_name_or_path", p->base_model, "bias", "none", "fan_in_fan_out", 0, "inference_mode",
        1, "init_lora_weights", 1, "lora_alpha", number((double)p->lora.alpha), "lora_dropout", (double)p->lora.dropout,
        "modules_to_save", "peft_type", "LORA", "r", (int)p->lora.rank, "rank_pattern", "target_modules",
        targets_to_json(&p->lora, list, n), "task_type", "CAUSAL_LM", "use_dora", 0, "use_rslora", 0);
    *text = all ? json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(all);
    return *text ? VKT_OK : vkt_fail(h, VKT_E_ARG, "%s: want names in UTF-8, and memory for them", path);
}
