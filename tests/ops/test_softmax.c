/* Compares each way to compute a softmax (ops/norm/softmax.c) with the double-precision reference. A line is the
 * elements of x along the axis of the softmax. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "kernel/ids.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

static bool uses(const subject *s, vkt_kernel_id kernel)
{
    vkt_emit e;
    bool found = false;
    assert_int_equal(vkt_lower(s->g, &harness_ctx->limits, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    for (size_t i = 0; i < e.n; i++) found |= e.list[i].kernel == kernel;
    vkt_lower_free(&e);
    return found;
}

/* Checks softmaxes of shape x along `axis` in `view` or, if `view` is NULL, by harness_check. The softmax must use the
 * kernel `forward`, and its gradient the kernel `back`. */
static void check_in(vkt_shape x, uint32_t axis, vkt_kernel_id forward, vkt_kernel_id back, const harness_view *view)
{
    static const vkt_softmax_attr variants[] = { { .scale = 1 },
                                                 { .scale = 1, .log = 1 },
                                                 { .scale = 0.3f, .causal = 1 } };
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(variants); i++) {
        vkt_softmax_attr a = variants[i];
        vkt_case c = { .n_in = 0 };
        subject s = { .seed = 0 };
        harness_report report = { .faults = 0 };
        a.axis = axis;
        if (a.causal && axis != x.rank - 1) continue;
        vkt_case_f32(&c, VKT_ROWS, x, -2, 2);
        vkt_case_attr(&c, &a, sizeof a);
        assert_int_equal(vkt_subject_of_case(&h, &s, &vkt_op_softmax, &c, 5), VKT_OK);
        subject_forward(&s);
        subject_backward(&s);
        assert_true(uses(&s, forward) && uses(&s, back));
        if (view)
            harness_check_in(harness_ctx, &s, view, &report);
        else
            harness_check(harness_ctx, &s, &report);
        subject_free(&s);
        if (report.faults) fail_msg("%s", report.text);
    }
}

static void check(vkt_shape x, uint32_t axis, vkt_kernel_id forward, vkt_kernel_id back)
{
    check_in(x, axis, forward, back, NULL);
}

static void a_lane_computes_a_line_four_classes_at_a_time(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const uint32_t classes[] = { 4, 8, 20, 36, 64 };
    for (size_t i = 0; i < VKT_COUNT(classes); i++)
        check(vkt_shape3(7, 13, classes[i]), 2, VKT_K_SOFTMAX_LINE4, VKT_K_SOFTMAX_DX_LINE4);
    check(vkt_shape2(1, 12), 1, VKT_K_SOFTMAX_LINE4, VKT_K_SOFTMAX_DX_LINE4);
    /* x has 46,400 bytes, so the views with bindings of 16 or 4 KiB split x over several bindings. */
    for (size_t v = 1; v < harness_n_views; v++)
        check_in(vkt_shape3(20, 29, 20), 2, VKT_K_SOFTMAX_LINE4, VKT_K_SOFTMAX_DX_LINE4, &harness_views[v]);
}

static void a_lane_computes_a_line(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    check(vkt_shape3(7, 13, 5), 2, VKT_K_SOFTMAX, VKT_K_SOFTMAX_DX);
    check(vkt_shape2(9, 63), 1, VKT_K_SOFTMAX, VKT_K_SOFTMAX_DX);
    check(vkt_shape3(3, 5, 7), 1, VKT_K_SOFTMAX, VKT_K_SOFTMAX_DX);
    check(vkt_shape3(3, 5, 12), 1, VKT_K_SOFTMAX4, VKT_K_SOFTMAX_DX4);
}

static void a_work_group_computes_a_line(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    check(vkt_shape2(9, 65), 1, VKT_K_SOFTMAX_ALONG, VKT_K_SOFTMAX_DX_ALONG);
    check(vkt_shape2(9, 68), 1, VKT_K_SOFTMAX_ALONG4, VKT_K_SOFTMAX_DX_ALONG4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_computes_a_line_four_classes_at_a_time),
        cmocka_unit_test(a_lane_computes_a_line),
        cmocka_unit_test(a_work_group_computes_a_line),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
