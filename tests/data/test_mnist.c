/* Tests data sets from IDX files: layouts, pairs of files that do not match, folders, and the real MNIST if its files
 * are there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/paths.h"
#include "base/system.h"
#include "data/temp.h"
#include "support/find_data.h"
#include "support/host.h"
#include "vktrain/data.h"

/* Writes a u8 IDX file. Its elements are 0, 1, 2, .. modulo `modulo`. */
static void write_idx(vkt_temp_dir *t, const char *name, unsigned rank, const uint32_t *dim, unsigned modulo, bool gzip)
{
    uint8_t b[4096] = { 0, 0, 8, (uint8_t)rank };
    size_t n = 4, payload = 1;
    for (unsigned i = 0; i < rank; i++) {
        b[n + 3] = (uint8_t)dim[i];
        n += 4;
        payload *= dim[i];
    }
    assert_true(n + payload <= sizeof b);
    for (size_t i = 0; i < payload; i++) b[n + i] = (uint8_t)(i % modulo);
    temp_write(t, name, b, n + payload, gzip);
}

static const uint32_t seven[1] = { 7 };

static vkt_result open_pair(vkt_temp_dir *t, uint32_t classes, vkt_dataset **ds)
{
    const vkt_host h = vkt_test_host();
    char images[512];
    snprintf(images, sizeof images, "%s", vkt_temp_dir_file(t, "images"));
    return vkt_dataset_from_idx(&h, images, vkt_temp_dir_file(t, "labels"), classes, ds);
}

static void expect_format(vkt_temp_dir *t, uint32_t classes, const char *says)
{
    vkt_dataset *ds;
    vkt_test_expect_errors(true);
    assert_int_equal(open_pair(t, classes, &ds), VKT_E_FORMAT);
    vkt_test_error_contains(says);
    assert_null(ds);
    assert_int_equal(vkt_test_live_blocks(), 0);
}

static void gray_images_become_one_channel(void **state)
{
    vkt_temp_dir *t = *state;
    write_idx(t, "images", 3, (const uint32_t[]){ 7, 2, 3 }, 256, false);
    write_idx(t, "labels", 1, seven, 4, true);
    vkt_dataset *ds;
    assert_int_equal(open_pair(t, 0, &ds), VKT_OK);
    uint32_t chw[3];
    vkt_dataset_sample_shape(ds, chw);
    assert_true(chw[0] == 1 && chw[1] == 2 && chw[2] == 3);
    assert_int_equal(vkt_dataset_rows(ds), 7);
    assert_int_equal(vkt_dataset_row_bytes(ds), 6);
    assert_int_equal(vkt_dataset_type(ds), VKT_ROW_U8);
    assert_int_equal(vkt_dataset_classes(ds), 4); /* the largest label is 3 */
    for (uint32_t i = 0; i < 7; i++) assert_int_equal(vkt_dataset_labels(ds)[i], i % 4);
    for (uint8_t i = 0; i < 42; i++) assert_int_equal(((const uint8_t *)vkt_dataset_features(ds))[i], i);
    vkt_dataset_destroy(&ds);
}

static void colour_images_are_converted_to_planes(void **state)
{
    vkt_temp_dir *t = *state;
    enum { N = 7, H = 2, W = 3, C = 4 };
    write_idx(t, "images", 4, (const uint32_t[]){ N, H, W, C }, 256, true);
    write_idx(t, "labels", 1, seven, 4, false);
    vkt_dataset *ds;
    assert_int_equal(open_pair(t, 9, &ds), VKT_OK);
    uint32_t chw[3];
    vkt_dataset_sample_shape(ds, chw);
    assert_true(chw[0] == C && chw[1] == H && chw[2] == W);
    assert_int_equal(vkt_dataset_classes(ds), 9);
    const uint8_t *got = vkt_dataset_features(ds);
    for (uint32_t n = 0; n < N; n++)
        for (uint32_t c = 0; c < C; c++)
            for (uint32_t y = 0; y < H; y++)
                for (uint32_t x = 0; x < W; x++)
                    assert_int_equal(got[((n * C + c) * H + y) * W + x], ((n * H + y) * W + x) * C + c);
    vkt_dataset_destroy(&ds);
}

static void vectors_and_missing_labels_are_read(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    write_idx(t, "images", 2, (const uint32_t[]){ 5, 6 }, 256, false);
    vkt_dataset *ds;
    assert_int_equal(vkt_dataset_from_idx(&h, vkt_temp_dir_file(t, "images"), NULL, 0, &ds), VKT_OK);
    uint32_t chw[3];
    vkt_dataset_sample_shape(ds, chw);
    assert_true(chw[0] == 1 && chw[1] == 1 && chw[2] == 6);
    assert_null(vkt_dataset_labels(ds));
    assert_int_equal(vkt_dataset_classes(ds), 0);
    vkt_dataset_destroy(&ds);
}

