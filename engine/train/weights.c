/* train/weights.c - the parameters of a store in a safetensors file, without a trainer. */
#include <stdio.h>

#include "train/trainer.h"

enum { SHAPE_ROOM = 24 * VKT_ST_MAX_RANK };

/* Writes the shape of a file's tensor to `buf`, for instance "(128,1,28,28)". Returns `buf`. */
static const char *entry_shape_text(const vkt_st_entry *e, char buf[SHAPE_ROOM])
{
    size_t at = (size_t)snprintf(buf, SHAPE_ROOM, "(");
    for (uint32_t d = 0; d < e->rank; d++)
        at += (size_t)snprintf(buf + at, SHAPE_ROOM - at, "%s%llu", d ? "," : "", (unsigned long long)e->dims[d]);
    snprintf(buf + at, SHAPE_ROOM - at, ")");
    return buf;
}

vkt_result vkt_weights_find(const vkt_host *h, const vkt_store *s, const vkt_safetensors *st, const char *path,
                            const char *prefix, uint32_t i, const vkt_st_entry **out)
{
    char name[VKT_WEIGHT_NAME_ROOM], want[80], got[SHAPE_ROOM];
    snprintf(name, sizeof name, "%s%s", prefix, vkt_store_name(s, i));
    const vkt_shape shape = vkt_store_shape(s, i);
    *out = vkt_safetensors_find(st, name);
    bool fits = *out && (*out)->rank == shape.rank;
    for (uint32_t d = 0; fits && d < shape.rank; d++) fits = (*out)->dims[d] == shape.dim[d];
    if (fits) return VKT_OK;
    if (*out)
        return vkt_fail(h, VKT_E_SHAPE, "%s: want tensor '%s' of shape %s, got %s", path, name,
                        vkt_shape_text(shape, want), entry_shape_text(*out, got));
    return vkt_fail(h, VKT_E_NOT_FOUND, "%s: want tensor '%s' of shape %s, the file has none of that name", path, name,
                    vkt_shape_text(shape, want));
}

/* Copies `part` of all parameters to `values`, in the order of the store. Fills `blobs` with a description of each
 * parameter. */
static vkt_result collect(vkt_store *s, vkt_store_part part, float *values, vkt_blob *blobs)
{
    for (uint32_t i = 0; i < vkt_store_count(s); i++) {
        const vkt_shape shape = vkt_store_shape(s, i);
        blobs[i] = (vkt_blob){ .name = vkt_store_name(s, i), .dtype = VKT_ST_F32, .rank = shape.rank, .data = values };
        for (uint32_t d = 0; d < shape.rank; d++) blobs[i].dims[d] = shape.dim[d];
        VKT_TRY(vkt_store_read(s, i, part, values));
        values += vkt_shape_elements(shape);
    }
    return VKT_OK;
}

vkt_result vkt_store_save(const vkt_host *host, vkt_store *s, vkt_store_part part, const char *path)
{
    VKT_WANT(host, s);
    VKT_WANT(host, path);
    const vkt_host h = vkt_host_resolve(host);
    const uint32_t n = vkt_store_count(s);
    float *values = vkt_alloc_array(&h, vkt_store_elements(s), sizeof *values);
    vkt_blob *blobs = vkt_alloc_array(&h, n, sizeof *blobs);
    vkt_result r = values && blobs ? VKT_OK : vkt_fail_nomem(&h, "weights", vkt_store_elements(s) * sizeof *values);
    if (r == VKT_OK) r = collect(s, part, values, blobs);
    if (r == VKT_OK) r = vkt_safetensors_write(&h, path, blobs, n, NULL, 0);
    vkt_free(&h, blobs);
    vkt_free(&h, values);
    return r;
}

/* Reads all parameters to `values`, in the order of the store. Does not change the store. */
static vkt_result read_all(const vkt_host *h, const vkt_store *s, const vkt_safetensors *st, const char *path,
                           float *values)
{
    for (uint32_t i = 0; i < vkt_store_count(s); i++) {
        const vkt_st_entry *e;
        VKT_TRY(vkt_weights_find(h, s, st, path, "", i, &e));
        VKT_TRY(vkt_safetensors_read_f32(st, e, values, e->elements));
        values += e->elements;
    }
    return VKT_OK;
}

static vkt_result write_all(vkt_store *s, const float *values)
{
    for (uint32_t i = 0; i < vkt_store_count(s); i++) {
        VKT_TRY(vkt_store_write(s, i, VKT_PART_VALUE, values));
        values += vkt_shape_elements(vkt_store_shape(s, i));
    }
    return VKT_OK;
}

vkt_result vkt_store_load(const vkt_host *host, vkt_store *s, const char *path)
{
    VKT_WANT(host, s);
    VKT_WANT(host, path);
    const vkt_host h = vkt_host_resolve(host);
    vkt_safetensors *st;
    VKT_TRY(vkt_safetensors_open(&h, path, &st));
    float *values = vkt_alloc_array(&h, vkt_store_elements(s), sizeof *values);
    vkt_result r = values ? VKT_OK : vkt_fail_nomem(&h, "weights", vkt_store_elements(s) * sizeof *values);
    if (r == VKT_OK) r = read_all(&h, s, st, path, values);
    if (r == VKT_OK) r = write_all(s, values);
    vkt_free(&h, values);
    vkt_safetensors_close(&st);
    return r;
}
