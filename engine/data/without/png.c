/* data/without/png.c - replaces png.c in a build without libpng. */
#include "data/image.h"

vkt_result vkt_png_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                          vkt_image *out, uint32_t *orientation)
{
    (void)bytes, (void)n, (void)max_pixels, (void)out, (void)orientation;
    return vkt_fail_without(h, name, "libpng", "PNG");
}
