/* train/plot.c - see plot.h. The figure has two panels. */
#include "train/plot.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "train/figure.h"

/* The size of the figure and of its parts, in the units of vkt_figure_write. */
#define WIDTH 1120.0
#define HEIGHT 460.0
#define MARGIN 28.0
#define PLOT_TOP 136.0
#define PLOT_BOTTOM (HEIGHT - 62.0)

#define TITLE_SIZE 20.0
#define HEADER_SIZE 15.0
#define TEXT_SIZE 13.0
#define MIN_MARKER_STEP 16.0 /* if neighbouring points are closer than this, no markers are drawn */
#define MAX_VALUE 1e30       /* larger values are gaps, like NaN, so that axis arithmetic stays finite */

#define TRAIN_COLOR vkt_series_color[0]
#define VAL_COLOR vkt_series_color[1]

typedef struct axis {
    double lo, hi, step; /* lo, hi: range of values; ticks are at multiples of step */
    double from, to;     /* positions of lo and hi on the figure */
} axis;

typedef struct panel {
    const char *header;
    size_t train, val; /* offsets of the training and the validation value in a vkt_epoch_record */
    double limit;      /* largest possible value; fit_values does not widen the range beyond it */
    double left, right;
} panel;

typedef struct chart {
    cairo_t *cr;
    const vkt_epoch_record *records;
    size_t n, best;
    const char *title; /* NULL: "Training" */
} chart;

/* ---- numbers ---- */

static double field(const vkt_epoch_record *record, size_t offset)
{
    double value;
    memcpy(&value, (const char *)record + offset, sizeof value);
    return fabs(value) <= MAX_VALUE ? value : NAN;
}

static double to_pixels(const axis *a, double value)
{
    return a->hi > a->lo ? a->from + (value - a->lo) / (a->hi - a->lo) * (a->to - a->from) : (a->from + a->to) / 2;
}

/* Computes the range of all values, of training and validation, and widens this range to multiples of a->step. Returns
 * false if there is no value. */
static bool fit_values(const chart *c, const panel *p, axis *a)
{
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < 2 * c->n; i++) {
        const double v = field(&c->records[i / 2], i % 2 ? p->val : p->train);
        lo = fmin(lo, v); /* fmin and fmax ignore NaN */
        hi = fmax(hi, v);
    }
    if (!(lo <= hi)) return false;
    const double least = fmax(fabs(hi) * 1e-4, 1e-12); /* a smaller range would give equal tick labels */
    double span_lo = lo, span_hi = hi;
    if (hi - lo < least) { /* the values are nearly equal: the range is a band around them */
        const double around = hi == 0 ? 0.5 : fmax(fabs(hi) * 0.05, least);
        span_lo = lo >= 0 ? fmax(lo - around, 0) : lo - around;
        span_hi = hi <= p->limit ? fmin(hi + around, p->limit) : hi + around;
    }
    if (lo > 0 && lo < hi / 4) span_lo = 0; /* the axis begins at 0, so that heights are proportional to the values */
    a->step = vkt_figure_step(span_hi - span_lo, 4.5);
    const double slack = 1e-9; /* a fraction of a step, for errors of rounding: 0.3 / 0.1 is not exactly 3 */
    a->lo = floor(span_lo / a->step + slack) * a->step;
    a->hi = ceil(span_hi / a->step - slack) * a->step;
    return true;
}

static axis fit_epochs(const chart *c)
{
    axis a = { .lo = c->records[0].epoch, .hi = c->records[0].epoch };
    for (size_t i = 1; i < c->n; i++) {
        a.lo = fmin(a.lo, c->records[i].epoch);
        a.hi = fmax(a.hi, c->records[i].epoch);
    }
    a.step = a.hi - a.lo > 10 ? vkt_figure_step(a.hi - a.lo, 8) : 1;
    return a;
}

/* ---- parts of a panel ---- */

/* Draws a circle for training or a diamond for validation. The shapes differ even in black and white. */
static void draw_marker(cairo_t *cr, double x, double y, bool val)
{
    cairo_new_path(cr);
    if (val) {
        const double r = 5.2;
        cairo_move_to(cr, x, y - r);
        cairo_line_to(cr, x + r, y);
        cairo_line_to(cr, x, y + r);
        cairo_line_to(cr, x - r, y);
        cairo_close_path(cr);
    } else {
        cairo_arc(cr, x, y, 4.1, 0, 2 * acos(-1.0));
    }
    vkt_figure_color(cr, val ? VAL_COLOR : TRAIN_COLOR);
    cairo_fill_preserve(cr);
    vkt_figure_color(cr, vkt_white);
    cairo_set_line_width(cr, 1.3);
    cairo_stroke(cr);
}

