/* Tests losses in cases that random cases do not reach: special values, labels that do not count, options that change
 * nothing, and targets that depend on a parameter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
#define NONE ((vkt_tensor){ 0 })

static vkt_tensor one(vkt_graph *g)
{
    return vkt_graph_const(g, "one", VKT_F32, vkt_shape0(), &(float){ 1 });
}

/* ---- cross-entropy ---- */

enum { B = 37, K = 53 };

typedef struct scores {
    float z[B * K], loss, dz[B * K];
    uint32_t t[B];
} scores;

static void draw_scores(scores *s)
{
    vkt_rng r = vkt_rng_make(5, VKT_STREAM_TEST, 0, 0);
    for (size_t i = 0; i < B * K; i++) s->z[i] = vkt_rng_uniform(&r, -4, 4);
    for (size_t b = 0; b < B; b++) s->t[b] = vkt_rng_range(&r, 0, K - 1);
}

/* Computes loss and gradient by vkt_softmax_cross_entropy, which has no options, if `plain` is true. Else computes them
 * by vkt_cross_entropy without options. The trait classes_spread is off. If it were on, vkt_softmax_cross_entropy could
 * use a kernel that adds in another order, and the results could have other bits. */
static void run_scores(scores *s, vkt_layout layout, bool plain, uint32_t rows)
{
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    vkt_tensor dz;
    const vkt_tensor z = vkt_input(g, "z", VKT_F32, layout, vkt_shape2(B, K)), seed = one(g);
    const vkt_tensor t = vkt_input(g, "t", VKT_U32, VKT_ROWS, vkt_shape1(B));
    const vkt_tensor loss = plain ? vkt_softmax_cross_entropy(g, z, t) : vkt_cross_entropy(g, z, t, NULL);
    OK(vkt_gradients(g, &loss, &seed, 1, &z, 1, &dz));
    vkt_keep(g, loss);
    vkt_keep(g, dz);
    const vkt_limits real = harness_ctx->limits;
    vkt_traits traits = *real.traits;
    traits.classes_spread = 0;
    harness_ctx->limits.traits = &traits;
    const vkt_result made = vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p);
    harness_ctx->limits = real;
    OK(made);
    OK(vkt_program_write(p, z, s->z, sizeof s->z));
    OK(vkt_program_write(p, t, s->t, sizeof s->t));
    OK(vkt_program_run(p, &(vkt_run){ .rows = rows }, NULL));
    OK(vkt_program_read(p, loss, &s->loss, sizeof s->loss));
    OK(vkt_program_read(p, dz, s->dz, sizeof s->dz));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void no_option_changes_no_bit(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static scores a, b;
    draw_scores(&a);
    draw_scores(&b);
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        run_scores(&a, (vkt_layout)layout, true, B - 3);
        run_scores(&b, (vkt_layout)layout, false, B - 3);
        assert_memory_equal(&a.loss, &b.loss, sizeof a.loss);
        assert_memory_equal(a.dz, b.dz, sizeof a.dz);
    }
}

/* Rows 7 to B-1 have the label -100, so the result must be the loss of rows 0 to 6 alone. If all rows have this label,
 * the mean is 0/0, and the gradients are 0. */
static void labels_of_minus_100_do_not_count(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static scores few, all;
    draw_scores(&few);
    draw_scores(&all);
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        draw_scores(&all);
        for (size_t b = 7; b < B; b++) all.t[b] = (uint32_t)VKT_IGNORE_INDEX;
        run_scores(&few, (vkt_layout)layout, true, 7);
        run_scores(&all, (vkt_layout)layout, false, 0);
        assert_memory_equal(&few.loss, &all.loss, sizeof all.loss);
        assert_memory_equal(few.dz, all.dz, sizeof all.dz);
        for (size_t b = 0; b < 7; b++) all.t[b] = (uint32_t)VKT_IGNORE_INDEX;
        run_scores(&all, (vkt_layout)layout, false, 0);
        assert_true(isnan(all.loss));
        for (size_t i = 0; i < B * K; i++) assert_true(all.dz[i] == 0);
    }
}

