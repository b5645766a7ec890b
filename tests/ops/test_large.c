/* Tests values larger than one binding. Also tests sums that are too long for one loop: on Mesa 22.3, a loop may have
 * 65,535 iterations. Vulkan guarantees bindings of 128 MiB, and lavapipe has no larger ones. Most of the large cases
 * are skipped if VKT_TEST_SMALL is 1, or if the device lacks the memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/large.h"
#include "support/host.h"

/* ---- elementwise ops and sums ---- */

static void an_elementwise_op_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    const vkt_shape s = vkt_shape2(6007, 6151); /* 141 MiB; the range of the first binding ends within a row */
    job j;
    job_begin(&j, VKT_ROWS, s, s);
    if (!job_run(&j, vkt_add(j.g, j.a, j.b))) large_skip_for_memory(&j);
    for (size_t i = 0; i < j.n_y; i++)
        if (j.out[i] != j.in_a[i] + j.in_b[i])
            fail_msg("element %zu is %g, wanted %g", i, (double)j.out[i], (double)(j.in_a[i] + j.in_b[i]));
    job_end(&j);
}

/* Adds one row to each row of a matrix, once for each layout of the matrix. */
static void broadcasting_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        const uint32_t columns = 6151;
        job j;
        job_begin(&j, (vkt_layout)layout, vkt_shape2(6007, columns), vkt_shape1(columns));
        if (!job_run(&j, vkt_add(j.g, j.a, j.b))) large_skip_for_memory(&j);
        for (size_t i = 0; i < j.n_y; i++)
            if (j.out[i] != j.in_a[i] + j.in_b[i % columns])
                fail_msg("layout %d: element %zu is %g, wanted %g", layout, i, (double)j.out[i],
                         (double)(j.in_a[i] + j.in_b[i % columns]));
        job_end(&j);
    }
}

/* Tests three ops, each on its own matrix: transpose, pad, and slice (every third column). The ranges that bindings
 * cover end within rows and columns. */
static void rearranging_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    enum { M = 6007, N = 6151 };
    job j;
    job_begin(&j, VKT_ROWS, vkt_shape2(M, N), vkt_shape1(1));
    if (!job_run(&j, vkt_transpose(j.g, j.a, 0, 1))) large_skip_for_memory(&j);
    for (size_t i = 0; i < j.n_y; i++)
        if (j.out[i] != j.in_a[i % M * N + i / M]) fail_msg("element %zu of the transpose is wrong", i);
    job_end(&j);
    job_begin(&j, VKT_ROWS, vkt_shape2(M, N), vkt_shape1(1));
    if (!job_run(&j, vkt_pad(j.g, j.a, (uint32_t[]){ 3, 1 }, (uint32_t[]){ 0, 2 }, 7))) large_skip_for_memory(&j);
    for (size_t i = 0; i < j.n_y; i++) {
        const size_t row = i / (N + 3) - 3, column = i % (N + 3) - 1;
        if (j.out[i] != (row < M && column < N ? j.in_a[row * N + column] : 7))
            fail_msg("element %zu in the frame is wrong", i);
    }
    job_end(&j);
    job_begin(&j, VKT_ROWS, vkt_shape2(M, N), vkt_shape1(1));
    if (!job_run(&j, vkt_slice(j.g, j.a, 1, 1, VKT_END, 3))) large_skip_for_memory(&j);
    for (size_t i = 0; i < j.n_y; i++)
        if (j.out[i] != j.in_a[i / (N / 3) * N + i % (N / 3) * 3 + 1]) fail_msg("element %zu of the slice is wrong", i);
    job_end(&j);
}

/* One binding cannot hold all elements. Compares their sum with a sum in double precision. */
static void a_sum_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    job j;
    job_begin(&j, VKT_ROWS, vkt_shape2(6007, 6151), vkt_shape1(1));
    if (!job_run(&j, vkt_mul(j.g, vkt_sum(j.g, j.a), j.b))) large_skip_for_memory(&j);
    double sum = 0, size = 0;
    for (size_t i = 0; i < j.n_a; i++) {
        sum += (double)j.in_a[i];
        size += fabs((double)j.in_a[i]);
    }
    assert_true(fabs((double)j.out[0] - sum * (double)j.in_b[0]) <= 1e-7 * size);
    job_end(&j);
}

/* ---- products ---- */

