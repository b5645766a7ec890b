/* Tests the decoders of JPEG and PNG, and the resizing of images. The pixels of JPEG files, of rotated and of resized
 * images are compared with Pillow's. PNG files are also made in this test, with all colour types. Damaged files must be
 * refused, or do no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/philox.h"
#include "data/image.h"
#include "data/image_files.h"
#include "support/host.h"

enum { LIMIT = 1 << 16 };

typedef struct fixture {
    vkt_host h;
    vkt_image_scratch s;
    image_file files[4];
} fixture;

/* Reads a golden image file. forget() frees the file; the teardown calls forget(). */
static const image_file *golden(fixture *t, const char *name)
{
    image_file *f = t->files;
    while (f->p) f++;
    assert_true(f < t->files + VKT_COUNT(t->files));
    *f = golden_image_file(name);
    return f;
}

static void forget(fixture *t)
{
    for (size_t i = 0; i < VKT_COUNT(t->files); i++) free(t->files[i].p);
    memset(t->files, 0, sizeof t->files);
}

static vkt_result decode(fixture *t, const image_file *f, uint32_t channels, const vkt_image **out)
{
    return vkt_image_decode(&t->h, "a file", f->p, f->n, LIMIT, channels, &t->s, out);
}

static size_t bytes_of(const vkt_image *i)
{
    return (size_t)i->width * i->height * i->channels;
}

/* Checks that `f` decodes to the pixels of the golden PNG file `want`. These pixels are from Pillow. */
static void expect_golden(fixture *t, const image_file *f, const char *want, uint32_t channels)
{
    vkt_image_scratch other = { 0 };
    const vkt_image *got, *right;
    const image_file *g = golden(t, want);
    assert_int_equal(decode(t, f, channels, &got), VKT_OK);
    assert_int_equal(vkt_image_decode(&t->h, want, g->p, g->n, LIMIT, channels, &other, &right), VKT_OK);
    if (got->width != right->width || got->height != right->height ||
        memcmp(got->pixels.p, right->pixels.p, bytes_of(right)) != 0)
        fail_msg("%s: %u x %u other pixels", want, got->width, got->height);
    vkt_image_scratch_free(&t->h, &other);
}

static void jpeg_files_give_pillows_pixels(void **state)
{
    fixture *t = *state;
    static const char *const kinds[] = { "420", "444", "progressive", "gray", "cmyk" };
    for (size_t i = 0; i < VKT_COUNT(kinds); i++) {
        char file[32], rgb[32], l[32];
        snprintf(file, sizeof file, "%s.jpg", kinds[i]);
        snprintf(rgb, sizeof rgb, "%s_rgb.png", kinds[i]);
        snprintf(l, sizeof l, "%s_l.png", kinds[i]);
        const image_file *f = golden(t, file);
        expect_golden(t, f, rgb, 3);
        expect_golden(t, f, l, 1);
        forget(t);
    }
}

/* ---- PNG: conversion of samples (PNG's word for the numbers of a pixel) ---- */

typedef struct png_case {
    int colour, depth, samples; /* samples: number of samples of a pixel */
} png_case;
static const png_case png_cases[] = { { 0, 1, 1 }, { 0, 2, 1 },  { 0, 4, 1 },  { 0, 8, 1 }, { 0, 16, 1 },
                                      { 2, 8, 3 }, { 2, 16, 3 }, { 3, 1, 1 },  { 3, 2, 1 }, { 3, 4, 1 },
                                      { 3, 8, 1 }, { 4, 8, 2 },  { 4, 16, 2 }, { 6, 8, 4 }, { 6, 16, 4 } };

enum { PNG_W = 13, PNG_H = 9, PNG_ROW = PNG_W * 8 };

