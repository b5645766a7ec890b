/* Tests elementwise functions at inputs that random cases do not reach: zeros, ties, infinities, NaN, and tails in
 * which fp32 can lose all digits. Values and gradients are those of PyTorch 1.13 unless a line says otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
#define INF INFINITY

/* ---- helpers ---- */

enum { MOST = 32 };

/* Runs g, where y depends on the n_x inputs x of n elements each. Reads y to `out`, and the gradient of each input i,
 * with dy = 1, to dx[i]. Destroys g. */
static void run(vkt_graph *g, vkt_tensor y, const vkt_tensor *x, float (*const data)[MOST], uint32_t n_x, uint32_t n,
                float *out, float (*dx)[MOST])
{
    float ones[MOST];
    vkt_tensor grads[3];
    vkt_program *p = NULL;
    const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, vkt_value_of(g, y)->layout, vkt_tensor_shape(g, y));
    for (uint32_t i = 0; i < MOST; i++) ones[i] = 1;
    OK(vkt_gradients(g, &y, &dy, 1, x, n_x, grads));
    vkt_keep(g, y);
    for (uint32_t k = 0; k < n_x; k++) vkt_keep(g, grads[k]);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    for (uint32_t k = 0; k < n_x; k++) OK(vkt_program_write(p, x[k], data[k], n * sizeof(float)));
    OK(vkt_program_write(p, dy, ones, n * sizeof(float)));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, y, out, n * sizeof(float)));
    for (uint32_t k = 0; k < n_x; k++) OK(vkt_program_read(p, grads[k], dx[k], n * sizeof(float)));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* Returns whether `got` and `want` are both NaN or the same infinity, or differ by at most 1e-6 * |want|. */
static bool is_same(float got, double want)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want) || want == 0) return (double)got == want;
    return fabs((double)got - want) <= 1e-6 * fabs(want);
}

/* ---- functions of one number ---- */

static vkt_tensor leaky_relu(vkt_graph *g, vkt_tensor x)
{
    return vkt_leaky_relu(g, x, 0.01f);
}

static vkt_tensor leaky_relu_down(vkt_graph *g, vkt_tensor x)
{
    return vkt_leaky_relu(g, x, -0.5f);
}

static vkt_tensor elu(vkt_graph *g, vkt_tensor x)
{
    return vkt_elu(g, x, 1);
}

static vkt_tensor softplus(vkt_graph *g, vkt_tensor x)
{
    return vkt_softplus(g, x, 1, 20);
}

static vkt_tensor clamp(vkt_graph *g, vkt_tensor x)
{
    return vkt_clamp(g, x, -1, 1);
}

static vkt_tensor clamp_crossed(vkt_graph *g, vkt_tensor x)
{
    return vkt_clamp(g, x, 1, -1);
}

typedef struct one {
    const char *name;
    vkt_tensor (*build)(vkt_graph *g, vkt_tensor x);
    double x, y, dx;
} one;

