/* Rules of max pooling that random numbers do not meet: ties, NaN, infinities; and output sizes against a table that
 * was worked out by hand from PyTorch's documentation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "support/host.h"

/* y and dx (for dy = 1, 2, 3, ..) of a max pooling of one 4 x 4 picture. */
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
    x[5] = 1; /* (1,1) wins the four windows around it, and ties elsewhere go to the first element */
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
        { 5, 2, 3, 1, true, 2 }, /* ceil gives 3, but the third would start at 6 = in + pad */
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

/* Windows of two columns, three apart, from -1 on: of columns -1 and 2, of 0 and 3, of 1 and 4, which is outside. */
static void dilated_windows_skip_elements(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    float x[16], y[16], dx[16] = { 0 };
    for (int i = 0; i < 16; i++) x[i] = (float)(i % 4 == 0 ? 20 : i);
    const vkt_pool2d_params p = { .kernel = { 1, 2 }, .stride = { 1, 1 }, .pad = { 0, 1 }, .dilation = { 1, 3 } };
    max_pool(x, &p, y, dx); /* 4 x 3 */
    for (int h = 0; h < 4; h++) {
        assert_true(y[3 * h] == x[4 * h + 2] && y[3 * h + 1] == 20 && y[3 * h + 2] == x[4 * h + 1]);
        const float first = (float)(3 * h + 1), want[4] = { first + 1, first + 2, first, 0 };
        assert_memory_equal(dx + 4 * h, want, sizeof want);
    }
}

/* Rows -1 and 4 of four: -inf, and the gradient goes nowhere. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_maximum_wins_a_tie),
        cmocka_unit_test(overlapping_windows_add_up),
        cmocka_unit_test(nan_propagates_and_infinities_compare),
        cmocka_unit_test(output_sizes_are_torchs),
        cmocka_unit_test(dilated_windows_skip_elements),
        cmocka_unit_test(a_window_of_padding_alone_has_no_winner),
    };
    return cmocka_run_group_tests_name("pool", tests, harness_setup, harness_teardown);
}
