/* Tests data sets of arrays and of sources: ownership, slices, statistics, normalisation, refused arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "data/dataset.h"
#include "support/host.h"
#include "vktrain/data.h"

enum { N = 6, C = 2, H = 1, W = 3, ROW = C * H * W };

static const uint32_t labels[N] = { 0, 2, 1, 1, 0, 2 };
static const char *const names[] = { "ant", "bee", "cat" };

typedef struct fixture {
    vkt_host h;
    uint8_t u8[N][ROW];
    float f32[N][ROW];
    vkt_dataset_params p;
} fixture;

static void copies_are_independent_and_borrowed_arrays_stay_put(void **state)
{
    fixture *t = *state;
    vkt_dataset *ds;
    uint32_t mine[N];
    memcpy(mine, labels, sizeof mine);
    t->p.labels = mine;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    const uint8_t before = t->u8[3][4];
    t->u8[3][4] ^= 255;
    mine[3] = 0;
    uint8_t row[ROW];
    assert_int_equal(vkt_dataset_fetch(ds, 3, row), VKT_OK);
    assert_int_equal(row[4], before);
    assert_int_equal(vkt_dataset_labels(ds)[3], 1);
    vkt_dataset_destroy(&ds);
    assert_null(ds);
    vkt_dataset_destroy(&ds);
    vkt_dataset_destroy(NULL);

    t->p.borrow = true;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    assert_ptr_equal(vkt_dataset_features(ds), t->u8);
    assert_ptr_equal(vkt_dataset_labels(ds), mine);
    vkt_dataset_destroy(&ds);
}

static void a_description_is_returned_as_it_was(void **state)
{
    fixture *t = *state;
    vkt_dataset *ds;
    t->p.type = VKT_ROW_F32;
    t->p.classes = 3;
    t->p.class_names = names;
    t->p.mean = (const double[]){ 0.5, -1 };
    t->p.std = (const double[]){ 2, 0.25 };
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->f32, &ds), VKT_OK);
    uint32_t chw[3];
    vkt_dataset_sample_shape(ds, chw);
    assert_true(chw[0] == C && chw[1] == H && chw[2] == W);
    assert_int_equal(vkt_dataset_rows(ds), N);
    assert_int_equal(vkt_dataset_type(ds), VKT_ROW_F32);
    assert_int_equal(vkt_dataset_row_bytes(ds), ROW * sizeof(float));
    assert_int_equal(vkt_dataset_classes(ds), 3);
    assert_string_equal(vkt_dataset_class_name(ds, 2), "cat");
    assert_null(vkt_dataset_class_name(ds, 3));
    assert_memory_equal(vkt_dataset_features(ds), t->f32, sizeof t->f32);
    assert_true(vkt_dataset_mean(ds)[1] == -1 && vkt_dataset_std(ds)[1] == 0.25);
    vkt_dataset_destroy(&ds);

    t->p = (vkt_dataset_params){ .rows = N, .width = ROW };
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    vkt_dataset_sample_shape(ds, chw);
    assert_true(chw[0] == 1 && chw[1] == 1 && chw[2] == ROW);
    assert_null(vkt_dataset_labels(ds));
    assert_null(vkt_dataset_class_name(ds, 0));
    assert_int_equal(vkt_dataset_classes(ds), 0);
    assert_true(vkt_dataset_mean(ds)[0] == 0 && vkt_dataset_std(ds)[0] == 1);
    vkt_dataset_destroy(&ds);
}

static void refuse(fixture *t, const char *says)
{
    vkt_dataset *ds = (vkt_dataset *)t;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_E_ARG);
    vkt_test_error_contains(says);
    assert_null(ds);
    assert_int_equal(vkt_test_live_blocks(), 0);
}

static void balanced_weights_are_scikit_learns(void **state)
{
    fixture *t = *state;
    vkt_dataset *ds, *slice;
    float w[4] = { -1, -1, -1, -1 };
    t->p.classes = 4;
    t->p.labels = (const uint32_t[N]){ 0, 2, 2, 2, 0, 2 };
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_balanced_weights(ds, w), VKT_OK);
    assert_true(w[0] == 0.75f && w[1] == 0 && w[2] == 0.375f && w[3] == 0);
    assert_int_equal(vkt_dataset_slice(ds, 1, 4, &slice), VKT_OK);
    assert_int_equal(vkt_dataset_balanced_weights(slice, w), VKT_OK);
    assert_true(w[0] == 1 && w[2] == (float)(4 / 12.0));
    vkt_test_fail_allocation(1);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_balanced_weights(ds, w), VKT_E_NOMEM);
    vkt_test_fail_allocation(0);
    vkt_dataset_destroy(&slice);
    vkt_dataset_destroy(&ds);
    t->p.labels = NULL;
    t->p.classes = 0;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_balanced_weights(ds, w), VKT_E_ARG);
    vkt_test_error_contains("want a data set with labels");
    vkt_test_expect_errors(false);
    vkt_dataset_destroy(&ds);
}

static void wrong_descriptions_are_refused(void **state)
{
    fixture *t = *state;
    const vkt_dataset_params good = t->p;
    t->p.rows = 0;
    refuse(t, "want 1 row or more, got 0");
    t->p = good;
    t->p.type = (vkt_row_type)7;
    refuse(t, "want type u8 (0), f32 (1), u16 (2) or u32 (3), got 7");
    t->p.type = VKT_ROW_U16;
    refuse(t, "got (2,1,3)");
    t->p = (vkt_dataset_params){ .rows = N, .width = W, .type = VKT_ROW_U32, .std = (const double[]){ 2 } };
    refuse(t, "neither channels, height nor mean and std");
    t->p = good;
    t->p.height = t->p.width = UINT32_MAX;
    refuse(t, "do not fit into memory");
    t->p.channels = UINT32_MAX;
    refuse(t, "do not fit into memory");
    t->p = good;
    t->p.classes = 2;
    refuse(t, "row 1: want a label below 2, got 2");
    t->p = good;
    t->p.labels = (const uint32_t[N]){ 0, 0, UINT32_MAX };
    refuse(t, "row 2: want a label below 4294967295, got 4294967295");
    t->p = good;
    t->p.class_names = names;
    refuse(t, "class_names without the number of classes");
    t->p.class_names = (const char *const[]){ "ant", NULL, "cat" };
    t->p.classes = 3;
    refuse(t, "class name 1 is NULL");
    t->p = good;
    t->p.std = (const double[]){ 1, 0 };
    refuse(t, "std[1]: want a finite number above 0, got 0");
    t->p = good;
    t->p.mean = (const double[]){ NAN, 0 };
    refuse(t, "mean[0]: want a finite number, got");
    vkt_dataset *ds;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &good, NULL, &ds), VKT_E_ARG);
    vkt_test_error_contains("features is NULL");
    assert_int_equal(vkt_dataset_from_arrays(&t->h, NULL, t->u8, &ds), VKT_E_ARG);
    vkt_test_error_contains("params is NULL");
}

static void slices_share_rows_and_outlive_their_parent(void **state)
{
    fixture *t = *state;
    vkt_dataset *ds, *tail, *middle;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_slice(ds, 2, 4, &tail), VKT_OK);
    assert_int_equal(vkt_dataset_slice(tail, 1, 2, &middle), VKT_OK); /* samples 3 and 4 of ds */
    assert_ptr_equal((const uint8_t *)vkt_dataset_features(ds) + 3 * ROW, vkt_dataset_features(middle));
    assert_int_equal(vkt_dataset_normalize(tail, (const double[]){ 3, 4 }, (const double[]){ 5, 6 }), VKT_OK);
    assert_true(vkt_dataset_mean(ds)[1] == 4 && vkt_dataset_std(middle)[0] == 5);
    vkt_dataset_destroy(&ds);
    vkt_dataset_destroy(&tail);
    assert_int_equal(vkt_dataset_rows(middle), 2);
    assert_int_equal(vkt_dataset_classes(middle), 3);
    assert_memory_equal(vkt_dataset_labels(middle), labels + 3, 2 * sizeof *labels);
    uint8_t row[ROW];
    assert_int_equal(vkt_dataset_fetch(middle, 1, row), VKT_OK);
    assert_memory_equal(row, t->u8[4], ROW);

    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_fetch(middle, 2, row), VKT_E_ARG);
    vkt_test_error_contains("want a row below 2, got 2");
    const uint32_t bad[][2] = { { 0, 3 }, { 1, 2 }, { 2, 1 }, { 0, 0 }, { 1, UINT32_MAX }, { UINT32_MAX, 2 } };
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        assert_int_equal(vkt_dataset_slice(middle, bad[i][0], bad[i][1], &tail), VKT_E_ARG);
        assert_null(tail);
    }
    assert_int_equal(vkt_dataset_normalize(middle, NULL, (const double[]){ 1, 1 }), VKT_E_ARG);
    assert_int_equal(vkt_dataset_normalize(middle, (const double[]){ 1, 1 }, (const double[]){ 1, -1 }), VKT_E_ARG);
    /* The slice's mean and std have not changed. */
    assert_true(vkt_dataset_mean(middle)[0] == 3 && vkt_dataset_std(middle)[1] == 6);
    vkt_dataset_destroy(&middle);
}