/* A label that is neither a class nor the ignored label makes the loss NaN. All gradients stay finite. */
static void a_label_that_is_no_class_shows(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static scores s;
    draw_scores(&s);
    s.t[4] = K;
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        run_scores(&s, (vkt_layout)layout, false, 0);
        assert_true(isnan(s.loss));
        for (size_t i = 0; i < B * K; i++) assert_true(isfinite(s.dz[i]));
    }
}

/* ---- pairs ---- */

typedef vkt_tensor (*pair_fn)(vkt_graph *g, vkt_tensor y, vkt_tensor t);

/* Returns the loss of one pair of numbers. Writes the gradient of y to *slope. */
static float pair(pair_fn fn, float y, float t, float *slope)
{
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    vkt_tensor dy;
    float loss;
    const vkt_tensor in = vkt_input(g, "y", VKT_F32, VKT_ROWS, vkt_shape1(1)), seed = one(g);
    const vkt_tensor target = vkt_input(g, "t", VKT_F32, VKT_ROWS, vkt_shape1(1));
    const vkt_tensor out = fn(g, in, target);
    OK(vkt_gradients(g, &out, &seed, 1, &in, 1, &dy));
    vkt_keep(g, out);
    vkt_keep(g, dy);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, in, &y, sizeof y));
    OK(vkt_program_write(p, target, &t, sizeof t));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, out, &loss, sizeof loss));
    OK(vkt_program_read(p, dy, slope, sizeof *slope));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    return loss;
}

static vkt_tensor l1(vkt_graph *g, vkt_tensor y, vkt_tensor t)
{
    return vkt_l1_loss(g, y, t, VKT_LOSS_SUM);
}

static vkt_tensor smooth_l1(vkt_graph *g, vkt_tensor y, vkt_tensor t)
{
    return vkt_smooth_l1_loss(g, y, t, 0.5f, VKT_LOSS_SUM);
}

static vkt_tensor huber(vkt_graph *g, vkt_tensor y, vkt_tensor t)
{
    return vkt_huber_loss(g, y, t, 0.5f, VKT_LOSS_SUM);
}

static vkt_tensor bce(vkt_graph *g, vkt_tensor y, vkt_tensor t)
{
    return vkt_binary_cross_entropy(g, y, t, VKT_LOSS_SUM);
}

static vkt_tensor logits(vkt_graph *g, vkt_tensor y, vkt_tensor t)
{
    return vkt_binary_cross_entropy_with_logits(g, y, t, NONE, VKT_LOSS_SUM);
}

static vkt_tensor kl(vkt_graph *g, vkt_tensor y, vkt_tensor t)
{
    return vkt_kl_div(g, y, t, false, VKT_LOSS_SUM);
}

static vkt_tensor kl_log(vkt_graph *g, vkt_tensor y, vkt_tensor t)
{
    return vkt_kl_div(g, y, t, true, VKT_LOSS_SUM);
}

static vkt_tensor relative(vkt_graph *g, vkt_tensor y, vkt_tensor t)
{
    return vkt_relative_l2_loss(g, y, t, 0, VKT_LOSS_SUM);
}

/* The expected numbers are those of PyTorch 1.13, with three exceptions. PyTorch's loss of the logit -infinity is NaN.
 * PyTorch's bce refuses a y outside of [0,1]. PyTorch has no loss `relative`. Results must equal the expected numbers,
 * or have a relative error below 3e-7. NaN equals NaN. */
