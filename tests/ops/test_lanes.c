/* Tests sums, maxima and the indices of maxima, computed by work groups of several subgroups as on GPUs
 * (shaders/lib/lanes.glsl). The tests run on any device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

static const harness_view gpu = { "as GPU", harness_as_gpu };

/* Lowers the subject (one op with one case: check/subject.h) with the traits of a GPU. Returns the number of lanes of
 * the largest work group. Only kernels whose work groups may have several subgroups (VKT_KF_SUBGROUPS) count. */
static uint32_t most_lanes(const subject *s)
{
    vkt_limits lim = harness_ctx->limits;
    vkt_emit e;
    uint32_t most = 0;
    harness_as_gpu(&lim);
    assert_int_equal(vkt_lower(s->g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    for (uint32_t i = 0; i < e.n; i++)
        if (vkt_kernel_get((vkt_kernel_id)e.list[i].kernel)->flags & VKT_KF_SUBGROUPS)
            most = VKT_MAX(most, e.list[i].spec[0]);
    vkt_lower_free(&e);
    return most;
}

static void check(const vkt_op *op, const vkt_case *c, uint32_t lanes)
{
    const vkt_host h = vkt_test_host();
    harness_report report = { .faults = 0 };
    subject s = { .seed = 0 };
    assert_int_equal(vkt_subject_of_case(&h, &s, op, c, 3), VKT_OK);
    assert_int_equal(most_lanes(&s), lanes);
    subject_forward(&s);
    subject_backward(&s);
    harness_check_in(harness_ctx, &s, &gpu, &report);
    subject_free(&s);
    if (report.faults) fail_msg("%s", report.text);
}

static uint32_t wide(void)
{
    return VKT_MIN(harness_ctx->limits.max_workgroup_lanes, 256u);
}

static void sums_use_work_groups_of_several_subgroups(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const uint32_t sizes[] = { 8 * 256, 9001, 70000 };
    for (size_t i = 0; i < VKT_COUNT(sizes); i++) {
        vkt_case c = { .n_in = 0 };
        vkt_case_f32(&c, VKT_ROWS, vkt_shape1(sizes[i] * (i == 0 ? 4 : 1)), 0.5f, 1.5f);
        check(&vkt_op_sum, &c, wide());
        check(&vkt_op_mean, &c, wide());
    }
}

static void few_elements_need_one_subgroup(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_case c = { .n_in = 0 };
    vkt_case_f32(&c, VKT_ROWS, vkt_shape1(17), 0.5f, 1.5f);
    check(&vkt_op_sum, &c, harness_ctx->limits.subgroup_size);
}

static void losses_and_choices_over_long_rows(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const uint32_t classes[] = { 2048, 3001 };
    for (size_t i = 0; i < VKT_COUNT(classes); i++) {
        vkt_case c = { .rows = 5 };
        vkt_case_f32(&c, VKT_ROWS, vkt_shape2(7, classes[i]), -20, 20);
        check(&vkt_op_argmax, &c, wide());
        vkt_case_u32(&c, VKT_ROWS, vkt_shape1(7), classes[i]);
        check(&vkt_op_softmax_xent, &c, wide());
        check(&vkt_op_count_correct, &c, wide());
        const vkt_cross_entropy_attr smooth = { .ignore = 7, .group = 1, .smoothing = 0.25f };
        vkt_case_f32(&c, VKT_ROWS, vkt_shape1(classes[i]), 0.5f, 2);
        vkt_case_attr(&c, &smooth, sizeof smooth);
        check(&vkt_op_cross_entropy, &c, wide());
    }
}

static void squared_errors(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_case c = { .rows = 61 };
    for (int i = 0; i < 2; i++) vkt_case_f32(&c, VKT_BATCH_LAST, vkt_shape2(70, 301), -3, 3);
    const vkt_pair_loss_attr mean = { .beta = 1 };
    vkt_case_attr(&c, &mean, sizeof mean);
    check(&vkt_op_mse, &c, wide());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_use_work_groups_of_several_subgroups),
        cmocka_unit_test(few_elements_need_one_subgroup),
        cmocka_unit_test(losses_and_choices_over_long_rows),
        cmocka_unit_test(squared_errors),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
