/* data/digits.c - a data set of generated digits, for a first run without any file (vktrain/data.h).
 *
 * Each digit has a few glyphs, and each glyph is a set of pen strokes. A stroke is a list of points. The pen follows
 * the points in straight lines or as a Catmull-Rom spline (Catmull & Rom 1974). For each image the points move a
 * little. Then the glyph is scaled, sheared, rotated and shifted. A disc that moves along short straight segments draws
 * the glyph.
 * The only operations are + - * / and sqrt (no cos, no exp). IEEE 754 defines their results to the bit. So all machines
 * generate the same images. */
#include <math.h>

#include "base/philox.h"
#include "data/dataset.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* no fused multiply-adds, which round only once; gcc with -std=c11 makes none */
#endif

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, MAX_POINTS = 14, SPLINE_STEPS = 5 };

typedef struct point {
    float x, y;
} point;

typedef struct stroke {
    uint8_t n;                /* number of points; 0 ends the strokes of a glyph */
    bool smooth;              /* a spline; else straight lines */
    bool closed;              /* the last point is connected to the first */
    int8_t xy[MAX_POINTS][2]; /* coordinates in a box of 40 x 40, in units of 1/2 pixel; the y axis goes down */
} stroke;

typedef struct glyph {
    uint8_t digit;
    stroke strokes[3];
} glyph;

/* clang-format off */
#define LINE(n, ...)  { n, false, false, { __VA_ARGS__ } }
#define CURVE(n, ...) { n, true, false, { __VA_ARGS__ } }
#define LOOP(n, ...)  { n, true, true, { __VA_ARGS__ } }
static const glyph glyphs[] = {
    { 0, { LOOP(8, {20,1}, {11,6}, {7,20}, {11,34}, {20,39}, {29,34}, {33,20}, {29,6}) } },
    { 0, { CURVE(10, {23,2}, {13,4}, {7,18}, {10,34}, {19,39}, {29,34}, {33,20}, {29,6}, {21,1}, {15,5}) } },
    { 1, { LINE(2, {20,1}, {20,39}) } },
    { 1, { LINE(3, {12,9}, {21,1}, {21,39}) } },
    { 1, { LINE(3, {12,9}, {21,1}, {21,39}), LINE(2, {11,39}, {31,39}) } },
    { 2, { CURVE(8, {8,10}, {12,3}, {21,1}, {29,5}, {30,13}, {25,21}, {16,30}, {8,38}), LINE(2, {8,38}, {33,38}) } },
    { 2, { CURVE(12, {9,8}, {15,2}, {25,2}, {30,9}, {27,19}, {19,30}, {11,37}, {7,34}, {11,30}, {19,33}, {27,38}, {34,35}) } },
    { 3, { CURVE(6, {9,5}, {18,1}, {28,4}, {29,12}, {24,17}, {16,19}),
           CURVE(7, {16,19}, {26,20}, {32,26}, {30,34}, {21,39}, {13,38}, {7,33}) } },
    { 3, { LINE(3, {9,2}, {30,2}, {18,16}), CURVE(7, {18,16}, {27,18}, {32,25}, {31,33}, {23,39}, {14,39}, {7,34}) } },
    { 4, { LINE(3, {25,1}, {7,26}, {34,26}), LINE(2, {25,1}, {25,39}) } },
    { 4, { LINE(3, {12,2}, {8,22}, {33,22}), LINE(2, {29,3}, {26,39}) } },
    { 4, { CURVE(5, {11,2}, {9,13}, {12,20}, {21,22}, {31,19}), LINE(2, {31,2}, {28,39}) } },
    { 5, { LINE(3, {30,2}, {12,2}, {10,18}), CURVE(8, {10,18}, {18,14}, {27,16}, {32,23}, {31,32}, {24,38}, {15,39}, {7,35}) } },
    { 5, { CURVE(9, {14,3}, {12,10}, {11,17}, {20,15}, {29,19}, {31,28}, {26,36}, {17,39}, {8,36}), LINE(2, {14,3}, {31,2}) } },
    { 6, { CURVE(11, {28,2}, {19,6}, {12,14}, {8,25}, {11,35}, {19,39}, {28,35}, {30,28}, {25,22}, {17,22}, {10,29}) } },
    { 6, { CURVE(10, {19,1}, {13,10}, {9,22}, {9,32}, {15,39}, {24,38}, {29,31}, {25,24}, {17,24}, {10,31}) } },
    { 7, { LINE(3, {7,2}, {32,2}, {17,39}) } },
    { 7, { LINE(3, {8,3}, {32,2}, {18,39}), LINE(2, {13,21}, {31,20}) } },
    { 7, { LINE(2, {8,8}, {9,2}), CURVE(6, {9,2}, {20,4}, {32,2}, {25,14}, {20,27}, {18,39}) } },
    { 8, { LOOP(12, {20,19}, {11,12}, {12,4}, {20,1}, {28,4}, {29,12}, {20,19}, {10,27}, {11,36}, {20,39}, {29,36}, {30,27}) } },
    { 8, { LOOP(6, {20,1}, {12,5}, {13,15}, {20,18}, {27,15}, {28,5}),
           LOOP(6, {20,18}, {10,23}, {10,34}, {20,39}, {30,34}, {30,23}) } },
    { 9, { LOOP(7, {30,10}, {26,2}, {17,1}, {10,6}, {10,14}, {17,19}, {26,17}), LINE(2, {30,8}, {28,39}) } },
    { 9, { CURVE(13, {30,9}, {24,2}, {15,2}, {9,9}, {11,17}, {19,20}, {27,16}, {30,8}, {31,20}, {30,30}, {25,37}, {17,39}, {10,36}) } },
};
/* clang-format on */

