/* Tests the effects of an update: frozen parameters; micro-batches, also after a resume and with loss scaling; norms at
 * the ends of the range of floats; and each value of the presets. (test_training_goldens.c checks the updates
 * themselves.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "ops/step/optimizer.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
enum { N = 5 };

/* loss = sum(a x) + sum(b x). The gradient of `a` and the gradient of `b` are equal to x. The parameter `c` does not
 * influence the loss. */
typedef struct rig {
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    vkt_tensor x;
    vkt_metrics m; /* of the last run */
} rig;

static vkt_tensor declare(rig *r)
{
    r->g = harness_graph();
    r->x = vkt_input(r->g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N));
    const vkt_tensor a = vkt_param(r->g, "net.a", vkt_shape1(N)), b = vkt_param(r->g, "net.b", vkt_shape1(N));
    vkt_param(r->g, "spare.c", vkt_shape1(N));
    return vkt_add(r->g, vkt_sum(r->g, vkt_mul(r->g, a, r->x)), vkt_sum(r->g, vkt_mul(r->g, b, r->x)));
}

/* Makes a rig. The parameter `c` is frozen, and so are the parameters whose names match `frozen` (NULL: none). If
 * `store` is NULL, makes a new store. */
static rig rig_make(const vkt_optimizer *o, const char *frozen, vkt_precision precision, vkt_store *store)
{
    rig r = { .store = store };
    const vkt_tensor loss = declare(&r);
    OK(vkt_freeze(r.g, "spare.*"));
    if (frozen) OK(vkt_freeze(r.g, frozen));
    OK(vkt_backward(r.g, loss));
    OK(vkt_update(r.g, o));
    vkt_report(r.g, loss, (vkt_tensor){ 0 });
    if (!store) OK(vkt_store_create(harness_ctx, r.g, &r.store));
    OK(vkt_program_create(harness_ctx, r.g, r.store, &(vkt_program_params){ .precision = precision }, &r.p));
    return r;
}

static void rig_free(rig *r, bool with_store)
{
    vkt_program_destroy(&r->p);
    if (with_store) vkt_store_destroy(&r->store);
    vkt_graph_destroy(&r->g);
}

static void run(rig *r, float x, uint32_t rows)
{
    float v[N];
    uint64_t index;
    for (int i = 0; i < N; i++) v[i] = x * (float)(i + 1);
    OK(vkt_program_write(r->p, r->x, v, sizeof v));
    OK(vkt_program_run(r->p, &(vkt_run){ .lr = 0.1f, .rows = rows }, &index));
    OK(vkt_program_metrics(r->p, index, &r->m));
}

static float first_of(rig *r, uint32_t param, vkt_store_part part)
{
    float v[N];
    OK(vkt_store_read(r->store, param, part, v));
    return v[0];
}

/* ---- freezing ---- */

static void what_is_frozen_stays_with_its_moments(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_optimizer o = { .kind = VKT_ADAM, .weight_decay = 0.5f, .clip_norm = 1e3f };
    rig all = rig_make(&o, NULL, VKT_PRECISION_F32, NULL);
    rig part = rig_make(&o, "*.b", VKT_PRECISION_F32, all.store); /* another graph over the same store */
    const float spare[N] = { 7, 7, 7, 7, 7 };
    OK(vkt_store_write(all.store, 2, VKT_PART_VALUE, spare));
    run(&all, INFINITY, 0); /* leaves a gradient of `b` that is not finite */
    const float zero[N] = { 0 }, one[N] = { 1, 1, 1, 1, 1 };
    for (uint32_t i = 0; i < 2; i++) {
        OK(vkt_store_write(all.store, i, VKT_PART_VALUE, one));
        OK(vkt_store_write(all.store, i, VKT_PART_MOMENT1, zero));
        OK(vkt_store_write(all.store, i, VKT_PART_MOMENT2, zero));
    }
    run(&all, 1, 0);
    const float b = first_of(&all, 1, VKT_PART_VALUE), m = first_of(&all, 1, VKT_PART_MOMENT1);
    assert_true(b != 1 && m != 0);
    const float a = first_of(&all, 0, VKT_PART_VALUE);
    run(&part, 1, 0);
    assert_true(first_of(&all, 0, VKT_PART_VALUE) != a);
    assert_true(first_of(&all, 1, VKT_PART_VALUE) == b && first_of(&all, 1, VKT_PART_MOMENT1) == m);
    assert_true(first_of(&all, 2, VKT_PART_VALUE) == 7);
    assert_float_equal(part.m.grad_norm, sqrtf(1 + 4 + 9 + 16 + 25), 1e-5f); /* the norm of the gradient of `a` */
    run(&all, 1, 0);
    assert_true(first_of(&all, 1, VKT_PART_VALUE) != b);
    rig_free(&part, false);
    rig_free(&all, true);
}

