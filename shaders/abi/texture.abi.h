/* texture.abi.h - an image and the array of its numbers. Pixel (x, y) is array row y * width + x, which has `channels`
 * floats. */
VKT_PUSH(vkt_texture_push, VKT_U32(width) VKT_U32(pixels) VKT_U32(channels) VKT_U32(lanes) /* lanes of the whole dispatch */)
#define TEXTURE_IMAGE 0
#define TEXTURE_ARRAY 1 /* f32 (pixels, channels) */
