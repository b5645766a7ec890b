/* Products of VKT_PRECISION_F32_SPLIT: the error bound of shaders/lib/blocks_split.glsl, operands that are not finite,
 * and what happens without cooperative matrices. (test_shared.c and test_ops.c check every kernel.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "abi/blocks.abi.h"
#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

static bool has_matrices(void)
{
    const bool has = harness_ctx && harness_ctx->limits.coop.m;
    assert_true(has || !vkt_env_int("VKT_REQUIRE_COOP", 0)); /* tests/run.sh sets VKT_REQUIRE_COOP */
    return has;
}

/* A product y = x w^T of R x K by C x K elements. */
enum { R = 70, C = 67, K = 83 };
typedef struct product {
    float x[R * K], w[C * K], y[R * C];
} product;

/* Computes s->y by a program of this precision, by COOP if `coop`, else by SHARED. Returns how many dispatches are by
 * cooperative matrices. */
static size_t compute(product *s, vkt_precision precision, bool coop)
{
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_choices own = harness_ctx->limits.choices;
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(R, K)),
                     w = vkt_input(g, "w", VKT_F32, VKT_ROWS, vkt_shape2(C, K)),
                     y = vkt_linear(g, x, w, (vkt_tensor){ 0 });
    size_t by_matrices = 0;
    vkt_keep(g, y);
    harness_ctx->limits.choices.force = coop ? VKT_V(COOP) : VKT_V(SHARED);
    OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .precision = precision }, &p));
    harness_ctx->limits.choices = own;
    OK(vkt_program_write(p, x, s->x, sizeof s->x));
    OK(vkt_program_write(p, w, s->w, sizeof s->w));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, y, s->y, sizeof s->y));
    for (size_t i = 0; i < p->lowered.n; i++)
        by_matrices += (vkt_kernel_get((vkt_kernel_id)p->lowered.list[i].kernel)->flags & VKT_KF_COOP) != 0;
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    return by_matrices;
}

/* ---- the error bound ---- */

/* Returns the largest magnitude of `rows` rows among the k of the same tile as k. */
static double largest(const float *m, uint32_t rows, uint32_t k)
{
    double most = 0;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = k / BLOCKS_SPLIT_K * BLOCKS_SPLIT_K; j < K && j / BLOCKS_SPLIT_K == k / BLOCKS_SPLIT_K; j++)
            most = fmax(most, fabs((double)m[i * K + j]));
    return most;
}

/* The largest error of an element, divided by its bound. `split`: the bound of split operands. `sums`: of an f32 sum,
 * whose products and additions each round to 2^-24, and each step of a tile may add one rounding more. */
typedef struct ratios {
    double split, sums;
} ratios;

static ratios measure(const product *s)
{
    ratios worst = { 0 };
    for (uint32_t r = 0; r < R; r++)
        for (uint32_t c = 0; c < C; c++) {
            double sum = 0, magnitude = 0, split = 0;
            for (uint32_t k = 0; k < K; k++) {
                const double a = (double)s->x[r * K + k], b = (double)s->w[c * K + k];
                sum += a * b;
                magnitude += fabs(a * b);
                split += 3 * 0x1p-22 * fabs(a * b) +
                         0x1p-50 * (largest(s->x, R, k) * fabs(b) + fabs(a) * largest(s->w, C, k));
            }
            const double error = fabs((double)s->y[r * C + c] - sum);
            worst.sums = fmax(worst.sums, error / magnitude);
            worst.split = fmax(worst.split, error / split);
        }
    return worst;
}

static void fill(product *s, float (*x)(vkt_rng *r, uint32_t row, uint32_t k),
                 float (*w)(vkt_rng *r, uint32_t row, uint32_t k))
{
    vkt_rng r = vkt_rng_make(11, 0, 0, 0);
    for (uint32_t i = 0; i < R * K; i++) s->x[i] = x(&r, i / K, i % K);
    for (uint32_t i = 0; i < C * K; i++) s->w[i] = w(&r, i / K, i % K);
}

static float ordinary(vkt_rng *r, uint32_t row, uint32_t k)
{
    (void)row, (void)k;
    return vkt_rng_uniform(r, -1, 1);
}

static void probe(void **state)
{
    (void)state;
    if (!has_matrices()) return;
    static product s;
    fill(&s, ordinary, ordinary);
    print_message("by matrices %zu\n", compute(&s, VKT_PRECISION_F32_SPLIT, true));
    ratios a = measure(&s);
    compute(&s, VKT_PRECISION_F32, false);
    ratios b = measure(&s);
    print_message("split %g %g f32 %g %g\n", a.split, a.sums, b.split, b.sums);
    memset(s.w, 0, sizeof s.w);
    for (uint32_t i = 0; i < C; i++) s.w[i * K + i] = 1;
    compute(&s, VKT_PRECISION_F32_SPLIT, true);
    for (int i = 0; i < 8; i++) print_message("%a %a\n", (double)s.x[i], (double)s.y[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe),
    };
    return cmocka_run_group_tests_name("split operands", tests, harness_setup, harness_teardown);
}
