/* Values larger than one binding can be (128 MiB on lavapipe), and sums longer than Mesa 22.3 counts loop turns: at
 * their real size, on spot checks. VKT_TEST_SMALL=1 leaves the largest out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/philox.h"
#include "ops/harness.h"
#include "support/host.h"

static vkt_ctx *ctx; /* one for all tests; NULL: no device */

static float *random_floats(uint64_t n, uint32_t stream)
{
    vkt_rng r = vkt_rng_make(3, VKT_STREAM_TEST, stream, 0);
    float *f = malloc(n * sizeof *f);
    assert_non_null(f);
    for (uint64_t i = 0; i < n; i++) f[i] = vkt_rng_uniform(&r, -1, 1);
    return f;
}

/* C = A B by rows, against dot products in double for about 3000 of its elements. */
static void check_product(uint32_t m, uint32_t n, uint32_t k)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_program *p;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor a = vkt_input(g, "a", VKT_F32, VKT_ROWS, vkt_shape2(m, k));
    const vkt_tensor b = vkt_input(g, "b", VKT_F32, VKT_ROWS, vkt_shape2(k, n));
    const vkt_tensor c = vkt_matmul(g, a, b, false, false);
    vkt_keep(g, c);
    assert_int_equal(vkt_program_create(ctx, g, NULL, NULL, &p), VKT_OK);
    const uint64_t count = (uint64_t)m * n;
    float *fa = random_floats((uint64_t)m * k, 1), *fb = random_floats((uint64_t)k * n, 2);
    float *fc = malloc(count * sizeof *fc);
    assert_non_null(fc);
    assert_int_equal(vkt_program_write(p, a, fa, (uint64_t)m * k * sizeof *fa), VKT_OK);
    assert_int_equal(vkt_program_write(p, b, fb, (uint64_t)k * n * sizeof *fb), VKT_OK);
    assert_int_equal(vkt_program_run(p, &(vkt_run){ .rows = 0 }, NULL), VKT_OK);
    assert_int_equal(vkt_program_read(p, c, fc, count * sizeof *fc), VKT_OK);
    for (uint64_t i = 0; i < count; i += 1 + count / 3000) {
        const uint64_t row = i / n, column = i % n;
        double sum = 0, magnitude = 0;
        for (uint64_t j = 0; j < k; j++) {
            const double term = (double)fa[row * k + j] * (double)fb[j * n + column];
            sum += term;
            magnitude += fabs(term);
        }
        /* Higham, Accuracy and Stability of Numerical Algorithms, 3.5, with sqrt(k) for independent roundings. */
        assert_true(fabs((double)fc[i] - sum) <= 4 * sqrt((double)k) * 0x1p-24 * magnitude);
    }
    free(fa);
    free(fb);
    free(fc);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void a_product_larger_than_a_binding(void **state)
{
    (void)state;
    harness_needs(ctx);
    if (vkt_env_int("VKT_TEST_SMALL", 0)) skip();
    check_product(10000, 10000, 200); /* 400 MB */
}

static void a_sum_longer_than_loops_may_be(void **state)
{
    (void)state;
    harness_needs(ctx);
    check_product(5, 7, 450001);
}

static void more_rows_than_work_groups(void **state)
{
    (void)state;
    harness_needs(ctx);
    if (vkt_env_int("VKT_TEST_SMALL", 0)) skip();
    check_product(5000000, 1, 2);
}

/* A data set of 157 MB: rows on both sides of the first window's end. */
static void a_table_larger_than_a_binding(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { ROWS = 200000, PIXELS = 784, BATCH = 64 };
    const vkt_host h = vkt_test_host();
    uint8_t *pixels = malloc((size_t)ROWS * PIXELS);
    assert_non_null(pixels);
    for (size_t i = 0; i < (size_t)ROWS * PIXELS; i++) pixels[i] = (uint8_t)(i * 2654435761u >> 24);
    uint32_t order[BATCH];
    for (uint32_t i = 0; i < BATCH; i++) order[i] = i % 2 ? ROWS - 1 - i * 1500 : i * 3000 % ROWS;
    vkt_array *table, *chosen;
    const vkt_array_params tp = { .dtype = VKT_U8, .shape = vkt_shape2(ROWS, PIXELS), .data = pixels };
    const vkt_array_params cp = { .dtype = VKT_U32, .shape = vkt_shape1(BATCH), .data = order };
    assert_int_equal(vkt_array_create(ctx, &tp, &table), VKT_OK);
    assert_int_equal(vkt_array_create(ctx, &cp, &chosen), VKT_OK);
    vkt_graph *g;
    vkt_program *p;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_binding arrays[] = { { vkt_external(g, "table", VKT_U8, tp.shape), table },
                                   { vkt_external(g, "order", VKT_U32, cp.shape), chosen } };
    const float scale = 2, shift = -1;
    const vkt_tensor y =
        vkt_gather_rows(g, arrays[0].tensor, arrays[1].tensor, BATCH, vkt_shape3(1, 28, 28), &scale, &shift);
    vkt_keep(g, y);
    const vkt_program_params params = { .arrays = arrays, .n_arrays = 2 };
    assert_int_equal(vkt_program_create(ctx, g, NULL, &params, &p), VKT_OK);
    assert_int_equal(vkt_program_run(p, &(vkt_run){ .rows = BATCH - 3 }, NULL), VKT_OK);
    float *got = malloc(sizeof(float) * BATCH * PIXELS);
    assert_non_null(got);
    assert_int_equal(vkt_program_read(p, y, got, sizeof(float) * BATCH * PIXELS), VKT_OK);
    for (uint32_t i = 0; i < BATCH * PIXELS; i++) {
        const uint32_t b = i / PIXELS;
        const float want = b < BATCH - 3 ? 2 * (float)pixels[(size_t)order[b] * PIXELS + i % PIXELS] - 1 : 0;
        assert_true(got[i] == want);
    }
    free(got);
    free(pixels);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    vkt_array_destroy(&table);
    vkt_array_destroy(&chosen);
}

static int open_device(void **state)
{
    (void)state;
    harness_open(&ctx);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    vkt_ctx_destroy(&ctx);
    return vkt_test_is_clean() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_larger_than_a_binding),
        cmocka_unit_test(a_sum_longer_than_loops_may_be),
        cmocka_unit_test(more_rows_than_work_groups),
        cmocka_unit_test(a_table_larger_than_a_binding),
    };
    return cmocka_run_group_tests_name("large", tests, open_device, close_device);
}
