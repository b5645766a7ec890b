/* Tensors that no single binding holds: larger than the 128 MiB of a storage buffer that Vulkan guarantees, on a device
 * that has no more (lavapipe). Skipped with VKT_TEST_SMALL=1, and where there is not enough memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/harness.h"
#include "support/host.h"

static vkt_ctx *ctx;

/* A graph of two inputs and one result, and their numbers on the host. */
typedef struct job {
    vkt_graph *g;
    vkt_program *p;
    vkt_tensor a, b, y;
    size_t n_a, n_b, n_y; /* elements */
    float *in_a, *in_b, *out;
} job;

static void skip_if_small(void)
{
    harness_needs(ctx);
    if (vkt_env_int("VKT_TEST_SMALL", 0)) {
        puts("SKIPPED: tensors larger than a binding: VKT_TEST_SMALL=1");
        skip();
    }
}

/* Uniform in [-1, 1). */
static float *numbers(size_t n, uint32_t stream)
{
    float *f = malloc(n * sizeof *f);
    assert_non_null(f);
    vkt_rng r = vkt_rng_make(1, VKT_STREAM_TEST, 5, stream);
    for (size_t i = 0; i < n; i++) f[i] = vkt_rng_uniform(&r, -1, 1);
    return f;
}

static size_t elements(const job *j, vkt_tensor t)
{
    return (size_t)vkt_shape_elements(vkt_tensor_shape(j->g, t));
}

static void job_begin(job *j, vkt_shape a, vkt_shape b)
{
    const vkt_host h = vkt_test_host();
    *j = (job){ NULL };
    assert_int_equal(vkt_graph_create(&h, &j->g), VKT_OK);
    j->a = vkt_input(j->g, "a", VKT_F32, VKT_ROWS, a);
    j->b = vkt_input(j->g, "b", VKT_F32, VKT_ROWS, b);
    j->n_a = elements(j, j->a);
    j->n_b = elements(j, j->b);
    j->in_a = numbers(j->n_a, 1);
    j->in_b = numbers(j->n_b, 2);
}

/* Runs it; false where the device has not the memory. */
static bool job_run(job *j, vkt_tensor y)
{
    j->y = y;
    j->n_y = elements(j, y);
    vkt_keep(j->g, y);
    const vkt_result r = vkt_program_create(ctx, j->g, NULL, NULL, &j->p);
    if (r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY) return false;
    assert_int_equal(r, VKT_OK);
    j->out = malloc(j->n_y * sizeof *j->out);
    assert_non_null(j->out);
    assert_int_equal(vkt_program_write(j->p, j->a, j->in_a, j->n_a * sizeof *j->in_a), VKT_OK);
    assert_int_equal(vkt_program_write(j->p, j->b, j->in_b, j->n_b * sizeof *j->in_b), VKT_OK);
    assert_int_equal(vkt_program_run(j->p, NULL, NULL), VKT_OK);
    assert_int_equal(vkt_program_read(j->p, y, j->out, j->n_y * sizeof *j->out), VKT_OK);
    return true;
}

static void job_end(job *j)
{
    vkt_program_destroy(&j->p);
    vkt_graph_destroy(&j->g);
    free(j->in_a);
    free(j->in_b);
    free(j->out);
}

static void skip_for_memory(job *j)
{
    puts("SKIPPED: tensors larger than a binding: not enough memory");
    job_end(j);
    skip();
}

static void add_larger_than_a_binding(void **state)
{
    (void)state;
    skip_if_small();
    const vkt_shape s = vkt_shape2(6007, 6151); /* 141 MiB, rows that end nowhere near a window's end */
    job j;
    job_begin(&j, s, s);
    if (!job_run(&j, vkt_add(j.g, j.a, j.b))) skip_for_memory(&j);
    for (size_t i = 0; i < j.n_y; i++)
        if (j.out[i] != j.in_a[i] + j.in_b[i])
            fail_msg("element %zu is %g, wanted %g", i, (double)j.out[i], (double)(j.in_a[i] + j.in_b[i]));
    job_end(&j);
}