/* Checks C = A B; all are stored by rows. At most 3000 elements are compared with dot products in double precision. */
static void check_product(uint32_t m, uint32_t n, uint32_t k)
{
    job j;
    job_begin(&j, VKT_ROWS, vkt_shape2(m, k), vkt_shape2(k, n));
    if (!job_run(&j, vkt_matmul(j.g, j.a, j.b, false, false))) large_skip_for_memory(&j);
    for (uint64_t i = 0; i < j.n_y; i += 1 + j.n_y / 3000) {
        const uint64_t row = i / n, column = i % n;
        double sum = 0, magnitude = 0;
        for (uint64_t l = 0; l < k; l++) {
            const double term = (double)j.in_a[row * k + l] * (double)j.in_b[l * n + column];
            sum += term;
            magnitude += fabs(term);
        }
        /* Higham, Accuracy and Stability of Numerical Algorithms, 3.5, has a bound with the factor k. This bound has
         * 4 sqrt(k) instead, because roundings are independent. */
        assert_true(fabs((double)j.out[i] - sum) <= 4 * sqrt((double)k) * 0x1p-24 * magnitude);
    }
    job_end(&j);
}

static void a_product_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
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
    large_skip_if_small();
    check_product(5000000, 1, 2);
}

/* ---- convolutions, linear layers ---- */

/* A convolution y = x * w + bias and its gradients, with all data on the host. Images and kernels are square, and the
 * stride is 1. Images of x and of y have the same size. If `size` is 1, this is a linear layer. */
typedef struct conv {
    uint32_t n, c, o, size, kernel;
    vkt_graph *g;
    vkt_program *p;
    enum { X, W, BIAS, DY, CONV_INPUTS, Y = CONV_INPUTS, DX, DW, DB, CONV_TENSORS } last;
    vkt_tensor t[CONV_TENSORS];
    float *data[CONV_TENSORS];
} conv;

static void conv_begin(conv *v, uint32_t n, uint32_t c, uint32_t o, uint32_t size, uint32_t kernel)
{
    static const char *const names[CONV_INPUTS] = { "x", "w", "bias", "dy" };
    const vkt_host h = vkt_test_host();
    *v = (conv){ .n = n, .c = c, .o = o, .size = size, .kernel = kernel };
    const bool is_linear = size == 1;
    const vkt_shape shapes[CONV_INPUTS] = {
        [X] = is_linear ? vkt_shape2(n, c) : vkt_shape4(n, c, size, size),
        [W] = is_linear ? vkt_shape2(o, c) : vkt_shape4(o, c, kernel, kernel),
        [BIAS] = vkt_shape1(o),
        [DY] = is_linear ? vkt_shape2(n, o) : vkt_shape4(n, o, size, size),
    };
    assert_int_equal(vkt_graph_create(&h, &v->g), VKT_OK);
    for (int i = 0; i < CONV_INPUTS; i++) {
        v->t[i] = vkt_input(v->g, names[i], VKT_F32, i == X || i == DY ? VKT_BATCH_LAST : VKT_ROWS, shapes[i]);
        v->data[i] = large_random(vkt_shape_elements(shapes[i]), (uint32_t)i);
    }
    const vkt_conv2d_params params = { .pad = { kernel / 2, kernel / 2 } };
    v->t[Y] = is_linear ? vkt_linear(v->g, v->t[X], v->t[W], v->t[BIAS])
                        : vkt_conv2d(v->g, v->t[X], v->t[W], v->t[BIAS], &params);
    assert_int_equal(vkt_gradients(v->g, &v->t[Y], &v->t[DY], 1, v->t, 3, &v->t[DX]), VKT_OK);
}

/* Runs the graph, with or without texel loads, and reads the results. Returns false if the device does not have enough
 * memory, or if the memory cap is too small. */
static bool conv_run(conv *v, bool texels)
{
    const uint64_t real = harness_ctx->limits.max_texel_elements;
    for (int i = CONV_INPUTS; i < CONV_TENSORS; i++) vkt_keep(v->g, v->t[i]);
    if (!texels) harness_ctx->limits.max_texel_elements = 0;
    const vkt_result r = vkt_program_create(harness_ctx, v->g, NULL, NULL, &v->p);
    harness_ctx->limits.max_texel_elements = real;
    if (r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY) return false;
    assert_int_equal(r, VKT_OK);
    for (int i = 0; i < CONV_TENSORS; i++) {
        const uint64_t n = vkt_shape_elements(vkt_tensor_shape(v->g, v->t[i]));
        if (i == CONV_INPUTS) assert_int_equal(vkt_program_run(v->p, NULL, NULL), VKT_OK);
        if (i >= CONV_INPUTS) v->data[i] = malloc(n * sizeof(float));
        assert_non_null(v->data[i]);
        if (i < CONV_INPUTS)
            assert_int_equal(vkt_program_write(v->p, v->t[i], v->data[i], n * sizeof(float)), VKT_OK);
        else
            assert_int_equal(vkt_program_read(v->p, v->t[i], v->data[i], n * sizeof(float)), VKT_OK);
    }
    return true;
}

