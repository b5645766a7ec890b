/* Tests values with two arrays (vkt_binding.other). vkt_run.swap selects the array that a run uses. */
#include <string.h>

#include "base/base.h"
#include "embed/app.h"

#define DO(call) assert_int_equal((call), VKT_OK)
enum { N = 500 };

/* A program y = 2 x + 1 between two arrays. x is array[0] and y is array[1]. With `swap`, x is array[1] and y is
 * array[0]. */
typedef struct rig {
    app a;
    vkt_ctx *ctx;
    vkt_graph *g;
    vkt_array *array[2];
    vkt_tensor x, y;
    vkt_program *p;
    double want[2]; /* the expected element 0 of each array */
} rig;

static vkt_array *new_array(vkt_ctx *ctx, uint32_t rows, uint32_t columns, const float *data)
{
    vkt_array *array;
    DO(vkt_array_create(ctx, &(vkt_array_params){ .shape = vkt_shape2(rows, columns), .data = data }, &array));
    return array;
}

static void rig_make(rig *r)
{
    float data[N];
    *r = (rig){ .want = { 0, -100 } };
    app_open(&r->a, NULL);
    r->ctx = app_adopt(&r->a);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < N; k++) data[k] = (float)(r->want[i] + k);
        r->array[i] = new_array(r->ctx, 10, N / 10, data);
    }
    DO(vkt_graph_create(&r->a.host, &r->g));
    r->x = vkt_external(r->g, "x", VKT_F32, vkt_shape2(10, N / 10));
    r->y = vkt_external(r->g, "y", VKT_F32, vkt_shape2(10, N / 10));
    vkt_write(r->g, vkt_scale(r->g, r->x, 2, 1), r->y);
    const vkt_binding arrays[] = { { r->x, r->array[0], r->array[1] }, { r->y, r->array[1], r->array[0] } };
    const vkt_program_params params = { .arrays = arrays, .n_arrays = 2, .profile = true };
    DO(vkt_program_create(r->ctx, r->g, NULL, &params, &r->p));
    DO(vkt_ctx_wait_idle(r->ctx));
}

/* Checks all elements of both arrays: element k of array i must be want[i] + slope[i] * k. At first, both slopes are 1.
 * A run computes y = 2 x + 1, so it makes the slope of y twice the slope of x. */
static void rig_check(rig *r, const double slope[2])
{
    float got[N];
    for (int i = 0; i < 2; i++) {
        app_array_read(&r->a, r->array[i], got);
        for (int k = 0; k < N; k++) assert_true((double)got[k] == r->want[i] + slope[i] * k);
    }
}

static void rig_free(rig *r)
{
    vkt_program_destroy(&r->p);
    vkt_graph_destroy(&r->g);
    for (int i = 0; i < 2; i++) vkt_array_destroy(&r->array[i]);
    vkt_ctx_destroy(&r->ctx);
    app_close(&r->a);
}

typedef enum way { RUN, PROFILE, RECORDED, BUDGET, WAYS } way;

static void step(rig *r, way w, bool swap)
{
    const vkt_run run = { .swap = swap };
    if (w == RUN) DO(vkt_program_run(r->p, &run, NULL));
    if (w == PROFILE) {
        vkt_kernel_time times[8];
        uint32_t n;
        DO(vkt_program_profile(r->p, &run, times, 8, &n));
    }
    if (w == RECORDED) {
        VkCommandBuffer cmd = app_begin(&r->a, false);
        app_barrier(&r->a, cmd);
        DO(vkt_program_record(r->p, cmd, &run));
        app_barrier(&r->a, cmd);
        app_end(&r->a, cmd);
        app_submit(&r->a, cmd, NULL, 0);
        app_wait(&r->a);
    }
    vkt_step_progress progress = { .completed = w != BUDGET };
    while (!progress.completed) {
        uint64_t budget_ns = UINT64_MAX;
        const vkt_run other = { .swap = !swap }; /* `swap` has no effect in the middle of a run */
        DO(vkt_step_budget(r->p, progress.slice ? &other : &run, NULL, &budget_ns, &progress));
    }
}

