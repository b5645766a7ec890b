/* gpu/transfer.c - staging rings: copies from host memory to the device, and back.
 *
 * A transfer is split into pieces. Uploads use one host-visible ring. A piece of an upload needs a region at the head
 * of the ring, and one of SLOTS command buffers. Regions and command buffers become free in order, when the
 * submission of their piece is done. The position of a region only grows from piece to piece. The offset of the region
 * in the ring is its position modulo the size of the ring. A region never wraps around the end of the ring. Readbacks
 * use one host-visible buffer of two halves. The host copies from one half while the device fills the other half.
 *
 * A small program needs little memory: the ring and the readback buffer are created at the first use, and are only as
 * large as this use needs. Later, an upload that is larger than a quarter of the ring replaces the ring by a larger
 * ring. The largest ring has `most` bytes, which vkt_ctx_params.staging_bytes determines. A readback that is larger
 * than half of the readback buffer replaces that buffer by a larger buffer. The largest readback buffer has `most` / 2
 * bytes. If there is no memory for a larger ring or buffer, the pieces are smaller.
 *
 * If submissions still use a ring when it is replaced, the ring is freed later. To wait for these submissions could
 * take forever: they may wait for a gate that this thread has not opened yet. vkt_queue_submit keeps pieces in order,
 * and lets a piece wait for compute work. */
#include "gpu/internal.h"

#define SLOTS 16u
/* The largest number of replaced rings that are still in use. 64 are more than enough, because each ring that replaces
 * a ring in use is at least twice as large. */
#define RETIRED 64u

typedef struct slot {
    vkt_commands commands;
    uint64_t value; /* timeline value that its newest submission signals; 0: never used */
    uint64_t end;   /* end of its region, which becomes the ring's tail when the submission is done */
} slot;

/* A replaced ring. */
typedef struct retired {
    vkt_buffer *ring;
    uint64_t value; /* when the timeline of the transfer queue has reached this value, no submission uses the ring */
} retired;

struct vkt_transfer {
    uint64_t most; /* largest size of the ring, in bytes; a piece has at most a quarter of `most` */
    vkt_buffer *ring;
    uint64_t head, tail; /* positions: the ring is in use from tail to head */
    retired retired[RETIRED];
    uint32_t n_retired;
    uint64_t full_bytes; /* vkt_memory_used at the last time when there was no memory for a ring or readback buffer of
                          * the wanted size; 0: there was always memory. A larger ring or buffer is tried again only
                          * when vkt_memory_used is smaller */
    slot slots[SLOTS];
    uint32_t newest; /* newest slot; the slot after it is the oldest */
    vkt_buffer *back;
    vkt_commands back_commands[2];
};

vkt_result vkt_transfers_create(vkt_ctx *ctx)
{
    ctx->transfers = vkt_alloc(&ctx->host, sizeof *ctx->transfers);
    if (!ctx->transfers) return vkt_fail_nomem(&ctx->host, "the staging rings", sizeof *ctx->transfers);
    const uint64_t most = ctx->staging_bytes ? ctx->staging_bytes : VKT_RING_BYTES;
    ctx->transfers->most = VKT_MAX(most / VKT_RING_FIRST, 1) * VKT_RING_FIRST;
    return VKT_OK;
}

/* Returns the largest size of a piece, in bytes. */
static uint64_t piece_bytes(const vkt_ctx *ctx)
{
    return ctx->transfers->most / 4;
}

static bool is_no_memory(vkt_result r)
{
    return r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY;
}

/* Creates a buffer of `bytes` bytes. While there is no memory for it, halves the size, but not below `least`. If there
 * is no memory for `least` bytes either, the function fails. It logs this failure only if `must` is set. */