static void special_values_are_pytorchs(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const struct {
        pair_fn fn;
        float y, t, loss, slope;
    } pairs[] = {
        { l1, 2, 2, 0, 0 },
        { l1, 2, 3, 1, -1 },
        { l1, INFINITY, 1, INFINITY, 1 },
        { smooth_l1, 1, 0.5f, 0.25f, 1 },
        { smooth_l1, -1, -1, 0, 0 },
        { smooth_l1, -INFINITY, 0, INFINITY, -1 },
        { huber, 1, 0.5f, 0.125f, 0.5f },
        { huber, 0, 3, 1.375f, -0.5f },
        { bce, 0, 0, 0, 0 },
        { bce, 1, 1, 0, 0 },
        { bce, 0, 1, 100, -1e12f },
        { bce, 1, 0, 100, 1e12f },
        { bce, 1e-30f, 0, 1e-30f, 1e-18f },
        { bce, -0.1f, 1, NAN, NAN },
        { bce, 1.1f, 0, NAN, NAN },
        { logits, 0, 0, 0.69314718f, 0.5f },
        { logits, 200, 0, 200, 1 },
        { logits, 200, 1, 0, 0 },
        { logits, -20, 0, 2.0611536e-9f, 2.0611536e-9f },
        { logits, -200, 1, 200, -1 },
        { logits, -INFINITY, 1, INFINITY, -1 },
        { kl, -3, 0, 0, 0 },
        { kl, -INFINITY, 0, NAN, 0 },
        { kl, -INFINITY, 0.5f, INFINITY, -0.5f },
        { kl, 0, -1, NAN, 1 },
        { kl_log, -1, -200, 0, 0 },
        { kl_log, -1, 0, 1, -1 },
        { relative, 0, 0.5f, 25, -100 },
        { relative, 1, 0.5f, 0.24752475f, 0.99009901f }, /* the gradient treats the divisor y^2 + 0.01 as a constant */
        { relative, -3, -3, 0, 0 },
        { relative, 1, INFINITY, INFINITY, -INFINITY },
        { relative, INFINITY, 1, NAN, NAN },
    };
    for (size_t i = 0; i < VKT_COUNT(pairs); i++) {
        float slope;
        const float loss = pair(pairs[i].fn, pairs[i].y, pairs[i].t, &slope);
        const bool right =
            isnan(pairs[i].loss) ? isnan(loss) != 0 : loss == pairs[i].loss || fabsf(loss / pairs[i].loss - 1) < 3e-7f;
        const bool rises = isnan(pairs[i].slope) ? isnan(slope) != 0
                                                 : slope == pairs[i].slope || fabsf(slope / pairs[i].slope - 1) < 3e-7f;
        if (!right || !rises)
            fail_msg("pair %zu (%g, %g): %.9g and %.9g, want %.9g and %.9g", i, (double)pairs[i].y, (double)pairs[i].t,
                     (double)loss, (double)slope, (double)pairs[i].loss, (double)pairs[i].slope);
    }
}

/* PyTorch's slope of l1 at NaN is 0. Here it is NaN. */
static void nan_stays_nan(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const pair_fn fns[] = { vkt_mse, l1, smooth_l1, huber, bce, logits, kl, kl_log, relative };
    for (size_t i = 0; i < VKT_COUNT(fns); i++) {
        float slope;
        assert_true(isnan(pair(fns[i], NAN, 0.5f, &slope)));
        assert_true(isnan(slope) || fns[i] == kl || fns[i] == kl_log); /* the slopes of these two do not depend on y */
        assert_true(isnan(pair(fns[i], 0.5f, NAN, &slope)) && isnan(slope));
    }
}

/* A program of a graph with gradients, and its store. */
typedef struct trained {
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
} trained;

static trained trained_make(vkt_graph *g)
{
    trained t = { .g = g };
    OK(vkt_graph_status(g));
    OK(vkt_store_create(harness_ctx, g, &t.store));
    OK(vkt_program_create_guarded(harness_ctx, g, t.store, NULL, &t.p));
    return t;
}

static void trained_free(trained *t)
{
    vkt_program_destroy(&t->p);
    vkt_store_destroy(&t->store);
    vkt_graph_destroy(&t->g);
}

/* The loss is the mean of (y - t)^2. t is a parameter, so it needs a gradient. A network in one node gives targets no
 * gradient, so this network must not become one node. */
