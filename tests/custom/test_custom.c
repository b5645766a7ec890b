/* Compares outputs and gradients of an application's ops with results in double precision, at unusual shapes. The
 * programs of stand_start have guard words behind all values, and their memory is NaN before the first run. */
#include "custom/stand.h"

#include <math.h>

#include "ops/custom.h"
#include "record/record.h"

/* Vulkan 1.3 allows this error of sin and cos for arguments in [-pi, pi]. Here |a x| is at most 3. */
#define SINE 0x1p-11

/* Computes y = x sin(a x) and the gradients of x and a in double precision. `w` is the gradient of y. Compares the
 * device's y, dx and da with the results. `a` has `columns` numbers, which each row of x uses. */
static void check_wave(size_t n, size_t columns, const float *x, const float *a, const float *w, const float *y,
                       const float *dx, const float *da)
{
    double *sum = test_calloc(columns, sizeof *sum), *size = test_calloc(columns, sizeof *size);
    for (size_t i = 0; i < n; i++) {
        const double X = (double)x[i], A = (double)a[i % columns], W = (double)w[i], s = sin(A * X), c = cos(A * X);
        const double one = W * X * X * c;
        expect_close((double)y[i], X * s, fabs(X) * SINE + 1e-6, "y", i);
        expect_close((double)dx[i], W * (s + A * X * c), fabs(W) * (1 + fabs(A * X)) * SINE + 4e-6, "dx", i);
        sum[i % columns] += one;
        size[i % columns] += fabs(W) * X * X * SINE + 1e-6;
    }
    for (size_t i = 0; i < columns; i++) expect_close((double)da[i], sum[i], size[i] + 1e-6, "da", i);
    test_free(sum);
    test_free(size);
}

/* Tests the op wave with x (rows, columns) and a (columns). The graph broadcasts a, so the gradient of a is a sum over
 * the rows. */
static void run_wave(rig *r, uint32_t rows, uint32_t columns)
{
    const size_t n = (size_t)rows * columns;
    const vkt_shape shape = vkt_shape2(rows, columns);
    float *x = test_malloc(n * sizeof *x), *a = test_malloc(columns * sizeof *a), *w = test_malloc(n * sizeof *w);
    stand b = stand_make(r);
    const vkt_tensor in[] = { stand_input(&b, shape, -1.5f, 1.5f, 1, x),
                              stand_input(&b, vkt_shape1(columns), -2, 2, 2, a) };
    const vkt_tensor seed = stand_input(&b, shape, -1, 1, 3, w);
    vkt_tensor dx[2];
    const vkt_tensor y = wave(b.g, in[0], vkt_expand(b.g, in[1], shape, VKT_ROWS), "wave_dx");
    assert_int_equal(vkt_gradients(b.g, &y, &seed, 1, in, 2, dx), VKT_OK);
    vkt_keep(b.g, y);
    vkt_keep(b.g, dx[0]);
    vkt_keep(b.g, dx[1]);
    stand_start(&b);
    stand_write(&b, in[0], x);
    stand_write(&b, in[1], a);
    stand_write(&b, seed, w);
    stand_run(&b, 0, 1);
    float *gy = stand_read(&b, y), *gx = stand_read(&b, dx[0]), *ga = stand_read(&b, dx[1]);
    check_wave(n, columns, x, a, w, gy, gx, ga);
    float *all[] = { x, a, w, gy, gx, ga };
    for (size_t i = 0; i < 6; i++) test_free(all[i]);
    stand_end(&b);
}

static void two_inputs_and_a_broadcast_parameter(void **state)
{
    rig *r = rig_of(state);
    const uint32_t shapes[][2] = { { 1, 1 },  { 1, 2 },  { 3, 1 }, { 1, 63 },   { 5, 13 },
                                   { 1, 64 }, { 7, 31 }, { 2, 4 }, { 101, 97 }, { 1009, 211 } };
    for (size_t i = 0; i < VKT_COUNT(shapes); i++) run_wave(r, shapes[i][0], shapes[i][1]);
}

/* The push constants of robust.comp and robust_dx.comp. */
typedef struct robust_push {
    uint32_t batch, width;
    float eps;
} robust_push;

