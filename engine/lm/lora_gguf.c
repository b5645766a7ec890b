/* lm/lora_gguf.c - writes GGUF files: adapters, and models merged with their adapters. */
#include <math.h>
#include <stdio.h>

#include "base/half.h"
#include "lm/lm.h"
#include "lm/lora_gguf.h"

enum { BLOCK = 32, BLOCK_BYTES = 34 };

/* ---- the adapters of a store ---- */

typedef struct adapters {
    const vkt_host *h;
    vkt_store *s;
    vkt_store_part part;
    const vkt_gguf_model *m;
    vkt_adapter *list;
    vkt_lora_place *places;
    uint32_t n;
    vkt_lora_params lora; /* with its defaults filled in */
} adapters;

static vkt_result adapters_open(const vkt_host *h, vkt_store *s, vkt_store_part part, const vkt_gguf_model *m,
                                const vkt_lora_params *lora, adapters *all)
{
    *all = (adapters){ .h = h, .s = s, .part = part, .m = m };
    VKT_TRY(vkt_adapters_of(h, s, &all->list, &all->n));
    VKT_TRY(vkt_adapters_check(h, all->list, all->n, lora, &all->lora));
    all->places = vkt_alloc_array(h, all->n, sizeof *all->places);
    if (!all->places) return vkt_fail_nomem(h, "names of tensors", all->n * sizeof *all->places);
    for (uint32_t i = 0; i < all->n; i++) VKT_TRY(vkt_lora_place_of(h, &all->list[i], m, &all->places[i]));
    return VKT_OK;
}

static void adapters_close(adapters *all)
{
    vkt_free(all->h, all->list);
    vkt_free(all->h, all->places);
}

/* Reads A, then B, of adapter i. The rows of B get the order of the GGUF file. The caller frees *values (vkt_free). */
static vkt_result read_permuted(const adapters *all, uint32_t i, float **values)
{
    const vkt_adapter *a = &all->list[i];
    const uint64_t n_a = (uint64_t)a->rank * a->in, n_b = (uint64_t)a->rank * a->out;
    float *x = vkt_alloc_array(all->h, n_a + 2 * n_b, sizeof *x);
    *values = NULL;
    if (!x) return vkt_fail_nomem(all->h, "an adapter", (n_a + 2 * n_b) * sizeof *x);
    const vkt_result r = vkt_adapter_read(all->h, all->s, all->part, a, x);
    if (r != VKT_OK) {
        vkt_free(all->h, x);
        return r;
    }
    float *b = x + n_a, *copy = b + n_b;
    memcpy(copy, b, n_b * sizeof *b);
    for (uint32_t row = 0; row < a->out; row++) {
        const uint64_t to = all->places[i].in_heads ? vkt_lm_source_row(all->m, row) : row;
        memcpy(b + to * a->rank, copy + (uint64_t)row * a->rank, a->rank * sizeof *b);
    }
    *values = x;
    return VKT_OK;
}

/* ---- a file of adapters ---- */

typedef struct tensors {
    vkt_gguf_tensor *all;
    char (*names)[VKT_LORA_NAME_ROOM];
    float **values; /* one array for each adapter: A, then B */
    size_t n;
} tensors;

static vkt_gguf_tensor matrix(const char *name, uint32_t rows, uint32_t columns, const float *values)
{
    return (
        vkt_gguf_tensor){ .name = name, .type = VKT_GGUF_F32, .rank = 2, .dims = { columns, rows }, .data = values };
}

static vkt_result write_adapters(const adapters *all, const char *path, tensors *to)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const vkt_adapter *a = &all->list[i];
        VKT_TRY(read_permuted(all, i, &to->values[i]));
        for (uint32_t half = 0; half < 2; half++)
            snprintf(to->names[to->n + half], sizeof *to->names, "%s.lora_%c", all->places[i].tensor, half ? 'b' : 'a');
        to->all[to->n] = matrix(to->names[to->n], a->rank, a->in, to->values[i]);
        to->all[to->n + 1] = matrix(to->names[to->n + 1], a->out, a->rank, to->values[i] + (uint64_t)a->rank * a->in);
        to->n += 2;
    }
    const char *architecture = vkt_lora_architecture(all->m);
    const vkt_gguf_string of = { architecture, strlen(architecture) }, adapter = { "adapter", 7 }, lora = { "lora", 4 };
    const vkt_gguf_meta meta[] = { { "general.architecture", VKT_GGUF_KIND_TEXT, false, 1, &of },
                                   { "general.type", VKT_GGUF_KIND_TEXT, false, 1, &adapter },
                                   { "adapter.type", VKT_GGUF_KIND_TEXT, false, 1, &lora },
                                   { "adapter.lora.alpha", VKT_GGUF_KIND_F32, false, 1, &all->lora.alpha } };
    return vkt_gguf_write(all->h, path, meta, VKT_COUNT(meta), to->all, to->n);
}

