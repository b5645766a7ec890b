/* Tests data sets of images: tables, folders, broken files, and real data sets compared with Pillow. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/base.h"
#include "base/file.h"
#include "data/gallery.h"
#include "data/loader.h"
#include "data/image_files.h"
#include "support/find_data.h"
#include "support/host.h"

/* Checks that sample `row` of ds is the image that gallery_put writes for `seed`, stretched to the width and
 * height of gallery_small. */
static void expect_row(const vkt_dataset *ds, uint32_t row, uint32_t seed)
{
    uint8_t got[3 * 9 * 11], want[3 * 9 * 11];
    assert_int_equal(vkt_dataset_row_bytes(ds), sizeof got);
    assert_int_equal(vkt_dataset_fetch(ds, row, got), VKT_OK);
    gallery_resized(seed, 11, 9, want);
    assert_memory_equal(got, want, sizeof want);
}

/* ---- tables ---- */

static void tables_of_all_forms_are_read(void **state)
{
    const vkt_temp_dir *t = *state;
    char text[1024];
    gallery_put(t, "a.png", 1);
    gallery_put(t, "b, \"c\".png", 2);
    gallery_put(t, "d.png", 3);
    const char *const forms[] = {
        "path,label\nd.png,zebra\na.png,Bee\n\"b, \"\"c\"\".png\",ape\n",
        "\xef\xbb\xbfLabel,id,Path\r\nzebra,9,d.png\r\nBee,8,a.png\r\nape,7,\"b, \"\"c\"\".png\"\r\n",
        "d.png,zebra\n./a.png,Bee\n\"b, \"\"c\"\".png\",ape",
    };
    for (size_t i = 0; i < VKT_COUNT(forms); i++) {
        vkt_dataset *ds = gallery_open(gallery_text(t, "t.csv", forms[i]), &gallery_small);
        uint32_t chw[3];
        vkt_dataset_sample_shape(ds, chw);
        assert_true(chw[0] == 3 && chw[1] == 9 && chw[2] == 11 && vkt_dataset_rows(ds) == 3);
        assert_int_equal(vkt_dataset_classes(ds), 3);
        assert_string_equal(vkt_dataset_class_name(ds, 0), "Bee"); /* capitals come first: bytes are compared */
        assert_string_equal(vkt_dataset_class_name(ds, 1), "ape");
        assert_memory_equal(vkt_dataset_labels(ds), ((uint32_t[]){ 2, 0, 1 }), 12);
        expect_row(ds, 0, 3);
        expect_row(ds, 1, 1);
        expect_row(ds, 2, 2);
        assert_false(vkt_dataset_varies(ds));
        vkt_dataset_destroy(&ds);
    }
    /* The labels of this table are numbers. */
    vkt_dataset *ds = gallery_open(gallery_text(t, "t.csv", "a.png,4\nd.png,0\n"), &gallery_small);
    assert_int_equal(vkt_dataset_classes(ds), 5);
    assert_null(vkt_dataset_class_name(ds, 0));
    assert_memory_equal(vkt_dataset_labels(ds), ((uint32_t[]){ 4, 0 }), 8);
    vkt_dataset_destroy(&ds);
    /* This table has an absolute path, other column names, and a column "path" that has no paths. */
    snprintf(text, sizeof text, "file,kind,path\n%s/d.png,5,x\n", t->path);
    vkt_image_params p = gallery_small;
    p.path_column = "file";
    p.label_column = "kind";
    ds = gallery_open(gallery_text(t, "t.csv", text), &p);
    assert_int_equal(vkt_dataset_labels(ds)[0], 5);
    expect_row(ds, 0, 3);
    vkt_dataset_destroy(&ds);
    /* This table has no column of labels. */
    ds = gallery_open(gallery_text(t, "t.csv", "path\na.png\n"), &gallery_small);
    assert_null(vkt_dataset_labels(ds));
    expect_row(ds, 0, 1);
    vkt_dataset_destroy(&ds);
    assert_int_equal(chdir(t->path), 0);
    ds = gallery_open("t.csv", &gallery_small); /* a path without a folder */
    expect_row(ds, 0, 1);
    vkt_dataset_destroy(&ds);
    assert_int_equal(chdir("/"), 0);
}

