/* graphics/upload.h - uploads images from the host to the device. */
#ifndef GRAPHICS_UPLOAD_H
#define GRAPHICS_UPLOAD_H

#include "graphics/frames.h"
#include "graphics/rgba_image.h"

/* The usage of an image that is uploaded. */
#define UPLOAD_USAGE (VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT)

/* Records a copy from a buffer to a whole image. The image's old content is lost. If an earlier frame still reads the
 * old content, the copy waits. */
void upload_record(const device *d, VkCommandBuffer cmd, const buffer *from, const gpu_image *to);
/* Creates *out, copies the pixels of *p to it in a frame of `f`, and waits until the frame is done. *out has the format
 * R8G8B8A8_UNORM, the usage UPLOAD_USAGE and the layout SHADER_READ_ONLY_OPTIMAL, for fragment and compute shaders.
 * Destroy *out also after an error. */
vkt_result upload_image(const device *d, frames *f, const rgba_image *p, gpu_image *out);

#endif