static void a_target_with_parameters_has_its_gradient(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 6 };
    vkt_graph *g = harness_graph();
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(N, 2));
    const vkt_tensor w = vkt_param(g, "w", vkt_shape2(1, 2)), t = vkt_param(g, "t", vkt_shape2(N, 1));
    OK(vkt_backward(g, vkt_mse(g, vkt_linear(g, x, w, NONE), t)));
    trained run = trained_make(g);
    const float numbers[2 * N] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, weight[2] = { 2, -1 };
    float target[N] = { 1, 0, -1, 4, 2, 8 }, got[N];
    OK(vkt_store_write(run.store, 0, VKT_PART_VALUE, weight));
    OK(vkt_store_write(run.store, 1, VKT_PART_VALUE, target));
    OK(vkt_program_write(run.p, x, numbers, sizeof numbers));
    OK(vkt_program_run(run.p, NULL, NULL));
    OK(vkt_store_read(run.store, 1, VKT_PART_GRADIENT, got));
    for (size_t i = 0; i < N; i++) {
        const float d = 2 * numbers[2 * i] - numbers[2 * i + 1] - target[i];
        assert_true(fabsf(got[i] + 2 * d / N) < 1e-6f);
    }
    trained_free(&run);
}

/* The loss is sum(w s) + kl_div(y, s), where s is w without its gradient, so dw is s. Without vkt_stop_gradient, dw
 * would be 2 w, and kl_div would refuse its target. */
static void a_stopped_gradient_is_left_out(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 6 };
    vkt_graph *g = harness_graph();
    const vkt_tensor w = vkt_param(g, "w", vkt_shape2(2, 3)), s = vkt_stop_gradient(g, w);
    const vkt_tensor y = vkt_input(g, "y", VKT_F32, VKT_ROWS, vkt_shape2(2, 3));
    OK(vkt_backward(g, vkt_add(g, vkt_sum(g, vkt_mul(g, w, s)), vkt_kl_div(g, y, s, false, VKT_LOSS_SUM))));
    trained run = trained_make(g);
    const float numbers[N] = { 1, 0.5f, 3, 4, 0.25f, 6 };
    float got[N];
    OK(vkt_store_write(run.store, 0, VKT_PART_VALUE, numbers));
    OK(vkt_program_run(run.p, NULL, NULL));
    OK(vkt_store_read(run.store, 0, VKT_PART_GRADIENT, got));
    assert_memory_equal(got, numbers, sizeof numbers);
    trained_free(&run);
}

/* A pooling fuses with a relu before it, and with a convolution before that, but not through vkt_stop_gradient. So
 * the weights do not influence the loss. */
static void no_fusion_passes_a_stopped_gradient(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        vkt_graph *g = harness_graph();
        vkt_tensor y = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(4, 1, 6, 6));
        y = vkt_conv2d(g, y, vkt_param(g, "w", vkt_shape4(1, 1, 3, 3)), NONE, NULL);
        if (i == 0) y = vkt_stop_gradient(g, y);
        if (i != 2) y = vkt_relu(g, y);
        if (i != 0) y = vkt_stop_gradient(g, y);
        y = vkt_max_pool2d(g, y, &(vkt_pool2d_params){ .kernel = { 2, 2 } });
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_backward(g, vkt_sum(g, y)), VKT_E_ARG);
        vkt_test_error_contains("'w' does not influence the loss");
        vkt_test_expect_errors(false);
        vkt_graph_destroy(&g);
    }
    /* The ops on sequences add reshapes, which a fusion does pass. */
    vkt_graph *g = harness_graph();
    vkt_tensor y = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape3(4, 1, 12));
    y = vkt_stop_gradient(g, vkt_conv1d(g, y, vkt_param(g, "w", vkt_shape3(1, 1, 3)), NONE, NULL));
    y = vkt_max_pool1d(g, vkt_relu(g, y), &(vkt_pool1d_params){ .kernel = 2 });
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_backward(g, vkt_sum(g, y)), VKT_E_ARG);
    vkt_test_error_contains("'w' does not influence the loss");
    vkt_test_expect_errors(false);
    vkt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_option_changes_no_bit),
        cmocka_unit_test(labels_of_minus_100_do_not_count),
        cmocka_unit_test(a_label_that_is_no_class_shows),
        cmocka_unit_test(special_values_are_pytorchs),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(a_target_with_parameters_has_its_gradient),
        cmocka_unit_test(a_stopped_gradient_is_left_out),
        cmocka_unit_test(no_fusion_passes_a_stopped_gradient),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