static void conv_end(conv *v)
{
    vkt_program_destroy(&v->p);
    vkt_graph_destroy(&v->g);
    for (int i = 0; i < CONV_TENSORS; i++) free(v->data[i]);
}

/* A sum of products, and the sum of the magnitudes of these products. */
typedef struct sum {
    double value, magnitude;
    uint64_t terms;
} sum;

static void add_product(sum *s, double a, double b)
{
    s->value += a * b;
    s->magnitude += fabs(a * b);
    s->terms++;
}

/* Adds the products that channels o and c contribute to one element. Without `back`, the element is y[n,o,p,q], and
 * taps of w are multiplied by elements of x. With `back`, it is dx[n,c,p,q], and reversed taps of w are multiplied by
 * elements of dy. */
static void add_taps(const conv *v, sum *s, uint32_t n, uint32_t o, uint32_t c, uint32_t p, uint32_t q, bool back)
{
    const uint32_t k = v->kernel, pad = k / 2, size = v->size;
    const size_t plane = back ? (size_t)n * v->o + o : (size_t)n * v->c + c;
    const float *image = v->data[back ? DY : X] + plane * size * size;
    for (uint32_t r = 0; r < k; r++)
        for (uint32_t t = 0; t < k; t++) {
            const uint32_t row = back ? p + pad - r : p + r - pad, column = back ? q + pad - t : q + t - pad;
            if (row < size && column < size)
                add_product(s, (double)image[(size_t)row * size + column],
                            (double)v->data[W][(((size_t)o * v->c + c) * k + r) * k + t]);
        }
}

/* Computes element i of Y, DX, DW or DB in double precision. */
static sum conv_reference(const conv *v, int tensor, size_t i)
{
    const size_t pixels = (size_t)v->size * v->size, k = v->kernel;
    const uint32_t p = (uint32_t)(i % pixels / v->size), q = (uint32_t)(i % v->size);
    sum s = { .value = 0 };
    if (tensor == Y) {
        const uint32_t o = (uint32_t)(i / pixels % v->o), n = (uint32_t)(i / pixels / v->o);
        add_product(&s, (double)v->data[BIAS][o], 1);
        for (uint32_t c = 0; c < v->c; c++) add_taps(v, &s, n, o, c, p, q, false);
    } else if (tensor == DX) {
        const uint32_t c = (uint32_t)(i / pixels % v->c), n = (uint32_t)(i / pixels / v->c);
        for (uint32_t o = 0; o < v->o; o++) add_taps(v, &s, n, o, c, p, q, true);
    } else {
        const size_t o = tensor == DB ? i : i / (k * k) / v->c, c = i / (k * k) % v->c;
        const size_t r = i / k % k, t = i % k, pad = k / 2;
        for (size_t n = 0; n < v->n; n++) {
            const float *x = v->data[X] + (n * v->c + c) * pixels, *dy = v->data[DY] + (n * v->o + o) * pixels;
            for (size_t at = 0; at < pixels; at++) {
                const size_t row = at / v->size + r - pad, column = at % v->size + t - pad;
                if (tensor == DB)
                    add_product(&s, (double)dy[at], 1);
                else if (row < v->size && column < v->size)
                    add_product(&s, (double)dy[at], (double)x[row * v->size + column]);
            }
        }
    }
    return s;
}

/* Compares elements of every result with sums in double precision. The elements are spread over the result. The bound
 * is the same as in check_product. */
static void check_conv(uint32_t n, uint32_t c, uint32_t o, uint32_t size, uint32_t kernel, bool texels)
{
    conv v;
    conv_begin(&v, n, c, o, size, kernel);
    if (!conv_run(&v, texels)) {
        conv_end(&v);
        puts("SKIPPED: convolutions larger than a binding: not enough memory");
        skip();
    }
    for (int tensor = Y; tensor < CONV_TENSORS; tensor++) {
        const size_t elements = (size_t)vkt_shape_elements(vkt_tensor_shape(v.g, v.t[tensor]));
        /* Each element of DW and DB is a sum over all pixels, so only a few elements are checked. */
        const size_t positions = size > 1 && (tensor == DW || tensor == DB) ? 20 : 1000;
        for (size_t i = 0; i < elements; i += 1 + elements / positions) {
            const sum s = conv_reference(&v, tensor, i);
            const double got = (double)v.data[tensor][i];
            if (!(fabs(got - s.value) <= 4 * sqrt((double)s.terms) * 0x1p-24 * s.magnitude))
                fail_msg("%s: element %zu of %zu is %g, wanted %g", vkt_value_of(v.g, v.t[tensor])->name, i, elements,
                         got, s.value);
        }
    }
    conv_end(&v);
}

