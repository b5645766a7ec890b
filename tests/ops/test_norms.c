/* Tests variances and norms in extreme cases: a mean far from zero, an eps of 0 and a momentum of 0. Also tests norms
 * and softmax of rows that lanes keep in registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "abi/abi.h"
#include "abi/row_norm.abi.h"
#include "abi/softmax.abi.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

/* Writes n numbers in [mean, mean + spread). `spread` is a multiple of the spacing of floats at `mean`. Sets *var to
 * the unbiased variance of the n numbers. */
static void far_from_zero(float *x, uint32_t n, float mean, float spread, double *var)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        x[i] = mean + spread * (float)((i * 37 + i * i % 11) % 101) / 128;
        sum += (double)x[i];
    }
    for (uint32_t i = 0; i < n; i++) squares += pow((double)x[i] - sum / n, 2);
    *var = squares / (n - 1);
}

/* The mean is up to 2.2 million standard deviations away from 0. Rounding changes the mean by up to a tenth of a
 * standard deviation, but the variance keeps its digits. The variances inside batch, layer and group norm must also
 * keep their digits. */
static void a_variance_far_from_zero_keeps_its_digits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { B = 20, F = 52, N = B * F };
    static const float means[] = { 0, 1e3f, 1e5f, 1e6f, -1e6f, 4e6f };
    static float x[N], y[3][N];
    for (size_t k = 0; k < VKT_COUNT(means); k++) {
        double want, norm[3];
        float var;
        far_from_zero(x, N, means[k], 8, &want);
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(B, F));
        const vkt_tensor one = vkt_reshape(g, in, vkt_shape2(1, N)), cube = vkt_reshape(g, in, vkt_shape3(B, 1, F));
        const vkt_tensor v = vkt_var(g, in, VKT_ALL_AXES, 1, false);
        const vkt_tensor out[] = { vkt_batch_norm(g, cube, &(vkt_batch_norm_params){ 0 }),
                                   vkt_layer_norm(g, one, 1, (vkt_tensor){ 0 }, (vkt_tensor){ 0 }, 0),
                                   vkt_group_norm(g, one, 1, (vkt_tensor){ 0 }, (vkt_tensor){ 0 }, 0) };
        vkt_keep(g, v);
        for (int i = 0; i < 3; i++) vkt_keep(g, out[i]);
        OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
        OK(vkt_program_write(p, in, x, sizeof x));
        OK(vkt_program_run(p, &(vkt_run){ .rows = B }, NULL));
        harness_read_f32(p, g, v, &var);
        if (!(fabs((double)var - want) <= 1e-6 * want))
            fail_msg("mean %g: variance %.9g, want %.9g", (double)means[k], (double)var, want);
        for (int i = 0; i < 3; i++) { /* the mean of y need not be 0, because the norm rounds the mean of x */
            double sum = 0;
            harness_read_f32(p, g, out[i], y[i]);
            for (int j = 0; j < N; j++) sum += (double)y[i][j];
            norm[i] = 0;
            for (int j = 0; j < N; j++) norm[i] += pow((double)y[i][j] - sum / N, 2) / N;
            if (!(fabs(norm[i] - 1) <= 1e-5))
                fail_msg("mean %g: norm %d has variance %.9g", (double)means[k], i, norm[i]);
        }
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

/* Half of the numbers of x are 1e-6, and half are -1e-6. With an eps of 0, the results of layer, group, rms and batch
 * norm (one channel) are 1 and -1. With a momentum of 0, the running statistics do not change. */
static void an_eps_and_a_momentum_may_be_zero(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 24 };
    const vkt_tensor none = { 0 };
    float x[N], y[N], running[2], start[2] = { 3, 5 };
    for (int i = 0; i < N; i++) x[i] = i % 2 ? 1e-6f : -1e-6f;
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    vkt_store *store = NULL;
    const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(1, N));
    const vkt_tensor column = vkt_reshape(g, in, vkt_shape3(N, 1, 1));
    const vkt_batch_norm_params batch = { .eps = VKT_ZERO,
                                          .momentum = VKT_ZERO,
                                          .running_mean = vkt_state(g, "mean", vkt_shape1(1)),
                                          .running_var = vkt_state(g, "var", vkt_shape1(1)) };
    const vkt_tensor out[] = { vkt_layer_norm(g, in, 1, none, none, VKT_ZERO),
                               vkt_group_norm(g, in, 2, none, none, VKT_ZERO), vkt_rms_norm(g, in, 1, none, VKT_ZERO),
                               vkt_batch_norm(g, column, &batch) };
    for (size_t i = 0; i < VKT_COUNT(out); i++) vkt_keep(g, out[i]);
    OK(vkt_store_create(harness_ctx, g, &store));
    for (uint32_t i = 0; i < 2; i++) OK(vkt_store_write(store, i, VKT_PART_VALUE, &start[i]));
    OK(vkt_program_create_guarded(harness_ctx, g, store, NULL, &p));
    OK(vkt_program_write(p, in, x, sizeof x));
    OK(vkt_program_run(p, &(vkt_run){ .rows = N }, NULL));
    for (size_t i = 0; i < VKT_COUNT(out); i++) {
        harness_read_f32(p, g, out[i], y);
        for (int j = 0; j < N; j++) assert_true(fabsf(y[j] - (j % 2 ? 1.0f : -1.0f)) <= 1e-5f);
    }
    for (uint32_t i = 0; i < 2; i++) {
        OK(vkt_store_read(store, i, VKT_PART_VALUE, &running[i]));
        assert_true(running[i] == start[i]);
    }
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    vkt_graph_destroy(&g);
}

