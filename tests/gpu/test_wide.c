/* Tests vectors of 512 bits with llvmpipe (kernel/wide.h): the self-test on this device, the faults that the self-test
 * must find, and the value that LP_NATIVE_VECTOR_WIDTH gets. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernel/wide.h"

#define WIDTH "LP_NATIVE_VECTOR_WIDTH"

/* The findings of the log function `hear`, and the host to which `hear` passes each line of the log. */
static struct {
    vkt_host host;
    unsigned warnings; /* warnings that 512 bits cannot be used */
    char why[128];     /* the last warning, from "512 bits" on */
} heard;

static void hear(void *user, vkt_log_level level, const char *line)
{
    const char *why = level == VKT_LOG_WARN ? strstr(line, "512 bits cannot be used") : NULL;
    if (why) {
        heard.warnings++;
        snprintf(heard.why, sizeof heard.why, "%s", why);
    }
    heard.host.log(user, level, line);
}

static bool has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

static vkt_result open_wide(vkt_ctx **ctx)
{
    const vkt_ctx_params quiet = { .no_pipeline_cache = true };
    vkt_host h = heard.host = vkt_test_host();
    h.log = hear;
    heard.warnings = 0;
    return vkt_ctx_open_wide(&quiet, &h, fake_loader(), has_avx512(), ctx);
}

/* Returns the device of a normal context. LP_NATIVE_VECTOR_WIDTH, or else the driver, chooses the width of vectors. */
static vkt_device_info default_device(void)
{
    vkt_ctx *ctx = rig_open(NULL, NULL);
    const vkt_device_info info = *vkt_ctx_device(ctx);
    vkt_ctx_destroy(&ctx);
    return info;
}

static bool is_lavapipe(const vkt_device_info *info)
{
    return strncmp(info->driver, "llvmpipe ", 9) == 0;
}

/* Returns whether CPU and build allow vectors of 512 bits. Sanitizer builds never unload a driver, so they cannot
 * change the width. */
static bool may_go_wide(void)
{
#ifdef VKT_SANITIZED
    return false;
#else
    return has_avx512();
#endif
}

/* Returns whether vkt_ctx_open_wide should open a context with subgroups of 16 lanes, if its parameter cpu_gains is
 * true. */
static bool gains(const vkt_device_info *info)
{
    return may_go_wide() && strncmp(info->driver, "llvmpipe Mesa 22.3.", 19) == 0;
}

static void the_device_passes(void **state)
{
    (void)state;
    vkt_ctx *ctx = rig_open(NULL, NULL);
    uint32_t wrong = 1;
    assert_int_equal(vkt_self_test(ctx, &wrong), VKT_OK);
    assert_int_equal(wrong, 0);
    assert_int_equal(vkt_ctx_disable(ctx, "texel"), VKT_OK);
    assert_int_equal(vkt_self_test(ctx, &wrong), VKT_OK);
    assert_int_equal(wrong, 0);
    vkt_ctx_destroy(&ctx);
}

static void nothing(void) {}

static void what_was_not_computed_is_wrong(void **state)
{
    (void)state;
    uint32_t wrong = 0;
    fake.instead_of_dispatch = nothing;
    vkt_ctx *ctx = rig_open(NULL, fake_loader());
    assert_int_equal(vkt_self_test(ctx, &wrong), VKT_OK);
    assert_true(wrong > 8 * 8 * 4 * ctx->limits.subgroup_size); /* 8 work groups; a lane stores 8 or 9 vec4s */
    vkt_ctx_destroy(&ctx);
}

static void wide_where_it_gains(void **state)
{
    (void)state;
    const vkt_device_info standard = default_device();
    vkt_ctx *ctx;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(open_wide(&ctx), VKT_OK);
        const uint32_t lanes = ctx->limits.subgroup_size;
        vkt_ctx_destroy(&ctx);
        assert_int_equal(lanes, gains(&standard) ? 16 : standard.subgroup_size);
        assert_int_equal(getenv(WIDTH) != NULL, gains(&standard));
    }
    assert_int_equal(heard.warnings, 0);
    if (!gains(&standard)) skip();
}

/* vkt_ctx_create_wide, the public function, inspects the CPU itself. It gives wide vectors only on AMD's CPUs. */
static void only_amds_cpus_gain(void **state)
{
    (void)state;
    const vkt_ctx_params quiet = { .no_pipeline_cache = true };
    const vkt_host h = vkt_test_host();
    vkt_ctx *ctx;
#ifdef __x86_64__
    const bool amd = __builtin_cpu_is("amd");
#else
    const bool amd = false;
#endif
    const vkt_device_info standard = default_device();
    assert_int_equal(vkt_ctx_create_wide(&quiet, &h, &ctx), VKT_OK);
    assert_int_equal(ctx->limits.subgroup_size, amd && gains(&standard) ? 16 : standard.subgroup_size);
    vkt_ctx_destroy(&ctx);
}

