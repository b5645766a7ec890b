/* io/gguf.c - opens GGUF files: maps a file, and reads and checks its header. gguf_get.c has the other functions of a
 * reader.
 *
 * The header has no padding:
 *   u32 magic | u32 version | u64 number of tensors | u64 number of metadata entries
 *   for each metadata entry   text key | u32 kind | value;   the value of an array is u32 kind | u64 count | values
 *   for each tensor           text name | u32 rank | u64 dims[rank] | u32 type | u64 offset
 * A text is u64 length | bytes. The data begin behind the header, at the next multiple of the alignment. An offset
 * counts from the start of the data. */
#include "io/gguf.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(bool) == 1,
               "files are little-endian and their bytes are used as they are");

/* The smallest sizes of a metadata entry and of a tensor in the header, in bytes. With these sizes the reader checks
 * that the file can contain the stated number of entries, before it allocates memory for them. */
enum { LEAST_META = 8 + 1 + 4 + 1, LEAST_TENSOR = 8 + 1 + 4 + 4 + 8 };

/* The part of the header that is not read yet. */
typedef struct cursor {
    const vkt_gguf *g;
    uint64_t at;
} cursor;

/* A text of the file. */
typedef struct span {
    const char *text;
    uint64_t bytes;
} span;

static vkt_result malformed(const vkt_gguf *g, const char *fmt, ...) VKT_PRINTF(2, 3);
static vkt_result malformed(const vkt_gguf *g, const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return vkt_fail(&g->host, VKT_E_FORMAT, "\"%s\" is not a sound GGUF file: %s", g->path, why);
}

static vkt_result truncated(const cursor *c)
{
    return malformed(c->g, "it ends after %llu bytes, in the header: truncated", (unsigned long long)c->g->size);
}

static uint64_t left(const cursor *c)
{
    return c->g->size - c->at;
}

static vkt_result take(cursor *c, void *dst, size_t n)
{
    if (left(c) < n) return truncated(c);
    memcpy(dst, c->g->bytes + c->at, n);
    c->at += n;
    return VKT_OK;
}

static vkt_result take_text(cursor *c, span *s)
{
    VKT_TRY(take(c, &s->bytes, sizeof s->bytes));
    if (left(c) < s->bytes) return truncated(c);
    s->text = (const char *)c->g->bytes + c->at;
    c->at += s->bytes;
    return VKT_OK;
}

/* Reads a key, or the name of a tensor. */
static vkt_result take_name(cursor *c, const char *what, span *s)
{
    VKT_TRY(take_text(c, s));
    if (s->bytes > 0 && s->bytes <= VKT_GGUF_MAX_KEY && !memchr(s->text, 0, (size_t)s->bytes)) return VKT_OK;
    return malformed(c->g, "a %s of %llu bytes, or with a NUL in it: want 1 to %d bytes", what,
                     (unsigned long long)s->bytes, VKT_GGUF_MAX_KEY);
}

/* ---- metadata ---- */

/* Allocates the memory block of an entry: `bytes` bytes of values, then the key. */
static vkt_result make_meta(const vkt_gguf *g, span key, uint64_t bytes, vkt_gguf_meta *m)
{
    const uint64_t all = bytes + key.bytes + 1;
    char *block = all <= PTRDIFF_MAX ? vkt_alloc(&g->host, (size_t)all) : NULL;
    if (!block) return vkt_fail_nomem(&g->host, "metadata of a GGUF file", (size_t)all);
    m->values = block;
    m->key = memcpy(block + bytes, key.text, (size_t)key.bytes);
    return VKT_OK;
}

/* Returns a writable pointer to the values, which make_meta has allocated. */
static void *values_of(const vkt_gguf_meta *m)
{
    return (void *)(uintptr_t)m->values;
}

static vkt_result take_texts(cursor *c, span key, vkt_gguf_meta *m)
{
    cursor first = *c; /* for a first loop, which adds up the sizes of the texts */
    uint64_t bytes = 0;
    if (m->count > left(c) / sizeof(uint64_t)) return truncated(c);
    for (size_t i = 0; i < m->count; i++) {
        span s;
        VKT_TRY(take_text(&first, &s));
        bytes += s.bytes + 1; /* no overflow: at most the size of the file, and one byte per text */
    }
    const uint64_t list = m->count * sizeof(vkt_gguf_string);
    VKT_TRY(make_meta(c->g, key, list + bytes, m));
    vkt_gguf_string *strings = values_of(m);
    char *copy = (char *)strings + list;
    const char *end = copy + bytes;
    for (size_t i = 0; i < m->count; i++) {
        span s;
        VKT_TRY(take_text(c, &s));
        /* If the file is mapped, another program may have changed a length since the first loop added it up. */
        if (s.bytes >= (uint64_t)(end - copy)) return malformed(c->g, "it changes while it is read");
        if (s.bytes > 0) memcpy(copy, s.text, (size_t)s.bytes);
        strings[i] = (vkt_gguf_string){ .text = copy, .bytes = (size_t)s.bytes };
        copy += s.bytes + 1; /* the memory block is zeroed, so a NUL is behind the text */
    }
    return VKT_OK;
}

