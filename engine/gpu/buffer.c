/* gpu/buffer.c - creates and destroys buffers. The memory of a buffer is a range of a memory block (memory.c), or
 * imported host memory (shared.c). An application can also lend a buffer. */
#include "gpu/internal.h"

/* Creates the handle and the memory of *buf. After a failure, the caller frees what exists with vkt_buffer_destroy. */
static vkt_result fill_buffer(vkt_ctx *ctx, vkt_memory_kind kind, vkt_buffer *buf)
{
    if (kind == VKT_MEMORY_SHARED && vkt_import(ctx, buf)) return VKT_OK;
    VKT_TRY(vkt_vk_check(ctx, vkt_handle_create(ctx, buf->bytes, NULL, &buf->handle), "vkCreateBuffer"));
    VkMemoryRequirements need;
    ctx->vk.GetBufferMemoryRequirements(ctx->device, buf->handle, &need);
    VkDeviceMemory memory;
    VKT_TRY(vkt_memory_allocate(ctx, kind, &need, buf, &memory));
    return vkt_vk_check(ctx, ctx->vk.BindBufferMemory(ctx->device, buf->handle, memory, buf->block_offset),
                        "vkBindBufferMemory");
}

vkt_result vkt_buffer_create(vkt_ctx *ctx, vkt_memory_kind kind, vkt_mem_class cls, uint64_t bytes, const char *name,
                             vkt_buffer **out)
{
    char want[24], most[24];
    VKT_TRY(vkt_lost_check(ctx, "creating a buffer"));
    if (bytes == 0 || (unsigned)cls >= VKT_MEM_CLASS_COUNT)
        return vkt_fail(&ctx->host, VKT_E_ARG, "buffer \"%s\": want 1 byte or more of a known class", name ? name : "");
    if (bytes > ctx->limits.max_allocation_bytes)
        return vkt_fail(&ctx->host, VKT_E_DEVICE_MEMORY, "buffer \"%s\": want %s, the device's largest is %s",
                        name ? name : "", vkt_bytes_text(bytes, want),
                        vkt_bytes_text(ctx->limits.max_allocation_bytes, most));
    vkt_buffer *buf = vkt_alloc(&ctx->host, sizeof *buf);
    if (!buf) return vkt_fail_nomem(&ctx->host, "a buffer", sizeof *buf);
    buf->cls = cls;
    buf->bytes = vkt_round_up(bytes, VKT_ALIGN_BYTES);
    buf->usage = VKT_BUFFER_USAGE;
    const vkt_result r = fill_buffer(ctx, kind, buf);
    if (r != VKT_OK) {
        vkt_buffer_destroy(ctx, &buf);
        return r;
    }
    ctx->counters.buffers_created++;
    vkt_name(ctx, VK_OBJECT_TYPE_BUFFER, (uint64_t)buf->handle, name);
    vkt_log_line(&ctx->host, VKT_LOG_DEBUG, "memory: %s for \"%s\" (%s), %s in use", vkt_bytes_text(buf->bytes, want),
                 name ? name : "", vkt_mem_class_name(cls), vkt_bytes_text(vkt_memory_used(ctx), most));
    *out = buf;
    return VKT_OK;
}

vkt_result vkt_buffer_adopt(vkt_ctx *ctx, const vkt_vk_buffer *at, VkBufferUsageFlags usage, vkt_buffer **out)
{
    if (!at->buffer || at->bytes == 0 || at->offset_bytes % VKT_ALIGN_BYTES ||
        !(usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT))
        return vkt_fail(&ctx->host, VKT_E_ARG,
                        "adopting a buffer: want a storage buffer from a multiple of %d bytes on, got %llu bytes from "
                        "%llu, usage 0x%x",
                        VKT_ALIGN_BYTES, (unsigned long long)at->bytes, (unsigned long long)at->offset_bytes, usage);
    vkt_buffer *buf = vkt_alloc(&ctx->host, sizeof *buf);
    if (!buf) return vkt_fail_nomem(&ctx->host, "a buffer", sizeof *buf);
    *buf = (vkt_buffer){ .handle = at->buffer,
                         .base_bytes = at->offset_bytes,
                         .bytes = at->bytes,
                         .usage = usage,
                         .lent = true,
                         .cls = VKT_MEM_OTHER };
    *out = buf;
    return VKT_OK;
}

void vkt_buffer_destroy(vkt_ctx *ctx, vkt_buffer **buffer)
{
    vkt_buffer *buf = *buffer;
    if (!buf) return;
    vkt_upload_finish(ctx, buf);
    if (!buf->lent) VKT_DROP(ctx, Buffer, buf->handle);
    vkt_import_free(ctx, buf);
    vkt_memory_free(ctx, buf);
    vkt_free(&ctx->host, buf);
    *buffer = NULL;
}

vkt_result vkt_buffer_create_shared(vkt_ctx *ctx, vkt_mem_class cls, uint64_t bytes, const char *name, vkt_buffer **out)
{
    return vkt_buffer_create(ctx, VKT_MEMORY_SHARED, cls, bytes, name, out);
}
