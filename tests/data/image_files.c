/* data/image_files.c - see image_files.h. */
#include "data/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "support/host.h"

image_file golden_image_file(const char *name)
{
    char path[1024];
    void *bytes;
    image_file f = { 0 };
    const vkt_host h = vkt_test_host();
    snprintf(path, sizeof path, "%s/golden/images/%s", VKT_TEST_DIR, name);
    assert_int_equal(vkt_file_read(&h, path, 1u << 20, &bytes, &f.n), VKT_OK);
    f.p = malloc(f.n);
    memcpy(f.p, bytes, f.n);
    vkt_free(&h, bytes);
    return f;
}

enum { ROOM = 1 << 16 };

static void append(png_structp png, png_bytep from, size_t n)
{
    image_file *f = png_get_io_ptr(png);
    if (f->n + n > ROOM) png_error(png, "the test's image is too large");
    memcpy(f->p + f->n, from, n);
    f->n += n;
}

static void flush(png_structp png)
{
    (void)png;
}

image_file encode_png(const png_params *p, const uint8_t *rows)
{
    image_file f = { malloc(ROOM), 0 };
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png))) fail_msg("libpng cannot write colour %d, depth %d", p->colour, p->depth);
    png_set_write_fn(png, &f, append, flush);
    png_set_IHDR(png, info, p->width, p->height, p->depth, p->colour,
                 p->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (p->colour == 3) {
        png_color colours[256];
        for (int i = 0; i < 1 << p->depth; i++)
            colours[i] = (png_color){ p->palette[3 * i], p->palette[3 * i + 1], p->palette[3 * i + 2] };
        png_set_PLTE(png, info, colours, 1 << p->depth);
    }
    if (p->transparent) png_set_tRNS(png, info, (png_byte[]){ 0, 128 }, 2, &(png_color_16){ .index = 1, .gray = 1 });
    if (p->exif) png_set_eXIf_1(png, info, (png_uint_32)p->exif_bytes, (png_bytep)(uintptr_t)p->exif);
    png_write_info(png, info);
    const size_t row_bytes = png_get_rowbytes(png, info);
    const int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < p->height; y++) png_write_row(png, rows + y * row_bytes);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return f;
}
