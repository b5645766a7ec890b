/* Tests vktrain/metrics.h: compares scores with scikit-learn's and PyTorch's, checks special cases, and checks the
 * files of a confusion matrix. */
#include "train/golden.h"

#include <cairo.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "vktrain/metrics.h"

enum { K = 7, N = 230 };

/* Returns a tensor of metrics.safetensors as integers. Free it with test_free. */
static uint32_t *integers(const vkt_safetensors *st, const char *name)
{
    uint64_t n;
    double *v = golden_numbers(st, name, &n);
    uint32_t *out = test_malloc(n * sizeof *out);
    for (uint64_t i = 0; i < n; i++) out[i] = (uint32_t)v[i];
    test_free(v);
    return out;
}

static void expect(const vkt_safetensors *st, const char *name, const double *got, uint64_t n)
{
    uint64_t have;
    double *want = golden_numbers(st, name, &have);
    assert_int_equal(have, n);
    for (uint64_t i = 0; i < n; i++)
        if (fabs(got[i] - want[i]) > 1e-15)
            fail_msg("%s[%u]: want %.17g, got %.17g", name, (unsigned)i, want[i], got[i]);
    test_free(want);
}

static void scores_are_scikit_learns(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_safetensors *st = golden_open(&h, "metrics");
    uint32_t *labels = integers(st, "labels"), *predicted = integers(st, "predicted");
    uint64_t counts[K * K] = { 0 };
    assert_int_equal(vkt_confusion_add(&h, labels, predicted, 100, K, counts), VKT_OK);
    assert_int_equal(vkt_confusion_add(&h, labels + 100, predicted + 100, N - 100, K, counts), VKT_OK);
    double numbers[K * K];
    for (int i = 0; i < K * K; i++) numbers[i] = (double)counts[i];
    expect(st, "confusion", numbers, K * K);
    for (int zero = 0; zero < 2; zero++) {
        char name[24];
        vkt_class_score each[K];
        vkt_class_means m;
        assert_int_equal(vkt_class_scores(&h, counts, K, zero, each, &m), VKT_OK);
        for (int k = 0; k < K; k++) {
            const double row[] = { each[k].precision, each[k].recall, each[k].f1, (double)each[k].support };
            memcpy(numbers + 4 * k, row, sizeof row);
        }
        snprintf(name, sizeof name, "each%d", zero);
        expect(st, name, numbers, 4 * K);
        snprintf(name, sizeof name, "macro%d", zero);
        expect(st, name, (double[]){ m.macro.precision, m.macro.recall, m.macro.f1 }, 3);
        snprintf(name, sizeof name, "weighted%d", zero);
        expect(st, name, (double[]){ m.weighted.precision, m.weighted.recall, m.weighted.f1 }, 3);
        expect(st, "accuracy", &m.accuracy, 1);
        assert_true(m.macro.support == N && m.weighted.support == N);
    }
    test_free(labels);
    test_free(predicted);
    vkt_safetensors_close(&st);
}

static void top_k_is_pytorchs(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_safetensors *st = golden_open(&h, "metrics");
    uint32_t *labels = integers(st, "labels"), *top3 = integers(st, "top3"), top[K];
    uint64_t n;
    double *numbers = golden_numbers(st, "scores", &n);
    float *scores = test_malloc(n * sizeof *scores);
    for (uint64_t i = 0; i < n; i++) scores[i] = (float)numbers[i];
    for (uint32_t row = 0; row < N; row++) {
        assert_int_equal(vkt_top_k(scores + row * K, K, 3, top), 3);
        assert_memory_equal(top, top3 + row * 3, 12);
    }
    for (uint32_t k = 1; k <= 3; k += 2) {
        const double got = vkt_top_k_accuracy(scores, labels, N, K, k);
        expect(st, k == 1 ? "top1_accuracy" : "top3_accuracy", &got, 1);
    }
    assert_true(vkt_top_k_accuracy(scores, labels, N, K, K) == 1);
    test_free(scores);
    test_free(numbers);
    test_free(labels);
    test_free(top3);
    vkt_safetensors_close(&st);
}

