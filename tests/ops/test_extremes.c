/* Tests maxima and minima over any axes, and the index of a maximum along one axis. With ties, infinities and NaN, the
 * results must be those of torch's amax, amin and argmax. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

typedef struct rig {
    vkt_graph *g;
    vkt_tensor x;
    vkt_program *p;
} rig;

static rig new_rig(vkt_layout layout, vkt_shape s)
{
    const vkt_host h = vkt_test_host();
    rig r = { .g = NULL };
    OK(vkt_graph_create(&h, &r.g));
    r.x = vkt_input(r.g, "x", VKT_F32, layout, s);
    return r;
}

static void run(rig *r, const float *x)
{
    const size_t bytes = 4 * (size_t)vkt_shape_elements(vkt_tensor_shape(r->g, r->x));
    OK(vkt_program_create_guarded(harness_ctx, r->g, NULL, NULL, &r->p));
    OK(vkt_program_write(r->p, r->x, x, bytes));
    OK(vkt_program_run(r->p, NULL, NULL));
}

static void read(const rig *r, vkt_tensor t, void *out)
{
    OK(vkt_program_read(r->p, t, out, 4 * (size_t)vkt_shape_elements(vkt_tensor_shape(r->g, t))));
}

static void end(rig *r)
{
    vkt_program_destroy(&r->p);
    vkt_graph_destroy(&r->g);
}

/* Returns the gradient of y with respect to x, for dy = 1. Keeps both y and the gradient. */
static vkt_tensor gradient(rig *r, vkt_tensor y)
{
    const vkt_tensor one = vkt_graph_const(r->g, "one", VKT_F32, vkt_shape0(), &(float){ 1 });
    const vkt_tensor dy = vkt_expand(r->g, one, vkt_tensor_shape(r->g, y), VKT_ROWS);
    vkt_tensor dx = { 0 };
    OK(vkt_gradients(r->g, &y, &dy, 1, &r->x, 1, &dx));
    vkt_keep(r->g, y);
    vkt_keep(r->g, dx);
    return dx;
}

enum { RANK = 4, N = 3 * 4 * 5 * 6 };

/* A tensor of shape s is reduced over `axes`. Returns the index of the output that element i belongs to. In both
 * indices, the last dimension is the fastest. */
static uint32_t output_of(vkt_shape s, uint32_t axes, uint32_t i)
{
    uint32_t at = 0, stride = 1;
    for (uint32_t d = s.rank; d-- > 0; i /= s.dim[d]) {
        if (axes >> d & 1) continue;
        at += i % s.dim[d] * stride;
        stride *= s.dim[d];
    }
    return at;
}

static void check_extreme(const float *x, vkt_shape s, uint32_t axes, double sign, const float *y, const float *dx)
{
    double best[N], equal[N] = { 0 };
    for (uint32_t i = 0; i < N; i++) best[i] = -sign * (double)INFINITY;
    for (uint32_t i = 0; i < N; i++) {
        double *b = &best[output_of(s, axes, i)];
        if (sign * (double)x[i] > sign * *b) *b = (double)x[i];
    }
    for (uint32_t i = 0; i < N; i++) equal[output_of(s, axes, i)] += (double)x[i] == best[output_of(s, axes, i)];
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t o = output_of(s, axes, i);
        assert_true((double)y[o] == best[o]);
        assert_true(fabs((double)dx[i] - ((double)x[i] == best[o] ? 1 / equal[o] : 0)) < 3e-7);
    }
}

/* x has few different values, so many extremes have ties. Some values are infinite. */
static void extremes_over_every_set_of_axes(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_shape s = vkt_shape4(3, 4, 5, 6);
    float x[N];
    for (int i = 0; i < N; i++) {
        const int k = (i * 37 + i * i % 11) % 17;
        x[i] = k == 16 && i % 2 ? INFINITY : k == 0 && i % 3 ? -INFINITY : (float)(k - 8) / 4;
    }
    for (uint32_t axes = 1; axes < 1u << RANK; axes++) {
        rig r = new_rig(axes % 3 ? VKT_ROWS : VKT_BATCH_LAST, s);
        const vkt_tensor most = vkt_max_over(r.g, r.x, axes, axes & 2), least = vkt_min_over(r.g, r.x, axes, axes & 2);
        const vkt_tensor dmost = gradient(&r, most), dleast = gradient(&r, least);
        assert_int_equal(vkt_tensor_shape(r.g, most).rank, axes & 2 ? RANK : RANK - __builtin_popcount(axes));
        run(&r, x);
        float y[N], dx[N];
        read(&r, most, y);
        read(&r, dmost, dx);
        check_extreme(x, s, axes, 1, y, dx);
        read(&r, least, y);
        read(&r, dleast, dx);
        check_extreme(x, s, axes, -1, y, dx);
        end(&r);
    }
}