static vkt_result create_largest(vkt_ctx *ctx, vkt_memory_kind kind, uint64_t bytes, uint64_t least, bool must,
                                 const char *name, vkt_buffer **out)
{
    uint64_t size = bytes;
    vkt_result r = VKT_OK;
    for (;; size = VKT_MAX(size / 2, least)) {
        vkt_memory_quiet(ctx, size > least || !must);
        r = vkt_buffer_create(ctx, kind, VKT_MEM_STAGING, size, name, out);
        vkt_memory_quiet(ctx, false);
        if (size == least || !is_no_memory(r)) break;
    }
    if (size < bytes || r != VKT_OK) ctx->transfers->full_bytes = vkt_memory_used(ctx);
    return r;
}

/* Returns whether a buffer of `bytes` bytes is to replace `now`. If there was no memory for a larger buffer before, a
 * larger buffer is tried again only if the memory in use has shrunk since. */
static bool is_too_small(const vkt_ctx *ctx, const vkt_buffer *now, uint64_t bytes)
{
    const uint64_t full_bytes = ctx->transfers->full_bytes;
    return !now || (now->bytes < bytes && (full_bytes == 0 || vkt_memory_used(ctx) < full_bytes));
}

/* Returns the size of a ring for pieces of `bytes` bytes: VKT_RING_FIRST, doubled until the ring has four times the
 * size of a piece, but at most the largest size of the ring. */
static uint64_t ring_for(const vkt_ctx *ctx, uint64_t bytes)
{
    uint64_t size = VKT_RING_FIRST;
    while (size < 4 * bytes) size *= 2;
    return VKT_MIN(size, ctx->transfers->most);
}

void vkt_transfers_empty(vkt_ctx *ctx)
{
    vkt_transfer *t = ctx->transfers;
    for (uint32_t i = 0; i < SLOTS; i++) vkt_commands_destroy(ctx, &t->slots[i].commands);
    for (uint32_t i = 0; i < 2; i++) vkt_commands_destroy(ctx, &t->back_commands[i]);
    for (uint32_t i = 0; i < t->n_retired; i++) vkt_buffer_destroy(ctx, &t->retired[i].ring);
    vkt_buffer_destroy(ctx, &t->ring);
    vkt_buffer_destroy(ctx, &t->back);
    *t = (vkt_transfer){ .most = t->most };
}

void vkt_transfers_destroy(vkt_ctx *ctx)
{
    if (!ctx->transfers) return;
    vkt_transfers_empty(ctx);
    vkt_free(&ctx->host, ctx->transfers);
    ctx->transfers = NULL;
}

/* Checks offset and size of a transfer, and that the buffer has the usage for this transfer. */
static vkt_result check(vkt_ctx *ctx, const char *what, const vkt_buffer *b, uint64_t offset, uint64_t bytes,
                        VkBufferUsageFlags usage)
{
    VKT_TRY(vkt_lost_check(ctx, what));
    if (!(b->usage & usage))
        return vkt_fail(&ctx->host, VKT_E_STATE, "%s: the application's buffer was made without the usage %s", what,
                        usage == VK_BUFFER_USAGE_TRANSFER_DST_BIT ? "TRANSFER_DST" : "TRANSFER_SRC");
    if (offset % 4 == 0 && bytes % 4 == 0 && offset <= b->bytes && bytes <= b->bytes - offset) return VKT_OK;
    return vkt_fail(&ctx->host, VKT_E_ARG,
                    "%s: want multiples of 4 inside a buffer of %llu bytes, got offset %llu, %llu bytes", what,
                    (unsigned long long)b->bytes, (unsigned long long)offset, (unsigned long long)bytes);
}

/* ---- upload and fill ---- */

/* Stores the oldest slot, ready for recording, in *out. Waits while the slot's submission runs. */
static vkt_result next_slot(vkt_ctx *ctx, slot **out)
{
    vkt_transfer *t = ctx->transfers;
    slot *s = &t->slots[(t->newest + 1) % SLOTS];
    VKT_TRY(vkt_queue_wait(ctx, vkt_transfer_queue(ctx), s->value));
    t->tail = VKT_MAX(t->tail, s->end);
    if (!s->commands.pool)
        VKT_TRY(vkt_commands_create_for(ctx, vkt_transfer_queue(ctx)->family, "upload", &s->commands));
    t->newest = (t->newest + 1) % SLOTS;
    *out = s;
    return VKT_OK;
}

