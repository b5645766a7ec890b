/* Tests 16-bit storage: conversions of every bit pattern, which values are stored in 16 bits, and the scaling of the
 * loss. (test_ops.c tests the ops that support values of 16 bits.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
enum { PATTERNS = 65536 };

static float widened(vkt_precision p, uint16_t h)
{
    return p == VKT_PRECISION_F16 ? vkt_f32_from_half(h) : vkt_f32_from_bf16(h);
}

static uint16_t narrowed(vkt_precision p, float f)
{
    return p == VKT_PRECISION_F16 ? vkt_half_from_f32(f) : vkt_bf16_from_f32(f);
}

/* ---- conversions ---- */

/* A program that copies x to y: y = vkt_where(any, x, x). One of the two values is stored as f32, and the other in 16
 * bits, so the copy converts n numbers. With the batch last, a sum supports only f32, so a value that a sum reads is
 * stored as f32. If `narrow` is true, a sum reads x, so the copy converts from f32 to 16 bits. If `narrow` is false, a
 * sum reads y, so the copy converts from 16 bits to f32. */
typedef struct copier {
    vkt_graph *g;
    vkt_program *p;
    vkt_tensor x, y;
} copier;

static copier copier_make(vkt_precision precision, uint32_t n, bool narrow)
{
    copier c = { .g = harness_graph() };
    c.x = vkt_input(c.g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(n, 1));
    c.y = vkt_where(c.g, vkt_input(c.g, "any", VKT_U32, VKT_BATCH_LAST, vkt_shape2(n, 1)), c.x, c.x);
    vkt_keep(c.g, c.y);
    vkt_keep(c.g, vkt_sum(c.g, narrow ? c.x : c.y));
    OK(vkt_program_create(harness_ctx, c.g, NULL, &(vkt_program_params){ .precision = precision }, &c.p));
    assert_int_equal(c.p->lowered.values[c.x.id].storage, narrow ? VKT_PRECISION_F32 : precision);
    assert_int_equal(c.p->lowered.values[c.y.id].storage, narrow ? precision : VKT_PRECISION_F32);
    return c;
}

static void copier_run(copier *c, const void *x, uint64_t x_bytes, void *y, uint64_t y_bytes)
{
    OK(vkt_upload(harness_ctx, c->p->inputs[c->x.id], 0, x, x_bytes));
    OK(vkt_program_run(c->p, NULL, NULL));
    OK(vkt_program_read_raw(c->p, c->y, y, y_bytes));
    vkt_program_destroy(&c->p);
    vkt_graph_destroy(&c->g);
}

static void check_widening(vkt_precision precision)
{
    static uint16_t h[PATTERNS];
    static float f[PATTERNS];
    for (uint32_t i = 0; i < PATTERNS; i++) h[i] = (uint16_t)i;
    copier c = copier_make(precision, PATTERNS, false);
    copier_run(&c, h, sizeof h, f, sizeof f);
    for (uint32_t i = 0; i < PATTERNS; i++) {
        const float want = widened(precision, h[i]);
        if (isnan(want) ? !isnan(f[i]) : memcmp(&want, &f[i], sizeof want) != 0)
            fail_msg("pattern %04x became %a, not %a", i, (double)f[i], (double)want);
    }
}

/* Checks the rounding of four floats for each 16-bit number: the number itself, the middle between the number and its
 * neighbour of larger magnitude, and the two floats next to this middle. If the number or the neighbour is not finite,
 * the number itself replaces the middle. */
static void check_narrowing(vkt_precision precision)
{
    static float f[4 * PATTERNS];
    static uint16_t h[4 * PATTERNS];
    for (uint32_t i = 0; i < PATTERNS; i++) {
        const float here = widened(precision, (uint16_t)i), next = widened(precision, (uint16_t)(i + 1));
        const float middle = isfinite(here) && isfinite(next) ? here + (next - here) / 2 : here;
        const float some[] = { here, middle, nextafterf(middle, 0), nextafterf(middle, copysignf(INFINITY, here)) };
        memcpy(&f[4 * i], some, sizeof some);
    }
    copier c = copier_make(precision, 4 * PATTERNS, true);
    copier_run(&c, f, sizeof f, h, sizeof h);
    for (uint32_t i = 0; i < 4 * PATTERNS; i++) {
        const uint16_t want = narrowed(precision, f[i]);
        if (isnan(f[i]) ? !isnan(widened(precision, h[i])) : h[i] != want)
            fail_msg("%a became %04x, not %04x", (double)f[i], h[i], want);
    }
}

