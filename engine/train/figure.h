/* train/figure.h - draws a figure with cairo to an .svg or .png file. It has functions for the lines and texts of
 * plots.
 *
 * PLplot is not used: it keeps its streams in process-global state and ends the process on some errors (plexit). Cairo
 * reports every error as a status, and its only global state is a font cache. Cairo's memory does not come from the
 * host's allocator. */
#ifndef VKT_FIGURE_H
#define VKT_FIGURE_H

#include <cairo.h>

#include "base/base.h"

typedef struct vkt_rgb {
    double r, g, b;
} vkt_rgb;

static const vkt_rgb vkt_ink = { .13, .13, .15 }, vkt_soft_ink = { .38, .38, .42 }, vkt_axis_color = { .62, .62, .66 },
                     vkt_grid_color = { .91, .91, .93 }, vkt_white = { 1, 1, 1 };
/* Colors of Okabe & Ito, "Color Universal Design" (2002), with a darker yellow. People with the common kinds of
 * colour blindness can distinguish them, too. */
#define VKT_SERIES_COLORS 7
extern const vkt_rgb vkt_series_color[VKT_SERIES_COLORS];

void vkt_figure_color(cairo_t *cr, vkt_rgb color);
void vkt_figure_font(cairo_t *cr, double size, bool bold);
double vkt_figure_text_width(cairo_t *cr, const char *text);
/* Draws a text. `anchor` is the position in the text that is at x: 0 = the start; 0.5 = the middle; 1 = the end. y is
 * the base line. In an SVG the text is a <text> element in a generic sans-serif font, and is drawn after all lines and
 * areas. In both formats, the transformation of `cr` applies to the text. */
void vkt_figure_text(cairo_t *cr, double x, double y, double anchor, vkt_rgb color, const char *text);
void vkt_figure_line(cairo_t *cr, double x0, double y0, double x1, double y1, double width, vkt_rgb color);

/* Returns a step between ticks: 1, 2 or 5 times a power of ten. It divides `span` into about `pieces` parts. */
double vkt_figure_step(double span, double pieces);
/* Writes the label of a tick, with enough digits to distinguish neighbouring ticks, whose distance is `step`. But the
 * label has at most seven significant digits if `step` is below 1e-4, or if the absolute value is 1e6 or more. */
void vkt_figure_tick(double value, double step, char out[32]);

/* Calls `draw` on a white background, and replaces the file by the result atomically. The figure has width x height
 * units. A unit is one pixel in an SVG; it is two pixels in a PNG, for sharp text. VKT_E_ARG: the path ends in neither
 * .svg nor .png (small letters or capitals), or a text is not UTF-8. VKT_E_IO, VKT_E_NOMEM. Threads: any. */
vkt_result vkt_figure_write(const vkt_host *h, const char *path, double width, double height,
                            void (*draw)(cairo_t *cr, const void *user), const void *user);

#endif
