/* data/image.c - the common part of the decoders (image.h): memory, the limit of the size, the orientation in EXIF
 * data. */
#include "data/image.h"

vkt_result vkt_byte_buffer_reserve(const vkt_host *h, vkt_byte_buffer *r, size_t n)
{
    if (n <= r->bytes) return VKT_OK;
    vkt_free(h, r->p);
    *r = (vkt_byte_buffer){ .p = vkt_realloc(h, NULL, n) };
    if (!r->p) return vkt_fail_nomem(h, "an image", n);
    r->bytes = n;
    return VKT_OK;
}

vkt_result vkt_image_reserve(const vkt_host *h, vkt_image *image, uint32_t width, uint32_t height, uint32_t channels)
{
    uint64_t bytes;
    if (!vkt_mul_u64((uint64_t)width * height, channels, &bytes) || bytes > PTRDIFF_MAX)
        return vkt_fail_nomem(h, "an image", SIZE_MAX);
    VKT_TRY(vkt_byte_buffer_reserve(h, &image->pixels, (size_t)bytes));
    image->width = width;
    image->height = height;
    image->channels = channels;
    return VKT_OK;
}

void vkt_image_scratch_free(const vkt_host *h, vkt_image_scratch *s)
{
    vkt_free(h, s->decoded.pixels.p);
    vkt_free(h, s->oriented.pixels.p);
    vkt_free(h, s->filter.p);
    *s = (vkt_image_scratch){ 0 };
}

/* Returns the largest number of pixels that a file of n bytes may have: 2^24 + 64 n, but at most 2^27. A photograph has
 * 2 to 20 pixels per byte. A drawing may have 1000 pixels per byte; the term 2^24 allows this for small files. */
static uint64_t default_pixels(size_t n)
{
    enum { ALWAYS = 1 << 24, PER_BYTE = 64, MOST = 1 << 27 };
    return VKT_MIN(ALWAYS + PER_BYTE * (uint64_t)VKT_MIN(n, (size_t)MOST), (uint64_t)MOST);
}

vkt_result vkt_image_check_size(const vkt_host *h, const char *name, uint64_t width, uint64_t height, size_t n,
                                uint64_t max_pixels)
{
    enum { LONGEST = 65535 };
    const uint64_t most = max_pixels ? max_pixels : default_pixels(n), side = max_pixels ? most : LONGEST;
    if (width && height && width <= most / height && width <= side && height <= side) return VKT_OK;
    if (max_pixels)
        return vkt_fail(h, VKT_E_FORMAT, "\"%s\" has %llu x %llu pixels: want 1 to %llu", name,
                        (unsigned long long)width, (unsigned long long)height, (unsigned long long)most);
    return vkt_fail(h, VKT_E_FORMAT,
                    "\"%s\" has %llu x %llu pixels in %zu bytes: want 1 to %llu, and sides of %d at most; max_pixels "
                    "allows more",
                    name, (unsigned long long)width, (unsigned long long)height, n, (unsigned long long)most, LONGEST);
}

static uint32_t read_u16(const uint8_t *p, bool little)
{
    return little ? (uint32_t)p[1] << 8 | p[0] : (uint32_t)p[0] << 8 | p[1];
}

static uint32_t read_u32(const uint8_t *p, bool little)
{
    return little ? read_u16(p + 2, true) << 16 | read_u16(p, true) : read_u16(p, false) << 16 | read_u16(p + 2, false);
}

uint32_t vkt_exif_orientation(const uint8_t *tiff, size_t n)
{
    enum { HEADER = 8, ENTRY = 12, ORIENTATION = 0x0112, SHORT = 3 };
    if (n < HEADER) return 1;
    const bool little = tiff[0] == 'I';
    if (tiff[0] != tiff[1] || (!little && tiff[0] != 'M') || read_u16(tiff + 2, little) != 42) return 1;
    const uint32_t ifd = read_u32(tiff + 4, little);
    if (ifd > n - 2) return 1;
    const uint32_t entries = read_u16(tiff + ifd, little);
    const uint8_t *e = tiff + ifd + 2;
    for (uint32_t i = 0; i < entries && (size_t)(tiff + n - e) >= ENTRY; i++, e += ENTRY) {
        if (read_u16(e, little) != ORIENTATION) continue;
        const uint32_t value = read_u16(e + 8, little); /* a SHORT is in the first two bytes of the value field */
        const bool sane = read_u16(e + 2, little) == SHORT && read_u32(e + 4, little) == 1;
        return sane && value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}
