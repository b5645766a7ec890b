/* view/upload.h - uploads images from the host to the device. */
#ifndef VIEW_UPLOAD_H
#define VIEW_UPLOAD_H

#include "view/frames.h"
#include "view/rgba_image.h"

/* The usage of an image that is uploaded. */
#define UPLOAD_USAGE (VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT)

/* Records the copy of a whole image from a buffer. The old content is lost. If an earlier frame still reads the old
 * content, the copy waits. */
void upload_record(const device *d, VkCommandBuffer cmd, const buffer *from, const gpu_image *to);
/* Uploads an image in a frame of `f` and waits until that is done. *out has the format R8G8B8A8_UNORM, the usage
 * SAMPLED and the layout SHADER_READ_ONLY_OPTIMAL, for fragment and compute shaders. Destroy *out in any case. */
vkt_result upload_image(const device *d, frames *f, const rgba_image *p, gpu_image *out);

#endif
