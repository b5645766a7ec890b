/* Tests the results that vkt-bench computes from the times that it measured: medians, changes beyond the noise, rates,
 * and the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "bench/json.h"
#include "bench/plot.h"
#include "bench/schema.h"
#include "bench/table.h"
#include "bench/verify.h"
#include "support/host.h"
#include "support/temp_dir.h"

static void quantiles_are_numpys(void **state)
{
    (void)state;
    double odd[] = { 5, 1, 4, 2, 3 }, even[] = { 4, 1, 3, 2 }, one[] = { 7 };
    bench_stat s = bench_stat_of(odd, 5);
    assert_true(s.median == 3 && s.q1 == 2 && s.q3 == 4 && s.min == 1 && s.n == 5);
    s = bench_stat_of(even, 4);
    assert_true(s.median == 2.5 && s.q1 == 1.75 && s.q3 == 3.25 && s.min == 1);
    s = bench_stat_of(one, 1);
    assert_true(s.median == 7 && s.q1 == 7 && s.q3 == 7);
    assert_int_equal(bench_stat_of(one, 0).n, 0);
}

static bench_stat around(double median, double spread)
{
    return (bench_stat){
        .median = median, .q1 = median * (1 - spread), .q3 = median * (1 + spread), .min = median * 0.9, .n = 20
    };
}

static void a_change_is_one_beyond_the_noise(void **state)
{
    (void)state;
    static const struct {
        double before, before_spread, now, now_spread;
        int want;
    } cases[] = {
        { 100, 0.01, 100, 0.01, 0 }, { 100, 0.01, 104, 0.01, 0 }, { 100, 0.01, 110, 0.01, 1 },
        { 100, 0.01, 90, 0.01, -1 }, { 100, 0.3, 120, 0.01, 0 },  { 100, 0.01, 120, 0.3, 0 },
        { 100, 0.3, 200, 0.3, 1 },   { 100, 0.3, 50, 0.3, -1 },   { 100, 0.2, 130, 0.02, 1 },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const bench_stat before = around(cases[i].before, cases[i].before_spread);
        const bench_stat now = around(cases[i].now, cases[i].now_spread);
        const bench_change c = bench_compare(&before, &now);
        assert_true(fabs(c.ratio - cases[i].now / cases[i].before) < 1e-12);
        if (c.real != cases[i].want) fail_msg("case %zu: %d, want %d", i, c.real, cases[i].want);
    }
}

static bench_result result(bench_kind kind, const char *op, double flops, double bytes, double gpu_ns)
{
    bench_result r = { .kind = kind, .flops = flops, .bytes = bytes, .preferred = true, .check = BENCH_CHECKED };
    snprintf(r.op, sizeof r.op, "%s", op);
    snprintf(r.phase, sizeof r.phase, "forward");
    snprintf(r.shape, sizeof r.shape, "(8,8)");
    snprintf(r.kernels, sizeof r.kernels, "RELU MSE");
    if (gpu_ns > 0) r.gpu = around(gpu_ns, 0.01);
    r.wall = around(2 * gpu_ns + 1000, 0.02);
    return r;
}

static void rates_are_of_the_roofline(void **state)
{
    (void)state;
    const bench_roofline roof = { 100e9, 10e9 };
    const bench_result compute = result(BENCH_OP, "matmul", 50e9, 1e9, 1e9);
    assert_true(fabs(bench_flops_per_s(&compute) - 50e9) < 1 && fabs(bench_roof_percent(&compute, &roof) - 50) < 1e-9);
    assert_false(bench_memory_bound(&compute, &roof));
    const bench_result memory = result(BENCH_OP, "relu", 1e9, 8e9, 1e9);
    assert_true(fabs(bench_roof_percent(&memory, &roof) - 80) < 1e-9);
    assert_true(bench_memory_bound(&memory, &roof));
    const bench_result step = result(BENCH_STEP, "net", 1e9, 8e9, 1e9); /* the time of a step is its wall time */
    assert_true(bench_time(&step) == &step.wall);
    const bench_result no_timestamps = result(BENCH_OP, "relu", 1, 1, 0);
    assert_true(bench_time(&no_timestamps) == &no_timestamps.wall);
}