static void every_pattern_is_converted_to_the_bit(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_limits real = harness_ctx->limits;
    for (int texels = 0; texels < 2; texels++) {
        if (!texels) harness_ctx->limits.max_texel_elements = 0;
        for (int p = VKT_PRECISION_F16; p <= VKT_PRECISION_BF16; p++) {
            check_widening((vkt_precision)p);
            check_narrowing((vkt_precision)p);
        }
        harness_ctx->limits = real;
    }
}

/* ---- what is stored in 16 bits ---- */

static void values_are_halved_where_all_agree_and_hosts_see_floats(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { B = 6, I = 5, O = 3 };
    float x[B * I], w[O * I], y[B * O], a[B * O], rounded[B * I];
    for (int i = 0; i < B * I; i++) x[i] = 1 + (float)i * 0x1p-13f;
    for (int i = 0; i < O * I; i++) w[i] = (float)(i % 3) - 1;
    vkt_graph *g = harness_graph();
    const vkt_tensor tx = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(B, I));
    const vkt_tensor tw = vkt_input(g, "w", VKT_F32, VKT_ROWS, vkt_shape2(O, I));
    const vkt_tensor lin = vkt_linear(g, tx, tw, (vkt_tensor){ 0 }),
                     act = vkt_relu(g, vkt_reshape(g, lin, vkt_shape3(B, O, 1)));
    vkt_keep(g, act);
    vkt_keep(g, vkt_argmax(g, lin)); /* argmax reads f32 */
    vkt_program *full = NULL, *p = NULL;
    vkt_plan_info plan[2];
    OK(vkt_program_create(harness_ctx, g, NULL, NULL, &full));
    OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .precision = VKT_PRECISION_F16 }, &p));
    assert_int_equal(p->lowered.values[tx.id].storage, VKT_PRECISION_F16);
    assert_int_equal(p->lowered.values[tw.id].storage, VKT_PRECISION_F32); /* linear reads weights as f32 */
    assert_int_equal(p->lowered.values[lin.id].storage, VKT_PRECISION_F32);
    assert_int_equal(p->lowered.values[act.id].storage, VKT_PRECISION_F16);
    assert_int_equal(2 * p->lowered.values[tx.id].bytes, full->lowered.values[tx.id].bytes);
    vkt_program_plan(full, &plan[0]);
    vkt_program_plan(p, &plan[1]);
    assert_true(plan[1].lower_bound_bytes <= plan[0].lower_bound_bytes);
    char *text = NULL;
    OK(vkt_program_print(p, &text));
    assert_non_null(strstr(text, "f16 (6,3,1) batch-last"));
    assert_non_null(strstr(text, "f32 (6,3) batch-last"));
    vkt_text_release(&text);

    OK(vkt_program_write(p, tx, x, sizeof x));
    OK(vkt_program_write(p, tw, w, sizeof w));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, tx, rounded, sizeof rounded));
    for (int i = 0; i < B * I; i++) assert_true(rounded[i] == widened(VKT_PRECISION_F16, vkt_half_from_f32(x[i])));
    OK(vkt_program_read(p, act, a, sizeof a));
    for (int b = 0; b < B; b++)
        for (int o = 0; o < O; o++) {
            y[b * O + o] = 0;
            /* This sum is exact, because the numbers have few bits. */
            for (int i = 0; i < I; i++) y[b * O + o] += rounded[b * I + i] * w[o * I + i];
            assert_true(a[b * O + o] == widened(VKT_PRECISION_F16, vkt_half_from_f32(fmaxf(y[b * O + o], 0))));
        }
    vkt_program_destroy(&p);
    vkt_program_destroy(&full);

    vkt_test_expect_errors(true);
    const vkt_program_params unknown = { .precision = (vkt_precision)(VKT_PRECISION_F32_SPLIT + 1) };
    assert_int_equal(vkt_program_create(harness_ctx, g, NULL, &unknown, &p), VKT_E_ARG);
    vkt_test_error_contains("vkt_precision");
    vkt_test_expect_errors(false);
    vkt_graph_destroy(&g);
}

