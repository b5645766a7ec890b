/* data/image.h - pictures: JPEG and PNG from memory to 8-bit pixels, upright, and their resizing.
 *
 * Every function takes memory that it may enlarge and that is used again, so that a worker that decodes one picture
 * after the other soon allocates nothing here (libjpeg does, by malloc). Threads: different memory, any thread. */
#ifndef VKT_IMAGE_H
#define VKT_IMAGE_H

#include "base/base.h"

/* No file is larger: whole files are read. */
#define VKT_IMAGE_MAX_FILE_BYTES (UINT64_C(1) << 30)

/* Bytes that are used again; zeroed: none yet. */
typedef struct vkt_room {
    uint8_t *p;
    size_t bytes;
} vkt_room;
/* Makes it n bytes or more; what it held is lost where it grows. VKT_E_NOMEM. */
vkt_result vkt_room_reserve(const vkt_host *h, vkt_room *r, size_t n);

/* height x width pixels, row-major, the channels of a pixel together. */
typedef struct vkt_image {
    uint32_t width, height, channels; /* 1: gray; 3: red, green, blue */
    vkt_room pixels;
} vkt_image;
/* Room for such an image, whose pixels are undefined. The product is checked. */
vkt_result vkt_image_reserve(const vkt_host *h, vkt_image *image, uint32_t width, uint32_t height, uint32_t channels);

/* Memory of one thread. */
typedef struct vkt_image_scratch {
    vkt_image decoded, turned;
    vkt_room filter;
} vkt_image_scratch;
void vkt_image_scratch_free(const vkt_host *h, vkt_image_scratch *s);

/* Decodes `n` bytes of JPEG or PNG, told by their first bytes, turns the picture upright as its EXIF orientation asks,
 * and makes it gray or RGB. *out points into `s`.
 *
 * Where formats leave a choice this is what Pillow's convert("RGB") and convert("L") do: gray is (19595 R + 38470 G +
 * 7471 B + 32768) >> 16 (ITU-R 601), alpha is dropped, CMYK is read as Adobe writes it (inverted), gamma and profiles
 * are ignored; 16 bits are rounded to 8.
 *
 * VKT_E_FORMAT for anything that is not one whole picture that vkt_image_check_size lets through: data that end early,
 * wrong codes or checksums, kinds that the decoders do not know. VKT_E_NOMEM. Messages begin with `name`. */
vkt_result vkt_image_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                            uint32_t channels, vkt_image_scratch *s, const vkt_image **out);

/* The two decoders: gray or RGB as the file has it, not turned; *orientation is the EXIF number, 1 to 8. */
vkt_result vkt_jpeg_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                           vkt_image *out, uint32_t *orientation);
vkt_result vkt_png_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                          vkt_image *out, uint32_t *orientation);
/* Refuses pictures without pixels, and those with more than max_pixels. max_pixels 0: in proportion to the `n` bytes of
 * the file, 2^24 + 64 n pixels, 2^27 at most, and sides of 65535 at most (which is JPEG's own limit). */
vkt_result vkt_image_check_size(const vkt_host *h, const char *name, uint64_t width, uint64_t height, size_t n,
                                uint64_t max_pixels);

/* The orientation, 1 to 8, that EXIF data name (CIPA DC-008, tag 0x0112 of the 0th IFD); `tiff` begins with the TIFF
 * header. 1, upright, also where they name none or are malformed. */
uint32_t vkt_exif_orientation(const uint8_t *tiff, size_t n);

/* Resizes to width x height, both 1 or more, by the triangle filter widened by the scale where the picture shrinks
 * (bilinear with antialiasing), bit for bit as Pillow does; see resize.c. `planes` (channels * height * width bytes)
 * gets the result channel by channel. `in` may be the picture of vkt_image_decode with the same scratch. */
vkt_result vkt_image_resize(const vkt_host *h, const vkt_image *in, uint32_t width, uint32_t height,
                            vkt_image_scratch *s, uint8_t *planes);

#endif
