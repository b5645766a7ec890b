/* io/safetensors_write.c - the writer: jansson makes the header; data are written as they are. */
#include "io/safetensors.h"

#include <jansson.h>

uint64_t vkt_blob_bytes(const vkt_blob *blob)
{
    uint64_t bytes = vkt_st_dtype_bytes(blob->dtype);
    for (uint32_t i = 0; i < blob->rank; i++) bytes *= blob->dims[i];
    return bytes;
}

/* Checks name, dtype, rank, size and data of one blob. Sets *bytes to the size of the data. */
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

/* Reports a text that jansson refused. The text is not UTF-8, or jansson has no memory: jansson does not return the
 * cause. */
static vkt_result refused(const vkt_host *h, const char *what, const char *name)
{
    return vkt_fail(h, VKT_E_ARG, "safetensors: %s \"%.80s\" is not UTF-8, or out of memory", what, name);
}

vkt_result vkt_meta_check(const vkt_host *h, const vkt_meta *m)
{
    json_t *key = json_string(m->key), *value = json_string(m->value);
    const bool taken = key && value;
    json_decref(key);
    json_decref(value);
    return taken ? VKT_OK : refused(h, "metadata", m->key);
}

static vkt_result add_meta(const vkt_host *h, json_t *root, const vkt_meta *meta, size_t n)
{
    json_t *object = json_object();
    if (json_object_set_new(root, "__metadata__", object) != 0) return vkt_fail_nomem(h, "JSON", 0);
    for (size_t i = 0; i < n; i++) {
        if (!meta[i].key || !meta[i].value) return vkt_fail(h, VKT_E_ARG, "safetensors: metadata %zu is NULL", i);
        if (json_object_get(object, meta[i].key)) {
            return vkt_fail(h, VKT_E_ARG, "safetensors: metadata \"%.80s\" is given twice", meta[i].key);
        }
        if (json_object_set_new(object, meta[i].key, json_string(meta[i].value)) != 0) {
            return refused(h, "metadata", meta[i].key);
        }
    }
    return VKT_OK;
}

static vkt_result add_blobs(const vkt_host *h, json_t *root, const vkt_blob *blobs, size_t n)
{
    uint64_t begin = 0, bytes = 0, end;
    for (size_t i = 0; i < n; i++, begin = end) {
        const vkt_blob *b = &blobs[i];
        VKT_TRY(check_blob(h, b, &bytes));
        if (json_object_get(root, b->name)) {
            return vkt_fail(h, VKT_E_ARG, "safetensors: tensor \"%.80s\" is given twice", b->name);
        }
        end = begin + bytes; /* no overflow: begin and bytes are below 2^63 */
        if (end > INT64_MAX) return vkt_fail(h, VKT_E_ARG, "safetensors: more than 2^63 bytes in one file");
        json_t *shape = json_array();
        for (uint32_t k = 0; shape && k < b->rank; k++) {
            if (json_array_append_new(shape, json_integer((json_int_t)b->dims[k])) != 0) {
                json_decref(shape);
                return vkt_fail_nomem(h, "JSON", 0);
            }
        }
        json_t *info = json_pack("{s:s, s:o, s:[I, I]}", "dtype", vkt_st_dtype_name(b->dtype), "shape", shape,
                                 "data_offsets", (json_int_t)begin, (json_int_t)end);
        if (!info) return vkt_fail_nomem(h, "JSON", 0);
        if (json_object_set_new(root, b->name, info) != 0) return refused(h, "the name of tensor", b->name);
    }
    return VKT_OK;
}

/* Makes the header: 8 bytes with the length of the JSON, then the JSON. Spaces at the end of the JSON make the header a
 * multiple of 8 bytes. */
static vkt_result dump(const vkt_host *h, const json_t *root, char **header, size_t *header_bytes)
{
    const size_t text_bytes = json_dumpb(root, NULL, 0, JSON_COMPACT);
    const uint64_t n = vkt_round_up(text_bytes, 8);
    if (text_bytes == 0) return vkt_fail_nomem(h, "JSON", 0);
    if (n > VKT_ST_MAX_HEADER_BYTES) {
        return vkt_fail(h, VKT_E_ARG, "safetensors: a header of %llu bytes: want at most %u", (unsigned long long)n,
                        VKT_ST_MAX_HEADER_BYTES);
    }
    char *p = vkt_alloc(h, sizeof n + (size_t)n);
    if (!p) return vkt_fail_nomem(h, "a safetensors header", sizeof n + (size_t)n);
    memcpy(p, &n, sizeof n);
    memset(p + sizeof n, ' ', (size_t)n);
    if (json_dumpb(root, p + sizeof n, text_bytes, JSON_COMPACT) != text_bytes) {
        vkt_free(h, p);
        return vkt_fail_nomem(h, "JSON", text_bytes);
    }
    *header = p;
    *header_bytes = sizeof n + (size_t)n;
    return VKT_OK;
}

vkt_result vkt_safetensors_make_header(const vkt_host *h, const vkt_blob *blobs, size_t n_blobs, const vkt_meta *meta,
                                       size_t n_meta, char **header, size_t *header_bytes)
{
    *header = NULL;
    *header_bytes = 0;
    json_t *root = json_object();
    vkt_result r = root ? VKT_OK : vkt_fail_nomem(h, "JSON", 0);
    if (r == VKT_OK && n_meta) r = add_meta(h, root, meta, n_meta);
    if (r == VKT_OK) r = add_blobs(h, root, blobs, n_blobs);
    if (r == VKT_OK) r = dump(h, root, header, header_bytes);
    json_decref(root);
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