static vkt_result take_numbers(cursor *c, span key, vkt_gguf_meta *m)
{
    const size_t size = vkt_gguf_kind_bytes(m->kind);
    if (m->count > left(c) / size) return truncated(c);
    VKT_TRY(make_meta(c->g, key, vkt_round_up(m->count * size, 8), m));
    VKT_TRY(take(c, values_of(m), m->count * size));
    const uint8_t *values = m->values;
    for (size_t i = 0; m->kind == VKT_GGUF_KIND_BOOL && i < m->count; i++)
        if (values[i] > 1)
            return malformed(c->g, "metadata \"%.*s\" has a bool of %u", (int)VKT_MIN(key.bytes, 80), key.text,
                             values[i]);
    return VKT_OK;
}

static vkt_result take_meta(cursor *c, vkt_gguf_meta *m)
{
    span key;
    uint32_t kind;
    uint64_t count = 1;
    VKT_TRY(take_name(c, "key", &key));
    const int shown = (int)VKT_MIN(key.bytes, 80);
    VKT_TRY(take(c, &kind, sizeof kind));
    m->is_array = kind == VKT_GGUF_ARRAY;
    if (m->is_array) {
        VKT_TRY(take(c, &kind, sizeof kind));
        VKT_TRY(take(c, &count, sizeof count));
        if (kind == VKT_GGUF_ARRAY)
            return vkt_fail(&c->g->host, VKT_E_UNSUPPORTED, "\"%s\": metadata \"%.*s\" is an array of arrays",
                            c->g->path, shown, key.text);
    }
    if (kind > VKT_GGUF_KIND_F64)
        return malformed(c->g, "metadata \"%.*s\" has kind %u, which does not exist", shown, key.text, kind);
    if (count > left(c)) return truncated(c); /* each value has at least one byte */
    m->kind = (vkt_gguf_kind)kind;
    m->count = (size_t)count;
    return m->kind == VKT_GGUF_KIND_TEXT ? take_texts(c, key, m) : take_numbers(c, key, m);
}

static int by_key(const void *pa, const void *pb)
{
    const vkt_gguf_meta *const *a = pa, *const *b = pb;
    return strcmp((*a)->key, (*b)->key);
}

static vkt_result take_all_meta(vkt_gguf *g, cursor *c, uint64_t n)
{
    if (n > left(c) / LEAST_META) return truncated(c);
    g->meta = vkt_alloc_array(&g->host, (size_t)n, sizeof *g->meta);
    g->meta_at = vkt_alloc_array(&g->host, (size_t)n, sizeof *g->meta_at);
    if (n > 0 && (!g->meta || !g->meta_at))
        return vkt_fail_nomem(&g->host, "metadata of a GGUF file", (size_t)n * sizeof *g->meta);
    for (; g->n_meta < n; g->n_meta++) {
        g->meta_at[g->n_meta] = &g->meta[g->n_meta];
        const vkt_result r = take_meta(c, &g->meta[g->n_meta]);
        if (r == VKT_OK) continue;
        vkt_free(&g->host, values_of(&g->meta[g->n_meta])); /* vkt_gguf_destroy frees only the earlier entries */
        return r;
    }
    if (n > 0) qsort(g->meta_at, g->n_meta, sizeof *g->meta_at, by_key);
    for (size_t i = 1; i < g->n_meta; i++)
        if (strcmp(g->meta_at[i - 1]->key, g->meta_at[i]->key) == 0)
            return malformed(g, "a duplicate of the key \"%.80s\"", g->meta_at[i]->key);
    return VKT_OK;
}

static vkt_result find_alignment(vkt_gguf *g)
{
    uint64_t alignment = VKT_GGUF_ALIGNMENT;
    if (vkt_gguf_find_meta(g, "general.alignment"))
        VKT_TRY(vkt_gguf_get_u64(g, "general.alignment", VKT_GGUF_ONE, &alignment));
    if (alignment == 0 || alignment > 1u << 31 || (alignment & (alignment - 1)) != 0)
        return malformed(g, "an alignment of %llu: want a power of two", (unsigned long long)alignment);
    g->alignment = (uint32_t)alignment;
    return VKT_OK;
}

/* ---- tensors ---- */