static const one ones[] = {
    { "relu", vkt_relu, NAN, NAN, 1 },
    { "relu", vkt_relu, 0, 0, 0 },
    { "relu", vkt_relu, -INF, 0, 0 },
    { "relu", vkt_relu, INF, INF, 1 },
    { "leaky_relu", leaky_relu, NAN, NAN, 0.01 },
    { "leaky_relu", leaky_relu, 0, 0, 0.01 },
    { "leaky_relu", leaky_relu, -INF, -INF, 0.01 },
    { "leaky_relu", leaky_relu_down, -2, 1, -0.5 },
    { "leaky_relu", leaky_relu_down, 2, 2, 1 },
    { "elu", elu, NAN, NAN, 1 },
    { "elu", elu, 0, 0, 1 },
    { "elu", elu, -INF, -1, 0 },
    { "elu", elu, INF, INF, 1 },
    { "elu", elu, -1e-6, -9.999995e-7, 0.999999 },
    { "elu", elu, -30, -1, 9.357622968840175e-14 },
    { "gelu", vkt_gelu, NAN, NAN, NAN },
    { "gelu", vkt_gelu, 0, 0, 0.5 },
    { "gelu", vkt_gelu, -INF, NAN, 0 }, /* torch's gradient is NaN, because torch multiplies infinity by 0 */
    { "gelu", vkt_gelu, INF, INF, 1 },  /* torch's gradient is NaN */
    { "gelu", vkt_gelu, -3e38, 0, 0 },
    { "gelu", vkt_gelu, 3e38, 3e38, 1 },
    { "gelu", vkt_gelu, -9, -1.015729565358458e-18, -9.13893737390664e-18 }, /* torch's float32 gives 0 */
    { "gelu_tanh", vkt_gelu_tanh, NAN, NAN, NAN },
    { "gelu_tanh", vkt_gelu_tanh, 0, 0, 0.5 },
    { "gelu_tanh", vkt_gelu_tanh, -3e38, 0, 0 },
    { "gelu_tanh", vkt_gelu_tanh, 3e38, 3e38, 1 },
    { "silu", vkt_silu, NAN, NAN, NAN },
    { "silu", vkt_silu, 0, 0, 0.5 },
    { "silu", vkt_silu, -INF, NAN, NAN },
    { "silu", vkt_silu, INF, INF, NAN },
    { "silu", vkt_silu, -50, -9.643749239819588e-21, -9.450874255023196e-21 },
    { "sigmoid", vkt_sigmoid, NAN, NAN, NAN },
    { "sigmoid", vkt_sigmoid, -INF, 0, 0 },
    { "sigmoid", vkt_sigmoid, INF, 1, 0 },
    { "sigmoid", vkt_sigmoid, -80, 1.8048513878454153e-35, 1.8048513878454153e-35 },
    { "tanh", vkt_tanh, NAN, NAN, NAN },
    { "tanh", vkt_tanh, 0, 0, 1 },
    { "tanh", vkt_tanh, -INF, -1, 0 },
    { "tanh", vkt_tanh, INF, 1, 0 },
    { "tanh", vkt_tanh, -1e-20, -1e-20, 1 },
    { "softplus", softplus, NAN, NAN, NAN },
    { "softplus", softplus, -INF, 0, 0 },
    { "softplus", softplus, INF, INF, 1 },
    { "softplus", softplus, 20, 20.000000002061153, 0.9999999979388464 },
    { "softplus", softplus, 21, 21, 1 },
    { "softplus", softplus, -80, 1.8048513878454153e-35, 1.8048513878454153e-35 },
    { "hardswish", vkt_hardswish, NAN, NAN, 1 },
    { "hardswish", vkt_hardswish, -INF, NAN, 0 },
    { "hardswish", vkt_hardswish, INF, INF, 1 },
    { "hardswish", vkt_hardswish, -3, 0, 0 }, /* at the bounds, the gradient is that of PyTorch 2.15 */
    { "hardswish", vkt_hardswish, 3, 3, 1 },
    { "exp", vkt_exp, NAN, NAN, NAN },
    { "exp", vkt_exp, -INF, 0, 0 },
    { "exp", vkt_exp, INF, INF, INF },
    { "exp", vkt_exp, 88.7, 3.3259768301593062e38, 3.3259768301593062e38 },
    { "exp", vkt_exp, 88.8, INF, INF },
    { "exp", vkt_exp, -87, 1.6458114310822737e-38, 1.6458114310822737e-38 },
    { "log", vkt_log, NAN, NAN, NAN },
    { "log", vkt_log, 0, -INF, INF },
    { "log", vkt_log, INF, INF, 0 },
    { "log", vkt_log, -1, NAN, -1 },
    { "log", vkt_log, 1, 0, 1 },
    { "sqrt", vkt_sqrt, NAN, NAN, NAN },
    { "sqrt", vkt_sqrt, 0, 0, INF },
    { "sqrt", vkt_sqrt, INF, INF, 0 },
    { "sqrt", vkt_sqrt, -1, NAN, NAN },
    { "abs", vkt_abs, NAN, NAN, 0 },
    { "abs", vkt_abs, 0, 0, 0 },
    { "abs", vkt_abs, -INF, INF, -1 },
    { "clamp", clamp, NAN, NAN, 0 },
    { "clamp", clamp, -1, -1, 0 }, /* at the bounds, the gradient is that of PyTorch 2.15 */
    { "clamp", clamp, 1, 1, 0 },
    { "clamp", clamp, 0.5, 0.5, 1 },
    { "clamp", clamp, INF, 1, 0 },
    { "clamp", clamp_crossed, 0, -1, 0 },
};