vkt_result vkt_lora_save_gguf(const vkt_host *host, vkt_store *s, vkt_store_part part, const vkt_gguf_model *model,
                              const vkt_lora_params *lora, const char *path)
{
    VKT_WANT(host, s);
    VKT_WANT(host, model);
    VKT_WANT(host, lora);
    VKT_WANT(host, path);
    const vkt_host h = vkt_host_resolve(host);
    adapters all;
    if (!vkt_lora_architecture(model))
        return vkt_fail(&h, VKT_E_ARG, "lora: want a model that vkt_gguf_read_model or vkt_lm_model has described");
    vkt_result r = adapters_open(&h, s, part, model, lora, &all);
    const size_t n = r == VKT_OK ? all.n : 0;
    tensors to = { .all = vkt_alloc_array(&h, 2 * n, sizeof *to.all),
                   .names = vkt_alloc_array(&h, 2 * n, sizeof *to.names),
                   .values = vkt_alloc_array(&h, n, sizeof *to.values) };
    if (r == VKT_OK && (!to.all || !to.names || !to.values)) r = vkt_fail_nomem(&h, "tensors", n * sizeof *to.all);
    if (r == VKT_OK) r = write_adapters(&all, path, &to);
    for (size_t i = 0; to.values && i < n; i++) vkt_free(&h, to.values[i]);
    vkt_free(&h, to.all);
    vkt_free(&h, to.names);
    vkt_free(&h, to.values);
    adapters_close(&all);
    return r;
}

/* ---- a merged model ---- */

/* The file that is written. adapter[i] is the index of the adapter of tensor i. UINT32_MAX: tensor i has none. */
typedef struct merge {
    const adapters *all;
    const vkt_gguf *g;
    vkt_gguf_type type;
    double scale;
    uint32_t *adapter;
    vkt_gguf_tensor *tensors;
    float *row;  /* a buffer for one row of any merged matrix */
    void *bytes; /* the bytes of the tensor that was merged last */
} merge;

static uint64_t bytes_of(vkt_gguf_type type, uint64_t elements)
{
    return elements / vkt_gguf_block_elements(type) * vkt_gguf_block_bytes(type);
}

static bool store_q8_0(const float *x, uint64_t n, uint8_t *out)
{
    for (uint64_t i = 0; i < n; i += BLOCK, out += BLOCK_BYTES) {
        float most = 0;
        for (uint32_t k = 0; k < BLOCK; k++) most = fmaxf(most, fabsf(x[i + k]));
        const float d = most / 127;
        const uint16_t half = vkt_half_from_f32(d);
        const float inverse = vkt_f32_from_half(half) > 0 ? 1 / d : 0;
        if (!isfinite(vkt_f32_from_half(half))) return false;
        memcpy(out, &half, sizeof half);
        for (uint32_t k = 0; k < BLOCK; k++) out[2 + k] = (uint8_t)(int8_t)roundf(x[i + k] * inverse);
    }
    return true;
}

/* Stores the n numbers of a row as `type`. Returns false if a number is not finite in this type. */
static bool store_row(vkt_gguf_type type, const float *x, uint64_t n, void *out)
{
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    if (type == VKT_GGUF_Q8_0) return store_q8_0(x, n, out);
    if (type == VKT_GGUF_F32) memcpy(out, x, n * sizeof *x);
    uint16_t *half = out;
    for (uint64_t i = 0; type == VKT_GGUF_F16 && i < n; i++) {
        half[i] = vkt_half_from_f32(x[i]);
        if (!isfinite(vkt_f32_from_half(half[i]))) return false;
    }
    return true;
}

/* Adds row `i` of scale * B A to m->row, which contains row `i` of the model's matrix. `values` is from
 * read_permuted. */
static void add_product(const merge *m, const vkt_adapter *a, const float *values, uint32_t i)
{
    const float *b = values + (uint64_t)a->rank * a->in + (uint64_t)i * a->rank;
    for (uint32_t c = 0; c < a->in; c++) {
        double sum = 0;
        for (uint32_t k = 0; k < a->rank; k++) sum += (double)b[k] * (double)values[(uint64_t)k * a->in + c];
        m->row[c] = (float)((double)m->row[c] + m->scale * sum);
    }
}

/* Merges tensor i and returns its bytes in *data: the callback of vkt_gguf_write_with. */
static vkt_result make_tensor(void *user, size_t i, const void **data)
{
    merge *m = user;
    const vkt_host *h = m->all->h;
    const vkt_adapter *a = &m->all->list[m->adapter[i]];
    const char *name = m->tensors[i].name;
    const size_t row_bytes = (size_t)bytes_of(m->type, a->in);
    float *values;
    vkt_free(h, m->bytes);
    m->bytes = vkt_alloc_array(h, a->out, row_bytes);
    if (!m->bytes) return vkt_fail_nomem(h, "a merged matrix", a->out * row_bytes);
    VKT_TRY(read_permuted(m->all, m->adapter[i], &values));
    vkt_result r = VKT_OK;
    for (uint32_t row = 0; r == VKT_OK && row < a->out; row++) {
        r = vkt_gguf_read_f32(m->g, name, (uint64_t)row * a->in, a->in, m->row);
        if (r != VKT_OK) break;
        add_product(m, a, values, row);
        if (!store_row(m->type, m->row, a->in, (uint8_t *)m->bytes + row * row_bytes))
            r = vkt_fail(h, VKT_E_DIVERGED, "lora: the merged \"%s\" has a number that is not finite as %s", name,
                         vkt_gguf_type_name(m->type));
    }
    vkt_free(h, values);
    *data = m->bytes;
    return r;
}

