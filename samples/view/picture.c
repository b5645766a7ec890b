/* view/picture.c - see picture.h. */
#include "view/picture.h"

#include <cairo.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h> /* wants stdio.h before it */

static vkt_result fail(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    return VKT_E_IO;
}

/* ---- JPEG ---- */

typedef struct jpeg_errors {
    struct jpeg_error_mgr manager;
    jmp_buf out;
    char text[JMSG_LENGTH_MAX];
} jpeg_errors;

static void on_jpeg_error(j_common_ptr j)
{
    jpeg_errors *e = (jpeg_errors *)j->err;
    j->err->format_message(j, e->text);
    longjmp(e->out, 1);
}

static void quiet(j_common_ptr j)
{
    (void)j;
}

/* The pixels, as cairo has them; what was made when an error came is the caller's too. */
static bool decode_jpeg(struct jpeg_decompress_struct *j, jpeg_errors *e, FILE *file, cairo_surface_t *volatile *out)
{
    if (setjmp(e->out)) return false;
    jpeg_create_decompress(j);
    jpeg_stdio_src(j, file);
    jpeg_read_header(j, TRUE);
    j->out_color_space = JCS_EXT_BGRX; /* CAIRO_FORMAT_RGB24 on a machine of the smaller end first */
    jpeg_start_decompress(j);
    *out = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)j->output_width, (int)j->output_height);
    unsigned char *data = cairo_image_surface_get_data(*out);
    if (!data) return false;
    const size_t stride = (size_t)cairo_image_surface_get_stride(*out);
    while (j->output_scanline < j->output_height) {
        JSAMPROW row = data + j->output_scanline * stride;
        jpeg_read_scanlines(j, &row, 1);
    }
    jpeg_finish_decompress(j);
    cairo_surface_mark_dirty(*out);
    return true;
}

static vkt_result read_jpeg(const char *path, FILE *file, cairo_surface_t **out)
{
    struct jpeg_decompress_struct j = { 0 };
    jpeg_errors e = { .text = "not enough memory" };
    cairo_surface_t *volatile surface = NULL;
    j.err = jpeg_std_error(&e.manager);
    e.manager.error_exit = on_jpeg_error;
    e.manager.output_message = quiet;
    const bool good = decode_jpeg(&j, &e, file, &surface);
    jpeg_destroy_decompress(&j);
    *out = surface;
    return good ? VKT_OK : fail(path, e.text);
}

/* ---- any file ---- */

static vkt_result read_surface(const char *path, cairo_surface_t **out)
{
    unsigned char begin[2] = { 0 };
    FILE *file = fopen(path, "rb");
    if (!file) return fail(path, "cannot be opened");
    const bool jpeg = fread(begin, 1, 2, file) == 2 && begin[0] == 0xff && begin[1] == 0xd8;
    rewind(file);
    vkt_result r = VKT_OK;
    if (jpeg) r = read_jpeg(path, file, out);
    fclose(file);
    if (!jpeg) *out = cairo_image_surface_create_from_png(path);
    const cairo_status_t status = *out ? cairo_surface_status(*out) : CAIRO_STATUS_SUCCESS;
    return r != VKT_OK || status == CAIRO_STATUS_SUCCESS ? r : fail(path, cairo_status_to_string(status));
}

static vkt_result make(uint32_t width, uint32_t height, picture *out)
{
    *out = (picture){ width, height, malloc(4 * (size_t)width * height) };
    if (!out->rgba) fprintf(stderr, "no memory for a picture of %u x %u\n", width, height);
    return out->rgba ? VKT_OK : VKT_E_NOMEM;
}

/* On black, scaled by `factor`. */
static vkt_result scale_surface(const char *path, cairo_surface_t *from, double factor, uint32_t width, uint32_t height,
                                cairo_surface_t **to)
{
    *to = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    cairo_t *c = cairo_create(*to);
    cairo_scale(c, factor, factor);
    cairo_set_source_surface(c, from, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(c), factor < 1 ? CAIRO_FILTER_GOOD : CAIRO_FILTER_NEAREST);
    cairo_paint(c);
    const cairo_status_t status = cairo_status(c);
    cairo_destroy(c);
    cairo_surface_flush(*to);
    return status == CAIRO_STATUS_SUCCESS ? VKT_OK : fail(path, cairo_status_to_string(status));
}

static vkt_result convert(const char *path, cairo_surface_t *from, uint32_t most, picture *out)
{
    const uint32_t w = (uint32_t)cairo_image_surface_get_width(from),
                   h = (uint32_t)cairo_image_surface_get_height(from);
    const uint32_t longest = w > h ? w : h;
    const double factor = longest > most ? (double)most / longest : 1;
    const uint32_t width = (uint32_t)(w * factor + 0.5), height = (uint32_t)(h * factor + 0.5);
    cairo_surface_t *to = NULL;
    vkt_result r = make(width ? width : 1, height ? height : 1, out);
    if (r == VKT_OK) r = scale_surface(path, from, factor, out->width, out->height, &to);
    for (uint32_t y = 0; r == VKT_OK && y < out->height; y++) {
        const uint32_t *row = (const uint32_t *)(const void *)(cairo_image_surface_get_data(to) +
                                                               y * (size_t)cairo_image_surface_get_stride(to));
        uint8_t *p = out->rgba + 4 * (size_t)y * out->width;
        for (uint32_t x = 0; x < out->width; x++, p += 4) {
            p[0] = (uint8_t)(row[x] >> 16), p[1] = (uint8_t)(row[x] >> 8), p[2] = (uint8_t)row[x];
            p[3] = 255;
        }
    }
    cairo_surface_destroy(to);
    return r;
}

vkt_result picture_read(const char *path, uint32_t most, picture *out)
{
    cairo_surface_t *surface = NULL;
    vkt_result r = read_surface(path, &surface);
    if (r == VKT_OK) r = convert(path, surface, most, out);
    cairo_surface_destroy(surface);
    return r;
}

typedef struct bytes {
    unsigned char *p;
    size_t n, room;
} bytes;

/* A cairo stream into memory. */
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

vkt_result picture_write(const picture *p, const char *path)
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
    const vkt_result r = status == CAIRO_STATUS_SUCCESS ? vkt_write_file(NULL, path, png.p, png.n)
                                                        : fail(path, cairo_status_to_string(status));
    free(png.p);
    return r;
}

void picture_free(picture *p)
{
    free(p->rgba);
    p->rgba = NULL;
}
