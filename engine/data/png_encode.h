/* data/png_encode.h - encodes an image as PNG. */
#ifndef VKT_PNG_ENCODE_H
#define VKT_PNG_ENCODE_H

#include "base/base.h"

/* Encodes height x width pixels of 1, 3 or 4 channels. *png gets *n new bytes; the caller frees *png with vkt_free.
 * VKT_E_NOMEM; VKT_E_IO: libpng refuses the image. VKT_E_UNSUPPORTED in a build without libpng. *png is NULL after a
 * failure. */
vkt_result vkt_png_encode(const vkt_host *h, const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels,
                          void **png, size_t *n);

#endif