static void a_function_of_one_number_is_as_in_torch(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    unsigned bad = 0;
    for (size_t first = 0, end; first < VKT_COUNT(ones); first = end) { /* all cases of a function in one run */
        float x[1][MOST] = { { 0 } }, y[MOST], dx[1][MOST];
        for (end = first; end < VKT_COUNT(ones) && ones[end].build == ones[first].build; end++)
            x[0][end - first] = (float)ones[end].x;
        const uint32_t n = (uint32_t)(end - first);
        vkt_graph *g = harness_graph();
        const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(n, 1));
        run(g, ones[first].build(g, in), &in, x, 1, n, y, dx);
        for (uint32_t i = 0; i < n; i++) {
            const one *c = &ones[first + i];
            if (is_same(y[i], c->y) && is_same(dx[0][i], c->dx)) continue;
            print_error("%s(%g) is %.9g, want %.9g; its gradient %.9g, want %.9g\n", c->name, c->x, (double)y[i], c->y,
                        (double)dx[0][i], c->dx);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}

/* The gradient is not compared: it is a denormal number, which a device may flush to 0. */
static void the_logarithm_of_the_largest_float_is_finite(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    float x[1][MOST] = { { 0x1.fffffep127f } };
    float y[MOST], dx[1][MOST];
    vkt_graph *g = harness_graph();
    const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(1, 1));
    run(g, vkt_log(g, in), &in, x, 1, 1, y, dx);
    assert_true(is_same(y[0], 88.722839111673));
}

/* ---- functions of two numbers ---- */

typedef struct two {
    double a, b, y, da, db;
} two;

static const two minima[] = {
    { NAN, 1, NAN, 1, 1 },       { 1, NAN, NAN, 1, 1 }, { 2, 2, 2, 0.5, 0.5 },
    { INF, INF, INF, 0.5, 0.5 }, { 1, 2, 1, 1, 0 },     { 3, -INF, -INF, 0, 1 },
};
static const two maxima[] = {
    { NAN, 1, NAN, 1, 1 },       { 1, NAN, NAN, 1, 1 }, { 2, 2, 2, 0.5, 0.5 },
    { INF, INF, INF, 0.5, 0.5 }, { 1, 2, 2, 0, 1 },     { 3, -INF, 3, 1, 0 },
};
static const two powers[] = {
    { 0, 0, 1, 0, 0 },
    { 0, 2, 0, 0, 0 },
    { 0, -1, INF, -INF, -INF },
    { -2, 3, -8, 12, NAN },
    { -2, 2, 4, -4, NAN },
    { -2, 0.5, NAN, NAN, NAN },
    { 2, 0, 1, 0, 0.6931471805599453 },
    { NAN, 0, 1, 0, NAN },
    { 1, NAN, 1, NAN, 0 },
    { NAN, 2, NAN, NAN, NAN },
    { INF, -1, 0, 0, NAN },
    { -INF, 3, -INF, INF, NAN },
    { 0, 1, 0, 1, 0 },
    { 0.5, INF, 0, NAN, 0 },
    { -0.0, -3, -INF, -INF, INF },
    { -INF, -2, 0, 0, NAN },
    { -1, INF, 1, INF, NAN },
    { 10, 39, INF, INF, INF },
    { 10, -50, 0, 0, 0 },
    { 2, 127, 1.7014118346046923e38, INF, 1.1793288161275664e38 },
    { 1.0000001192092896, 7e8, 1.739215873016312e36, INF, 2.073306762398453e29 },
};
static const two quotients[] = {
    { 1, 0, INF, INF, -INF },
    { 0, 0, NAN, INF, NAN },
    { 1, INF, 0, 0, 0 },
    { -6, 3, -2, 0.3333333333333333, 0.6666666666666666 },
};

static void check_pairs(const char *name, vkt_tensor (*build)(vkt_graph *g, vkt_tensor a, vkt_tensor b),
                        const two *cases, uint32_t n)
{
    float in[2][MOST] = { { 0 } }, y[MOST], dx[2][MOST];
    unsigned bad = 0;
    for (uint32_t i = 0; i < n; i++) {
        in[0][i] = (float)cases[i].a;
        in[1][i] = (float)cases[i].b;
    }
    vkt_graph *g = harness_graph();
    const vkt_tensor x[] = { vkt_input(g, "a", VKT_F32, VKT_ROWS, vkt_shape1(n)),
                             vkt_input(g, "b", VKT_F32, VKT_ROWS, vkt_shape1(n)) };
    run(g, build(g, x[0], x[1]), x, in, 2, n, y, dx);
    for (uint32_t i = 0; i < n; i++) {
        const two *c = &cases[i];
        if (is_same(y[i], c->y) && is_same(dx[0][i], c->da) && is_same(dx[1][i], c->db)) continue;
        print_error("%s(%g, %g) is %.9g, want %.9g; da %.9g, want %.9g; db %.9g, want %.9g\n", name, c->a, c->b,
                    (double)y[i], c->y, (double)dx[0][i], c->da, (double)dx[1][i], c->db);
        bad++;
    }
    assert_int_equal(bad, 0);
}