static void pairs_that_do_not_fit_are_refused(void **state)
{
    vkt_temp_dir *t = *state;
    write_idx(t, "images", 3, (const uint32_t[]){ 7, 2, 3 }, 256, false);
    write_idx(t, "labels", 1, (const uint32_t[]){ 6 }, 4, false);
    expect_format(t, 0, "has 6 labels");
    vkt_test_error_contains("has 7 images");
    write_idx(t, "labels", 1, seven, 7, false);
    expect_format(t, 6, "label 6: want a class below 6, got 6");
    write_idx(t, "labels", 2, (const uint32_t[]){ 7, 1 }, 4, false);
    expect_format(t, 0, "want labels of 1 IDX dimension, got 2");
    write_idx(t, "images", 1, seven, 256, false);
    expect_format(t, 0, "want images of 2 to 4 IDX dimensions, got 1");
}

static void a_folder_is_searched_for_every_usual_name(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    static const struct names {
        const char *images, *labels;
        vkt_split split;
        bool gzip;
        unsigned rank;
    } cases[] = {
        { "train-images-idx3-ubyte", "train-labels-idx1-ubyte", VKT_SPLIT_TRAIN, false, 3 },
        { "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", VKT_SPLIT_TRAIN, true, 3 },
        { "train-images-idx4-ubyte.gz", "train-labels-idx1-ubyte", VKT_SPLIT_TRAIN, true, 4 },
        { "train-images.idx3-ubyte", "train-labels.idx1-ubyte", VKT_SPLIT_TRAIN, false, 3 },
        { "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", VKT_SPLIT_TEST, false,
          3 }, /* unpacked files that still have the names of packed files */
        { "test-images-idx4-ubyte", "test-labels-idx1-ubyte", VKT_SPLIT_TEST, false, 4 },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const struct names *c = &cases[i];
        vkt_dataset *ds = (vkt_dataset *)t;
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_dataset_open_mnist_like(&h, t->path, c->split, 0, &ds), VKT_E_NOT_FOUND);
        assert_null(ds);
        vkt_test_error_contains(t->path);
        write_idx(t, c->images, c->rank, (const uint32_t[]){ 7, 2, 2, 3 }, 256, c->gzip);
        assert_int_equal(vkt_dataset_open_mnist_like(&h, t->path, c->split, 0, &ds), VKT_E_NOT_FOUND);
        write_idx(t, c->labels, 1, seven, 4, c->gzip);
        assert_int_equal(vkt_dataset_open_mnist_like(&h, t->path, c->split, 0, &ds), VKT_OK);
        assert_int_equal(vkt_dataset_row_bytes(ds), c->rank == 4 ? 12 : 4);
        vkt_dataset_destroy(&ds);
        vkt_path_remove(vkt_temp_dir_file(t, c->images));
        vkt_path_remove(vkt_temp_dir_file(t, c->labels));
    }
}

static void write_folder(vkt_temp_dir *t, const char *classes, bool gzip)
{
    static const char *const stems[] = { "train", "t10k" };
    for (size_t i = 0; i < 2; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s-images-idx3-ubyte", stems[i]);
        write_idx(t, name, 3, (const uint32_t[]){ 7, 2, 2 }, 256, false);
        snprintf(name, sizeof name, "%s-labels-idx1-ubyte", stems[i]);
        write_idx(t, name, 1, seven, 4, false);
    }
    temp_write(t, gzip ? "classes.txt.gz" : "classes.txt", classes, strlen(classes), gzip);
}

/* The file classes.txt or classes.txt.gz in the folder has the names of the classes. Fashion-MNIST needs this file,
 * because its classes are not digits. */
static void a_folder_may_name_its_classes(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    for (int gzip = 0; gzip < 2; gzip++) {
        /* The first three bytes are a byte order mark. */
        write_folder(t, "\xEF\xBB\xBFT-shirt/top\r\nTrouser\n\nPullover\nDress\nCoat", gzip);
        for (uint32_t classes = 0; classes <= 5; classes += 5) {
            vkt_dataset *ds;
            assert_int_equal(vkt_dataset_open_mnist_like(&h, t->path, VKT_SPLIT_TEST, classes, &ds), VKT_OK);
            assert_int_equal(vkt_dataset_classes(ds), 5); /* class 4 has no samples */
            assert_string_equal(vkt_dataset_class_name(ds, 0), "T-shirt/top");
            assert_string_equal(vkt_dataset_class_name(ds, 2), "Pullover");
            assert_string_equal(vkt_dataset_class_name(ds, 4), "Coat");
            vkt_dataset_destroy(&ds);
        }
        vkt_path_remove(vkt_temp_dir_file(t, gzip ? "classes.txt.gz" : "classes.txt"));
    }
}

