/* Tests attention on larger shapes than those of the random cases (test_ops.c): wide heads and long sequences. Also
 * tests each tile in shared memory that is in short_rows or long_rows (ops/product/attention_tiles.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "kernel/ids.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#include "abi/abi.h"
#include "abi/attention.abi.h"

/* ---- larger than the random cases ---- */

/* The sizes of attention. There are two heads of k and v, and `group` heads of q read each of these two heads. */
typedef struct sequences {
    uint32_t queries, keys, width, group;
    bool causal;
} sequences;

static void make_subject(subject *s, uint64_t seed, const sequences *n)
{
    const vkt_shape q = vkt_shape3(2 * n->group, n->queries, n->width), k = vkt_shape3(2, n->keys, n->width);
    const vkt_attention_params p = { .causal = n->causal, .kv_heads = 2 };
    subject_begin(s, seed);
    for (int i = 0; i < 3; i++) subject_input(s, &(vkt_case_input){ .shape = i ? k : q, .lo = -2, .hi = 2 }, NULL);
    subject_set_output(s, vkt_attention(s->g, s->in[0].t, s->in[1].t, s->in[2].t, &p));
    assert_string_equal(s->op->name, "attention");
}

/* In the first case, a lane of a small subgroup has several vec4s of a row. In the other cases, tiles have more rows
 * than in random cases. Each case is checked in f32 and in 16 bits, or in one of the two (vkt_test_leaves_out). */
static void wide_and_long_heads_agree_with_the_reference(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const sequences cases[] = {
        { 9, 37, 128, 1, true }, { 101, 70, 8, 1, true }, { 67, 80, 12, 1, false }, { 70, 67, 8, 3, true }
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        harness_report report = { .faults = 0 };
        subject s;
        make_subject(&s, i, &cases[i]);
        subject_forward(&s);
        subject_backward(&s);
        if (!vkt_test_leaves_out(i, 2)) harness_check_in(harness_ctx, &s, &harness_views[0], &report);
        if (!vkt_test_leaves_out(i + 1, 2)) {
            harness_check_in(harness_ctx, &s, &harness_half_views[i], &report);
            assert_int_equal(report.halves, 1);
        }
        subject_free(&s);
        if (report.faults) fail_msg("%s", report.text);
    }
}

/* ---- tiles in shared memory ---- */

static vkt_traits gpu_traits; /* for the views below: one work group keeps the device busy, so tiles are large */

static void with_gpu_traits(vkt_limits *lim)
{
    gpu_traits = *lim->traits;
    gpu_traits.groups_shared = 1;
    lim->traits = &gpu_traits;
}

/* Sets the limit of work groups to 128 lanes, the minimum that Vulkan requires. */
static void with_few_lanes(vkt_limits *lim)
{
    with_gpu_traits(lim);
    lim->max_workgroup_lanes = 128;
}

/* Also sets the limit of shared memory to 16 KiB, the minimum that Vulkan requires. */
static void with_little_memory(vkt_limits *lim)
{
    with_few_lanes(lim);
    lim->shared_bytes = 16384;
}

/* Lets a lane compute only 2 rows of a gradient, as on GPUs with few registers. If heads are wider than 64, a lane also
 * computes only 2 rows of y. */
static void with_few_registers(vkt_limits *lim)
{
    with_gpu_traits(lim);
    gpu_traits.attention_vec4s = 10;
}

static void with_few_of_all(vkt_limits *lim)
{
    with_little_memory(lim);
    gpu_traits.attention_vec4s = 10;
}

/* Returns the number of dispatches of the variant SHARED whose tiles have `rows` rows and load slices of `chunks` vec4s
 * of each row to shared memory. */
