/* Tests programs of f16 and bf16 on a device with cooperative matrices: which products use the matrices, how operands
 * are rounded, what happens if a scaled gradient overflows as an operand, and that training works. (test_shared.c and
 * test_ops.c check that the products are right.) On a device without such matrices, only
 * gpus_prefer_matrices_in_programs_of_f16 checks something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "base/half.h"
#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

static uint64_t by = VKT_V(COOP); /* the variant that program_make forces: COOP or COOP2 */

/* Makes a program with the forced variant `by`, or with COOP and COOP2 switched off if `off` is true. */
static vkt_program *program_make(vkt_graph *g, vkt_store *store, vkt_precision precision, bool off)
{
    vkt_program *p = NULL;
    const vkt_choices own = harness_ctx->limits.choices;
    if (off)
        harness_ctx->limits.choices.off = VKT_V(COOP) | VKT_V(COOP2);
    else
        harness_ctx->limits.choices.force = by;
    OK(vkt_program_create(harness_ctx, g, store, &(vkt_program_params){ .precision = precision }, &p));
    harness_ctx->limits.choices = own;
    return p;
}

/* Returns how many products COOP and COOP2 compute. Each product has one entry in e->picked. */
static size_t by_coop(const vkt_emit *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n_picked; i++)
        n += e->picked[i].variant == VKT_V_COOP || e->picked[i].variant == VKT_V_COOP2;
    return n;
}

/* ---- operands ---- */

enum { N = 44 };
typedef enum operand { X, W, DY, OPERANDS } operand;

/* Returns element k of an operand. Among the elements are ties between two f16 and between two bf16, neighbours of
 * ties, the largest integer that does not overflow in f16 (65519), and numbers that are subnormal in f16. */
static float odd_element(uint32_t k)
{
    static const float some[] = { 0x1.002p0f,  0x1.006p0f,    0x1.002002p0f, 0x1.001ffep0f, -0x1.552p-3f, 65519.0f,
                                  0x1.9abp-5f, -0x1.357p-16f, 0x1.8p-25f,    0x1p-25f,      -0x1.4p9f,    0,
                                  0x1.01p0f,   0x1.03p0f,     0x1.010002p0f, 0x1.00fffep0f };
    return some[k % VKT_COUNT(some)] * (float)(1 - (int)(k / VKT_COUNT(some) % 2) * 2);
}

/* Two products, each N x N: y = x w^T and dw = dy^T x. One operand, `odd`, has the numbers of odd_element. The other
 * two are identity matrices. So a product that reads `odd` is equal to `odd` or its transpose, after rounding. */
typedef struct products {
    vkt_graph *g;
    vkt_tensor in[OPERANDS], y, dw;
} products;

/* Makes the two products. If `wide`, x, y and dy are also summed. With the batch last, the op `sum` supports only f32,
 * so x, y and dy are stored as f32. */
static products products_make(vkt_layout layout, bool wide)
{
    static const char *const names[OPERANDS] = { "x", "w", "dy" };
    products p = { .g = harness_graph() };
    for (int i = 0; i < OPERANDS; i++) {
        p.in[i] = vkt_input(p.g, names[i], VKT_F32, i == W ? VKT_ROWS : layout, vkt_shape2(N, N));
        if (wide && i != W) vkt_keep(p.g, vkt_sum(p.g, p.in[i]));
    }
    p.y = vkt_linear(p.g, p.in[X], p.in[W], (vkt_tensor){ 0 });
    if (wide) vkt_keep(p.g, vkt_sum(p.g, p.y));
    OK(vkt_gradients(p.g, &p.y, &p.in[DY], 1, &p.in[W], 1, &p.dw));
    vkt_keep(p.g, p.y);
    vkt_keep(p.g, p.dw);
    return p;
}

static float rounded(float v, vkt_precision to)
{
    return to == VKT_PRECISION_F16    ? vkt_f32_from_half(vkt_half_from_f32(v))
           : to == VKT_PRECISION_BF16 ? vkt_f32_from_bf16(vkt_bf16_from_f32(v))
                                      : v;
}

