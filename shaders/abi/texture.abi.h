/* texture.abi.h - a picture and the array of its numbers: pixel (x, y) has row y width + x, of `channels` floats. */
VKT_PUSH(vkt_texture_push, VKT_U32(width) VKT_U32(pixels) VKT_U32(channels) VKT_U32(lanes) /* of the whole dispatch */)
#define TEXTURE_IMAGE 0
#define TEXTURE_ARRAY 1 /* f32 (pixels, channels) */