static void classes_of_another_set_are_kept(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    gallery_put(t, "a.png", 1);
    vkt_dataset *named = gallery_open(gallery_text(t, "t.csv", "a.png,x\na.png,7\na.png,y\n"),
                                      &gallery_small); /* 7 is a name here, because another label is no number */
    vkt_dataset *numbered = gallery_open(gallery_text(t, "t.csv", "a.png,3\n"), &gallery_small);
    vkt_image_params p = gallery_small;
    p.classes_like = named;
    vkt_dataset *ds = gallery_open(gallery_text(t, "t.csv", "a.png,y\na.png,7\n"), &p);
    assert_memory_equal(vkt_dataset_labels(ds), ((uint32_t[]){ 2, 0 }), 8);
    assert_int_equal(vkt_dataset_classes(ds), 3);
    assert_string_equal(vkt_dataset_class_name(ds, 1), "x");
    vkt_dataset_destroy(&ds);
    vkt_test_expect_errors(true);
    const char *path = gallery_text(t, "t.csv", "path,label\na.png,y\n\na.png,z\n");
    assert_int_equal(vkt_dataset_from_image_table(&h, path, &p, &ds), VKT_E_FORMAT);
    vkt_test_error_contains("t.csv, line 4: \"z\" is none of the 3 classes");
    p.classes_like = numbered;
    path = gallery_text(t, "t.csv", "a.png,2\na.png,4\n");
    assert_int_equal(vkt_dataset_from_image_table(&h, path, &p, &ds), VKT_E_FORMAT);
    vkt_test_error_contains("line 2: want a class number below 4, got \"4\"");
    vkt_dataset_destroy(&named);
    vkt_dataset_destroy(&numbered);
}

static void refuse(const char *path, const vkt_image_params *p, vkt_result want, const char *says)
{
    const vkt_host h = vkt_test_host();
    vkt_dataset *ds;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_from_image_table(&h, path, p, &ds), want);
    assert_null(ds);
    vkt_test_error_contains(says);
}

static void wrong_tables_and_settings_are_refused(void **state)
{
    const vkt_temp_dir *t = *state;
    gallery_put(t, "a.png", 1);
    refuse(gallery_text(t, "t.csv", ""), &gallery_small, VKT_E_FORMAT, "it is empty");
    refuse(gallery_text(t, "t.csv", "path,label\n"), &gallery_small, VKT_E_FORMAT, "no line behind its header");
    refuse(gallery_text(t, "t.csv", "a.png,1\n,2\n"), &gallery_small, VKT_E_FORMAT, "line 2: want a path, got nothing");
    refuse(gallery_text(t, "t.csv", "a.png,1,2\n"), &gallery_small, VKT_E_FORMAT,
           "line 1: want a header with the columns");
    refuse(gallery_text(t, "t.csv", "a.png,\"1\n"), &gallery_small, VKT_E_FORMAT,
           "line 1: a quote that is never closed");
    vkt_image_params p = gallery_small;
    p.path_column = "file";
    refuse(gallery_text(t, "t.csv", "path,label\na.png,1\n"), &p, VKT_E_FORMAT,
           "want a header with the columns \"file\"");
    refuse(vkt_temp_dir_file(t, "none.csv"), &gallery_small, VKT_E_NOT_FOUND, "none.csv");
    const char *good = gallery_text(t, "t.csv", "a.png,1\n");
    refuse(good, &(vkt_image_params){ .height = 3 }, VKT_E_ARG, "want a width and a height");
    refuse(good, &(vkt_image_params){ .height = 3, .width = 5, .resize = 4 }, VKT_E_ARG, "want 0 or 5 or more");
    refuse(good, &(vkt_image_params){ .height = 1u << 16, .width = 1u << 16 }, VKT_E_ARG, "want rows below 4 GiB");
    refuse(NULL, &gallery_small, VKT_E_ARG, "the path is NULL");
}

/* ---- folders ---- */