/* Counts the calls of a source. The source fills sample i with bytes of the value i + epoch. It fails for sample 5. */
typedef struct counter {
    uint32_t fetched, destroyed, last_worker;
} counter;

static vkt_result counter_fetch(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    counter *c = self;
    c->fetched++;
    c->last_worker = worker;
    if (row == 5) return VKT_E_IO;
    memset(dst, (int)(row + pass.epoch), ROW);
    return VKT_OK;
}

static void counter_destroy(void *self)
{
    ((counter *)self)->destroyed++;
}

static void targets_go_with_their_rows(void **state)
{
    fixture *t = *state;
    vkt_dataset *ds, *slice;
    float mine[N][2];
    for (int i = 0; i < N; i++) mine[i][0] = (float)i, mine[i][1] = (float)-i;
    t->p.targets = mine[0];
    t->p.target_width = 2;
    for (int borrow = 0; borrow < 2; borrow++) {
        t->p.borrow = borrow;
        assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
        assert_true((vkt_dataset_targets(ds) == mine[0]) == borrow);
        assert_int_equal(vkt_dataset_slice(ds, 4, 2, &slice), VKT_OK);
        assert_int_equal(vkt_dataset_target_width(slice), 2);
        assert_memory_equal(vkt_dataset_targets(slice), mine[4], 2 * sizeof mine[4]);
        vkt_dataset_destroy(&ds);
        vkt_dataset_destroy(&slice);
    }
    t->p.target_width = 0;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_target_width(ds), 1);
    vkt_dataset_destroy(&ds);
    t->p.targets = NULL;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    assert_true(vkt_dataset_target_width(ds) == 0 && !vkt_dataset_targets(ds));
    vkt_dataset_destroy(&ds);
}

