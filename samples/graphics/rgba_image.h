/* graphics/rgba_image.h - images in host memory: reads and writes them. */
#ifndef GRAPHICS_RGBA_IMAGE_H
#define GRAPHICS_RGBA_IMAGE_H

#include "vktrain/core.h"

typedef struct rgba_image {
    uint32_t width, height;
    uint8_t *rgba; /* rows from the top, alpha 255 */
} rgba_image;

/* Reads a PNG or JPEG file. If the longer side has more than `most` pixels (0: no limit), the image is scaled
 * down so that this side has `most` pixels. For `max_pixels` and the errors, see vkt_image_read. Prints errors on
 * stderr. */
vkt_result rgba_image_read(const char *path, uint32_t most, uint64_t max_pixels, rgba_image *out);
/* Writes a PNG file. VKT_E_IO or VKT_E_NOMEM, with a message on stderr. */
vkt_result rgba_image_write(const rgba_image *p, const char *path);
void rgba_image_free(rgba_image *p);

#endif
