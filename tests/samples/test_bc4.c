/* Compares the BC4 blocks of samples/ntc/bc4.c with the formulas of the format in double precision (Microsoft, "Texture
 * block compression in Direct3D 11"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "ntc/bc4.h"

enum { MOST = 24 * 24, GUARD = 0xa5, KINDS = 6 };

/* A plane (height x width numbers) and its BC4 blocks. A guard value is behind the plane, another behind the blocks. */
typedef struct fixture {
    uint32_t height, width;
    uint16_t plane[MOST + 1];
    uint8_t blocks[MOST + 1];
} fixture;

static void guard(fixture *f)
{
    f->plane[f->height * f->width] = GUARD;
    f->blocks[bc4_bytes(f->height, f->width)] = GUARD;
}

static void check_guards(const fixture *f)
{
    assert_int_equal(f->plane[f->height * f->width], GUARD);
    assert_int_equal(f->blocks[bc4_bytes(f->height, f->width)], GUARD);
}

/* Returns the number from 0 to 1 that `code` selects in a block, by the formulas of the format. */
static double value_of(const uint8_t *block, uint32_t code)
{
    const double a = block[0] / 255.0, b = block[1] / 255.0;
    if (code == 0) return a;
    if (code == 1) return b;
    if (block[0] > block[1]) return ((8 - code) * a + (code - 1) * b) / 7;
    return code == 6 ? 0 : code == 7 ? 1 : ((6 - code) * a + (code - 1) * b) / 5;
}

/* Decodes the number at (y, x) of the plane. Reads its code bit by bit. */
static double reference(const fixture *f, uint32_t y, uint32_t x)
{
    const uint8_t *block = f->blocks + 8 * (size_t)(y / 4 * ((f->width + 3) / 4) + x / 4);
    const uint32_t first = 3 * (4 * (y % 4) + x % 4);
    uint32_t code = 0;
    for (uint32_t bit = 0; bit < 3; bit++)
        code |= (uint32_t)(block[2 + (first + bit) / 8] >> (first + bit) % 8 & 1) << bit;
    return value_of(block, code);
}

static void check_decoder(const fixture *f)
{
    for (uint32_t y = 0; y < f->height; y++)
        for (uint32_t x = 0; x < f->width; x++)
            assert_true(fabs(f->plane[y * f->width + x] / (double)BC4_STEPS - reference(f, y, x)) < 1e-12);
    check_guards(f);
}

static void draw_size(vkt_rng *r, fixture *f)
{
    f->height = vkt_rng_range(r, 1, 24);
    f->width = vkt_rng_range(r, 1, 24);
}

/* Generates a plane of random size. Numbers outside of [0,1] are clamped. The numbers depend on `kind`:
 *   0  independent random numbers
 *   1  a slope
 *   2  only 0 and 1
 *   3  the same number everywhere
 *   4  a slope that may be eight times as steep as for kind 1
 *   5  a slope, but about a third of the numbers are replaced by 0 or 1 */
static void draw_plane(vkt_rng *r, fixture *f, uint32_t kind)
{
    const double at = vkt_rng_uniform(r, 0, 1), down = vkt_rng_uniform(r, -0.05f, 0.05f),
                 across = vkt_rng_uniform(r, -0.05f, 0.05f), wide = kind == 4 ? 8 : 1;
    draw_size(r, f);
    for (uint32_t i = 0; i < f->height * f->width; i++) {
        double x = at + wide * (down * (i / f->width) + across * (i % f->width));
        if (kind == 0) x = vkt_rng_uniform(r, 0, 1);
        if (kind == 2) x = vkt_rng_range(r, 0, 1);
        if (kind == 3) x = at;
        if (kind == 5 && vkt_rng_range(r, 0, 2) == 0) x = vkt_rng_range(r, 0, 1);
        f->plane[i] = (uint16_t)(BC4_STEPS * fmin(fmax(x, 0), 1) + 0.5);
    }
    guard(f);
}

/* ---- tests ---- */

static void any_block_is_decoded_by_the_formulas(void **state)
{
    (void)state;
    vkt_rng r = vkt_rng_make(1, VKT_STREAM_TEST, 0, 0);
    for (int n = 0; n < 300; n++) {
        fixture f;
        draw_size(&r, &f);
        guard(&f);
        for (size_t i = 0; i < bc4_bytes(f.height, f.width); i++) f.blocks[i] = (uint8_t)vkt_rng_u32(&r);
        bc4_decode(f.blocks, f.height, f.width, f.plane);
        check_decoder(&f);
    }
}