/* A matrix (R,C) has one NaN. Each case reduces the matrix over one of its two axes. The output of the row or column
 * with the NaN must be NaN, and so must all gradients of this row or column. No other output or gradient may be NaN.
 * The sizes cover lanes along and across the reduced dimension, loads of vec4s and of single elements, and reductions
 * with and without splits. */
static void a_nan_is_an_extreme(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const vkt_shape shapes[] = {
        { 2, { 3, 4096 } }, { 2, { 7, 131 } }, { 2, { 700, 64 } }, { 2, { 20001, 3 } }
    };
    for (size_t k = 0; k < 2 * VKT_COUNT(shapes); k++) {
        const vkt_shape s = shapes[k / 2];
        const uint32_t axis = k % 2, R = s.dim[0], C = s.dim[1], n = R * C, outs = axis ? R : C, where = n / 2 + 1;
        float *x = malloc(3 * n * sizeof *x), *y = x + n, *dx = y + n;
        assert_non_null(x);
        for (uint32_t i = 0; i < n; i++) x[i] = -1 - (float)(i % 1009);
        x[where] = NAN;
        rig r = new_rig(VKT_ROWS, s);
        const vkt_tensor most = vkt_max_over(r.g, r.x, VKT_AXIS(axis), false), d = gradient(&r, most);
        const vkt_tensor least = vkt_min_over(r.g, r.x, VKT_AXIS(axis), false);
        vkt_keep(r.g, least);
        run(&r, x);
        const uint32_t bad = output_of(s, VKT_AXIS(axis), where);
        read(&r, least, y);
        for (uint32_t o = 0; o < outs; o++) assert_int_equal(isnan(y[o]), o == bad);
        read(&r, most, y);
        read(&r, d, dx);
        for (uint32_t o = 0; o < outs; o++) assert_int_equal(isnan(y[o]), o == bad);
        for (uint32_t i = 0; i < n; i++) assert_int_equal(isnan(dx[i]), output_of(s, VKT_AXIS(axis), i) == bad);
        end(&r);
        free(x);
    }
}

/* If several elements are the maximum, the result is the index of the first one. A NaN counts as larger than
 * infinity. */
static void indices_along_every_axis(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_shape s = vkt_shape4(3, 4, 5, 6);
    float x[N];
    for (int i = 0; i < N; i++) x[i] = i % 23 == 7 ? INFINITY : i % 31 == 3 ? NAN : (float)((i * 37 + i * i % 11) % 5);
    for (int32_t axis = -RANK; axis < RANK; axis++) {
        const uint32_t a = (uint32_t)(axis + RANK) % RANK, K = s.dim[a];
        rig r = new_rig(axis % 2 ? VKT_ROWS : VKT_BATCH_LAST, s);
        const vkt_tensor y = vkt_argmax_over(r.g, r.x, axis, axis < 0);
        uint32_t got[N], seen[N] = { 0 }, at[N] = { 0 };
        float best[N];
        vkt_keep(r.g, y);
        assert_int_equal(vkt_tensor_shape(r.g, y).rank, axis < 0 ? RANK : RANK - 1);
        run(&r, x);
        read(&r, y, got);
        for (uint32_t i = 0; i < N; i++) { /* visits the elements of an output by rising index along the axis */
            const uint32_t o = output_of(s, VKT_AXIS(a), i);
            if (seen[o] == 0 || x[i] > best[o] || (isnan(x[i]) && !isnan(best[o]))) {
                best[o] = x[i];
                at[o] = seen[o];
            }
            seen[o]++;
        }
        for (uint32_t o = 0; o < N / K; o++) assert_int_equal(got[o], at[o]);
        end(&r);
    }
}

#define TEST(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(extremes_over_every_set_of_axes),
        TEST(a_nan_is_an_extreme),
        TEST(indices_along_every_axis),
    };
    return cmocka_run_group_tests_name("extremes", tests, harness_setup, harness_teardown);
}
