/* Tests the program vkt-matmul as its users run it, on small matrices. */
#include "samples/program.h"

#include <math.h>
#include <stdio.h>

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_MATMUL_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

/* Returns the only product of a report. Fails the test unless the product has the sizes m, k and n, and is right. */
static const json_t *product_of(const json_t *report, double m, double k, double n)
{
    const json_t *list = json_object_get(report, "products"), *p = json_array_get(list, 0);
    assert_int_equal(json_array_size(list), 1);
    assert_true(json_number_of(p, "m") == m && json_number_of(p, "k") == k && json_number_of(p, "n") == n);
    assert_true(json_number_of(p, "row_error") <= json_number_of(p, "row_error_allowed"));
    assert_true(json_number_of(p, "device_ms") > 0 && json_number_of(p, "host_ms") >= json_number_of(p, "device_ms"));
    const double flops = 2 * m * k * n;
    assert_true(fabs(json_number_of(p, "gflops") * json_number_of(p, "device_ms") / (1e-6 * flops) - 1) < 1e-9);
    return p;
}

static void a_product_is_right_at_any_size(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "", "-q", "--size", "1,1,1", "--json", "report");
    json_t *report = program_json(r, "report");
    product_of(report, 1, 1, 1);
    json_decref(report);
    EXPECT(r, 0, "", "-q", "--size", "301,37,517", "--json", "report");
    assert_false(program_wrote(r, "out"));
    report = program_json(r, "report");
    const json_t *p = product_of(report, 301, 37, 517);
    const double sum = json_number_of(p, "host_checksum"), mean = 301.0 * 37 * 517 / 4;
    /* Each number of A and B is uniform in [0,1). Its mean is 1/2, and its variance 1/12 is 1/3 of the squared mean.
     * The relative variance of the sum of all numbers of C is about the relative variance of the sum of A plus the
     * relative variance of the sum of B. */
    const double deviation = mean * sqrt((1 / 3.0) * (1 / (301.0 * 37) + 1 / (37 * 517.0)));
    assert_true(fabs(sum - mean) < 5 * deviation);
    assert_true(fabs(json_number_of(p, "checksum") - sum) <= 1e-6 * sum);
    assert_true(json_is_string(json_object_get(report, "device")) && json_is_string(json_object_get(report, "driver")));
    json_decref(report);
}

static void tiles_keep_below_the_cap_and_give_the_same_sum(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "", "-q", "--size", "2999,50,3001", "--json", "whole");
    EXPECT(r, 0, "", "-q", "--size", "2999,50,3001", "--json", "tiled", "--memory-limit", "16M");
    json_t *whole = program_json(r, "whole"), *tiled = program_json(r, "tiled");
    const json_t *a = product_of(whole, 2999, 50, 3001), *b = product_of(tiled, 2999, 50, 3001);
    assert_true(json_number_of(a, "tile_rows") == 2999 && json_number_of(a, "tile_columns") == 3001);
    assert_true(json_number_of(b, "tile_rows") < 2999 && json_number_of(b, "tile_columns") < 3001);
    assert_true(json_number_of(whole, "peak_device_bytes") > 4.0 * 2999 * 3001);
    assert_true(json_number_of(tiled, "peak_device_bytes") <= 16 << 20);
    assert_true(json_number_of(a, "host_checksum") == json_number_of(b, "host_checksum"));
    assert_true(fabs(json_number_of(b, "checksum") / json_number_of(a, "checksum") - 1) < 1e-6);
    json_decref(whole);
    json_decref(tiled);
}

static void it_prints_times_and_sums(void **state)
{
    rig *r = rig_of(state);
    const char *const args[] = { "--size", "2999,50,3001", "--memory-limit", "16M", "--seed", "7", NULL };
    run done = program_finish(r, program_start(r, VKT_MATMUL_PROGRAM, NULL, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_null(strstr(done.err, "vktrain")); /* the search for a tile prints no error if a tile is too large */
    static const char *const parts[] = { "2999x50 @ 50x3001, 34.3 MiB", " tiles of ", "GFLOP/s",
                                         "in double precision" };
    for (size_t i = 0; i < VKT_COUNT(parts); i++)
        if (!strstr(done.out, parts[i])) fail_msg("'%s' is not in: %s", parts[i], done.out);
    run_forget(r, &done);
}

static void errors_are_explained(void **state)
{
    rig *r = rig_of(state);
    static const char *const sizes[] = { "0,1,1",       "1,0,1", "1,1,0",  "1,1", "1,1,1,1",
                                         "1000001,1,1", "1,,1",  "-1,1,1", "a" };
    for (size_t i = 0; i < VKT_COUNT(sizes); i++) EXPECT(r, 2, "want M,K,N", "--size", sizes[i]);
    EXPECT(r, 2, "--epochs", "--epochs", "3");
    EXPECT(r, 2, "'stray'", "stray");
    EXPECT(r, 1, "no such card", "--device", "no such card");
    EXPECT(r, 1, "cap", "--size", "100,10,100", "--memory-limit", "64K");
    EXPECT(r, 1, "--json: cannot open the directory of \"none/report\"", "-q", "--size", "10,10,10", "--json",
           "none/report");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_product_is_right_at_any_size),
        rig_test(tiles_keep_below_the_cap_and_give_the_same_sum),
        rig_test(it_prints_times_and_sums),
        rig_test(errors_are_explained),
    };
    return cmocka_run_group_tests_name("vkt-matmul", tests, NULL, NULL);
}