static void a_convolution_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    check_conv(16, 43, 49, 224, 3, true); /* x and dx 138 MB, y and dy 157 MB */
}

static void a_first_convolution_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    check_conv(16, 3, 49, 224, 3, true);
}

/* Each element of y and dx is a sum over channels and taps, for instance of 180,099 products for 20,011 channels. A
 * loop must not have so many iterations. If x has so many channels, y is a sum of parts. If y has so many channels, dx
 * is a sum of parts. */
static void a_convolution_longer_than_loops_may_be(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    check_conv(2, 20011, 3, 5, 3, false);
    check_conv(2, 3, 20011, 5, 3, true); /* dx is a sum over 20,011 channels */
    check_conv(5, 12345, 33, 3, 3, true);
    check_conv(3, 2, 100003, 2, 3, true);  /* the number of channels in the last part of dx is no multiple of 4 */
    check_conv(2, 1100000, 3, 1, 1, true); /* dx has 1,100,000 channels: more than 16 for each work group, because many
                                            * devices allow only 65,535 work groups */
}

/* Each case runs with and without texel loads. With texel loads, a binding may hold a whole operand, so only outputs
 * are split. Without texel loads, operands are split too. */
static void a_linear_layer_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    for (int texels = 0; texels <= 1; texels++) {
        check_conv(12, 6151, 6007, 1, 1, texels);  /* w and dw 148 MB; a kernel copies w to whole vec4s */
        check_conv(12, 6148, 6007, 1, 1, texels);  /* w has whole vec4s already, so no copy */
        check_conv(36003, 1001, 10, 1, 1, texels); /* x and dx 144 MB */
    }
}

/* ---- losses ---- */

/* Checks cross-entropy with its gradient, the argmax and the number of correct predictions, on scores of 148 MB. */
static void check_scores(vkt_layout layout)
{
    enum { B = 6007, K = 6151 };
    const vkt_host h = vkt_test_host();
    const size_t n = (size_t)B * K;
    float *z = large_random(n, 1), *dz = malloc(n * sizeof *dz), loss, correct;
    uint32_t *labels = malloc(B * sizeof *labels), *best = malloc(B * sizeof *best);
    assert_true(dz && labels && best);
    for (uint32_t b = 0; b < B; b++) {
        labels[b] = b * 2654435761u % K;
        /* 4 is the largest score of sample b. In every third sample, the label has this score. */
        z[(size_t)b * K + (b % 3 ? b * 40503u % K : labels[b])] = 4;
    }
    vkt_graph *g;
    vkt_program *p;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor in = vkt_input(g, "z", VKT_F32, layout, vkt_shape2(B, K));
    const vkt_tensor t = vkt_input(g, "t", VKT_U32, VKT_ROWS, vkt_shape1(B));
    vkt_tensor out[] = { vkt_softmax_cross_entropy(g, in, t), { 0 }, vkt_argmax(g, in), vkt_count_correct(g, in, t) };
    const float one = 1;
    const vkt_tensor seed = vkt_graph_const(g, "one", VKT_F32, vkt_shape0(), &one);
    assert_int_equal(vkt_gradients(g, out, &seed, 1, &in, 1, &out[1]), VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(out); i++) vkt_keep(g, out[i]);
    const vkt_result r = vkt_program_create(harness_ctx, g, NULL, NULL, &p);
    if (r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY) {
        puts("SKIPPED: scores larger than a binding: not enough memory");
    } else {
        assert_int_equal(r, VKT_OK);
        assert_int_equal(vkt_program_write(p, in, z, n * sizeof *z), VKT_OK);
        assert_int_equal(vkt_program_write(p, t, labels, B * sizeof *labels), VKT_OK);
        assert_int_equal(vkt_program_run(p, NULL, NULL), VKT_OK);
        assert_int_equal(vkt_program_read(p, out[0], &loss, sizeof loss), VKT_OK);
        assert_int_equal(vkt_program_read(p, out[1], dz, n * sizeof *dz), VKT_OK);
        assert_int_equal(vkt_program_read(p, out[2], best, B * sizeof *best), VKT_OK);
        assert_int_equal(vkt_program_read(p, out[3], &correct, sizeof correct), VKT_OK);
        double mean = 0, hits = 0;
        for (uint32_t b = 0; b < B; b++) {
            const float *row = z + (size_t)b * K, *grad = dz + (size_t)b * K;
            double all = 0;
            for (uint32_t k = 0; k < K; k++) all += exp((double)row[k]);
            mean += (log(all) - (double)row[labels[b]]) / B;
            assert_true(row[best[b]] == 4);
            hits += best[b] == labels[b];
            for (uint32_t k = labels[b] % 16; k < K; k += 16) {
                const double want = (exp((double)row[k]) / all - (k == labels[b])) / B;
                assert_true(fabs((double)grad[k] - want) <= 1e-5 * fabs(want));
            }
        }
        assert_true(fabs((double)loss - mean) <= 1e-6 * mean);
        assert_true((double)correct == hits && hits >= B / 3);
    }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    free(z);
    free(dz);
    free(labels);
    free(best);
}

