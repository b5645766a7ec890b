/* data/image.h - images: decodes JPEG and PNG from memory to upright 8-bit pixels, and resizes them.
 *
 * Each function reuses memory, and enlarges it if necessary. So a worker that decodes many images soon allocates
 * nothing here (but libjpeg does, by malloc). Threads: different memory, any thread. */
#ifndef VKT_IMAGE_H
#define VKT_IMAGE_H

#include "base/base.h"

/* The largest file. A limit is necessary because whole files are read. */
#define VKT_IMAGE_MAX_FILE_BYTES (UINT64_C(1) << 30)

/* Memory for reuse. Zeroed: none yet. */
typedef struct vkt_byte_buffer {
    uint8_t *p;
    size_t bytes;
} vkt_byte_buffer;
/* Enlarges the memory to n bytes, if it is smaller; then its content is lost. VKT_E_NOMEM. */
vkt_result vkt_byte_buffer_reserve(const vkt_host *h, vkt_byte_buffer *r, size_t n);

/* An image: height x width pixels, row-major; the channels of a pixel are neighbours. */
typedef struct vkt_image {
    uint32_t width, height, channels; /* 1: gray; 3: red, green, blue */
    vkt_byte_buffer pixels;
} vkt_image;
/* Reserves memory for an image of this size. Its pixels are undefined. The product is checked. VKT_E_NOMEM. */
vkt_result vkt_image_reserve(const vkt_host *h, vkt_image *image, uint32_t width, uint32_t height, uint32_t channels);

/* The memory of one thread. */
typedef struct vkt_image_scratch {
    vkt_image decoded, oriented;
    vkt_byte_buffer filter;
} vkt_image_scratch;
void vkt_image_scratch_free(const vkt_host *h, vkt_image_scratch *s);

/* Decodes `n` bytes of JPEG or PNG; the first bytes decide which. Rotates the image upright, by its EXIF orientation,
 * and converts it to gray or RGB. *out points into `s`.
 *
 * If a format allows a choice, the result is that of Pillow's convert("RGB") and convert("L"). Gray is, by ITU-R 601:
 *
 *     (19595 R + 38470 G + 7471 B + 32768) >> 16
 *
 * Alpha is dropped. CMYK is inverted, as Adobe writes it. Gamma and profiles are ignored. 16 bits are rounded to 8.
 *
 * VKT_E_FORMAT unless the data are one whole image that vkt_image_check_size allows. Examples: data that end early,
 * wrong codes or checksums, kinds that the decoders do not support. VKT_E_NOMEM. Messages begin with `name`. */
vkt_result vkt_image_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                            uint32_t channels, vkt_image_scratch *s, const vkt_image **out);

/* Decode a JPEG, and a PNG. The result is gray or RGB like the file, not rotated. *orientation is the EXIF number, 1
 * to 8. */
vkt_result vkt_jpeg_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                           vkt_image *out, uint32_t *orientation);
vkt_result vkt_png_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                          vkt_image *out, uint32_t *orientation);
/* Refuses images without pixels, and images with more than max_pixels. If max_pixels is 0, the limit depends on the `n`
 * bytes of the file: 2^24 + 64 n pixels, at most 2^27, and sides of at most 65535 (JPEG's own limit). */
vkt_result vkt_image_check_size(const vkt_host *h, const char *name, uint64_t width, uint64_t height, size_t n,
                                uint64_t max_pixels);

/* Returns the orientation in EXIF data, 1 to 8 (CIPA DC-008, tag 0x0112 of the 0th IFD). `tiff` begins with the TIFF
 * header. Returns 1, upright, if there is none or the data are malformed. */
uint32_t vkt_exif_orientation(const uint8_t *tiff, size_t n);

/* Resizes to width x height, both 1 or more, by a triangle filter (bilinear with antialiasing). If the image shrinks,
 * the scale widens the filter. The result equals Pillow's bit for bit; see resize.c. `planes` (channels * height *
 * width bytes) gets the result channel by channel. `in` may be the image of vkt_image_decode with the same scratch. */
vkt_result vkt_image_resize(const vkt_host *h, const vkt_image *in, uint32_t width, uint32_t height,
                            vkt_image_scratch *s, uint8_t *planes);

#endif