/* Frees the replaced rings that are not in use any more. */
static void free_retired(vkt_ctx *ctx)
{
    vkt_transfer *t = ctx->transfers;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->n_retired; i++)
        if (vkt_queue_reached(ctx, vkt_transfer_queue(ctx), t->retired[i].value))
            vkt_buffer_destroy(ctx, &t->retired[i].ring);
        else
            t->retired[kept++] = t->retired[i];
    t->n_retired = kept;
}

/* Returns the timeline value of the newest submission, an upload or a fill. When this submission is done, no submission
 * uses the ring. */
static uint64_t last_use(const vkt_transfer *t)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < SLOTS; i++) last = VKT_MAX(last, t->slots[i].value);
    return last;
}

/* Makes `ring` the ring for uploads. NULL: from now on there is no ring. */
static void ring_take(vkt_transfer *t, vkt_buffer *ring)
{
    t->ring = ring;
    t->head = t->tail = 0;
    for (uint32_t i = 0; i < SLOTS; i++) t->slots[i].end = 0;
}

/* Waits until no submission uses the ring, and destroys it. */
static vkt_result ring_close(vkt_ctx *ctx)
{
    VKT_TRY(vkt_queue_wait(ctx, vkt_transfer_queue(ctx), last_use(ctx->transfers)));
    free_retired(ctx);
    vkt_buffer_destroy(ctx, &ctx->transfers->ring);
    ring_take(ctx->transfers, NULL);
    return VKT_OK;
}

/* Replaces the ring, which submissions still use, by a ring of `size` bytes. If there is no memory for this size, the
 * new ring is smaller, but at least twice as large as the old ring. Does nothing if no such ring is possible. */
static vkt_result ring_replace(vkt_ctx *ctx, uint64_t size)
{
    vkt_transfer *t = ctx->transfers;
    const uint64_t least = 2 * t->ring->bytes;
    vkt_buffer *larger;
    if (size < least) return VKT_OK;
    const vkt_result r = create_largest(ctx, VKT_MEMORY_UPLOAD, size, least, false, "upload ring", &larger);
    if (r != VKT_OK) return is_no_memory(r) ? VKT_OK : r;
    t->retired[t->n_retired++] = (retired){ t->ring, last_use(t) };
    ring_take(t, larger);
    return VKT_OK;
}

/* Makes the ring large enough for pieces of `bytes` bytes, if there is memory for such a ring. An old ring that is not
 * in use is destroyed first, because there may be no memory for two rings. */
static vkt_result ring_open(vkt_ctx *ctx, uint64_t bytes)
{
    vkt_transfer *t = ctx->transfers;
    const uint64_t size = ring_for(ctx, bytes), least = VKT_RING_FIRST;
    if (t->n_retired) free_retired(ctx);
    if (!is_too_small(ctx, t->ring, size)) return VKT_OK;
    if (t->ring && t->n_retired < RETIRED && !vkt_queue_reached(ctx, vkt_transfer_queue(ctx), last_use(t)))
        return ring_replace(ctx, size);
    if (t->ring) VKT_TRY(ring_close(ctx));
    const vkt_result r = create_largest(ctx, VKT_MEMORY_UPLOAD, size, least, !t->back, "upload ring", &t->ring);
    if (!is_no_memory(r) || !t->back) return r;
    vkt_buffer_destroy(ctx, &t->back); /* this frees memory for a small ring */
    return create_largest(ctx, VKT_MEMORY_UPLOAD, least, least, true, "upload ring", &t->ring);
}

/* Reserves `bytes` bytes of the ring, at most a quarter of it. *position gets their position. Waits while earlier
 * pieces use these bytes. */
