/* view/panel.c - see panel.h. */
#include "view/panel.h"

#include <cairo.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/message.h"

enum { MARGIN = 10, TITLE = 18, BARS = 96 };

typedef struct box {
    double x, y, width, height;
} box;

static void grey(cairo_t *c, double level)
{
    cairo_set_source_rgb(c, level, level, level);
}

VKT_PRINTF(4, 5) static void text(cairo_t *c, double x, double y, const char *format, ...)
{
    char line[160];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cairo_move_to(c, x, y);
    cairo_show_text(c, line);
}

static void frame(cairo_t *c, box b, const char *title)
{
    grey(c, 0.62);
    text(c, b.x, b.y - 5, "%s", title);
    grey(c, 0.1);
    cairo_rectangle(c, b.x, b.y, b.width, b.height);
    cairo_fill(c);
}

/* ---- curves over all steps of a training ---- */

static double decibels(double mse)
{
    return mse > 0 ? -10 * log10(mse) : 0;
}

static double logarithm(double mse)
{
    return mse > 0 ? log10(mse) : 0;
}

static void draw_curve(cairo_t *c, box b, const curve *k, double (*scale)(double), double low, double high)
{
    cairo_new_path(c);
    for (uint32_t i = 0; i < k->n; i++) {
        const double t = (scale((double)k->points[i]) - low) / (high - low);
        const double y = b.y + b.height * (1 - fmin(fmax(t, 0), 1));
        cairo_line_to(c, b.x + b.width * (i + 0.5) / k->n, y);
    }
    cairo_stroke(c);
}

/* Draws a horizontal line and its number at each multiple of `step` in [low, high). */
static void draw_scale(cairo_t *c, box b, double low, double high, double step)
{
    for (double v = ceil(low / step) * step; v < high; v += step) {
        const double y = floor(b.y + b.height * (1 - (v - low) / (high - low))) + 0.5;
        grey(c, 0.25);
        cairo_move_to(c, b.x, y);
        cairo_line_to(c, b.x + b.width, y);
        cairo_stroke(c);
        grey(c, 0.5);
        text(c, b.x + 3, y - 2, "%g", v);
    }
}

static void draw_psnr(cairo_t *c, box b, const panel_state *s)
{
    frame(c, b, "PSNR, dB");
    draw_scale(c, b, 8, 48, 10);
    cairo_set_source_rgb(c, 0.45, 0.8, 1);
    draw_curve(c, b, s->loss, decibels, 8, 48);
}

static void draw_loss(cairo_t *c, box b, const panel_state *s)
{
    frame(c, b, "squared error, log10");
    draw_scale(c, b, -4.8, -0.8, 1);
    cairo_set_source_rgb(c, 1, 0.7, 0.35);
    draw_curve(c, b, s->loss, logarithm, -4.8, -0.8);
}

/* ---- bars: one for each of the last frames, the newest on the right. The scale is 0 to 50 ms ---- */

static void draw_bars(cairo_t *c, box b, const times *t)
{
    for (uint32_t i = 0; i < BARS && i < t->n; i++) {
        const double width = b.width / BARS, height = fmin((double)times_last(t, i) / 50, 1) * b.height;
        cairo_rectangle(c, b.x + b.width - (i + 1) * width, b.y + b.height - height, width, height);
    }
    cairo_fill(c);
}

static void draw_times(cairo_t *c, box b, const panel_state *s)
{
    frame(c, b, "frame, training, ms");
    grey(c, 0.4);
    draw_bars(c, b, s->frames);
    cairo_set_source_rgb(c, 0.55, 0.85, 0.45);
    draw_bars(c, b, s->training);
    draw_scale(c, b, 0, 50, 20);
}

static double last(const times *t)
{
    return t->n ? (double)times_last(t, 0) : 0;
}

static void draw_text(cairo_t *c, double x, const panel_state *s)
{
    double y = TITLE + 8;
    grey(c, 0.95);
    text(c, x, y, "step %llu   %.2f dB%s", (unsigned long long)s->steps, s->psnr, s->paused ? "   paused" : "");
    grey(c, 0.7);
    text(c, x, y += 17, "frame %.1f ms, training %.1f ms", last(s->frames), last(s->training));
    if (s->budget_ms > 0)
        text(c, x, y += 17, "budget %g ms, took %.1f, 95 %% below %.1f", s->budget_ms, times_quantile(s->measured, 0.5),
             times_quantile(s->measured, 0.95));
    else if (s->host->n)
        text(c, x, y += 17, "a step a frame, on the host %.2f ms", last(s->host));
    text(c, x, y += 17, "%.40s", s->device);
    grey(c, 0.5);
    text(c, x, y += 20, "space pause   r reset   up, down budget");
    text(c, x, y + 15, "s save   l load   q quit");
}

vkt_result panel_draw(const panel_state *s, uint32_t width, void *bgra)
{
    cairo_surface_t *surface =
        cairo_image_surface_create_for_data(bgra, CAIRO_FORMAT_RGB24, (int)width, PANEL_HEIGHT, (int)width * 4);
    cairo_t *c = cairo_create(surface);
    grey(c, 0.16);
    cairo_paint(c);
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c, 11);
    cairo_set_line_width(c, 1);
    const double third = fmax((width - 280.0) / 3, MARGIN + 1);
    box b = { MARGIN, TITLE, third - MARGIN, PANEL_HEIGHT - TITLE - MARGIN };
    draw_psnr(c, b, s);
    b.x += third;
    draw_loss(c, b, s);
    b.x += third;
    draw_times(c, b, s);
    draw_text(c, b.x + third + 4, s);
    const cairo_status_t status = cairo_status(c);
    cairo_destroy(c);
    cairo_surface_destroy(surface);
    if (status == CAIRO_STATUS_SUCCESS) return VKT_OK;
    complain("panel: %s", cairo_status_to_string(status));
    return VKT_E_NOMEM;
}
