/* data/image.h - decodes JPEG and PNG from memory to upright 8-bit images, and resizes images.
 *
 * The functions reuse the memory for pixels, and enlarge it if necessary. So a worker that decodes many images soon
 * needs no new memory for pixels. For each image, libpng allocates by the host's allocator, and libjpeg by malloc.
 * Threads: any, if each thread uses its own vkt_image and vkt_image_scratch. */
#ifndef VKT_IMAGE_H
#define VKT_IMAGE_H

#include "base/base.h"

/* The largest file. A limit is necessary because whole files are read. */
#define VKT_IMAGE_MAX_FILE_BYTES (UINT64_C(1) << 30)

/* Memory that is reused. A zeroed buffer has no memory yet. */
typedef struct vkt_byte_buffer {
    uint8_t *p;
    size_t bytes;
} vkt_byte_buffer;
/* Makes the memory at least n bytes long. If the memory grows, its old content is lost. VKT_E_NOMEM. */
vkt_result vkt_byte_buffer_reserve(const vkt_host *h, vkt_byte_buffer *r, size_t n);

/* An image: height x width pixels, row-major; the channels of a pixel are neighbours. */
typedef struct vkt_image {
    uint32_t width, height, channels; /* 1 channel: gray; 3 channels: red, green, blue */
    vkt_byte_buffer pixels;
} vkt_image;
/* Reserves memory for an image of this size, with undefined pixels. VKT_E_NOMEM, also for more than PTRDIFF_MAX
 * bytes. */
vkt_result vkt_image_reserve(const vkt_host *h, vkt_image *image, uint32_t width, uint32_t height, uint32_t channels);

/* The memory that one thread reuses. */
typedef struct vkt_image_scratch {
    vkt_image decoded, oriented;
    vkt_byte_buffer filter;
} vkt_image_scratch;
void vkt_image_scratch_free(const vkt_host *h, vkt_image_scratch *s);

/* Decodes a JPEG or PNG file of `n` bytes in memory. The first bytes of the file show which format it has. Rotates or
 * mirrors the image upright, by its EXIF orientation, and converts it to gray (channels 1) or RGB (channels 3). *out
 * points into `s`.
 *
 * If a format leaves a choice to the decoder, the decoder chooses as Pillow's convert("RGB") or convert("L") does. Gray
 * is computed as in ITU-R 601:
 *
 *     (19595 * R + 38470 * G + 7471 * B + 32768) >> 16
 *
 * Alpha is dropped. CMYK values are read as inverted, because Adobe's programs write inverted values. Gamma and
 * profiles are ignored. 16 bits are rounded to 8 (Pillow does not round).
 *
 * VKT_E_FORMAT unless the data are one whole image that vkt_image_check_size allows. Examples of the error: data that
 * end early, wrong codes or checksums, features of a format that the decoders do not support. The error's message
 * begins with `name`. VKT_E_NOMEM. VKT_E_UNSUPPORTED: the library was built without a decoder for this format. */
vkt_result vkt_image_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                            uint32_t channels, vkt_image_scratch *s, const vkt_image **out);

/* Decode a JPEG, or a PNG. The result is gray if the file is gray, else RGB. The image is not rotated. *orientation is
 * the EXIF orientation, 1 to 8. Errors are those of vkt_image_decode. */
vkt_result vkt_jpeg_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                           vkt_image *out, uint32_t *orientation);
vkt_result vkt_png_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                          vkt_image *out, uint32_t *orientation);
/* Returns VKT_E_FORMAT for an image without pixels, or with more than max_pixels. If max_pixels is 0, an image from a
 * file of n bytes may have 2^24 + 64 * n pixels, but at most 2^27. In this case a side may have at most 65535 pixels,
 * which is JPEG's own limit. */
vkt_result vkt_image_check_size(const vkt_host *h, const char *name, uint64_t width, uint64_t height, size_t n,
                                uint64_t max_pixels);

/* Returns the orientation in EXIF data, 1 to 8 (CIPA DC-008, tag 0x0112 of the 0th IFD). `tiff` begins with the TIFF
 * header. Returns 1 (upright) if the data have no orientation or are malformed. */
uint32_t vkt_exif_orientation(const uint8_t *tiff, size_t n);

/* Resizes to width x height, both 1 or more, by a triangle filter (bilinear with antialiasing). If the image shrinks,
 * the filter is wider by the same factor. The bytes are the same as in Pillow (see resize.c). `planes` gets the result
 * channel by channel, channels * height * width bytes. `in` may be an image in `s`. VKT_E_NOMEM. */
vkt_result vkt_image_resize(const vkt_host *h, const vkt_image *in, uint32_t width, uint32_t height,
                            vkt_image_scratch *s, uint8_t *planes);

#endif