static vkt_tensor robust(vkt_graph *g, vkt_tensor y, vkt_tensor t)
{
    const vkt_shape s = vkt_tensor_shape(g, y);
    const robust_push push = { s.dim[0], s.dim[1], 0.25f };
    const vkt_custom_input in[] = { { .tensor = y }, { .tensor = t, .no_gradient = true } };
    const vkt_custom_output out = { .shape = vkt_shape1(push.batch) };
    vkt_custom_params p = { .name = "robust", .inputs = in, .n_inputs = 2, .outputs = &out, .n_outputs = 1 };
    p.forward = shader_of("robust", push.batch);
    p.gradient = shader_of("robust_dx", 0);
    p.gradient.groups[0] = (push.batch + 7) / 8;
    p.gradient.groups[1] = (push.width + 3) / 4;
    p.forward.push = p.gradient.push = &push;
    p.forward.push_bytes = p.gradient.push_bytes = sizeof push;
    const uint32_t forward[] = { VKT_CUSTOM_X(0), VKT_CUSTOM_X(1), VKT_CUSTOM_STEP, VKT_CUSTOM_Y(0) };
    const uint32_t gradient[] = { VKT_CUSTOM_X(0), VKT_CUSTOM_X(1), VKT_CUSTOM_STEP, VKT_CUSTOM_DY(0),
                                  VKT_CUSTOM_DX(0) };
    memcpy(p.forward.bind, forward, sizeof forward);
    memcpy(p.gradient.bind, gradient, sizeof gradient);
    return vkt_custom(g, &p, NULL);
}

/* Tests a loss per row and its mean over the real rows of the batch. `rows` is the number of real rows; 0: all. */
static void run_robust(rig *r, uint32_t batch, uint32_t width, uint32_t rows)
{
    const size_t n = (size_t)batch * width, real = rows ? rows : batch;
    float *y = test_malloc(n * sizeof *y), *t = test_malloc(n * sizeof *t);
    stand b = stand_make(r);
    const vkt_tensor iy = stand_input(&b, vkt_shape2(batch, width), -2, 2, 1, y);
    const vkt_tensor it = stand_input(&b, vkt_shape2(batch, width), -2, 2, 2, t);
    const vkt_tensor w = vkt_param(b.g, "w", vkt_shape1(width));
    const vkt_tensor loss = vkt_mean(b.g, robust(b.g, vkt_add(b.g, iy, w), it));
    vkt_keep(b.g, loss);
    assert_int_equal(vkt_backward(b.g, loss), VKT_OK);
    stand_start(&b);
    stand_write(&b, iy, y);
    stand_write(&b, it, t);
    stand_run(&b, rows, 1);
    double want = 0, *dw = test_calloc(width, sizeof *dw);
    for (size_t i = 0; i < real * width; i++) {
        const double d = (double)y[i] - (double)t[i], root = sqrt(d * d + 0.0625);
        want += (root - 0.25) / (double)real;
        dw[i % width] += d / root / (double)real;
    }
    float *got = stand_read(&b, loss), *gradient = test_malloc(width * sizeof *gradient);
    assert_int_equal(vkt_store_read(b.store, 0, VKT_PART_GRADIENT, gradient), VKT_OK);
    expect_close((double)*got, want, 4e-6 * (1 + want), "loss", 0);
    for (size_t k = 0; k < width; k++) expect_close((double)gradient[k], dw[k], 5e-6, "dw", k);
    test_free(dw);
    float *all[] = { y, t, got, gradient };
    for (size_t i = 0; i < 4; i++) test_free(all[i]);
    stand_end(&b);
}

static void a_loss_per_row_is_trained_through_a_mean(void **state)
{
    rig *r = rig_of(state);
    run_robust(r, 1, 1, 0);
    run_robust(r, 7, 3, 0);
    run_robust(r, 8, 4, 5);
    run_robust(r, 33, 17, 32);
    run_robust(r, 257, 9, 1);
}

