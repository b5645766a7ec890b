/* Checks the clock and the step state bit for bit, and the metrics of each run. The device updates all three in many
 * runs of the same recorded command buffers. Also checks which samples each run gathers, and that an optimizer that
 * does not fit is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "abi/step.abi.h"
#include "base/fixed.h"
#include "ops/harness.h"
#include "support/host.h"

/* loss = sum(p x), where p is a parameter of 8 numbers. The graph updates p by Adam or NAdam. */
typedef struct trainer {
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    vkt_tensor x;
} trainer;

static trainer trainer_make(vkt_optimizer_kind kind, double beta1, double beta2)
{
    const vkt_host h = vkt_test_host();
    trainer t;
    assert_int_equal(vkt_graph_create(&h, &t.g), VKT_OK);
    t.x = vkt_input(t.g, "x", VKT_F32, VKT_ROWS, vkt_shape1(8));
    const vkt_tensor loss = vkt_sum(t.g, vkt_mul(t.g, vkt_param(t.g, "p", vkt_shape1(8)), t.x));
    assert_int_equal(vkt_backward(t.g, loss), VKT_OK);
    const vkt_optimizer adam = { .kind = kind, .beta1 = beta1, .beta2 = beta2 };
    assert_int_equal(vkt_update(t.g, &adam), VKT_OK);
    vkt_report(t.g, loss, (vkt_tensor){ 0 });
    assert_int_equal(vkt_store_create(harness_ctx, t.g, &t.store), VKT_OK);
    assert_int_equal(vkt_program_create(harness_ctx, t.g, t.store, NULL, &t.p), VKT_OK);
    const float ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    assert_int_equal(vkt_program_write(t.p, t.x, ones, sizeof ones), VKT_OK);
    return t;
}