static void a_function_of_two_numbers_is_as_in_torch(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    check_pairs("minimum", vkt_minimum, minima, VKT_COUNT(minima));
    check_pairs("maximum", vkt_maximum, maxima, VKT_COUNT(maxima));
    check_pairs("pow", vkt_pow, powers, VKT_COUNT(powers));
    check_pairs("div", vkt_div, quotients, VKT_COUNT(quotients));
}

/* ---- where ---- */

/* vkt_masked_fill replaces an element of x if the mask is not 0 there. The replaced element and its dy may have any
 * value. The mask has integers: a number that is not 0 counts, even if its bits are -0 or NaN as a float. */
static void what_is_not_chosen_does_not_matter(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 6 };
    static const uint32_t mask[N] = { 0, 1, 30982, 0, 0x80000000u, 0x7fc00000u };
    static const float x[N] = { NAN, 2, 3, INF, 5, 6 }, dy[N] = { INF, 1, NAN, 2, 3, 4 };
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor m = vkt_input(g, "m", VKT_U32, VKT_BATCH_LAST, vkt_shape2(N, 1));
    const vkt_tensor v = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(N, 1));
    const vkt_tensor seed = vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, vkt_shape2(N, 1));
    const vkt_tensor y = vkt_masked_fill(g, v, m, -7);
    vkt_tensor dx;
    OK(vkt_gradients(g, &y, &seed, 1, &v, 1, &dx));
    vkt_keep(g, y);
    vkt_keep(g, dx);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, m, mask, sizeof mask));
    OK(vkt_program_write(p, v, x, sizeof x));
    OK(vkt_program_write(p, seed, dy, sizeof dy));
    OK(vkt_program_run(p, NULL, NULL));
    float got[N], grad[N];
    OK(vkt_program_read(p, y, got, sizeof got));
    OK(vkt_program_read(p, dx, grad, sizeof grad));
    for (int i = 0; i < N; i++) {
        assert_true(is_same(got[i], mask[i] ? -7 : (double)x[i]));
        assert_true(is_same(grad[i], mask[i] ? 0 : (double)dy[i]));
    }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* Applies copies of the ops relu and exp. The copies are not in the table `functions` of unary.c. So they must compute
 * NaN, not the function of another op. */
static void a_function_without_a_number_is_nan(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static vkt_op quick, slow;
    quick = vkt_op_relu;
    slow = vkt_op_exp;
    vkt_op *const ops[] = { &quick, &slow };
    for (size_t i = 0; i < VKT_COUNT(ops); i++) {
        enum { N = 5 };
        float y[MOST], dx[1][MOST];
        vkt_graph *g = NULL;
        OK(vkt_graph_create(NULL, &g));
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N));
        const vkt_tensor t = vkt_apply(g, ops[i], &x, 1, NULL, NULL);
        float in[1][MOST] = { { 0.5f, 1, 2, 3, 4 } };
        run(g, t, &x, in, 1, N, y, dx);
        for (int k = 0; k < N; k++) {
            assert_true(isnan(y[k]));
            assert_true(isnan(dx[0][k]));
        }
    }
}

static void storage_of_32_kib(vkt_limits *lim)
{
    lim->max_storage_range_bytes = 32768;
}

/* The first operand and the sum have 16 KiB. In VKT_BATCH_LAST, the batch of 1 has a pitch of 4, so the second operand
 * has 64 KiB, more than a binding holds. */
static void a_padded_operand_may_be_larger_than_a_binding(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const harness_view view = { "with storage bindings of 32 KiB", storage_of_32_kib };
    const vkt_host h = vkt_test_host();
    vkt_case c = { .n_in = 0 };
    subject s = { .seed = 0 };
    harness_report report = { .faults = 0 };
    vkt_case_f32(&c, VKT_ROWS, vkt_shape4(1, 64, 8, 8), -2, 2);
    vkt_case_f32(&c, VKT_BATCH_LAST, vkt_shape4(1, 64, 8, 8), -2, 2);
    OK(vkt_subject_of_case(&h, &s, &vkt_op_add, &c, 5));
    subject_forward(&s);
    subject_backward(&s);
    harness_check(harness_ctx, &s, &report);
    harness_check_in(harness_ctx, &s, &view, &report);
    subject_free(&s);
    if (report.faults) fail_msg("%s", report.text);
}

#define TEST(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_function_of_one_number_is_as_in_torch),  TEST(the_logarithm_of_the_largest_float_is_finite),
        TEST(a_function_of_two_numbers_is_as_in_torch), TEST(what_is_not_chosen_does_not_matter),
        TEST(a_function_without_a_number_is_nan),       TEST(a_padded_operand_may_be_larger_than_a_binding),
    };
    return cmocka_run_group_tests_name("elementwise functions", tests, harness_setup, harness_teardown);
}
