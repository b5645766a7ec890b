/* view/picture.h - images in host memory: reads, generates and writes them. */
#ifndef VIEW_PICTURE_H
#define VIEW_PICTURE_H

#include "vktrain/core.h"

typedef struct picture {
    uint32_t width, height;
    uint8_t *rgba; /* rows from the top, alpha 255 */
} picture;

/* Reads a PNG or JPEG file. Scales it down if a side is longer than `most` (vkt_image_read). Prints errors on stderr.
 */
vkt_result picture_read(const char *path, uint32_t most, uint64_t max_pixels, picture *out);
/* Generates the sample's own image: gradients, a shaded ball, edges at odd angles, stripes that become finer, small
 * letters. The bytes are the same everywhere, except for the last digit of sin. */
vkt_result picture_draw(uint32_t side, picture *out);
/* Writes a PNG file. VKT_E_IO, with a message on stderr. */
vkt_result picture_write(const picture *p, const char *path);
void picture_free(picture *p);

#endif