static void trainer_free(trainer *t)
{
    vkt_program_destroy(&t->p);
    vkt_store_destroy(&t->store);
    vkt_graph_destroy(&t->g);
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* Checks clock and step state after run number `run`, in which the optimizer made step t. */
static void check_state(const trainer *tr, const double beta[2], uint32_t run, uint32_t t, uint64_t seed, float lr)
{
    uint32_t clock[CLOCK_WORDS], step[STEP_WORDS];
    assert_int_equal(vkt_readback(harness_ctx, tr->store->clock, 0, clock, sizeof clock), VKT_OK);
    assert_int_equal(vkt_readback(harness_ctx, tr->p->step, 0, step, sizeof step), VKT_OK);
    assert_int_equal(clock[CLOCK_T], t);
    for (int i = 0; i < 2; i++) {
        const uint64_t q = vkt_fixed_pow(vkt_fixed_from_double(beta[i]), t);
        assert_int_equal(clock[(i ? CLOCK_Q2 : CLOCK_Q1)], (uint32_t)q);
        assert_int_equal(clock[(i ? CLOCK_Q2 : CLOCK_Q1) + 1], (uint32_t)(q >> 32));
        assert_int_equal(step[i ? STEP_C2 : STEP_C1], bits_of(vkt_fixed_complement_f32(q)));
    }
    assert_int_equal(step[STEP_SLOT], run % RING_SLOTS);
    assert_int_equal(step[STEP_NEXT], run + 1);
    assert_int_equal(step[STEP_T], t);
    assert_int_equal(step[STEP_ROWS], 1 + run % 3);
    assert_int_equal(step[STEP_FIRST], 7 * run);
    assert_int_equal(step[STEP_LR], bits_of(lr));
    assert_int_equal(step[STEP_KEY0], (uint32_t)seed);
    assert_int_equal(step[STEP_KEY1], (uint32_t)(seed >> 32));
}

static void the_device_keeps_the_hosts_clock_to_the_bit(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const double betas[][2] = { { 0.9, 0.999 }, { 0.5, 0.9999 }, { 0.99999, 0.25 } };
    static const uint64_t starts[] = { 0, 5, 1000, 123456 };
    for (size_t b = 0; b < VKT_COUNT(betas); b++) {
        trainer tr = trainer_make(VKT_ADAM, betas[b][0], betas[b][1]);
        uint32_t run = 0;
        for (size_t s = 0; s < VKT_COUNT(starts); s++) {
            const uint64_t seed = 0x9e3779b97f4a7c15u * (s + 1);
            assert_int_equal(vkt_store_set_clock(tr.store, starts[s], seed), VKT_OK);
            for (uint32_t i = 1; i <= 40; i++, run++) {
                const float lr = 0.5f / (float)(run + 1);
                const vkt_run r = { .lr = lr, .rows = 1 + run % 3, .first = 7 * run };
                assert_int_equal(vkt_program_run(tr.p, &r, NULL), VKT_OK);
                if (i < 4 || i % 12 == 0) check_state(&tr, betas[b], run, (uint32_t)starts[s] + i, seed, lr);
            }
        }
        trainer_free(&tr);
    }
}

/* The test sets the clock and runs 12 steps. After these steps, NAdam's coefficients on the device have the bits that
 * base/fixed.h computes on the host. */
static void expect_nadams_product(double beta1)
{
    static const uint64_t starts[] = { 0, 7, 150, 100000 };
    trainer tr = trainer_make(VKT_NADAM, beta1, 0.999);
    const vkt_clock_rates by = tr.store->rates;
    for (size_t s = 0; s < VKT_COUNT(starts); s++) {
        uint32_t clock[CLOCK_WORDS], step[STEP_WORDS];
        assert_int_equal(vkt_store_set_clock(tr.store, starts[s], 1), VKT_OK);
        for (int i = 0; i < 12; i++) assert_int_equal(vkt_program_run(tr.p, &(vkt_run){ .lr = 0.1f }, NULL), VKT_OK);
        assert_int_equal(vkt_readback(harness_ctx, tr.store->clock, 0, clock, sizeof clock), VKT_OK);
        assert_int_equal(vkt_readback(harness_ctx, tr.p->step, 0, step, sizeof step), VKT_OK);
        const uint64_t t = starts[s] + 12, product = vkt_fixed_momentum_product(by.beta1, by.decay, t);
        const uint64_t power = vkt_fixed_pow(by.decay, t), u = vkt_fixed_momentum(by.beta1, power);
        const uint64_t next = vkt_fixed_momentum(by.beta1, vkt_fixed_mul(power, by.decay));
        assert_true((clock[CLOCK_Q1] | (uint64_t)clock[CLOCK_Q1 + 1] << 32) == product);
        assert_true((clock[CLOCK_Q3] | (uint64_t)clock[CLOCK_Q3 + 1] << 32) == power);
        assert_int_equal(step[STEP_C1], bits_of(vkt_fixed_complement_f32(product)));
        assert_int_equal(step[STEP_U_REST], bits_of(vkt_fixed_complement_f32(u)));
        assert_int_equal(step[STEP_U_NEXT], bits_of(next ? vkt_fixed_complement_f32(0 - next) : 0));
        assert_int_equal(step[STEP_C_NEXT], bits_of(vkt_fixed_complement_f32(vkt_fixed_mul(product, next))));
    }
    trainer_free(&tr);
}

static void the_device_keeps_nadams_product_to_the_bit(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    expect_nadams_product(0.9);
    expect_nadams_product((double)VKT_ZERO); /* u_(t+1) is 0 */
}

/* With beta1 0, NAdam's d is g. The gradient is 1 in each step, so v / (1 - b2^t) is 1, and each step subtracts lr. */
static void nadam_without_momentum_divides_the_gradient(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    trainer tr = trainer_make(VKT_NADAM, (double)VKT_ZERO, 0.999);
    float p[8];
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(vkt_program_run(tr.p, &(vkt_run){ .lr = 0.25f }, NULL), VKT_OK);
        assert_int_equal(vkt_store_read(tr.store, 0, VKT_PART_VALUE, p), VKT_OK);
        for (int k = 0; k < 8; k++) assert_float_equal(p[k], -0.25f * (float)i, 1e-4f);
    }
    trainer_free(&tr);
}

static void metrics_are_those_of_their_run(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    trainer tr = trainer_make(VKT_ADAM, 0.9, 0.999);
    float p[8] = { 0 }, first = 0;
    for (uint32_t run = 0; run < 3 * RING_SLOTS; run++) {
        /* All 8 numbers of the gradient are 1, so each step of Adam subtracts lr from each number of p. The loss falls
         * by 8 * lr. */
        const vkt_run r = { .lr = 0.25f, .rows = 1 + run % 3, .first = 0 };
        uint64_t index;
        assert_int_equal(vkt_program_run(tr.p, &r, &index), VKT_OK);
        assert_int_equal(index, run);
        if (run % 5) continue; /* only after each fifth run, the loop below reads the metrics of the last runs */
        for (uint32_t back = 0; back <= run && back < RING_SLOTS; back++) {
            vkt_metrics m;
            assert_int_equal(vkt_program_metrics(tr.p, run - back, &m), VKT_OK);
            assert_int_equal(m.rows, 1 + (run - back) % 3);
            assert_int_equal(m.t, run - back + 1);
            assert_true(m.correct == 0);
            assert_float_equal(m.loss, first - 8 * 0.25f * (float)(run - back), 1e-3f);
        }
    }
    assert_int_equal(vkt_store_read(tr.store, 0, VKT_PART_VALUE, p), VKT_OK);
    assert_float_equal(p[7], -0.25f * 3 * RING_SLOTS, 1e-4f);
    trainer_free(&tr);
}