static vkt_result ring_reserve(vkt_ctx *ctx, uint64_t bytes, uint64_t *position)
{
    vkt_transfer *t = ctx->transfers;
    const uint64_t size = t->ring->bytes, rest = size - t->head % size;
    const uint64_t start = bytes > rest ? t->head + rest : t->head;
    for (uint32_t i = 1; i < SLOTS && start + bytes - t->tail > size; i++) {
        const slot *oldest = &t->slots[(t->newest + i) % SLOTS];
        VKT_TRY(vkt_queue_wait(ctx, vkt_transfer_queue(ctx), oldest->value));
        t->tail = VKT_MAX(t->tail, oldest->end);
    }
    *position = start;
    t->head = start + bytes;
    return VKT_OK;
}

/* Ends the slot's commands, which write `dst`, and submits them after the compute submission `after`. */
static vkt_result slot_submit(vkt_ctx *ctx, slot *s, vkt_buffer *dst, uint64_t after, const char *label)
{
    const bool cross = ctx->has_transfer_queue && after > 0;
    VKT_TRY(vkt_commands_end(ctx, &s->commands));
    VKT_TRY(vkt_queue_submit(ctx, vkt_transfer_queue(ctx), s->commands.cmd, cross ? &ctx->compute : NULL, after, label,
                             &s->value));
    dst->upload = s->value;
    return VKT_OK;
}

static vkt_result upload_piece(vkt_ctx *ctx, vkt_buffer *dst, uint64_t offset, const void *src, uint64_t bytes,
                               uint64_t after)
{
    vkt_transfer *t = ctx->transfers;
    slot *s;
    uint64_t at;
    VKT_TRY(next_slot(ctx, &s));
    VKT_TRY(ring_reserve(ctx, bytes, &at));
    s->end = t->head;
    const VkBufferCopy region = { .srcOffset = at % t->ring->bytes,
                                  .dstOffset = dst->base_bytes + offset,
                                  .size = bytes };
    memcpy((char *)t->ring->mapped + region.srcOffset, src, (size_t)bytes);
    VKT_TRY(vkt_commands_begin(ctx, &s->commands, false));
    ctx->vk.CmdCopyBuffer(s->commands.cmd, t->ring->handle, dst->handle, 1, &region);
    return slot_submit(ctx, s, dst, after, "upload");
}

vkt_result vkt_upload_after(vkt_ctx *ctx, vkt_buffer *dst, uint64_t offset, const void *src, uint64_t bytes,
                            uint64_t after)
{
    VKT_TRY(check(ctx, "upload", dst, offset, bytes, VK_BUFFER_USAGE_TRANSFER_DST_BIT));
    if (bytes) VKT_TRY(ring_open(ctx, VKT_MIN(bytes, piece_bytes(ctx))));
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t n = VKT_MIN(bytes - done, ctx->transfers->ring->bytes / 4);
        VKT_TRY(upload_piece(ctx, dst, offset + done, (const char *)src + done, n, after));
        done += n;
    }
    return VKT_OK;
}

vkt_result vkt_upload(vkt_ctx *ctx, vkt_buffer *dst, uint64_t offset, const void *src, uint64_t bytes)
{
    return vkt_upload_after(ctx, dst, offset, src, bytes, ctx->compute.submitted);
}

vkt_result vkt_fill(vkt_ctx *ctx, vkt_buffer *dst, uint64_t offset, uint64_t bytes, uint32_t word)
{
    VKT_TRY(check(ctx, "fill", dst, offset, bytes, VK_BUFFER_USAGE_TRANSFER_DST_BIT));
    if (bytes == 0) return VKT_OK;
    slot *s;
    VKT_TRY(next_slot(ctx, &s));
    s->end = ctx->transfers->head;
    VKT_TRY(vkt_commands_begin(ctx, &s->commands, false));
    ctx->vk.CmdFillBuffer(s->commands.cmd, dst->handle, dst->base_bytes + offset, bytes, word);
    return slot_submit(ctx, s, dst, ctx->compute.submitted, "fill");
}

/* ---- readback ---- */

/* Makes each half of the readback buffer large enough for a piece of a transfer of `bytes` bytes, if there is memory
 * for such a buffer. Call this function only when no piece is pending. */
