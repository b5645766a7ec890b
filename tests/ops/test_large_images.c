/* Tests layouts, poolings and softmax of values larger than one binding (128 MiB on lavapipe). Also tests an upsampling
 * whose gradient is a sum that is too long for one loop: on Mesa 22.3, a loop may have 65,535 iterations.
 * VKT_TEST_SMALL=1 skips the values larger than a binding. These values are also skipped if the device lacks the
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "ops/large.h"
#include "support/host.h"

/* ---- layouts ---- */

/* The tensors have few features and many samples, or the reverse. By rows, some samples do not begin at a multiple of
 * 256 bytes. With the batch last, some features do not begin at a multiple of 256 bytes. */
static void a_layout_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    const vkt_shape shapes[] = { vkt_shape2(17000003, 2), vkt_shape2(3, 8400001) };
    for (size_t k = 0; k < VKT_COUNT(shapes); k++)
        for (int from = VKT_ROWS; from <= VKT_BATCH_LAST; from++) {
            job j;
            job_begin(&j, (vkt_layout)from, shapes[k], vkt_shape1(1));
            if (!job_run(&j, vkt_to_layout(j.g, j.a, from ? VKT_ROWS : VKT_BATCH_LAST))) large_skip_for_memory(&j);
            assert_memory_equal(j.out, j.in_a, j.n_a * sizeof *j.out);
            job_end(&j);
        }
}

/* ---- poolings ---- */

/* Checks y and dx of a pooling by its definition. dy is the job's input b. kernel 0: a pooling window is the whole
 * image. Images have the batch last. The positions that are checked are spread over the images. */
static void check_pool(vkt_shape x, uint32_t kernel, bool average)
{
    const uint32_t height = x.dim[2], width = x.dim[3];
    const uint32_t P = kernel ? height / kernel : 1, Q = kernel ? width / kernel : 1;
    const uint32_t R = kernel ? kernel : height, S = kernel ? kernel : width;
    const vkt_pool2d_params params = { .kernel = { R, S } };
    job j;
    for (int gradient = 0; gradient <= 1; gradient++) {
        job_begin(&j, VKT_BATCH_LAST, x, vkt_shape4(x.dim[0], x.dim[1], P, Q));
        const vkt_tensor dy = vkt_to_layout(j.g, j.b, VKT_BATCH_LAST);
        vkt_tensor dx, y = average ? vkt_avg_pool2d(j.g, j.a, &params) : vkt_max_pool2d(j.g, j.a, &params);
        if (gradient) assert_int_equal(vkt_gradients(j.g, &y, &dy, 1, &j.a, 1, &dx), VKT_OK);
        if (!job_run(&j, gradient ? dx : vkt_add(j.g, y, dy))) large_skip_for_memory(&j);
        for (size_t i = 0; i < j.n_b; i += 1 + j.n_b / 2000) {
            const size_t first = i / Q / P * height * width + i / Q % P * R * width + i % Q * S;
            size_t best = first;
            double all = 0;
            for (size_t k = 0; k < (size_t)R * S; k++) {
                const size_t at = first + k / S * width + k % S;
                if (j.in_a[at] > j.in_a[best]) best = at;
                all += (double)j.in_a[at];
            }
            const double size = (double)R * S, want = average ? all / size : (double)j.in_a[best];
            if (!gradient && !(fabs((double)j.out[i] - want - (double)j.in_b[i]) <= 1e-6))
                fail_msg("y[%zu] is %g, wanted %g", i, (double)(j.out[i] - j.in_b[i]), want);
            for (size_t k = 0; gradient && k < (size_t)R * S; k += 1 + (size_t)R * S / 500) {
                const size_t at = first + k / S * width + k % S;
                const double share = average ? (double)j.in_b[i] / size : at == best ? (double)j.in_b[i] : 0;
                if (!(fabs((double)j.out[at] - share) <= 1e-7))
                    fail_msg("dx[%zu] is %g, wanted %g", at, (double)j.out[at], share);
            }
            if (gradient && !average) assert_true(j.out[best] == j.in_b[i]);
        }
        job_end(&j);
    }
}

