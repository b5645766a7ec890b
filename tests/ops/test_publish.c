/* Tests vkt_publish: what is published, when it is published, and which programs read it. (test_ops.c checks the op
 * itself; train/test_trainer_ema.c checks files.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
enum { N = 5, B = 6, C = 2, PARAMS = 6, MOST = 6 };
enum {
    FROZEN = 2,
    MEAN = 4,
    VAR = 5
}; /* indices of a frozen parameter and of two states; they are published without
    * averaging */

/* The program of a training step. loss = sum(a x) + mean(b a x) + mean(batch_norm(z) z), with the parameters a, b and
 * gamma. The gradient of a depends on b, and the gradient of b depends on a. So both gradients change in each step. */
typedef struct rig {
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    vkt_tensor x, z;
} rig;

static vkt_tensor declare(rig *r)
{
    r->g = harness_graph();
    r->x = vkt_input(r->g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N));
    r->z = vkt_input(r->g, "z", VKT_F32, VKT_BATCH_LAST, vkt_shape2(B, C));
    const vkt_tensor a = vkt_param(r->g, "a", vkt_shape1(N)), b = vkt_param(r->g, "b", vkt_shape1(N));
    vkt_param(r->g, "frozen", vkt_shape1(N));
    const vkt_tensor gamma = vkt_param(r->g, "gamma", vkt_shape1(C));
    const vkt_batch_norm_params bn = { .gamma = gamma,
                                       .running_mean = vkt_state(r->g, "mean", vkt_shape1(C)),
                                       .running_var = vkt_state(r->g, "var", vkt_shape1(C)) };
    const vkt_tensor y = vkt_mul(r->g, vkt_batch_norm(r->g, r->z, &bn), r->z), ax = vkt_mul(r->g, a, r->x);
    return vkt_add(r->g, vkt_add(r->g, vkt_sum(r->g, ax), vkt_mean(r->g, vkt_mul(r->g, b, ax))), vkt_mean(r->g, y));
}

static rig rig_make(const vkt_optimizer *o, double decay, vkt_precision precision)
{
    rig r;
    const vkt_tensor loss = declare(&r);
    OK(vkt_freeze(r.g, "frozen"));
    OK(vkt_backward(r.g, loss));
    OK(vkt_update(r.g, o));
    OK(vkt_publish(r.g, decay));
    vkt_report(r.g, loss, (vkt_tensor){ 0 });
    OK(vkt_store_create(harness_ctx, r.g, &r.store));
    OK(vkt_program_create(harness_ctx, r.g, r.store, &(vkt_program_params){ .precision = precision }, &r.p));
    for (uint32_t i = 0; i < PARAMS; i++) {
        float v[N];
        for (uint32_t k = 0; k < N; k++) v[k] = 0.5f + 0.25f * (float)((i * N + k * 7) % 5);
        OK(vkt_store_write(r.store, i, VKT_PART_VALUE, v));
    }
    return r;
}

static void rig_free(rig *r)
{
    vkt_program_destroy(&r->p);
    vkt_store_destroy(&r->store);
    vkt_graph_destroy(&r->g);
}

static vkt_metrics run(rig *r, float x, uint32_t number)
{
    float v[N], z[B * C];
    uint64_t index;
    vkt_metrics m;
    for (uint32_t i = 0; i < N; i++) v[i] = x * (float)(i + 1);
    for (uint32_t i = 0; i < B * C; i++) z[i] = (float)((i * 7 + number * 3) % 11) - 4;
    OK(vkt_program_write(r->p, r->x, v, sizeof v));
    OK(vkt_program_write(r->p, r->z, z, sizeof z));
    OK(vkt_program_run(r->p, &(vkt_run){ .lr = 0.05f, .rows = 1 }, &index));
    OK(vkt_program_metrics(r->p, index, &m));
    return m;
}

static void read_all(rig *r, vkt_store_part part, float v[PARAMS][MOST])
{
    memset(v, 0, PARAMS * sizeof *v);
    for (uint32_t i = 0; i < PARAMS; i++) OK(vkt_store_read(r->store, i, part, v[i]));
}

