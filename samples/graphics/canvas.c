/* graphics/canvas.c - see canvas.h. */
#include "graphics/canvas.h"

#include "graphics/rgba_image.h"

static const stage_access drawn = { VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT,
                                    VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL },
                          copied_from = { VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_READ_BIT,
                                          VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL },
                          presented = { VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, VK_ACCESS_2_NONE,
                                        VK_IMAGE_LAYOUT_PRESENT_SRC_KHR };

vkt_result sheet_create(const device *d, VkExtent2D extent, gpu_image *out)
{
    return image_create(d, extent, VK_FORMAT_R8G8B8A8_UNORM,
                        VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT, out);
}

canvas canvas_of_sheet(const gpu_image *sheet)
{
    return (canvas){ sheet->handle, sheet->view, sheet->extent, VK_FORMAT_R8G8B8A8_UNORM, false };
}

void canvas_begin(const device *d, VkCommandBuffer cmd, const canvas *to)
{
    const stage_access before = { drawn.stage, VK_ACCESS_2_NONE, VK_IMAGE_LAYOUT_UNDEFINED };
    const VkRenderingAttachmentInfo colour = { .sType = VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO,
                                               .imageView = to->view,
                                               .imageLayout = drawn.layout,
                                               .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
                                               .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
                                               .clearValue.color.float32 = { 0.16f, 0.16f, 0.16f, 1 } };
    const VkRenderingInfo rendering = { .sType = VK_STRUCTURE_TYPE_RENDERING_INFO,
                                        .renderArea.extent = to->extent,
                                        .layerCount = 1,
                                        .colorAttachmentCount = 1,
                                        .pColorAttachments = &colour };
    /* For a window, frames_submit makes before.stage wait until the image is available. The barrier waits for the same
     * stage, so the layout changes only when the image is available. */
    image_barrier(d, cmd, to->image, before, drawn);
    d->vk.CmdBeginRendering(cmd, &rendering);
}

void canvas_draw(const device *d, VkCommandBuffer cmd, VkPipeline pipeline, rect r)
{
    const VkViewport viewport = { (float)r.x, (float)r.y, (float)r.width, (float)r.height, 0, 1 };
    const VkRect2D scissor = { { (int32_t)r.x, (int32_t)r.y }, { r.width, r.height } };
    d->vk.CmdSetViewport(cmd, 0, 1, &viewport);
    d->vk.CmdSetScissor(cmd, 0, 1, &scissor);
    d->vk.CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline);
    d->vk.CmdDraw(cmd, 3, 1, 0, 0);
}

void canvas_end(const device *d, VkCommandBuffer cmd, const canvas *to, const buffer *copy)
{
    stage_access now = drawn;
    if (copy) {
        const VkBufferImageCopy region = whole_image(to->extent);
        image_barrier(d, cmd, to->image, drawn, copied_from);
        d->vk.CmdCopyImageToBuffer(cmd, to->image, copied_from.layout, copy->handle, 1, &region);
        const VkMemoryBarrier2 host = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                        .srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT,
                                        .srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT,
                                        .dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT,
                                        .dstAccessMask = VK_ACCESS_2_HOST_READ_BIT };
        memory_barrier(d, cmd, &host);
        now = copied_from;
    }
    if (to->window) image_barrier(d, cmd, to->image, now, presented);
}

vkt_result canvas_copy_create(const device *d, const canvas *of, buffer *copy)
{
    const VkDeviceSize bytes = 4 * (VkDeviceSize)of->extent.width * of->extent.height;
    return buffer_create(d, bytes, VK_BUFFER_USAGE_TRANSFER_DST_BIT, copy);
}

vkt_result canvas_copy_write(const canvas *of, const buffer *copy, const char *path)
{
    const bool swapped = of->format == VK_FORMAT_B8G8R8A8_UNORM || of->format == VK_FORMAT_B8G8R8A8_SRGB;
    const rgba_image p = { of->extent.width, of->extent.height, copy->map };
    for (size_t i = 0; swapped && i < (size_t)p.width * p.height; i++) {
        const uint8_t blue = p.rgba[4 * i];
        p.rgba[4 * i] = p.rgba[4 * i + 2];
        p.rgba[4 * i + 2] = blue;
    }
    return rgba_image_write(&p, path);
}