/* Maps the box of the glyph to pixels: x' = a * x + b * y + dx,  y' = c * x + d * y + dy. */
typedef struct affine {
    float a, b, c, d, dx, dy;
} affine;

typedef struct brush {
    affine warp;
    float radius; /* radius of the disc, pixels */
    float edge;   /* width of the disc's edge, pixels; across the edge, the coverage falls from 1 to 0 (draw_segment) */
    float wobble; /* largest shift of a point along each axis, in units of 1/2 pixel */
    float ink;    /* brightness of a fully covered pixel, 0 to 255 */
    float noise;  /* a random number from -noise to noise is added to each pixel; the sum is limited to 0 .. 255 */
} brush;

static affine random_warp(vkt_rng *r)
{
    /* A rotation by 2 * atan(t): cos = (1 - t^2) / (1 + t^2), sin = 2 * t / (1 + t^2). As |t| <= 0.13, the angle is at
     * most 15 degrees. */
    const float t = vkt_rng_uniform(r, -0.13f, 0.13f);
    const float cs = (1 - t * t) / (1 + t * t), sn = 2 * t / (1 + t * t);
    const float sx = 0.5f * vkt_rng_uniform(r, 0.65f, 1.05f), sy = 0.5f * vkt_rng_uniform(r, 0.75f, 1.08f);
    const float shear = vkt_rng_uniform(r, -0.3f, 0.2f); /* < 0: leans to the right, like most handwriting */
    affine m = { .a = cs * sx, .b = (cs * shear - sn) * sy, .c = sn * sx, .d = (sn * shear + cs) * sy };
    m.dx = SIDE / 2.0f + vkt_rng_uniform(r, -2.5f, 2.5f) - 20 * (m.a + m.b);
    m.dy = SIDE / 2.0f + vkt_rng_uniform(r, -2.0f, 2.0f) - 20 * (m.c + m.d);
    return m;
}

static brush random_pen(vkt_rng *r)
{
    brush pen = { .warp = random_warp(r) }; /* the other members are set below, because their random numbers need a
                                             * fixed order, and C evaluates an initializer list in any order */
    pen.radius = vkt_rng_uniform(r, 0.6f, 1.7f);
    pen.edge = vkt_rng_uniform(r, 0.9f, 1.8f);
    pen.wobble = vkt_rng_uniform(r, 0.3f, 2.0f);
    pen.ink = vkt_rng_uniform(r, 150, 255);
    pen.noise = vkt_rng_uniform(r, 0, 50);
    return pen;
}

/* Draws the disc along the segment from p to q. The distance from a pixel to the segment gives a coverage from 0 (no
 * ink) to 1. `cover` (SIDE x SIDE) keeps the largest coverage of each pixel. */
static void draw_segment(float *cover, const brush *pen, point p, point q)
{
    const float reach = pen->radius + pen->edge / 2, dx = q.x - p.x, dy = q.y - p.y, len2 = dx * dx + dy * dy;
    const int x0 = (int)VKT_MAX(0.0f, VKT_MIN(p.x, q.x) - reach), y0 = (int)VKT_MAX(0.0f, VKT_MIN(p.y, q.y) - reach);
    const int x1 = (int)VKT_MIN(SIDE - 1.0f, VKT_MAX(p.x, q.x) + reach);
    const int y1 = (int)VKT_MIN(SIDE - 1.0f, VKT_MAX(p.y, q.y) + reach);
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            const float px = (float)x + 0.5f - p.x, py = (float)y + 0.5f - p.y;
            float along = len2 > 0 ? (px * dx + py * dy) / len2 : 0;
            along = VKT_MIN(VKT_MAX(along, 0.0f), 1.0f);
            const float ex = px - along * dx, ey = py - along * dy;
            const float v = (reach - sqrtf(ex * ex + ey * ey)) / pen->edge;
            if (v > cover[y * SIDE + x]) cover[y * SIDE + x] = VKT_MIN(v, 1.0f);
        }
}

/* Returns the point at t in [0,1] of the Catmull-Rom curve through four points. The curve goes from b to c. */
static point spline(point a, point b, point c, point d, float t)
{
    const float t2 = t * t, t3 = t2 * t;
    const float wa = -t3 + 2 * t2 - t, wb = 3 * t3 - 5 * t2 + 2, wc = -3 * t3 + 4 * t2 + t, wd = t3 - t2;
    return (point){ 0.5f * (wa * a.x + wb * b.x + wc * c.x + wd * d.x),
                    0.5f * (wa * a.y + wb * b.y + wc * c.y + wd * d.y) };
}

