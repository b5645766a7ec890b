/* io/safetensors.c - dtypes and the checking reader. Names and texts of entries stay in the parsed JSON, which lives as
 * long as the reader. */
#include "io/safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files are little-endian and their bytes are used as they are");

struct vkt_safetensors {
    vkt_host host;
    vkt_file file;
    json_t *root;
    const json_t *meta; /* inside root; NULL: none */
    vkt_st_entry *entries;
    size_t n;
};

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[] = { { "?", 0 }, /* VKT_ST_UNKNOWN */
#define ROW(name, bytes) { #name, bytes },
               VKT_ST_DTYPES(ROW)
#undef ROW
};

const char *vkt_st_dtype_name(vkt_st_dtype dtype)
{
    return dtypes[(unsigned)dtype < VKT_COUNT(dtypes) ? dtype : VKT_ST_UNKNOWN].name;
}

uint32_t vkt_st_dtype_bytes(vkt_st_dtype dtype)
{
    return dtypes[(unsigned)dtype < VKT_COUNT(dtypes) ? dtype : VKT_ST_UNKNOWN].bytes;
}

static vkt_st_dtype dtype_named(const char *name)
{
    for (size_t i = 1; i < VKT_COUNT(dtypes); i++) {
        if (strcmp(dtypes[i].name, name) == 0) return (vkt_st_dtype)i;
    }
    return VKT_ST_UNKNOWN;
}

/* ---- the header ---- */

static vkt_result malformed(const vkt_safetensors *st, const char *fmt, ...) VKT_PRINTF(2, 3);
static vkt_result malformed(const vkt_safetensors *st, const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return vkt_fail(&st->host, VKT_E_FORMAT, "\"%s\" is not a sound safetensors file: %s", st->file.path, why);
}

/* Reads and parses the JSON; *data_start: where the data begin in the file. */
static vkt_result load_header(vkt_safetensors *st, uint64_t *data_start)
{
    const vkt_host *h = &st->host;
    const uint64_t size = st->file.size;
    uint64_t n;
    if (size < sizeof n) return malformed(st, "%llu bytes are no header", (unsigned long long)size);
    VKT_TRY(vkt_file_read_at(&st->file, 0, &n, sizeof n));
    if (n > VKT_ST_MAX_HEADER_BYTES || n > size - sizeof n) {
        return malformed(st, "a header of %llu bytes in a file of %llu (limit %u): truncated, or of another kind",
                         (unsigned long long)n, (unsigned long long)size, VKT_ST_MAX_HEADER_BYTES);
    }
    char *text = vkt_alloc(h, (size_t)n);
    if (!text) return vkt_fail_nomem(h, "a safetensors header", (size_t)n);
    vkt_result r = vkt_file_read_at(&st->file, sizeof n, text, (size_t)n);
    if (r == VKT_OK && (n == 0 || text[0] != '{')) r = malformed(st, "the header does not begin with '{'");
    if (r == VKT_OK) {
        json_error_t e;
        st->root = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &e);
        if (!st->root && json_error_code(&e) == json_error_out_of_memory)
            r = vkt_fail_nomem(h, "JSON", (size_t)n);
        else if (!st->root)
            r = malformed(st, "header byte %d: %s", e.position, e.text);
    }
    vkt_free(h, text);
    *data_start = sizeof n + n;
    return r;
}

static vkt_result check_meta(const vkt_safetensors *st)
{
    const char *key;
    json_t *value;
    if (!json_is_object(st->meta)) return malformed(st, "__metadata__ is not an object");
    json_object_foreach((json_t *)st->meta, key, value)
    {
        if (!json_is_string(value)) return malformed(st, "metadata \"%.80s\" is not text", key);
    }
    return VKT_OK;
}

