/* gpu/shared.c - buffers in memory of the host that the device imports (VK_EXT_external_memory_host).
 *
 * The host reads and writes such memory like all its memory, through its caches. Memory that the driver allocates may
 * be uncached, or on the other side of a bus. Each buffer has its own VkDeviceMemory. The address and the size of
 * imported memory are multiples of ctx->host_import_align, in most cases the size of a page. Only coherent memory types
 * are used, because the engine never flushes mapped memory. */
#include "gpu/internal.h"

#define FROM_HOST VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT

/* Returns whether the device can import host memory for buffers with the usage VKT_BUFFER_USAGE. */
static bool can_import(const vkt_ctx *ctx)
{
    const VkPhysicalDeviceExternalBufferInfo info = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
                                                      .usage = VKT_BUFFER_USAGE,
                                                      .handleType = FROM_HOST };
    VkExternalBufferProperties offer = { .sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES };
    ctx->vk.GetPhysicalDeviceExternalBufferProperties(ctx->phys, &info, &offer);
    const VkExternalMemoryFeatureFlags features = offer.externalMemoryProperties.externalMemoryFeatures;
    return (features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) &&
           !(features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT);
}

void vkt_import_open(vkt_ctx *ctx)
{
    if (!ctx->has_host_import) return;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT
    };
    VkPhysicalDeviceProperties2 props = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &host };
    ctx->vk.GetPhysicalDeviceProperties2(ctx->phys, &props);
    const uint64_t align = ctx->host_import_align = host.minImportedHostPointerAlignment;
    ctx->has_host_import = ctx->vk.GetMemoryHostPointerPropertiesEXT && align && (align & (align - 1)) == 0 &&
                           !vkt_env_disabled("host_import") && can_import(ctx);
}

/* Allocates imported->bytes bytes of host memory. Returns their address, which is aligned; NULL: there is no memory.
 * The host's allocator has no argument for the alignment. So the allocation has (alignment - 1) more bytes. */
static void *allocate_aligned(vkt_ctx *ctx, vkt_imported *imported)
{
    const uint64_t align = ctx->host_import_align, bytes = imported->bytes + align - 1;
    imported->allocation = bytes <= SIZE_MAX ? vkt_realloc(&ctx->host, NULL, (size_t)bytes) : NULL;
    if (!imported->allocation) return NULL;
    const uintptr_t start = (uintptr_t)imported->allocation;
    return (char *)imported->allocation + (vkt_round_up(start, align) - start);
}

/* Imports imported->bytes bytes of host memory, which begin at the address `at`. Sets imported->memory. `allowed` has a
 * bit for each memory type that the buffer may have. After a failure, *step names the step that failed. */
static VkResult import_memory(vkt_ctx *ctx, void *at, uint32_t allowed, vkt_imported *imported, const char **step)
{
    VkMemoryHostPointerPropertiesEXT pointer = { .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT };
    *step = "vkGetMemoryHostPointerPropertiesEXT";
    VkResult r = ctx->vk.GetMemoryHostPointerPropertiesEXT(ctx->device, FROM_HOST, at, &pointer);
    if (r != VK_SUCCESS) return r;
    uint32_t order[VK_MAX_MEMORY_TYPES];
    *step = "the choice of a coherent memory type";
    if (!vkt_memory_types(ctx, VKT_MEMORY_SHARED, allowed & pointer.memoryTypeBits, order))
        return VK_ERROR_FEATURE_NOT_PRESENT;
    const VkImportMemoryHostPointerInfoEXT from = { .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
                                                    .handleType = FROM_HOST,
                                                    .pHostPointer = at };
    const VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .pNext = &from,
                                        .allocationSize = imported->bytes,
                                        .memoryTypeIndex = order[0] };
    *step = "vkAllocateMemory";
    ctx->counters.device_allocs++;
    r = ctx->vk.AllocateMemory(ctx->device, &info, ctx->allocation, &imported->memory);
    if (r != VK_SUCCESS) imported->memory = VK_NULL_HANDLE;
    return r;
}

/* Makes the handle of *buf and its memory, and binds the memory. After a failure, *step names the step that failed, and
 * *buf has what the earlier steps made. */
static VkResult make(vkt_ctx *ctx, vkt_buffer *buf, const char **step)
{
    const VkExternalMemoryBufferCreateInfo external = { .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                        .handleTypes = FROM_HOST };
    *step = "vkCreateBuffer";
    VkResult r = vkt_handle_create(ctx, buf->bytes, &external, &buf->handle);
    if (r != VK_SUCCESS) return r;
    VkMemoryRequirements need;
    ctx->vk.GetBufferMemoryRequirements(ctx->device, buf->handle, &need);
    const uint64_t bytes = vkt_round_up(need.size, ctx->host_import_align);
    *step = "room below the memory cap";
    if (!vkt_memory_take(ctx, buf->cls, bytes)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    buf->imported.bytes = bytes;
    *step = "host memory";
    buf->mapped = allocate_aligned(ctx, &buf->imported);
    if (!buf->mapped) return VK_ERROR_OUT_OF_HOST_MEMORY;
    r = import_memory(ctx, buf->mapped, need.memoryTypeBits, &buf->imported, step);
    if (r != VK_SUCCESS) return r;
    vkt_name(ctx, VK_OBJECT_TYPE_DEVICE_MEMORY, (uint64_t)buf->imported.memory, "imported");
    *step = "vkBindBufferMemory";
    return ctx->vk.BindBufferMemory(ctx->device, buf->handle, buf->imported.memory, 0);
}

bool vkt_import(vkt_ctx *ctx, vkt_buffer *buf)
{
    if (!ctx->has_host_import) return false;
    const char *step;
    const VkResult r = make(ctx, buf, &step);
    if (r == VK_SUCCESS) return true;
    char bytes[24];
    vkt_log_line(&ctx->host, VKT_LOG_DEBUG,
                 "memory: %s of the host cannot be imported (%s: %s); the driver allocates them",
                 vkt_bytes_text(buf->bytes, bytes), step, vkt_vk_result_name(r));
    VKT_DROP(ctx, Buffer, buf->handle);
    buf->handle = VK_NULL_HANDLE;
    buf->mapped = NULL;
    vkt_import_free(ctx, buf);
    return false;
}

void vkt_import_free(vkt_ctx *ctx, vkt_buffer *buf)
{
    vkt_imported *i = &buf->imported;
    if (i->memory && !vkt_is_forked(ctx)) ctx->vk.FreeMemory(ctx->device, i->memory, ctx->allocation);
    vkt_free(&ctx->host, i->allocation);
    if (i->bytes) vkt_memory_give(ctx, buf->cls, i->bytes);
    *i = (vkt_imported){ 0 };
}
