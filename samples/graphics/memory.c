/* graphics/memory.c - buffers and images: see device.h. They are few, so each has an allocation of its own. */
#include <stdio.h>

#include "common/message.h"

#include "graphics/device.h"

static vkt_result allocate(const device *d, const VkMemoryRequirements *want, VkMemoryPropertyFlags flags,
                           VkDeviceMemory *out)
{
    for (uint32_t i = 0; i < d->memory.memoryTypeCount; i++) {
        const bool fits = (want->memoryTypeBits & 1u << i) != 0;
        if (!fits || (d->memory.memoryTypes[i].propertyFlags & flags) != flags) continue;
        const VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                            .allocationSize = want->size,
                                            .memoryTypeIndex = i };
        TRY_VK(&d->vk, AllocateMemory, d->handle, &info, NULL, out);
        return VKT_OK;
    }
    complain("no memory type with the properties 0x%x", (unsigned)flags);
    return VKT_E_DEVICE_MEMORY;
}

vkt_result buffer_create(const device *d, VkDeviceSize bytes, VkBufferUsageFlags usage, buffer *out)
{
    const VkBufferCreateInfo info = { .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage };
    VkMemoryRequirements want;
    TRY_VK(&d->vk, CreateBuffer, d->handle, &info, NULL, &out->handle);
    d->vk.GetBufferMemoryRequirements(d->handle, out->handle, &want);
    TRY(allocate(d, &want, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, &out->memory));
    TRY_VK(&d->vk, BindBufferMemory, d->handle, out->handle, out->memory, 0);
    TRY_VK(&d->vk, MapMemory, d->handle, out->memory, 0, VK_WHOLE_SIZE, 0, &out->map);
    return VKT_OK;
}

void buffer_destroy(const device *d, buffer *b)
{
    if (b->handle) d->vk.DestroyBuffer(d->handle, b->handle, NULL);
    if (b->memory) d->vk.FreeMemory(d->handle, b->memory, NULL);
    *b = (buffer){ .map = NULL };
}

vkt_result view_create(const device *d, VkImage image, VkFormat format, VkImageView *out)
{
    const VkImageViewCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
        .image = image,
        .viewType = VK_IMAGE_VIEW_TYPE_2D,
        .format = format,
        .subresourceRange = { .aspectMask = VK_IMAGE_ASPECT_COLOR_BIT, .levelCount = 1, .layerCount = 1 }
    };
    TRY_VK(&d->vk, CreateImageView, d->handle, &info, NULL, out);
    return VKT_OK;
}

vkt_result image_create(const device *d, VkExtent2D extent, VkFormat format, VkImageUsageFlags usage, gpu_image *out)
{
    const VkImageCreateInfo info = { .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                     .imageType = VK_IMAGE_TYPE_2D,
                                     .format = format,
                                     .extent = { extent.width, extent.height, 1 },
                                     .mipLevels = 1,
                                     .arrayLayers = 1,
                                     .samples = VK_SAMPLE_COUNT_1_BIT,
                                     .usage = usage };
    VkMemoryRequirements want;
    out->extent = extent;
    TRY_VK(&d->vk, CreateImage, d->handle, &info, NULL, &out->handle);
    d->vk.GetImageMemoryRequirements(d->handle, out->handle, &want);
    TRY(allocate(d, &want, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, &out->memory));
    TRY_VK(&d->vk, BindImageMemory, d->handle, out->handle, out->memory, 0);
    return view_create(d, out->handle, format, &out->view);
}

void image_destroy(const device *d, gpu_image *i)
{
    if (i->view) d->vk.DestroyImageView(d->handle, i->view, NULL);
    if (i->handle) d->vk.DestroyImage(d->handle, i->handle, NULL);
    if (i->memory) d->vk.FreeMemory(d->handle, i->memory, NULL);
    *i = (gpu_image){ .handle = VK_NULL_HANDLE };
}

void image_barrier(const device *d, VkCommandBuffer cmd, VkImage image, stage_access from, stage_access to)
{
    const VkImageMemoryBarrier2 barrier = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2,
        .srcStageMask = from.stage,
        .srcAccessMask = from.access,
        .dstStageMask = to.stage,
        .dstAccessMask = to.access,
        .oldLayout = from.layout,
        .newLayout = to.layout,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = image,
        .subresourceRange = { .aspectMask = VK_IMAGE_ASPECT_COLOR_BIT, .levelCount = 1, .layerCount = 1 },
    };
    const VkDependencyInfo info = { .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                    .imageMemoryBarrierCount = 1,
                                    .pImageMemoryBarriers = &barrier };
    d->vk.CmdPipelineBarrier2(cmd, &info);
}

VkBufferImageCopy whole_image(VkExtent2D extent)
{
    return (VkBufferImageCopy){ .imageSubresource = { .aspectMask = VK_IMAGE_ASPECT_COLOR_BIT, .layerCount = 1 },
                                .imageExtent = { extent.width, extent.height, 1 } };
}

void memory_barrier(const device *d, VkCommandBuffer cmd, const VkMemoryBarrier2 *barrier)
{
    const VkDependencyInfo info = { .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                    .memoryBarrierCount = 1,
                                    .pMemoryBarriers = barrier };
    d->vk.CmdPipelineBarrier2(cmd, &info);
}