static void class_folders_are_read(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    static const char *const folders[] = { "ant", "Zoo", "bee", "ant/deep", ".git" };
    for (size_t i = 0; i < VKT_COUNT(folders); i++) assert_int_equal(mkdir(vkt_temp_dir_file(t, folders[i]), 0700), 0);
    gallery_put(t, "ant/2.PNG", 2);
    gallery_put(t, "ant/10.png", 3);
    gallery_put(t, "Zoo/a.png", 4);
    gallery_put(t, "ant/deep/x.png", 5);
    gallery_put(t, "ant/.x.png", 5);
    gallery_text(t, "ant/notes.txt", "no image");
    gallery_text(t, "readme.png", "no folder");
    vkt_dataset *ds, *other;
    assert_int_equal(vkt_dataset_from_image_folders(&h, t->path, &gallery_small, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_rows(ds), 3);
    assert_int_equal(vkt_dataset_classes(ds), 3); /* the folder "bee" is empty, but it is a class */
    assert_string_equal(vkt_dataset_class_name(ds, 2), "bee");
    assert_memory_equal(vkt_dataset_labels(ds), ((uint32_t[]){ 0, 1, 1 }), 12);
    expect_row(ds, 0, 4);
    expect_row(ds, 1, 3); /* "10.png" is before "2.PNG" */
    expect_row(ds, 2, 2);
    vkt_image_params p = gallery_small;
    p.classes_like = ds;
    assert_int_equal(unlink(vkt_temp_dir_file(t, "Zoo/a.png")), 0);
    assert_int_equal(rmdir(vkt_temp_dir_file(t, "Zoo")), 0);
    assert_int_equal(vkt_dataset_from_image_folders(&h, t->path, &p, &other), VKT_OK);
    assert_int_equal(vkt_dataset_labels(other)[0], 1); /* "ant/10.png" keeps label 1, although "Zoo" is gone */
    vkt_dataset_destroy(&other);
    vkt_test_expect_errors(true);
    assert_int_equal(mkdir(vkt_temp_dir_file(t, "cat"), 0700), 0);
    assert_int_equal(vkt_dataset_from_image_folders(&h, t->path, &p, &other), VKT_E_FORMAT);
    vkt_test_error_contains("/cat\" is none of the 3 classes");
    vkt_dataset_destroy(&ds);
    assert_int_equal(vkt_dataset_from_image_folders(&h, vkt_temp_dir_file(t, "cat"), &gallery_small, &ds),
                     VKT_E_NOT_FOUND);
    vkt_test_error_contains("want a folder per class");
    assert_int_equal(vkt_dataset_from_image_folders(&h, vkt_temp_dir_file(t, "cow"), &gallery_small, &ds),
                     VKT_E_NOT_FOUND);
    assert_int_equal(vkt_dataset_from_image_folders(&h, vkt_temp_dir_file(t, "readme.png"), &gallery_small, &ds),
                     VKT_E_IO);
}

/* A link to a missing file is no class. If stat fails for another reason, the entry may be a class. So the reader must
 * return an error. In this test, stat fails with ELOOP because a link points to itself. */
static void an_entry_that_cannot_be_looked_at_is_an_error(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    vkt_dataset *ds;
    assert_int_equal(mkdir(vkt_temp_dir_file(t, "ant"), 0700), 0);
    gallery_put(t, "ant/1.png", 1);
    assert_int_equal(symlink("nothing", vkt_temp_dir_file(t, "bee")), 0);
    assert_int_equal(vkt_dataset_from_image_folders(&h, t->path, &gallery_small, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_classes(ds), 1);
    vkt_dataset_destroy(&ds);
    assert_int_equal(symlink("cat", vkt_temp_dir_file(t, "cat")), 0);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_from_image_folders(&h, t->path, &gallery_small, &ds), VKT_E_IO);
    vkt_test_error_contains("/cat\"");
}

/* ---- broken files ---- */

static void broken_files_are_named_counted_and_left_out(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    gallery_table(t, 6);
    gallery_text(t, "p1.png", "no image");
    gallery_text(t, "p4.png", "");
    assert_int_equal(unlink(vkt_temp_dir_file(t, "p3.png")), 0);
    const char *table = vkt_temp_dir_file(t, "t.csv");
    uint32_t left_out = 99;
    vkt_dataset *ds;
    vkt_test_expect_errors(true);
    for (uint64_t cache = 0; cache < 2; cache++) { /* 0: all images are kept in memory; 1: no image is kept */
        vkt_image_params p = gallery_small;
        p.cache_bytes = cache;
        p.left_out = &left_out;
        const unsigned errors = vkt_test_errors();
        assert_int_equal(vkt_dataset_from_image_table(&h, table, &p, &ds), VKT_E_FORMAT);
        assert_int_equal(vkt_test_errors(), errors + 4); /* a line for each of the 3 files, and a line for all */
        assert_int_equal(left_out, 3);
        vkt_test_error_contains("3 of 6 are broken or missing; skip_broken would leave them out");
        p.skip_broken = true;
        assert_int_equal(vkt_dataset_from_image_table(&h, table, &p, &ds), VKT_OK);
        assert_int_equal(vkt_test_errors(), errors + 4);
        assert_int_equal(left_out, 3);
        assert_int_equal(vkt_dataset_rows(ds), 3);
        assert_memory_equal(vkt_dataset_labels(ds), ((uint32_t[]){ 0, 2, 2 }), 12);
        expect_row(ds, 0, 0);
        expect_row(ds, 1, 2);
        expect_row(ds, 2, 5);
        vkt_dataset_destroy(&ds);
    }
    vkt_image_params p = gallery_small;
    p.skip_broken = true;
    refuse(gallery_text(t, "u.csv", "p1.png,0\np4.png,0\n"), &p, VKT_E_FORMAT, "2 of 2 are broken or missing");
}

static void keep_first_line(void *user, vkt_log_level level, const char *line)
{
    char *first = user;
    (void)level;
    if (!*first) snprintf(first, 256, "%s", line);
}

static void an_empty_file_is_called_empty(void **state)
{
    const vkt_temp_dir *t = *state;
    char first[256] = "";
    vkt_host h = vkt_test_host();
    vkt_image_params p = gallery_small;
    vkt_dataset *ds;
    h.log = keep_first_line;
    h.log_user = first;
    p.cache_bytes = 1; /* no image is kept, so only the beginnings of files are read */
    gallery_text(t, "e.png", "");
    assert_int_equal(vkt_dataset_from_image_table(&h, gallery_text(t, "t.csv", "e.png,0\n"), &p, &ds), VKT_E_FORMAT);
    assert_non_null(strstr(first, "e.png\" is empty"));
}

/* The images are not kept in memory. So a file that is removed after the data set was made stops the epoch. The message
 * names the file. */
static void files_that_break_later_stop_the_epoch(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    vkt_image_params p = gallery_augmented;
    p.cache_bytes = 1;
    vkt_dataset *ds = gallery_open(gallery_table(t, 9), &p);
    assert_int_equal(unlink(vkt_temp_dir_file(t, "p7.png")), 0);
    uint8_t row[432];
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_fetch(ds, 7, row), VKT_E_NOT_FOUND);
    vkt_test_error_contains("row 7 could not be fetched: cannot open \"");
    vkt_test_error_contains("p7.png\": No such file");
    static uint8_t features[9 * 432];
    const vkt_loader_slot slot = { .features = features };
    const vkt_loader_params lp = { .dataset = ds, .batch = 9, .slots = &slot, .n_slots = 1, .workers = 3 };
    vkt_loader *l;
    uint32_t s, n;
    const unsigned errors = vkt_test_errors();
    assert_int_equal(vkt_loader_create(&h, &lp, &l), VKT_OK);
    assert_int_equal(vkt_loader_start_epoch(l, NULL, 9, (vkt_pass){ 1, 1 }), VKT_OK);
    assert_int_equal(vkt_loader_next(l, &s, &n), VKT_E_NOT_FOUND);
    vkt_test_error_contains("loader: row 7 (7 of the epoch) could not be fetched: cannot open \"");
    assert_int_equal(vkt_test_errors(), errors + 1); /* workers log nothing */
    vkt_loader_destroy(&l);
    vkt_dataset_destroy(&ds);
}