/* The graph lacks the nodes that only the gradient of the frozen parameter `first` would need. */
static void nothing_is_worked_out_for_frozen_parameters(void **state)
{
    (void)state;
    size_t nodes[2];
    for (int frozen = 0; frozen < 2; frozen++) {
        vkt_graph *g = harness_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(3, 4));
        vkt_tensor h = vkt_linear(g, x, vkt_param(g, "first", vkt_shape2(5, 4)), (vkt_tensor){ 0 });
        h = vkt_linear(g, vkt_relu(g, h), vkt_param(g, "second", vkt_shape2(2, 5)), (vkt_tensor){ 0 });
        if (frozen) OK(vkt_freeze(g, "first"));
        OK(vkt_backward(g, vkt_sum(g, h)));
        nodes[frozen] = g->n_nodes;
        vkt_graph_destroy(&g);
    }
    assert_true(nodes[1] + 3 <= nodes[0]); /* no gradients of `first`, of relu's input and of relu's output */
}

static void wrong_marks_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *freeze, *group; /* patterns for vkt_freeze and vkt_set_group; NULL: the function is not called */
        uint32_t number;
        bool late;
        vkt_result status;
        const char *says;
    } cases[] = { { "nets.*", NULL, 0, false, VKT_E_NOT_FOUND, "no parameter is named 'nets.*'" },
                  { "*", NULL, 0, false, VKT_E_STATE, "every parameter is frozen" },
                  { "*c", NULL, 0, true, VKT_E_STATE, "before vkt_backward" },
                  { NULL, "*x*", 0, false, VKT_E_NOT_FOUND, "no parameter is named '*x*'" },
                  { NULL, "*", VKT_PARAM_GROUPS, false, VKT_E_ARG, "want a group below 8" } };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        rig r = { 0 };
        vkt_result status = VKT_OK;
        const vkt_tensor loss = declare(&r);
        if (cases[i].late) OK(vkt_freeze(r.g, "spare.c"));
        if (cases[i].late) OK(vkt_backward(r.g, loss));
        if (cases[i].freeze) status = vkt_freeze(r.g, cases[i].freeze);
        if (cases[i].group) status = vkt_set_group(r.g, cases[i].group, cases[i].number);
        if (status == VKT_OK) status = vkt_backward(r.g, loss);
        assert_int_equal(status, cases[i].status);
        assert_int_equal(vkt_graph_status(r.g), cases[i].status);
        vkt_test_error_contains(cases[i].says);
        vkt_graph_destroy(&r.g);
    }
    vkt_test_expect_errors(false);
}

/* ---- norms ---- */

static void norms_are_right_to_the_ends_of_the_range(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const float sizes[] = { 1, 1e-3f, 1e-20f, 1e-35f, 1e12f, 1e20f, 1e37f };
    const vkt_optimizer o = { .clip_norm = 2 };
    rig r = rig_make(&o, "net.b", VKT_PRECISION_F32, NULL);
    const float zero[N] = { 0 };
    for (size_t i = 0; i < VKT_COUNT(sizes); i++) {
        const double norm = (double)sizes[i] * sqrt(1 + 4 + 9 + 16 + 25);
        const double clip = fmin(1, 2 / (norm + 1e-6)), want = -(double)0.1f * clip * (double)sizes[i];
        OK(vkt_store_write(r.store, 0, VKT_PART_VALUE, zero));
        run(&r, sizes[i], 0);
        const double got = (double)r.m.grad_norm, moved = (double)first_of(&r, 0, VKT_PART_VALUE);
        if (!(fabs(got / norm - 1) < 1e-6) || !(fabs(moved / want - 1) < 1e-6))
            fail_msg("norm %.9g, wanted %.9g; moved %.9g, wanted %.9g", got, norm, moved, want);
    }
    run(&r, NAN, 0);
    assert_true(isnan(r.m.grad_norm) && isnan(first_of(&r, 0, VKT_PART_VALUE)));
    rig_free(&r, true);
}

/* ---- micro-batches ---- */

