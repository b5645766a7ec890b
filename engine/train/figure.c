/* train/figure.c - see figure.h. */
#include "train/figure.h"

#include <cairo-svg.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "base/file.h"
#include "base/numbers.h"

#define PNG_SCALE 2.0

/* The colors: blue, vermillion, green, purple, orange, sky blue, dark yellow. */
const vkt_rgb vkt_series_color[VKT_SERIES_COLORS] = {
    { 0, 0x72 / 255.0, 0xb2 / 255.0 },
    { 0xd5 / 255.0, 0x5e / 255.0, 0 },
    { 0, 0x9e / 255.0, 0x73 / 255.0 },
    { 0xcc / 255.0, 0x79 / 255.0, 0xa7 / 255.0 },
    { 0xe6 / 255.0, 0x9f / 255.0, 0 },
    { 0x56 / 255.0, 0xb4 / 255.0, 0xe9 / 255.0 },
    { 0xb8 / 255.0, 0xac / 255.0, 0x1c / 255.0 },
};

void vkt_figure_color(cairo_t *cr, vkt_rgb color)
{
    cairo_set_source_rgb(cr, color.r, color.g, color.b);
}

void vkt_figure_font(cairo_t *cr, double size, bool bold)
{
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, size);
}

double vkt_figure_text_width(cairo_t *cr, const char *text)
{
    cairo_text_extents_t e;
    cairo_text_extents(cr, text, &e);
    return e.x_advance;
}

/* ---- the texts of an SVG are <text> elements, because cairo would draw letters as outlines ---- */

/* The key of cairo's user data. Under this key, the cairo_t of an SVG figure has a vkt_text with the <text> elements of
 * the figure. */
static const cairo_user_data_key_t labels_key;

static void add_escaped(vkt_text *t, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '<': vkt_text_add(t, "&lt;"); break;
        case '>': vkt_text_add(t, "&gt;"); break;
        case '&': vkt_text_add(t, "&amp;"); break;
        default:
            vkt_text_add(t, "%c", (unsigned char)*text < ' ' ? ' ' : *text); /* XML allows few control characters */
        }
}

static void add_label(cairo_t *cr, vkt_text *labels, double x, double y, double anchor, vkt_rgb color, const char *text)
{
    static const char *const anchors[] = { "start", "middle", "end" };
    cairo_matrix_t font;
    cairo_get_font_matrix(cr, &font);
    const bool bold = cairo_toy_font_face_get_weight(cairo_get_font_face(cr)) == CAIRO_FONT_WEIGHT_BOLD;
    vkt_text_add(labels, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.2f\"%s text-anchor=\"%s\" fill=\"#%02x%02x%02x\"",
                 x, y, font.xx, bold ? " font-weight=\"bold\"" : "", anchors[(int)(2 * anchor)],
                 (unsigned)(255 * color.r + 0.5), (unsigned)(255 * color.g + 0.5), (unsigned)(255 * color.b + 0.5));
    cairo_matrix_t m;
    cairo_get_matrix(cr, &m);
    if (m.xx != 1 || m.yx != 0 || m.x0 != 0 || m.y0 != 0)
        vkt_text_add(labels, " transform=\"matrix(%.4f %.4f %.4f %.4f %.2f %.2f)\"", m.xx, m.yx, m.xy, m.yy, m.x0,
                     m.y0);
    vkt_text_add(labels, ">");
    add_escaped(labels, text);
    vkt_text_add(labels, "</text>\n");
}

void vkt_figure_text(cairo_t *cr, double x, double y, double anchor, vkt_rgb color, const char *text)
{
    const double width = vkt_figure_text_width(cr, text); /* this call also checks that the text is UTF-8 */
    vkt_text *labels = cairo_get_user_data(cr, &labels_key);
    if (labels) {
        add_label(cr, labels, x, y, anchor, color, text);
        return;
    }
    vkt_figure_color(cr, color);
    cairo_move_to(cr, x - anchor * width, y);
    cairo_show_text(cr, text);
}

void vkt_figure_line(cairo_t *cr, double x0, double y0, double x1, double y1, double width, vkt_rgb color)
{
    vkt_figure_color(cr, color);
    cairo_set_line_width(cr, width);
    cairo_move_to(cr, x0, y0);
    cairo_line_to(cr, x1, y1);
    cairo_stroke(cr);
}

/* ---- ticks ---- */

double vkt_figure_step(double span, double pieces)
{
    const double raw = span / pieces, power = pow(10, floor(log10(raw))), f = raw / power;
    return power * (f < 1.5 ? 1 : f < 3.2 ? 2 : f < 7.1 ? 5 : 10);
}

void vkt_figure_tick(double value, double step, char out[32])
{
    if (fabs(value) < step * 1e-6) value = 0;
    if (step < 1e-4 || fabs(value) >= 1e6)
        snprintf(out, 32, "%.7g", value);
    else
        snprintf(out, 32, "%.*f", (int)fmax(0, ceil(-log10(step) - 1e-9)), value);
}

