/* io/safetensors_write.c - the writer: makes the header; data are written as they are. */
#include "io/safetensors.h"

#include <stdlib.h>

#include "io/json.h"

uint64_t vkt_blob_bytes(const vkt_blob *blob)
{
    uint64_t bytes = vkt_st_dtype_bytes(blob->dtype);
    for (uint32_t i = 0; i < blob->rank; i++) bytes *= blob->dims[i];
    return bytes;
}

/* Checks one blob by itself: name, dtype, rank, size and data. *bytes: size of the blob's data. */
static vkt_result check_blob(const vkt_host *h, const vkt_blob *b, uint64_t *bytes)
{
    if (!b->name || strcmp(b->name, "__metadata__") == 0) {
        return vkt_fail(h, VKT_E_ARG, "safetensors: \"%s\" is no name for a tensor", b->name ? b->name : "(null)");
    }
    *bytes = vkt_st_dtype_bytes(b->dtype);
    if (*bytes == 0) return vkt_fail(h, VKT_E_ARG, "safetensors: tensor \"%.80s\" has no known dtype", b->name);
    if (b->rank > VKT_ST_MAX_RANK) {
        return vkt_fail(h, VKT_E_ARG, "safetensors: tensor \"%.80s\" has rank %u: want at most %d", b->name, b->rank,
                        VKT_ST_MAX_RANK);
    }
    for (uint32_t i = 0; i < b->rank; i++) {
        if (!vkt_mul_u64(*bytes, b->dims[i], bytes) || *bytes > INT64_MAX) {
            return vkt_fail(h, VKT_E_ARG, "safetensors: tensor \"%.80s\" has more than 2^63 bytes", b->name);
        }
    }
    if (*bytes && !b->data) return vkt_fail(h, VKT_E_ARG, "safetensors: tensor \"%.80s\" has no data", b->name);
    return VKT_OK;
}

static vkt_result refused(const vkt_host *h, const char *what, const char *name)
{
    return vkt_fail(h, VKT_E_ARG, "safetensors: %s \"%.80s\" is not UTF-8", what, name);
}

/* Appends a key and its value to the metadata. */
static vkt_result add_pair(vkt_text *t, const vkt_meta *m)
{
    if (!vkt_json_add(t, m->key)) return refused(t->h, "metadata", m->key);
    vkt_text_add(t, ":");
    return vkt_json_add(t, m->value) ? VKT_OK : refused(t->h, "metadata", m->key);
}

