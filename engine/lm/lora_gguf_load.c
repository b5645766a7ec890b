/* lm/lora_gguf_load.c - reads a GGUF file of adapters: its options, and the values for a store. */
#include <math.h>
#include <stdio.h>

#include "lm/lm.h"
#include "lm/lora_gguf.h"
#include "train/lora.h"

enum { MOST_RANK = 1 << 16, NAME_ROOM = 96 };

/* An adapter in a file. */
typedef struct entry {
    vkt_lora_place place;
    const vkt_gguf_tensor *a, *b;
} entry;

/* A file that is read, for the model m. */
typedef struct source {
    const vkt_host *h;
    const char *path;
    const vkt_gguf_model *m;
    vkt_gguf *g;
    entry *list;
    uint32_t n;
    vkt_lora_params lora; /* rank and alpha */
} source;

/* ---- the file ---- */

/* Checks that the metadata value of `key` is the text `want`. */
static vkt_result want_text(const source *f, const char *key, const char *want)
{
    const vkt_gguf_meta *meta = vkt_gguf_find_meta(f->g, key);
    if (!meta || meta->is_array || meta->kind != VKT_GGUF_KIND_TEXT)
        return vkt_fail(f->h, VKT_E_FORMAT, "%s: \"%s\": want the text \"%s\"", f->path, key, want);
    const char *got = ((const vkt_gguf_string *)meta->values)->text;
    if (strcmp(got, want) == 0) return VKT_OK;
    return vkt_fail(f->h, VKT_E_UNSUPPORTED, "%s: \"%s\": want \"%s\", got \"%.40s\"", f->path, key, want, got);
}

/* Reads alpha. Refuses a key that begins with "adapter." and is not in `known`. */
static vkt_result read_options(source *f)
{
    static const char alpha[] = "adapter.lora.alpha";
    static const char *const known[] = { "adapter.type", alpha, "adapter.lora.task_name",
                                         "adapter.lora.prompt_prefix" };
    double x;
    VKT_TRY(want_text(f, "general.type", "adapter"));
    VKT_TRY(want_text(f, "adapter.type", "lora"));
    VKT_TRY(want_text(f, "general.architecture", vkt_lora_architecture(f->m)));
    for (size_t i = 0; i < vkt_gguf_n_meta(f->g); i++) {
        const char *key = vkt_gguf_meta_at(f->g, i)->key;
        bool is_known = strncmp(key, "adapter.", strlen("adapter.")) != 0;
        for (size_t k = 0; k < VKT_COUNT(known); k++) is_known = is_known || strcmp(key, known[k]) == 0;
        if (!is_known)
            return vkt_fail(f->h, VKT_E_UNSUPPORTED, "%s: the option \"%.80s\" is not supported", f->path, key);
    }
    if (!vkt_gguf_find_meta(f->g, alpha)) return vkt_fail(f->h, VKT_E_FORMAT, "%s: \"%s\" is missing", f->path, alpha);
    VKT_TRY(vkt_gguf_get_f64(f->g, alpha, VKT_GGUF_ONE, &x));
    f->lora.alpha = (float)x;
    if (!isfinite(f->lora.alpha) || f->lora.alpha == 0)
        return vkt_fail(f->h, VKT_E_FORMAT, "%s: \"%s\": want a finite number other than 0, got %g", f->path, alpha, x);
    return VKT_OK;
}

/* Checks that A is (rank, in), that B is (out, rank), and that all adapters have the same rank. */
static vkt_result check_shapes(source *f, const entry *e)
{
    const uint64_t rank = e->a->dims[1];
    if (e->a->rank != 2 || e->b->rank != 2 || rank != e->b->dims[0] || e->a->elements == 0 || e->b->elements == 0)
        return vkt_fail(f->h, VKT_E_FORMAT, "%s: want \"%s\" (rank,in) and .lora_b (out,rank)", f->path, e->a->name);
    if (f->lora.rank == 0 && rank <= MOST_RANK) f->lora.rank = (uint32_t)rank;
    if (rank == f->lora.rank) return VKT_OK;
    return vkt_fail(f->h, VKT_E_UNSUPPORTED, "%s: want one rank of all adapters, up to %d: \"%s\" has %llu", f->path,
                    MOST_RANK, e->a->name, (unsigned long long)rank);
}

