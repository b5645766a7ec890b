/* train/rates.c - vkt_rates_plot: draws the losses of a learning rate test (vkt_trainer_find_lr) over the rates. The
 * axis of the rates is logarithmic. */
#include <math.h>
#include <stdio.h>

#include "train/figure.h"
#include "vktrain/train.h"

#define WIDTH 760.0
#define HEIGHT 460.0
#define LEFT 92.0
#define RIGHT (WIDTH - 40.0)
#define TOP 104.0
#define BOTTOM (HEIGHT - 66.0)
#define TEXT_SIZE 13.0
#define MOST 1e30 /* larger losses are gaps, like NaN, so that axis arithmetic stays finite */

typedef struct chart {
    const double *rates, *losses, *smoothed;
    uint32_t n;
    double suggested;
    double x_lo, x_hi;         /* range of the rates, as logarithms to base 10 */
    double y_lo, y_hi, y_step; /* y_lo, y_hi: range of the losses; ticks are at multiples of y_step */
} chart;

static double x_of(const chart *c, double rate)
{
    return LEFT + (log10(rate) - c->x_lo) / (c->x_hi - c->x_lo) * (RIGHT - LEFT);
}

static double y_of(const chart *c, double loss)
{
    return BOTTOM + (loss - c->y_lo) / (c->y_hi - c->y_lo) * (TOP - BOTTOM);
}

static bool is_seen(const chart *c, double loss)
{
    return loss >= c->y_lo && loss <= c->y_hi;
}

/* Computes the ranges of both axes. The vertical axis has the range of the smoothed losses. If every smoothed loss is a
 * gap, the axis has the range of all losses. The range is extended down to the lowest loss, and widened to multiples of
 * y_step. Losses above the range are not drawn: the last losses of a test may be very large, and an axis that includes
 * them would hide the form of the curve. Returns false if all losses and all smoothed losses are gaps. */
static bool fit(chart *c)
{
    double lo = INFINITY, hi = -INFINITY;
    for (int pass = 0; pass < 2 && !(lo <= hi); pass++)
        for (uint32_t i = 0; i < c->n; i++) {
            const double v = pass ? c->losses[i] : c->smoothed[i];
            if (!(fabs(v) <= MOST)) continue;
            lo = fmin(lo, v);
            hi = fmax(hi, v);
        }
    if (!(lo <= hi)) return false;
    for (uint32_t i = 0; i < c->n; i++)
        if (fabs(c->losses[i]) <= MOST) lo = fmin(lo, c->losses[i]);
    const double around = fmax(fmax(fabs(hi), fabs(lo)) * 1e-3, 1e-12);
    if (hi - lo < around) lo -= around, hi += around;
    c->y_step = vkt_figure_step(hi - lo, 5);
    c->y_lo = floor(lo / c->y_step) * c->y_step;
    c->y_hi = ceil(hi / c->y_step) * c->y_step;
    c->x_lo = log10(c->rates[0]);
    c->x_hi = fmax(log10(c->rates[c->n - 1]), c->x_lo + 1e-6);
    return true;
}

static void draw_grid(cairo_t *cr, const chart *c)
{
    char text[32];
    vkt_figure_font(cr, TEXT_SIZE, false);
    const double decades = fmax(1, ceil((c->x_hi - c->x_lo) / 10)); /* number of decades between two grid lines */
    for (double k = ceil(c->x_lo - 1e-9); k <= c->x_hi + 1e-9; k += decades) {
        const double at = x_of(c, pow(10, k));
        vkt_figure_line(cr, at, TOP, at, BOTTOM, 1, vkt_grid_color);
        snprintf(text, sizeof text, "%g", pow(10, k));
        vkt_figure_text(cr, at, BOTTOM + 21, 0.5, vkt_soft_ink, text);
    }
    for (double k = round(c->y_lo / c->y_step); k <= round(c->y_hi / c->y_step); k++) {
        const double at = y_of(c, k * c->y_step);
        vkt_figure_line(cr, LEFT, at, RIGHT, at, 1, vkt_grid_color);
        vkt_figure_tick(k * c->y_step, c->y_step, text);
        vkt_figure_text(cr, LEFT - 10, at + TEXT_SIZE * 0.36, 1, vkt_soft_ink, text);
    }
    vkt_figure_line(cr, LEFT, BOTTOM, RIGHT, BOTTOM, 1.3, vkt_axis_color);
    vkt_figure_text(cr, (LEFT + RIGHT) / 2, BOTTOM + 46, 0.5, vkt_ink, "learning rate");
    vkt_figure_text(cr, LEFT - 10, TOP - 14, 1, vkt_ink, "loss");
}