static void ties_and_nan_are_as_documented(void **state)
{
    (void)state;
    uint32_t top[4];
    const float tied[] = { 1, 3, 3, 2, 3 }, broken[] = { 5, NAN, 7, NAN };
    assert_int_equal(vkt_top_k(tied, 5, 4, top), 4);
    assert_memory_equal(top, ((uint32_t[]){ 1, 2, 4, 3 }), 16);
    assert_int_equal(vkt_top_k(broken, 4, 3, top), 3);
    assert_memory_equal(top, ((uint32_t[]){ 1, 3, 2 }), 12);
    assert_int_equal(vkt_top_k(tied, 2, 4, top), 2);
    assert_int_equal(vkt_top_k(tied, 5, 0, top), 0);
    assert_int_equal(vkt_top_k(NULL, 5, 4, top), 0);
    assert_int_equal(vkt_top_k(tied, 5, 4, NULL), 0);
    for (uint32_t label = 0; label < 5; label++) { /* the accuracy must follow the order of vkt_top_k */
        const uint32_t positions[] = { 4, 0, 1, 3, 2 };
        for (uint32_t k = 1; k <= 5; k++)
            assert_true(vkt_top_k_accuracy(tied, &label, 1, 5, k) == (positions[label] < k));
    }
    for (uint32_t label = 0; label < 4; label++) {
        const uint32_t positions[] = { 3, 0, 2, 1 };
        for (uint32_t k = 1; k <= 4; k++)
            assert_true(vkt_top_k_accuracy(broken, &label, 1, 4, k) == (positions[label] < k));
    }
    const uint32_t none = 5;
    assert_true(isnan(vkt_top_k_accuracy(tied, &none, 1, 5, 1)) && isnan(vkt_top_k_accuracy(tied, &none, 0, 5, 1)));
    assert_true(isnan(vkt_top_k_accuracy(NULL, &none, 1, 5, 1)) && isnan(vkt_top_k_accuracy(tied, NULL, 1, 5, 1)));
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    uint64_t counts[4] = { 0 };
    const uint32_t labels[] = { 0, 1, 2 }, good[] = { 0, 1, 1 };
    vkt_class_means m;
    char *text;
    assert_int_equal(vkt_confusion_add(&h, labels, good, 3, 2, counts), VKT_E_ARG);
    assert_int_equal(vkt_confusion_add(&h, good, labels, 3, 2, counts), VKT_E_ARG);
    assert_true(counts[0] == 0 && counts[3] == 0); /* nothing was added */
    assert_int_equal(vkt_confusion_add(&h, NULL, good, 3, 2, counts), VKT_E_ARG);
    assert_int_equal(vkt_confusion_add(&h, good, NULL, 3, 2, counts), VKT_E_ARG);
    assert_int_equal(vkt_confusion_add(&h, good, good, 3, 2, NULL), VKT_E_ARG);
    assert_int_equal(vkt_confusion_add(&h, good, good, 3, 0, counts), VKT_E_ARG);
    assert_int_equal(vkt_class_scores(&h, NULL, 2, 0, NULL, &m), VKT_E_ARG);
    assert_int_equal(vkt_class_scores(&h, counts, 2, 0.5, NULL, &m), VKT_E_ARG);
    assert_int_equal(vkt_class_scores_text(&h, counts, 2, NULL, NULL), VKT_E_ARG);
    assert_int_equal(vkt_class_scores_text(&h, NULL, 2, NULL, &text), VKT_E_ARG);
    assert_int_equal(vkt_confusion_write(&h, counts, 2, NULL, NULL, NULL), VKT_E_ARG);
    assert_int_equal(vkt_confusion_write(&h, counts, 2, NULL, NULL, "c.txt"), VKT_E_ARG);
    assert_int_equal(vkt_confusion_write(&h, counts, 4096, NULL, NULL, "c.svg"), VKT_E_ARG);
    assert_int_equal(vkt_class_scores(&h, counts, 2, NAN, NULL, &m), VKT_OK); /* no samples were counted */
    assert_true(isnan(m.accuracy) && isnan(m.macro.f1) && isnan(m.weighted.recall));
    assert_int_equal(vkt_class_scores(&h, counts, 2, 1, NULL, &m), VKT_OK);
    assert_true(m.macro.f1 == 1 && m.weighted.recall == 1);
}

static const uint64_t three[] = { 8, 2, 0, 1, 9, 0, 0, 0, 0 };
static const char *const names[] = { "a \"b\", c", "\xc3\xa4\x1b[2J",
                                     ("a name that is much longer than its column has "
                                      "room for, with \xc3\xb6 at the end") };

