/* Tests rules of max pooling that random numbers do not reach: ties, NaN, infinities. Also tests output sizes, which
 * were computed by hand from PyTorch's documentation. Also tests windows that are so large that dispatches or loops are
 * split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

/* Computes y and dx (for dy = 1, 2, 3, ..) of a max pooling of one 4 x 4 image. */
static void max_pool(const float x[16], const vkt_pool2d_params *params, float *y, float dx[16])
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_program *p;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor tx = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(1, 1, 4, 4));
    const vkt_tensor ty = vkt_max_pool2d(g, tx, params);
    const vkt_shape s = vkt_tensor_shape(g, ty);
    const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, s);
    vkt_tensor tdx;
    assert_int_equal(vkt_gradients(g, &ty, &dy, 1, &tx, 1, &tdx), VKT_OK);
    vkt_keep(g, ty);
    vkt_keep(g, tdx);
    assert_int_equal(vkt_program_create(harness_ctx, g, NULL, NULL, &p), VKT_OK);
    const uint64_t bytes = 4ull * s.dim[2] * s.dim[3];
    const float seeds[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    assert_int_equal(vkt_program_write(p, tx, x, 16 * sizeof *x), VKT_OK);
    assert_int_equal(vkt_program_write(p, dy, seeds, bytes), VKT_OK);
    assert_int_equal(vkt_program_run(p, &(vkt_run){ .rows = 0 }, NULL), VKT_OK);
    assert_int_equal(vkt_program_read(p, ty, y, bytes), VKT_OK);
    assert_int_equal(vkt_program_read(p, tdx, dx, 16 * sizeof *dx), VKT_OK);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void the_first_maximum_wins_a_tie(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const float x[16] = { 1, 1, 0, 2, 1, 1, 2, 2, -3, -3, 0, -0.0f, -3, -3, 0, 0 };
    const float want_dx[16] = { 1, 0, 0, 2, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0 };
    float y[4], dx[16];
    max_pool(x, &(vkt_pool2d_params){ .kernel = { 2, 2 } }, y, dx);
    assert_true(y[0] == 1 && y[1] == 2 && y[2] == -3 && y[3] == 0);
    assert_memory_equal(dx, want_dx, sizeof dx);
}

static void overlapping_windows_add_up(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    float x[16] = { 0 }, y[9], dx[16];
    x[5] = 1; /* element (1,1) wins four windows; in the other windows, the first of four equal elements wins */
    const float want_dx[16] = { 0, 0, 3, 0, 0, 1 + 2 + 4 + 5, 6, 0, 7, 8, 9, 0, 0, 0, 0, 0 };
    max_pool(x, &(vkt_pool2d_params){ .kernel = { 2, 2 }, .stride = { 1, 1 } }, y, dx);
    for (int i = 0; i < 9; i++) assert_true(y[i] == (i % 3 < 2 && i < 6 ? 1.0f : 0.0f));
    assert_memory_equal(dx, want_dx, sizeof dx);
}

static void nan_propagates_and_infinities_compare(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const float inf = INFINITY;
    const float x[16] = { 5, NAN, inf, 1, 7, 9, inf, -inf, -inf, -inf, 1, 2, -inf, -inf, 3, NAN };
    float y[4], dx[16];
    max_pool(x, &(vkt_pool2d_params){ .kernel = { 2, 2 } }, y, dx);
    assert_true(isnan(y[0]) && y[1] == inf && y[2] == -inf && isnan(y[3]));
    const float want_dx[16] = { 0, 1, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 4 };
    assert_memory_equal(dx, want_dx, sizeof dx);
}

static void output_sizes_are_torchs(void **state)
{
    (void)state;
    static const struct {
        uint32_t in, kernel, stride, pad;
        bool ceil_mode;
        uint32_t out; /* 0: refused */
    } cases[] = {
        { 26, 2, 0, 0, false, 13 }, { 9, 2, 0, 0, false, 4 }, { 9, 2, 0, 0, true, 5 },  { 10, 3, 3, 1, true, 4 },
        { 5, 2, 3, 1, true, 2 }, /* ceil gives 3, but the third window would start at 6 = in + pad */
        { 7, 3, 2, 0, true, 3 },    { 8, 3, 2, 0, true, 4 },  { 8, 3, 2, 0, false, 3 }, { 1, 1, 5, 0, true, 1 },
        { 4, 5, 1, 0, false, 0 },   { 4, 3, 1, 2, false, 0 }, { 4, 0, 1, 0, false, 0 },
    };
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_graph *g;
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(1, 1, cases[i].in, cases[i].in));
        const vkt_pool2d_params p = { .kernel = { cases[i].kernel, cases[i].kernel },
                                      .stride = { cases[i].stride, cases[i].stride },
                                      .pad = { cases[i].pad, cases[i].pad },
                                      .ceil_mode = cases[i].ceil_mode };
        vkt_test_expect_errors(cases[i].out == 0);
        const vkt_tensor y = vkt_avg_pool2d(g, x, &p);
        vkt_test_expect_errors(false);
        assert_int_equal(vkt_graph_status(g) == VKT_OK, cases[i].out != 0);
        if (cases[i].out) assert_int_equal(vkt_tensor_shape(g, y).dim[3], cases[i].out);
        vkt_graph_destroy(&g);
    }
}

