/* view/upload.h - pictures on their way from the host to the device. */
#ifndef VIEW_UPLOAD_H
#define VIEW_UPLOAD_H

#include "view/frames.h"
#include "view/picture.h"

/* Of what is uploaded. */
#define UPLOAD_USAGE (VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT)

/* Records the way of a whole picture from a buffer. What it held is lost; an earlier frame may still be reading it. */
void upload_record(const device *d, VkCommandBuffer cmd, const buffer *from, const picture_image *to);
/* A picture on the device, sent by a frame of `f` and waited for: R8G8B8A8_UNORM, SAMPLED, SHADER_READ_ONLY_OPTIMAL,
 * for fragment and compute shaders. Destroy *out in any case. */
vkt_result upload_picture(const device *d, frames *f, const picture *p, picture_image *out);

#endif