static vkt_result back_open(vkt_ctx *ctx, uint64_t bytes)
{
    vkt_transfer *t = ctx->transfers;
    for (uint32_t i = 0; i < 2; i++)
        if (!t->back_commands[i].pool)
            VKT_TRY(vkt_commands_create_for(ctx, vkt_transfer_queue(ctx)->family, "readback", &t->back_commands[i]));
    const uint64_t size = ring_for(ctx, VKT_MIN(bytes, piece_bytes(ctx))) / 2, least = VKT_RING_FIRST / 2;
    if (t->n_retired) free_retired(ctx);
    if (!is_too_small(ctx, t->back, size)) return VKT_OK;
    vkt_buffer_destroy(ctx, &t->back);
    const vkt_result r = create_largest(ctx, VKT_MEMORY_READBACK, size, least, !t->ring, "readback ring", &t->back);
    if (!is_no_memory(r) || !t->ring) return r;
    VKT_TRY(ring_close(ctx)); /* this frees memory for a small buffer */
    return create_largest(ctx, VKT_MEMORY_READBACK, least, least, true, "readback ring", &t->back);
}

/* Starts the copy of piece i into half i & 1 of the readback buffer. */
static vkt_result back_start(vkt_ctx *ctx, vkt_buffer *src, uint64_t offset, uint64_t bytes, uint64_t i,
                             uint64_t *value)
{
    vkt_transfer *t = ctx->transfers;
    vkt_commands *c = &t->back_commands[i & 1];
    const VkBufferCopy region = { .srcOffset = src->base_bytes + offset,
                                  .dstOffset = (i & 1) * t->back->bytes / 2,
                                  .size = bytes };
    const bool cross = ctx->has_transfer_queue && ctx->compute.submitted > 0;
    VKT_TRY(vkt_commands_begin(ctx, c, false));
    ctx->vk.CmdCopyBuffer(c->cmd, src->handle, t->back->handle, 1, &region);
    VKT_TRY(vkt_commands_end(ctx, c));
    return vkt_queue_submit(ctx, vkt_transfer_queue(ctx), c->cmd, cross ? &ctx->compute : NULL, ctx->compute.submitted,
                            "readback", value);
}

/* Copies all pieces. Iteration i starts the copy of piece i on the device, and the host reads the piece in iteration
 * i + 1. value[h]: timeline value of the newest submission that writes half h of the readback buffer. */
static vkt_result back_pieces(vkt_ctx *ctx, vkt_buffer *src, uint64_t offset, void *dst, uint64_t bytes,
                              uint64_t value[2])
{
    const uint64_t piece = ctx->transfers->back->bytes / 2, pieces = (bytes + piece - 1) / piece;
    for (uint64_t i = 0; i <= pieces; i++) {
        const uint64_t at = i * piece, last = at - piece;
        if (i < pieces) VKT_TRY(back_start(ctx, src, offset + at, VKT_MIN(bytes - at, piece), i, &value[i & 1]));
        if (i == 0) continue;
        VKT_TRY(vkt_queue_wait(ctx, vkt_transfer_queue(ctx), value[(i - 1) & 1]));
        const char *half = (const char *)ctx->transfers->back->mapped + ((i - 1) & 1) * piece;
        memcpy((char *)dst + last, half, (size_t)VKT_MIN(bytes - last, piece));
    }
    return VKT_OK;
}

vkt_result vkt_readback(vkt_ctx *ctx, vkt_buffer *src, uint64_t offset, void *dst, uint64_t bytes)
{
    VKT_TRY(check(ctx, "readback", src, offset, bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT));
    if (bytes == 0) return vkt_ctx_wait_idle(ctx);
    VKT_TRY(back_open(ctx, bytes));
    uint64_t value[2] = { 0 };
    const vkt_result r = back_pieces(ctx, src, offset, dst, bytes, value);
    /* A piece may still be running: its commands and `src` are in use until it is done. */
    if (r != VKT_OK && ctx->lost == VKT_OK)
        (void)vkt_queue_wait(ctx, vkt_transfer_queue(ctx), VKT_MAX(value[0], value[1]));
    return r;
}
