/* data/image_decode.c - see image.h: chooses the decoder, rotates the image upright and converts it to gray or RGB. */
#include "data/image.h"

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
            out[0] = (uint8_t)((19595u * r + 38470u * g + 7471u * b + 32768u) >> 16); /* this is r if r = g = b */
        }
    }
}

/* Writes `in` to *out, upright and with `channels` channels. `orientation` is the EXIF orientation, 1 to 8. With 5 to
 * 8, the rows of *out are columns of `in`. With 3, 4, 6 and 7, the first pixel of *out is in the last row of `in`. With
 * 2, 3, 7 and 8, the first pixel of *out is in the last column of `in`. */
static vkt_result orient(const vkt_host *h, const vkt_image *in, uint32_t orientation, uint32_t channels,
                         vkt_image *out)
{
    const bool swap = orientation >= 5;
    const bool from_bottom = (1u << orientation & (1u << 3 | 1u << 4 | 1u << 6 | 1u << 7)) != 0;
    const bool from_right = (1u << orientation & (1u << 2 | 1u << 3 | 1u << 7 | 1u << 8)) != 0;
    VKT_TRY(vkt_image_reserve(h, out, swap ? in->height : in->width, swap ? in->width : in->height, channels));
    const ptrdiff_t pixel = in->channels, row = pixel * in->width;
    /* Distances in bytes from a pixel of `in` to the next pixel that is read: `down` along a column, `right` along a
     * row. `down` is negative if columns are read from the bottom. `right` is negative if rows are read from the
     * right. */
    const ptrdiff_t down = from_bottom ? -row : row, right = from_right ? -pixel : pixel;
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
    if (n == 0) return vkt_fail(h, VKT_E_FORMAT, "\"%s\" is empty: want a JPEG or PNG file", name);
    if (n >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0)
        VKT_TRY(vkt_jpeg_decode(h, name, bytes, n, max_pixels, &s->decoded, &orientation));
    else if (n >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        VKT_TRY(vkt_png_decode(h, name, bytes, n, max_pixels, &s->decoded, &orientation));
    else
        return vkt_fail(h, VKT_E_FORMAT, "\"%s\" is neither JPEG nor PNG", name);
    *out = &s->decoded;
    if (orientation == 1 && s->decoded.channels == channels) return VKT_OK;
    VKT_TRY(orient(h, &s->decoded, orientation, channels, &s->oriented));
    *out = &s->oriented;
    return VKT_OK;
}