static void draw_grid(cairo_t *cr, const axis *x, const axis *y)
{
    char text[32];
    vkt_figure_font(cr, TEXT_SIZE, false);
    for (double k = ceil(x->lo / x->step - 1e-9); k * x->step <= x->hi + x->step * 1e-9; k++) {
        const double at = to_pixels(x, k * x->step);
        vkt_figure_line(cr, at, PLOT_TOP, at, PLOT_BOTTOM, 1, vkt_grid_color);
        vkt_figure_tick(k * x->step, x->step, text);
        vkt_figure_text(cr, at, PLOT_BOTTOM + 21, 0.5, vkt_soft_ink, text);
    }
    for (double k = round(y->lo / y->step); k <= round(y->hi / y->step); k++) {
        const double at = to_pixels(y, k * y->step);
        vkt_figure_line(cr, x->from - 16, at, x->to + 16, at, 1, vkt_grid_color);
        vkt_figure_tick(k * y->step, y->step, text);
        vkt_figure_text(cr, x->from - 26, at + TEXT_SIZE * 0.36, 1, vkt_soft_ink, text);
    }
    vkt_figure_line(cr, x->from - 16, PLOT_BOTTOM, x->to + 16, PLOT_BOTTOM, 1.3, vkt_axis_color);
}

static void draw_series(const chart *c, const axis *x, const axis *y, size_t offset, bool val)
{
    cairo_t *cr = c->cr;
    bool inside = false;
    cairo_new_path(cr);
    for (size_t i = 0; i < c->n; i++) {
        const double v = field(&c->records[i], offset);
        if (!isnan(v)) {
            const double px = to_pixels(x, c->records[i].epoch), py = to_pixels(y, v);
            if (!inside) cairo_move_to(cr, px, py);
            cairo_line_to(cr, px, py); /* the line of a single point is a dot, because line caps are round */
        }
        inside = !isnan(v);
    }
    vkt_figure_color(cr, val ? VAL_COLOR : TRAIN_COLOR);
    cairo_set_line_width(cr, 2.2);
    cairo_stroke(cr);
    if (c->n > 1 && (x->to - x->from) / (double)(c->n - 1) < MIN_MARKER_STEP) return;
    for (size_t i = 0; i < c->n; i++) {
        const double v = field(&c->records[i], offset);
        if (!isnan(v)) draw_marker(cr, to_pixels(x, c->records[i].epoch), to_pixels(y, v), val);
    }
}

/* Draws a dashed line at the best epoch, and a ring around the validation value of this epoch. If the validation was
 * not measured, the ring is around the training value. */
static void draw_best(const chart *c, const panel *p, const axis *x, const axis *y)
{
    if (c->best == c->n) return;
    cairo_t *cr = c->cr;
    const double at = to_pixels(x, c->records[c->best].epoch), dashes[] = { 5, 4 };
    cairo_set_dash(cr, dashes, 2, 0);
    vkt_figure_line(cr, at, PLOT_TOP - 4, at, PLOT_BOTTOM, 1.2, vkt_axis_color);
    cairo_set_dash(cr, NULL, 0, 0);
    vkt_figure_font(cr, TEXT_SIZE - 1, false);
    vkt_figure_text(cr, at, PLOT_TOP - 10, 0.5, vkt_soft_ink, "best");
    double v = field(&c->records[c->best], p->val);
    if (isnan(v)) v = field(&c->records[c->best], p->train);
    if (isnan(v)) return;
    cairo_new_path(cr);
    cairo_arc(cr, at, to_pixels(y, v), 9, 0, 2 * acos(-1.0));
    vkt_figure_color(cr, vkt_ink);
    cairo_set_line_width(cr, 1.5);
    cairo_stroke(cr);
}

static bool has_values(const chart *c, size_t offset)
{
    for (size_t i = 0; i < c->n; i++) {
        if (!isnan(field(&c->records[i], offset))) return true;
    }
    return false;
}

/* Draws the legend. It is right-aligned in the line of the header, so that it never hides a curve. It names only the
 * series that exist. */
static void draw_legend(const chart *c, const panel *p)
{
    static const char *const names[] = { "train", "validation" };
    double x = p->right;
    vkt_figure_font(c->cr, TEXT_SIZE, false);
    for (int i = 1; i >= 0; i--) {
        if (!has_values(c, i ? p->val : p->train)) continue;
        const double y = PLOT_TOP - 32;
        vkt_figure_text(c->cr, x, y, 1, vkt_ink, names[i]);
        x -= vkt_figure_text_width(c->cr, names[i]) + 9;
        vkt_figure_line(c->cr, x - 30, y - 4.5, x, y - 4.5, 2.2, i ? VAL_COLOR : TRAIN_COLOR);
        draw_marker(c->cr, x - 15, y - 4.5, i);
        x -= 30 + 20;
    }
}

