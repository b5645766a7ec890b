/* Tests products of VKT_PRECISION_F32_SPLIT, which split each f32 operand into two f16, a high part and a low part.
 * Tests the error bound of shaders/lib/blocks_split.glsl, operands that are not finite, and what happens without
 * cooperative matrices. (test_shared.c and test_ops.c check every kernel.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "abi/blocks.abi.h"
#include "base/half.h"
#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

/* A product y = x w^T. x has R x K elements, w has C x K, and y has R x C. */
enum { R = 70, C = 67, K = 83 };
typedef struct product {
    float x[R * K], w[C * K], y[R * C];
} product;

/* Computes s->y by a program of this precision. The variant is COOP if `coop`, else SHARED. Returns the number of
 * dispatches that use cooperative matrices. */
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

/* Returns the largest finite magnitude in the `rows` rows of m, among the columns of the tile that has column k. */
static double largest(const float *m, uint32_t rows, uint32_t k)
{
    const uint32_t first = k / BLOCKS_SPLIT_K * BLOCKS_SPLIT_K;
    double most = 0;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = first; j < VKT_MIN(first + BLOCKS_SPLIT_K, K); j++)
            if (isfinite(m[i * K + j])) most = fmax(most, fabs((double)m[i * K + j]));
    return most;
}

/* Error bounds, relative to sum |a b|. F32: up to K roundings of f32 products and additions. SPLIT: 2^-21 for the split
 * of the operands (blocks_split.glsl), and 2^-21, which is 8 roundings, for the f32 sums. */
#define F32 (K * 0x1p-24)
#define SPLIT (0x1p-21 + 0x1p-21)

/* Divides the error of each finite element of y by the bound of this element, and returns the largest quotient. An
 * element of y must be finite if and only if it is finite in the reference. `split`: the bound is SPLIT plus the
 * second term of the bound in blocks_split.glsl, 2^-38 (A |b| + |a| B). Otherwise the bound is F32. */
static double worst_of(const product *s, bool split)
{
    double a[K], b[K], worst = 0;
    for (uint32_t k = 0; k < K; k++) {
        a[k] = largest(s->x, R, k);
        b[k] = largest(s->w, C, k);
    }
    for (uint32_t r = 0; r < R; r++)
        for (uint32_t c = 0; c < C; c++) {
            const float *x = s->x + r * K, *w = s->w + c * K, y = s->y[r * C + c];
            double sum = 0, bound = 0x1p-126; /* smaller f32 numbers may be flushed to zero */
            for (uint32_t k = 0; k < K; k++) {
                const double u = (double)x[k], v = (double)w[k];
                sum += u * v;
                bound += (split ? SPLIT : F32) * fabs(u * v);
                if (split) bound += 0x1p-38 * (a[k] * fabs(v) + fabs(u) * b[k]);
            }
            const bool is_finite = isfinite(sum) && fabs(sum) < 0x1.fffffep127;
            assert_int_equal(isfinite(y) != 0, is_finite);
            if (is_finite) worst = fmax(worst, fabs((double)y - sum) / bound);
        }
    return worst;
}

typedef float (*number)(vkt_rng *r, uint32_t row, uint32_t k);

static float ordinary(vkt_rng *r, uint32_t row, uint32_t k)
{
    (void)row, (void)k;
    return vkt_rng_uniform(r, -1, 1);
}

static float gradient(vkt_rng *r, uint32_t row, uint32_t k)
{
    return 1e-30f * ordinary(r, row, k);
}

static float activation(vkt_rng *r, uint32_t row, uint32_t k)
{
    return 1e4f * fabsf(ordinary(r, row, k));
}

/* Each tile has rows of small numbers and rows of large numbers. */
static float mixed_rows(vkt_rng *r, uint32_t row, uint32_t k)
{
    return row % 3 ? activation(r, row, k) : gradient(r, row, k);
}

/* A tile has BLOCKS_SPLIT_K columns. In each tile with k < 48, some columns have small numbers, and the others have
 * large numbers. The other tiles have only small numbers. */
static float mixed_k(vkt_rng *r, uint32_t row, uint32_t k)
{
    return k % 3 && k < 48 ? activation(r, row, k) : gradient(r, row, k);
}

/* Most magnitudes are from 2^-40 to 1, about equally many in most octaves. */
static float wide(vkt_rng *r, uint32_t row, uint32_t k)
{
    return ldexpf(ordinary(r, row, k), -(int)vkt_rng_range(r, 0, 39));
}