static void draw_stroke(float *cover, const brush *pen, const stroke *s, vkt_rng *r)
{
    const affine *m = &pen->warp;
    point p[MAX_POINTS];
    for (int i = 0; i < s->n; i++) {
        const float x = s->xy[i][0] + vkt_rng_uniform(r, -pen->wobble, pen->wobble);
        const float y = s->xy[i][1] + vkt_rng_uniform(r, -pen->wobble, pen->wobble);
        p[i] = (point){ m->a * x + m->b * y + m->dx, m->c * x + m->d * y + m->dy };
    }
    const int n = s->n, pieces = s->closed ? n : n - 1;
    for (int i = 0; i < pieces; i++) {
        const point b = p[i], c = p[(i + 1) % n];
        if (!s->smooth) {
            draw_segment(cover, pen, b, c);
            continue;
        }
        /* An open curve repeats its first and last point, because a spline needs one more point at each end. */
        const point a = s->closed || i > 0 ? p[(i + n - 1) % n] : b, d = s->closed || i + 2 < n ? p[(i + 2) % n] : c;
        point from = b;
        for (int k = 1; k <= SPLINE_STEPS; k++) {
            const point to = spline(a, b, c, d, (float)k / SPLINE_STEPS);
            draw_segment(cover, pen, from, to);
            from = to;
        }
    }
}

static const glyph *random_glyph(uint32_t digit, vkt_rng *r)
{
    size_t first = 0;
    while (glyphs[first].digit != digit) first++;
    uint32_t n_glyphs = 0;
    while (first + n_glyphs < VKT_COUNT(glyphs) && glyphs[first + n_glyphs].digit == digit) n_glyphs++;
    return &glyphs[first + vkt_rng_range(r, 0, n_glyphs - 1)];
}

static void draw_digit(uint8_t *image, uint32_t digit, vkt_rng *r)
{
    const glyph *g = random_glyph(digit, r);
    const brush pen = random_pen(r);
    float cover[PIXELS] = { 0 };
    for (size_t i = 0; i < VKT_COUNT(g->strokes) && g->strokes[i].n; i++) draw_stroke(cover, &pen, &g->strokes[i], r);
    for (int i = 0; i < PIXELS; i++) {
        /* Triangular noise in [-1, 1]: the sum of two bytes of one word, scaled and centred. */
        const uint32_t w = vkt_rng_u32(r);
        const float noise = ((float)(w & 255) + (float)(w >> 8 & 255)) / 255 - 1;
        const float v = pen.ink * cover[i] + pen.noise * noise;
        image[i] = (uint8_t)VKT_MIN(VKT_MAX(v + 0.5f, 0.0f), 255.0f);
    }
}

/* Writes the labels of the samples 10 * block to 10 * block + 9: each digit once, in random order. */
static void draw_labels(uint32_t labels[CLASSES], uint64_t seed, uint32_t block)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_DIGITS, block, 1);
    for (uint32_t i = 0; i < CLASSES; i++) labels[i] = i;
    for (uint32_t i = CLASSES; i > 1; i--) {
        const uint32_t j = vkt_rng_range(&r, 0, i - 1), last = labels[i - 1];
        labels[i - 1] = labels[j];
        labels[j] = last;
    }
}

vkt_result vkt_dataset_digits(const vkt_host *host, uint32_t count, uint64_t seed, vkt_dataset **out)
{
    VKT_WANT(host, out);
    static const char *const names[CLASSES] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
    const vkt_host h = vkt_host_resolve(host);
    *out = NULL;
    if (count == 0) return vkt_fail(&h, VKT_E_ARG, "digits: want 1 or more, got 0");
    uint8_t *images = vkt_alloc_array(&h, count, PIXELS);
    uint32_t *labels = vkt_alloc_array(&h, count, sizeof *labels);
    vkt_result r = images && labels ? VKT_OK : vkt_fail_nomem(&h, "generated digits", (size_t)count * PIXELS);
    uint32_t block[CLASSES];
    for (uint32_t i = 0; r == VKT_OK && i < count; i++) {
        if (i % CLASSES == 0) draw_labels(block, seed, i / CLASSES);
        labels[i] = block[i % CLASSES];
        vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_DIGITS, i, 0);
        draw_digit(images + (size_t)i * PIXELS, labels[i], &rng);
    }
    const vkt_dataset_params p = {
        .rows = count, .height = SIDE, .width = SIDE, .labels = labels, .classes = CLASSES, .class_names = names
    };
    if (r == VKT_OK) r = vkt_dataset_adopt(&h, &p, images, out);
    if (r != VKT_OK) {
        vkt_free(&h, images);
        vkt_free(&h, labels);
    }
    return r;
}