/* In programs with gradients of max_to and min_to, x is f32. test_ops.c always computes gradients, so only this test
 * has x in 16 bits. */
static void the_largest_and_the_least_are_found_in_rows_in_16_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { A = 7, B = 5, D = 12 };
    float x[A * B * D], most[A * D], least[A * B];
    for (int i = 0; i < A * B * D; i++) x[i] = (float)(i * 37 % 211 - 105); /* exact in 16 bits */
    for (int i = 0; i < A * D; i++) most[i] = -1000;
    for (int i = 0; i < A * B; i++) least[i] = 1000;
    for (int i = 0; i < A * B * D; i++) {
        float *m = &most[i / (B * D) * D + i % D], *l = &least[i / D];
        *m = fmaxf(*m, x[i]);
        *l = fminf(*l, x[i]);
    }
    for (int p = VKT_PRECISION_F16; p <= VKT_PRECISION_BF16; p++) {
        vkt_graph *g = harness_graph();
        vkt_program *program = NULL;
        float got[A * D];
        const vkt_tensor tx = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape3(A, B, D));
        const vkt_tensor tm = vkt_max_to(g, tx, vkt_shape3(A, 1, D)), tl = vkt_min_to(g, tx, vkt_shape3(A, B, 1));
        vkt_keep(g, tm);
        vkt_keep(g, tl);
        OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .precision = (vkt_precision)p }, &program));
        assert_int_equal(program->lowered.values[tx.id].storage, p);
        OK(vkt_program_write(program, tx, x, sizeof x));
        OK(vkt_program_run(program, NULL, NULL));
        OK(vkt_program_read(program, tm, got, sizeof most));
        assert_memory_equal(got, most, sizeof most);
        OK(vkt_program_read(program, tl, got, sizeof least));
        assert_memory_equal(got, least, sizeof least);
        vkt_program_destroy(&program);
        vkt_graph_destroy(&g);
    }
}

/* If a value by rows is broadcast to a tensor with the batch last, the kernel reads single elements of this value. So
 * the value stays f32. */
static void rows_repeated_with_the_batch_last_stay_f32(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 3, C = 5, H = 2, W = 4 };
    float x[N * W], got[N * C * H * W];
    for (int i = 0; i < N * W; i++) x[i] = (float)(i + 1) + 0x1p-18f; /* f16 would lose the last digits */
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor tx = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape4(N, 1, 1, W));
    const vkt_tensor y = vkt_expand(g, tx, vkt_shape4(N, C, H, W), VKT_BATCH_LAST);
    vkt_keep(g, y);
    OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .precision = VKT_PRECISION_F16 }, &p));
    OK(vkt_program_write(p, tx, x, sizeof x));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, y, got, sizeof got));
    for (int i = 0; i < N * C * H * W; i++) assert_true(got[i] == x[i / (C * H * W) * W + i % W]);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* ---- scaling of the loss ---- */

enum { N = 7 }; /* not a multiple of 4, so values are f32 in every precision */

/* A training with one parameter p of N numbers. The loss is sum(p x), so the gradient of p is x times the scale of the
 * loss. */
typedef struct trainer {
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    vkt_tensor x;
    vkt_metrics m; /* of the last step */
} trainer;

static trainer trainer_make(vkt_optimizer o, vkt_precision precision)
{
    trainer t = { .g = harness_graph() };
    t.x = vkt_input(t.g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N));
    const vkt_tensor loss = vkt_sum(t.g, vkt_mul(t.g, vkt_param(t.g, "p", vkt_shape1(N)), t.x));
    OK(vkt_backward(t.g, loss));
    OK(vkt_update(t.g, &o));
    vkt_report(t.g, loss, (vkt_tensor){ 0 });
    OK(vkt_store_create(harness_ctx, t.g, &t.store));
    OK(vkt_program_create(harness_ctx, t.g, t.store, &(vkt_program_params){ .precision = precision }, &t.p));
    return t;
}