static void the_users_width_counts(void **state)
{
    (void)state;
    const vkt_device_info standard = default_device();
    static const char *const widths[] = { "128", "256" };
    for (size_t i = 0; i < VKT_COUNT(widths); i++) {
        vkt_ctx *ctx;
        assert_int_equal(setenv(WIDTH, widths[i], 1), 0);
        const vkt_device_info own = default_device();
        assert_int_equal(open_wide(&ctx), VKT_OK);
        assert_int_equal(ctx->limits.subgroup_size, own.subgroup_size);
        vkt_ctx_destroy(&ctx);
        assert_string_equal(getenv(WIDTH), widths[i]);
    }
    if (!is_lavapipe(&standard)) skip();
}

static void refuses_the_users_512(void)
{
    vkt_ctx *ctx;
    assert_int_equal(setenv(WIDTH, "512", 1), 0);
    vkt_test_expect_errors(true);
    assert_int_equal(open_wide(&ctx), VKT_E_WRONG);
    assert_null(ctx);
    vkt_test_error_contains(WIDTH "=256");
    assert_string_equal(getenv(WIDTH), "512");
}

static void wrong_results_are_not_used(void **state)
{
    (void)state;
    const vkt_device_info standard = default_device();
    vkt_ctx *ctx;
    if (may_go_wide() && strncmp(standard.driver, "llvmpipe Mesa 25.0.7", 20) == 0) {
        refuses_the_users_512(); /* this driver really computes wrong results */
        return;
    }
    if (!gains(&standard)) skip();
    fake.instead_of_dispatch = nothing;
    assert_int_equal(open_wide(&ctx), VKT_OK);
    assert_int_equal(ctx->limits.subgroup_size, 8);
    assert_int_equal(heard.warnings, 1);
    assert_non_null(strstr(heard.why, "VKT_E_WRONG"));
    assert_null(getenv(WIDTH));
    vkt_ctx_destroy(&ctx);
    refuses_the_users_512();
}

/* A wrong VKT_TRAITS causes one error, and no warning that 512 bits cannot be used. */
static void wrong_settings_are_not_blamed_on_the_width(void **state)
{
    (void)state;
    const vkt_device_info usual = default_device();
    vkt_ctx *ctx;
    assert_int_equal(setenv("VKT_TRAITS", "lanes_move=3", 1), 0);
    vkt_test_expect_errors(true);
    const unsigned errors = vkt_test_errors();
    assert_int_equal(open_wide(&ctx), VKT_E_ARG);
    assert_int_equal(unsetenv("VKT_TRAITS"), 0);
    assert_null(ctx);
    assert_int_equal(heard.warnings, 0);
    assert_int_equal(vkt_test_errors() - errors, 1);
    vkt_test_error_contains("want lanes_move=N");
    assert_null(getenv(WIDTH));
    if (!gains(&usual)) skip();
}

static vkt_ctx *held; /* has its own instance, which keeps the driver loaded */

static void hold_the_driver(void)
{
    if (!held) held = rig_open(NULL, NULL);
}

static void a_driver_that_is_held_keeps_its_width(void **state)
{
    (void)state;
    const vkt_device_info standard = default_device();
    if (!gains(&standard)) skip();
    vkt_ctx *ctx;
    hold_the_driver();
    assert_int_equal(open_wide(&ctx), VKT_OK);
    assert_int_equal(ctx->limits.subgroup_size, 8);
    assert_null(getenv(WIDTH));
    vkt_ctx_destroy(&ctx);
    vkt_ctx_destroy(&held);

    /* The self-test at 512 bits opens `held` instead of running its dispatch, so the self-test fails. The driver cannot
     * go back to 256 bits, because `held` keeps it loaded. */
    fake.instead_of_dispatch = hold_the_driver;
    vkt_test_expect_errors(true);
    assert_int_equal(open_wide(&ctx), VKT_E_WRONG);
    assert_null(ctx);
    vkt_test_error_contains("does not go back to 8");
    vkt_ctx_destroy(&held);
}

/* In the first loop the n-th host allocation fails. In the second loop the n-th fallible Vulkan call fails. Each loop
 * ends when nothing failed. */