/* Adds the op of parts.comp, which has three outputs. */
static void parts(vkt_graph *g, vkt_tensor x, uint32_t n, vkt_tensor outs[3])
{
    const vkt_custom_input in = { .tensor = x };
    const vkt_custom_output out[] = { { .shape = vkt_shape1(n) },
                                      { .shape = vkt_shape1(n), .dtype = VKT_U32 },
                                      { .shape = vkt_shape1(n) } };
    vkt_custom_params p = { .name = "parts", .inputs = &in, .n_inputs = 1, .outputs = out, .n_outputs = 3 };
    p.forward = shader_of("parts", n);
    p.gradient = shader_of("parts_dx", n);
    p.forward.push = p.gradient.push = &n;
    p.forward.push_bytes = p.gradient.push_bytes = sizeof n;
    const uint32_t forward[] = { VKT_CUSTOM_X(0), VKT_CUSTOM_Y(0), VKT_CUSTOM_Y(1), VKT_CUSTOM_Y(2) };
    const uint32_t gradient[] = { VKT_CUSTOM_X(0), VKT_CUSTOM_DY(0), VKT_CUSTOM_DY(2), VKT_CUSTOM_DX(0) };
    memcpy(p.forward.bind, forward, sizeof forward);
    memcpy(p.gradient.bind, gradient, sizeof gradient);
    vkt_custom(g, &p, outs);
}

/* Differentiates y = triples + x. Output 0 (squares) does not influence y, so the gradient shader reads zeros as the
 * gradient of output 0. x is an input of the op and of the sum, so dx must be 3 + 1. */
static void outputs_without_a_gradient_and_inputs_with_two_readers(void **state)
{
    rig *r = rig_of(state);
    enum { N = 37 };
    float x[N], ones[N];
    stand b = stand_make(r);
    vkt_tensor outs[3], dx;
    const vkt_tensor in = stand_input(&b, vkt_shape1(N), -2, 2, 1, x);
    const vkt_tensor seed = stand_input(&b, vkt_shape1(N), 1, 1, 1, ones);
    parts(b.g, in, N, outs);
    const vkt_tensor y = vkt_add(b.g, outs[2], in);
    assert_int_equal(vkt_gradients(b.g, &y, &seed, 1, &in, 1, &dx), VKT_OK);
    const vkt_tensor kept[] = { outs[0], outs[1], y, dx };
    for (size_t i = 0; i < 4; i++) vkt_keep(b.g, kept[i]);
    stand_start(&b);
    stand_write(&b, in, x);
    stand_write(&b, seed, ones);
    stand_run(&b, 0, 2);
    float *squares = stand_read(&b, outs[0]), *signs = stand_read(&b, outs[1]), *got = stand_read(&b, dx);
    for (size_t i = 0; i < N; i++) {
        uint32_t sign;
        memcpy(&sign, &signs[i], sizeof sign);
        assert_int_equal(sign, x[i] > 0);
        assert_true(squares[i] == x[i] * x[i]);
        assert_true(got[i] == 4);
    }
    test_free(squares);
    test_free(signs);
    test_free(got);
    stand_end(&b);
}

/* Tests own_relu in the layout batch last. If the batch is no multiple of 4, the shader also computes the padding, and
 * the padding's gradient is zero. The last shape needs more work groups than some devices run, so the shader loops. */