/* Checks that a product rounds the numbers of the operand `odd` to the type `to`, to nearest, ties to even. */
static void check_operand(const products *s, vkt_program *p, operand odd, vkt_precision to)
{
    static float unit[N * N], some[N * N], got[N * N];
    for (uint32_t i = 0; i < N; i++) unit[i * N + i] = 1;
    for (uint32_t i = 0; i < N * N; i++) some[i] = odd_element(i);
    for (int i = 0; i < OPERANDS; i++) OK(vkt_program_write(p, s->in[i], i == (int)odd ? some : unit, sizeof unit));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, odd == DY ? s->dw : s->y, got, sizeof got));
    for (uint32_t i = 0; i < N * N; i++) {
        const float was = some[odd == X ? i : i % N * N + i / N];
        assert_true(got[i] == rounded(was, to));
    }
}

/* Checks the rounding of operands in the first n of three graphs. */
static void check_rounding(size_t n)
{
    static const struct {
        vkt_layout layout;
        bool wide;
    } graphs[] = { { VKT_ROWS, false }, { VKT_BATCH_LAST, false }, { VKT_BATCH_LAST, true } };
    static const struct {
        vkt_precision precision;
        bool off;
    } programs[] = { { VKT_PRECISION_F16, false },
                     { VKT_PRECISION_F16, true },
                     { VKT_PRECISION_F32, false },
                     { VKT_PRECISION_BF16, false },
                     { VKT_PRECISION_BF16, true } };
    for (size_t i = 0; i < n; i++) {
        products s = products_make(graphs[i].layout, graphs[i].wide);
        for (size_t k = 0; k < VKT_COUNT(programs); k++) {
            vkt_program *p = program_make(s.g, NULL, programs[k].precision, programs[k].off);
            const bool matrices = k == 0 || (k == 3 && by == VKT_V(COOP) && harness_ctx->limits.coop_bf16.m);
            assert_int_equal(by_coop(&p->lowered), matrices ? 2 : 0);
            for (int odd = X; odd < OPERANDS; odd++)
                if (matrices || graphs[i].wide)
                    check_operand(&s, p, (operand)odd, matrices ? programs[k].precision : VKT_PRECISION_F32);
            vkt_program_destroy(&p);
        }
        vkt_graph_destroy(&s.g);
    }
}

static void operands_are_rounded_in_programs_of_16_bits_alone(void **state)
{
    (void)state;
    if (harness_has_matrices()) check_rounding(3);
}

/* Without a forced variant, a GPU with matrices of f16 uses them in programs of f16, but not in programs of f32 or
 * bf16. A CPU does not use them. */
static void gpus_prefer_matrices_in_programs_of_f16(void **state)
{
    (void)state;
    const vkt_limits gpu = { .subgroup_size = 32,
                             .max_workgroup_lanes = 1024,
                             .max_groups = 65535,
                             .shared_bytes = 49152,
                             .max_storage_range_bytes = 1u << 30,
                             .coop = { 16, 16, 16 },
                             .traits = &vkt_class_traits[VKT_CLASS_OTHER] };
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        products s = products_make((vkt_layout)layout, false);
        /* Kinds 0 to 2 are f32, f16 and bf16. Kind 3 is f16 without matrices. Kind 4 is f16 on a CPU. */
        for (int kind = 0; kind < 5; kind++) {
            const vkt_precision precision = kind < 3 ? (vkt_precision)kind : VKT_PRECISION_F16;
            vkt_limits lim = gpu;
            vkt_emit e;
            if (kind == 3) lim.coop = (vkt_coop){ 0 };
            if (kind == 4) lim.traits = &vkt_class_traits[VKT_CLASS_CPU];
            OK(vkt_lower(s.g, &lim, NULL, (vkt_storage){ .precision = precision }, &e));
            assert_int_equal(by_coop(&e), kind == VKT_PRECISION_F16 ? 2 : 0);
            vkt_lower_free(&e);
        }
        vkt_graph_destroy(&s.g);
    }
}