/* Packs random samples into `rows`. Writes to `rgb` the RGB pixels that these samples encode. */
static void draw_png(vkt_rng *rng, const png_case *c, const uint8_t *palette, uint8_t *rows, uint8_t *rgb)
{
    const uint32_t most = (1u << c->depth) - 1, row_bytes = vkt_div_up(PNG_W * (uint32_t)(c->samples * c->depth), 8);
    memset(rows, 0, PNG_H * PNG_ROW);
    for (uint32_t y = 0; y < PNG_H; y++)
        for (uint32_t x = 0; x < PNG_W; x++, rgb += 3) {
            uint32_t v[4] = { 0 };
            for (uint32_t s = 0; s < (uint32_t)c->samples; s++) {
                v[s] = vkt_rng_range(rng, 0, most);
                const uint32_t bit = (x * (uint32_t)c->samples + s) * (uint32_t)c->depth;
                uint8_t *at = rows + y * row_bytes + bit / 8;
                if (c->depth == 16) {
                    at[0] = (uint8_t)(v[s] >> 8);
                    at[1] = (uint8_t)v[s];
                } else {
                    *at |= (uint8_t)(v[s] << (8 - (uint32_t)c->depth - bit % 8));
                }
            }
            for (uint32_t k = 0; k < 3; k++) {
                const uint32_t sample = v[c->samples >= 3 ? k : 0];
                const uint32_t scaled = (sample * 510 + most) / (2 * most); /* rounded to the nearest */
                rgb[k] = (uint8_t)(c->colour == 3 ? palette[3 * sample + k] : scaled);
            }
        }
}

static void png_files_of_every_kind_give_their_samples(void **state)
{
    fixture *t = *state;
    vkt_rng rng = vkt_rng_make(1, VKT_STREAM_TEST, 0, 0);
    uint8_t palette[3 * 256], rows[PNG_H * PNG_ROW], rgb[PNG_H * PNG_W * 3];
    for (size_t i = 0; i < sizeof palette; i++) palette[i] = (uint8_t)vkt_rng_range(&rng, 0, 255);
    for (size_t i = 0; i < VKT_COUNT(png_cases); i++)
        for (int option = 0; option < 4; option++) {
            const png_case *c = &png_cases[i];
            draw_png(&rng, c, palette, rows, rgb);
            const png_params p = { .width = PNG_W,
                                   .height = PNG_H,
                                   .colour = c->colour,
                                   .depth = c->depth,
                                   .interlaced = option & 1,
                                   .transparent = option & 2 && c->colour < 4,
                                   .palette = palette };
            const image_file f = encode_png(&p, rows);
            const vkt_image *got;
            assert_int_equal(decode(t, &f, 3, &got), VKT_OK);
            assert_true(got->width == PNG_W && got->height == PNG_H && got->channels == 3);
            if (memcmp(got->pixels.p, rgb, sizeof rgb) != 0)
                fail_msg("colour %d, depth %d, option %d: other pixels", c->colour, c->depth, option);
            assert_int_equal(decode(t, &f, 1, &got), VKT_OK);
            for (uint32_t k = 0; k < PNG_W * PNG_H; k++) {
                const double luma = 0.299 * rgb[3 * k] + 0.587 * rgb[3 * k + 1] + 0.114 * rgb[3 * k + 2];
                assert_true(got->pixels.p[k] >= luma - 0.51 && got->pixels.p[k] <= luma + 0.51);
            }
            free(f.p);
        }
}

/* ---- EXIF ---- */

/* Writes TIFF data with two entries: an image width, then an orientation with this type, count and value. Returns the
 * size of the data in bytes. */
static size_t tiff_with(uint8_t out[64], bool little, uint32_t type, uint32_t count, uint32_t value)
{
    const uint32_t words[] = { 42, 0, 8, 2, 0x0100, 4, 0, 1, 0, 7, 0x0112, type, 0, count, value, 0, 0, 0 };
    static const uint8_t size[] = { 2, 0, 4, 2, 2, 2, 0, 4, 0, 4, 2, 2, 0, 4, 2, 2, 4, 0 }; /* in bytes */
    size_t n = 2;
    out[0] = out[1] = little ? 'I' : 'M';
    for (size_t i = 0; i < VKT_COUNT(words); i++)
        for (uint32_t b = 0; b < size[i]; b++) out[n++] = (uint8_t)(words[i] >> 8 * (little ? b : size[i] - 1u - b));
    return n;
}

