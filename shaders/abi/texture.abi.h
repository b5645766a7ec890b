/* texture.abi.h - copies between a rectangle of an image and an array of floats. Pixel (x, y) of the rectangle is row
 * y * width + x of the array. A row has `channels` floats. The dispatch copies rows first .. first + pixels - 1. */
VKT_PUSH(vkt_texture_push, VKT_U32(left) VKT_U32(top) /* position of the rectangle's pixel (0, 0) in the image */
         VKT_U32(width) VKT_U32(first) VKT_U32(pixels) VKT_U32(channels) VKT_U32(lanes) /* lanes of the whole dispatch */)
#define TEXTURE_IMAGE 0
#define TEXTURE_ARRAY 1 /* f32 (all pixels of the rectangle, channels) */