/* Each window has two columns, which are three apart: -1 and 2, 0 and 3, or 1 and 4. Columns -1 and 4 are outside of
 * the image. */
static void dilated_windows_skip_elements(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    float x[16], y[16], dx[16] = { 0 };
    for (int i = 0; i < 16; i++) x[i] = (float)(i % 4 == 0 ? 20 : i);
    const vkt_pool2d_params p = { .kernel = { 1, 2 }, .stride = { 1, 1 }, .pad = { 0, 1 }, .dilation = { 1, 3 } };
    max_pool(x, &p, y, dx); /* y has 4 x 3 elements */
    for (int h = 0; h < 4; h++) {
        assert_true(y[3 * h] == x[4 * h + 2] && y[3 * h + 1] == 20 && y[3 * h + 2] == x[4 * h + 1]);
        const float first = (float)(3 * h + 1), want[4] = { first + 1, first + 2, first, 0 };
        assert_memory_equal(dx + 4 * h, want, sizeof want);
    }
}

/* Each window has only two elements, in rows -1 and 4, which are padding. So the maximum is -inf, and no element gets
 * the gradient. */
static void a_window_of_padding_alone_has_no_winner(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    float x[16], y[16], dx[16];
    for (int i = 0; i < 16; i++) x[i] = (float)i;
    const vkt_pool2d_params p = { .kernel = { 2, 1 }, .stride = { 1, 1 }, .pad = { 1, 0 }, .dilation = { 5, 1 } };
    max_pool(x, &p, y, dx);
    for (int i = 0; i < 4; i++) assert_true(isinf(y[i]) && y[i] < 0);
    for (int i = 0; i < 16; i++) assert_true(dx[i] == 0);
}

/* ---- large windows, and windows with dilation ---- */

/* Limits storage bindings to 16 KiB, so a binding holds only some rows of the images below. check_case also uses this
 * limit if `small` is true. `small` is true only for cases that the op can compute with this limit. */
static void small_storage(vkt_limits *lim)
{
    lim->max_storage_range_bytes = 16384;
}

static void middle_storage(vkt_limits *lim)
{
    lim->max_storage_range_bytes = 1200000;
}

static void check_case(const vkt_pool2d_attr *attr, vkt_shape x, bool small)
{
    const harness_view view = { "with storage bindings of 16 KiB", small_storage };
    const vkt_host h = vkt_test_host();
    vkt_pool2d_attr a = *attr;
    for (int i = 0; i < 3; i++) {
        vkt_case c = { .n_in = 0 };
        subject s = { .seed = 0 };
        harness_report report = { .faults = 0 };
        if (i == 0 && (a.dilation[0] > 1 || a.dilation[1] > 1)) continue; /* only max pooling has dilation */
        a.average = i == 0;
        a.exclude_pad = a.average && attr->exclude_pad;
        a.relu = i == 2;
        vkt_case_f32(&c, VKT_BATCH_LAST, x, -2, a.relu ? 0.001f : 2)->distinct = !a.average;
        vkt_case_attr(&c, &a, sizeof a);
        assert_int_equal(vkt_subject_of_case(&h, &s, &vkt_op_pool2d, &c, 5), VKT_OK);
        subject_forward(&s);
        subject_backward(&s);
        harness_check(harness_ctx, &s, &report);
        if (small) harness_check_in(harness_ctx, &s, &view, &report);
        const harness_view middle = { "with storage bindings of 1.2 MB", middle_storage };
        if (small) harness_check_in(harness_ctx, &s, &middle, &report);
        subject_free(&s);
        if (report.faults) fail_msg("%s", report.text);
    }
}

static void long_windows_are_shared(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_pool2d_attr global = { .adaptive = true, .out = { 1, 1 } };
    check_case(&global, vkt_shape4(3, 2, 601, 97), true); /* the window is split into parts of several rows */
    /* A row of the window has more elements than a part may have, so the row is divided into several parts. */
    check_case(&global, vkt_shape4(2, 3, 1, 70001), false);
    const vkt_pool2d_attr uneven = { .adaptive = true, .out = { 2, 1 } };
    check_case(&uneven, vkt_shape4(2, 1, 1201, 100), true);
    const vkt_pool2d_attr overlapping = { .kernel = { 485, 106 },

                                          .stride = { 6, 5 },
                                          .pad = { 7, 2 },
                                          .exclude_pad = true,
                                          .out = { 5, 2 } };
    check_case(&overlapping, vkt_shape4(2, 2, 495, 110), true);
}

/* A binding of 1.2 MB holds one and a half windows. The windows of output rows 0 and 1 do not fit into one binding. The
 * windows of output rows 2 and 3 do, because the last window is only one row high. */
