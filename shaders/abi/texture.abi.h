/* texture.abi.h - a rectangle of an image, and the array of its numbers. Pixel (x, y) of the rectangle is array row
 * y * width + x, which has `channels` floats. The dispatch copies the rows first .. first + pixels - 1 of the array. */
VKT_PUSH(vkt_texture_push, VKT_U32(left) VKT_U32(top) /* pixel (0, 0) of the rectangle, in the image */
         VKT_U32(width) VKT_U32(first) VKT_U32(pixels) VKT_U32(channels) VKT_U32(lanes) /* lanes of the whole dispatch */)
#define TEXTURE_IMAGE 0
#define TEXTURE_ARRAY 1 /* f32 (pixels, channels) */
