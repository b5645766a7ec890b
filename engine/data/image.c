/* data/image.c - see image.h: which decoder, EXIF, and what is the same for all pictures. */
#include "data/image.h"

vkt_result vkt_room_reserve(const vkt_host *h, vkt_room *r, size_t n)
{
    if (n <= r->bytes) return VKT_OK;
    vkt_free(h, r->p);
    *r = (vkt_room){ .p = vkt_realloc(h, NULL, n) };
    if (!r->p) return vkt_fail_nomem(h, "a picture", n);
    r->bytes = n;
    return VKT_OK;
}

vkt_result vkt_image_reserve(const vkt_host *h, vkt_image *image, uint32_t width, uint32_t height, uint32_t channels)
{
    uint64_t bytes;
    if (!vkt_mul_u64((uint64_t)width * height, channels, &bytes) || bytes > PTRDIFF_MAX)
        return vkt_fail_nomem(h, "a picture", SIZE_MAX);
    VKT_TRY(vkt_room_reserve(h, &image->pixels, (size_t)bytes));
    image->width = width;
    image->height = height;
    image->channels = channels;
    return VKT_OK;
}

void vkt_image_scratch_free(const vkt_host *h, vkt_image_scratch *s)
{
    vkt_free(h, s->decoded.pixels.p);
    vkt_free(h, s->turned.pixels.p);
    vkt_free(h, s->filter.p);
    *s = (vkt_image_scratch){ 0 };
}

/* A real photograph has a byte for 2 to 20 pixels, a drawing one for up to 1000; small files may be anything. */
static uint64_t usual_pixels(size_t n)
{
    enum { ALWAYS = 1 << 24, PER_BYTE = 64, MOST = 1 << 27 };
    return VKT_MIN(ALWAYS + PER_BYTE * (uint64_t)VKT_MIN(n, (size_t)MOST), (uint64_t)MOST);
}

vkt_result vkt_image_check_size(const vkt_host *h, const char *name, uint64_t width, uint64_t height, size_t n,
                                uint64_t max_pixels)
{
    enum { LONGEST = 65535 };
    const uint64_t most = max_pixels ? max_pixels : usual_pixels(n), side = max_pixels ? most : LONGEST;
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
        const uint32_t value = read_u16(e + 8, little); /* a SHORT stands in the first two bytes of the value field */
        const bool sane = read_u16(e + 2, little) == SHORT && read_u32(e + 4, little) == 1;
        return sane && value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}

static void convert_row(const uint8_t *in, ptrdiff_t step, uint32_t in_channels, uint32_t channels, uint32_t n,
                        uint8_t *out)
{
    for (uint32_t x = 0; x < n; x++, in += step, out += channels) {
        const uint8_t r = in[0], g = in_channels == 3 ? in[1] : r, b = in_channels == 3 ? in[2] : r;
        if (channels == 3) {
            out[0] = r;
            out[1] = g;
            out[2] = b;
        } else {
            out[0] = (uint8_t)((19595u * r + 38470u * g + 7471u * b + 32768u) >> 16); /* r itself where all are equal */
        }
    }
}

/* `in`, upright and with `channels` channels. The EXIF number tells which sides of the scene the picture's row 0 and
 * column 0 show: 5 to 8 have rows and columns exchanged, 3, 4, 6 and 7 begin with the last row of the picture, 2, 3, 7
 * and 8 with its last column. */
static vkt_result turn(const vkt_host *h, const vkt_image *in, uint32_t orientation, uint32_t channels, vkt_image *out)
{
    const bool swap = orientation >= 5;
    const bool from_bottom = (1u << orientation & (1u << 3 | 1u << 4 | 1u << 6 | 1u << 7)) != 0;
    const bool from_right = (1u << orientation & (1u << 2 | 1u << 3 | 1u << 7 | 1u << 8)) != 0;
    VKT_TRY(vkt_image_reserve(h, out, swap ? in->height : in->width, swap ? in->width : in->height, channels));
    const ptrdiff_t pixel = in->channels, row = pixel * in->width;
    const ptrdiff_t down = from_bottom ? -row : row, right = from_right ? -pixel : pixel; /* along the picture's axes */
    const uint8_t *p = in->pixels.p + (from_bottom ? row * ((ptrdiff_t)in->height - 1) : 0) +
                       (from_right ? pixel * ((ptrdiff_t)in->width - 1) : 0);
    for (uint32_t y = 0; y < out->height; y++)
        convert_row(p + (swap ? right : down) * (ptrdiff_t)y, swap ? down : right, in->channels, channels, out->width,
                    out->pixels.p + (size_t)y * out->width * channels);
    return VKT_OK;
}

vkt_result vkt_image_decode(const vkt_host *h, const char *name, const uint8_t *bytes, size_t n, uint64_t max_pixels,
                            uint32_t channels, vkt_image_scratch *s, const vkt_image **out)
{
    static const uint8_t jpeg[] = { 0xff, 0xd8, 0xff }, png[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
    uint32_t orientation = 1;
    if (n >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0)
        VKT_TRY(vkt_jpeg_decode(h, name, bytes, n, max_pixels, &s->decoded, &orientation));
    else if (n >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        VKT_TRY(vkt_png_decode(h, name, bytes, n, max_pixels, &s->decoded, &orientation));
    else
        return vkt_fail(h, VKT_E_FORMAT, "\"%s\" is neither JPEG nor PNG", name);
    *out = &s->decoded;
    if (orientation == 1 && s->decoded.channels == channels) return VKT_OK;
    VKT_TRY(turn(h, &s->decoded, orientation, channels, &s->turned));
    *out = &s->turned;
    return VKT_OK;
}