static void a_later_block_may_have_more_rows(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_pool2d_attr a = { .kernel = { 500, 100 }, .stride = { 500, 100 }, .ceil_mode = true, .out = { 4, 1 } };
    check_case(&a, vkt_shape4(2, 1, 1501, 100), true);
}

/* A binding of 16 KiB holds 11 rows of x. A window of the first case spans 9 rows. A window of the second case spans 10
 * rows. */
static void dilated_windows_are_split_by_rows(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_pool2d_attr split = {
        .kernel = { 3, 2 }, .stride = { 2, 3 }, .pad = { 1, 1 }, .dilation = { 4, 7 }, .out = { 17, 29 }
    };
    check_case(&split, vkt_shape4(3, 2, 40, 90), true);
    const vkt_pool2d_attr high = {
        .kernel = { 2, 3 }, .stride = { 1, 2 }, .pad = { 1, 0 }, .dilation = { 9, 5 }, .out = { 1, 40 }
    };
    check_case(&high, vkt_shape4(3, 3, 8, 90), true); /* a window has rows -1 and 8: only padding */
}

/* A window has nine elements, which are far apart. All 225 x 225 windows extend across the middle of x. On a CPU, a
 * loop over so many windows would be too long: a loop may have 50,000 iterations (vkt_rough_loop). So the gradient
 * loops over the nine elements of a window. */
static void far_apart_elements_cost_no_more(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_pool2d_attr far = {
        .kernel = { 3, 3 }, .stride = { 1, 1 }, .dilation = { 150, 150 }, .out = { 225, 225 }
    };
    check_case(&far, vkt_shape4(1, 1, 525, 525), false);
}

/* Each of 64 rows of y has 24 vec4s. A work group has 8 lanes. A vec4 takes 32,944 iterations, so the loop of a lane
 * with two vec4s would exceed the limit. So each lane has one vec4, and a row takes three work groups. */
static void loops_end_in_time(void **state)
{
    (void)state;
    const vkt_limits lim = { .subgroup_size = 8,
                             .max_workgroup_lanes = 1024,
                             .max_groups = 65535,
                             .max_storage_range_bytes = UINT64_C(1) << 32,
                             .traits = &vkt_class_traits[VKT_CLASS_CPU] };
    const vkt_pool2d_params params = { .kernel = { 181, 181 } };
    vkt_graph *g = harness_graph();
    vkt_emit e;
    vkt_keep(g,
             vkt_avg_pool2d(g, vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(4, 64, 181, 24 * 181)), &params));
    assert_int_equal(vkt_lower(g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    assert_int_equal(e.n, 1);
    assert_int_equal(e.list[0].groups[1], 3);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
}

/* With dilation, one lane compares a whole window. CPU drivers limit the iterations of a loop (trait largest_loop), so
 * there the large window of this test is refused. */
static void long_windows_with_dilation_want_long_loops(void **state)
{
    (void)state;
    for (int cls = 0; cls < VKT_CLASS_COUNT; cls++) {
        const vkt_limits lim = { .subgroup_size = 8,
                                 .max_workgroup_lanes = 1024,
                                 .max_groups = 65535,
                                 .max_storage_range_bytes = UINT64_C(1) << 32,
                                 .traits = &vkt_class_traits[cls] };
        const vkt_pool2d_params params = { .kernel = { 180, 280 }, .dilation = { 2, 1 } };
        const bool refused = cls == VKT_CLASS_CPU;
        vkt_graph *g = harness_graph();
        vkt_emit e;
        vkt_keep(g, vkt_max_pool2d(g, vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(1, 1, 500, 300)), &params));
        assert_int_equal(vkt_graph_status(g), VKT_OK);
        vkt_test_expect_errors(refused);
        assert_int_equal(vkt_lower(g, &lim, NULL, (vkt_storage){ 0 }, &e), refused ? VKT_E_UNSUPPORTED : VKT_OK);
        vkt_test_expect_errors(false);
        if (refused)
            vkt_test_error_contains("windows of 180 x 280");
        else
            vkt_lower_free(&e);
        vkt_graph_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_block_may_have_more_rows),
        cmocka_unit_test(long_windows_with_dilation_want_long_loops),
        cmocka_unit_test(the_first_maximum_wins_a_tie),
        cmocka_unit_test(overlapping_windows_add_up),
        cmocka_unit_test(nan_propagates_and_infinities_compare),
        cmocka_unit_test(output_sizes_are_torchs),
        cmocka_unit_test(dilated_windows_skip_elements),
        cmocka_unit_test(a_window_of_padding_alone_has_no_winner),
        cmocka_unit_test(long_windows_are_shared),
        cmocka_unit_test(loops_end_in_time),
        cmocka_unit_test(dilated_windows_are_split_by_rows),
        cmocka_unit_test(far_apart_elements_cost_no_more),
    };
    return cmocka_run_group_tests_name("pool", tests, harness_setup, harness_teardown);
}
