/* Tests arrays of f16: conversion to f32, writes, and what is refused. test_ops.c checks to_f32 and gather_rows at
 * random shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
enum { ALL = 64 * 1024, COLUMNS = 8, SPARE = 4 };

static vkt_graph *graph(void)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    OK(vkt_graph_create(&h, &g));
    return g;
}

static vkt_array *array(vkt_dtype dtype, uint32_t n, const void *data)
{
    vkt_array *a;
    const vkt_array_params params = { .dtype = dtype, .shape = vkt_shape1(n), .data = data };
    OK(vkt_array_create(harness_ctx, &params, &a));
    return a;
}

/* Returns the value of the f16 number with these bits. */
static double number_of(uint32_t h)
{
    const double sign = h >> 15 ? -1 : 1, m = h & 0x3ff;
    const int e = (int)(h >> 10 & 31);
    if (e == 31) return m > 0 ? NAN : sign * INFINITY;
    return sign * (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
}

/* Returns the f16 number that is nearest to x, ties to even. If |x| is 65520 or more, the result is infinity with the
 * sign of x. (65520 is half-way between 65504, the largest finite f16 number, and 65536.) */
static double nearest(double x)
{
    int e;
    if (isnan(x) || isinf(x)) return x;
    (void)frexp(x, &e);
    const double step = ldexp(1, e < -13 ? -24 : e - 11), y = nearbyint(x / step) * step;
    return fabs(y) > 65504 ? copysign(INFINITY, x) : y;
}

/* Each f16 number becomes the right f32 number. If this f32 number is written to an array of f16, the array gets the
 * bits of the original f16. (A NaN may become another NaN.) Elements behind the tensor do not change. */
static void every_half_is_converted_both_ways(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    uint16_t *in = malloc((ALL + SPARE) * sizeof *in), *got = malloc((ALL + SPARE) * sizeof *got);
    float *wide = malloc(ALL * sizeof *wide);
    for (int i = 0; i < ALL + SPARE; i++) in[i] = (uint16_t)(i * 5);
    for (int last = 0; last < 2; last++) {
        const vkt_shape shape = vkt_shape2(ALL / COLUMNS, COLUMNS);
        memset(got, 0xff, (ALL + SPARE) * sizeof *got);
        vkt_array *a = array(VKT_F16, ALL + SPARE, in), *b = array(VKT_F16, ALL + SPARE, got);
        vkt_graph *g = graph();
        vkt_program *p;
        const vkt_tensor x = vkt_external(g, "x", VKT_F16, shape), y = vkt_external(g, "y", VKT_F16, shape);
        const vkt_tensor f = vkt_to_f32(g, x);
        vkt_keep(g, f);
        vkt_write(g, last ? vkt_to_layout(g, f, VKT_BATCH_LAST) : f, y);
        const vkt_binding arrays[] = { { x, a }, { y, b } };
        OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .arrays = arrays, .n_arrays = 2 }, &p));
        OK(vkt_program_run(p, NULL, NULL));
        OK(vkt_program_read(p, f, wide, ALL * sizeof *wide));
        OK(vkt_readback(harness_ctx, b->buffer, 0, got, (ALL + SPARE) * sizeof *got));
        for (int i = 0; i < ALL; i++) {
            const double want = number_of(in[i]);
            assert_true(isnan(want) ? isnan(wide[i]) : (double)wide[i] == want && !signbit(wide[i]) == !(in[i] >> 15));
            assert_true(isnan(want) ? isnan(number_of(got[i])) : got[i] == in[i]);
        }
        for (int i = ALL; i < ALL + SPARE; i++) assert_int_equal(got[i], 0xffff);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
        vkt_array_destroy(&a);
        vkt_array_destroy(&b);
    }
    free(in);
    free(got);
    free(wide);
}

/* Writes f32 numbers that are between two neighbouring f16 numbers, half-way between them, or too large for f16. Each
 * f32 number is rounded to nearest, ties to even. */
