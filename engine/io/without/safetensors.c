/* io/without/safetensors.c - replaces safetensors.c, safetensors_write.c and members.c in a build without jansson.
 * jansson reads and writes the header of a safetensors file, so this build opens and writes no safetensors file. */
#include "io/safetensors.h"

static vkt_result without(const vkt_host *h, const char *path)
{
    return vkt_fail_without(h, path, "jansson", "JANSSON");
}

const char *vkt_st_dtype_name(vkt_st_dtype dtype)
{
    (void)dtype;
    return "?";
}

uint32_t vkt_st_dtype_bytes(vkt_st_dtype dtype)
{
    (void)dtype;
    return 0;
}

/* ---- reading ---- */

vkt_result vkt_safetensors_open(const vkt_host *h, const char *path, vkt_safetensors **out)
{
    *out = NULL;
    VKT_WANT(h, path);
    return without(h, path);
}

void vkt_safetensors_close(vkt_safetensors **st)
{
    if (st) *st = NULL;
}

size_t vkt_safetensors_count(const vkt_safetensors *st)
{
    (void)st;
    return 0;
}

const vkt_st_entry *vkt_safetensors_entry(const vkt_safetensors *st, size_t i)
{
    (void)st, (void)i;
    return NULL;
}

const vkt_st_entry *vkt_safetensors_find(const vkt_safetensors *st, const char *name)
{
    (void)st, (void)name;
    return NULL;
}

const char *vkt_safetensors_meta(const vkt_safetensors *st, const char *key)
{
    (void)st, (void)key;
    return NULL;
}

const char *vkt_safetensors_next_meta(const vkt_safetensors *st, const char *key)
{
    (void)st, (void)key;
    return NULL;
}

const vkt_file *vkt_safetensors_file(const vkt_safetensors *st)
{
    (void)st;
    return NULL;
}

vkt_result vkt_safetensors_read_f32(const vkt_safetensors *st, const vkt_st_entry *entry, float *dst, uint64_t count)
{
    (void)st, (void)entry, (void)dst, (void)count;
    return VKT_E_UNSUPPORTED;
}

vkt_result vkt_safetensors_read_raw(const vkt_safetensors *st, const vkt_st_entry *entry, void *dst, uint64_t bytes)
{
    (void)st, (void)entry, (void)dst, (void)bytes;
    return VKT_E_UNSUPPORTED;
}

/* ---- writing ---- */

/* Accepts every text, because this build writes no safetensors file. */
vkt_result vkt_meta_check(const vkt_host *h, const vkt_meta *m)
{
    (void)h, (void)m;
    return VKT_OK;
}

vkt_result vkt_safetensors_write(const vkt_host *h, const char *path, const vkt_blob *blobs, size_t n_blobs,
                                 const vkt_meta *meta, size_t n_meta)
{
    (void)blobs, (void)n_blobs, (void)meta, (void)n_meta;
    VKT_WANT(h, path);
    return without(h, path);
}

vkt_result vkt_safetensors_make_header(const vkt_host *h, const vkt_blob *blobs, size_t n_blobs, const vkt_meta *meta,
                                       size_t n_meta, char **header, size_t *header_bytes)
{
    (void)blobs, (void)n_blobs, (void)meta, (void)n_meta;
    *header = NULL;
    *header_bytes = 0;
    return without(h, "the header of a safetensors file");
}

vkt_result vkt_safetensors_write_file(const vkt_host *h, const char *path, const char *header, size_t header_bytes,
                                      const vkt_blob *blobs, size_t n_blobs)
{
    (void)header, (void)header_bytes, (void)blobs, (void)n_blobs;
    VKT_WANT(h, path);
    return without(h, path);
}

uint64_t vkt_blob_bytes(const vkt_blob *blob)
{
    (void)blob;
    return 0;
}