/* ---- a scaled loss ---- */

/* loss = sum(x w^T), so each element of dy is the scale of the loss. dy is stored as f32, because its rows of 3
 * elements are not whole vec4s. The scale is 65536 at first, which is more than the largest f16. So dy overflows as an
 * operand of cooperative matrices, and the first step is skipped. All other numbers are exact. */
static void a_gradient_that_overflows_as_operand_skips_the_step(void **state)
{
    (void)state;
    if (!harness_has_matrices()) return;
    enum { ROWS = 5, IN = 4, OUT = 3 };
    static const float x[ROWS * IN] = { 1, -2, 3, 4, 5, -6, 7, 8, 9, -10, 11, 12, 13, 14, -15, 16, 17, 18, 19, -20 };
    for (int off = 0; off < 2; off++) {
        vkt_graph *g = harness_graph();
        vkt_store *store = NULL;
        float w[OUT * IN];
        const vkt_tensor tx = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, IN));
        const vkt_tensor loss =
            vkt_sum(g, vkt_linear(g, tx, vkt_param(g, "w", vkt_shape2(OUT, IN)), (vkt_tensor){ 0 }));
        OK(vkt_backward(g, loss));
        OK(vkt_update(g, &(vkt_optimizer){ .kind = VKT_SGD }));
        vkt_report(g, loss, (vkt_tensor){ 0 });
        OK(vkt_store_create(harness_ctx, g, &store));
        vkt_program *p = program_make(g, store, VKT_PRECISION_F16, off);
        OK(vkt_program_write(p, tx, x, sizeof x));
        for (uint32_t k = 1; k <= 3; k++) {
            vkt_metrics m;
            uint64_t run;
            OK(vkt_program_run(p, &(vkt_run){ .lr = 0.5f }, &run));
            OK(vkt_program_metrics(p, run, &m));
            assert_int_equal(m.skipped, !off);
            assert_int_equal(m.t, k - !off);
        }
        OK(vkt_store_read(store, 0, VKT_PART_VALUE, w));
        for (int i = 0; i < OUT * IN; i++) {
            float sum = 0;
            for (int b = 0; b < ROWS; b++) sum += x[b * IN + i % IN];
            assert_true(w[i] == -0.5f * (float)(3 - !off) * sum);
        }
        vkt_program_destroy(&p);
        vkt_store_destroy(&store);
        vkt_graph_destroy(&g);
    }
}

/* ---- training ---- */

enum { SEQUENCES = 24, TOKENS = 12, WIDTH = 20, CLASSES = 8, STEPS = 60, LINEARS = 4 };

static vkt_tensor random_linear(vkt_graph *g, vkt_tensor x, const char *name, uint32_t out)
{
    return vkt_linear(g, x, vkt_param(g, name, vkt_shape2(out, WIDTH)), (vkt_tensor){ 0 });
}

/* Classifies a sequence by the mean of its tokens, after attention over all tokens. */
static vkt_tensor classify(vkt_graph *g, vkt_tensor x)
{
    const vkt_tensor q = random_linear(g, x, "q", WIDTH), k = random_linear(g, x, "k", WIDTH),
                     v = random_linear(g, x, "v", WIDTH);
    const vkt_tensor scores = vkt_scale(g, vkt_matmul(g, q, k, false, true), 1 / sqrtf(WIDTH), 0);
    const vkt_tensor seen = vkt_tanh(g, vkt_matmul(g, vkt_softmax(g, scores, -1), v, false, false));
    return random_linear(g, vkt_mean_over(g, seen, 1u << 1, false), "out", CLASSES);
}

/* Trains STEPS steps on the same batch and returns the losses. The classes are unrelated to the inputs, so the network
 * has to memorise the classes. */
