/* data/gallery.c - see gallery.h. */
#include "data/gallery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/philox.h"
#include "data/image.h"
#include "data/image_files.h"
#include "support/host.h"

void gallery_size(uint32_t seed, uint32_t *w, uint32_t *h)
{
    *w = 20 + seed * 7 % 31;
    *h = 18 + seed * 11 % 29;
}

static uint8_t sample(uint32_t seed, uint32_t i)
{
    return (uint8_t)vkt_philox4x32((vkt_philox){ { i, seed, 0, VKT_STREAM_TEST } }, 5).w[0];
}

void gallery_put(const vkt_temp_dir *t, const char *name, uint32_t seed)
{
    static uint8_t rows[GALLERY_SIDE * GALLERY_SIDE * 3];
    png_params p = { .colour = 2, .depth = 8 };
    gallery_size(seed, &p.width, &p.height);
    for (uint32_t i = 0; i < p.width * p.height * 3; i++) rows[i] = sample(seed, i);
    const image_file f = encode_png(&p, rows);
    temp_write(t, name, f.p, f.n, false);
    free(f.p);
}

const char *gallery_text(const vkt_temp_dir *t, const char *name, const char *text)
{
    return temp_write(t, name, text, strlen(text), false);
}

const char *gallery_table(const vkt_temp_dir *t, uint32_t n)
{
    char text[4096] = "path,label\n", name[32];
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "p%u.png", i);
        gallery_put(t, name, i);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s,%u\n", name, i % 3);
    }
    return gallery_text(t, "t.csv", text);
}

vkt_dataset *gallery_open(const char *path, const vkt_image_params *p)
{
    const vkt_host h = vkt_test_host();
    vkt_dataset *ds;
    assert_int_equal(vkt_dataset_from_image_table(&h, path, p, &ds), VKT_OK);
    return ds;
}

const vkt_image_params gallery_small = { .height = 9, .width = 11 };

void gallery_resized(uint32_t seed, uint32_t w, uint32_t h, uint8_t *planes)
{
    static uint8_t pixels[GALLERY_SIDE * GALLERY_SIDE * 3];
    const vkt_host host = vkt_test_host();
    vkt_image image = { .channels = 3, .pixels = { pixels, sizeof pixels } };
    vkt_image_scratch s = { 0 };
    gallery_size(seed, &image.width, &image.height);
    for (uint32_t i = 0; i < image.width * image.height * 3; i++) pixels[i] = sample(seed, i);
    assert_int_equal(vkt_image_resize(&host, &image, w, h, &s, planes), VKT_OK);
    vkt_image_scratch_free(&host, &s);
}

const vkt_image_params gallery_augmented = {
    .height = 12, .width = 12, .resize = 15, .random_crop = true, .random_flip = true
};