/* `resize` makes the shorter side 200 pixels long, so an image of 4000 x 1 pixels would become 800000 x 200. That is
 * more than max_pixels. So the file counts as broken, and the reader does not allocate memory for the large image. */
static void long_strips_are_broken(void **state)
{
    const vkt_temp_dir *t = *state;
    static uint8_t rows[4000];
    const image_file f = encode_png(&(png_params){ .width = 4000, .height = 1, .depth = 8 }, rows);
    temp_write(t, "a.png", f.p, f.n, false);
    free(f.p);
    refuse(gallery_text(t, "t.csv", "a.png,0\n"),
           &(vkt_image_params){ .height = 9, .width = 9, .resize = 200, .max_pixels = 4000 * 200 }, VKT_E_FORMAT,
           "1 of 1 are broken");
    vkt_dataset *ds = gallery_open(vkt_temp_dir_file(t, "t.csv"), &(vkt_image_params){ .height = 9, .width = 9 });
    vkt_dataset_destroy(&ds);
}

/* max_pixels is about the file: an image of 32 x 16 pixels becomes 256 x 128, which is more than max_pixels. */
static void small_images_may_be_enlarged(void **state)
{
    const vkt_temp_dir *t = *state;
    static uint8_t rows[32 * 16];
    const image_file f = encode_png(&(png_params){ .width = 32, .height = 16, .depth = 8 }, rows);
    temp_write(t, "a.png", f.p, f.n, false);
    free(f.p);
    vkt_dataset *ds = gallery_open(gallery_text(t, "t.csv", "a.png,0\n"),
                                   &(vkt_image_params){ .height = 96, .width = 96, .resize = 128, .max_pixels = 600 });
    vkt_dataset_destroy(&ds);
}

