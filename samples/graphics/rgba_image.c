/* graphics/rgba_image.c - see rgba_image.h. */
#include "graphics/rgba_image.h"

#include <cairo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "vktrain/data.h"

static const vkt_host host = { .log = message_log };

static vkt_result fail(const char *path, const char *why)
{
    complain("%s: %s", path, why);
    return VKT_E_IO;
}

vkt_result rgba_image_read(const char *path, uint32_t most, uint64_t max_pixels, rgba_image *out)
{
    vkt_dataset *file;
    uint32_t chw[3];
    const vkt_result r = vkt_image_read(&host, path, most, max_pixels, &file);
    if (r != VKT_OK) return r;
    vkt_dataset_sample_shape(file, chw);
    const size_t plane = (size_t)chw[1] * chw[2];
    const uint8_t *planes = vkt_dataset_features(file);
    *out = (rgba_image){ chw[2], chw[1], malloc(4 * plane) };
    if (!out->rgba) complain("no memory for an image of %u x %u", out->width, out->height);
    for (size_t i = 0; out->rgba && i < plane; i++) {
        for (size_t c = 0; c < 3; c++) out->rgba[4 * i + c] = planes[c * plane + i];
        out->rgba[4 * i + 3] = 255;
    }
    vkt_dataset_destroy(&file);
    return out->rgba ? VKT_OK : VKT_E_NOMEM;
}

typedef struct bytes {
    unsigned char *p;
    size_t n, room;
} bytes;

/* Is the write function of a cairo stream: appends to a buffer in memory. */
static cairo_status_t append(void *to, const unsigned char *data, unsigned n)
{
    bytes *b = to;
    if (b->n + n > b->room) {
        const size_t room = 2 * (b->n + n);
        unsigned char *more = realloc(b->p, room);
        if (!more) return CAIRO_STATUS_NO_MEMORY;
        b->p = more;
        b->room = room;
    }
    memcpy(b->p + b->n, data, n);
    b->n += n;
    return CAIRO_STATUS_SUCCESS;
}

vkt_result rgba_image_write(const rgba_image *p, const char *path)
{
    cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)p->width, (int)p->height);
    unsigned char *data = cairo_image_surface_get_data(s);
    for (uint32_t y = 0; data && y < p->height; y++) {
        uint32_t *row = (uint32_t *)(void *)(data + y * (size_t)cairo_image_surface_get_stride(s));
        const uint8_t *from = p->rgba + 4 * (size_t)y * p->width;
        for (uint32_t x = 0; x < p->width; x++, from += 4)
            row[x] = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
    }
    cairo_surface_mark_dirty(s);
    bytes png = { 0 };
    const cairo_status_t status = cairo_surface_write_to_png_stream(s, append, &png);
    cairo_surface_destroy(s);
    const vkt_result r = status == CAIRO_STATUS_SUCCESS ? vkt_write_file(&host, path, png.p, png.n)
                                                        : fail(path, cairo_status_to_string(status));
    free(png.p);
    return r;
}

void rgba_image_free(rgba_image *p)
{
    free(p->rgba);
    p->rgba = NULL;
}