static void terms_go_with_their_rows(void **state)
{
    fixture *t = *state;
    vkt_dataset *ds, *slice, *chosen;
    const uint32_t rows[] = { 5, 0, 5 };
    uint32_t terms[N], mine[N];
    for (uint32_t i = 0; i < N; i++) terms[i] = mine[i] = 3 * i + 1;
    t->p.terms = terms;
    t->p.borrow = true;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    memset(terms, 0, sizeof terms); /* the data set has its own copy, even with `borrow` */
    assert_memory_equal(vkt_dataset_terms(ds), mine, sizeof mine);
    assert_int_equal(vkt_dataset_slice(ds, 4, 2, &slice), VKT_OK);
    assert_memory_equal(vkt_dataset_terms(slice), mine + 4, 2 * sizeof *mine);
    assert_int_equal(vkt_dataset_select(ds, rows, VKT_COUNT(rows), &chosen), VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(rows); i++) assert_int_equal(vkt_dataset_terms(chosen)[i], mine[rows[i]]);
    vkt_dataset_destroy(&chosen);
    vkt_dataset_destroy(&slice);
    vkt_dataset_destroy(&ds);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_E_ARG);
    vkt_test_error_contains("row 0: want 1 term or more, got 0");
    for (uint32_t i = 0; i < N; i++) terms[i] = UINT32_MAX / N + 1;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_E_ARG);
    vkt_test_error_contains("want fewer than 2^32 terms");
    vkt_test_expect_errors(false);
    assert_null(ds);
    t->p.terms = NULL;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    assert_null(vkt_dataset_terms(ds));
    vkt_dataset_destroy(&ds);
}