/* Runs twenty steps. Compares the published values with an average of the device's parameters. The test computes this
 * average in double precision. */
static void what_is_published_is_the_average_of_completed_steps(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const struct {
        uint32_t micro;
        double decay;
        vkt_precision precision;
    } cases[] = { { 1, 0, VKT_PRECISION_F32 },
                  { 1, 0.9, VKT_PRECISION_F32 },
                  { 3, 0.3, VKT_PRECISION_F32 },
                  { 2, 0.97, VKT_PRECISION_F16 } };
    for (size_t c = 0; c < VKT_COUNT(cases); c++) {
        const bool half = cases[c].precision == VKT_PRECISION_F16;
        const vkt_optimizer o = { .kind = VKT_ADAM, .micro_batches = cases[c].micro };
        rig r = rig_make(&o, cases[c].decay, cases[c].precision);
        float now[PARAMS][MOST], published[PARAMS][MOST], before[PARAMS][MOST];
        double average[PARAMS][MOST];
        uint32_t t = 0, held = 0, skipped = 0;
        read_all(&r, VKT_PART_VALUE, now);
        read_all(&r, VKT_PART_PUBLISHED, before);
        assert_memory_equal(now, before, sizeof now); /* initial values are published at once */
        for (uint32_t k = 0; t < 20; k++) {
            const bool overflows = half && (k == 4 || k == 13); /* in the first and in the last micro-batch of a step */
            const vkt_metrics m = run(&r, overflows ? 3e38f : 0.2f * (float)(k % 7) - 0.5f, k);
            read_all(&r, VKT_PART_VALUE, now);
            read_all(&r, VKT_PART_PUBLISHED, published);
            if (m.t == t) {
                held++;
                assert_memory_equal(published, before, sizeof before);
            }
            for (uint32_t i = 0; m.t != t && i < PARAMS; i++)
                for (uint32_t e = 0; e < MOST; e++) {
                    const bool copied = t == 0 || i == FROZEN || i == MEAN || i == VAR || cases[c].decay == 0;
                    const double value = (double)now[i][e];
                    average[i][e] = copied ? value : cases[c].decay * average[i][e] + (1 - cases[c].decay) * value;
                    if (copied ? published[i][e] != now[i][e]
                               : !(fabs((double)published[i][e] - average[i][e]) <= 2e-6 * fmax(1, fabs(value))))
                        fail_msg("case %zu, step %u, parameter %u[%u]: published %.9g, the average is %.9g", c, m.t, i,
                                 e, (double)published[i][e], average[i][e]);
                }
            t = m.t;
            skipped = m.skipped;
            memcpy(before, published, sizeof before);
        }
        assert_int_equal(skipped, half ? 2 : 0);
        assert_int_equal(held, 20 * (cases[c].micro - 1) + skipped * cases[c].micro);
        assert_true(cases[c].decay == 0 || published[0][0] != now[0][0]);
        rig_free(&r);
    }
}

/* Two programs of another graph use the same store. One program reads the values, and the other reads the average
 * (vkt_program_params.published). */
static void a_program_reads_the_part_that_it_was_made_for(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_optimizer o = { .kind = VKT_SGD };
    rig r = rig_make(&o, 0.5, VKT_PRECISION_F32);
    vkt_graph *g = harness_graph();
    const vkt_tensor y = vkt_scale(g, vkt_param(g, "b", vkt_shape1(N)), 2, 0);
    vkt_keep(g, y);
    vkt_program *p[2];
    for (int i = 0; i < 2; i++)
        OK(vkt_program_create(harness_ctx, g, r.store, &(vkt_program_params){ .published = i == 1 }, &p[i]));
    for (uint32_t k = 0; k < 4; k++) {
        float want[2][N], got[N];
        run(&r, 1, k);
        OK(vkt_store_read(r.store, 1, VKT_PART_VALUE, want[0]));
        OK(vkt_store_read(r.store, 1, VKT_PART_PUBLISHED, want[1]));
        if (k) assert_true(want[0][0] != want[1][0]);
        for (int i = 0; i < 2; i++) {
            OK(vkt_program_run(p[i], NULL, NULL));
            OK(vkt_program_read(p[i], y, got, sizeof got));
            for (int e = 0; e < N; e++) assert_true(got[e] == 2 * want[i][e]);
        }
    }
    for (int i = 0; i < 2; i++) vkt_program_destroy(&p[i]);
    vkt_graph_destroy(&g);
    rig_free(&r);
}