static void orientations_are_applied_as_by_pillow(void **state)
{
    fixture *t = *state;
    for (uint32_t o = 1; o <= 8; o++)
        for (int little = 0; little < 2; little++) {
            uint8_t tiff[64], file[4096] = { 0xff, 0xd8, 0xff, 0xe1, 0 };
            const size_t n = tiff_with(tiff, little, 3, 1, o);
            char name[32];
            snprintf(name, sizeof name, "turned_%u.png", o);
            const image_file *plain = golden(t, "turned.jpg");
            file[5] = (uint8_t)(2 + 6 + n);
            memcpy(file + 6, "Exif\0", 6);
            memcpy(file + 12, tiff, n);
            memcpy(file + 12 + n, plain->p + 2, plain->n - 2);
            expect_golden(t, &(image_file){ file, 12 + n + plain->n - 2 }, name, 3);
            forget(t);
            /* Encodes the pixels of turned_1.png again, as a PNG whose eXIf chunk has the orientation. */
            const image_file *upright = golden(t, "turned_1.png");
            const vkt_image *pixels;
            assert_int_equal(decode(t, upright, 3, &pixels), VKT_OK);
            const png_params p = {
                .width = pixels->width, .height = pixels->height, .colour = 2, .depth = 8, .exif = tiff, .exif_bytes = n
            };
            const image_file f = encode_png(&p, pixels->pixels.p);
            expect_golden(t, &f, name, 3);
            free(f.p);
            forget(t);
        }
}

static void malformed_exif_means_upright(void **state)
{
    (void)state;
    uint8_t tiff[64];
    for (int little = 0; little < 2; little++) {
        const size_t n = tiff_with(tiff, little, 3, 1, 6);
        assert_int_equal(vkt_exif_orientation(tiff, n), 6);
        /* Truncates the data before the end of the last entry. The decoder does not read the 4 bytes behind this entry
         * (the offset of the next IFD), so the loop ends before these bytes. */
        for (size_t length = 0; length < n - 4; length++) {
            uint8_t *exact = test_malloc(length + 1); /* a sanitizer sees a read behind these length + 1 bytes */
            memcpy(exact, tiff, length);
            assert_int_equal(vkt_exif_orientation(exact, length), 1);
            test_free(exact);
        }
        assert_int_equal(vkt_exif_orientation(tiff, tiff_with(tiff, little, 3, 1, 0)), 1);
        assert_int_equal(vkt_exif_orientation(tiff, tiff_with(tiff, little, 3, 1, 9)), 1);
        assert_int_equal(vkt_exif_orientation(tiff, tiff_with(tiff, little, 4, 1, 6)), 1);
        assert_int_equal(vkt_exif_orientation(tiff, tiff_with(tiff, little, 3, 2, 6)), 1);
        tiff_with(tiff, little, 3, 1, 6);
        tiff[little ? 7 : 4] = 0xff; /* the IFD is behind the end of the data */
        assert_int_equal(vkt_exif_orientation(tiff, n), 1);
        tiff_with(tiff, !little, 3, 1, 6);
        tiff[1] = 'X';
        assert_int_equal(vkt_exif_orientation(tiff, n), 1);
    }
}

/* ---- damage ---- */

static void refuse(fixture *t, const image_file *f, const char *says)
{
    const vkt_image *out;
    assert_int_equal(decode(t, f, 3, &out), VKT_E_FORMAT);
    vkt_test_error_contains("a file");
    vkt_test_error_contains(says);
}

static void a_file_truncated_at_any_byte_is_refused(void **state)
{
    fixture *t = *state;
    static const char *const names[] = { "420.jpg", "progressive.jpg", "cmyk.jpg", "gray_20x20.png", "noise.png" };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(names); i++) {
        image_file f = *golden(t, names[i]);
        while (f.n > 0) {
            f.n -= VKT_MIN(f.n, f.n > 1500 ? 7 : 1);
            uint8_t *exact = test_malloc(f.n + 1); /* a sanitizer sees a read behind these f.n + 1 bytes */
            memcpy(exact, f.p, f.n);
            refuse(t, &(image_file){ exact, f.n }, "");
            test_free(exact);
        }
        forget(t);
    }
}