static void draw_losses(cairo_t *cr, const chart *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (!is_seen(c, c->losses[i])) continue;
        cairo_new_path(cr);
        cairo_arc(cr, x_of(c, c->rates[i]), y_of(c, c->losses[i]), 2.6, 0, 2 * acos(-1.0));
        vkt_figure_color(cr, vkt_axis_color);
        cairo_fill(cr);
    }
    bool inside = false;
    cairo_new_path(cr);
    for (uint32_t i = 0; i < c->n; i++) {
        const bool seen = is_seen(c, c->smoothed[i]);
        if (seen && inside) cairo_line_to(cr, x_of(c, c->rates[i]), y_of(c, c->smoothed[i]));
        if (seen && !inside) cairo_move_to(cr, x_of(c, c->rates[i]), y_of(c, c->smoothed[i]));
        inside = seen;
    }
    vkt_figure_color(cr, vkt_series_color[0]);
    cairo_set_line_width(cr, 2.2);
    cairo_stroke(cr);
}

static void draw_suggested(cairo_t *cr, const chart *c)
{
    const double at = x_of(c, c->suggested), dashes[] = { 5, 4 };
    char text[48];
    cairo_set_dash(cr, dashes, 2, 0);
    vkt_figure_line(cr, at, TOP - 4, at, BOTTOM, 1.4, vkt_series_color[1]);
    cairo_set_dash(cr, NULL, 0, 0);
    snprintf(text, sizeof text, "%.2g", c->suggested);
    vkt_figure_text(cr, at, TOP - 14, 0.5, vkt_ink, text);
}

static void draw_figure(cairo_t *cr, const void *user)
{
    const chart *c = user;
    vkt_figure_font(cr, 20, true);
    vkt_figure_text(cr, 28, 38, 0, vkt_ink, "Loss over learning rate");
    vkt_figure_font(cr, TEXT_SIZE, false);
    vkt_figure_text(cr, 28, 62, 0, vkt_soft_ink, "points: steps; line: smoothed");
    draw_grid(cr, c);
    draw_losses(cr, c);
    if (!isnan(c->suggested)) draw_suggested(cr, c);
}

vkt_result vkt_rates_plot(const vkt_host *host, const double *rates, const double *losses, const double *smoothed,
                          uint32_t n, double suggested, const char *path)
{
    const vkt_host h = vkt_host_resolve(host);
    VKT_WANT(&h, rates);
    VKT_WANT(&h, losses);
    VKT_WANT(&h, smoothed);
    VKT_WANT(&h, path);
    if (n < 2) return vkt_fail(&h, VKT_E_ARG, "plot \"%s\": want two rates or more, got %u", path, n);
    for (uint32_t i = 0; i < n; i++)
        if (!(rates[i] > 0) || !isfinite(rates[i]) || (i && rates[i] <= rates[i - 1]))
            return vkt_fail(&h, VKT_E_ARG, "plot \"%s\": want rates above 0 that rise, got %g as number %u", path,
                            rates[i], i);
    if (!isnan(suggested) && !(suggested >= rates[0] && suggested <= rates[n - 1]))
        return vkt_fail(&h, VKT_E_ARG, "plot \"%s\": want a suggested rate from %g to %g, or NaN, got %g", path,
                        rates[0], rates[n - 1], suggested);
    chart c = { .rates = rates, .losses = losses, .smoothed = smoothed, .n = n, .suggested = suggested };
    if (!fit(&c)) return vkt_fail(&h, VKT_E_ARG, "plot \"%s\": want finite losses, got none", path);
    return vkt_figure_write(&h, path, WIDTH, HEIGHT, draw_figure, &c);
}
