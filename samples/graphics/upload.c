/* graphics/upload.c - see upload.h. */
#include "graphics/upload.h"

#include <string.h>

static const VkPipelineStageFlags2 readers =
    VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT | VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;

void upload_record(const device *d, VkCommandBuffer cmd, const buffer *from, const gpu_image *to)
{
    const stage_access before = { readers, VK_ACCESS_2_NONE, VK_IMAGE_LAYOUT_UNDEFINED },
                       copied = { VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                                  VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL },
                       sampled = { readers, VK_ACCESS_2_SHADER_SAMPLED_READ_BIT,
                                   VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL };
    const VkBufferImageCopy region = whole_image(to->extent);
    image_barrier(d, cmd, to->handle, before, copied);
    d->vk.CmdCopyBufferToImage(cmd, from->handle, to->handle, copied.layout, 1, &region);
    image_barrier(d, cmd, to->handle, copied, sampled);
}

static vkt_result send(const device *d, frames *f, const buffer *from, const gpu_image *to)
{
    frame *now;
    TRY(frames_begin(f, &now));
    upload_record(d, now->cmd, from, to);
    TRY(frames_submit(f, now, VK_NULL_HANDLE, VK_NULL_HANDLE));
    TRY_VK(&d->vk, DeviceWaitIdle, d->handle);
    return VKT_OK;
}

vkt_result upload_image(const device *d, frames *f, const rgba_image *p, gpu_image *out)
{
    const size_t bytes = 4 * (size_t)p->width * p->height;
    buffer staging = { 0 };
    TRY(image_create(d, (VkExtent2D){ p->width, p->height }, VK_FORMAT_R8G8B8A8_UNORM, UPLOAD_USAGE, out));
    vkt_result r = buffer_create(d, bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, &staging);
    if (r == VKT_OK) {
        memcpy(staging.map, p->rgba, bytes);
        r = send(d, f, &staging, out);
    }
    buffer_destroy(d, &staging);
    return r;
}