/* Lists the adapters. Each tensor of the file must be matrix A or B of an adapter of a layer that the model has. */
static vkt_result list_adapters(source *f)
{
    const size_t n = vkt_gguf_n_tensors(f->g);
    if (n == 0) return vkt_fail(f->h, VKT_E_FORMAT, "%s: the file has no adapters", f->path);
    f->list = vkt_alloc_array(f->h, (n + 1) / 2, sizeof *f->list);
    if (!f->list) return vkt_fail_nomem(f->h, "a list of adapters", (n + 1) / 2 * sizeof *f->list);
    for (size_t i = 0; i < n; i++) {
        const vkt_gguf_tensor *t = vkt_gguf_tensor_at(f->g, i);
        vkt_lora_place place;
        char other[VKT_LORA_NAME_ROOM];
        bool is_b;
        if (!vkt_lora_place_of_half(t->name, &place, &is_b) || place.block >= f->m->blocks)
            return vkt_fail(f->h, VKT_E_UNSUPPORTED, "%s: the tensor \"%.80s\" is no adapter of a layer of this model",
                            f->path, t->name);
        snprintf(other, sizeof other, "%s.lora_%c", place.tensor, is_b ? 'a' : 'b');
        const vkt_gguf_tensor *half = vkt_gguf_find_tensor(f->g, other);
        if (!half) return vkt_fail(f->h, VKT_E_FORMAT, "%s: there is \"%s\", but no \"%s\"", f->path, t->name, other);
        if (is_b) continue;
        f->list[f->n] = (entry){ place, t, half };
        VKT_TRY(check_shapes(f, &f->list[f->n++]));
    }
    return VKT_OK;
}

/* Opens a file. Checks its options, and the names and shapes of its adapters. */
static vkt_result source_open(const vkt_host *h, const vkt_gguf_model *m, const char *path, source *f)
{
    *f = (source){ .h = h, .path = path, .m = m };
    if (!vkt_lora_architecture(m))
        return vkt_fail(h, VKT_E_ARG, "lora: want a model that vkt_gguf_read_model or vkt_lm_model has described");
    VKT_TRY(vkt_gguf_open(h, path, &f->g));
    VKT_TRY(read_options(f));
    return list_adapters(f);
}

static void source_close(source *f)
{
    vkt_free(f->h, f->list);
    vkt_gguf_destroy(&f->g);
}

/* Writes the name of a layer, for instance "model.layers.3.self_attn.q_proj", and then `end`. */
static void layer_name(const vkt_lora_place *place, const char *end, char name[NAME_ROOM])
{
    snprintf(name, NAME_ROOM, "model.layers.%u.%s%s", place->block, vkt_lora_layer(place->kind), end);
}

/* ---- the options ---- */

/* Adds names to the targets of c: the names of all layers that have an adapter. If q_proj has an adapter in all
 * transformer blocks, adds only the short name "q_proj", which matches q_proj of any transformer block. The same holds
 * for each other kind of layer. */
static vkt_result add_targets(const source *f, vkt_peft_config *c)
{
    uint32_t count[VKT_LORA_KINDS] = { 0 };
    char name[NAME_ROOM];
    VKT_TRY(vkt_peft_config_reserve(c, f->n));
    for (uint32_t i = 0; i < f->n; i++) count[f->list[i].place.kind]++;
    for (uint32_t k = 0; k < VKT_LORA_KINDS; k++) {
        if (count[k] == f->m->blocks) VKT_TRY(vkt_peft_config_add(c, strchr(vkt_lora_layer(k), '.') + 1));
        for (uint32_t i = 0; count[k] < f->m->blocks && i < f->n; i++) {
            if (f->list[i].place.kind != k) continue;
            layer_name(&f->list[i].place, "", name);
            VKT_TRY(vkt_peft_config_add(c, name));
        }
    }
    return VKT_OK;
}

vkt_result vkt_lora_gguf_config(const vkt_host *host, const vkt_gguf_model *model, const char *path,
                                vkt_peft_config **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, model);
    VKT_WANT(host, path);
    const vkt_host h = vkt_host_resolve(host);
    source f;
    vkt_peft_config *c = NULL;
    vkt_result r = source_open(&h, model, path, &f);
    if (r == VKT_OK) r = vkt_peft_config_create(&h, &c);
    if (r == VKT_OK) {
        c->lora = f.lora;
        c->base = vkt_strdup(&h, "");
        r = c->base ? add_targets(&f, c) : vkt_fail_nomem(&h, "a name", 1);
    }
    source_close(&f);
    if (r != VKT_OK) vkt_peft_config_destroy(&c);
    *out = c;
    return r;
}