static void scores_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    check_scores(VKT_ROWS);
    check_scores(VKT_BATCH_LAST);
}

/* ---- data ---- */

/* Gathers samples from the first 128 MiB of a data set and from the rest. The data set has 157 MB. */
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

/* Gathers sequences from the first 128 MiB of a data set and from the rest. The data set has 135 MB. Its ids have 16
 * bits. */
static void sequences_larger_than_a_binding(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { ROWS = 225000, LENGTH = 300, BATCH = 64 };
    const vkt_host h = vkt_test_host();
    const size_t numbers = (size_t)ROWS * LENGTH;
    uint16_t *ids = malloc(numbers * sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < numbers; i++) ids[i] = (uint16_t)((i * 2654435761u >> 16 & 0xffff) + 1);
    uint32_t order[BATCH];
    for (uint32_t i = 0; i < BATCH; i++) order[i] = i % 2 ? ROWS - 1 - i * 90 : i * 3000 % ROWS;
    vkt_array *table, *chosen;
    const vkt_array_params tp = { .dtype = VKT_U32, .shape = vkt_shape2(ROWS, LENGTH / 2), .data = ids };
    const vkt_array_params cp = { .dtype = VKT_U32, .shape = vkt_shape1(BATCH), .data = order };
    assert_int_equal(vkt_array_create(harness_ctx, &tp, &table), VKT_OK);
    assert_int_equal(vkt_array_create(harness_ctx, &cp, &chosen), VKT_OK);
    vkt_graph *g;
    vkt_program *p;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_binding arrays[] = { { vkt_external(g, "table", VKT_U32, tp.shape), table },
                                   { vkt_external(g, "order", VKT_U32, cp.shape), chosen } };
    const vkt_tensor y = vkt_gather_ids(g, arrays[0].tensor, arrays[1].tensor, BATCH, LENGTH, true);
    vkt_keep(g, y);
    const vkt_program_params params = { .arrays = arrays, .n_arrays = 2 };
    assert_int_equal(vkt_program_create(harness_ctx, g, NULL, &params, &p), VKT_OK);
    assert_int_equal(vkt_program_run(p, &(vkt_run){ .rows = BATCH - 3 }, NULL), VKT_OK);
    uint32_t *got = malloc(sizeof *got * BATCH * LENGTH);
    assert_non_null(got);
    assert_int_equal(vkt_program_read(p, y, got, sizeof *got * BATCH * LENGTH), VKT_OK);
    for (uint32_t i = 0; i < BATCH * LENGTH; i++) {
        const uint32_t b = i / LENGTH;
        assert_int_equal(got[i], b < BATCH - 3 ? ids[(size_t)order[b] * LENGTH + i % LENGTH] : 0);
    }
    free(got);
    free(ids);
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
        cmocka_unit_test(rearranging_larger_than_a_binding),
        cmocka_unit_test(a_sum_larger_than_a_binding),
        cmocka_unit_test(a_product_larger_than_a_binding),
        cmocka_unit_test(a_sum_longer_than_loops_may_be),
        cmocka_unit_test(more_rows_than_work_groups),
        cmocka_unit_test(a_convolution_larger_than_a_binding),
        cmocka_unit_test(a_first_convolution_larger_than_a_binding),
        cmocka_unit_test(a_convolution_longer_than_loops_may_be),
        cmocka_unit_test(a_linear_layer_larger_than_a_binding),
        cmocka_unit_test(scores_larger_than_a_binding),
        cmocka_unit_test(a_table_larger_than_a_binding),
        cmocka_unit_test(sequences_larger_than_a_binding),
    };
    return cmocka_run_group_tests_name("large", tests, harness_setup, harness_teardown);
}