static bench_results simulated(void)
{
    bench_results all = { .roof = { 100e9, 10e9 } };
    bench_result r = result(BENCH_OP, "relu", 1e6, 8e6, 1e6);
    assert_true(bench_add(&all, &r));
    r = result(BENCH_OP, "matmul", 1e9, 8e6, 1e7);
    snprintf(r.variant, sizeof r.variant, "packed");
    assert_true(bench_add(&all, &r));
    r = result(BENCH_STEP, "mnist \"b128\"", 1e9, 8e6, 1e7);
    assert_true(bench_add(&all, &r));
    r = result(BENCH_MICRO, "submit", 0, 0, 0);
    r.excess = INFINITY;
    assert_true(bench_add(&all, &r));
    return all;
}

static const bench_options none = { .argc = 1 };
static const vkt_device_info device = { .name = "generated", .driver = "none", .subgroup_size = 8 };

static void json_fits_its_schema_and_is_compared_with(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.json");
    char why[256];
    size_t matched;
    bench_results all = simulated();
    assert_int_equal(bench_write_json(&h, path, &all, &none, &device, "2026-01-01T00:00:00Z"), VKT_OK);
    if (!schema_fits("bench", path, why)) fail_msg("%s", why);

    all.list[0].gpu = around(0.5e6, 0.01);                        /* relu becomes twice as fast */
    all.list[1].gpu = around(1.3e7, 0.01);                        /* matmul becomes slower */
    snprintf(all.list[2].shape, sizeof all.list[2].shape, "(9)"); /* the step becomes another experiment */
    assert_int_equal(bench_compare_with(&h, path, &all, &matched), VKT_OK);
    assert_int_equal(matched, 3);
    assert_int_equal(all.list[0].change.real, -1);
    assert_true(fabs(all.list[0].change.ratio - 0.5) < 1e-9);
    assert_int_equal(all.list[1].change.real, 1);
    assert_true(all.list[2].change.ratio == 0);
    assert_true(all.list[3].change.real == 0 && fabs(all.list[3].change.ratio - 1) < 1e-9);
    assert_int_equal(bench_write_json(&h, path, &all, &none, &device, "2026-01-01T00:00:00Z"), VKT_OK);
    if (!schema_fits("bench", path, why)) fail_msg("%s", why);
    bench_results_free(&all);
    vkt_temp_dir_remove(&dir);
}

/* Plants faults in the JSON file, and checks that schema_fits finds each of them. */
static void the_schema_refuses_what_does_not_fit(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.json");
    char why[256];
    bench_results all = simulated();
    static const struct {
        const char *key, *value; /* `key` of the first result gets `value`; NULL: the key is removed */
    } cases[] = { { "kind", "\"other\"" }, { "gpu_ns", "3" },    { "copies", "1.5" },
                  { "flops", "-1" },       { "kernels", "[1]" }, { "surprise", "true" },
                  { "name", NULL },        { "preferred", "1" }, { "gpu_ns", "{}" } };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        assert_int_equal(bench_write_json(&h, path, &all, &none, &device, "2026-01-01T00:00:00Z"), VKT_OK);
        json_t *root = json_load_file(path, 0, NULL);
        json_t *first = json_array_get(json_object_get(root, "results"), 0);
        if (cases[i].value)
            json_object_set_new(first, cases[i].key, json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        else
            json_object_del(first, cases[i].key);
        assert_int_equal(json_dump_file(root, path, 0), 0);
        json_decref(root);
        if (schema_fits("bench", path, why)) fail_msg("\"%s\": %s is accepted", cases[i].key, cases[i].value);
    }
    bench_results_free(&all);
    vkt_temp_dir_remove(&dir);
}

static void other_files_are_no_results(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "old.json");
    static const char *const bad[] = { "", "{", "[]", "{\"schema\": \"x\", \"results\": []}",
                                       "{\"schema\": \"vktrain-bench-1\"}" };
    size_t matched;
    bench_results all = simulated();
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        assert_int_equal(vkt_file_write(&h, path, bad[i], strlen(bad[i])), VKT_OK);
        assert_int_equal(bench_compare_with(&h, path, &all, &matched), VKT_E_FORMAT);
    }
    assert_int_equal(bench_compare_with(&h, vkt_temp_dir_file(&dir, "none"), &all, &matched), VKT_E_NOT_FOUND);
    vkt_test_expect_errors(false);
    bench_results_free(&all);
    vkt_temp_dir_remove(&dir);
}