/* A JSON integer that is not negative. */
static bool get_u64(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static vkt_result parse_shape(const vkt_safetensors *st, const json_t *shape, vkt_st_entry *e)
{
    if (!json_is_array(shape)) return malformed(st, "tensor \"%.80s\" has no list \"shape\"", e->name);
    if (json_array_size(shape) > VKT_ST_MAX_RANK) {
        return vkt_fail(&st->host, VKT_E_UNSUPPORTED, "\"%s\": tensor \"%.80s\" has %zu dimensions: want at most %d",
                        st->file.path, e->name, json_array_size(shape), VKT_ST_MAX_RANK);
    }
    e->rank = (uint32_t)json_array_size(shape);
    e->elements = 1;
    for (uint32_t i = 0; i < e->rank; i++) {
        if (!get_u64(json_array_get(shape, i), &e->dims[i])) {
            return malformed(st, "dimension %u of tensor \"%.80s\" is not an integer >= 0", i, e->name);
        }
        if (!vkt_mul_u64(e->elements, e->dims[i], &e->elements)) {
            return malformed(st, "tensor \"%.80s\" has more than 2^64 elements", e->name);
        }
    }
    return VKT_OK;
}

static vkt_result parse_entry(const vkt_safetensors *st, const json_t *info, uint64_t data_start, vkt_st_entry *e)
{
    if (!json_is_object(info)) return malformed(st, "tensor \"%.80s\" is not described by an object", e->name);
    e->dtype_name = json_string_value(json_object_get(info, "dtype"));
    if (!e->dtype_name) return malformed(st, "tensor \"%.80s\" has no text \"dtype\"", e->name);
    e->dtype = dtype_named(e->dtype_name);
    VKT_TRY(parse_shape(st, json_object_get(info, "shape"), e));

    const json_t *range = json_object_get(info, "data_offsets");
    uint64_t begin, end, want;
    if (json_array_size(range) != 2 || !get_u64(json_array_get(range, 0), &begin) ||
        !get_u64(json_array_get(range, 1), &end) || begin > end) {
        return malformed(st, "tensor \"%.80s\" has no rising pair \"data_offsets\"", e->name);
    }
    if (end > st->file.size - data_start) {
        return malformed(st, "tensor \"%.80s\" ends at data byte %llu, but there are only %llu: truncated", e->name,
                         (unsigned long long)end, (unsigned long long)(st->file.size - data_start));
    }
    e->offset = data_start + begin;
    e->bytes = end - begin;
    if (e->dtype != VKT_ST_UNKNOWN &&
        (!vkt_mul_u64(e->elements, vkt_st_dtype_bytes(e->dtype), &want) || want != e->bytes)) {
        return malformed(st, "tensor \"%.80s\": %llu elements of %s do not fill its %llu bytes", e->name,
                         (unsigned long long)e->elements, e->dtype_name, (unsigned long long)e->bytes);
    }
    return VKT_OK;
}

static int by_offset(const void *pa, const void *pb)
{
    const vkt_st_entry *a = pa, *b = pb;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1; /* empty ones come before the one that starts here */
    return strcmp(a->name, b->name);
}

static vkt_result check_coverage(const vkt_safetensors *st, uint64_t data_start)
{
    uint64_t end = data_start;
    for (size_t i = 0; i < st->n; i++) {
        const vkt_st_entry *e = &st->entries[i];
        if (e->offset < end) {
            return malformed(st, "tensors \"%.80s\" and \"%.80s\" overlap", st->entries[i - 1].name, e->name);
        }
        if (e->offset > end) return malformed(st, "a hole in the data before tensor \"%.80s\"", e->name);
        end += e->bytes;
    }
    if (end == st->file.size) return VKT_OK;
    return malformed(st, "%llu bytes behind the last tensor", (unsigned long long)(st->file.size - end));
}

static vkt_result load(vkt_safetensors *st)
{
    uint64_t data_start;
    VKT_TRY(load_header(st, &data_start));
    st->meta = json_object_get(st->root, "__metadata__");
    if (st->meta) VKT_TRY(check_meta(st));
    const size_t capacity = json_object_size(st->root);
    st->entries = vkt_alloc_array(&st->host, capacity, sizeof *st->entries);
    if (!st->entries) return vkt_fail_nomem(&st->host, "a list of tensors", capacity * sizeof *st->entries);
    const char *key;
    json_t *info;
    json_object_foreach(st->root, key, info)
    {
        if (info == st->meta) continue;
        vkt_st_entry *e = &st->entries[st->n++];
        e->name = key;
        VKT_TRY(parse_entry(st, info, data_start, e));
    }
    if (st->n) qsort(st->entries, st->n, sizeof *st->entries, by_offset);
    return check_coverage(st, data_start);
}

vkt_result vkt_safetensors_open(const vkt_host *h, const char *path, vkt_safetensors **out)
{
    *out = NULL;
    vkt_safetensors *st = vkt_alloc(h, sizeof *st);
    if (!st) return vkt_fail_nomem(h, "a safetensors reader", sizeof *st);
    st->host = *h;
    vkt_result r = vkt_file_open(&st->host, path, &st->file);
    if (r == VKT_OK) r = load(st);
    if (r != VKT_OK) vkt_safetensors_close(&st);
    *out = st;
    return r;
}

void vkt_safetensors_close(vkt_safetensors **st)
{
    if (!*st) return;
    const vkt_host h = (*st)->host;
    json_decref((*st)->root);
    vkt_file_close(&(*st)->file);
    vkt_free(&h, (*st)->entries);
    vkt_free(&h, *st);
    *st = NULL;
}

/* ---- what is in it ---- */

size_t vkt_safetensors_count(const vkt_safetensors *st)
{
    return st->n;
}

const vkt_st_entry *vkt_safetensors_entry(const vkt_safetensors *st, size_t i)
{
    return &st->entries[i];
}

const vkt_st_entry *vkt_safetensors_find(const vkt_safetensors *st, const char *name)
{
    for (size_t i = 0; i < st->n; i++) {
        if (strcmp(st->entries[i].name, name) == 0) return &st->entries[i];
    }
    return NULL;
}

const char *vkt_safetensors_meta(const vkt_safetensors *st, const char *key)
{
    return json_string_value(json_object_get(st->meta, key));
}

const char *vkt_safetensors_next_meta(const vkt_safetensors *st, const char *key)
{
    json_t *meta = (json_t *)st->meta;
    void *at = key ? json_object_iter_next(meta, json_object_iter_at(meta, key)) : json_object_iter(meta);
    return at ? json_object_iter_key(at) : NULL;
}

const vkt_file *vkt_safetensors_file(const vkt_safetensors *st)
{
    return &st->file;
}

/* ---- data ---- */

vkt_result vkt_safetensors_read_raw(const vkt_safetensors *st, const vkt_st_entry *entry, void *dst, uint64_t bytes)
{
    if (bytes != entry->bytes) {
        return vkt_fail(&st->host, VKT_E_SHAPE, "\"%s\": tensor \"%.80s\" has %llu bytes, not %llu", st->file.path,
                        entry->name, (unsigned long long)entry->bytes, (unsigned long long)bytes);
    }
    return vkt_file_read_at(&st->file, entry->offset, dst, (size_t)bytes);
}

static void widen(vkt_st_dtype dtype, const unsigned char *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double d;
        uint16_t u;
        if (dtype == VKT_ST_F64) {
            memcpy(&d, src + i * sizeof d, sizeof d);
            dst[i] = (float)d;
        } else {
            memcpy(&u, src + i * sizeof u, sizeof u);
            dst[i] = dtype == VKT_ST_F16 ? vkt_f32_from_half(u) : vkt_f32_from_bf16(u);
        }
    }
}