static void the_batch_last_and_a_loop_over_the_elements(void **state)
{
    rig *r = rig_of(state);
    const uint32_t shapes[][2] = { { 1, 1 }, { 3, 5 }, { 5, 1 }, { 66, 7 }, { 1111, 2003 } };
    for (size_t i = 0; i < VKT_COUNT(shapes); i++) {
        const vkt_shape shape = vkt_shape2(shapes[i][0], shapes[i][1]);
        const size_t n = (size_t)shapes[i][0] * shapes[i][1];
        float *x = test_malloc(n * sizeof *x), *w = test_malloc(n * sizeof *w);
        vkt_tensor dx;
        stand b = stand_make(r);
        const vkt_tensor in = stand_input(&b, shape, -1, 1, 1, x), seed = stand_input(&b, shape, -1, 1, 2, w);
        const vkt_tensor y = vkt_to_layout(b.g, own_relu(b.g, vkt_to_layout(b.g, in, VKT_BATCH_LAST)), VKT_ROWS);
        assert_int_equal(vkt_gradients(b.g, &y, &seed, 1, &in, 1, &dx), VKT_OK);
        vkt_keep(b.g, y);
        vkt_keep(b.g, dx);
        stand_start(&b);
        stand_write(&b, in, x);
        stand_write(&b, seed, w);
        stand_run(&b, 0, 1);
        float *gy = stand_read(&b, y), *gx = stand_read(&b, dx);
        for (size_t k = 0; k < n; k++) {
            if (gy[k] != (x[k] > 0 ? x[k] : 0)) fail_msg("y[%zu] is %g", k, (double)gy[k]);
            if (gx[k] != (x[k] > 0 ? w[k] : 0)) fail_msg("dx[%zu] is %g", k, (double)gx[k]);
        }
        float *all[] = { x, w, gy, gx };
        for (size_t k = 0; k < 4; k++) test_free(all[k]);
        stand_end(&b);
    }
}

/* Adds the op of draw.comp: random numbers that depend on the seed and the step. The same seed and step give the same
 * numbers. */
static vkt_tensor draw(vkt_graph *g, vkt_tensor x, bool no_gradient)
{
    const uint32_t n = (uint32_t)vkt_shape_elements(vkt_tensor_shape(g, x));
    const vkt_custom_input in = { .tensor = x, .no_gradient = no_gradient };
    const vkt_custom_output out = { .shape = vkt_tensor_shape(g, x) };
    vkt_custom_params p = { .name = "draw", .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1 };
    p.forward = shader_of("draw", n);
    p.forward.push = &n;
    p.forward.push_bytes = sizeof n;
    p.forward.bind[0] = VKT_CUSTOM_STEP;
    p.forward.bind[1] = VKT_CUSTOM_X(0);
    p.forward.bind[2] = VKT_CUSTOM_Y(0);
    return vkt_custom(g, &p, NULL);
}

static void a_sampler_has_no_gradient(void **state)
{
    rig *r = rig_of(state);
    enum { N = 40 };
    stand b = stand_make(r);
    const vkt_tensor w = vkt_param(b.g, "w", vkt_shape1(N)), y = draw(b.g, w, true);
    vkt_keep(b.g, y);
    assert_int_equal(vkt_backward(b.g, vkt_mean(b.g, vkt_mul(b.g, w, y))), VKT_OK);
    assert_int_equal(vkt_update(b.g, &(vkt_optimizer){ .kind = VKT_SGD }), VKT_OK);
    stand_start(&b);
    float *got[3];
    for (int i = 0; i < 3; i++) {
        if (i == 2) assert_int_equal(vkt_store_set_clock(b.store, 0, 0), VKT_OK);
        stand_run(&b, 0, 1);
        got[i] = stand_read(&b, y);
    }
    assert_memory_not_equal(got[0], got[1], N * sizeof(float));
    assert_memory_equal(got[0], got[2], N * sizeof(float));
    for (int i = 0; i < N; i++) assert_true(got[0][i] >= 0 && got[0][i] < 1);
    for (int i = 0; i < 3; i++) test_free(got[i]);
    stand_end(&b);

    b = stand_make(r); /* the inner op stops the gradient (no_gradient), so the outer op needs no gradient shader */
    const vkt_tensor u = vkt_param(b.g, "u", vkt_shape1(N));
    assert_int_equal(vkt_backward(b.g, vkt_mean(b.g, vkt_mul(b.g, u, draw(b.g, draw(b.g, u, true), false)))), VKT_OK);
    stand_end(&b);

    b = stand_make(r);
    const vkt_tensor v = vkt_param(b.g, "v", vkt_shape1(N));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_backward(b.g, vkt_mean(b.g, draw(b.g, v, false))), VKT_E_ARG);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("custom op 'draw': input 0, 'v', needs a gradient, and the op has no gradient shader");
    stand_end(&b);
}

/* Builds three ops `wave`, and a relu and an addition of the library. The values `first` and `second` have two readers
 * each. So the relu cannot overwrite `second`. The addition may overwrite the output of the third `wave`. Checks the
 * number of barriers and the result. Synchronization validation reports a missing barrier. */