vkt_result vkt_meta_check(const vkt_host *h, const vkt_meta *m)
{
    if (!m->key || !m->value) return vkt_fail(h, VKT_E_ARG, "safetensors: metadata is NULL");
    vkt_text t = { .h = h };
    vkt_result r = add_pair(&t, m);
    if (r == VKT_OK && t.failed) r = vkt_fail_nomem(h, "metadata", t.len);
    vkt_text_free(&t);
    return r;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuses names that are given twice. Sorts the list. `what`: "tensor", for instance. */
static vkt_result check_unique(const vkt_host *h, const char *what, const char **names, size_t n)
{
    if (n) qsort(names, n, sizeof *names, by_text);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return vkt_fail(h, VKT_E_ARG, "safetensors: %s \"%.80s\" is given twice", what, names[i]);
    return VKT_OK;
}

static vkt_result add_meta(vkt_text *t, const vkt_meta *meta, size_t n, const char **names)
{
    vkt_text_add(t, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        if (!meta[i].key || !meta[i].value) return vkt_fail(t->h, VKT_E_ARG, "safetensors: metadata %zu is NULL", i);
        if (i) vkt_text_add(t, ",");
        VKT_TRY(add_pair(t, &meta[i]));
        names[i] = meta[i].key;
    }
    vkt_text_add(t, "}");
    return check_unique(t->h, "metadata", names, n);
}

static vkt_result add_blobs(vkt_text *t, const vkt_blob *blobs, size_t n, bool first, const char **names)
{
    uint64_t begin = 0, bytes = 0, end;
    for (size_t i = 0; i < n; i++, begin = end) {
        const vkt_blob *b = &blobs[i];
        VKT_TRY(check_blob(t->h, b, &bytes));
        end = begin + bytes; /* both below 2^63 */
        if (end > INT64_MAX) return vkt_fail(t->h, VKT_E_ARG, "safetensors: more than 2^63 bytes in one file");
        if (i || !first) vkt_text_add(t, ",");
        if (!vkt_json_add(t, b->name)) return refused(t->h, "the name of tensor", b->name);
        vkt_text_add(t, ":{\"dtype\":\"%s\",\"shape\":[", vkt_st_dtype_name(b->dtype));
        for (uint32_t k = 0; k < b->rank; k++) vkt_text_add(t, k ? ",%llu" : "%llu", (unsigned long long)b->dims[k]);
        vkt_text_add(t, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin, (unsigned long long)end);
        names[i] = b->name;
    }
    return check_unique(t->h, "tensor", names, n);
}

/* Copies the JSON behind its length, padded with spaces so that the data begin at a multiple of 8. */
static vkt_result dump(const vkt_text *t, char **header, size_t *header_bytes)
{
    const uint64_t n = vkt_round_up(t->len, 8);
    if (t->failed) return vkt_fail_nomem(t->h, "a safetensors header", t->len);
    if (n > VKT_ST_MAX_HEADER_BYTES) {
        return vkt_fail(t->h, VKT_E_ARG, "safetensors: a header of %llu bytes: want at most %u", (unsigned long long)n,
                        VKT_ST_MAX_HEADER_BYTES);
    }
    char *p = vkt_alloc(t->h, sizeof n + (size_t)n);
    if (!p) return vkt_fail_nomem(t->h, "a safetensors header", sizeof n + (size_t)n);
    memcpy(p, &n, sizeof n);
    memset(p + sizeof n, ' ', (size_t)n);
    memcpy(p + sizeof n, t->s, t->len);
    *header = p;
    *header_bytes = sizeof n + (size_t)n;
    return VKT_OK;
}

vkt_result vkt_safetensors_make_header(const vkt_host *h, const vkt_blob *blobs, size_t n_blobs, const vkt_meta *meta,
                                       size_t n_meta, char **header, size_t *header_bytes)
{
    *header = NULL;
    *header_bytes = 0;
    const size_t n_names = VKT_MAX(n_blobs, n_meta) + 1;
    const char **names = vkt_alloc_array(h, n_names, sizeof *names);
    if (!names) return vkt_fail_nomem(h, "a safetensors header", n_names * sizeof *names);
    vkt_text t = { .h = h };
    vkt_text_add(&t, "{");
    vkt_result r = n_meta ? add_meta(&t, meta, n_meta, names) : VKT_OK;
    if (r == VKT_OK) r = add_blobs(&t, blobs, n_blobs, n_meta == 0, names);
    vkt_text_add(&t, "}");
    if (r == VKT_OK) r = dump(&t, header, header_bytes);
    vkt_text_free(&t);
    vkt_free(h, names);
    return r;
}

vkt_result vkt_safetensors_write_file(const vkt_host *h, const char *path, const char *header, size_t header_bytes,
                                      const vkt_blob *blobs, size_t n_blobs)
{
    vkt_file_writer w;
    VKT_TRY(vkt_file_writer_begin(h, path, &w));
    VKT_TRY(vkt_file_writer_write(&w, header, header_bytes));
    for (size_t i = 0; i < n_blobs; i++) {
        VKT_TRY(vkt_file_writer_write(&w, blobs[i].data, (size_t)vkt_blob_bytes(&blobs[i])));
    }
    return vkt_file_writer_commit(&w);
}

vkt_result vkt_safetensors_write(const vkt_host *h, const char *path, const vkt_blob *blobs, size_t n_blobs,
                                 const vkt_meta *meta, size_t n_meta)
{
    char *header;
    size_t header_bytes;
    VKT_TRY(vkt_safetensors_make_header(h, blobs, n_blobs, meta, n_meta, &header, &header_bytes));
    const vkt_result r = vkt_safetensors_write_file(h, path, header, header_bytes, blobs, n_blobs);
    vkt_free(h, header);
    return r;
}