/* huge and tiny: numbers near the ends of the range of f32. The product of a huge and a tiny number is an ordinary
 * number, but the scales of the operands are extreme. */
static float huge(vkt_rng *r, uint32_t row, uint32_t k)
{
    return 0x1.fp127f * ordinary(r, row, k);
}

static float tiny(vkt_rng *r, uint32_t row, uint32_t k)
{
    return ldexpf(vkt_rng_uniform(r, 1, 2) * (ordinary(r, row, k) < 0 ? -1.0f : 1.0f), -126);
}

static float unit(vkt_rng *r, uint32_t row, uint32_t k)
{
    (void)r;
    return row == k;
}

static float zero(vkt_rng *r, uint32_t row, uint32_t k)
{
    (void)r, (void)row, (void)k;
    return 0;
}

static void fill(product *s, number x, number w)
{
    vkt_rng r = vkt_rng_make(11, 0, 0, 0);
    for (uint32_t i = 0; i < R * K; i++) s->x[i] = x(&r, i / K, i % K);
    for (uint32_t i = 0; i < C * K; i++) s->w[i] = w(&r, i / K, i % K);
}

static const struct {
    const char *name;
    number x, w;
} operands[] = {
    { "ordinary", ordinary, ordinary },
    { "gradients 1e-30, activations 1e4", gradient, activation },
    { "rows of 1e-30 and 1e4", mixed_rows, ordinary },
    { "k of 1e-30 and 1e4, both operands", mixed_k, mixed_k },
    { "40 octaves, ordinary", wide, ordinary },
    { "40 octaves, both operands", wide, wide },
    { "2^127 and 2^-126", huge, tiny },
    { "2^-126 and 2^127", tiny, huge },
    { "a unit matrix", ordinary, unit },
    { "a product of zero", zero, huge },
};

/* For each pair of operands, checks the error of the product that splits the operands, and the error of the f32 kernel.
 * Both must be below their bounds (worst_of). The test also prints the error of the f32 kernel as a fraction of the
 * bound of split operands. */
static void errors_stay_below_the_bound(void **state)
{
    (void)state;
    if (!harness_has_matrices()) return;
    static product s;
    for (size_t i = 0; i < VKT_COUNT(operands); i++) {
        fill(&s, operands[i].x, operands[i].w);
        assert_int_equal(compute(&s, VKT_PRECISION_F32, false), 0);
        const double f32 = worst_of(&s, false), beside = worst_of(&s, true);
        assert_int_equal(compute(&s, VKT_PRECISION_F32_SPLIT, true), 1);
        const double split = worst_of(&s, true);
        print_message("%-34s %.3f of the bound; f32: %.3f of it, %.3f of its own\n", operands[i].name, split, beside,
                      f32);
        assert_true(f32 <= 1 && split <= 1);
    }
}

/* In a program of f16, an operand is one f16 without a low part. The error of this program is more than 10 times the
 * bound SPLIT. So errors_stay_below_the_bound would fail if low parts were lost. */
static void the_bound_needs_the_low_parts(void **state)
{
    (void)state;
    if (!harness_has_matrices()) return;
    static product s;
    fill(&s, ordinary, ordinary);
    assert_int_equal(compute(&s, VKT_PRECISION_F16, true), 1);
    assert_true(worst_of(&s, true) > 10);
    /* Now w is exact in f16, so only the low part of x is lost. The error is still more than 10 times the bound. */
    for (uint32_t i = 0; i < C * K; i++) s.w[i] = vkt_f32_from_half(vkt_half_from_f32(s.w[i]));
    assert_int_equal(compute(&s, VKT_PRECISION_F16, true), 1);
    assert_true(worst_of(&s, true) > 10);
}

/* ---- numbers that are not finite ---- */

static void only_results_that_touch_them_are_not_finite(void **state)
{
    (void)state;
    if (!harness_has_matrices()) return;
    static product s;
    fill(&s, activation, ordinary);
    s.x[3 * K + 5] = INFINITY;
    s.x[40 * K + 5] = -INFINITY;
    s.x[41 * K + 70] = NAN;
    s.x[69 * K + 82] = -NAN;
    s.w[20 * K + 6] = INFINITY;
    s.w[66 * K + 0] = NAN;
    compute(&s, VKT_PRECISION_F32_SPLIT, true);
    assert_true(worst_of(&s, true) <= 1);
}

