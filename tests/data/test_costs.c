/* Tests readers with small files that could need much memory or time, and with files that are not regular. Each reader
 * has limits, for instance for the size of an image or of an unpacked file. A reader must refuse a file that exceeds a
 * limit. Also tests vkt_image_read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h> /* before jpeglib.h, which needs FILE */
#include <stdlib.h>
#include <sys/stat.h>

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include "base/base.h"
#include "data/gallery.h"
#include "data/image.h"
#include "data/image_files.h"
#include "data/temp.h"
#include "support/host.h"
#include "vktrain/table.h"
#include "vktrain/text.h"

enum { MIB = 1 << 20 };

/* Fails the test if more than `most` bytes were live at once since the last call of vkt_test_peak_bytes. */
static void expect_peak(size_t most, const char *what)
{
    const size_t peak = vkt_test_peak_bytes();
    if (peak > most) fail_msg("%s: %zu bytes at once: want at most %zu", what, peak, most);
}

/* ---- PNG ---- */

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Appends a chunk to f->p, which has enough memory. */
static void add_chunk(image_file *f, const char *type, const void *data, uint32_t n)
{
    uint8_t *p = f->p + f->n;
    put_u32(p, n);
    memcpy(p + 4, type, 4);
    if (n) memcpy(p + 8, data, n);
    put_u32(p + 8 + n, (uint32_t)crc32(0, p + 4, n + 4));
    f->n += n + 12;
}

/* Begins a gray PNG of 8 bits in a buffer of `room` bytes. */
static image_file begin_png(uint32_t width, uint32_t height, size_t room)
{
    image_file f = { malloc(room), 8 };
    uint8_t header[13] = { [8] = 8 };
    assert_non_null(f.p);
    memcpy(f.p, "\x89PNG\r\n\x1a\n", 8);
    put_u32(header, width);
    put_u32(header + 4, height);
    add_chunk(&f, "IHDR", header, sizeof header);
    return f;
}

/* Returns zlib's stream of n zeros. *bytes gets the size of the stream. */
static uint8_t *packed_zeros(size_t n, uLongf *bytes)
{
    uint8_t *zeros = calloc(n, 1);
    *bytes = compressBound(n);
    uint8_t *packed = malloc(*bytes);
    assert_true(zeros && packed);
    assert_int_equal(compress2(packed, bytes, zeros, n, 9), Z_OK);
    free(zeros);
    return packed;
}

static vkt_result decode(const image_file *f, uint64_t max_pixels)
{
    const vkt_host h = vkt_test_host();
    vkt_image_scratch s = { 0 };
    const vkt_image *out;
    const vkt_result r = vkt_image_decode(&h, "a file", f->p, f->n, max_pixels, 3, &s, &out);
    vkt_image_scratch_free(&h, &s);
    return r;
}

static void few_bytes_make_no_large_image(void **state)
{
    (void)state;
    /* If max_pixels is 0, a side may have at most 65535 pixels. An image may have at most 25 million pixels if its file
     * has 130 kB, and 17 million if its file has 145 bytes. */
    static const uint32_t sizes[][2] = {
        { 134217727, 1 }, { 1, 134217727 }, { 65536, 1 }, { 11585, 11585 }, { 8000, 4000 }
    };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(sizes); i++) {
        image_file f = begin_png(sizes[i][0], sizes[i][1], 200000);
        uint8_t *noise = calloc(130000, 1);
        add_chunk(&f, "IDAT", noise, i < 4 ? 130000 : 100);
        free(noise);
        vkt_test_peak_bytes();
        assert_int_equal(decode(&f, 0), VKT_E_FORMAT);
        vkt_test_error_contains("max_pixels allows more");
        expect_peak(MIB, "a PNG");
        free(f.p);
    }
}

static void a_plain_drawing_is_read(void **state)
{
    (void)state;
    uLongf n;
    uint8_t *packed = packed_zeros((size_t)4001 * 4000, &n);
    image_file f = begin_png(4000, 4000, n + 200);
    add_chunk(&f, "IDAT", packed, (uint32_t)n);
    add_chunk(&f, "IEND", NULL, 0);
    assert_int_equal(decode(&f, 0), VKT_OK);
    put_u32(f.p + 16, 4000 * 1000);
    put_u32(f.p + 20, 1);
    put_u32(f.p + 29, (uint32_t)crc32(0, f.p + 12, 17));
    assert_int_equal(decode(&f, 4000 * 4000), VKT_OK); /* with max_pixels, a row may have more than 65535 pixels */
    free(f.p);
    free(packed);
}