static void the_self_test_survives_every_failure(void **state)
{
    (void)state;
    uint32_t wrong;
    vkt_test_expect_errors(true);
    for (unsigned n = 1, failed = 1; failed; n++) {
        vkt_ctx *ctx = rig_open(NULL, NULL);
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_self_test(ctx, &wrong);
        failed = vkt_test_allocation_failed();
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        vkt_test_fail_allocation(0);
        vkt_ctx_destroy(&ctx);
    }
    for (int32_t n = 1, failed = 1; failed; n++) {
        fake_reset();
        vkt_ctx *ctx = rig_open(NULL, fake_loader());
        fake.fail_call = n;
        const vkt_result r = vkt_self_test(ctx, &wrong);
        failed = fake.failed != NULL;
        fake.fail_call = 0;
        /* r may be VKT_OK although vkAllocateMemory failed, because the engine then tries a smaller block. */
        assert_true(failed || r == VKT_OK);
        assert_int_equal(wrong, 0);
        vkt_ctx_destroy(&ctx);
        assert_true(failed || n > 8);
    }
}

/* A fault while a context is opened. ALLOCATION: the n-th host allocation fails. CALL: the n-th fallible call of
 * fake.c fails. CALLS: the n-th and all later fallible calls of fake.c fail. */
typedef enum fault { ALLOCATION, CALL, CALLS, FAULTS } fault;

static void set_width(const char *own)
{
    assert_int_equal(own ? setenv(WIDTH, own, 1) : unsetenv(WIDTH), 0);
}

/* Opens a context while the n-th allocation or call fails, as `what` says. `own`: the value of LP_NATIVE_VECTOR_WIDTH
 * before the opening (NULL: not set). Returns false if nothing failed, because there are fewer than n allocations or
 * calls. Checks that no memory is left. If gains() is true and the context has no wide vectors, a warning must have the
 * reason. At the end, the variable must be "512" if the context has wide vectors, and else `own`. */
static bool survives(const vkt_device_info *standard, const char *own, fault what, unsigned n)
{
    vkt_ctx *ctx;
    set_width(own);
    fake_reset();
    fake.fail_for_good = what == CALLS;
    if (what == ALLOCATION)
        vkt_test_fail_allocation(n);
    else
        fake.fail_call = (int32_t)n;
    const unsigned errors = vkt_test_errors();
    const vkt_result r = open_wide(&ctx);
    const bool failed = what == ALLOCATION ? vkt_test_allocation_failed() : fake.failed != NULL;
    fake_reset();
    vkt_test_fail_allocation(0);

    assert_int_equal(r == VKT_OK, ctx != NULL);
    assert_true(r == VKT_OK || (failed && vkt_test_errors() > errors));
    if (failed && what == CALLS) assert_int_not_equal(r, VKT_OK);
    if (failed && what == ALLOCATION && r != VKT_OK) assert_int_equal(r, VKT_E_NOMEM);
    assert_true(heard.warnings <= (failed && !own));
    if (heard.warnings) assert_non_null(strstr(heard.why, what == ALLOCATION ? "(VKT_E_NOMEM: " : "(VKT_E_D"));
    const bool wide = ctx && gains(standard) && !heard.warnings;
    const char *want = wide ? "512" : own, *width = getenv(WIDTH);
    assert_int_equal(width != NULL, want != NULL);
    if (want) assert_string_equal(width, want);
    if (ctx) assert_int_equal(ctx->limits.subgroup_size, wide ? 16 : standard->subgroup_size);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(vkt_test_live_blocks(), 0);
    return failed;
}

static void opening_survives_every_failure(void **state)
{
    (void)state;
    static const char *const widths[] = { NULL, "512" };
    const vkt_device_info standard = default_device();
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < (gains(&standard) ? VKT_COUNT(widths) : 1); i++)
        for (fault what = ALLOCATION; what < FAULTS; what++) {
            unsigned n = 1;
            while (survives(&standard, widths[i], what, n)) n++;
            assert_true(n > 5);
        }
}

static int setup(void **state)
{
    fake_reset();
    unsetenv(WIDTH);
    return vkt_test_setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, vkt_test_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_device_passes, vkt_test_setup,
                                        vkt_test_teardown), /* uses the width of the environment */
        TEST(what_was_not_computed_is_wrong),
        TEST(wide_where_it_gains),
        TEST(only_amds_cpus_gain),
        TEST(the_users_width_counts),
        TEST(wrong_results_are_not_used),
        TEST(wrong_settings_are_not_blamed_on_the_width),
        TEST(a_driver_that_is_held_keeps_its_width),
        TEST(the_self_test_survives_every_failure),
        TEST(opening_survives_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