static void a_pooling_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    check_pool(vkt_shape4(8, 4, 1131, 1133), 2, false); /* 164 MB; 3 of 4 channels begin at no multiple of 256 bytes */
    check_pool(vkt_shape4(33, 1, 1003, 1001), 0, true); /* one channel of 145 MB, padding included */
}

/* ---- an upsampling of one pixel ---- */

static void a_pixel_for_more_than_loops_may_be(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 5, C = 2, SIZE = 256 };
    for (int i = 0; i < 4; i++) {
        const bool gradient = i % 2;
        const vkt_upsample2d_params params = { .size = { SIZE, SIZE },
                                               .mode = VKT_UPSAMPLE_BILINEAR,
                                               .align_corners = i / 2 };
        job j;
        job_begin(&j, VKT_BATCH_LAST, vkt_shape4(N, C, 1, 1), vkt_shape4(N, C, SIZE, SIZE));
        const vkt_tensor y = vkt_upsample2d(j.g, j.a, &params), dy = vkt_to_layout(j.g, j.b, VKT_BATCH_LAST);
        vkt_tensor dx;
        assert_int_equal(vkt_value_of(j.g, y)->layout, VKT_BATCH_LAST);
        assert_int_equal(vkt_gradients(j.g, &y, &dy, 1, &j.a, 1, &dx), VKT_OK);
        if (!job_run(&j, gradient ? dx : vkt_add(j.g, y, dy))) large_skip_for_memory(&j);
        for (size_t x = 0; x < j.n_a; x++) {
            double all = 0;
            for (size_t k = x * SIZE * SIZE; k < (x + 1) * SIZE * SIZE; k++) {
                all += (double)j.in_b[k];
                if (!gradient) assert_true(j.out[k] == j.in_a[x] + j.in_b[k]);
            }
            if (gradient) assert_true(fabs((double)j.out[x] - all) <= 1e-7 * SIZE * SIZE);
        }
        job_end(&j);
    }
}

/* ---- softmax ---- */

/* x has 160 MB, with the batch last. The softmax is over the K elements of a sample. These elements are spread over all
 * of x, so a binding of 128 MiB does not hold all of them. K is also larger than 65,535, the number of iterations that
 * a loop may have on Mesa 22.3. The test checks every 16th sample. */
static void a_softmax_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    enum { B = 401, K = 100003 };
    job j;
    job_begin(&j, VKT_BATCH_LAST, vkt_shape2(B, K), vkt_shape1(1));
    const vkt_tensor y = vkt_softmax(j.g, j.a, 1);
    vkt_tensor dx;
    assert_int_equal(vkt_gradients(j.g, &y, &j.a, 1, &j.a, 1, &dx), VKT_OK); /* dy has the numbers of x */
    if (!job_run(&j, dx)) large_skip_for_memory(&j);
    for (size_t b = 0; b < B; b += 16) {
        const float *x = j.in_a + b * K, *got = j.out + b * K;
        double all = 0, dot = 0;
        for (size_t k = 0; k < K; k++) all += exp((double)x[k]);
        for (size_t k = 0; k < K; k++) dot += exp((double)x[k]) / all * (double)x[k];
        for (size_t k = 0; k < K; k++) {
            const double want = exp((double)x[k]) / all * ((double)x[k] - dot);
            if (!(fabs((double)got[k] - want) <= 1e-10)) /* the largest |want| is about 2e-5 */
                fail_msg("dx[%zu,%zu] is %g, wanted %g", b, k, (double)got[k], want);
        }
    }
    job_end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_larger_than_a_binding),
        cmocka_unit_test(a_pooling_larger_than_a_binding),
        cmocka_unit_test(a_pixel_for_more_than_loops_may_be),
        cmocka_unit_test(a_softmax_larger_than_a_binding),
    };
    return cmocka_run_group_tests_name("large images", tests, harness_setup, harness_teardown);
}