static void a_resume_in_the_middle_of_a_step_changes_no_bit(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const vkt_store_part parts[] = { VKT_PART_VALUE, VKT_PART_MOMENT1, VKT_PART_MOMENT2, VKT_PART_GRADIENT_SUM };
    const vkt_optimizer o = { .kind = VKT_NADAM, .micro_batches = 3, .weight_decay = 0.1f };
    rig whole = rig_make(&o, NULL, VKT_PRECISION_F32, NULL), split = rig_make(&o, NULL, VKT_PRECISION_F32, NULL);
    for (uint32_t i = 0; i < 12; i++) {
        run(&whole, 0.3f * (float)(i + 1), 1 + i % 5);
        assert_int_equal(whole.m.t, (i + 1) / 3);
        if (i == 7) { /* two of the third step's micro-batches are done */
            uint64_t t, seed;
            vkt_accumulation a;
            float v[N];
            OK(vkt_store_get_clock(whole.store, &t, &seed));
            OK(vkt_store_get_accumulation(whole.store, &a));
            assert_true(t == 2 && a.batches == 2 && a.rows == 1 + 6 % 5 + 1 + 7 % 5);
            for (uint32_t k = 0; k < 2 * VKT_COUNT(parts); k++) {
                OK(vkt_store_read(whole.store, k / VKT_COUNT(parts), parts[k % VKT_COUNT(parts)], v));
                OK(vkt_store_write(split.store, k / VKT_COUNT(parts), parts[k % VKT_COUNT(parts)], v));
            }
            OK(vkt_store_set_clock(split.store, t, seed));
            OK(vkt_store_set_accumulation(split.store, &a));
        }
        if (i > 7) run(&split, 0.3f * (float)(i + 1), 1 + i % 5);
    }
    for (uint32_t k = 0; k < 2 * VKT_COUNT(parts); k++) {
        float v[N], w[N];
        OK(vkt_store_read(whole.store, k / VKT_COUNT(parts), parts[k % VKT_COUNT(parts)], v));
        OK(vkt_store_read(split.store, k / VKT_COUNT(parts), parts[k % VKT_COUNT(parts)], w));
        assert_memory_equal(v, w, sizeof v);
    }
    rig_free(&whole, true);
    rig_free(&split, true);
}

/* vkt_run.terms is the weight of a run's gradients. If `terms` is 0, the number of rows is the weight. The first run
 * has the input x1, and the second run has x2. With 3 and 5 terms, the gradient of the step is (3 x1 + 5 x2) / 8. The
 * results are exact, except for terms above 2^24. */
static void terms_weight_micro_batches(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_optimizer o = { .kind = VKT_SGD, .micro_batches = 2 };
    static const uint32_t terms[][2] = { { 3, 5 }, { 1u << 24 | 1, 1 }, { 0, 0 } };
    for (size_t k = 0; k < VKT_COUNT(terms); k++) {
        rig r = rig_make(&o, NULL, VKT_PRECISION_F32, NULL);
        for (uint32_t i = 0; i < 2; i++) {
            const float v = (float)(1 + i), x[N] = { v, v, v, v, v };
            uint64_t index;
            vkt_accumulation a;
            OK(vkt_program_write(r.p, r.x, x, sizeof x));
            OK(vkt_program_run(r.p, &(vkt_run){ .lr = 0.5f, .rows = 2, .terms = terms[k][i] }, &index));
            OK(vkt_program_metrics(r.p, index, &r.m));
            OK(vkt_store_get_accumulation(r.store, &a));
            assert_int_equal(r.m.terms, terms[k][i] ? terms[k][i] : 2);
            assert_int_equal(r.m.rows, 2);
            assert_int_equal(a.rows, i ? 0 : r.m.terms);
        }
        const float want[] = { -0.5f * 13 / 8, -0.5f, -0.5f * 3 / 2 };
        assert_true(fabsf(first_of(&r, 0, VKT_PART_VALUE) - want[k]) <= (k == 1 ? 1e-6f : 0));
        rig_free(&r, true);
    }
}

/* In f16 an overflow in one micro-batch of a step drops that step. The scale is halved only after the last micro-batch
 * of the step. */
static void an_overflow_drops_all_micro_batches_of_its_step(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_optimizer o = { .kind = VKT_ADAM, .micro_batches = 2, .clip_norm = 1 };
    rig half = rig_make(&o, NULL, VKT_PRECISION_F16, NULL), plain = rig_make(&o, NULL, VKT_PRECISION_F32, NULL);
    static const float x[] = { 1, 2, INFINITY, 3, 4, 5, 6, NAN, 7, 8 };
    static const float scales[] = { 65536, 65536, 65536, 65536, 32768, 32768, 32768, 32768, 16384, 16384 };
    for (uint32_t i = 0; i < VKT_COUNT(x); i++) {
        run(&half, x[i], 4);
        assert_true(half.m.loss_scale == scales[i]);
        /* A step that is not dropped has the same bits in f16 and f32, because all values of this graph are f32 and the
         * scales are powers of two. */
        if (i / 2 != 1 && i / 2 != 3) {
            run(&plain, x[i], 4);
            assert_int_equal(half.m.t, plain.m.t);
            assert_true(half.m.grad_norm == plain.m.grad_norm);
        }
        assert_true(first_of(&half, 0, VKT_PART_VALUE) == first_of(&plain, 0, VKT_PART_VALUE));
    }
    assert_int_equal(half.m.skipped, 2);
    rig_free(&half, true);
    rig_free(&plain, true);
}