static void large_results_are_infinite(void **state)
{
    (void)state;
    if (!harness_has_matrices()) return;
    static product s;
    fill(&s, zero, zero);
    for (uint32_t i = 0; i < C; i++) {
        s.x[i * K + i] = 1e30f;
        s.w[i * K + i] = i % 3 == 0 ? 1e20f : i % 3 == 1 ? -1e20f : 0x1p20f;
    }
    compute(&s, VKT_PRECISION_F32_SPLIT, true);
    for (uint32_t i = 0; i < C; i++)
        if (i % 3 < 2) assert_true(s.y[i * C + i] == (i % 3 ? -INFINITY : INFINITY));
    assert_true(worst_of(&s, true) <= 1);
}

/* ---- programs ---- */

static unsigned warnings;

static void count_line(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    warnings += level == VKT_LOG_WARN && strstr(line, "precision f32-split: ") != NULL;
}

/* Makes a program of this precision. Returns a hash of its kernels and of the storage of its values. */
static uint64_t hash_of(vkt_precision precision)
{
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(R, 64)),
                     w = vkt_input(g, "w", VKT_F32, VKT_ROWS, vkt_shape2(C, 64));
    uint64_t h = VKT_HASH_START;
    vkt_keep(g, vkt_relu(g, vkt_linear(g, x, w, (vkt_tensor){ 0 })));
    OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .precision = precision }, &p));
    for (size_t i = 0; i < p->lowered.n; i++) {
        h = vkt_hash(h, &p->lowered.list[i].kernel, sizeof p->lowered.list[i].kernel);
        h = vkt_hash(h, &p->lowered.list[i].storage, sizeof p->lowered.list[i].storage);
    }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    return h;
}

/* On a device without cooperative matrices, a program of f32-split has the kernels of a program of f32. The context
 * logs one warning about this, even if there are several programs. */
static void without_matrices_products_are_those_of_f32(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_limits own = harness_ctx->limits;
    const vkt_host host = harness_ctx->host;
    harness_ctx->limits.coop = (vkt_coop){ 0 };
    harness_ctx->host.log = count_line;
    harness_ctx->logged_no_split = false;
    const uint64_t f32 = hash_of(VKT_PRECISION_F32);
    assert_int_equal(warnings, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(hash_of(VKT_PRECISION_F32_SPLIT) == f32);
        assert_int_equal(warnings, 1);
    }
    harness_ctx->limits = own;
    harness_ctx->host = host;
}

/* Without a forced variant, a GPU that has matrices splits operands in programs of VKT_PRECISION_F32_SPLIT. A CPU does
 * not. */
static void gpus_split_operands(void **state)
{
    (void)state;
    vkt_limits gpu = { .subgroup_size = 32,
                       .max_workgroup_lanes = 1024,
                       .max_groups = 65535,
                       .shared_bytes = 49152,
                       .max_storage_range_bytes = 1u << 30,
                       .coop = { 16, 16, 16 } };
    for (int on_gpu = 0; on_gpu < 2; on_gpu++)
        for (int precision = VKT_PRECISION_F32; precision <= VKT_PRECISION_F32_SPLIT; precision++) {
            vkt_graph *g = harness_graph();
            vkt_emit e;
            const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(64, 32, 9, 9)),
                             w = vkt_input(g, "w", VKT_F32, VKT_ROWS, vkt_shape4(64, 32, 3, 3));
            vkt_keep(g, vkt_conv2d(g, x, w, (vkt_tensor){ 0 }, NULL));
            gpu.traits = &vkt_class_traits[on_gpu ? VKT_CLASS_OTHER : VKT_CLASS_CPU];
            OK(vkt_lower(g, &gpu, NULL, (vkt_storage){ .precision = (vkt_precision)precision }, &e));
            uint32_t splits = 0;
            for (size_t i = 0; i < e.n; i++) splits += e.list[i].kernel == VKT_K_CONV2D_SPLIT;
            assert_int_equal(splits, on_gpu && precision == VKT_PRECISION_F32_SPLIT);
            vkt_lower_free(&e);
            vkt_graph_destroy(&g);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_below_the_bound),
        cmocka_unit_test(the_bound_needs_the_low_parts),
        cmocka_unit_test(only_results_that_touch_them_are_not_finite),
        cmocka_unit_test(large_results_are_infinite),
        cmocka_unit_test(without_matrices_products_are_those_of_f32),
        cmocka_unit_test(gpus_split_operands),
    };
    return cmocka_run_group_tests_name("split operands", tests, harness_setup, harness_teardown);
}
