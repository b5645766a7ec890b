/* io/gguf_get.c - returns entries, values and elements of an open GGUF file. */
#include <stdlib.h>

#include "base/gguf_blocks.h"
#include "io/gguf.h"

static const struct {
    const char *name;
    size_t bytes;
} kinds[] = {
#define ROW(name, number, type) [number] = { #name, sizeof(type) },
    VKT_GGUF_KINDS(ROW)
#undef ROW
};

const char *vkt_gguf_kind_name(vkt_gguf_kind kind)
{
    return (unsigned)kind < VKT_COUNT(kinds) && kinds[kind].name ? kinds[kind].name : "?";
}

size_t vkt_gguf_kind_bytes(vkt_gguf_kind kind)
{
    return (unsigned)kind < VKT_COUNT(kinds) ? kinds[kind].bytes : 0;
}

/* ---- entries ---- */

uint32_t vkt_gguf_version(const vkt_gguf *g)
{
    return g ? g->version : 0;
}

uint32_t vkt_gguf_alignment(const vkt_gguf *g)
{
    return g ? g->alignment : 0;
}

const char *vkt_gguf_path(const vkt_gguf *g)
{
    return g ? g->path : NULL;
}

size_t vkt_gguf_n_meta(const vkt_gguf *g)
{
    return g ? g->n_meta : 0;
}

const vkt_gguf_meta *vkt_gguf_meta_at(const vkt_gguf *g, size_t i)
{
    return g && i < g->n_meta ? &g->meta[i] : NULL;
}

static int compare_key(const void *key, const void *entry)
{
    return strcmp(key, (*(const vkt_gguf_meta *const *)entry)->key);
}

const vkt_gguf_meta *vkt_gguf_find_meta(const vkt_gguf *g, const char *key)
{
    if (!g || !key || g->n_meta == 0) return NULL;
    const vkt_gguf_meta **found = bsearch(key, g->meta_at, g->n_meta, sizeof *g->meta_at, compare_key);
    return found ? *found : NULL;
}

size_t vkt_gguf_n_tensors(const vkt_gguf *g)
{
    return g ? g->n_tensors : 0;
}

const vkt_gguf_tensor *vkt_gguf_tensor_at(const vkt_gguf *g, size_t i)
{
    return g && i < g->n_tensors ? &g->tensors[i] : NULL;
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, (*(const vkt_gguf_tensor *const *)entry)->name);
}

const vkt_gguf_tensor *vkt_gguf_find_tensor(const vkt_gguf *g, const char *name)
{
    if (!g || !name || g->n_tensors == 0) return NULL;
    const vkt_gguf_tensor **found = bsearch(name, g->tensor_at, g->n_tensors, sizeof *g->tensor_at, compare_name);
    return found ? *found : NULL;
}

/* ---- values ---- */

/* A value of any kind. Integers and floats are widened to 64 bits. */
typedef struct value {
    vkt_gguf_kind kind;
    bool is_integer, is_negative;
    uint64_t bits; /* an integer (two's complement if it is negative), or a bool (0 or 1) */
    double real;   /* the number, if the kind is F32 or F64 */
    vkt_gguf_string text;
} value;

static value value_at(const vkt_gguf_meta *m, size_t i)
{
    value v = { .kind = m->kind, .is_integer = true };
    int64_t s = 0;
    switch (m->kind) {
    case VKT_GGUF_KIND_U8: v.bits = ((const uint8_t *)m->values)[i]; break;
    case VKT_GGUF_KIND_U16: v.bits = ((const uint16_t *)m->values)[i]; break;
    case VKT_GGUF_KIND_U32: v.bits = ((const uint32_t *)m->values)[i]; break;
    case VKT_GGUF_KIND_U64: v.bits = ((const uint64_t *)m->values)[i]; break;
    case VKT_GGUF_KIND_I8: s = ((const int8_t *)m->values)[i]; break;
    case VKT_GGUF_KIND_I16: s = ((const int16_t *)m->values)[i]; break;
    case VKT_GGUF_KIND_I32: s = ((const int32_t *)m->values)[i]; break;
    case VKT_GGUF_KIND_I64: s = ((const int64_t *)m->values)[i]; break;
    default: v.is_integer = false;
    }
    v.is_negative = s < 0;
    if (s != 0) v.bits = (uint64_t)s;
    if (m->kind == VKT_GGUF_KIND_BOOL) v.bits = ((const bool *)m->values)[i];
    if (m->kind == VKT_GGUF_KIND_F32) v.real = (double)((const float *)m->values)[i];
    if (m->kind == VKT_GGUF_KIND_F64) v.real = ((const double *)m->values)[i];
    if (m->kind == VKT_GGUF_KIND_TEXT) v.text = ((const vkt_gguf_string *)m->values)[i];
    return v;
}

/* Stores the value of a key in *v. If the value is an array, `at` is an index; else `at` is VKT_GGUF_ONE. The caller
 * will store its own result in *out: VKT_E_ARG if `out` is NULL. */