/* Row i of the table has one element, whose value is i. Each run gathers other rows, and its loss is the sum of these
 * rows. Up to RING_SLOTS runs are pending. Without the trait early_batch, the kernels that gather read from the step
 * state which rows to gather. With early_batch, they read this from the words that the host writes for each run. Then
 * they may run at the same time as step_advance, which computes the step state. */
static void each_run_gathers_its_own_rows(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 100, B = 8, RUNS = 3 * RING_SLOTS };
    float values[N];
    uint32_t order[N];
    for (uint32_t i = 0; i < N; i++) values[order[i] = i] = (float)i;
    for (uint32_t early = 0; early < 2; early++) {
        const vkt_limits real = harness_ctx->limits;
        vkt_traits traits = *real.traits;
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor table = vkt_input(g, "table", VKT_F32, VKT_ROWS, vkt_shape2(N, 1));
        const vkt_tensor in = vkt_input(g, "order", VKT_U32, VKT_ROWS, vkt_shape1(N));
        vkt_report(g, vkt_sum(g, vkt_gather_rows(g, table, in, B, vkt_shape1(1), NULL, NULL)), (vkt_tensor){ 0 });
        traits.early_batch = early;
        harness_ctx->limits.traits = &traits;
        const vkt_result made = vkt_program_create(harness_ctx, g, NULL, NULL, &p);
        harness_ctx->limits = real;
        assert_int_equal(made, VKT_OK);
        assert_int_equal(p->lowered.list[1].spec[BATCH_SPEC_EARLY], early);
        assert_int_equal(vkt_program_write(p, table, values, sizeof values), VKT_OK);
        assert_int_equal(vkt_program_write(p, in, order, sizeof order), VKT_OK);
        for (uint32_t run = 0; run < RUNS; run++) {
            const vkt_run r = { .rows = 1 + run % B, .first = 3 * run };
            assert_int_equal(vkt_program_run(p, &r, NULL), VKT_OK);
            for (uint32_t k = run + 1 - RING_SLOTS; run % RING_SLOTS == RING_SLOTS - 1 && k <= run; k++) {
                const uint32_t rows = 1 + k % B, first = 3 * k;
                vkt_metrics m;
                assert_int_equal(vkt_program_metrics(p, k, &m), VKT_OK);
                assert_int_equal(m.rows, rows);
                assert_true(m.loss == (float)(rows * first + rows * (rows - 1) / 2));
            }
        }
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

static void an_optimizer_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const struct {
        vkt_optimizer o;
        const char *says;
    } cases[] = {
        { { .kind = VKT_OPTIMIZER_KIND_COUNT }, "unknown kind" },
        { { .kind = VKT_SGD, .weight_decay = -1 }, "weight_decay" },
        { { .kind = VKT_SGD, .momentum = -1 }, "momentum >= 0" },
        { { .kind = VKT_SGD, .nesterov = true }, "nesterov" },
        { { .kind = VKT_SGD, .nesterov = true, .momentum = 0.9f, .dampening = 0.1f }, "nesterov" },
        { { .kind = VKT_ADAM, .beta1 = 1 }, "betas in [0,1)" },
        { { .kind = VKT_ADAM, .beta2 = -0.1 }, "betas in [0,1)" },
        { { .kind = VKT_ADAM, .eps = -1 }, "eps > 0" },
    };
    const vkt_host h = vkt_test_host();
    vkt_test_expect_errors(true);
    for (size_t i = 0; i <= VKT_COUNT(cases); i++) {
        vkt_graph *g;
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
        const vkt_tensor loss = vkt_sum(g, vkt_param(g, "p", vkt_shape1(8)));
        if (i < VKT_COUNT(cases)) {
            assert_int_equal(vkt_backward(g, loss), VKT_OK);
            assert_int_equal(vkt_update(g, &cases[i].o), VKT_E_ARG);
            vkt_test_error_contains(cases[i].says);
            assert_int_equal(vkt_graph_status(g), VKT_E_ARG);
        } else {
            assert_int_equal(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }), VKT_E_STATE);
            vkt_test_error_contains("vkt_backward first");
        }
        vkt_graph_destroy(&g);
    }
    vkt_test_expect_errors(false);
}