/* A row is added to each row; then once more through BATCH_LAST, where the same memory runs along the other axis. */
static void broadcasting_larger_than_a_binding(void **state)
{
    (void)state;
    skip_if_small();
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        const uint32_t columns = 6151;
        job j;
        job_begin(&j, vkt_shape2(6007, columns), vkt_shape1(columns));
        const vkt_tensor y = vkt_add(j.g, vkt_to_layout(j.g, j.a, (vkt_layout)layout), j.b);
        if (!job_run(&j, vkt_to_layout(j.g, y, VKT_ROWS))) skip_for_memory(&j);
        for (size_t i = 0; i < j.n_y; i++)
            if (j.out[i] != j.in_a[i] + j.in_b[i % columns])
                fail_msg("layout %d: element %zu is %g, wanted %g", layout, i, (double)j.out[i],
                         (double)(j.in_a[i] + j.in_b[i % columns]));
        job_end(&j);
    }
}

/* The sum of all elements, over windows, against a double. */
static void sum_larger_than_a_binding(void **state)
{
    (void)state;
    skip_if_small();
    job j;
    job_begin(&j, vkt_shape2(6007, 6151), vkt_shape1(1));
    if (!job_run(&j, vkt_mul(j.g, vkt_sum(j.g, j.a), j.b))) skip_for_memory(&j);
    double sum = 0, size = 0;
    for (size_t i = 0; i < j.n_a; i++) {
        sum += (double)j.in_a[i];
        size += fabs((double)j.in_a[i]);
    }
    assert_true(fabs((double)j.out[0] - sum * (double)j.in_b[0]) <= 1e-7 * size);
    job_end(&j);
}

/* SEMANTICS.md's first program: 10000x200 @ 200x10000, a result of 400 MB. Each of 20,000 random elements and the
 * corners is compared with its sum of 200 products in double. */
static void product_larger_than_a_binding(void **state)
{
    (void)state;
    skip_if_small();
    enum { M = 10000, K = 200, N = 10000, SPOTS = 20000 };
    job j;
    job_begin(&j, vkt_shape2(M, K), vkt_shape2(K, N));
    if (!job_run(&j, vkt_matmul(j.g, j.a, j.b, false, false))) skip_for_memory(&j);
    vkt_rng r = vkt_rng_make(1, VKT_STREAM_TEST, 6, 0);
    for (uint32_t spot = 0; spot < SPOTS; spot++) {
        const uint32_t m = spot < 4 ? spot / 2 * (M - 1) : vkt_rng_range(&r, 0, M - 1);
        const uint32_t n = spot < 4 ? spot % 2 * (N - 1) : vkt_rng_range(&r, 0, N - 1);
        double sum = 0;
        for (size_t k = 0; k < K; k++) sum += (double)j.in_a[m * K + k] * (double)j.in_b[k * N + n];
        /* Partial sums are below 40 (their deviation is 200^(1/2) / 3); roundings add up like a random walk. */
        if (!(fabs((double)j.out[(size_t)m * N + n] - sum) <= sqrt(200) * 40 * 0x1p-24))
            fail_msg("(%u,%u) is %.9g, wanted %.9g", m, n, (double)j.out[(size_t)m * N + n], sum);
    }
    job_end(&j);
}

static void nothing_leaks(void **state)
{
    (void)state;
    vkt_ctx_destroy(&ctx);
    vkt_test_no_messages_and_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_larger_than_a_binding),
        cmocka_unit_test(broadcasting_larger_than_a_binding),
        cmocka_unit_test(sum_larger_than_a_binding),
        cmocka_unit_test(product_larger_than_a_binding),
        cmocka_unit_test(nothing_leaks),
    };
    harness_open(&ctx);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