static vkt_result get(const vkt_gguf *g, const char *key, size_t at, const void *out, value *v)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, key);
    VKT_WANT(&g->host, out);
    const vkt_gguf_meta *m = vkt_gguf_find_meta(g, key);
    if (!m) return vkt_fail(&g->host, VKT_E_NOT_FOUND, "\"%s\" has no metadata \"%.80s\"", g->path, key);
    if (m->is_array != (at != VKT_GGUF_ONE))
        return vkt_fail(&g->host, VKT_E_FORMAT, "\"%s\": metadata \"%.80s\": want %s, got %s", g->path, key,
                        m->is_array ? "one value" : "an array", m->is_array ? "an array" : "one value");
    if (m->is_array && at >= m->count)
        return vkt_fail(&g->host, VKT_E_NOT_FOUND, "\"%s\": metadata \"%.80s\" has %zu elements: want number %zu",
                        g->path, key, m->count, at);
    *v = value_at(m, at == VKT_GGUF_ONE ? 0 : at);
    return VKT_OK;
}

static vkt_result fail_kind(const vkt_gguf *g, const char *key, const char *wanted, const value *v)
{
    if (!v->is_integer)
        return vkt_fail(&g->host, VKT_E_FORMAT, "\"%s\": metadata \"%.80s\": want %s, got a value of kind %s", g->path,
                        key, wanted, vkt_gguf_kind_name(v->kind));
    return vkt_fail(&g->host, VKT_E_FORMAT, "\"%s\": metadata \"%.80s\": want %s, got %s%llu", g->path, key, wanted,
                    v->is_negative ? "-" : "", (unsigned long long)(v->is_negative ? 0 - v->bits : v->bits));
}

vkt_result vkt_gguf_get_u64(const vkt_gguf *g, const char *key, size_t at, uint64_t *out)
{
    value v;
    VKT_TRY(get(g, key, at, out, &v));
    if (!v.is_integer || v.is_negative) return fail_kind(g, key, "an integer >= 0", &v);
    *out = v.bits;
    return VKT_OK;
}

vkt_result vkt_gguf_get_i64(const vkt_gguf *g, const char *key, size_t at, int64_t *out)
{
    value v;
    VKT_TRY(get(g, key, at, out, &v));
    if (!v.is_integer || (!v.is_negative && v.bits > INT64_MAX)) return fail_kind(g, key, "an integer below 2^63", &v);
    *out = (int64_t)v.bits;
    return VKT_OK;
}

vkt_result vkt_gguf_get_f64(const vkt_gguf *g, const char *key, size_t at, double *out)
{
    value v;
    VKT_TRY(get(g, key, at, out, &v));
    if (v.is_integer) {
        const uint64_t magnitude = v.is_negative ? 0 - v.bits : v.bits;
        if (magnitude > (uint64_t)1 << 53) return fail_kind(g, key, "a number up to 2^53", &v);
        *out = v.is_negative ? -(double)magnitude : (double)magnitude;
        return VKT_OK;
    }
    if (v.kind != VKT_GGUF_KIND_F32 && v.kind != VKT_GGUF_KIND_F64) return fail_kind(g, key, "a number", &v);
    *out = v.real;
    return VKT_OK;
}

vkt_result vkt_gguf_get_bool(const vkt_gguf *g, const char *key, size_t at, bool *out)
{
    value v;
    VKT_TRY(get(g, key, at, out, &v));
    if (v.kind != VKT_GGUF_KIND_BOOL) return fail_kind(g, key, "a bool", &v);
    *out = v.bits != 0;
    return VKT_OK;
}

vkt_result vkt_gguf_get_text(const vkt_gguf *g, const char *key, size_t at, vkt_gguf_string *out)
{
    value v;
    VKT_TRY(get(g, key, at, out, &v));
    if (v.kind != VKT_GGUF_KIND_TEXT) return fail_kind(g, key, "a text", &v);
    *out = v.text;
    return VKT_OK;
}

/* ---- elements ---- */

vkt_result vkt_gguf_read_f32(const vkt_gguf *g, const char *name, uint64_t first, uint64_t count, float *out)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, name);
    VKT_WANT(&g->host, out);
    const vkt_gguf_tensor *t = vkt_gguf_find_tensor(g, name);
    if (!t) return vkt_fail(&g->host, VKT_E_NOT_FOUND, "\"%s\" has no tensor \"%.80s\"", g->path, name);
    if (!vkt_gguf_can_read(t->type))
        return vkt_fail(&g->host, VKT_E_UNSUPPORTED, "\"%s\": tensor \"%.80s\" has type %s, which is not read", g->path,
                        name, vkt_gguf_type_name(t->type));
    const uint32_t block = vkt_gguf_block_elements(t->type);
    if (first > t->elements || count > t->elements - first || first % block != 0 || count % block != 0)
        return vkt_fail(&g->host, VKT_E_SHAPE,
                        "\"%s\": tensor \"%.80s\" (%s) has %llu elements in blocks of %u: want whole blocks, got %llu "
                        "elements from %llu on",
                        g->path, name, vkt_gguf_type_name(t->type), (unsigned long long)t->elements, block,
                        (unsigned long long)count, (unsigned long long)first);
    if (count == 0) return VKT_OK;
    const uint8_t *blocks = (const uint8_t *)t->data + first / block * vkt_gguf_block_bytes(t->type);
    vkt_gguf_blocks_to_f32(t->type, blocks, (size_t)(count / block), out);
    return VKT_OK;
}
