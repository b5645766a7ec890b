/* bench/plot.c - see plot.h. */
#include "bench/plot.h"

#include <math.h>
#include <stdio.h>

#include "train/figure.h"

#define WIDTH 1120.0
#define HEIGHT 640.0
#define LEFT 92.0
#define RIGHT 890.0 /* right edge of the chart; the legend is to the right of this edge */
#define TOP 116.0
#define BOTTOM 570.0
#define TEXT_SIZE 13.0

/* An axis. 10^lo is at the position `from` of the page, 10^hi at the position `to`. */
typedef struct axis {
    int lo, hi;
    double from, to;
} axis;

typedef struct chart {
    const bench_results *all;
    const char *device;
    axis x, y; /* FLOP/byte, FLOP/s */
} chart;

static bool is_point(const bench_result *r)
{
    return r->kind == BENCH_OP && bench_flops_per_s(r) > 0 && r->bytes > 0;
}

static double to_pixels(const axis *a, double value)
{
    return a->from + (log10(value) - a->lo) / (a->hi - a->lo) * (a->to - a->from);
}

/* Chooses whole decades that include all points and the ridge of the roofline. */
static void fit(chart *c)
{
    const bench_roofline *roof = &c->all->roof;
    const double ridge = roof->flops_per_s / roof->bytes_per_s;
    double x[2] = { ridge, ridge }, y[2] = { roof->flops_per_s / 10, roof->flops_per_s };
    for (size_t i = 0; i < c->all->n; i++) {
        const bench_result *r = &c->all->list[i];
        if (!is_point(r)) continue;
        x[0] = fmin(x[0], r->flops / r->bytes), x[1] = fmax(x[1], r->flops / r->bytes);
        y[0] = fmin(y[0], bench_flops_per_s(r)), y[1] = fmax(y[1], bench_flops_per_s(r));
    }
    c->x = (axis){ (int)floor(log10(x[0])), (int)floor(log10(x[1])) + 1, LEFT, RIGHT };
    c->y = (axis){ (int)floor(log10(y[0])), (int)floor(log10(y[1])) + 1, BOTTOM, TOP };
}

static void draw_grid(cairo_t *cr, const chart *c)
{
    static const char *const units[] = { "", "k", "M", "G", "T", "P" };
    char text[32];
    vkt_figure_font(cr, TEXT_SIZE, false);
    for (int k = c->x.lo; k <= c->x.hi; k++) {
        const double at = to_pixels(&c->x, pow(10, k));
        vkt_figure_line(cr, at, TOP, at, BOTTOM, 1, vkt_grid_color);
        snprintf(text, sizeof text, "%g", pow(10, k));
        vkt_figure_text(cr, at, BOTTOM + 21, 0.5, vkt_soft_ink, text);
    }
    for (int k = c->y.lo; k <= c->y.hi; k++) {
        const double at = to_pixels(&c->y, pow(10, k));
        const int unit = VKT_MAX(VKT_MIN(k / 3, 5), 0);
        vkt_figure_line(cr, LEFT, at, RIGHT, at, 1, vkt_grid_color);
        snprintf(text, sizeof text, "%g %s", pow(10, k - 3 * unit), units[unit]);
        vkt_figure_text(cr, LEFT - 10, at + TEXT_SIZE * 0.36, 1, vkt_soft_ink, text);
    }
    vkt_figure_text(cr, (LEFT + RIGHT) / 2, BOTTOM + 46, 0.5, vkt_ink, "FLOP per byte that must be moved");
    vkt_figure_text(cr, LEFT - 10, TOP - 16, 1, vkt_ink, "FLOP/s");
}

static void draw_roof(cairo_t *cr, const chart *c)
{
    const bench_roofline *roof = &c->all->roof;
    const double ridge = roof->flops_per_s / roof->bytes_per_s;
    const double start = fmax(pow(10, c->x.lo), pow(10, c->y.lo) / roof->bytes_per_s);
    const double rx = to_pixels(&c->x, ridge), ry = to_pixels(&c->y, roof->flops_per_s);
    vkt_figure_line(cr, to_pixels(&c->x, start), to_pixels(&c->y, start * roof->bytes_per_s), rx, ry, 2, vkt_ink);
    vkt_figure_line(cr, rx, ry, RIGHT, ry, 2, vkt_ink);
}

/* Draws a point. `series`, the index of the point's op among the ops with points, selects the color and the form. */
static void draw_point(cairo_t *cr, double x, double y, size_t series, bool hollow)
{
    const vkt_rgb color = vkt_series_color[series % VKT_SERIES_COLORS];
    const double r = 4.6;
    cairo_new_path(cr);
    if (series / VKT_SERIES_COLORS % 2)
        cairo_rectangle(cr, x - r * 0.85, y - r * 0.85, 1.7 * r, 1.7 * r);
    else
        cairo_arc(cr, x, y, r, 0, 2 * acos(-1.0));
    vkt_figure_color(cr, hollow ? vkt_white : color);
    cairo_fill_preserve(cr);
    vkt_figure_color(cr, hollow ? color : vkt_white);
    cairo_set_line_width(cr, 1.4);
    cairo_stroke(cr);
}

static void draw_points(cairo_t *cr, const chart *c)
{
    size_t series = 0;
    vkt_figure_font(cr, TEXT_SIZE, false);
    for (size_t op = 0; vkt_ops[op]; op++) {
        bool any = false;
        for (size_t i = 0; i < c->all->n; i++) {
            const bench_result *r = &c->all->list[i];
            if (!is_point(r) || strcmp(r->op, vkt_ops[op]->name) != 0) continue;
            draw_point(cr, to_pixels(&c->x, r->flops / r->bytes), to_pixels(&c->y, bench_flops_per_s(r)), series,
                       !r->preferred);
            any = true;
        }
        if (!any) continue;
        const double y = TOP + 22 * (double)series;
        draw_point(cr, RIGHT + 34, y - 4.5, series, false);
        vkt_figure_text(cr, RIGHT + 50, y, 0, vkt_ink, vkt_ops[op]->name);
        series++;
    }
    draw_point(cr, RIGHT + 34, BOTTOM - 4.5, 0, true);
    vkt_figure_text(cr, RIGHT + 50, BOTTOM, 0, vkt_soft_ink, "not the one chosen");
}

static void draw_figure(cairo_t *cr, const void *user)
{
    const chart *c = user;
    char text[160];
    vkt_figure_font(cr, 20, true);
    snprintf(text, sizeof text, "Roofline of %s", c->device);
    vkt_figure_text(cr, 28, 38, 0, vkt_ink, text);
    vkt_figure_font(cr, TEXT_SIZE, false);
    snprintf(text, sizeof text, "measured in this run: %.4g GFLOP/s, %.4g GB/s", c->all->roof.flops_per_s / 1e9,
             c->all->roof.bytes_per_s / 1e9);
    vkt_figure_text(cr, 28, 60, 0, vkt_soft_ink, text);
    draw_grid(cr, c);
    draw_roof(cr, c);
    draw_points(cr, c);
}

vkt_result bench_plot(const vkt_host *h, const char *path, const bench_results *all, const char *device)
{
    size_t points = 0;
    for (size_t i = 0; i < all->n; i++) points += is_point(&all->list[i]);
    if (points == 0 || all->roof.flops_per_s <= 0 || all->roof.bytes_per_s <= 0)
        return vkt_fail(h, VKT_E_ARG, "plot \"%s\": there is no op with a rate to draw", path);
    chart c = { .all = all, .device = device };
    fit(&c);
    return vkt_figure_write(h, path, WIDTH, HEIGHT, draw_figure, &c);
}