vkt_result vkt_safetensors_read_f32(const vkt_safetensors *st, const vkt_st_entry *entry, float *dst, uint64_t count)
{
    const uint32_t size = vkt_st_dtype_bytes(entry->dtype);
    if (count != entry->elements) {
        return vkt_fail(&st->host, VKT_E_SHAPE, "\"%s\": tensor \"%.80s\" has %llu elements, not %llu", st->file.path,
                        entry->name, (unsigned long long)entry->elements, (unsigned long long)count);
    }
    switch (entry->dtype) {
    case VKT_ST_F32: return vkt_safetensors_read_raw(st, entry, dst, entry->bytes);
    case VKT_ST_F16:
    case VKT_ST_BF16:
    case VKT_ST_F64: break;
    default:
        return vkt_fail(&st->host, VKT_E_DTYPE, "\"%s\": tensor \"%.80s\" is %s: want F32, F16, BF16 or F64",
                        st->file.path, entry->name, entry->dtype_name);
    }
    unsigned char chunk[8192];
    for (uint64_t i = 0; i < count;) {
        const size_t n = (size_t)VKT_MIN(count - i, sizeof chunk / size);
        VKT_TRY(vkt_file_read_at(&st->file, entry->offset + i * size, chunk, n * size));
        widen(entry->dtype, chunk, dst + i, n);
        i += n;
    }
    return VKT_OK;
}