static void train(vkt_precision precision, bool off, float loss[STEPS])
{
    static float x[SEQUENCES * TOKENS * WIDTH], w[WIDTH * WIDTH];
    uint32_t labels[SEQUENCES];
    vkt_rng r = vkt_rng_make(7, 0, 0, 0);
    vkt_graph *g = harness_graph();
    vkt_store *store = NULL;
    const vkt_tensor tx = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape3(SEQUENCES, TOKENS, WIDTH)),
                     tl = vkt_input(g, "labels", VKT_U32, VKT_ROWS, vkt_shape1(SEQUENCES));
    const vkt_tensor tloss = vkt_cross_entropy(g, classify(g, tx), tl, &(vkt_cross_entropy_params){ 0 });
    OK(vkt_backward(g, tloss));
    OK(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    vkt_report(g, tloss, (vkt_tensor){ 0 });
    OK(vkt_store_create(harness_ctx, g, &store));
    vkt_program *p = program_make(g, store, precision, off);
    assert_int_equal(by_coop(&p->lowered), precision == VKT_PRECISION_F16 && !off ? p->lowered.n_picked : 0);
    for (uint32_t i = 0; i < VKT_COUNT(x); i++) x[i] = vkt_rng_uniform(&r, -1, 1);
    for (uint32_t i = 0; i < SEQUENCES; i++) labels[i] = vkt_rng_range(&r, 0, CLASSES - 1);
    for (uint32_t k = 0; k < LINEARS; k++) {
        for (uint32_t i = 0; i < VKT_COUNT(w); i++) w[i] = vkt_rng_uniform(&r, -0.4f, 0.4f);
        OK(vkt_store_write(store, k, VKT_PART_VALUE, w));
    }
    OK(vkt_program_write(p, tx, x, sizeof x));
    OK(vkt_program_write(p, tl, labels, sizeof labels));
    for (uint32_t k = 0; k < STEPS; k++) {
        vkt_metrics m;
        uint64_t run;
        OK(vkt_program_run(p, &(vkt_run){ .lr = 0.02f }, &run));
        OK(vkt_program_metrics(p, run, &m));
        loss[k] = m.loss;
    }
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    vkt_graph_destroy(&g);
}

static void attention_trains_as_in_f32(void **state)
{
    (void)state;
    if (!harness_has_matrices()) return;
    float full[STEPS], f16[STEPS], worst = 0;
    train(VKT_PRECISION_F32, false, full);
    train(VKT_PRECISION_F16, false, f16);
    assert_true(full[STEPS - 1] < 0.01f && full[0] > 1);
    for (uint32_t k = 0; k < STEPS; k++) {
        const float d = fabsf(f16[k] / full[k] - 1);
        worst = isfinite(d) ? fmaxf(worst, d) : INFINITY;
    }
    assert_true(worst > 0 && worst < 20 * 0x1p-11f); /* each operand in the chain of products is off by up to 2^-11 */
}

/* Repeats three tests with COOP2 instead of COOP: the rounding of operands in VKT_ROWS, the overflow of a gradient, and
 * the training of attention. Both variants round in the same way. */
static void flexible_matrices_round_in_the_same_way(void **state)
{
    if (!harness_has_matrices() || !harness_has_flexible()) return;
    by = VKT_V(COOP2);
    check_rounding(1);
    a_gradient_that_overflows_as_operand_skips_the_step(state);
    attention_trains_as_in_f32(state);
    by = VKT_V(COOP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_rounded_in_programs_of_16_bits_alone),
        cmocka_unit_test(gpus_prefer_matrices_in_programs_of_f16),
        cmocka_unit_test(a_gradient_that_overflows_as_operand_skips_the_step),
        cmocka_unit_test(attention_trains_as_in_f32),
        cmocka_unit_test(flexible_matrices_round_in_the_same_way),
    };
    return cmocka_run_group_tests_name("cooperative matrices", tests, harness_setup, harness_teardown);
}
