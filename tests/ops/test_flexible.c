/* Tests products by flexible cooperative matrices (the variant COOP2, shaders/lib/blocks_coop2.glsl). A tile must be a
 * multiple of the device's granularity (vkt_limits.coop2), and must give right results for any size. test_shared.c and
 * test_ops.c check the variant in more cases. test_coop.c checks its rounding. test_choose.c checks when it is
 * chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/product/blocks.h"
#include "ops/harness.h"
#include "support/host.h"

static const vkt_limits gpu = { .cores = 64,
                                .subgroup_size = 32,
                                .max_workgroup_lanes = 1024,
                                .max_groups = 65535,
                                .shared_bytes = 49152,
                                .traits = &vkt_class_traits[VKT_CLASS_OTHER] };

/* Checks `count` products c = op(a) op(b) and both gradients in `view`, which forces COOP2. trans & 1: a is transposed.
 * trans & 2: b is transposed. If `half` is true, at least one value must be stored as f16. If `half` is false, no value
 * may be stored as f16. */
static void check(uint32_t count, uint32_t m, uint32_t n, uint32_t k, uint32_t trans, const harness_view *view,
                  bool half)
{
    const bool ta = trans & 1, tb = trans & 2;
    harness_report report = { .faults = 0 };
    subject s;
    subject_begin(&s, 1);
    subject_input(&s, &(vkt_case_input){ .shape = vkt_shape3(count, ta ? k : m, ta ? m : k), .lo = -1, .hi = 1 }, NULL);
    subject_input(&s, &(vkt_case_input){ .shape = vkt_shape3(count, tb ? n : k, tb ? k : n), .lo = -1, .hi = 1 }, NULL);
    subject_set_output(&s, vkt_matmul(s.g, s.in[0].t, s.in[1].t, ta, tb));
    subject_forward(&s);
    subject_backward(&s);
    harness_check_in(harness_ctx, &s, view, &report);
    if (report.faults) fail_msg("(%u,%u,%u,%u): %s", count, m, n, k, report.text);
    assert_int_equal(report.coops, 1);
    assert_int_equal(report.halves, half);
    subject_free(&s);
}

static void flexible_matrices_divide_the_tile(void **state)
{
    (void)state;
    static const struct {
        vkt_coop steps;
        uint32_t subgroup, bm; /* bm: rows of the tile; 0: no tile fits */
    } cases[] = {
        { { 16, 16, 16 }, 32, 128 }, { { 16, 8, 16 }, 32, 128 }, { { 16, 16, 16 }, 64, 128 },
        { { 8, 8, 8 }, 8, 128 },     { { 8, 8, 8 }, 4, 128 },    { { 32, 32, 16 }, 32, 128 },
        { { 32, 32, 16 }, 8, 0 },    { { 16, 16, 32 }, 32, 0 },  { { 0, 0, 0 }, 32, 0 },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_limits lim = gpu;
        vkt_blocks b;
        lim.coop2 = cases[i].steps;
        lim.subgroup_size = cases[i].subgroup;
        const vkt_blocks_job job = { 4096, 4096, 4096, 1, .coop = true, .flexible = true };
        const bool fits = vkt_blocks_plan(&lim, &job, 1, &b);
        assert_int_equal(fits ? b.spec[BLOCKS_SPEC_BM] : 0, cases[i].bm);
        if (fits) assert_true(b.flexible && b.coop && !b.split);
        lim.coop = (vkt_coop){ 16, 16, 16 }; /* the sizes of fixed matrices do not matter */
        assert_int_equal(vkt_blocks_plan(&lim, &job, 1, &b), fits);
    }
}

static vkt_tile flexible_tile; /* the tile that with_tile sets */

static void with_tile(vkt_limits *lim)
{
    lim->choices.tile = flexible_tile;
}

/* Tests each tile with a and b as they are and transposed. The sizes are smaller than a tile, larger than a tile, or no
 * multiples of it. Values are stored as f16 if the sizes are multiples of 4, and as f32 otherwise. */
static void flexible_matrices_multiply_any_size(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    if (!harness_has_flexible()) return;
    static const vkt_tile coop_tiles[] = { { 128, 128, 8, 8 }, { 64, 64, 8, 4 }, { 32, 32, 4, 4 } };
    static const uint32_t sizes[][4] = { { 1, 1, 1, 1 },     { 2, 1, 131, 7 },    { 1, 257, 1, 33 },
                                         { 3, 67, 97, 131 }, { 2, 132, 140, 68 }, { 1, 64, 128, 96 } };
    for (uint32_t i = 0; i < VKT_COUNT(coop_tiles) * VKT_COUNT(sizes); i++) {
        const uint32_t *z = sizes[i / VKT_COUNT(coop_tiles)];
        harness_view view = { "by flexible matrices", with_tile, .force = VKT_V(COOP2),
                              .precision = VKT_PRECISION_F16 };
        flexible_tile = coop_tiles[i % VKT_COUNT(coop_tiles)];
        check(z[0], z[1], z[2], z[3], i % 4, &view, z[2] % 4 == 0);
    }
}

/* With bindings of 16 KiB, each element of c is computed in several blocks of products. The sum of a block is added to
 * c or, if c is stored in 16 bits, to a separate f32 buffer. */
static void blocks_of_long_sums_add_up(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    if (!harness_has_flexible()) return;
    harness_view small = harness_half_views[3];
    small.force = VKT_V(COOP2);
    small.may_refuse = false;
    check(2, 9, 13, 603, 1, &small, false);
    check(2, 12, 16, 604, 1, &small, true);
}

/* The result is a single tile, and each of its elements is a long sum. The terms are divided into slices, and another
 * kernel adds the sums of the slices. */
static void slices_of_long_sums_add_up(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    if (!harness_has_flexible()) return;
    harness_view view = harness_half_views[1];
    view.force = VKT_V(COOP2);
    check(1, 19, 13, 5003, 3, &view, false);
    check(1, 20, 12, 2052, 0, &view, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flexible_matrices_divide_the_tile),
        cmocka_unit_test(flexible_matrices_multiply_any_size),
        cmocka_unit_test(blocks_of_long_sums_add_up),
        cmocka_unit_test(slices_of_long_sums_add_up),
    };
    return cmocka_run_group_tests_name("flexible cooperative matrices", tests, harness_setup, harness_teardown);
}