const char *vkt_gguf_measure(vkt_gguf_tensor *t)
{
    const uint32_t block = vkt_gguf_block_elements(t->type);
    if (block == 0) return "a type that does not exist";
    if (t->rank > VKT_GGUF_MAX_RANK) return "more than 4 dimensions";
    t->elements = 1;
    for (uint32_t i = 0; i < VKT_GGUF_MAX_RANK; i++) {
        if (i >= t->rank) t->dims[i] = 1;
        if (!vkt_mul_u64(t->elements, t->dims[i], &t->elements)) return "more than 2^64 elements";
    }
    if (t->dims[0] % block != 0) return "a first dimension that is no multiple of the type's block";
    if (!vkt_mul_u64(t->elements / block, vkt_gguf_block_bytes(t->type), &t->bytes) || t->bytes > INT64_MAX)
        return "2^63 bytes or more";
    return NULL;
}

/* Reads what the header says about a tensor. On return t->offset counts from the start of the data, as in the file. */
static vkt_result take_tensor(cursor *c, vkt_gguf_tensor *t)
{
    const vkt_gguf *g = c->g;
    span name;
    uint32_t type;
    VKT_TRY(take_name(c, "name of a tensor", &name));
    char *copy = vkt_alloc(&g->host, (size_t)name.bytes + 1);
    if (!copy) return vkt_fail_nomem(&g->host, "the name of a tensor", (size_t)name.bytes + 1);
    t->name = memcpy(copy, name.text, (size_t)name.bytes);
    VKT_TRY(take(c, &t->rank, sizeof t->rank));
    if (t->rank > VKT_GGUF_MAX_RANK)
        return malformed(g, "tensor \"%.80s\" has %u dimensions: want at most %d", t->name, t->rank, VKT_GGUF_MAX_RANK);
    VKT_TRY(take(c, t->dims, t->rank * sizeof *t->dims));
    VKT_TRY(take(c, &type, sizeof type));
    VKT_TRY(take(c, &t->offset, sizeof t->offset));
    t->type = (vkt_gguf_type)type;
    if (type > INT32_MAX || vkt_gguf_block_elements(t->type) == 0)
        return vkt_fail(&g->host, VKT_E_UNSUPPORTED, "\"%s\": tensor \"%.80s\" has type number %u, which is not known",
                        g->path, t->name, type);
    const char *wrong = vkt_gguf_measure(t);
    return wrong ? malformed(g, "tensor \"%.80s\" (%s) has %s", t->name, vkt_gguf_type_name(t->type), wrong) : VKT_OK;
}

/* Finds the data of a tensor. Before the call, t->offset counts from the start of the data, which is byte `start` of
 * the file. After the call, t->offset counts from the start of the file. */
static vkt_result locate(const vkt_gguf *g, uint64_t start, vkt_gguf_tensor *t)
{
    const uint64_t all = g->size > start ? g->size - start : 0;
    if (t->offset % g->alignment != 0)
        return malformed(g, "tensor \"%.80s\" begins at data byte %llu, which is no multiple of %u", t->name,
                         (unsigned long long)t->offset, g->alignment);
    if (t->bytes > 0 && (t->offset > all || t->bytes > all - t->offset))
        return malformed(g,
                         "tensor \"%.80s\" has %llu bytes from data byte %llu on, but there are only %llu: truncated",
                         t->name, (unsigned long long)t->bytes, (unsigned long long)t->offset, (unsigned long long)all);
    t->offset = t->bytes > 0 ? t->offset + start : start;
    t->data = t->bytes > 0 ? g->bytes + t->offset : NULL;
    return VKT_OK;
}

static int by_offset(const void *pa, const void *pb)
{
    const vkt_gguf_tensor *const *a = pa, *const *b = pb;
    if ((*a)->offset != (*b)->offset) return (*a)->offset < (*b)->offset ? -1 : 1;
    return ((*a)->bytes > (*b)->bytes) - ((*a)->bytes < (*b)->bytes); /* at the same offset, empty tensors come first */
}

static int by_name(const void *pa, const void *pb)
{
    const vkt_gguf_tensor *const *a = pa, *const *b = pb;
    return strcmp((*a)->name, (*b)->name);
}

/* Sorts the list of tensors by name. VKT_E_FORMAT if two tensors overlap or have the same name. */
static vkt_result index_tensors(vkt_gguf *g)
{
    const vkt_gguf_tensor **list = g->tensor_at;
    if (g->n_tensors == 0) return VKT_OK;
    qsort(list, g->n_tensors, sizeof *list, by_offset);
    for (size_t i = 1; i < g->n_tensors; i++)
        if (list[i]->offset - list[i - 1]->offset < list[i - 1]->bytes)
            return malformed(g, "tensors \"%.80s\" and \"%.80s\" overlap", list[i - 1]->name, list[i]->name);
    qsort(list, g->n_tensors, sizeof *list, by_name);
    for (size_t i = 1; i < g->n_tensors; i++)
        if (strcmp(list[i - 1]->name, list[i]->name) == 0)
            return malformed(g, "a duplicate of the tensor \"%.80s\"", list[i]->name);
    return VKT_OK;
}

