/* io/safetensors.c - the dtypes, and a reader that checks the file. The reader keeps the text of the header. Names,
 * dtypes and metadata are strings in this text: each string overwrites its own JSON (io/members.h). The lists
 * of a reader grow by doubling. They have about 128 to 240 bytes per tensor, and 32 to 48 bytes per metadata key. */
#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "io/members.h"

/* The largest size of a tensor's description, in bytes. A description usually has about 60 bytes. The limit exists
 * because jansson needs many times the memory of a description to parse it. */
#define MAX_DESCRIPTION 65536u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files are little-endian and their bytes are used as they are");

/* A name, and the index of its item in `entries` or `meta`. Lists of `named` are sorted by name. */
typedef struct named {
    const char *name;
    size_t i;
} named;

struct vkt_safetensors {
    vkt_host host;
    vkt_file file;
    char *header;
    size_t header_bytes;
    uint64_t data_start; /* offset in the file */
    vkt_st_entry *entries;
    vkt_meta *meta;            /* in the order of the file */
    named *entry_at, *meta_at; /* entry_at has n elements, meta_at n_meta; sorted by name */
    size_t n, n_meta, cap, cap_meta;
    bool has_meta;
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

static vkt_result load_header(vkt_safetensors *st)
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
    st->header = vkt_realloc(h, NULL, (size_t)n);
    if (!st->header) return vkt_fail_nomem(h, "a safetensors header", (size_t)n);
    st->header_bytes = (size_t)n;
    st->data_start = sizeof n + n;
    VKT_TRY(vkt_file_read_at(&st->file, sizeof n, st->header, (size_t)n));
    return n > 0 && st->header[0] == '{' ? VKT_OK : malformed(st, "the header does not begin with '{'");
}

/* Logs why a member of the header, or of an object in the header, could not be read. */
static vkt_result fail_members(const vkt_safetensors *st, const vkt_members *w, bool no_memory)
{
    if (no_memory) return vkt_fail_nomem(&st->host, "JSON", w->n);
    return malformed(st, "header byte %zu: %s", (size_t)(w->text - st->header) + w->at, w->why);
}

static vkt_result parse_meta(vkt_safetensors *st, const vkt_member *all)
{
    if (*all->value != '{') return malformed(st, "__metadata__ is not an object");
    if (st->has_meta) return malformed(st, "a duplicate of __metadata__");
    st->has_meta = true;
    vkt_members w = vkt_members_of(all->value, all->value_bytes);
    for (vkt_member m = { 0 };;) {
        bool more, no_memory = false;
        if (!vkt_members_next(&w, &m, &more)) return fail_members(st, &w, false);
        if (!more) return VKT_OK;
        VKT_TRY(vkt_grow(&st->host, &st->meta, st->n_meta, &st->cap_meta, sizeof *st->meta));
        const char *key = vkt_members_text(&w, m.key, m.key_bytes, &no_memory);
        if (!key) return fail_members(st, &w, no_memory);
        if (*m.value != '"') return malformed(st, "metadata \"%.80s\" is not text", key);
        const char *value = vkt_members_text(&w, m.value, m.value_bytes, &no_memory);
        if (!value) return fail_members(st, &w, no_memory);
        st->meta[st->n_meta++] = (vkt_meta){ .key = key, .value = value };
    }
}

/* Reads a JSON integer >= 0. Returns false for any other value. */
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

static vkt_result parse_entry(const vkt_safetensors *st, const json_t *info, vkt_st_entry *e)
{
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
    if (end > st->file.size - st->data_start) {
        return malformed(st, "tensor \"%.80s\" ends at data byte %llu, but there are only %llu: truncated", e->name,
                         (unsigned long long)end, (unsigned long long)(st->file.size - st->data_start));
    }
    e->offset = st->data_start + begin;
    e->bytes = end - begin;
    if (e->dtype != VKT_ST_UNKNOWN &&
        (!vkt_mul_u64(e->elements, vkt_st_dtype_bytes(e->dtype), &want) || want != e->bytes)) {
        return malformed(st, "tensor \"%.80s\": %llu elements of %s do not fill its %llu bytes", e->name,
                         (unsigned long long)e->elements, e->dtype_name, (unsigned long long)e->bytes);
    }
    return VKT_OK;
}

