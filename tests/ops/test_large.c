/* Values larger than one binding can be (the 128 MiB of a storage buffer that Vulkan guarantees, and lavapipe has), and
 * sums longer than Mesa 22.3 counts loop turns: at their real size. VKT_TEST_SMALL=1 leaves the largest out, and so
 * does a device without the memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/harness.h"
#include "support/host.h"

static float *random_floats(uint64_t n, uint32_t stream)
{
    vkt_rng r = vkt_rng_make(3, VKT_STREAM_TEST, stream, 0);
    float *f = malloc(n * sizeof *f);
    assert_non_null(f);
    for (uint64_t i = 0; i < n; i++) f[i] = vkt_rng_uniform(&r, -1, 1);
    return f;
}

static void skip_if_small(void)
{
    harness_needs(harness_ctx);
    if (vkt_env_int("VKT_TEST_SMALL", 0)) {
        puts("SKIPPED: tensors larger than a binding: VKT_TEST_SMALL is set");
        skip();
    }
}

/* A graph of two inputs and one result, and their numbers on the host. */
typedef struct job {
    vkt_graph *g;
    vkt_program *p;
    vkt_tensor a, b, y;
    size_t n_a, n_b, n_y; /* elements */
    float *in_a, *in_b, *out;
} job;

static size_t elements(const job *j, vkt_tensor t)
{
    return (size_t)vkt_shape_elements(vkt_tensor_shape(j->g, t));
}

static void job_begin(job *j, vkt_layout layout, vkt_shape a, vkt_shape b)
{
    const vkt_host h = vkt_test_host();
    *j = (job){ NULL };
    assert_int_equal(vkt_graph_create(&h, &j->g), VKT_OK);
    j->a = vkt_input(j->g, "a", VKT_F32, layout, a);
    j->b = vkt_input(j->g, "b", VKT_F32, VKT_ROWS, b);
    j->n_a = elements(j, j->a);
    j->n_b = elements(j, j->b);
    j->in_a = random_floats(j->n_a, 1);
    j->in_b = random_floats(j->n_b, 2);
}

/* Runs it; false where the device has not the memory. */
static bool job_run(job *j, vkt_tensor y)
{
    j->y = y;
    j->n_y = elements(j, y);
    vkt_keep(j->g, y);
    const vkt_result r = vkt_program_create(harness_ctx, j->g, NULL, NULL, &j->p);
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

/* ---- elementwise ops and sums ---- */

static void an_elementwise_op_larger_than_a_binding(void **state)
{
    (void)state;
    skip_if_small();
    const vkt_shape s = vkt_shape2(6007, 6151); /* 141 MiB, rows that end nowhere near a window's end */
    job j;
    job_begin(&j, VKT_ROWS, s, s);
    if (!job_run(&j, vkt_add(j.g, j.a, j.b))) skip_for_memory(&j);
    for (size_t i = 0; i < j.n_y; i++)
        if (j.out[i] != j.in_a[i] + j.in_b[i])
            fail_msg("element %zu is %g, wanted %g", i, (double)j.out[i], (double)(j.in_a[i] + j.in_b[i]));
    job_end(&j);
}

/* A row is added to each row; and once more with the batch last, where memory runs along the other axis. */
static void broadcasting_larger_than_a_binding(void **state)
{
    (void)state;
    skip_if_small();
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        const uint32_t columns = 6151;
        job j;
        job_begin(&j, (vkt_layout)layout, vkt_shape2(6007, columns), vkt_shape1(columns));
        if (!job_run(&j, vkt_add(j.g, j.a, j.b))) skip_for_memory(&j);
        for (size_t i = 0; i < j.n_y; i++)
            if (j.out[i] != j.in_a[i] + j.in_b[i % columns])
                fail_msg("layout %d: element %zu is %g, wanted %g", layout, i, (double)j.out[i],
                         (double)(j.in_a[i] + j.in_b[i % columns]));
        job_end(&j);
    }
}