/* ---- the file ---- */

typedef struct figure {
    double width, height;
    void (*draw)(cairo_t *cr, const void *user);
    const void *user;
    bool png;
} figure;

/* Writes bytes from cairo to the file (cairo_write_func_t). */
static cairo_status_t write_chunk(void *writer, const unsigned char *bytes, unsigned n)
{
    return vkt_file_writer_write(writer, bytes, n) == VKT_OK ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

/* Appends bytes from cairo to a vkt_text (cairo_write_func_t). */
static cairo_status_t keep_chunk(void *text, const unsigned char *bytes, unsigned n)
{
    vkt_text_add(text, "%.*s", (int)n, (const char *)bytes);
    return ((vkt_text *)text)->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

static cairo_status_t draw_on(cairo_surface_t *surface, const figure *p, vkt_text *labels)
{
    cairo_t *cr = cairo_create(surface);
    cairo_set_user_data(cr, &labels_key, labels, NULL);
    if (p->png) cairo_scale(cr, PNG_SCALE, PNG_SCALE);
    vkt_figure_color(cr, vkt_white);
    cairo_paint(cr);
    cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    p->draw(cr, p->user);
    const cairo_status_t status = cairo_status(cr); /* the first error of all calls above, because cairo keeps it */
    cairo_destroy(cr);
    return status;
}

static cairo_status_t render_png(const figure *p, vkt_file_writer *w)
{
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(p->width * PNG_SCALE), (int)(p->height * PNG_SCALE));
    cairo_status_t status = draw_on(surface, p, NULL);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_write_to_png_stream(surface, write_chunk, w);
    cairo_surface_destroy(surface);
    return status;
}

/* Writes the file: cairo's drawing, with `labels` as its last elements. */
static cairo_status_t join_svg(const vkt_text *drawing, const vkt_text *labels, vkt_file_writer *w)
{
    static const char end[] = "</svg>", group[] = "<g font-family=\"sans-serif\" xml:space=\"preserve\">\n",
                      closed[] = "</g>\n</svg>\n";
    size_t n = drawing->len;
    if (drawing->failed || labels->failed) return CAIRO_STATUS_NO_MEMORY;
    while (n && strncmp(drawing->s + n - 1, end, sizeof end - 1) != 0) n--;
    const struct {
        const char *s;
        size_t n;
    } parts[] = { { drawing->s, n ? n - 1 : 0 },
                  { group, sizeof group - 1 },
                  { labels->s, labels->len },
                  { closed, sizeof closed - 1 } };
    for (size_t i = 0; i < VKT_COUNT(parts); i++)
        if (parts[i].n && vkt_file_writer_write(w, parts[i].s, parts[i].n) != VKT_OK) return CAIRO_STATUS_WRITE_ERROR;
    return CAIRO_STATUS_SUCCESS;
}

static cairo_status_t render_svg(const vkt_host *h, const figure *p, vkt_file_writer *w)
{
    vkt_text drawing = { .h = h }, labels = { .h = h };
    const vkt_numbers numbers = vkt_numbers_begin();
    cairo_surface_t *surface = cairo_svg_surface_create_for_stream(keep_chunk, &drawing, p->width, p->height);
    cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
    cairo_status_t status = draw_on(surface, p, &labels);
    cairo_surface_finish(surface); /* cairo writes the drawing here */
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    vkt_numbers_end(numbers);
    if (status == CAIRO_STATUS_SUCCESS) status = join_svg(&drawing, &labels, w);
    vkt_text_free(&drawing);
    vkt_text_free(&labels);
    return status;
}

vkt_result vkt_figure_write(const vkt_host *h, const char *path, double width, double height,
                            void (*draw)(cairo_t *cr, const void *user), const void *user)
{
    const char *dot = strrchr(path, '.');
    const figure p = { width, height, draw, user, .png = dot && strcasecmp(dot, ".png") == 0 };
    if (!p.png && !(dot && strcasecmp(dot, ".svg") == 0))
        return vkt_fail(h, VKT_E_ARG, "plot \"%s\": want a name that ends in .svg or .png", path);
    vkt_file_writer w;
    VKT_TRY(vkt_file_writer_begin(h, path, &w));
    const cairo_status_t status = p.png ? render_png(&p, &w) : render_svg(h, &p, &w);
    if (status == CAIRO_STATUS_SUCCESS) return vkt_file_writer_commit(&w);
    vkt_file_writer_abort(&w);
    if (status == CAIRO_STATUS_WRITE_ERROR) return VKT_E_IO; /* the writer has logged the failure */
    const vkt_result r = status == CAIRO_STATUS_NO_MEMORY        ? VKT_E_NOMEM
                         : status == CAIRO_STATUS_INVALID_STRING ? VKT_E_ARG
                                                                 : VKT_E_IO;
    return vkt_fail(h, r, "plot \"%s\": %s", path, cairo_status_to_string(status));
}