enum { ROWS = 5, ROW_OUTS = 5 };

/* Computes layer norm, rms norm, softmax, log_softmax and causal softmax of rows of `size` numbers. Also computes the
 * gradient of x for each of these functions, where dy is x. A lane keeps its loads of a row in registers if the lane
 * has at most `held` loads, counted over all tensors. Returns the number of dispatches in which lanes keep loads. */
static uint32_t of_rows(const float *x, uint32_t size, uint32_t held, float *out)
{
    const vkt_limits real = harness_ctx->limits;
    vkt_traits traits = *real.traits;
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor none = { 0 };
    const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, size));
    const vkt_tensor y[ROW_OUTS] = { vkt_layer_norm(g, in, 1, none, none, 0), vkt_rms_norm(g, in, 1, none, 0),
                                     vkt_softmax(g, in, 1), vkt_log_softmax(g, in, 1),
                                     vkt_softmax_of_scores(g, in, 0.5f, true) };
    vkt_tensor all[2 * ROW_OUTS];
    for (uint32_t i = 0; i < ROW_OUTS; i++) {
        all[i] = y[i];
        OK(vkt_gradients(g, &y[i], &in, 1, &in, 1, &all[ROW_OUTS + i]));
    }
    for (uint32_t i = 0; i < 2 * ROW_OUTS; i++) vkt_keep(g, all[i]);
    traits.lanes_together = 256; /* else a CPU has few lanes with many loads each */
    traits.row_held = held;
    harness_ctx->limits.traits = &traits;
    const vkt_result made = vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p);
    harness_ctx->limits = real;
    OK(made);
    OK(vkt_program_write(p, in, x, (uint64_t)ROWS * size * sizeof *x));
    OK(vkt_program_run(p, &(vkt_run){ .rows = ROWS }, NULL));
    for (uint32_t i = 0; i < 2 * ROW_OUTS; i++) harness_read_f32(p, g, all[i], out + (uint64_t)i * ROWS * size);
    uint32_t n = 0;
    for (size_t i = 0; i < p->lowered.n; i++) {
        const vkt_dispatch *d = &p->lowered.list[i];
        const bool norm = strncmp(g->nodes[d->node]->op->name, "row_norm", 8) == 0;
        n += d->spec[norm ? ROW_NORM_SPEC_HELD : SOFTMAX_SPEC_HELD] != 0;
    }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    return n;
}

static void a_row_in_registers_changes_no_bit(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const uint32_t sizes[] = { 67, 100, 256, 403, 1024 };
    static float x[ROWS * 1024], out[2][2 * ROW_OUTS * ROWS * 1024];
    vkt_rng r = vkt_rng_make(7, VKT_STREAM_TEST, 0, 0);
    for (size_t i = 0; i < VKT_COUNT(x); i++) x[i] = vkt_rng_uniform(&r, -3, 3);
    for (size_t s = 0; s < VKT_COUNT(sizes); s++) {
        if (vkt_test_leaves_out(s, 2)) continue;
        assert_int_equal(of_rows(x, sizes[s], 0, out[0]), 0);
        assert_int_equal(of_rows(x, sizes[s], 64, out[1]), 2 * ROW_OUTS);
        assert_memory_equal(out[0], out[1], 2ull * ROW_OUTS * ROWS * sizes[s] * sizeof(float));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variance_far_from_zero_keeps_its_digits),
        cmocka_unit_test(an_eps_and_a_momentum_may_be_zero),
        cmocka_unit_test(a_row_in_registers_changes_no_bit),
    };
    return cmocka_run_group_tests_name("norms", tests, harness_setup, harness_teardown);
}
