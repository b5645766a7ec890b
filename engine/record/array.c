/* record/array.c - device memory that outlives programs. */
#include "record/record.h"

/* Makes an array without a buffer. */
static vkt_result array_new(vkt_ctx *ctx, vkt_dtype dtype, vkt_shape shape, vkt_array **out)
{
    uint64_t bytes;
    if (shape.rank > VKT_MAX_RANK || (unsigned)dtype >= VKT_DTYPE_COUNT ||
        !vkt_physical_bytes(shape, VKT_ROWS, dtype, &bytes) || bytes == 0)
        return vkt_fail(&ctx->host, VKT_E_ARG, "array: the shape or element type makes no sense");
    vkt_array *a = vkt_alloc(&ctx->host, sizeof *a);
    if (!a) return vkt_fail_nomem(&ctx->host, "an array", sizeof *a);
    *a = (vkt_array){ .ctx = ctx, .dtype = dtype, .shape = shape, .bytes = bytes };
    *out = a;
    return VKT_OK;
}

vkt_result vkt_array_create(vkt_ctx *ctx, const vkt_array_params *params, vkt_array **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, out);
    VKT_WANT(&ctx->host, params);
    *out = NULL;
    vkt_array *a;
    VKT_TRY(array_new(ctx, params->dtype, params->shape, &a));
    const uint64_t bytes = a->bytes;
    vkt_result r = vkt_buffer_create(ctx, params->host_visible ? VKT_MEMORY_UPLOAD : VKT_MEMORY_DEVICE, VKT_MEM_DATA,
                                     bytes, params->name ? params->name : "array", &a->buffer);
    if (r == VKT_OK && params->host_visible) {
        if (params->data)
            memcpy(a->buffer->mapped, params->data, bytes);
        else
            memset(a->buffer->mapped, 0, bytes);
    } else if (r == VKT_OK) {
        const uint64_t whole = bytes / 4 * 4;
        if (params->data && whole)
            r = vkt_upload(ctx, a->buffer, 0, params->data, whole);
        else if (!params->data)
            r = vkt_fill(ctx, a->buffer, 0, vkt_round_up(bytes, 4), 0);
        if (r == VKT_OK && params->data && bytes > whole) {
            uint32_t tail = 0; /* an upload has whole words of 4 bytes; u8 and f16 arrays may end within a word */
            memcpy(&tail, (const char *)params->data + whole, bytes - whole);
            r = vkt_upload(ctx, a->buffer, whole, &tail, sizeof tail);
        }
    }
    if (r == VKT_OK)
        *out = a;
    else
        vkt_array_destroy(&a);
    return r;
}

vkt_result vkt_array_create_shared(vkt_ctx *ctx, vkt_dtype dtype, vkt_shape shape, const char *name, vkt_array **out)
{
    vkt_array *a = NULL; /* gcc 12 does not see that array_new sets it */
    *out = NULL;
    VKT_TRY(array_new(ctx, dtype, shape, &a));
    const vkt_result r = vkt_buffer_create_shared(ctx, VKT_MEM_STAGING, a->bytes, name ? name : "shared", &a->buffer);
    if (r != VKT_OK) {
        vkt_free(&ctx->host, a); /* not vkt_array_destroy: it waits for submitted work, and this work may wait for a
                                  * gate (gpu/gpu.h) that the caller has not opened yet */
        return r;
    }
    memset(a->buffer->mapped, 0, a->buffer->bytes);
    *out = a;
    return VKT_OK;
}

/* ---- copies in other contexts, and hashes ---- */

vkt_array *vkt_array_in(vkt_array *a, const vkt_ctx *ctx)
{
    vkt_array *at = a;
    do {
        if (at->ctx == ctx) return at;
        at = at->next;
    } while (at && at != a);
    return NULL;
}

static void leave_ring(vkt_array *a)
{
    vkt_array *before = a->next;
    if (!before) return;
    while (before->next != a) before = before->next;
    before->next = before == a->next ? NULL : a->next;
}

/* Reads the bytes of `from` in pieces. If `to` is not NULL, copies the bytes to the array `to`. If `hash` is not NULL,
 * continues *hash with the bytes. */
static vkt_result read_bytes(const vkt_array *from, const vkt_array *to, uint64_t *hash)
{
    enum { PIECE_BYTES = 1 << 20 };
    const vkt_host *h = &(to ? to : from)->ctx->host;
    const uint64_t bytes = vkt_round_up(from->bytes, 4), piece = VKT_MIN(bytes, (uint64_t)PIECE_BYTES);
    void *room = vkt_alloc(h, piece);
    if (!room) return vkt_fail_nomem(h, "a piece of an array", piece);
    vkt_result r = VKT_OK;
    for (uint64_t at = 0; at < bytes && r == VKT_OK; at += piece) {
        const uint64_t n = VKT_MIN(piece, bytes - at);
        r = vkt_readback(from->ctx, from->buffer, at, room, n);
        if (r == VKT_OK && to) r = vkt_upload(to->ctx, to->buffer, at, room, n);
        if (r == VKT_OK && hash) *hash = vkt_hash(*hash, room, VKT_MIN(n, from->bytes - at));
    }
    vkt_free(h, room);
    return r;
}

vkt_result vkt_array_hash(const vkt_array *a, uint64_t *hash)
{
    return read_bytes(a, NULL, hash);
}

vkt_result vkt_array_copy(vkt_array *a, vkt_ctx *ctx, vkt_array **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, a);
    VKT_WANT(&a->ctx->host, ctx);
    VKT_WANT(&ctx->host, out);
    *out = NULL;
    if (vkt_array_in(a, ctx))
        return vkt_fail(&ctx->host, VKT_E_ARG, "array: want a context without this array and without a copy of it");
    vkt_array *copy;
    const vkt_array_params p = { .dtype = a->dtype, .shape = a->shape, .name = "copy of an array" };
    VKT_TRY(vkt_array_create(ctx, &p, &copy));
    const vkt_result r = read_bytes(a, copy, NULL);
    if (r == VKT_OK) {
        copy->next = a->next ? a->next : a;
        a->next = copy;
        *out = copy;
    } else {
        vkt_array_destroy(&copy);
    }
    return r;
}

void vkt_array_destroy(vkt_array **pa)
{
    vkt_array *a = pa ? *pa : NULL;
    if (!a) return;
    leave_ring(a);
    vkt_settle(a->ctx);
    for (int i = 0; i < 2; i++) vkt_commands_destroy(a->ctx, &a->handover[i].commands);
    vkt_buffer_destroy(a->ctx, &a->buffer);
    vkt_free(&a->ctx->host, a);
    *pa = NULL;
}

vkt_result vkt_array_write(vkt_array *a, uint64_t offset, const void *data, uint64_t bytes)
{
    VKT_WANT(NULL, a);
    if (offset > a->bytes || bytes > a->bytes - offset || offset % 4 || bytes % 4)
        return vkt_fail(&a->ctx->host, VKT_E_ARG, "array: want multiples of 4 within %llu bytes, got %llu at %llu",
                        (unsigned long long)a->bytes, (unsigned long long)bytes, (unsigned long long)offset);
    if (bytes) VKT_WANT(&a->ctx->host, data);
    return vkt_upload(a->ctx, a->buffer, offset, data, bytes);
}

void *vkt_array_map(vkt_array *a)
{
    if (!a) return NULL;
    return a->buffer->mapped;
}

uint64_t vkt_array_max_bytes(const vkt_ctx *ctx)
{
    if (!ctx) return 0;
    return VKT_MIN(ctx->limits.max_storage_range_bytes, ctx->limits.max_allocation_bytes);
}