/* The sum of all elements, over windows, against a double. */
static void a_sum_larger_than_a_binding(void **state)
{
    (void)state;
    skip_if_small();
    job j;
    job_begin(&j, VKT_ROWS, vkt_shape2(6007, 6151), vkt_shape1(1));
    if (!job_run(&j, vkt_mul(j.g, vkt_sum(j.g, j.a), j.b))) skip_for_memory(&j);
    double sum = 0, size = 0;
    for (size_t i = 0; i < j.n_a; i++) {
        sum += (double)j.in_a[i];
        size += fabs((double)j.in_a[i]);
    }
    assert_true(fabs((double)j.out[0] - sum * (double)j.in_b[0]) <= 1e-7 * size);
    job_end(&j);
}

/* ---- products ---- */

/* C = A B by rows, against dot products in double for about 3000 of its elements. */
static void check_product(uint32_t m, uint32_t n, uint32_t k)
{
    job j;
    job_begin(&j, VKT_ROWS, vkt_shape2(m, k), vkt_shape2(k, n));
    if (!job_run(&j, vkt_matmul(j.g, j.a, j.b, false, false))) skip_for_memory(&j);
    for (uint64_t i = 0; i < j.n_y; i += 1 + j.n_y / 3000) {
        const uint64_t row = i / n, column = i % n;
        double sum = 0, magnitude = 0;
        for (uint64_t l = 0; l < k; l++) {
            const double term = (double)j.in_a[row * k + l] * (double)j.in_b[l * n + column];
            sum += term;
            magnitude += fabs(term);
        }
        /* Higham, Accuracy and Stability of Numerical Algorithms, 3.5, with sqrt(k) for independent roundings. */
        assert_true(fabs((double)j.out[i] - sum) <= 4 * sqrt((double)k) * 0x1p-24 * magnitude);
    }
    job_end(&j);
}

static void a_product_larger_than_a_binding(void **state)
{
    (void)state;
    skip_if_small();
    check_product(10000, 10000, 200); /* 400 MB */
}

static void a_sum_longer_than_loops_may_be(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    check_product(5, 7, 450001);
}

static void more_rows_than_work_groups(void **state)
{
    (void)state;
    skip_if_small();
    check_product(5000000, 1, 2);
}

/* ---- data ---- */

/* A data set of 157 MB: rows on both sides of the first window's end. */
static void a_table_larger_than_a_binding(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
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
    assert_int_equal(vkt_array_create(harness_ctx, &tp, &table), VKT_OK);
    assert_int_equal(vkt_array_create(harness_ctx, &cp, &chosen), VKT_OK);
    vkt_graph *g;
    vkt_program *p;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_binding arrays[] = { { vkt_external(g, "table", VKT_U8, tp.shape), table },
                                   { vkt_external(g, "order", VKT_U32, cp.shape), chosen } };
    const double scale = 2, shift = -1;
    const vkt_tensor y =
        vkt_gather_rows(g, arrays[0].tensor, arrays[1].tensor, BATCH, vkt_shape3(1, 28, 28), &scale, &shift);
    vkt_keep(g, y);
    const vkt_program_params params = { .arrays = arrays, .n_arrays = 2 };
    assert_int_equal(vkt_program_create(harness_ctx, g, NULL, &params, &p), VKT_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_elementwise_op_larger_than_a_binding),
        cmocka_unit_test(broadcasting_larger_than_a_binding),
        cmocka_unit_test(a_sum_larger_than_a_binding),
        cmocka_unit_test(a_product_larger_than_a_binding),
        cmocka_unit_test(a_sum_longer_than_loops_may_be),
        cmocka_unit_test(more_rows_than_work_groups),
        cmocka_unit_test(a_table_larger_than_a_binding),
    };
    return cmocka_run_group_tests_name("large", tests, harness_setup, harness_teardown);
}
