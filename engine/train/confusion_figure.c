/* train/confusion_figure.c - a confusion matrix as an image (vktrain/metrics.h). */
#include <math.h>
#include <stdio.h>

#include "train/confusion.h"
#include "train/figure.h"

enum { MAX_NAMED = 128 };

#define MARGIN 28.0
#define TITLE_SIZE 20.0
#define TEXT_SIZE 13.0
#define HEADER 74.0      /* height of the space for the title and for the line below it */
#define MAX_NAME 190.0   /* largest width of the names */
#define MIN_NAMED 9.0    /* size of the smallest cells for which names are drawn */
#define MIN_COUNTED 26.0 /* size of the smallest cells in which counts are drawn */

typedef struct matrix {
    const uint64_t *counts, *rows; /* rows: the sums of the rows of counts */
    uint32_t classes;
    const char *const *names;
    const char *title;
    double cell, left, top; /* cell: the size of a cell; left, top: the corner of the first cell */
    uint64_t right, all;
} matrix;

/* Writes the name of class k. If the name is wider than MAX_NAME, or has VKT_CONFUSION_NAME_ROOM bytes or more, ".."
 * replaces its last characters. Control characters become '?'. */
static void short_name(const matrix *m, cairo_t *cr, uint32_t k, char out[VKT_CONFUSION_NAME_ROOM + 4])
{
    char room[VKT_CONFUSION_NAME_ROOM];
    const char *s = vkt_confusion_name(m->names, k, room);
    size_t n = strlen(s);
    bool truncated = n >= VKT_CONFUSION_NAME_ROOM;
    for (n = VKT_MIN(n, (size_t)VKT_CONFUSION_NAME_ROOM - 1);; n--, truncated = true) {
        while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80) n--;
        snprintf(out, VKT_CONFUSION_NAME_ROOM + 4, "%.*s%s", (int)n, s, truncated ? ".." : "");
        for (char *c = out; *c; c++)
            if ((unsigned char)*c < 32 || *c == 127) *c = '?';
        if (n == 0 || vkt_figure_text_width(cr, out) <= MAX_NAME) return;
    }
}

/* Returns a color between white (part 0) and the blue of vkt_series_color[0] (part 1). */
static vkt_rgb shade(double part)
{
    const vkt_rgb full = vkt_series_color[0];
    const double p = part > 0 ? 0.06 + 0.94 * sqrt(part) : 0; /* even a small part is visible */
    return (vkt_rgb){ 1 - p * (1 - full.r), 1 - p * (1 - full.g), 1 - p * (1 - full.b) };
}

static void draw_cells(cairo_t *cr, const matrix *m)
{
    vkt_figure_font(cr, fmin(TEXT_SIZE, m->cell * 0.36), false);
    for (uint32_t y = 0; y < m->classes; y++)
        for (uint32_t x = 0; x < m->classes; x++) {
            const uint64_t n = m->counts[(size_t)y * m->classes + x];
            const double part = m->rows[y] ? (double)n / (double)m->rows[y] : 0;
            const double left = m->left + x * m->cell, top = m->top + y * m->cell;
            char text[24];
            if (n == 0) continue;
            vkt_figure_color(cr, shade(part));
            cairo_rectangle(cr, left, top, m->cell, m->cell);
            cairo_fill(cr);
            if (m->cell < MIN_COUNTED) continue;
            snprintf(text, sizeof text, "%llu", (unsigned long long)n);
            vkt_figure_text(cr, left + m->cell / 2, top + m->cell * 0.5 + fmin(TEXT_SIZE, m->cell * 0.36) * 0.36, 0.5,
                            part > 0.4 ? vkt_white : vkt_ink, text);
        }
}

static void draw_grid(cairo_t *cr, const matrix *m)
{
    const double side = m->cell * m->classes;
    const bool lines = m->cell >= 6;
    for (uint32_t k = 0; k <= m->classes; k++) {
        const bool edge = k == 0 || k == m->classes;
        if (!edge && !lines) continue;
        const double at = k * m->cell;
        const vkt_rgb color = edge ? vkt_axis_color : vkt_grid_color;
        vkt_figure_line(cr, m->left, m->top + at, m->left + side, m->top + at, 1, color);
        vkt_figure_line(cr, m->left + at, m->top, m->left + at, m->top + side, 1, color);
    }
}

static void draw_names(cairo_t *cr, const matrix *m)
{
    const double size = fmin(TEXT_SIZE, m->cell * 0.8), side = m->cell * m->classes;
    char name[VKT_CONFUSION_NAME_ROOM + 4];
    if (m->cell < MIN_NAMED) return;
    vkt_figure_font(cr, size, false);
    for (uint32_t k = 0; k < m->classes; k++) {
        const double middle = (k + 0.5) * m->cell + size * 0.36;
        short_name(m, cr, k, name);
        vkt_figure_text(cr, m->left - 8, m->top + middle, 1, vkt_soft_ink, name);
        cairo_save(cr); /* the names below the columns run from top to bottom */
        cairo_translate(cr, m->left + middle - size * 0.72, m->top + side + 8);
        cairo_rotate(cr, acos(-1.0) / 2);
        vkt_figure_text(cr, 0, 0, 0, vkt_soft_ink, name);
        cairo_restore(cr);
    }
}

static void draw_figure(cairo_t *cr, const void *user)
{
    const matrix *m = user;
    char text[128];
    vkt_figure_font(cr, TITLE_SIZE, true);
    vkt_figure_text(cr, MARGIN, MARGIN + 18, 0, vkt_ink, m->title ? m->title : "Confusion matrix");
    snprintf(text, sizeof text, "rows: true class, columns: predicted class;  %llu of %llu right",
             (unsigned long long)m->right, (unsigned long long)m->all);
    vkt_figure_font(cr, TEXT_SIZE, false);
    vkt_figure_text(cr, MARGIN, MARGIN + 42, 0, vkt_soft_ink, text);
    draw_cells(cr, m);
    draw_grid(cr, m);
    draw_names(cr, m);
}

vkt_result vkt_confusion_draw(const vkt_host *h, const uint64_t *counts, uint32_t classes, const char *const *names,
                              const char *title, const char *path)
{
    matrix all = { .counts = counts, .classes = classes, .names = names, .title = title }, *m = &all;
    uint64_t *rows = vkt_alloc_array(h, m->classes, sizeof *rows);
    if (!rows) return vkt_fail_nomem(h, "a matrix", m->classes * sizeof *rows);
    size_t longest = 0;
    for (uint32_t k = 0; k < m->classes; k++) {
        char room[VKT_CONFUSION_NAME_ROOM];
        for (uint32_t i = 0; i < m->classes; i++) rows[k] += m->counts[(size_t)k * m->classes + i];
        longest = VKT_MAX(longest, strlen(vkt_confusion_name(m->names, k, room)));
        m->right += m->counts[(size_t)k * m->classes + k];
        m->all += rows[k];
    }
    m->rows = rows;
    m->cell = fmax(fmin(46, 900.0 / m->classes), m->classes <= MAX_NAMED ? 1.15 * MIN_NAMED : 1);
    const double room = m->cell < MIN_NAMED ? 0 : fmin(MAX_NAME, (double)longest * TEXT_SIZE * 0.62 + 12);
    m->left = MARGIN + room;
    m->top = MARGIN + HEADER;
    const double side = m->cell * m->classes;
    const vkt_result r =
        vkt_figure_write(h, path, fmax(m->left + side + MARGIN, 460), m->top + side + room + MARGIN, draw_figure, m);
    vkt_free(h, rows);
    return r;
}
