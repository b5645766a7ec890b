/* view/drawn.c - generates the program's own image: see drawn.h. In the image, x and y are in [0,1), and y points
 * down. Each pixel is the mean of 4 x 4 points. */
#include "view/drawn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/message.h"

enum { POINTS = 4, LETTERS = 7, LETTER_WIDTH = 5, LETTER_HEIGHT = 7 };

typedef struct colour {
    double c[3];
} colour;

static colour mix(colour a, colour b, double t)
{
    for (int k = 0; k < 3; k++) a.c[k] += (b.c[k] - a.c[k]) * t;
    return a;
}

static colour background(double x, double y)
{
    return (colour){ { 0.45 + 0.25 * sin(3 * x + 2 * y), 0.5 + 0.2 * sin(5 * y - 2 * x + 1),
                       0.55 + 0.25 * cos(4 * x * y + y) } };
}

/* Returns the colour at the point (u,v) of a ball with the radius 1, lit from the upper left, with a highlight. */
static colour ball(double u, double v)
{
    const double depth = sqrt(1 - u * u - v * v), light = 0.55 * depth - 0.45 * u - 0.6 * v;
    const double bright = light > 0 ? light : 0, shine = pow(bright < 1 ? bright : 1, 24);
    return (colour){ { 0.12 + 0.75 * bright + 0.4 * shine, 0.05 + 0.3 * bright + 0.4 * shine,
                       0.08 + 0.15 * bright + 0.4 * shine } };
}

/* Returns whether a point is in a letter of "VKTRAIN". The table has rows of five bits. */
static bool letter(double u, double v)
{
    static const uint8_t rows[LETTERS][LETTER_HEIGHT] = {
        { 17, 17, 17, 17, 17, 10, 4 },  { 17, 18, 20, 24, 20, 18, 17 }, { 31, 4, 4, 4, 4, 4, 4 },
        { 30, 17, 17, 30, 20, 18, 17 }, { 14, 17, 17, 31, 17, 17, 17 }, { 14, 4, 4, 4, 4, 4, 14 },
        { 17, 25, 21, 19, 17, 17, 17 },
    };
    const int column = (int)(u * LETTERS * (LETTER_WIDTH + 1)), row = (int)(v * LETTER_HEIGHT);
    const int bit = column % (LETTER_WIDTH + 1);
    return bit < LETTER_WIDTH && (rows[column / (LETTER_WIDTH + 1)][row] >> (LETTER_WIDTH - 1 - bit) & 1);
}

/* Returns whether (x,y) is in a box. Sets (*u,*v) to the position relative to the box. Both are in [0,1) if the
 * point is in the box. */
static bool in_box(double x, double y, double left, double top, double width, double height, double *u, double *v)
{
    *u = (x - left) / width, *v = (y - top) / height;
    return *u >= 0 && *u < 1 && *v >= 0 && *v < 1;
}

static colour at(double x, double y)
{
    static const colour yellow = { { 0.95, 0.8, 0.2 } }, blue = { { 0.1, 0.2, 0.55 } }, white = { { 1, 1, 1 } },
                        dark = { { 0.08, 0.09, 0.12 } }, green = { { 0.2, 0.6, 0.35 } };
    double u, v;
    colour c = background(x, y);
    const double r = hypot(x - 0.73, y - 0.27);
    if (r < 0.18 && r > 0.12) c = mix(yellow, blue, r < 0.13 || r > 0.17);
    u = (x - 0.29) / 0.2, v = (y - 0.28) / 0.2;
    if (u * u + v * v < 1) c = ball(u, v);
    u = 0.8 * (x - 0.74) + 0.6 * (y - 0.64), v = 0.8 * (y - 0.64) - 0.6 * (x - 0.74);
    if (fabs(u) < 0.13 && fabs(v) < 0.1) c = mix(green, dark, fabs(u) > 0.11 || fabs(v) > 0.08);
    if (in_box(x, y, 0.06, 0.54, 0.44, 0.2, &u, &v)) /* stripes: 3 per box width at the left, 15 at the right */
        c = mix(dark, white, 0.5 + 0.5 * sin(6.2831853 * (3 * u + 6 * u * u)));
    if (in_box(x, y, 0.05, 0.83, 0.9, 0.13, &u, &v)) c = dark;
    if (in_box(x, y, 0.08, 0.85, 0.42, 0.09, &u, &v) && letter(u, v)) c = white;
    if (in_box(x, y, 0.56, 0.87, 0.3, 0.05, &u, &v) && letter(u, v)) c = yellow;
    return c;
}

static void draw_pixel(const rgba_image *p, uint32_t x, uint32_t y)
{
    double sum[3] = { 0 };
    for (uint32_t i = 0; i < POINTS * POINTS; i++) {
        const double dx = (i % POINTS + 0.5) / POINTS, dy = ((double)(i / POINTS) + 0.5) / POINTS;
        const colour c = at((x + dx) / p->width, (y + dy) / p->height);
        for (int k = 0; k < 3; k++) sum[k] += fmin(fmax(c.c[k], 0), 1) / (POINTS * POINTS);
    }
    uint8_t *to = p->rgba + 4 * ((size_t)y * p->width + x);
    for (int k = 0; k < 3; k++) to[k] = (uint8_t)lrint(255 * sum[k]);
    to[3] = 255;
}

vkt_result rgba_image_draw(uint32_t side, rgba_image *out)
{
    *out = (rgba_image){ side, side, malloc(4 * (size_t)side * side) };
    if (!out->rgba) {
        complain("no memory for an image of %u x %u", side, side);
        return VKT_E_NOMEM;
    }
    for (uint32_t y = 0; y < side; y++)
        for (uint32_t x = 0; x < side; x++) draw_pixel(out, x, y);
    return VKT_OK;
}