/* Appends the tensor that a member of the header describes. For "__metadata__", reads the metadata instead. */
static vkt_result add_entry(vkt_safetensors *st, vkt_members *w, const vkt_member *m)
{
    bool no_memory = false;
    VKT_TRY(vkt_grow(&st->host, &st->entries, st->n, &st->cap, sizeof *st->entries));
    vkt_st_entry e = { .name = vkt_members_text(w, m->key, m->key_bytes, &no_memory) };
    if (!e.name) return fail_members(st, w, no_memory);
    if (strcmp(e.name, "__metadata__") == 0) return parse_meta(st, m);
    if (*m->value != '{') return malformed(st, "tensor \"%.80s\" is not described by an object", e.name);
    if (m->value_bytes > MAX_DESCRIPTION)
        return malformed(st, "tensor \"%.80s\" is described by %zu bytes: want at most %u", e.name, m->value_bytes,
                         MAX_DESCRIPTION);
    json_t *info = vkt_members_parse(w, m->value, m->value_bytes, &no_memory);
    vkt_result r = info ? parse_entry(st, info, &e) : fail_members(st, w, no_memory);
    if (r == VKT_OK) e.dtype_name = memcpy(m->value, e.dtype_name, strlen(e.dtype_name) + 1);
    json_decref(info);
    if (r == VKT_OK) st->entries[st->n++] = e;
    return r;
}

static int by_name(const void *pa, const void *pb)
{
    return strcmp(((const named *)pa)->name, ((const named *)pb)->name);
}

/* Sorts a list by name. VKT_E_FORMAT if two names are equal. */
static vkt_result sort_names(const vkt_safetensors *st, named *list, size_t n)
{
    if (n) qsort(list, n, sizeof *list, by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(list[i - 1].name, list[i].name) == 0)
            return malformed(st, "a duplicate of the name \"%.80s\"", list[i].name);
    return VKT_OK;
}

/* Finds a name in a sorted list. NULL: the name is not in the list. */
static const named *find_name(const named *list, size_t n, const char *name)
{
    return n ? bsearch(&(named){ .name = name }, list, n, sizeof *list, by_name) : NULL;
}

static vkt_result index_names(vkt_safetensors *st)
{
    const size_t bytes = (st->n + st->n_meta) * sizeof(named);
    st->entry_at = vkt_alloc(&st->host, bytes);
    if (!st->entry_at) return vkt_fail_nomem(&st->host, "names of tensors", bytes);
    st->meta_at = st->entry_at + st->n;
    for (size_t i = 0; i < st->n; i++) st->entry_at[i] = (named){ st->entries[i].name, i };
    for (size_t i = 0; i < st->n_meta; i++) st->meta_at[i] = (named){ st->meta[i].key, i };
    VKT_TRY(sort_names(st, st->entry_at, st->n));
    return sort_names(st, st->meta_at, st->n_meta);
}

static int by_offset(const void *pa, const void *pb)
{
    const vkt_st_entry *a = pa, *b = pb;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1; /* at the same offset, empty tensors come first */
    return strcmp(a->name, b->name);
}

static vkt_result check_coverage(const vkt_safetensors *st)
{
    uint64_t end = st->data_start;
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
    VKT_TRY(load_header(st));
    vkt_members w = vkt_members_of(st->header, st->header_bytes);
    for (vkt_member m = { 0 };;) {
        bool more;
        if (!vkt_members_next(&w, &m, &more)) return fail_members(st, &w, false);
        if (!more) break;
        VKT_TRY(add_entry(st, &w, &m));
    }
    if (st->n) qsort(st->entries, st->n, sizeof *st->entries, by_offset);
    VKT_TRY(index_names(st));
    return check_coverage(st);
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
    vkt_file_close(&(*st)->file);
    vkt_free(&h, (*st)->entry_at); /* the array meta_at is in the same allocation */
    vkt_free(&h, (*st)->entries);
    vkt_free(&h, (*st)->meta);
    vkt_free(&h, (*st)->header);
    vkt_free(&h, *st);
    *st = NULL;
}

/* ---- contents ---- */

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
    const named *found = find_name(st->entry_at, st->n, name);
    return found ? &st->entries[found->i] : NULL;
}

const char *vkt_safetensors_meta(const vkt_safetensors *st, const char *key)
{
    const named *found = find_name(st->meta_at, st->n_meta, key);
    return found ? st->meta[found->i].value : NULL;
}

const char *vkt_safetensors_next_meta(const vkt_safetensors *st, const char *key)
{
    const named *found = key ? find_name(st->meta_at, st->n_meta, key) : NULL;
    const size_t next = found ? found->i + 1 : 0;
    return next < st->n_meta && (found || !key) ? st->meta[next].key : NULL;
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
