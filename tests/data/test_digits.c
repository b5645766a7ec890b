/* Checks that generated digits are repeatable, balanced, of the right brightness, recognisable and not trivial. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "base/base.h"
#include "support/host.h"
#include "vktrain/data.h"

enum { PIXELS = 28 * 28 };
#define PIN 0x0e3674a4c5f5d540ull /* vkt_hash of the pixels of digits 0 to 999 with seed 1 */

static vkt_dataset *digits(uint32_t count, uint64_t seed)
{
    const vkt_host h = vkt_test_host();
    vkt_dataset *ds;
    assert_int_equal(vkt_dataset_digits(&h, count, seed, &ds), VKT_OK);
    return ds;
}

static void a_row_depends_on_seed_and_number_alone(void **state)
{
    (void)state;
    vkt_dataset *few = digits(37, 5), *many = digits(200, 5), *other = digits(37, 6);
    assert_memory_equal(vkt_dataset_features(few), vkt_dataset_features(many), 37 * PIXELS);
    assert_memory_equal(vkt_dataset_labels(few), vkt_dataset_labels(many), 37 * sizeof(uint32_t));
    assert_memory_not_equal(vkt_dataset_features(few), vkt_dataset_features(other), PIXELS);
    assert_memory_not_equal(vkt_dataset_labels(few), vkt_dataset_labels(other), 37 * sizeof(uint32_t));
    const uint8_t *rows = vkt_dataset_features(many);
    for (uint32_t i = 1; i < 200; i++) assert_memory_not_equal(rows, rows + i * PIXELS, PIXELS);
    vkt_dataset_destroy(&few);
    vkt_dataset_destroy(&many);
    vkt_dataset_destroy(&other);
}

static void the_bytes_are_pinned(void **state)
{
    (void)state;
    /* Digits are generated with + - * / and sqrt alone. So they are the same on every machine with IEEE arithmetic. */
    vkt_dataset *ds = digits(1000, 1);
    const uint64_t hash = vkt_hash(VKT_HASH_START, vkt_dataset_features(ds), 1000 * PIXELS);
    if (hash != PIN) print_error("got 0x%016llx\n", (unsigned long long)hash);
    assert_true(hash == PIN);
    vkt_dataset_destroy(&ds);
}

static void classes_are_balanced_in_every_block(void **state)
{
    (void)state;
    vkt_dataset *ds = digits(1000, 2);
    uint32_t chw[3];
    vkt_dataset_sample_shape(ds, chw);
    assert_true(chw[0] == 1 && chw[1] == 28 && chw[2] == 28 && vkt_dataset_type(ds) == VKT_ROW_U8);
    assert_int_equal(vkt_dataset_classes(ds), 10);
    assert_string_equal(vkt_dataset_class_name(ds, 7), "7");
    assert_null(vkt_dataset_class_name(ds, 10));
    uint32_t moved = 0;
    for (uint32_t block = 0; block < 100; block++) {
        uint32_t seen = 0;
        for (uint32_t i = 0; i < 10; i++) {
            const uint32_t label = vkt_dataset_labels(ds)[block * 10 + i];
            seen |= 1u << label;
            moved += label != i;
        }
        assert_int_equal(seen, 0x3ff);
    }
    assert_in_range(moved, 850, 950); /* 900 are expected if each block of ten labels is in random order */
    vkt_dataset_destroy(&ds);
}