/* The report sets the run number on the device to the number of the next run. With this number, a gather behind the
 * report would find the words of the next run. So such a gather reads the step state, even with early_batch. */
static void a_gather_behind_the_report_loads_its_own_batch(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { SAMPLES = 64, BATCH = 4, MORE = RING_SLOTS + 4 };
    const vkt_limits real = harness_ctx->limits;
    vkt_traits traits = *real.traits;
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    uint32_t labels[SAMPLES], got[BATCH];
    const float loss = 1;
    const vkt_tensor table = vkt_input(g, "table", VKT_U32, VKT_ROWS, vkt_shape1(SAMPLES));
    const vkt_tensor order = vkt_input(g, "order", VKT_U32, VKT_ROWS, vkt_shape1(SAMPLES));
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape0());
    vkt_report(g, x, (vkt_tensor){ 0 });
    const vkt_tensor batch = vkt_gather_labels(g, table, order, BATCH);
    vkt_keep(g, batch);
    traits.early_batch = 1;
    harness_ctx->limits.traits = &traits;
    const vkt_result made = vkt_program_create(harness_ctx, g, NULL, NULL, &p);
    harness_ctx->limits = real;
    assert_int_equal(made, VKT_OK);
    for (uint32_t i = 0; i < SAMPLES; i++) labels[i] = i;
    assert_int_equal(vkt_program_write(p, table, labels, sizeof labels), VKT_OK);
    assert_int_equal(vkt_program_write(p, order, labels, sizeof labels), VKT_OK);
    assert_int_equal(vkt_program_write(p, x, &loss, sizeof loss), VKT_OK);
    for (uint32_t run = 0; run < MORE; run++) {
        assert_int_equal(vkt_program_run(p, &(vkt_run){ .rows = BATCH, .first = BATCH * run }, NULL), VKT_OK);
        assert_int_equal(vkt_program_read(p, batch, got, sizeof got), VKT_OK);
        for (uint32_t i = 0; i < BATCH; i++) assert_int_equal(got[i], BATCH * run + i);
    }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* An infinite element stays infinite, also with a scale that f32 cannot represent exactly. */
static void infinite_elements_are_gathered(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { ROWS = 4, F = 2 };
    static const double scales[2][1] = { { 0.1 }, { -1.0 / 3 } }, shift[] = { 0.7 };
    const float table[ROWS * F] = { INFINITY, 1, -INFINITY, 2, 3, INFINITY, 4, -INFINITY };
    const uint32_t order[ROWS] = { 2, 0, 3, 1 };
    for (int i = 0; i < 3; i++) {
        const double scale = i < 2 ? scales[i][0] : 1;
        float got[ROWS * F];
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor rows = vkt_input(g, "rows", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, F));
        const vkt_tensor indices = vkt_input(g, "order", VKT_U32, VKT_ROWS, vkt_shape1(ROWS));
        const vkt_tensor x = vkt_gather_rows(g, rows, indices, ROWS, vkt_shape3(1, 1, F), i < 2 ? scales[i] : NULL,
                                             i < 2 ? shift : NULL);
        vkt_keep(g, x);
        assert_int_equal(vkt_program_create(harness_ctx, g, NULL, NULL, &p), VKT_OK);
        assert_int_equal(vkt_program_write(p, rows, table, sizeof table), VKT_OK);
        assert_int_equal(vkt_program_write(p, indices, order, sizeof order), VKT_OK);
        assert_int_equal(vkt_program_run(p, NULL, NULL), VKT_OK);
        harness_read_f32(p, g, x, got);
        for (uint32_t k = 0; k < ROWS * F; k++)
            assert_true(got[k] == (float)(scale * (double)table[order[k / F] * F + k % F] + (i < 2 ? shift[0] : 0)));
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_keeps_the_hosts_clock_to_the_bit),
        cmocka_unit_test(the_device_keeps_nadams_product_to_the_bit),
        cmocka_unit_test(nadam_without_momentum_divides_the_gradient),
        cmocka_unit_test(metrics_are_those_of_their_run),
        cmocka_unit_test(each_run_gathers_its_own_rows),
        cmocka_unit_test(a_gather_behind_the_report_loads_its_own_batch),
        cmocka_unit_test(infinite_elements_are_gathered),
        cmocka_unit_test(an_optimizer_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("step", tests, harness_setup, harness_teardown);
}