static uint32_t count_tiles(const subject *s, const harness_view *view, uint32_t rows, uint32_t chunks)
{
    vkt_limits lim = harness_ctx->limits;
    vkt_emit e;
    uint32_t n = 0;
    view->change(&lim);
    lim.choices.force = view->force;
    assert_int_equal(vkt_lower(s->g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    for (size_t i = 0; i < e.n; i++)
        n += (e.list[i].kernel == VKT_K_ATTENTION_SHARED || e.list[i].kernel == VKT_K_ATTENTION_SHARED_DQ ||
              e.list[i].kernel == VKT_K_ATTENTION_SHARED_DKV) &&
             e.list[i].spec[ATTENTION_SHARED_SPEC_ROWS] == rows &&
             e.list[i].spec[ATTENTION_SHARED_SPEC_CHUNKS] == chunks;
    vkt_lower_free(&e);
    return n;
}

/* A slice has 4 * `chunks` numbers of a row. The width of a head is less than a slice, a multiple of a slice, or
 * neither. 16 lanes share a row of up to 64 numbers, and 32 lanes share a longer row. With the widths 64 and 128, each
 * of these lanes has a vec4 of the row. With the other widths, some lanes have none. Most heads have several tiles of
 * rows and of columns, and some last tiles are not full. */
static void every_tile_in_shared_memory_agrees_with_the_reference(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const struct {
        sequences n;
        void (*change)(vkt_limits *lim);
        uint32_t rows, chunks;
    } cases[] = {
        { { 70, 131, 64, 1, true }, with_gpu_traits, 64, 4 },
        { { 128, 64, 32, 1, false }, with_gpu_traits, 64, 4 },
        { { 66, 65, 28, 1, true }, with_gpu_traits, 64, 4 },
        { { 65, 40, 12, 1, false }, with_gpu_traits, 64, 4 },
        { { 67, 200, 60, 1, true }, with_few_lanes, 32, 4 },
        { { 33, 70, 4, 1, true }, with_few_lanes, 32, 4 },
        { { 40, 129, 128, 1, true }, with_gpu_traits, 32, 4 },
        { { 64, 257, 68, 1, true }, with_gpu_traits, 32, 4 },
        { { 150, 65, 76, 1, false }, with_few_lanes, 16, 4 },
        { { 33, 130, 128, 1, true }, with_little_memory, 16, 2 },
        { { 70, 67, 64, 1, true }, with_few_registers, 32, 4 },
        { { 40, 33, 20, 1, false }, with_few_registers, 32, 4 },
        { { 40, 129, 128, 1, true }, with_few_registers, 16, 4 },
        { { 33, 130, 72, 1, true }, with_few_of_all, 8, 2 },
        { { 70, 131, 64, 3, true }, with_gpu_traits, 64, 4 },
        { { 65, 67, 32, 2, false }, with_few_registers, 32, 4 },
        { { 40, 129, 128, 4, true }, with_gpu_traits, 32, 4 },
        { { 33, 70, 12, 5, true }, with_few_lanes, 32, 4 },
    };
    const bool small = vkt_env_int("VKT_TEST_SMALL", 0);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        if (small && vkt_test_leaves_out(i, 3)) continue;
        harness_view view = { "in shared memory", cases[i].change, .force = VKT_V(SHARED) };
        harness_report report = { .faults = 0 };
        subject s;
        make_subject(&s, i, &cases[i].n);
        assert_true(count_tiles(&s, &view, cases[i].rows, cases[i].chunks) >= 2);
        subject_forward(&s);
        subject_backward(&s);
        if (!vkt_test_leaves_out(i, 2)) harness_check_in(harness_ctx, &s, &view, &report);
        if (!vkt_test_leaves_out(i + 1, 2)) {
            view.precision = i / 2 % 2 ? VKT_PRECISION_F16 : VKT_PRECISION_BF16;
            harness_check_in(harness_ctx, &s, &view, &report);
            assert_int_equal(report.halves, 1);
        }
        /* With cooperative matrices, tiles do not depend on the trait attention_vec4s. So the cases that set this trait
         * are skipped: they would repeat the tiles of other cases, and Mesa takes seconds to compile a kernel. */
        const bool again = cases[i].change == with_few_registers || cases[i].change == with_few_of_all;
        if (!again && harness_has_matrices()) {
            view.force = VKT_V(COOP);
            view.precision = VKT_PRECISION_F16;
            harness_check_in(harness_ctx, &s, &view, &report);
            assert_int_equal(report.coops, 1);
        }
        subject_free(&s);
        if (report.faults) fail_msg("%s", report.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_and_long_heads_agree_with_the_reference),
        cmocka_unit_test(every_tile_in_shared_memory_agrees_with_the_reference),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