static void integers_are_stored_unchanged(void **state)
{
    fixture *t = *state;
    const uint16_t ids[2][3] = { { 1, 65535, 3 }, { 4, 5, 6 } };
    const vkt_dataset_params p = { .rows = 2, .width = 3, .type = VKT_ROW_U16 };
    vkt_dataset *ds;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &p, ids, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_row_bytes(ds), sizeof ids[0]);
    uint16_t row[3];
    assert_int_equal(vkt_dataset_fetch(ds, 0, row), VKT_OK);
    assert_memory_equal(row, ids[0], sizeof row);
    double mean = 0, std = 1;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_measure(ds, &mean, &std), VKT_E_ARG);
    assert_int_equal(vkt_dataset_normalize(ds, &mean, &std), VKT_E_ARG);
    vkt_test_error_contains("whole numbers");
    vkt_dataset_destroy(&ds);
}

static void sources_are_fetched_and_destroyed_once(void **state)
{
    fixture *t = *state;
    counter c = { .last_worker = 9 };
    const vkt_data_source source = { counter_fetch, counter_destroy, &c, .varies = true };
    vkt_dataset *ds, *slice;
    assert_int_equal(vkt_dataset_from_source(&t->h, &t->p, &source, &ds), VKT_OK);
    assert_null(vkt_dataset_features(ds));
    assert_int_equal(vkt_dataset_slice(ds, 3, 3, &slice), VKT_OK);
    uint8_t row[ROW];
    assert_int_equal(vkt_dataset_fetch(slice, 1, row), VKT_OK);
    assert_true(row[0] == 4 && row[ROW - 1] == 4 && c.fetched == 1 && c.last_worker == 0);
    assert_int_equal(vkt_dataset_fetch_as(slice, 1, (vkt_pass){ .epoch = 7 }, row, 3), VKT_OK);
    assert_true(row[0] == 11 && c.last_worker == 3);
    assert_true(vkt_dataset_varies(slice));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_fetch(slice, 2, row), VKT_E_IO);
    vkt_test_error_contains("row 2 could not be fetched: reading or writing a file failed");
    double mean[C], std[C];
    assert_int_equal(vkt_dataset_measure(ds, mean, std), VKT_E_IO);
    vkt_dataset_destroy(&ds);
    assert_int_equal(c.destroyed, 0);
    vkt_dataset_destroy(&slice);
    assert_int_equal(c.destroyed, 1);

    t->p.rows = 0;
    assert_int_equal(vkt_dataset_from_source(&t->h, &t->p, &source, &ds), VKT_E_ARG);
    assert_int_equal(vkt_dataset_from_source(&t->h, &t->p, &(vkt_data_source){ .self = &c }, &ds), VKT_E_ARG);
    assert_int_equal(c.destroyed, 1); /* still 1: the two refused calls have not destroyed the source */
}

static void measured_statistics_are_exact(void **state)
{
    fixture *t = *state;
    vkt_dataset *ds;
    double mean[C], std[C];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < ROW; k++) {
            /* A u8 number x is measured as x / 255. So channel 0 has mean 1/2 and std 1/2. Channel 1 is the constant
             * 1/5, and a constant channel gets the std 1. */
            t->u8[i][k] = k < W ? (i % 2 ? 255 : 0) : 51;
            /* In channel 0, the formula mean(x^2) - mean(x)^2 would lose digits by cancellation. Channel 1 has the
             * numbers -3, 0 and 3. */
            t->f32[i][k] = k < W ? 1e6f + (float)(i % 2) : (float)(i % 3) * 3 - 3;
        }
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_measure(ds, mean, std), VKT_OK);
    assert_true(mean[0] == 0.5 && std[0] == 0.5 && mean[1] == 0.2 && std[1] == 1);
    vkt_dataset_destroy(&ds);
    t->p.type = VKT_ROW_F32;
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &t->p, t->f32, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_measure(ds, mean, std), VKT_OK);
    assert_true(mean[0] == 1000000.5 && fabs(std[0] - 0.5) < 1e-9);
    assert_true(fabs(mean[1]) < 1e-6 && fabs(std[1] - sqrt(6)) < 1e-6);
    vkt_dataset_destroy(&ds);
}

