/* Tests VKT_DEBUG: the messages and effects of each level (vktrain/core.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

static char logged[1 << 16];
static size_t log_bytes;

static void keep_line(void *user, vkt_log_level level, const char *line)
{
    (void)user, (void)level;
    const size_t n = strlen(line);
    if (log_bytes + n + 2 > sizeof logged) return;
    memcpy(logged + log_bytes, line, n);
    log_bytes += n;
    memcpy(logged + log_bytes++, "\n", 2);
}

static bool was_logged(const char *part)
{
    return strstr(logged, part) != NULL;
}

static void expect_log(const char *part)
{
    if (!was_logged(part)) fail_msg("want a line that says \"%s\", got:\n%s", part, logged);
}

/* Makes a context at a debug level, and begins to collect its log lines in `logged`. */
static vkt_ctx *context(const char *level)
{
    vkt_ctx *ctx;
    vkt_host h = vkt_test_host();
    h.log = keep_line;
    setenv("VKT_DEBUG", level, 1);
    log_bytes = 0;
    logged[0] = 0;
    OK(vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &h, &ctx));
    return ctx;
}

static vkt_graph *graph(void)
{
    vkt_host h = vkt_test_host();
    vkt_graph *g;
    h.log = keep_line;
    OK(vkt_graph_create(&h, &g));
    return g;
}

static void end(vkt_ctx *ctx)
{
    vkt_ctx_destroy(&ctx);
    unsetenv("VKT_DEBUG");
}

/* Runs relu(x) + relu(x) three times. */
static void run_three_times(vkt_ctx *ctx)
{
    vkt_graph *g = graph();
    vkt_program *p;
    const vkt_tensor y = vkt_relu(g, vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(100)));
    vkt_keep(g, vkt_add(g, y, y));
    OK(vkt_program_create(ctx, g, NULL, &(vkt_program_params){ .name = "sums" }, &p));
    for (int i = 0; i < 3; i++) OK(vkt_program_run(p, NULL, NULL));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void level_0_prints_nothing(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_ctx *ctx = context("0");
    run_three_times(ctx);
    end(ctx);
    assert_string_equal(logged, "");
}

static void level_1_prints_device_and_memory(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_ctx *ctx = context("1");
    vkt_array *array;
    const vkt_array_params params = { .dtype = VKT_U32, .shape = vkt_shape1(1000), .name = "numbers" };
    OK(vkt_array_create(ctx, &params, &array));
    expect_log(vkt_ctx_device(ctx)->name);
    expect_log("memory: 4.00 KiB for \"numbers\" (data set), ");
    vkt_array_destroy(&array);
    run_three_times(ctx);
    end(ctx);
    expect_log("memory: at most 4.00 KiB of data set");
    assert_false(was_logged("of GPU time"));
    assert_false(was_logged("graph: "));
}

static void level_2_prints_the_time_of_each_kernel(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    if (harness_ctx->timestamp_period_ns == 0) {
        puts("SKIPPED: GPU times: this device has no timestamps");
        skip();
    }
    vkt_ctx *ctx = context("2");
    run_three_times(ctx);
    end(ctx);
    expect_log("ms of GPU time a run, over 3 runs");
    expect_log(" UNARY x 1");
    expect_log(" BINARY x 1");
    double all, one, sum = 0;
    const char *line = strstr(logged, "sums: ");
    for (; line && sscanf(line, "sums: %lf ms of GPU", &all) != 1; line = strstr(line + 1, "sums: ")) continue;
    assert_non_null(line);
    while ((line = strstr(line + 1, "sums: ")) && sscanf(line, "sums: %lf ms", &one) == 1) sum += one;
    assert_true(all > 0 && fabs(sum - all) <= 0.0021); /* each number is rounded to 3 decimals */
    assert_false(was_logged("graph: "));
}