static unsigned until_bad_sector; /* the call of readdir that fails (1: the next one); 0: none fails */

/* Replaces the C library's function in this program. Calls that must not fail go to the C library. */
struct dirent *readdir(DIR *d)
{
    static struct dirent *(*real)(DIR *);
    void *symbol = real ? NULL : dlsym(RTLD_NEXT, "readdir");
    if (symbol) memcpy(&real, &symbol, sizeof real);
    if (until_bad_sector == 0 || --until_bad_sector > 0) return real(d);
    errno = EIO;
    return NULL;
}

static void a_folder_that_cannot_be_read_to_its_end_is_refused(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    assert_int_equal(mkdir(vkt_temp_dir_file(t, "ant"), 0700), 0);
    gallery_put(t, "ant/a.png", 1);
    gallery_put(t, "ant/b.png", 2);
    vkt_test_expect_errors(true);
    for (unsigned n = 1;; n++) {
        vkt_dataset *ds;
        until_bad_sector = n;
        const vkt_result r = vkt_dataset_from_image_folders(&h, t->path, &gallery_small, &ds);
        const bool failed = until_bad_sector == 0;
        until_bad_sector = 0;
        assert_int_equal(r, failed ? VKT_E_IO : VKT_OK);
        if (failed) {
            assert_null(ds);
            vkt_test_error_contains("Input/output error");
            continue;
        }
        assert_int_equal(vkt_dataset_rows(ds), 2);
        vkt_dataset_destroy(&ds);
        /* readdir was called nine times: for ".", "..", "ant", the end; then for ".", "..", two images, the end. */
        assert_int_equal(n, 10);
        break;
    }
}

static void failed_allocations_are_a_status(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    gallery_table(t, 2);
    const char *table = gallery_text(t, "t.csv", "p0.png,one\np1.png,two\n");
    assert_int_equal(mkdir(vkt_temp_dir_file(t, "one"), 0700), 0);
    gallery_put(t, "one/a.png", 3);
    for (int kind = 0; kind < 4; kind++)
        for (unsigned n = 1;; n++) {
            vkt_image_params p = gallery_augmented;
            p.workers = 1;
            p.cache_bytes = (uint64_t)kind & 1;
            vkt_dataset *ds;
            uint8_t row[432];
            vkt_test_fail_allocation(n);
            vkt_result r = kind < 2 ? vkt_dataset_from_image_table(&h, table, &p, &ds)
                                    : vkt_dataset_from_image_folders(&h, t->path, &p, &ds);
            assert_true((r == VKT_OK) == (ds != NULL));
            if (r == VKT_OK) r = vkt_dataset_fetch(ds, 0, row);
            vkt_dataset_destroy(&ds);
            assert_int_equal(vkt_test_live_blocks(), 0);
            if (!vkt_test_allocation_failed()) {
                assert_int_equal(r, VKT_OK);
                break;
            }
            assert_int_equal(r, VKT_E_NOMEM);
        }
    vkt_test_fail_allocation(0);
}

/* ---- real images ---- */

/* Returns the CRC-32 of the pixels of all samples. The expected numbers below are the output of make_image_golden.py,
 * which computes the same pixels with Pillow. */
static uint32_t checksum(const vkt_dataset *ds)
{
    uLong crc = 0;
    uint8_t *row = malloc(vkt_dataset_row_bytes(ds));
    assert_non_null(row);
    for (uint32_t i = 0; i < vkt_dataset_rows(ds); i++) {
        assert_int_equal(vkt_dataset_fetch(ds, i, row), VKT_OK);
        crc = crc32(crc, row, (uInt)vkt_dataset_row_bytes(ds));
    }
    free(row);
    return (uint32_t)crc;
}