static void packed_texts_of_a_png_are_not_kept(void **state)
{
    (void)state;
    enum { TEXTS = 50, BYTES = 4 * MIB };
    uLongf n, pixel_bytes;
    uint8_t *packed = packed_zeros(BYTES, &n), *pixel = packed_zeros(2, &pixel_bytes);
    uint8_t *chunk = malloc(n + 3);
    memcpy(chunk, "a\0\0", 3);
    memcpy(chunk + 3, packed, n);
    image_file f = begin_png(1, 1, TEXTS * (n + 20) + 200);
    for (int i = 0; i < TEXTS; i++) add_chunk(&f, "zTXt", chunk, (uint32_t)n + 3);
    add_chunk(&f, "IDAT", pixel, (uint32_t)pixel_bytes);
    add_chunk(&f, "IEND", NULL, 0);
    vkt_test_peak_bytes();
    assert_int_equal(decode(&f, 0), VKT_OK);
    expect_peak(MIB, "a PNG with packed texts");
    free(f.p);
    free(chunk);
    free(packed);
    free(pixel);
}

/* ---- JPEG ---- */

/* Makes a gray progressive JPEG of one colour. Its last scan is repeated `again` times. */
static image_file progressive(uint32_t side, unsigned again)
{
    struct jpeg_compress_struct c = { 0 };
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    JSAMPLE *row = calloc(side, 1);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, &n);
    c.image_width = c.image_height = side;
    c.input_components = 1;
    c.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&c);
    jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < side) jpeg_write_scanlines(&c, &row, 1);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(row);
    size_t last = n - 2; /* the last 2 bytes are the end marker */
    while (bytes[last] != 0xff || bytes[last + 1] != 0xda) last--;
    const size_t scan = n - 2 - last;
    image_file f = { malloc(n + again * scan), n - 2 };
    assert_non_null(f.p);
    memcpy(f.p, bytes, n);
    for (; again > 0; again--, f.n += scan) memcpy(f.p + f.n, bytes + last, scan);
    memcpy(f.p + f.n, bytes + n - 2, 2);
    f.n += 2;
    free(bytes);
    return f;
}

static void a_large_jpeg_has_few_scans(void **state)
{
    (void)state;
    image_file f = progressive(4096, 2);
    assert_int_equal(decode(&f, 0), VKT_OK);
    free(f.p);
    f = progressive(4096, 200);
    vkt_test_expect_errors(true);
    assert_int_equal(decode(&f, 0), VKT_E_FORMAT);
    vkt_test_error_contains("more than 128 scans");
    free(f.p);
}

/* ---- gzip ---- */

/* Writes a gzip file that unpacks to `begin` and n times the byte `fill`. Returns the path. gzip packs 1000 such bytes
 * into about one byte. */
static const char *pack(const vkt_temp_dir *t, const char *name, const void *begin, size_t begin_bytes, char fill,
                        size_t n)
{
    char *bytes = malloc(begin_bytes + n);
    assert_non_null(bytes);
    memcpy(bytes, begin, begin_bytes);
    memset(bytes + begin_bytes, fill, n);
    const char *path = temp_write(t, name, bytes, begin_bytes + n, true);
    free(bytes);
    vkt_test_peak_bytes();
    return path;
}

static void a_packed_file_unpacks_to_what_is_usual(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    vkt_dataset *ds;
    enum { BYTES = 80 * MIB };
    uint8_t idx[16] = { 0, 0, 8, 3 };
    put_u32(idx + 4, 80);
    put_u32(idx + 8, 1024);
    put_u32(idx + 12, 1024);
    const char *table = pack(t, "a.csv.gz", "x\n1\n", 4, '\n', BYTES), *images = pack(t, "i.gz", idx, 16, 0, BYTES);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_from_csv(&h, table, NULL, &ds), VKT_E_FORMAT);
    vkt_test_error_contains("VKT_MAX_UNPACKED");
    /* About 64 MiB are unpacked. While the buffer grows by 50 %, the old and the new buffer exist. */
    expect_peak(180 * (size_t)MIB, "a packed table");
    assert_int_equal(vkt_dataset_from_idx(&h, images, NULL, 0, &ds), VKT_E_FORMAT);
    vkt_test_error_contains("VKT_MAX_UNPACKED");
    expect_peak(MIB, "packed images");
    assert_int_equal(setenv("VKT_MAX_UNPACKED", "100000000", 1), 0);
    assert_int_equal(vkt_dataset_from_csv(&h, table, NULL, &ds), VKT_OK);
    vkt_dataset_destroy(&ds);
    assert_int_equal(vkt_dataset_from_idx(&h, images, NULL, 0, &ds), VKT_OK);
    vkt_dataset_destroy(&ds);
    unsetenv("VKT_MAX_UNPACKED");
}