static void trainer_free(trainer *t)
{
    vkt_program_destroy(&t->p);
    vkt_store_destroy(&t->store);
    vkt_graph_destroy(&t->g);
}

/* Makes one step with x[i] = (k + i + 1) / 3. If `odd` is not 0, x[3] = odd. */
static void step(trainer *t, uint32_t k, float odd)
{
    float x[N];
    uint64_t run;
    for (uint32_t i = 0; i < N; i++) x[i] = (float)(k + i + 1) / 3;
    if (odd != 0) x[3] = odd;
    OK(vkt_program_write(t->p, t->x, x, sizeof x));
    OK(vkt_program_run(t->p, &(vkt_run){ .lr = 0.1f }, &run));
    OK(vkt_program_metrics(t->p, run, &t->m));
}

static void check_same(trainer *a, trainer *b)
{
    uint64_t ta, tb, seed;
    OK(vkt_store_get_clock(a->store, &ta, &seed));
    OK(vkt_store_get_clock(b->store, &tb, &seed));
    assert_int_equal(ta, tb);
    for (int part = VKT_PART_VALUE; part <= VKT_PART_MOMENT2; part++) {
        float x[N], y[N];
        if (part == VKT_PART_GRADIENT || !vkt_store_has(a->store, (vkt_store_part)part)) continue;
        OK(vkt_store_read(a->store, 0, (vkt_store_part)part, x));
        OK(vkt_store_read(b->store, 0, (vkt_store_part)part, y));
        assert_memory_equal(x, y, sizeof x);
    }
}

static const vkt_optimizer optimizers[] = { { .kind = VKT_ADAM },
                                            { .kind = VKT_ADAM, .keras = true, .weight_decay = 0.01f },
                                            { .kind = VKT_SGD },
                                            { .kind = VKT_SGD, .momentum = 0.9f, .weight_decay = 0.01f } };

/* A step that overflows changes no parameter, no moment and no clock. So the f16 training `t` stays equal to the f32
 * training `plain`, which leaves out these steps. All bits are equal, because all values of this graph are f32 and
 * scales are powers of two. */
static void a_step_that_overflows_is_skipped_and_nothing_else(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t o = 0; o < VKT_COUNT(optimizers); o++) {
        trainer plain = trainer_make(optimizers[o], VKT_PRECISION_F32),
                t = trainer_make(optimizers[o], VKT_PRECISION_F16);
        static const struct {
            uint32_t at;
            float odd;
            /* The last `odd` overflows only when it is multiplied by the scale. */
        } bad[] = { { 1, INFINITY }, { 5, NAN }, { 6, -INFINITY }, { 11, 3e38f } };
        float scale = 65536;
        uint32_t next = 0, t_good = 0;
        for (uint32_t k = 0; k < 14; k++) {
            const bool overflows = next < VKT_COUNT(bad) && bad[next].at == k;
            step(&t, k, overflows ? bad[next].odd : 0);
            if (!overflows) step(&plain, k, 0);
            next += overflows;
            t_good += !overflows;
            check_same(&plain, &t);
            assert_true(t.m.loss_scale == scale && plain.m.loss_scale == 1);
            assert_true(overflows || t.m.loss == plain.m.loss);
            assert_int_equal(t.m.t, t_good);
            assert_int_equal(t.m.skipped, next);
            if (overflows) scale /= 2;
        }
        vkt_loss_scale l;
        OK(vkt_store_get_loss_scale(t.store, &l));
        assert_true(l.scale == 65536 / 16);
        assert_int_equal(l.skipped, 4);
        assert_int_equal(l.good_steps, 2);
        float gradient[N];
        OK(vkt_store_read(t.store, 0, VKT_PART_GRADIENT, gradient));
        assert_true(gradient[0] == l.scale * (14.0f / 3));
        trainer_free(&t);
        trainer_free(&plain);
    }
}

/* Gradients of 1e35 overflow until the scale is 2048; then training continues. */
static void the_scale_falls_until_gradients_fit(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    trainer t = trainer_make(optimizers[0], VKT_PRECISION_F16);
    float expected = 65536;
    for (uint32_t k = 0; k < 8; k++) {
        step(&t, k, 1e35f);
        assert_true(t.m.loss_scale == expected);
        if (1e35 * (double)expected > 3.4028235e38) expected /= 2;
    }
    assert_true(expected == 2048);
    assert_int_equal(t.m.skipped, 5);
    assert_int_equal(t.m.t, 3);
    trainer_free(&t);
}

