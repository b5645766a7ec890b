/* record/texture.h - the formats of images of an application. texture.c has the copies. */
#ifndef VKT_TEXTURE_H
#define VKT_TEXTURE_H

#include "record/record.h"

/* A format of images that shaders can read. */
typedef struct vkt_texture_format {
    VkFormat format;
    const char *name;           /* without VK_FORMAT_ */
    VkImageAspectFlags aspects; /* aspects of an image of this format */
    vkt_kernel_id storage[2];   /* kernels for storage images: [0] reads, [1] writes; VKT_K_NONE: only sampled */
} vkt_texture_format;
/* Returns a format; NULL: the library does not support it. */
const vkt_texture_format *vkt_texture_format_find(VkFormat f);
/* Returns the names of all formats, for messages. */
const char *vkt_texture_format_names(void);
/* Returns the kernel that reads or writes storage images of the format on this device; VKT_K_NONE: it cannot. */
vkt_kernel_id vkt_texture_kernel(const vkt_ctx *ctx, const vkt_texture_format *f, bool write);

#endif
