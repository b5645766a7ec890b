/* data/png_encode.c - see png_encode.h. */
#include "data/png_encode.h"

#include <png.h>

vkt_result vkt_png_encode(const vkt_host *h, const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                          void **png, size_t *n)
{
    png_image image = { .version = PNG_IMAGE_VERSION, .width = width, .height = height };
    image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
    png_alloc_size_t room = 0;
    *png = NULL;
    if (!png_image_write_to_memory(&image, NULL, &room, 0, pixels, 0, NULL))
        return vkt_fail(h, VKT_E_IO, "an image cannot be encoded: %s", image.message);
    *png = vkt_alloc(h, room);
    if (!*png) return vkt_fail_nomem(h, "an image", room);
    if (!png_image_write_to_memory(&image, *png, &room, 0, pixels, 0, NULL)) {
        vkt_free(h, *png);
        *png = NULL;
        return vkt_fail(h, VKT_E_IO, "an image cannot be encoded: %s", image.message);
    }
    *n = room;
    return VKT_OK;
}