static void writes_round_to_nearest(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 40000 };
    float *in = malloc(N * sizeof *in);
    uint16_t *got = malloc(N * sizeof *got);
    static const float special[] = {
        65519, 65520, -65520, 1e30f, INFINITY, -INFINITY, NAN, 0x1p-25f, 0x1.8p-24f, -0.0f
    };
    for (uint32_t i = 0; i < N; i++) {
        const double low = number_of(i % 0x7c00), high = number_of(i % 0x7c00 + 1);
        const double at = i % 3 == 0 ? 0.5 : i % 3 == 1 ? 0.49 : 0.51;
        in[i] = (float)((low + (isinf(high) ? 32 : high - low) * at) * (i % 2 ? -1 : 1));
        if (i < sizeof special / sizeof *special) in[i] = special[i];
    }
    vkt_array *b = array(VKT_F16, N, NULL);
    vkt_graph *g = graph();
    vkt_program *p;
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N)),
                     y = vkt_external(g, "y", VKT_F16, vkt_shape1(N));
    vkt_write(g, x, y);
    const vkt_binding arrays[] = { { y, b } };
    OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .arrays = arrays, .n_arrays = 1 }, &p));
    OK(vkt_program_write(p, x, in, N * sizeof *in));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, y, got, N * sizeof *got));
    for (uint32_t i = 0; i < N; i++) {
        const double want = nearest((double)in[i]), v = number_of(got[i]);
        assert_true(isnan(want) ? isnan(v) : v == want);
    }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    vkt_array_destroy(&b);
    free(in);
    free(got);
}

static void other_uses_are_refused(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const char *const why[] = { "want f32, got f16", "want f16, got f32",
                                       "multiple of 4 elements of f16, got (6)", "got f16 into f32" };
    vkt_test_expect_errors(true);
    for (int i = 0; i < 4; i++) {
        vkt_graph *g = graph();
        const vkt_tensor h = vkt_external(g, "h", VKT_F16, vkt_shape1(8)),
                         f = vkt_external(g, "f", VKT_F32, vkt_shape1(8));
        if (i == 0) (void)vkt_relu(g, h);
        if (i == 1) (void)vkt_to_f32(g, f);
        if (i == 2) (void)vkt_external(g, "odd", VKT_F16, vkt_shape1(6));
        if (i == 3) vkt_write(g, h, f);
        assert_int_not_equal(vkt_graph_status(g), VKT_OK);
        vkt_test_error_contains(why[i]);
        vkt_graph_destroy(&g);
    }
    vkt_test_expect_errors(false);
}

/* Returns whether the op may have f16 instead of f32 as input i. */
static bool takes_half(const vkt_op *op, uint32_t i)
{
    if (strcmp(op->name, "reshape") == 0) return true; /* it changes no element */
    return i == (strcmp(op->name, "write") == 0) && (i || strcmp(op->name, "gather_rows") == 0);
}

/* Applies the ops that have random cases (vkt_op.sample), with f16 instead of f32 as one input. Ops that do not support
 * f16 for this input refuse this type. */
static void no_other_op_takes_half(void **state)
{
    (void)state;
    uint32_t refused = 0;
    vkt_test_expect_errors(true);
    for (const vkt_op *const *op = vkt_ops; *op; op++)
        for (uint64_t seed = 0; (*op)->sample && seed < 40; seed++) {
            vkt_case c = { .n_in = 0 };
            vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
            (*op)->sample(&r, &c);
            const uint32_t at = (uint32_t)(seed % c.n_in);
            if (c.in[at].absent || c.in[at].dtype != VKT_F32 || vkt_shape_elements(c.in[at].shape) % 4 ||
                takes_half(*op, at))
                continue;
            vkt_tensor in[VKT_MAX_IN] = { { 0 } };
            vkt_graph *g = graph();
            c.in[at].dtype = VKT_F16;
            for (uint32_t i = 0; i < c.n_in; i++)
                if (!c.in[i].absent) in[i] = vkt_input(g, "in", c.in[i].dtype, c.in[i].layout, c.in[i].shape);
            OK(vkt_graph_status(g));
            if (vkt_apply(g, *op, in, c.n_in, c.attr, NULL).id) fail_msg("%s takes f16 as input %u", (*op)->name, at);
            vkt_graph_destroy(&g);
            refused++;
        }
    vkt_test_expect_errors(false);
    assert_true(refused > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_is_converted_both_ways),
        cmocka_unit_test(writes_round_to_nearest),
        cmocka_unit_test(other_uses_are_refused),
        cmocka_unit_test(no_other_op_takes_half),
    };
    return cmocka_run_group_tests_name("half arrays", tests, harness_setup, harness_teardown);
}