static void the_table_has_a_line_a_class(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    char *text;
    assert_int_equal(vkt_class_scores_text(&h, three, 3, NULL, &text), VKT_OK);
    assert_string_equal(text, "          precision     recall         F1       rows\n"
                              "0            0.8889     0.8000     0.8421         10\n"
                              "1            0.8182     0.9000     0.8571         10\n"
                              "2            0.0000     0.0000     0.0000          0\n"
                              "\n"
                              "accuracy     0.8500                               20\n"
                              "macro        0.5690     0.5667     0.5664         20\n"
                              "weighted     0.8535     0.8500     0.8496         20\n");
    vkt_text_release(&text);
    assert_int_equal(vkt_class_scores_text(&h, three, 3, names, &text), VKT_OK);
    assert_non_null(strstr(text, "\n\xc3\xa4?[2J "));
    assert_null(strchr(text, 0x1b));
    vkt_text_release(&text);
}

static char *file_of(const vkt_host *h, const char *path)
{
    void *text;
    size_t n;
    assert_int_equal(vkt_file_read(h, path, 1u << 24, &text, &n), VKT_OK);
    return text;
}

static void the_matrix_is_written_as_csv_and_images(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "c.CSV");
    const char *const short_names[] = { "a \"b\", c", "d", "e" };
    assert_int_equal(vkt_confusion_write(&h, three, 3, short_names, NULL, path), VKT_OK);
    char *text = file_of(&h, path);
    assert_string_equal(text, "true \\ predicted,\"a \"\"b\"\", c\",d,e\n"
                              "\"a \"\"b\"\", c\",8,2,0\nd,1,9,0\ne,0,0,0\n");
    vkt_free(&h, text);
    for (uint32_t classes = 1; classes <= 1001; classes = classes == 1 ? 3 : classes == 3 ? 40 : classes + 961) {
        uint64_t *counts = test_calloc((size_t)classes * classes, sizeof *counts);
        for (uint32_t i = 0; i < classes; i++) counts[(size_t)i * classes + i] = i + 1;
        const char *const *with = classes == 3 ? names : NULL;
        path = vkt_temp_dir_file(&dir, "c.png");
        assert_int_equal(vkt_confusion_write(&h, counts, classes, with, "Twice \xc3\xa4", path), VKT_OK);
        cairo_surface_t *image = cairo_image_surface_create_from_png(path);
        assert_int_equal(cairo_surface_status(image), CAIRO_STATUS_SUCCESS);
        const int side = cairo_image_surface_get_height(image);
        assert_true(side > 200 && side < 2600); /* two pixels per unit: the figure is 100 to 1300 units high */
        cairo_surface_destroy(image);
        path = vkt_temp_dir_file(&dir, "c.svg");
        if (classes < 100) assert_int_equal(vkt_confusion_write(&h, counts, classes, with, NULL, path), VKT_OK);
        test_free(counts);
    }
    vkt_temp_dir_remove(&dir);
}

/* Searches an SVG, from `from` on, for a text element `name` that has a transformation. Fails the test unless the
 * transformation rotates the text by 90 degrees. (*x, *y) is the translation. Returns the end of the start tag; NULL if
 * there is no such element. */
static const char *turned_text(const char *from, const char *name, double *x, double *y)
{
    double a, b, c, d;
    char end[64];
    snprintf(end, sizeof end, ">%s</text>", name);
    for (const char *t = strstr(from, "<text "); t; t = strstr(t + 1, "<text ")) {
        const char *close = strchr(t, '>'), *matrix = strstr(t, " transform=\"matrix(");
        if (!matrix || matrix > close || strncmp(close, end, strlen(end)) != 0) continue;
        assert_int_equal(sscanf(matrix, " transform=\"matrix(%lf %lf %lf %lf %lf %lf)\"", &a, &b, &c, &d, x, y), 6);
        assert_true(a == 0 && b == 1 && c == -1 && d == 0); /* 90 degrees clockwise: the text goes down */
        return close;
    }
    return NULL;
}

/* The name of each column is below the column. The names go from left to right. */
static void names_of_columns_are_below_them(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "c.svg");
    static const char *const animals[] = { "cat", "dog", "horse" };
    assert_int_equal(vkt_confusion_write(&h, three, 3, animals, NULL, path), VKT_OK);
    char *text = file_of(&h, path);
    const char *at = text;
    double x[3], y[3];
    for (int k = 0; k < 3; k++) {
        at = turned_text(at, animals[k], &x[k], &y[k]);
        assert_non_null(at);
        assert_true(y[k] > 100 && y[k] == y[0]);
        if (k > 0) assert_true(x[k] > x[k - 1] + 20);
    }
    vkt_free(&h, text);
    vkt_temp_dir_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scores_are_scikit_learns, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(top_k_is_pytorchs, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(ties_and_nan_are_as_documented, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(the_table_has_a_line_a_class, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(the_matrix_is_written_as_csv_and_images, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(names_of_columns_are_below_them, vkt_test_setup, vkt_test_teardown),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