static void the_scale_doubles_after_2000_good_steps_and_keeps_its_bounds(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    trainer t = trainer_make(optimizers[2], VKT_PRECISION_F16);
    OK(vkt_store_set_loss_scale(t.store, &(vkt_loss_scale){ .scale = 4, .good_steps = 1997, .skipped = 7 }));
    for (uint32_t k = 0; k < 5; k++) {
        step(&t, k, 0);
        assert_true(t.m.loss_scale == (k < 3 ? 4 : 8));
        assert_int_equal(t.m.skipped, 7);
    }
    vkt_loss_scale l;
    OK(vkt_store_get_loss_scale(t.store, &l));
    assert_int_equal(l.good_steps, 2);
    OK(vkt_store_set_loss_scale(t.store, &(vkt_loss_scale){ .scale = 4, .good_steps = 1999 }));
    step(&t, 0, INFINITY); /* the count of good steps starts again */
    step(&t, 1, 0);
    step(&t, 2, 0);
    assert_true(t.m.loss_scale == 2);
    OK(vkt_store_set_loss_scale(t.store, &(vkt_loss_scale){ .scale = 0x1p-126f }));
    step(&t, 3, NAN);
    step(&t, 4, 0);
    assert_true(t.m.loss_scale == 0x1p-126f);
    OK(vkt_store_set_loss_scale(t.store, &(vkt_loss_scale){ .scale = 0x1p126f, .good_steps = 1999 }));
    float zero[N] = { 0 };
    uint64_t run;
    OK(vkt_program_write(t.p, t.x, zero, sizeof zero));
    for (int i = 0; i < 2; i++) OK(vkt_program_run(t.p, &(vkt_run){ .lr = 0.1f }, &run));
    OK(vkt_program_metrics(t.p, run, &t.m));
    assert_true(t.m.loss_scale == 0x1p126f);
    trainer_free(&t);
}

static void a_scale_that_is_none_is_refused(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    trainer t = trainer_make(optimizers[0], VKT_PRECISION_F16);
    static const vkt_loss_scale wrong[] = { { .scale = 3 },        { .scale = -2 },       { .scale = INFINITY },
                                            { .scale = NAN },      { .scale = 0x1p127f }, { .scale = 0x1p-127f },
                                            { .good_steps = 2000 } };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        assert_int_equal(vkt_store_set_loss_scale(t.store, &wrong[i]), VKT_E_ARG);
        vkt_test_error_contains("power of two");
    }
    vkt_test_expect_errors(false);
    vkt_loss_scale l;
    OK(vkt_store_get_loss_scale(t.store, &l));
    assert_true(l.scale == 65536 && l.good_steps == 0 && l.skipped == 0);
    trainer_free(&t);
}

static void bf16_is_not_scaled(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    trainer plain = trainer_make(optimizers[0], VKT_PRECISION_F32), t = trainer_make(optimizers[0], VKT_PRECISION_BF16);
    for (uint32_t k = 0; k < 3; k++) {
        step(&plain, k, 0);
        step(&t, k, 0);
        assert_true(t.m.loss_scale == 1);
        check_same(&plain, &t);
    }
    trainer_free(&t);
    trainer_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_is_converted_to_the_bit),
        cmocka_unit_test(values_are_halved_where_all_agree_and_hosts_see_floats),
        cmocka_unit_test(the_largest_and_the_least_are_found_in_rows_in_16_bits),
        cmocka_unit_test(rows_repeated_with_the_batch_last_stay_f32),
        cmocka_unit_test(a_step_that_overflows_is_skipped_and_nothing_else),
        cmocka_unit_test(the_scale_falls_until_gradients_fit),
        cmocka_unit_test(the_scale_doubles_after_2000_good_steps_and_keeps_its_bounds),
        cmocka_unit_test(a_scale_that_is_none_is_refused),
        cmocka_unit_test(bf16_is_not_scaled),
    };
    return cmocka_run_group_tests_name("precision", tests, harness_setup, harness_teardown);
}