static void draw_panel(const chart *c, const panel *p)
{
    cairo_t *cr = c->cr;
    axis x = fit_epochs(c), y = { .from = PLOT_BOTTOM, .to = PLOT_TOP };
    vkt_figure_font(cr, HEADER_SIZE, true);
    vkt_figure_text(cr, p->left, PLOT_TOP - 32, 0, vkt_ink, p->header);
    if (!fit_values(c, p, &y)) {
        vkt_figure_font(cr, TEXT_SIZE, false);
        vkt_figure_text(cr, (p->left + p->right) / 2, (PLOT_TOP + PLOT_BOTTOM) / 2, 0.5, vkt_soft_ink, "not measured");
        return;
    }
    double label_width = 0;
    vkt_figure_font(cr, TEXT_SIZE, false);
    for (double k = round(y.lo / y.step); k <= round(y.hi / y.step); k++) {
        char text[32];
        vkt_figure_tick(k * y.step, y.step, text);
        label_width = fmax(label_width, vkt_figure_text_width(cr, text));
    }
    x.from = p->left + label_width + 26;
    x.to = p->right - 16;
    draw_grid(cr, &x, &y);
    draw_legend(c, p);
    draw_best(c, p, &x, &y);
    draw_series(c, &x, &y, p->train, false);
    draw_series(c, &x, &y, p->val, true);
    vkt_figure_font(cr, TEXT_SIZE, false);
    vkt_figure_text(cr, (x.from + x.to) / 2, PLOT_BOTTOM + 44, 0.5, vkt_ink, "epoch");
}

/* ---- the figure ---- */

/* Writes, for instance, "best epoch 7:  validation accuracy 0.9837,  validation loss 0.0512". If the validation
 * accuracy is NaN, writes the training accuracy instead. If the validation loss is NaN, writes the training loss
 * instead. Leaves out a training value that is NaN. Writes "" if there is no best epoch. */
static void best_text(const chart *c, char *out, size_t size)
{
    const vkt_epoch_record *r = &c->records[c->best < c->n ? c->best : 0];
    const struct {
        const char *name;
        double value;
    } parts[] = { { isnan(r->val_acc) ? "training accuracy" : "validation accuracy",
                    isnan(r->val_acc) ? r->train_acc : r->val_acc },
                  { isnan(r->val_loss) ? "training loss" : "validation loss",
                    isnan(r->val_loss) ? r->train_loss : r->val_loss } };
    size_t len = (size_t)snprintf(out, size, "best epoch %u", r->epoch);
    const char *before = ":  ";
    for (size_t i = 0; i < VKT_COUNT(parts); i++) {
        if (isnan(parts[i].value)) continue;
        len += (size_t)snprintf(out + len, size - len, "%s%s %.4g", before, parts[i].name, parts[i].value);
        before = ",  ";
    }
    if (c->best == c->n) *out = 0;
}

static void draw_figure(cairo_t *cr, const void *user)
{
    chart c = *(const chart *)user;
    c.cr = cr;
    const char *title = c.title ? c.title : "Training";
    vkt_figure_font(cr, TITLE_SIZE, true);
    const double width = vkt_figure_text_width(cr, title), room = WIDTH - 2 * MARGIN;
    if (width > room) vkt_figure_font(cr, fmax(TITLE_SIZE * room / width, 6), true);
    vkt_figure_text(cr, MARGIN, MARGIN + 18, 0, vkt_ink, title);
    char subtitle[160];
    best_text(&c, subtitle, sizeof subtitle);
    vkt_figure_font(cr, TEXT_SIZE, false);
    vkt_figure_text(cr, MARGIN, MARGIN + 42, 0, vkt_soft_ink, subtitle);

    const double middle = WIDTH / 2;
    const panel loss = {
        "Loss",         offsetof(vkt_epoch_record, train_loss), offsetof(vkt_epoch_record, val_loss), INFINITY, MARGIN,
        middle - MARGIN
    };
    const panel accuracy = {
        "Accuracy",    offsetof(vkt_epoch_record, train_acc), offsetof(vkt_epoch_record, val_acc), 1, middle + MARGIN,
        WIDTH - MARGIN
    };
    draw_panel(&c, &loss);
    draw_panel(&c, &accuracy);
}

vkt_result vkt_history_plot(const vkt_host *h, const vkt_epoch_record *records, size_t n, size_t best,
                            const char *title, const char *path)
{
    if (n == 0) return vkt_fail(h, VKT_E_ARG, "plot \"%s\": want one epoch or more, got none", path);
    const chart c = { .records = records, .n = n, .best = best, .title = title };
    return vkt_figure_write(h, path, WIDTH, HEIGHT, draw_figure, &c);
}
