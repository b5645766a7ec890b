/* data/without/png_encode.c - replaces png_encode.c in a build without libpng. */
#include "data/png_encode.h"

vkt_result vkt_png_encode(const vkt_host *h, const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                          void **png, size_t *n)
{
    (void)pixels, (void)height, (void)width, (void)channels, (void)n;
    *png = NULL;
    return vkt_fail_without(h, "an image", "libpng", "PNG");
}