static void hazards_are_planned(void **state)
{
    rig *r = rig_of(state);
    enum { N = 1000, STEPS = 6 };
    float x[N], a[N];
    stand b = stand_make(r);
    const vkt_tensor ix = stand_input(&b, vkt_shape1(N), -1.5f, 1.5f, 1, x),
                     ia = stand_input(&b, vkt_shape1(N), -2, 2, 2, a);
    const vkt_tensor first = wave(b.g, ix, ia, NULL), second = wave(b.g, first, ia, NULL);
    const vkt_tensor y = vkt_add(b.g, wave(b.g, vkt_relu(b.g, second), first, NULL), second);
    vkt_keep(b.g, y);
    assert_int_equal(vkt_program_create(r->ctx, b.g, NULL, NULL, &b.p),
                     VKT_OK); /* in this program, values may share memory; in a program of stand_start, they may not */
    vkt_plan_info info;
    vkt_program_plan(b.p, &info);
    assert_true(info.dispatches == 5 && info.barriers == 4);
    stand_write(&b, ix, x);
    stand_write(&b, ia, a);
    for (int i = 0; i < STEPS; i++) assert_int_equal(vkt_program_run(b.p, NULL, NULL), VKT_OK);
    float *got = stand_read(&b, y);
    for (size_t i = 0; i < N; i++) {
        const double A = (double)a[i], X = (double)x[i], f = X * sin(A * X), s = f * sin(A * f), h = fmax(s, 0);
        expect_close((double)got[i], h * sin(f * h) + s, 20 * SINE, "y", i);
    }
    char *text;
    assert_int_equal(vkt_program_print(b.p, &text), VKT_OK);
    assert_non_null(strstr(text, " wave "));
    vkt_text_release(&text);
    test_free(got);
    stand_end(&b);
}

/* Lets each allocation of vkt_custom fail once. Checks that the status is VKT_E_NOMEM and that there is no output. */
static void out_of_memory(void **state)
{
    rig *r = rig_of(state);
    for (unsigned n = 1;; n++) {
        stand b = stand_make(r);
        const vkt_tensor x = vkt_input(b.g, "x", VKT_F32, VKT_ROWS, vkt_shape1(9));
        vkt_test_fail_allocation(n);
        const vkt_tensor y = own_relu(b.g, x);
        const bool failed = vkt_test_allocation_failed();
        assert_int_equal(vkt_graph_status(b.g), failed ? VKT_E_NOMEM : VKT_OK);
        assert_true(failed == (y.id == 0));
        stand_end(&b);
        if (!failed) break;
    }
    vkt_test_fail_allocation(0);
}

/* Lets each allocation of vkt_program_create fail once. Checks that the result is VKT_E_NOMEM, and that the graph can
 * still become a program. */
static void out_of_memory_in_a_program(void **state)
{
    rig *r = rig_of(state);
    stand b = stand_make(r);
    vkt_keep(b.g, own_relu(b.g, vkt_relu(b.g, vkt_input(b.g, "x", VKT_F32, VKT_ROWS, vkt_shape1(9)))));
    assert_int_equal(vkt_program_create(r->ctx, b.g, NULL, NULL, &b.p),
                     VKT_OK); /* from here on, the context has all kernels of the graph */
    vkt_program_destroy(&b.p);
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result result = vkt_program_create(r->ctx, b.g, NULL, NULL, &b.p);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(result, VKT_E_NOMEM);
        assert_null(b.p);
    }
    vkt_test_fail_allocation(0);
    assert_non_null(b.p);
    stand_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(two_inputs_and_a_broadcast_parameter),
                                        rig_test(a_loss_per_row_is_trained_through_a_mean),
                                        rig_test(outputs_without_a_gradient_and_inputs_with_two_readers),
                                        rig_test(the_batch_last_and_a_loop_over_the_elements),
                                        rig_test(a_sampler_has_no_gradient),
                                        rig_test(hazards_are_planned),
                                        rig_test(out_of_memory),
                                        rig_test(out_of_memory_in_a_program) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