static void published_parameters_are_only_read(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_program_params params = { .published = true };
    rig r = rig_make(&(vkt_optimizer){ .kind = VKT_SGD }, 0.5, VKT_PRECISION_F32), statistics = { NULL };
    const vkt_tensor loss = declare(&statistics);
    vkt_keep(statistics.g, loss);
    vkt_graph *updates = harness_graph(), *plain = harness_graph();
    OK(vkt_backward(updates, vkt_sum(updates, vkt_param(updates, "a", vkt_shape1(N)))));
    OK(vkt_update(updates, &(vkt_optimizer){ .kind = VKT_SGD }));
    OK(vkt_publish(updates, 0));
    vkt_keep(plain, vkt_relu(plain, vkt_param(plain, "a", vkt_shape1(N))));
    vkt_store *own, *without;
    vkt_program *p;
    OK(vkt_store_create(harness_ctx, updates, &own));
    OK(vkt_store_create(harness_ctx, plain, &without));
    const struct {
        vkt_graph *g;
        vkt_store *store;
        const char *says;
    } wrong[] = { { updates, own, "its sgd writes params" },
                  { statistics.g, r.store, "its batch_norm writes mean" },
                  { plain, without, "made for a graph with vkt_publish" } };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        assert_int_equal(vkt_program_create(harness_ctx, wrong[i].g, wrong[i].store, &params, &p), VKT_E_STATE);
        vkt_test_error_contains(wrong[i].says);
    }
    assert_int_equal(vkt_program_create(harness_ctx, updates, without, NULL, &p), VKT_E_STATE);
    vkt_test_error_contains("or vkt_publish");
    vkt_test_expect_errors(false);
    OK(vkt_program_create(harness_ctx, plain, own, &params, &p));
    vkt_program_destroy(&p);
    vkt_store_destroy(&own);
    vkt_store_destroy(&without);
    vkt_graph_destroy(&updates);
    vkt_graph_destroy(&plain);
    vkt_graph_destroy(&statistics.g);
    rig_free(&r);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    static const struct {
        bool update, twice;
        double decay;
        vkt_result status;
        const char *says;
    } cases[] = { { false, false, 0, VKT_E_STATE, "call vkt_update first" },
                  { true, true, 0, VKT_E_STATE, "publishes already" },
                  { true, false, 1, VKT_E_ARG, "[0,1), got 1" },
                  { true, false, -0.1, VKT_E_ARG, "[0,1), got -0.1" },
                  { true, false, (double)NAN, VKT_E_ARG, "[0,1), got" } };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_graph *g = harness_graph();
        OK(vkt_backward(g, vkt_sum(g, vkt_param(g, "a", vkt_shape1(N)))));
        if (cases[i].update) OK(vkt_update(g, &(vkt_optimizer){ .kind = VKT_SGD }));
        if (cases[i].twice) OK(vkt_publish(g, 0));
        assert_int_equal(vkt_publish(g, cases[i].decay), cases[i].status);
        assert_int_equal(vkt_graph_status(g), cases[i].status);
        vkt_test_error_contains(cases[i].says);
        vkt_graph_destroy(&g);
    }
    vkt_test_expect_errors(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_published_is_the_average_of_completed_steps),
        cmocka_unit_test(a_program_reads_the_part_that_it_was_made_for),
        cmocka_unit_test(published_parameters_are_only_read),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests_name("publish", tests, harness_setup, harness_teardown);
}