/* Copies the list of tensors. Marks the tensors that have an adapter, and gives them the type m->type. */
static vkt_result mark(merge *m)
{
    const vkt_gguf *g = m->g;
    const vkt_host *h = m->all->h;
    uint32_t longest = 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        m->tensors[i] = g->tensors[i];
        m->adapter[i] = UINT32_MAX;
    }
    for (uint32_t k = 0; k < m->all->n; k++) {
        const vkt_adapter *a = &m->all->list[k];
        const vkt_gguf_tensor *t = vkt_gguf_find_tensor(g, m->all->places[k].tensor);
        if (!t) return vkt_fail(h, VKT_E_NOT_FOUND, "%s: there is no tensor \"%s\"", g->path, m->all->places[k].tensor);
        if (t->rank != 2 || t->dims[0] != a->in || t->dims[1] != a->out)
            return vkt_fail(h, VKT_E_SHAPE, "%s: \"%s\": want %u rows of %u numbers, as its adapter has", g->path,
                            t->name, a->out, a->in);
        if (a->in % vkt_gguf_block_elements(m->type))
            return vkt_fail(h, VKT_E_UNSUPPORTED, "lora: \"%s\": rows of %u numbers cannot be %s", t->name, a->in,
                            vkt_gguf_type_name(m->type));
        vkt_gguf_tensor *to = &m->tensors[t - g->tensors];
        to->type = m->type;
        to->data = NULL;
        m->adapter[t - g->tensors] = k;
        longest = VKT_MAX(longest, a->in);
    }
    m->row = vkt_alloc_array(h, longest, sizeof *m->row);
    return m->row ? VKT_OK : vkt_fail_nomem(h, "a row", longest * sizeof *m->row);
}

static vkt_result write_merged(merge *m, const char *path)
{
    /* llama.cpp's numbers for "general.file_type": 0 is F32, 1 is mostly F16, 7 is mostly Q8_0. */
    const uint32_t file_type = m->type == VKT_GGUF_F32 ? 0 : m->type == VKT_GGUF_F16 ? 1 : 7;
    const vkt_gguf *g = m->g;
    const vkt_host *h = m->all->h;
    vkt_gguf_meta *meta = vkt_alloc_array(h, g->n_meta, sizeof *meta);
    if (!meta) return vkt_fail_nomem(h, "metadata", g->n_meta * sizeof *meta);
    for (size_t i = 0; i < g->n_meta; i++) {
        meta[i] = g->meta[i];
        if (strcmp(meta[i].key, "general.file_type") == 0)
            meta[i] = (vkt_gguf_meta){ meta[i].key, VKT_GGUF_KIND_U32, false, 1, &file_type };
    }
    const vkt_result r = vkt_gguf_write_with(h, path, meta, g->n_meta, m->tensors, g->n_tensors, make_tensor, m);
    vkt_free(h, meta);
    return r;
}

vkt_result vkt_lora_merge_gguf(const vkt_host *host, const vkt_gguf *g, vkt_store *s, vkt_store_part part,
                               const vkt_lora_params *lora, vkt_gguf_type type, const char *path)
{
    VKT_WANT(host, g);
    VKT_WANT(host, s);
    VKT_WANT(host, lora);
    VKT_WANT(host, path);
    const vkt_host h = vkt_host_resolve(host);
    vkt_gguf_model model;
    adapters all = { .h = &h };
    if (type != VKT_GGUF_F32 && type != VKT_GGUF_F16 && type != VKT_GGUF_Q8_0)
        return vkt_fail(&h, VKT_E_UNSUPPORTED, "lora: a merged matrix can be F32, F16 or Q8_0, not %s",
                        vkt_gguf_type_name(type));
    vkt_result r = vkt_gguf_read_model(g, &model);
    if (r == VKT_OK) r = adapters_open(&h, s, part, &model, lora, &all);
    merge m = { .all = &all, .g = g, .type = type };
    m.adapter = vkt_alloc_array(&h, g->n_tensors, sizeof *m.adapter);
    m.tensors = vkt_alloc_array(&h, g->n_tensors, sizeof *m.tensors);
    if (r == VKT_OK && (!m.adapter || !m.tensors)) r = vkt_fail_nomem(&h, "tensors", g->n_tensors * sizeof *m.tensors);
    if (r == VKT_OK) {
        m.scale = (double)all.lora.alpha / all.lora.rank;
        r = mark(&m);
    }
    if (r == VKT_OK) r = write_merged(&m, path);
    vkt_free(&h, m.row);
    vkt_free(&h, m.bytes);
    vkt_free(&h, m.adapter);
    vkt_free(&h, m.tensors);
    adapters_close(&all);
    return r;
}