static void damaged_files_do_no_harm(void **state)
{
    fixture *t = *state;
    static const char *const names[] = { "420.jpg", "progressive.jpg", "cmyk.jpg", "noise_20x20.png" };
    uint32_t good = 0, bad = 0;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(names); i++) {
        const image_file *f = golden(t, names[i]);
        for (uint32_t seed = 1; seed <= 300; seed++) {
            vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
            uint8_t *copy = test_malloc(f->n);
            memcpy(copy, f->p, f->n);
            for (uint32_t k = vkt_rng_range(&rng, 1, 8); k > 0; k--)
                copy[vkt_rng_range(&rng, 0, (uint32_t)f->n - 1)] = (uint8_t)vkt_rng_range(&rng, 0, 255);
            const vkt_image *out;
            const vkt_result r = decode(t, &(image_file){ copy, f->n }, 3, &out);
            assert_true(r == VKT_OK || r == VKT_E_FORMAT);
            *(r == VKT_OK ? &good : &bad) += 1;
            test_free(copy);
        }
        forget(t);
    }
    assert_true(good > 100 && bad > 100);
}

static void other_kinds_and_sizes_are_refused(void **state)
{
    fixture *t = *state;
    vkt_test_expect_errors(true);
    refuse(t, &(image_file){ (uint8_t *)(uintptr_t) "GIF89a", 6 }, "neither JPEG nor PNG");
    refuse(t, &(image_file){ NULL, 0 }, "is empty: want a JPEG or PNG file");
    const image_file *jpeg = golden(t, "420.jpg"), *png = golden(t, "noise_7x5.png");
    const vkt_image *out;
    assert_int_equal(vkt_image_decode(&t->h, "x", jpeg->p, jpeg->n, 43 * 29 - 1, 3, &t->s, &out), VKT_E_FORMAT);
    vkt_test_error_contains("has 43 x 29 pixels: want 1 to 1246");
    assert_int_equal(vkt_image_decode(&t->h, "x", png->p, png->n, 34, 3, &t->s, &out), VKT_E_FORMAT);
    vkt_test_error_contains("has 7 x 5 pixels");
    assert_int_equal(vkt_image_decode(&t->h, "x", jpeg->p, jpeg->n, 43 * 29, 3, &t->s, &out), VKT_OK);
    for (int i = 16; i < 24; i++) png->p[i] = i % 4 ? 0xff : 0x7f; /* width and height become 2^31 - 1 */
    const uint32_t crc = (uint32_t)crc32(0, png->p + 12, 17);      /* the checksum becomes correct */
    for (int i = 0; i < 4; i++) png->p[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
    refuse(t, png, "2147483647 x 2147483647 pixels");
}

/* The first scan of a progressive JPEG is repeated 600 times. A scan has few bytes, but the decoder needs a pass over
 * the whole image for each scan. */
static void endless_scans_are_refused(void **state)
{
    fixture *t = *state;
    const image_file *f = golden(t, "progressive.jpg");
    size_t sos = 2, end;
    while (f->p[sos] != 0xff || f->p[sos + 1] != 0xda) sos++;
    for (end = sos + 2; f->p[end] != 0xff || f->p[end + 1] == 0; end++) continue;
    const size_t scan = end - sos;
    image_file many = { malloc(f->n + 600 * scan), sos };
    assert_non_null(many.p);
    memcpy(many.p, f->p, sos);
    for (int i = 0; i < 600; i++, many.n += scan) memcpy(many.p + many.n, f->p + sos, scan);
    memcpy(many.p + many.n, f->p + sos, f->n - sos);
    many.n += f->n - sos;
    vkt_test_expect_errors(true);
    refuse(t, &many, "more than 500 scans");
    free(many.p);
}

static void failed_allocations_are_a_status(void **state)
{
    fixture *t = *state;
    static const char *const names[] = { "420.jpg", "noise_7x5.png", "gray_7x5.png" };
    for (size_t i = 0; i < VKT_COUNT(names); i++) {
        const image_file *f = golden(t, names[i]);
        for (unsigned n = 1;; n++) {
            uint8_t planes[3 * 4 * 4];
            const vkt_image *out;
            vkt_test_fail_allocation(n);
            vkt_result r = decode(t, f, 3, &out);
            if (r == VKT_OK) r = vkt_image_resize(&t->h, out, 4, 4, &t->s, planes);
            vkt_image_scratch_free(&t->h, &t->s);
            assert_int_equal(vkt_test_live_blocks(), 0);
            if (!vkt_test_allocation_failed()) break;
            assert_int_equal(r, VKT_E_NOMEM);
        }
        vkt_test_fail_allocation(0);
    }
}

/* ---- resizing ---- */

static void resized_images_are_pillows_to_the_bit(void **state)
{
    fixture *t = *state;
    static const uint32_t sizes[][2] = { { 1, 1 },   { 7, 5 },   { 20, 20 },  { 31, 64 },
                                         { 53, 20 }, { 52, 38 }, { 100, 37 }, { 80, 90 } };
    for (size_t i = 0; i < VKT_COUNT(sizes); i++)
        for (uint32_t C = 1; C <= 3; C += 2) {
            const uint32_t w = sizes[i][0], height = sizes[i][1];
            char name[32];
            snprintf(name, sizeof name, "%s_%ux%u.png", C == 3 ? "noise" : "gray", w, height);
            const vkt_image *in, *want;
            static uint8_t planes[3 * 100 * 90];
            assert_int_equal(decode(t, golden(t, "noise.png"), C, &in), VKT_OK);
            assert_int_equal(vkt_image_resize(&t->h, in, w, height, &t->s, planes), VKT_OK);
            assert_int_equal(decode(t, golden(t, name), C, &want), VKT_OK);
            assert_true(want->width == w && want->height == height && want->channels == C);
            for (uint32_t k = 0; k < w * height * C; k++)
                if (planes[k % C * w * height + k / C] != want->pixels.p[k])
                    fail_msg("%s: byte %u: want %u, got %u", name, k, want->pixels.p[k],
                             planes[k % C * w * height + k / C]);
            forget(t);
        }
}

static void an_image_of_the_right_size_is_copied(void **state)
{
    fixture *t = *state;
    const vkt_image *in;
    static uint8_t planes[3 * 53 * 37];
    assert_int_equal(decode(t, golden(t, "noise.png"), 3, &in), VKT_OK);
    assert_int_equal(vkt_image_resize(&t->h, in, 53, 37, &t->s, planes), VKT_OK);
    for (uint32_t k = 0; k < sizeof planes; k++) assert_int_equal(planes[k % 3 * 53 * 37 + k / 3], in->pixels.p[k]);
}

static void decoding_again_allocates_nothing_here(void **state)
{
    fixture *t = *state;
    static uint8_t planes[3 * 20 * 20];
    const vkt_image *image;
    const image_file *f = golden(t, "420.jpg");
    unsigned long before = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(decode(t, f, 1, &image), VKT_OK);
        assert_int_equal(vkt_image_resize(&t->h, image, 20, 20, &t->s, planes), VKT_OK);
        if (i == 0) before = vkt_test_allocations();
    }
    assert_int_equal(vkt_test_allocations(), before);
}

static int setup(void **state)
{
    static fixture t;
    vkt_test_setup(state);
    t = (fixture){ .h = vkt_test_host() };
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    fixture *t = *state;
    forget(t);
    vkt_image_scratch_free(&t->h, &t->s);
    return vkt_test_teardown(state);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(jpeg_files_give_pillows_pixels),          TEST(png_files_of_every_kind_give_their_samples),
        TEST(orientations_are_applied_as_by_pillow),   TEST(malformed_exif_means_upright),
        TEST(a_file_truncated_at_any_byte_is_refused), TEST(damaged_files_do_no_harm),
        TEST(other_kinds_and_sizes_are_refused),       TEST(endless_scans_are_refused),
        TEST(failed_allocations_are_a_status),         TEST(resized_images_are_pillows_to_the_bit),
        TEST(an_image_of_the_right_size_is_copied),    TEST(decoding_again_allocates_nothing_here),
    };
    return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