static vkt_result take_all_tensors(vkt_gguf *g, cursor *c, uint64_t n)
{
    if (n > left(c) / LEAST_TENSOR) return truncated(c);
    g->tensors = vkt_alloc_array(&g->host, (size_t)n, sizeof *g->tensors);
    g->tensor_at = vkt_alloc_array(&g->host, (size_t)n, sizeof *g->tensor_at);
    if (n > 0 && (!g->tensors || !g->tensor_at))
        return vkt_fail_nomem(&g->host, "tensors of a GGUF file", (size_t)n * sizeof *g->tensors);
    g->n_tensors = (size_t)n;
    for (size_t i = 0; i < g->n_tensors; i++) {
        g->tensor_at[i] = &g->tensors[i];
        VKT_TRY(take_tensor(c, &g->tensors[i]));
    }
    const uint64_t start = vkt_round_up(c->at, g->alignment);
    for (size_t i = 0; i < g->n_tensors; i++) VKT_TRY(locate(g, start, &g->tensors[i]));
    return index_tensors(g);
}

/* ---- the file ---- */

static vkt_result check_version(const vkt_gguf *g, uint32_t magic)
{
    if (magic != VKT_GGUF_MAGIC) return malformed(g, "it does not begin with \"GGUF\": a file of another kind");
    if (g->version == 2 || g->version == VKT_GGUF_VERSION) return VKT_OK;
    return vkt_fail(&g->host, VKT_E_UNSUPPORTED, "\"%s\" is a GGUF file of version %u%s: want 2 or 3, little-endian",
                    g->path, g->version, g->version << 16 != 0 ? "" : " (big-endian)");
}

static vkt_result load(vkt_gguf *g)
{
    cursor c = { .g = g };
    uint32_t magic = 0;
    uint64_t n_tensors = 0, n_meta = 0;
    VKT_TRY(take(&c, &magic, sizeof magic));
    VKT_TRY(take(&c, &g->version, sizeof g->version));
    VKT_TRY(check_version(g, magic));
    VKT_TRY(take(&c, &n_tensors, sizeof n_tensors));
    VKT_TRY(take(&c, &n_meta, sizeof n_meta));
    VKT_TRY(take_all_meta(g, &c, n_meta));
    VKT_TRY(find_alignment(g));
    return take_all_tensors(g, &c, n_tensors);
}

static vkt_result create(const vkt_host *host, const char *path, vkt_gguf **out)
{
    const vkt_host h = vkt_host_resolve(host);
    vkt_gguf *g = vkt_alloc(&h, sizeof *g);
    if (!g) return vkt_fail_nomem(&h, "a GGUF reader", sizeof *g);
    g->host = h;
    *out = g;
    g->path = vkt_strdup(&h, path);
    return g->path ? VKT_OK : vkt_fail_nomem(&h, "a file name", strlen(path) + 1);
}

static vkt_result map_file(vkt_gguf *g)
{
    vkt_file f;
    VKT_TRY(vkt_file_open(&g->host, g->path, &f));
    const vkt_result r = vkt_file_map(&f, &g->map);
    g->bytes = g->map;
    g->size = f.size;
    vkt_file_close(&f);
    return r;
}

vkt_result vkt_gguf_open(const vkt_host *host, const char *path, vkt_gguf **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, path);
    vkt_result r = create(host, path, out);
    if (r == VKT_OK) r = map_file(*out);
    if (r == VKT_OK) r = load(*out);
    if (r != VKT_OK) vkt_gguf_destroy(out);
    return r;
}

vkt_result vkt_gguf_from_memory(const vkt_host *host, const char *name, const void *bytes, size_t n_bytes,
                                vkt_gguf **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, name);
    VKT_WANT(host, bytes);
    vkt_result r = create(host, name, out);
    if (r == VKT_OK) {
        (*out)->bytes = bytes;
        (*out)->size = n_bytes;
        r = load(*out);
    }
    if (r != VKT_OK) vkt_gguf_destroy(out);
    return r;
}

void vkt_gguf_destroy(vkt_gguf **g)
{
    if (!g || !*g) return;
    const vkt_host h = (*g)->host;
    for (size_t i = 0; i < (*g)->n_meta; i++) vkt_free(&h, values_of(&(*g)->meta[i]));
    for (size_t i = 0; i < (*g)->n_tensors; i++) vkt_free(&h, (void *)(uintptr_t)(*g)->tensors[i].name);
    vkt_free(&h, (*g)->meta);
    vkt_free(&h, (*g)->meta_at);
    vkt_free(&h, (*g)->tensors);
    vkt_free(&h, (*g)->tensor_at);
    vkt_file_unmap((*g)->map, (*g)->size);
    vkt_free(&h, (*g)->path);
    vkt_free(&h, *g);
    *g = NULL;
}
