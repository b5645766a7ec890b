/* view/picture.h - pictures in host memory: read, made up, written. */
#ifndef VIEW_PICTURE_H
#define VIEW_PICTURE_H

#include "vktrain/core.h"

typedef struct picture {
    uint32_t width, height;
    uint8_t *rgba; /* rows from the top, alpha 255 */
} picture;

/* A PNG or JPEG file, made smaller where a side is longer than `most` (vkt_image_read). Errors are said on stderr. */
vkt_result picture_read(const char *path, uint32_t most, uint64_t max_pixels, picture *out);
/* The sample's own: gradients, a shaded ball, edges at odd angles, stripes that become finer, small letters. The same
 * bytes everywhere, but for the last digit of sin. */
vkt_result picture_draw(uint32_t side, picture *out);
/* As PNG. VKT_E_IO, said on stderr. */
vkt_result picture_write(const picture *p, const char *path);
void picture_free(picture *p);

#endif