static void real_data_sets_give_pillows_bytes(void **state)
{
    (void)state;
    char cifar[512], train[512], valid[512];
    if (!vkt_test_find_data("cifar10-jpeg/test.csv", cifar) || !vkt_test_find_data("caltech101/train.csv", train) ||
        !vkt_test_find_data("caltech101/valid.csv", valid))
        skip();
    vkt_dataset *ds = gallery_open(cifar, &(vkt_image_params){ .height = 32, .width = 32 });
    assert_int_equal(vkt_dataset_rows(ds), 2000);
    assert_int_equal(vkt_dataset_classes(ds), 10);
    assert_string_equal(vkt_dataset_class_name(ds, 9), "truck");
    assert_int_equal(checksum(ds), 0xd81a4ffa);
    vkt_dataset_destroy(&ds);
    vkt_image_params p = { .height = 48, .width = 64, .cache_bytes = 1 };
    vkt_dataset *all = gallery_open(train, &p);
    assert_int_equal(vkt_dataset_rows(all), 1818);
    assert_int_equal(vkt_dataset_classes(all), 101);
    p = (vkt_image_params){ .height = 48, .width = 64, .classes_like = all };
    ds = gallery_open(valid, &p);
    assert_int_equal(vkt_dataset_rows(ds), 404);
    assert_int_equal(checksum(ds), 0x10eb98c7);
    vkt_dataset_destroy(&ds);
    p = (vkt_image_params){ .height = 30, .width = 37, .resize = 40, .classes_like = all };
    ds = gallery_open(valid, &p);
    assert_string_equal(vkt_dataset_class_name(ds, 0), "Faces");
    assert_int_equal(checksum(ds), 0x4767edb8);
    vkt_dataset_destroy(&ds);
    vkt_dataset_destroy(&all);
}

/* Checks that vkt_image_row and a data set give the same bytes for the same file. The data set of the first iteration
 * stretches the image. The data set of the second iteration crops the middle of the image. */
static void one_image_in_memory_is_a_row(void **state)
{
    const vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    vkt_image_params cropped = gallery_small, none = gallery_small;
    cropped.resize = 23;
    cropped.gray = true;
    none.width = 0;
    const char *path = gallery_table(t, 3);
    for (int i = 0; i < 2; i++) {
        const vkt_image_params *p = i ? &cropped : &gallery_small;
        vkt_dataset *ds = gallery_open(path, p);
        uint8_t want[3 * 9 * 11], got[3 * 9 * 11];
        void *file;
        size_t n;
        assert_int_equal(vkt_dataset_fetch(ds, 2, want), VKT_OK);
        assert_int_equal(vkt_file_read(&h, vkt_temp_dir_file(t, "p2.png"), 1u << 24, &file, &n), VKT_OK);
        assert_int_equal(vkt_image_row(&h, p, "p2", file, n, got), VKT_OK);
        assert_memory_equal(got, want, vkt_dataset_row_bytes(ds));
        assert_int_equal(vkt_image_row(&h, p, "p2", file, n - 9, got), VKT_E_FORMAT);
        assert_int_equal(vkt_image_row(&h, p, "p2", "text", 4, got), VKT_E_FORMAT);
        assert_int_equal(vkt_image_row(&h, p, "p2", "", 0, got), VKT_E_FORMAT);
        vkt_test_error_contains("\"p2\" is empty");
        assert_int_equal(vkt_image_row(&h, &none, "p2", file, n, got), VKT_E_ARG);
        assert_int_equal(vkt_image_row(&h, NULL, "p2", file, n, got), VKT_E_ARG);
        assert_int_equal(vkt_image_row(&h, p, NULL, file, n, got), VKT_E_ARG);
        assert_int_equal(vkt_image_row(&h, p, "p2", NULL, n, got), VKT_E_ARG);
        assert_int_equal(vkt_image_row(&h, p, "p2", file, n, NULL), VKT_E_ARG);
        vkt_free(&h, file);
        vkt_dataset_destroy(&ds);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_image_in_memory_is_a_row),
        TEST(tables_of_all_forms_are_read),
        TEST(classes_of_another_set_are_kept),
        TEST(wrong_tables_and_settings_are_refused),
        TEST(class_folders_are_read),
        TEST(an_entry_that_cannot_be_looked_at_is_an_error),
        TEST(broken_files_are_named_counted_and_left_out),
        TEST(an_empty_file_is_called_empty),
        TEST(files_that_break_later_stop_the_epoch),
        TEST(long_strips_are_broken),
        TEST(small_images_may_be_enlarged),
        TEST(a_folder_that_cannot_be_read_to_its_end_is_refused),
        TEST(failed_allocations_are_a_status),
        TEST(real_data_sets_give_pillows_bytes),
    };
    return cmocka_run_group_tests_name("images", tests, NULL, NULL);
}