static void level_3_prints_graph_plan_and_commands(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_ctx *ctx = context("3");
    run_three_times(ctx);
    end(ctx);
    expect_log("graph: 2 nodes");
    expect_log("memory: 1 block(s)");
    expect_log("commands: 2 dispatches, 1 barriers between them");
    expect_log("---- barrier: 1 reads relu.0 (after 0)");
}

/* The graph is a = 1e30 * x, c = 0 * a, d = c + x. Where x is 1e30, a is infinite, so c and d are NaN. */
static void level_4_names_the_first_nan(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        vkt_ctx *ctx = context("4");
        vkt_graph *g = graph();
        vkt_program *p;
        const float large = 1e30f, zero = 0;
        float in[15] = { 0 }, out[15];
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, (vkt_layout)layout, vkt_shape2(5, 3));
        const vkt_tensor a = vkt_mul(g, x, vkt_graph_const(g, "large", VKT_F32, vkt_shape0(), &large));
        const vkt_tensor c = vkt_mul(g, a, vkt_graph_const(g, "zero", VKT_F32, vkt_shape0(), &zero));
        const vkt_tensor d = vkt_add(g, c, x);
        vkt_keep(g, d);
        OK(vkt_program_create(ctx, g, NULL, NULL, &p));
        OK(vkt_program_write(p, x, in, sizeof in));
        OK(vkt_program_run(p, NULL, NULL));
        in[3 * 3 + 1] = in[4 * 3 + 2] = 1e30f;
        OK(vkt_program_write(p, x, in, sizeof in));
        assert_int_equal(vkt_program_run(p, NULL, NULL), VKT_E_NAN);
        char want[160];
        snprintf(want, sizeof want, "run 1: the first NaN was written by node %u, mul, to '%s'[3,1]",
                 vkt_value_of(g, c)->producer - 1, vkt_value_of(g, c)->name);
        expect_log(want);
        OK(vkt_program_read(p, d, out, sizeof out)); /* the run was completed */
        for (int i = 0; i < 15; i++) assert_true(isnan(out[i]) == (in[i] > 0));
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
        end(ctx);
    }
}

/* The update subtracts an infinite decay from an infinite element of the second parameter. This gives the first NaN. */
static void level_4_names_the_parameter_of_an_update(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (int level = 0; level <= 4; level += 4) {
        vkt_ctx *ctx = context(level ? "4" : "0");
        vkt_graph *g = graph();
        vkt_store *store;
        vkt_program *p;
        const vkt_tensor a = vkt_param(g, "a", vkt_shape1(70)), b = vkt_param(g, "b", vkt_shape2(2, 3));
        OK(vkt_backward(g, vkt_add(g, vkt_sum(g, a), vkt_sum(g, b))));
        OK(vkt_update(g, &(vkt_optimizer){ .kind = VKT_SGD, .weight_decay = 1 }));
        OK(vkt_store_create(ctx, g, &store));
        const float values[6] = { 1, 2, 3, 4, INFINITY, 6 };
        OK(vkt_store_write(store, 1, VKT_PART_VALUE, values));
        OK(vkt_program_create(ctx, g, store, NULL, &p));
        const vkt_result r = vkt_program_run(p, &(vkt_run){ .lr = 1 }, NULL);
        assert_int_equal(r, level ? VKT_E_NAN : VKT_OK);
        OK(vkt_program_wait(p));
        if (level) expect_log(" of b[1,1]");
        vkt_program_destroy(&p);
        vkt_store_destroy(&store);
        vkt_graph_destroy(&g);
        end(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level_0_prints_nothing),
        cmocka_unit_test(level_1_prints_device_and_memory),
        cmocka_unit_test(level_2_prints_the_time_of_each_kernel),
        cmocka_unit_test(level_3_prints_graph_plan_and_commands),
        cmocka_unit_test(level_4_names_the_first_nan),
        cmocka_unit_test(level_4_names_the_parameter_of_an_update),
    };
    return cmocka_run_group_tests_name("debug", tests, harness_setup, harness_teardown);
}
