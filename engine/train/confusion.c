/* train/confusion.c - a confusion matrix as CSV and as an image (vktrain/metrics.h). */
#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "base/file.h"
#include "train/figure.h"
#include "vktrain/metrics.h"

enum { MAX_IMAGE_CLASSES = 2048, MAX_NAMED = 128, NAME_ROOM = 64 };

#define MARGIN 28.0
#define TITLE_SIZE 20.0
#define TEXT_SIZE 13.0
#define HEADER 74.0    /* height of the title and the line below it */
#define MAX_NAME 190.0 /* largest width of the names */
#define MIN_NAMED 9.0  /* smaller cells have no names */
#define MIN_COUNTED 26.0

/* ---- CSV ---- */

static const char *name_of(const char *const *names, uint32_t k, char room[NAME_ROOM])
{
    snprintf(room, NAME_ROOM, "%u", k);
    return names && names[k] ? names[k] : room;
}

/* Adds a field of a CSV line. It is quoted if RFC 4180 requires that. */
static void add_field(vkt_text *t, const char *s)
{
    if (!strpbrk(s, ",\"\r\n")) {
        vkt_text_add(t, "%s", s);
        return;
    }
    vkt_text_add(t, "\"");
    for (; *s; s++) vkt_text_add(t, *s == '"' ? "\"\"" : "%c", *s);
    vkt_text_add(t, "\"");
}

static vkt_result write_csv(const vkt_host *h, const uint64_t *counts, uint32_t classes, const char *const *names,
                            const char *path)
{
    char room[NAME_ROOM];
    vkt_text t = { .h = h };
    vkt_text_add(&t, "true \\ predicted");
    for (uint32_t k = 0; k < classes; k++) {
        vkt_text_add(&t, ",");
        add_field(&t, name_of(names, k, room));
    }
    for (uint32_t k = 0; k < classes; k++) {
        vkt_text_add(&t, "\n");
        add_field(&t, name_of(names, k, room));
        for (uint32_t i = 0; i < classes; i++)
            vkt_text_add(&t, ",%llu", (unsigned long long)counts[(size_t)k * classes + i]);
    }
    vkt_text_add(&t, "\n");
    const vkt_result r = t.failed ? vkt_fail_nomem(h, "a CSV text", t.len) : vkt_file_write(h, path, t.s, t.len);
    vkt_text_free(&t);
    return r;
}

/* ---- the image ---- */

typedef struct matrix {
    const uint64_t *counts, *rows; /* rows: the sums of the rows of counts */
    uint32_t classes;
    const char *const *names;
    const char *title;
    double cell, left, top; /* cell: the size of a cell; left, top: the corner of the first cell */
    uint64_t right, all;
} matrix;

/* Writes the name of class k. If the name is wider than MAX_NAME, or has NAME_ROOM bytes or more, ".." replaces its
 * last characters. Control characters become '?'. */
static void short_name(const matrix *m, cairo_t *cr, uint32_t k, char out[NAME_ROOM + 4])
{
    char room[NAME_ROOM];
    const char *s = name_of(m->names, k, room);
    size_t n = strlen(s);
    bool truncated = n >= NAME_ROOM;
    for (n = VKT_MIN(n, (size_t)NAME_ROOM - 1);; n--, truncated = true) {
        while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80) n--;
        snprintf(out, NAME_ROOM + 4, "%.*s%s", (int)n, s, truncated ? ".." : "");
        for (char *c = out; *c; c++)
            if ((unsigned char)*c < 32 || *c == 127) *c = '?';
        if (n == 0 || vkt_figure_text_width(cr, out) <= MAX_NAME) return;
    }
}

/* Returns a color from white (for part 0) to the blue of a series (for part 1). */
static vkt_rgb shade(double part)
{
    const vkt_rgb full = vkt_series_color[0];
    const double p = part > 0 ? 0.06 + 0.94 * sqrt(part) : 0; /* makes a few samples visible too */
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
    char name[NAME_ROOM + 4];
    if (m->cell < MIN_NAMED) return;
    vkt_figure_font(cr, size, false);
    for (uint32_t k = 0; k < m->classes; k++) {
        const double middle = (k + 0.5) * m->cell + size * 0.36;
        short_name(m, cr, k, name);
        vkt_figure_text(cr, m->left - 8, m->top + middle, 1, vkt_soft_ink, name);
        cairo_save(cr); /* text from top to bottom, below the columns */
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

static vkt_result draw(const vkt_host *h, matrix *m, const char *path)
{
    uint64_t *rows = vkt_alloc_array(h, m->classes, sizeof *rows);
    if (!rows) return vkt_fail_nomem(h, "a matrix", m->classes * sizeof *rows);
    size_t longest = 0;
    for (uint32_t k = 0; k < m->classes; k++) {
        char room[NAME_ROOM];
        for (uint32_t i = 0; i < m->classes; i++) rows[k] += m->counts[(size_t)k * m->classes + i];
        longest = VKT_MAX(longest, strlen(name_of(m->names, k, room)));
        m->right += m->counts[(size_t)k * m->classes + k];
        m->all += rows[k];
    }
    m->rows = rows;
    m->cell = fmax(fmin(46, 900.0 / m->classes), m->classes <= MAX_NAMED ? 1.15 * MIN_NAMED : 1);
    const double names = m->cell < MIN_NAMED ? 0 : fmin(MAX_NAME, (double)longest * TEXT_SIZE * 0.62 + 12);
    m->left = MARGIN + names;
    m->top = MARGIN + HEADER;
    const double side = m->cell * m->classes;
    const vkt_result r =
        vkt_figure_write(h, path, fmax(m->left + side + MARGIN, 460), m->top + side + names + MARGIN, draw_figure, m);
    vkt_free(h, rows);
    return r;
}

vkt_result vkt_confusion_write(const vkt_host *host, const uint64_t *counts, uint32_t classes, const char *const *names,
                               const char *title, const char *path)
{
    const vkt_host h = vkt_host_resolve(host);
    if (!counts || !classes || !path)
        return vkt_fail(&h, VKT_E_ARG, "confusion: want counts and a path, got %s", classes ? "NULL" : "0 classes");
    const char *dot = strrchr(path, '.');
    if (dot && strcasecmp(dot, ".csv") == 0) return write_csv(&h, counts, classes, names, path);
    if (!dot || (strcasecmp(dot, ".svg") != 0 && strcasecmp(dot, ".png") != 0))
        return vkt_fail(&h, VKT_E_ARG, "confusion \"%s\": want a name that ends in .csv, .svg or .png", path);
    if (classes > MAX_IMAGE_CLASSES)
        return vkt_fail(&h, VKT_E_ARG, "confusion \"%s\": want %d classes or fewer in an image, got %u: write .csv",
                        path, MAX_IMAGE_CLASSES, classes);
    matrix m = { .counts = counts, .classes = classes, .names = names, .title = title };
    return draw(&h, &m, path);
}