static void what_blocks_hold_does_not_change(void **state)
{
    (void)state;
    vkt_rng r = vkt_rng_make(2, VKT_STREAM_TEST, 0, 0);
    for (uint32_t n = 0; n < 1200; n++) {
        fixture f;
        draw_plane(&r, &f, n % KINDS);
        bc4_encode(f.plane, f.height, f.width, 0, f.blocks);
        bc4_decode(f.blocks, f.height, f.width, f.plane);
        check_decoder(&f);
        fixture again = f;
        bc4_encode(again.plane, f.height, f.width, 0, again.blocks);
        bc4_decode(again.blocks, f.height, f.width, again.plane);
        assert_memory_equal(again.plane, f.plane, f.height * f.width * sizeof *f.plane);
        check_guards(&again);
    }
}

/* Returns the sum of squared errors of a block (4,4) with "plain" bounds: its largest and its smallest number,
 * rounded to multiples of 1 / 255. *range is the difference of the bounds, in steps of 1 / 255. */
static double plain_error(const uint16_t cells[16], double *range)
{
    uint8_t block[BC4_BYTES] = { 0, 255 };
    double sum = 0;
    for (int i = 0; i < 16; i++) {
        const uint8_t x = (uint8_t)lround(cells[i] / 35.0);
        if (x > block[0]) block[0] = x;
        if (x < block[1]) block[1] = x;
    }
    for (int i = 0; i < 16; i++) {
        double least = INFINITY;
        for (uint32_t k = 0; k < 8; k++) least = fmin(least, pow(value_of(block, k) - cells[i] / 8925.0, 2));
        sum += least;
    }
    *range = block[0] - block[1];
    return sum;
}

/* The search of bc4_encode starts with the plain bounds, so the error of its block is at most the plain error. There is
 * one exception. bc4_encode allows a block with two different bounds only if each bound is the decoded value of at
 * least one number. If the range is below NARROW steps, this rule may forbid the block with the plain bounds. In this
 * case a block with two equal bounds limits the error.
 *
 * For random numbers (kind 0), the search saves at least a tenth of the error. For kind 5 it saves at least nine
 * tenths, because a block can have six values in a narrow range, and also the values 0 and 1. */
#define NARROW 7.0
static void errors_are_below_those_of_plain_bounds(void **state)
{
    (void)state;
    vkt_rng r = vkt_rng_make(3, VKT_STREAM_TEST, 0, 0);
    double plain[KINDS] = { 0 }, found[KINDS] = { 0 };
    for (uint32_t n = 0; n < 3000; n++) {
        fixture f;
        draw_plane(&r, &f, n % KINDS);
        if (f.height < 4 || f.width < 4) continue;
        f.height = f.width = 4;
        guard(&f);
        bc4_encode(f.plane, 4, 4, 0, f.blocks);
        double error = 0;
        for (uint32_t i = 0; i < 16; i++) error += pow(reference(&f, i / 4, i % 4) - f.plane[i] / 8925.0, 2);
        double range;
        const double most = plain_error(f.plane, &range);
        assert_true(error <= (range >= NARROW ? most + 1e-12 : 16 * pow((NARROW + 1) / 2 / 255, 2)));
        plain[n % KINDS] += most;
        found[n % KINDS] += error;
    }
    for (int k = 0; k < KINDS; k++) print_message("kind %d: %.3g, with plain bounds %.3g\n", k, found[k], plain[k]);
    assert_true(found[0] < 0.9 * plain[0] && found[5] < 0.1 * plain[5]);
}

/* `levels` is 1 or 3 here (one or two bits per number), and all numbers of a plane are multiples of 1 / levels. For
 * levels above 0, bc4_encode rounds the decoded numbers to multiples of 1 / levels when it computes an error. After
 * this rounding, the decoded numbers must be equal to the numbers of the plane. */
static void few_levels_come_back(void **state)
{
    (void)state;
    vkt_rng r = vkt_rng_make(4, VKT_STREAM_TEST, 0, 0);
    for (uint32_t n = 0; n < 400; n++) {
        const uint32_t levels = n % 2 ? 3 : 1;
        fixture f, out;
        draw_plane(&r, &f, n % KINDS);
        for (uint32_t i = 0; i < f.height * f.width; i++)
            f.plane[i] = (uint16_t)(BC4_STEPS / levels * bc4_rescale(f.plane[i], BC4_STEPS, levels));
        out = f;
        bc4_encode(f.plane, f.height, f.width, levels, out.blocks);
        bc4_decode(out.blocks, f.height, f.width, out.plane);
        check_decoder(&out);
        for (uint32_t i = 0; i < f.height * f.width; i++)
            assert_int_equal(lround(levels * (out.plane[i] / 8925.0)), lround(levels * (f.plane[i] / 8925.0)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_block_is_decoded_by_the_formulas),
        cmocka_unit_test(what_blocks_hold_does_not_change),
        cmocka_unit_test(errors_are_below_those_of_plain_bounds),
        cmocka_unit_test(few_levels_come_back),
    };
    return cmocka_run_group_tests_name("BC4 blocks", tests, NULL, NULL);
}