static void pixels_are_ink_on_a_dark_ground(void **state)
{
    (void)state;
    vkt_dataset *ds = digits(1000, 3);
    const uint8_t *x = vkt_dataset_features(ds);
    double border = 0;
    for (uint32_t i = 0; i < 1000; i++, x += PIXELS) {
        uint32_t bright = 0, brightest = 0;
        for (uint32_t p = 0; p < PIXELS; p++) {
            bright += x[p] > 100;
            brightest = VKT_MAX(brightest, x[p]);
        }
        assert_in_range(bright, 12, 350);
        assert_in_range(brightest, 120, 255);
        for (uint32_t k = 0; k < 28; k++) border += x[k] + x[27 * 28 + k];
    }
    assert_true(border / (1000 * 56) < 12); /* few strokes touch the border; the noise there has mean 4 */
    double mean, std;
    assert_int_equal(vkt_dataset_measure(ds, &mean, &std), VKT_OK);
    assert_true(mean > 0.09f && mean < 0.13f && std > 0.20f && std < 0.26f);
    vkt_dataset_destroy(&ds);
}

static int32_t distance2(const uint8_t *a, const uint8_t *b)
{
    int32_t sum = 0;
    for (int i = 0; i < PIXELS; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* Finds the row of `x` that is nearest to `image`, and returns the label of this row. */
static uint32_t nearest(const uint8_t *image, const uint8_t *x, const uint32_t *labels, uint32_t rows)
{
    uint32_t best = 0;
    int32_t best_distance = INT32_MAX;
    for (uint32_t i = 0; i < rows; i++) {
        const int32_t d = distance2(image, x + (size_t)i * PIXELS);
        if (d < best_distance) {
            best_distance = d;
            best = labels[i];
        }
    }
    return best;
}

static void digits_are_recognisable_but_not_trivial(void **state)
{
    (void)state;
    enum { TRAIN = 2000, TEST = 300 };
    vkt_dataset *train = digits(TRAIN, 1), *test = digits(TEST, 2);
    const uint8_t *x = vkt_dataset_features(train), *y = vkt_dataset_features(test);
    static uint32_t sums[10][PIXELS];
    static uint8_t means[10][PIXELS];
    memset(sums, 0, sizeof sums);
    for (uint32_t i = 0; i < TRAIN; i++)
        for (uint32_t p = 0; p < PIXELS; p++) sums[vkt_dataset_labels(train)[i]][p] += x[i * PIXELS + p];
    for (uint32_t c = 0; c < 10; c++)
        for (uint32_t p = 0; p < PIXELS; p++) means[c][p] = (uint8_t)(sums[c][p] / (TRAIN / 10));
    static const uint32_t classes[10] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    int by_neighbour = 0, by_mean = 0;
    for (uint32_t i = 0; i < TEST; i++) {
        const uint32_t label = vkt_dataset_labels(test)[i];
        by_neighbour += nearest(y + i * PIXELS, x, vkt_dataset_labels(train), TRAIN) == label;
        by_mean += nearest(y + i * PIXELS, means[0], classes, 10) == label;
    }
    print_message("nearest neighbour %d of %d, nearest mean %d\n", by_neighbour, TEST, by_mean);
    assert_in_range(by_neighbour, TEST * 88 / 100, TEST);       /* 93 % is usual */
    assert_in_range(by_mean, TEST * 55 / 100, TEST * 85 / 100); /* 72 % is usual */
    vkt_dataset_destroy(&train);
    vkt_dataset_destroy(&test);
}

static void no_digits_and_no_memory_are_reported(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_dataset *ds;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_digits(&h, 0, 1, &ds), VKT_E_ARG);
    assert_null(ds);
    unsigned n = 1;
    for (;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_dataset_digits(&h, 3, 1, &ds);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_null(ds);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    /* 16 allocations can fail: images, labels, vkt_dataset, its struct `table`, list of names, ten names,
     * normalisation. */
    assert_int_equal(n, 17);
    vkt_dataset_destroy(&ds);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_row_depends_on_seed_and_number_alone),  TEST(the_bytes_are_pinned),
        TEST(classes_are_balanced_in_every_block),     TEST(pixels_are_ink_on_a_dark_ground),
        TEST(digits_are_recognisable_but_not_trivial), TEST(no_digits_and_no_memory_are_reported),
    };
    return cmocka_run_group_tests_name("digits", tests, NULL, NULL);
}