static void each_run_chooses_its_arrays(void **state)
{
    (void)state;
    static const bool swaps[] = { 0, 1, 0, 0, 1, 1, 0, 1, 1 };
    for (int w = 0; w < WAYS; w++) {
        rig r;
        double slope[2] = { 1, 1 };
        rig_make(&r);
        for (size_t i = 0; i < VKT_COUNT(swaps); i++) {
            const bool s = swaps[i];
            step(&r, (way)w, s);
            r.want[!s] = 2 * r.want[s] + 1;
            slope[!s] = 2 * slope[s];
            rig_check(&r, slope);
        }
        rig_free(&r);
    }
}

/* Several runs may be pending at once, because the host does not wait between two calls of vkt_program_run. */
static void runs_follow_each_other(void **state)
{
    (void)state;
    rig r;
    double slope[2] = { 1, 1 };
    rig_make(&r);
    for (int i = 0; i < 12; i++) {
        const bool s = i % 2;
        step(&r, i % 5 == 4 ? BUDGET : RUN, s);
        r.want[!s] = 2 * r.want[s] + 1;
        slope[!s] = 2 * slope[s];
    }
    rig_check(&r, slope);
    rig_free(&r);
}

/* Trains a network on two data sets alternately: with one program that swaps its arrays, and with two programs on one
 * store. Both ways must give the same parameters. */
static void one_program_trains_as_two_do(void **state)
{
    (void)state;
    float x[NET_ROWS * NET_IN], t[NET_ROWS * NET_OUT], got[NET_PARAMS], want[NET_PARAMS];
    app a;
    net n;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    vkt_array *xs[2], *ts[2];
    net_data(x, t);
    for (int i = 0; i < 2; i++) {
        xs[i] = new_array(ctx, NET_ROWS, NET_IN, x);
        ts[i] = new_array(ctx, NET_ROWS, NET_OUT, t);
        for (int k = 0; k < NET_ROWS * NET_IN; k++) x[k] *= -0.5f;
    }
    for (int two = 0; two < 2; two++) {
        vkt_program *p[2];
        net_make(&n, ctx, xs[0], ts[0]);
        for (int i = 0; i <= two; i++) {
            const vkt_binding arrays[] = { { n.x, xs[i], two ? NULL : xs[1] }, { n.t, ts[i], two ? NULL : ts[1] } };
            const vkt_program_params params = { .arrays = arrays, .n_arrays = 2 };
            DO(vkt_program_create(ctx, n.g, n.store, &params, &p[i]));
        }
        for (uint32_t s = 0; s < 8; s++) {
            vkt_run run = net_run(s);
            run.swap = s % 2; /* has no effect in the two programs */
            DO(vkt_program_run(p[two ? s % 2 : 0], &run, NULL));
        }
        net_params(&n, two ? want : got);
        for (int i = 0; i <= two; i++) vkt_program_destroy(&p[i]);
        net_free(&n);
    }
    assert_memory_equal(got, want, sizeof want);
    for (int i = 0; i < 2; i++) {
        vkt_array_destroy(&xs[i]);
        vkt_array_destroy(&ts[i]);
    }
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

static void wrong_pairs_are_refused(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    vkt_array *small = new_array(r.ctx, 1, 1, NULL);
    vkt_program *p = NULL;
    vkt_binding arrays[] = { { r.x, r.array[0], small }, { r.y, r.array[1] } };
    const vkt_program_params params = { .arrays = arrays, .n_arrays = 2 };
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_create(r.ctx, r.g, NULL, &params, &p), VKT_E_ARG);
    vkt_test_error_contains("array binding 0");
    arrays[0].other = r.array[1];
    assert_int_equal(vkt_program_create(r.ctx, r.g, NULL, &params, &p), VKT_E_STATE);
    vkt_test_error_contains("'y', which is written, and to 'x', with swap");
    vkt_test_expect_errors(false);
    assert_null(p);
    vkt_array_destroy(&small);
    rig_free(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_run_chooses_its_arrays),
        TEST(runs_follow_each_other),
        TEST(one_program_trains_as_two_do),
        TEST(wrong_pairs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