static void csv_has_a_line_per_result(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.csv");
    char *text;
    size_t n, lines = 0;
    bench_results all = simulated();
    assert_int_equal(bench_write_csv(&h, path, &all), VKT_OK);
    assert_int_equal(vkt_file_read(&h, path, 1 << 20, (void **)&text, &n), VKT_OK);
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    assert_int_equal(lines, all.n + 1);
    assert_non_null(strstr(text, "\"matmul forward (8,8) [packed]\",matmul,forward,\"(8,8)\",packed,1,"));
    vkt_free(&h, text);
    bench_results_free(&all);
    vkt_temp_dir_remove(&dir);
}

static void a_roofline_is_drawn(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    char *text;
    size_t n;
    bench_results all = simulated();
    assert_int_equal(bench_plot(&h, vkt_temp_dir_file(&dir, "a.png"), &all, "generated"), VKT_OK);
    assert_int_equal(bench_plot(&h, vkt_temp_dir_file(&dir, "a.svg"), &all, "generated"), VKT_OK);
    assert_int_equal(vkt_file_read(&h, vkt_temp_dir_file(&dir, "a.svg"), 1 << 22, (void **)&text, &n), VKT_OK);
    assert_non_null(strstr(text, "<svg"));
    vkt_free(&h, text);
    vkt_test_expect_errors(true);
    assert_int_equal(bench_plot(&h, vkt_temp_dir_file(&dir, "a.gif"), &all, "generated"), VKT_E_ARG);
    all.n = 1;
    all.list[0].flops = 0;
    assert_int_equal(bench_plot(&h, vkt_temp_dir_file(&dir, "b.svg"), &all, "generated"), VKT_E_ARG);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_temp_dir_count(&dir), 2);
    bench_results_free(&all);
    vkt_temp_dir_remove(&dir);
}

/* Prints a table in which the quartiles of the first op's times are 1 - spread and 1 + spread ms. Returns whether the
 * table contains the text end_of_line. */
static bool table_has(double spread, const char *end_of_line)
{
    bench_results all = simulated();
    char *text = NULL;
    size_t n;
    all.list[0].gpu = around(1e6, spread);
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    bench_print(f, &all);
    assert_int_equal(fclose(f), 0);
    const bool found = strstr(text, end_of_line) != NULL;
    free(text);
    bench_results_free(&all);
    return found;
}

static void forward_is_nan(const vkt_ref_call *c)
{
    c->out[0].f[0] = (double)NAN;
}

/* In a forward phase, gradients are not compared, so their errors are 0. Such a 0 must not replace the error of the
 * outputs, which is NaN here. */
static void a_nan_is_no_small_error(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const bench_phase phase = { .what.forward = true };
    bench_result r = { .kind = BENCH_OP };
    vkt_ctx *ctx;
    vkt_subject s;
    const vkt_result opened = vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &h, &ctx);
#ifndef VKT_REQUIRE_DEVICE
    if (opened == VKT_E_NO_LOADER || opened == VKT_E_NO_DEVICE) skip();
#endif
    assert_int_equal(opened, VKT_OK);
    assert_int_equal(vkt_subject_make(&h, &s, &vkt_op_relu, 1), VKT_OK);
    const vkt_ref_op wrong = { "relu", 1, forward_is_nan, s.ref->backward };
    s.ref = &wrong;
    vkt_test_expect_errors(true);
    assert_int_equal(
        bench_verify(ctx, &s, &(bench_verify_params){ .op = &vkt_op_relu, .c = &s.c, .phase = &phase }, &r), VKT_OK);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("relu");
    vkt_subject_free(&s);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(r.check, BENCH_WRONG);
    assert_true(isnan(r.excess));
}

static void a_wide_spread_is_called_noisy(void **state)
{
    (void)state;
    assert_true(table_has(0.6, " checked, noisy\n"));
    assert_true(table_has(0.2, " checked\n"));
    assert_false(table_has(0.2, "noisy"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(quantiles_are_numpys),
        TEST(a_change_is_one_beyond_the_noise),
        TEST(rates_are_of_the_roofline),
        TEST(json_fits_its_schema_and_is_compared_with),
        TEST(the_schema_refuses_what_does_not_fit),
        TEST(other_files_are_no_results),
        TEST(csv_has_a_line_per_result),
        TEST(a_roofline_is_drawn),
        TEST(a_wide_spread_is_called_noisy),
        TEST(a_nan_is_no_small_error),
    };
    return cmocka_run_group_tests_name("results of vkt-bench", tests, NULL, NULL);
}