/* ---- presets ---- */

/* Sources: PyTorch documentation of torch.optim, Keras documentation of keras.optimizers. */
static void presets_are_the_libraries_defaults(void **state)
{
    (void)state;
    static const struct {
        vkt_optimizer_kind kind;
        vkt_preset preset;
        double lr, weight_decay, beta1, beta2, alpha, momentum_decay, accumulator, eps;
    } rows[] = { { VKT_SGD, VKT_PRESET_TORCH, 1e-3, 0, 0, 0, 0, 0, 0, 0 },
                 { VKT_ADAM, VKT_PRESET_TORCH, 1e-3, 0, 0.9, 0.999, 0, 0, 0, 1e-8 },
                 { VKT_ADAMW, VKT_PRESET_TORCH, 1e-3, 1e-2, 0.9, 0.999, 0, 0, 0, 1e-8 },
                 { VKT_NADAM, VKT_PRESET_TORCH, 2e-3, 0, 0.9, 0.999, 0, 4e-3, 0, 1e-8 },
                 { VKT_RMSPROP, VKT_PRESET_TORCH, 1e-2, 0, 0, 0, 0.99, 0, 0, 1e-8 },
                 { VKT_ADAGRAD, VKT_PRESET_TORCH, 1e-2, 0, 0, 0, 0, 0, 0, 1e-10 },
                 { VKT_SGD, VKT_PRESET_KERAS3, 1e-2, 0, 0, 0, 0, 0, 0, 0 },
                 { VKT_ADAM, VKT_PRESET_KERAS3, 1e-3, 0, 0.9, 0.999, 0, 0, 0, 1e-7 },
                 { VKT_ADAMW, VKT_PRESET_KERAS3, 1e-3, 4e-3, 0.9, 0.999, 0, 0, 0, 1e-7 },
                 { VKT_NADAM, VKT_PRESET_KERAS3, 1e-3, 0, 0.9, 0.999, 0, 1, 0, 1e-7 },
                 { VKT_RMSPROP, VKT_PRESET_KERAS3, 1e-3, 0, 0, 0, 0.9, 0, 0, 1e-7 },
                 { VKT_ADAGRAD, VKT_PRESET_KERAS3, 1e-3, 0, 0, 0, 0, 0, 0.1, 1e-7 },
                 { VKT_ADAM, VKT_PRESET_TF_KERAS, 1e-3, 0, 0.9, 0.999, 0, 0, 0, 1e-7 },
                 { VKT_NADAM, VKT_PRESET_TF_KERAS, 1e-3, 0, 0.9, 0.999, 0, 4e-3, 0, 1e-7 } };
    for (size_t i = 0; i < VKT_COUNT(rows); i++) {
        const vkt_optimizer o = vkt_optimizer_preset(rows[i].kind, rows[i].preset);
        assert_true(o.kind == rows[i].kind && o.keras == (rows[i].preset != VKT_PRESET_TORCH));
        assert_true(vkt_optimizer_lr(rows[i].kind, rows[i].preset) == (float)rows[i].lr);
        assert_true(o.weight_decay == (float)rows[i].weight_decay && o.eps == (float)rows[i].eps);
        assert_true(o.beta1 == rows[i].beta1 && o.beta2 == rows[i].beta2 && o.alpha == rows[i].alpha);
        assert_true(o.momentum_decay == rows[i].momentum_decay);
        assert_true(o.initial_accumulator == (float)rows[i].accumulator);
        assert_true(o.decoupled == (o.keras || o.kind == VKT_ADAMW));
        assert_true(o.momentum == 0 && !o.nesterov && !o.centered && o.lr_decay == 0 && o.micro_batches == 1);
        rig r = { 0 };
        const vkt_tensor loss = declare(&r);
        OK(vkt_freeze(r.g, "spare.c"));
        OK(vkt_backward(r.g, loss));
        OK(vkt_update(r.g, &o));
        vkt_graph_destroy(&r.g);
    }
}

