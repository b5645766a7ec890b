/* Tests the references themselves: their gradients are compared with central differences, and their results with
 * numbers that were computed by hand. (test_training_goldens.c and test_op_goldens.c compare the references with
 * PyTorch's numbers.) No device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "check/differences.h"
#include "ops/ops.h"
#include "ops/subject.h"
#include "support/host.h"

/* ---- gradients ---- */

static void gradients_are_difference_quotients(void **state)
{
    enum { SEEDS = 12, ELEMENTS = 8 };
    const vkt_op *op = *state;
    uint32_t tried = 0, kinks = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        subject s;
        vkt_differences d = { .tried = 0 };
        subject_make(&s, op, seed);
        assert_int_equal(vkt_subject_differences(&s, ELEMENTS, &d), VKT_OK);
        if (!(d.excess <= 1))
            fail_msg("%s seed %llu (%s): gradient of input %u at %zu is %.12g, the difference quotient %.12g", op->name,
                     (unsigned long long)seed, s.c.text, d.input, d.at, d.got, d.quotient);
        tried += d.tried;
        kinks += d.kinks;
        subject_free(&s);
    }
    assert_true(tried > 0 && kinks * 10 <= tried); /* few elements are left out because of a kink */
}

/* ---- numbers by hand ---- */

static void find(const char *name, const vkt_ref_op **op)
{
    *op = vkt_ref_find(name);
    assert_non_null(*op);
}

static void the_first_maximum_wins_and_nan_wins_all(void **state)
{
    (void)state;
    const vkt_ref_op *argmax, *pool;
    find("argmax", &argmax);
    find("pool2d", &pool);
    double z[] = { 1, 3, 3, 2, /**/ 5, 5, 5, 5, /**/ -2, -3, -1, -1 };
    uint32_t index[3];
    vkt_ref_tensor in = { .shape = vkt_shape2(3, 4), .f = z };
    vkt_ref_tensor out = { .shape = vkt_shape1(3), .dtype = VKT_U32, .u = index };
    double max, dy = 2, dx[12] = { 0 };
    const double *const dout = &dy;
    double *const din = dx;
    vkt_ref_call c = { .n_in = 1, .n_out = 1, .in = &in, .out = &out, .dout = &dout, .din = &din, .rows = 3 };
    argmax->forward(&c);
    assert_int_equal(index[0], 1);
    assert_int_equal(index[1], 0);
    assert_int_equal(index[2], 2);

    const vkt_pool2d_attr whole = { .kernel = { 3, 4 }, .stride = { 3, 4 }, .out = { 1, 1 } };
    in.shape = vkt_shape4(1, 1, 3, 4);
    out = (vkt_ref_tensor){ .shape = vkt_shape4(1, 1, 1, 1), .f = &max };
    c.attr = &whole;
    pool->forward(&c);
    pool->backward(&c);
    assert_true(max == 5 && dx[4] == 2 && dx[5] == 0);
    z[9] = NAN;
    pool->forward(&c);
    pool->backward(&c);
    assert_true(isnan(max) && dx[4] == 2 && dx[9] == 2);
}

static void losses_are_those_of_the_textbook(void **state)
{
    (void)state;
    const vkt_ref_op *xent, *mse;
    find("softmax_xent", &xent);
    find("mse", &mse);
    double z[] = { 0, 0, /**/ 1000, 1000, /**/ 7, 9 }, y[] = { 1, 2, /**/ 3, 4, /**/ 5, 6 }, loss;
    uint32_t t[] = { 0, 1, 0 };
    const vkt_ref_tensor in[] = { { .shape = vkt_shape2(3, 2), .f = z },
                                  { .shape = vkt_shape1(3), .dtype = VKT_U32, .u = t } };
    vkt_ref_tensor out = { .f = &loss };
    vkt_ref_call c = { .n_in = 2, .n_out = 1, .in = in, .out = &out, .rows = 2 };
    xent->forward(&c);
    assert_true(fabs(loss - log(2)) < 1e-15); /* c.rows is 2, so the third row does not count */
    c.rows = 3;
    xent->forward(&c);
    assert_true(fabs(loss - (2 * log(2) + 2 + log1p(exp(-2))) / 3) < 1e-15);

    const vkt_ref_tensor pair[] = { { .shape = vkt_shape2(3, 2), .f = y }, { .shape = vkt_shape2(3, 2), .f = z } };
    z[2] = z[3] = 3;
    const vkt_pair_loss_attr mean = { .beta = 1 };
    c.attr = &mean;
    c.in = pair;
    c.rows = 2;
    mse->forward(&c);
    assert_true(fabs(loss - (1 + 4 + 0 + 1) / 4.0) < 1e-15);
}

/* With a negligible eps, Adam moves a parameter by lr in every step if the gradient is constant and not 0. The
 * magnitude of the gradient does not matter (Kingma & Ba, section 2.1). */
static void a_constant_gradient_moves_adam_by_lr(void **state)
{
    (void)state;
    const vkt_optimizer o = { .kind = VKT_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-20f };
    const double g[] = { 1e-3, -250 };
    double p[] = { 1, 2 }, m[2] = { 0 }, v[2] = { 0 }, *const moments[3] = { m, v, NULL };
    for (uint64_t t = 1; t <= 100; t++) vkt_ref_update(&o, 0.01, t, 2, p, g, moments, NULL);
    assert_true(fabs(p[0] - 0) < 1e-12 && fabs(p[1] - 3) < 1e-12);
}

/* Step n subtracts lr * (1 + b + .. + b^(n-1)) * g from p, where b is the momentum. Nesterov's form has one more
 * term. */
static void momentum_is_a_geometric_series(void **state)
{
    (void)state;
    const double g[] = { 1 };
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        const vkt_optimizer o = { .momentum = 0.5f, .nesterov = nesterov };
        double p[] = { 0 }, buf[] = { 99 }, want = 0, speed = 0;
        for (uint64_t t = 1; t <= 20; t++) {
            vkt_ref_update(&o, 0.125, t, 1, p, g, (double *const[3]){ buf, NULL, NULL }, NULL);
            speed = 0.5 * speed + 1;
            want -= 0.125 * (nesterov ? 1 + 0.5 * speed : speed);
        }
        assert_true(fabs(p[0] - want) < 1e-15);
    }
}

int main(void)
{
    static const struct CMUnitTest by_hand[] = {
        cmocka_unit_test(the_first_maximum_wins_and_nan_wins_all),
        cmocka_unit_test(losses_are_those_of_the_textbook),
        cmocka_unit_test(a_constant_gradient_moves_adam_by_lr),
        cmocka_unit_test(momentum_is_a_geometric_series),
    };
    static struct CMUnitTest tests[128];
    size_t n = 0;
    for (size_t i = 0; i < VKT_COUNT(by_hand); i++) tests[n++] = by_hand[i];
    for (size_t i = 0; vkt_ops[i] && n < VKT_COUNT(tests); i++)
        if (vkt_ops[i]->sample && vkt_ops[i]->diff)
            tests[n++] = (struct CMUnitTest){ .name = vkt_ops[i]->name,
                                              .test_func = gradients_are_difference_quotients,
                                              .initial_state = (void *)(uintptr_t)vkt_ops[i] };
    for (size_t i = 0; i < n; i++) {
        tests[i].setup_func = vkt_test_setup;
        tests[i].teardown_func = vkt_test_teardown;
    }
    return _cmocka_run_group_tests("references", tests, n, NULL, NULL);
}