static void a_record_has_a_limit_of_fields(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    vkt_dataset *ds;
    const char *table = pack(t, "a.csv.gz", "a", 1, ',', 8 * MIB);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_from_csv(&h, table, NULL, &ds), VKT_E_FORMAT);
    vkt_test_error_contains("want at most 1048576 fields");
    expect_peak(40 * (size_t)MIB, "commas");
}

/* Readers refuse files that are not regular. A device file such as /dev/zero never ends, and the reader of a FIFO would
 * wait. */
static void only_regular_files_are_read(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    const char *fifo = vkt_temp_dir_file(t, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const char *const paths[] = { "/dev/zero", fifo, t->path };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(paths); i++) {
        vkt_dataset *ds;
        vkt_texts *texts;
        vkt_vocab *vocab;
        assert_int_equal(vkt_dataset_from_csv(&h, paths[i], NULL, &ds), VKT_E_IO);
        assert_int_equal(vkt_dataset_from_idx(&h, paths[i], NULL, 0, &ds), VKT_E_IO);
        assert_int_equal(vkt_dataset_from_image_table(&h, paths[i], &gallery_small, &ds), VKT_E_IO);
        assert_int_equal(vkt_image_read(&h, paths[i], 0, 0, &ds), VKT_E_IO);
        assert_int_equal(vkt_texts_from_tsv(&h, paths[i], NULL, &texts), VKT_E_IO);
        assert_int_equal(vkt_vocab_load(&h, paths[i], &vocab), VKT_E_IO);
        vkt_test_error_contains("not a regular file");
    }
}

/* ---- one image ---- */

static void one_image_is_a_row(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    uint32_t w, height, chw[3];
    static uint8_t want[GALLERY_SIDE * GALLERY_SIDE * 3];
    vkt_dataset *ds;
    gallery_put(t, "a.png", 3);
    gallery_size(3, &w, &height);
    assert_true(w > 12 && w <= height * 2 && height > 12);
    static const uint32_t longest[] = { 0, 1000, 12, 1 };
    for (size_t i = 0; i < VKT_COUNT(longest); i++) {
        const uint32_t longer = VKT_MAX(w, height), side = longest[i] && longest[i] < longer ? longest[i] : longer;
        assert_int_equal(vkt_image_read(&h, vkt_temp_dir_file(t, "a.png"), longest[i], 0, &ds), VKT_OK);
        vkt_dataset_sample_shape(ds, chw);
        assert_int_equal(vkt_dataset_rows(ds), 1);
        assert_int_equal(chw[0], 3);
        assert_int_equal(VKT_MAX(chw[1], chw[2]), side);
        gallery_resized(3, chw[2], chw[1], want);
        assert_memory_equal(vkt_dataset_features(ds), want, (size_t)3 * chw[1] * chw[2]);
        vkt_dataset_destroy(&ds);
    }
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_image_read(&h, vkt_temp_dir_file(t, "none.png"), 0, 0, &ds), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_image_read(&h, gallery_text(t, "b.png", "no image"), 0, 0, &ds), VKT_E_FORMAT);
    assert_int_equal(vkt_image_read(&h, vkt_temp_dir_file(t, "a.png"), 0, 4, &ds), VKT_E_FORMAT);
    assert_int_equal(vkt_image_read(&h, NULL, 0, 0, &ds), VKT_E_ARG);
    assert_null(ds);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = { TEST(few_bytes_make_no_large_image),
                                        TEST(a_plain_drawing_is_read),
                                        TEST(packed_texts_of_a_png_are_not_kept),
                                        TEST(a_large_jpeg_has_few_scans),
                                        TEST(a_packed_file_unpacks_to_what_is_usual),
                                        TEST(a_record_has_a_limit_of_fields),
                                        TEST(only_regular_files_are_read),
                                        TEST(one_image_is_a_row) };
    return cmocka_run_group_tests_name("costs", tests, NULL, NULL);
}