/* VKT_ZERO means 0 in each float or double member except eps, also in a member whose default is not 0. */
static void a_real_zero_replaces_each_member(void **state)
{
    (void)state;
    static const vkt_optimizer_kind kinds[] = { VKT_ADAM, VKT_ADAMW, VKT_NADAM, VKT_RMSPROP, VKT_ADAGRAD };
    for (size_t i = 0; i < VKT_COUNT(kinds); i++)
        for (int keras = 0; keras < 2; keras++) {
            vkt_optimizer o = { kinds[i],
                                .keras = keras,
                                .weight_decay = VKT_ZERO,
                                .momentum = VKT_ZERO,
                                .dampening = VKT_ZERO,
                                .alpha = VKT_ZERO,
                                .beta1 = VKT_ZERO,
                                .beta2 = VKT_ZERO,
                                .momentum_decay = VKT_ZERO,
                                .lr_decay = VKT_ZERO,
                                .initial_accumulator = VKT_ZERO,
                                .clip_norm = VKT_ZERO,
                                .clip_value = VKT_ZERO };
            o.groups[0] = (vkt_param_group){ VKT_ZERO, VKT_ZERO };
            rig r = { 0 };
            const vkt_tensor loss = declare(&r);
            OK(vkt_freeze(r.g, "spare.c"));
            OK(vkt_backward(r.g, loss));
            OK(vkt_update(r.g, &o));
            o = r.g->optimizer;
            assert_true(o.weight_decay == 0 && o.momentum == 0 && o.dampening == 0 && o.alpha == 0 && o.beta1 == 0);
            assert_true(o.beta2 == 0 && o.momentum_decay == 0 && o.lr_decay == 0 && o.initial_accumulator == 0);
            assert_true(o.clip_norm == 0 && o.clip_value == 0 && o.eps > 0);
            assert_true(o.groups[0].lr_factor == 0 && o.groups[0].weight_decay == 0 && o.groups[1].lr_factor == 1);
            vkt_graph_destroy(&r.g);
        }
}

/* Each kind of optimizer has a name of its own, an op and a default learning rate. */
static void every_kind_is_complete(void **state)
{
    (void)state;
    for (int i = 0; i < VKT_OPTIMIZER_KIND_COUNT; i++) {
        const vkt_optimizer_kind kind = (vkt_optimizer_kind)i;
        uint32_t room;
        assert_non_null(vkt_optimizer_name(kind));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(vkt_optimizer_name(kind), vkt_optimizer_name((vkt_optimizer_kind)k));
        assert_non_null(vkt_optimizer_op(kind, &room));
        assert_true(vkt_optimizer_lr(kind, VKT_PRESET_TORCH) > 0 && vkt_optimizer_lr(kind, VKT_PRESET_KERAS3) > 0);
    }
    assert_null(vkt_optimizer_name(VKT_OPTIMIZER_KIND_COUNT));
}

/* An eps of 0 is refused. In the memory between parameters, gradients and moments are 0, so the update would divide 0
 * by 0 there, which is NaN. Only Adam and AdamW have amsgrad. */
static void what_an_optimizer_cannot_be_is_refused(void **state)
{
    (void)state;
    static const vkt_optimizer wrong[] = { { .kind = VKT_ADAM, .eps = VKT_ZERO },
                                           { .kind = VKT_SGD, .amsgrad = true },
                                           { .kind = VKT_NADAM, .amsgrad = true },
                                           { .kind = VKT_RMSPROP, .amsgrad = true } };
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        rig r = { 0 };
        const vkt_tensor loss = declare(&r);
        OK(vkt_freeze(r.g, "spare.c"));
        OK(vkt_backward(r.g, loss));
        assert_int_equal(vkt_update(r.g, &wrong[i]), VKT_E_ARG);
        vkt_graph_destroy(&r.g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_frozen_stays_with_its_moments),
        cmocka_unit_test(nothing_is_worked_out_for_frozen_parameters),
        cmocka_unit_test(wrong_marks_are_refused),
        cmocka_unit_test(norms_are_right_to_the_ends_of_the_range),
        cmocka_unit_test(a_resume_in_the_middle_of_a_step_changes_no_bit),
        cmocka_unit_test(terms_weight_micro_batches),
        cmocka_unit_test(an_overflow_drops_all_micro_batches_of_its_step),
        cmocka_unit_test(every_kind_is_complete),
        cmocka_unit_test(presets_are_the_libraries_defaults),
        cmocka_unit_test(a_real_zero_replaces_each_member),
        cmocka_unit_test(what_an_optimizer_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("update", tests, harness_setup, harness_teardown);
}