/* ---- the values ---- */

/* Refuses a file with an adapter that the store does not have. Without this adapter, the model would differ from the
 * saved one. */
static vkt_result check_all_used(const source *f, const vkt_store *s)
{
    for (uint32_t i = 0; i < f->n; i++) {
        char name[NAME_ROOM];
        uint32_t at;
        layer_name(&f->list[i].place, VKT_LORA_A, name);
        if (!vkt_store_find(s, name, &at))
            return vkt_fail(f->h, VKT_E_UNSUPPORTED, "%s: the tensor \"%s\" is no adapter of this network", f->path,
                            f->list[i].a->name);
    }
    return VKT_OK;
}

/* Reads A or B of an adapter: `rows` rows of `columns` numbers. With in_heads, the rows are put in the order of the
 * library transformers. */
static vkt_result read_half(const source *f, const char *name, uint32_t rows, uint32_t columns, bool in_heads,
                            float *to)
{
    const vkt_gguf_tensor *t = vkt_gguf_find_tensor(f->g, name);
    if (!t) return vkt_fail(f->h, VKT_E_NOT_FOUND, "%s: there is no tensor \"%s\"", f->path, name);
    if (t->dims[0] != columns || t->dims[1] != rows)
        return vkt_fail(f->h, VKT_E_SHAPE, "%s: want tensor \"%s\" of shape (%u,%u), got (%llu,%llu)", f->path, name,
                        rows, columns, (unsigned long long)t->dims[1], (unsigned long long)t->dims[0]);
    for (uint32_t row = 0; row < rows; row++) {
        const uint64_t at = in_heads ? vkt_lm_source_row(f->m, row) : row;
        VKT_TRY(vkt_gguf_read_f32(f->g, name, at * columns, columns, to + (uint64_t)row * columns));
    }
    for (uint64_t i = 0; i < (uint64_t)rows * columns; i++)
        if (!isfinite(to[i]))
            return vkt_fail(f->h, VKT_E_FORMAT, "%s: the tensor \"%s\" has a number that is not finite", f->path, name);
    return VKT_OK;
}

static vkt_result read_adapter(const source *f, const vkt_adapter *a, float *to)
{
    vkt_lora_place place;
    char name[VKT_LORA_NAME_ROOM];
    VKT_TRY(vkt_lora_place_of(f->h, a, f->m, &place));
    snprintf(name, sizeof name, "%s.lora_a", place.tensor);
    VKT_TRY(read_half(f, name, a->rank, a->in, false, to));
    snprintf(name, sizeof name, "%s.lora_b", place.tensor);
    return read_half(f, name, a->out, a->rank, place.in_heads, to + (uint64_t)a->rank * a->in);
}

static vkt_result load(const source *f, vkt_store *s, const vkt_adapter *list, uint32_t n)
{
    uint64_t elements = 0;
    for (uint32_t i = 0; i < n; i++) elements += vkt_adapter_elements(&list[i]);
    float *values = vkt_alloc_array(f->h, elements, sizeof *values), *at = values;
    if (!values) return vkt_fail_nomem(f->h, "adapters", elements * sizeof *values);
    vkt_result r = check_all_used(f, s);
    for (uint32_t i = 0; r == VKT_OK && i < n; at += vkt_adapter_elements(&list[i]), i++)
        r = read_adapter(f, &list[i], at);
    if (r == VKT_OK) r = vkt_adapters_write(s, list, n, values);
    vkt_free(f->h, values);
    return r;
}

vkt_result vkt_lora_load_gguf(const vkt_host *host, vkt_store *s, const vkt_gguf_model *model,
                              const vkt_lora_params *lora, const char *path)
{
    VKT_WANT(host, s);
    VKT_WANT(host, model);
    VKT_WANT(host, lora);
    VKT_WANT(host, path);
    const vkt_host h = vkt_host_resolve(host);
    source f = { .h = &h };
    vkt_adapter *list;
    uint32_t n;
    vkt_lora_params built;
    vkt_result r = vkt_adapters_of(&h, s, &list, &n);
    if (r == VKT_OK) r = vkt_adapters_check(&h, list, n, lora, &built);
    if (r == VKT_OK) r = source_open(&h, model, path, &f);
    if (r == VKT_OK) r = vkt_adapters_match(&h, path, &built, &f.lora);
    if (r == VKT_OK) r = load(&f, s, list, n);
    source_close(&f);
    vkt_free(&h, list);
    return r;
}