static void names_that_do_not_fit_are_refused(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    static const struct {
        const char *classes, *says;
        uint32_t want;
    } cases[] = { { "a\nb\nc\n", "label 3: want a class below 3, got 3", 0 },
                  { "a\nb\nc\nd\n", "classes.txt\" has 4 names: want one for each of the 10 classes", 10 },
                  { "a\nb\na\nd\n", "class \"a\" is listed twice", 0 },
                  { "\n\n", "found none", 0 },
                  { "a\n\x1b[2Jb\n\x1b[2Jb\n", "\"\\x1b[2Jb\" is listed twice", 0 } };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_dataset *ds;
        write_folder(t, cases[i].classes, false);
        assert_int_equal(vkt_dataset_open_mnist_like(&h, t->path, VKT_SPLIT_TRAIN, cases[i].want, &ds), VKT_E_FORMAT);
        vkt_test_error_contains(cases[i].says);
        assert_null(ds);
    }
}

static void every_failed_allocation_is_a_status(void **state)
{
    vkt_temp_dir *t = *state;
    const vkt_host h = vkt_test_host();
    write_idx(t, "test-images-idx4-ubyte", 4, (const uint32_t[]){ 7, 2, 2, 3 }, 256, false);
    write_idx(t, "test-labels-idx1-ubyte", 1, seven, 4, false);
    temp_write(t, "classes.txt", "a\nb\nc\nd\n", 8, false);
    vkt_dataset *ds;
    unsigned n = 1;
    for (;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_dataset_open_mnist_like(&h, t->path, VKT_SPLIT_TEST, 0, &ds);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_null(ds);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    vkt_test_fail_allocation(0);
    assert_true(n > 8);
    vkt_dataset_destroy(&ds);
}

static void check_split(const char *folder, vkt_split split, const uint32_t per_class[10], uint32_t rows)
{
    const vkt_host h = vkt_test_host();
    vkt_dataset *ds;
    assert_int_equal(vkt_dataset_open_mnist_like(&h, folder, split, 10, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_rows(ds), rows);
    uint32_t chw[3], found[10] = { 0 };
    vkt_dataset_sample_shape(ds, chw);
    assert_true(chw[0] == 1 && chw[1] == 28 && chw[2] == 28);
    for (uint32_t i = 0; i < rows; i++) found[vkt_dataset_labels(ds)[i]]++;
    assert_memory_equal(found, per_class, sizeof found);
    if (split == VKT_SPLIT_TRAIN) { /* the mean and std that are usually given for MNIST */
        double mean, std;
        assert_int_equal(vkt_dataset_measure(ds, &mean, &std), VKT_OK);
        assert_true(fabs(mean - 0.1307) < 5e-5 && fabs(std - 0.3081) < 5e-5);
    }
    vkt_dataset_destroy(&ds);
}

static void the_real_mnist_has_its_published_counts(void **state)
{
    (void)state;
    static const uint32_t train[10] = { 5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949 };
    static const uint32_t test[10] = { 980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009 };
    char folder[512];
    if (!vkt_test_find_mnist(folder)) skip();
    check_split(folder, VKT_SPLIT_TRAIN, train, 60000);
    check_split(folder, VKT_SPLIT_TEST, test, 10000);
}

/* vkt_test_find_mnist must not return a folder that lacks files of MNIST. A failed download may leave such a folder. */
static void an_empty_folder_is_not_the_data_set(void **state)
{
    char found[512];
    const char *before = getenv("VKT_DATA");
    char *kept = before ? strdup(before) : NULL;
    const vkt_temp_dir *t = *state;
    assert_int_equal(vkt_folder_make(vkt_temp_dir_file(t, "mnist"), true), 0);
    temp_write(t, "mnist/train-images-idx3-ubyte", "", 0, false);
    assert_true(vkt_env_set("VKT_DATA", t->path));
    if (vkt_test_find_mnist(found)) assert_int_not_equal(strncmp(found, t->path, strlen(t->path)), 0);
    assert_true(vkt_env_set("VKT_DATA", kept));
    free(kept);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(gray_images_become_one_channel),
        TEST(colour_images_are_converted_to_planes),
        TEST(vectors_and_missing_labels_are_read),
        TEST(pairs_that_do_not_fit_are_refused),
        TEST(a_folder_is_searched_for_every_usual_name),
        TEST(a_folder_may_name_its_classes),
        TEST(names_that_do_not_fit_are_refused),
        TEST(every_failed_allocation_is_a_status),
        TEST(the_real_mnist_has_its_published_counts),
        TEST(an_empty_folder_is_not_the_data_set),
    };
    return cmocka_run_group_tests_name("mnist", tests, NULL, NULL);
}
