/* train/page.c - see page.h. */
#include "train/page.h"

#include <cairo-svg.h>
#include <strings.h>

#include "base/file.h"

#define PNG_SCALE 2.0

/* Blue, vermillion, green, purple, orange, sky blue, dark yellow. */
const vkt_rgb vkt_series_color[VKT_SERIES_COLORS] = {
    { 0, 0x72 / 255.0, 0xb2 / 255.0 },
    { 0xd5 / 255.0, 0x5e / 255.0, 0 },
    { 0, 0x9e / 255.0, 0x73 / 255.0 },
    { 0xcc / 255.0, 0x79 / 255.0, 0xa7 / 255.0 },
    { 0xe6 / 255.0, 0x9f / 255.0, 0 },
    { 0x56 / 255.0, 0xb4 / 255.0, 0xe9 / 255.0 },
    { 0xb8 / 255.0, 0xac / 255.0, 0x1c / 255.0 },
};

void vkt_page_color(cairo_t *cr, vkt_rgb color)
{
    cairo_set_source_rgb(cr, color.r, color.g, color.b);
}

void vkt_page_font(cairo_t *cr, double size, bool bold)
{
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, size);
}

double vkt_page_text_width(cairo_t *cr, const char *text)
{
    cairo_text_extents_t e;
    cairo_text_extents(cr, text, &e);
    return e.x_advance;
}

void vkt_page_text(cairo_t *cr, double x, double y, double anchor, vkt_rgb color, const char *text)
{
    vkt_page_color(cr, color);
    cairo_move_to(cr, x - anchor * vkt_page_text_width(cr, text), y);
    cairo_show_text(cr, text);
}

void vkt_page_line(cairo_t *cr, double x0, double y0, double x1, double y1, double width, vkt_rgb color)
{
    vkt_page_color(cr, color);
    cairo_set_line_width(cr, width);
    cairo_move_to(cr, x0, y0);
    cairo_line_to(cr, x1, y1);
    cairo_stroke(cr);
}

/* ---- the file ---- */

typedef struct page {
    double width, height;
    void (*draw)(cairo_t *cr, const void *user);
    const void *user;
    bool png;
} page;

/* A cairo stream into the file. */
static cairo_status_t write_chunk(void *writer, const unsigned char *bytes, unsigned n)
{
    return vkt_file_writer_write(writer, bytes, n) == VKT_OK ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static cairo_status_t render(const page *p, vkt_file_writer *w)
{
    cairo_surface_t *surface = p->png ? cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(p->width * PNG_SCALE),
                                                                   (int)(p->height * PNG_SCALE))
                                      : cairo_svg_surface_create_for_stream(write_chunk, w, p->width, p->height);
    if (!p->png) cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
    cairo_t *cr = cairo_create(surface);
    if (p->png) cairo_scale(cr, PNG_SCALE, PNG_SCALE);
    vkt_page_color(cr, vkt_white);
    cairo_paint(cr);
    cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    p->draw(cr, p->user);
    cairo_status_t status = cairo_status(cr); /* sticky: the first error of all calls above */
    cairo_destroy(cr);
    if (p->png && status == CAIRO_STATUS_SUCCESS) status = cairo_surface_write_to_png_stream(surface, write_chunk, w);
    cairo_surface_finish(surface); /* an SVG is written here */
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    return status;
}

vkt_result vkt_page_write(const vkt_host *h, const char *path, double width, double height,
                          void (*draw)(cairo_t *cr, const void *user), const void *user)
{
    const char *dot = strrchr(path, '.');
    const page p = { width, height, draw, user, .png = dot && strcasecmp(dot, ".png") == 0 };
    if (!p.png && !(dot && strcasecmp(dot, ".svg") == 0))
        return vkt_fail(h, VKT_E_ARG, "plot \"%s\": want a name that ends in .svg or .png", path);
    vkt_file_writer w;
    VKT_TRY(vkt_file_writer_begin(h, path, &w));
    const cairo_status_t status = render(&p, &w);
    if (status == CAIRO_STATUS_SUCCESS) return vkt_file_writer_commit(&w);
    vkt_file_writer_abort(&w);
    if (status == CAIRO_STATUS_WRITE_ERROR) return VKT_E_IO; /* the writer said why */
    const vkt_result r = status == CAIRO_STATUS_NO_MEMORY        ? VKT_E_NOMEM
                         : status == CAIRO_STATUS_INVALID_STRING ? VKT_E_ARG
                                                                 : VKT_E_IO;
    return vkt_fail(h, r, "plot \"%s\": %s", path, cairo_status_to_string(status));
}