/* The images have more than 2^16 numbers, because sums of u8 are computed in pieces of 2^16 numbers. */
static void large_images_are_measured_exactly(void **state)
{
    enum { LONG = 3 * 65536 + 41 };
    fixture *t = *state;
    const vkt_dataset_params p = { .rows = 2, .width = LONG };
    uint8_t *u8 = malloc(2 * LONG);
    vkt_dataset *ds;
    double mean, std, sum = 0, squares = 0;
    assert_non_null(u8);
    for (uint32_t i = 0; i < 2 * LONG; i++) {
        u8[i] = i % 5 ? 255 : (uint8_t)(i * 2654435761u >> 24);
        sum += u8[i];
    }
    for (uint32_t i = 0; i < 2 * LONG; i++) squares += (u8[i] - sum / (2 * LONG)) * (u8[i] - sum / (2 * LONG));
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &p, u8, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_measure(ds, &mean, &std), VKT_OK);
    assert_true(fabs(mean - sum / (2 * LONG) / 255) < 1e-14);
    assert_true(fabs(std - sqrt(squares / (2 * LONG)) / 255) < 1e-12);
    vkt_dataset_destroy(&ds);
    memset(u8, 255, 2 * LONG);
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &p, u8, &ds), VKT_OK);
    assert_int_equal(vkt_dataset_measure(ds, &mean, &std), VKT_OK);
    assert_true(mean == 1 && std == 1);
    vkt_dataset_destroy(&ds);
    free(u8);
}

static void every_failed_allocation_is_a_status(void **state)
{
    fixture *t = *state;
    counter c = { 0 };
    const vkt_data_source source = { counter_fetch, counter_destroy, &c, .varies = true };
    static const uint32_t terms[N] = { 1, 2, 3, 4, 5, 6 };
    t->p.classes = 3;
    t->p.class_names = names;
    t->p.targets = t->f32[0];
    t->p.terms = terms;
    for (int kind = 0; kind < 2; kind++)
        for (unsigned n = 1;; n++) {
            vkt_dataset *ds, *slice = NULL;
            double mean[C], std[C];
            vkt_test_fail_allocation(n);
            vkt_result r = kind ? vkt_dataset_from_source(&t->h, &t->p, &source, &ds)
                                : vkt_dataset_from_arrays(&t->h, &t->p, t->u8, &ds);
            assert_true((r == VKT_OK) == (ds != NULL));
            if (r == VKT_OK) r = vkt_dataset_slice(ds, 0, 2, &slice);
            if (r == VKT_OK) r = vkt_dataset_measure(slice, mean, std);
            vkt_dataset_destroy(&slice);
            vkt_dataset_destroy(&ds);
            assert_int_equal(vkt_test_live_blocks(), 0);
            assert_int_equal(r, vkt_test_allocation_failed() ? VKT_E_NOMEM : VKT_OK);
            if (r == VKT_OK) {
                assert_int_equal(n, kind ? 13 : 14); /* a source needs no copy of features */
                break;
            }
        }
}

static int setup(void **state)
{
    static fixture t;
    t = (fixture){ .h = vkt_test_host(), .p = { .rows = N, .channels = C, .height = H, .width = W, .labels = labels } };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < ROW; k++) {
            t.u8[i][k] = (uint8_t)(i * 16 + k);
            t.f32[i][k] = (float)(i * 16 + k) / 7;
        }
    *state = &t;
    return vkt_test_setup(state);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(copies_are_independent_and_borrowed_arrays_stay_put),
        TEST(a_description_is_returned_as_it_was),
        TEST(balanced_weights_are_scikit_learns),
        TEST(wrong_descriptions_are_refused),
        TEST(slices_share_rows_and_outlive_their_parent),
        TEST(targets_go_with_their_rows),
        TEST(terms_go_with_their_rows),
        TEST(integers_are_stored_unchanged),
        TEST(sources_are_fetched_and_destroyed_once),
        TEST(measured_statistics_are_exact),
        TEST(large_images_are_measured_exactly),
        TEST(every_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests_name("dataset", tests, NULL, NULL);
}
