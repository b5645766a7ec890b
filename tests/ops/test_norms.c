/* Variances and norms in extreme cases: a mean far from zero, an eps of 0 and a momentum of 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "ops/ops.h"

#define OK(call) assert_int_equal((call), VKT_OK)

/* Writes n numbers in [mean, mean + spread). `spread` is a multiple of the spacing of floats at `mean`. *var is their
 * unbiased variance. */
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

/* The mean is up to two million standard deviations. The mean itself is rounded by up to a tenth of a deviation, but
 * the variance keeps its digits. So do the variances that batch, layer and group norm divide by. */
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
        for (int i = 0; i < 3; i++) { /* about y's own mean, because the mean of x was rounded */
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

/* Half of the numbers of x are 1e-6, half are -1e-6. With an eps of 0, layer, group, rms and batch norm (one channel)
 * make +-1 of them. With a momentum of 0, the running statistics do not change. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variance_far_from_zero_keeps_its_digits),
        cmocka_unit_test(an_eps_and_a_momentum_may_be_zero),
    };
    return cmocka_run_group_tests_name("norms", tests, harness_setup, harness_teardown);
}
