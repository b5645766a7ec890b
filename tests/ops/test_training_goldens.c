/* SGD and Adam over many steps, through vkt_update, the store and its clock: against PyTorch's and Keras' trajectories
 * (tests/golden/optim.safetensors, float64) and against the double-precision reference with random hyperparameters.
 *
 * The arena holds several parameters of odd sizes. The loss is sum_k <p_k, c_k>, so that the gradients are the inputs
 * c_k, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/golden.h"
#include "ops/harness.h"
#include "support/host.h"

static vkt_ctx *ctx;
static golden file;

/* ---- an engine that does nothing but update ---- */

#define PARAMS 4

typedef struct engine {
    uint32_t size[PARAMS]; /* of the parameters; 0 ends */
    vkt_graph *g;
    vkt_tensor c[PARAMS];
    vkt_store *store;
    vkt_program *program;
} engine;

static uint32_t total(const engine *e)
{
    uint32_t n = 0;
    for (int k = 0; k < PARAMS; k++) n += e->size[k];
    return n;
}

/* Calls move(e, k, part, at) for each parameter, `at` its place in a vector of all. */
static void each_param(engine *e, float *all, void (*move)(engine *e, uint32_t k, float *at))
{
    for (uint32_t k = 0; k < PARAMS && e->size[k]; all += e->size[k], k++) move(e, k, all);
}

static void write_gradient(engine *e, uint32_t k, float *at)
{
    assert_int_equal(vkt_program_write(e->program, e->c[k], at, e->size[k] * sizeof *at), VKT_OK);
}

static void write_value(engine *e, uint32_t k, float *at)
{
    assert_int_equal(vkt_store_write(e->store, k, VKT_PART_VALUE, at), VKT_OK);
}

static void read_value(engine *e, uint32_t k, float *at)
{
    assert_int_equal(vkt_store_read(e->store, k, VKT_PART_VALUE, at), VKT_OK);
}

static void read_moment1(engine *e, uint32_t k, float *at)
{
    assert_int_equal(vkt_store_read(e->store, k, VKT_PART_MOMENT1, at), VKT_OK);
}

static void read_moment2(engine *e, uint32_t k, float *at)
{
    assert_int_equal(vkt_store_read(e->store, k, VKT_PART_MOMENT2, at), VKT_OK);
}

/* e->size is given. */
static void engine_build(engine *e, const vkt_optimizer *o)
{
    const vkt_host h = vkt_test_host();
    vkt_tensor loss = { 0 };
    assert_int_equal(vkt_graph_create(&h, &e->g), VKT_OK);
    for (uint32_t k = 0; k < PARAMS && e->size[k]; k++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", k);
        const vkt_tensor p = vkt_param(e->g, name, vkt_shape1(e->size[k]));
        e->c[k] = vkt_input(e->g, "c", VKT_F32, VKT_ROWS, vkt_shape1(e->size[k]));
        const vkt_tensor dot = vkt_sum(e->g, vkt_mul(e->g, p, e->c[k]));
        loss = k ? vkt_add(e->g, loss, dot) : dot;
    }
    assert_int_equal(vkt_backward(e->g, loss), VKT_OK);
    assert_int_equal(vkt_update(e->g, o), VKT_OK);
    assert_int_equal(vkt_store_create(ctx, e->g, &e->store), VKT_OK);
    assert_int_equal(vkt_program_create(ctx, e->g, e->store, NULL, &e->program), VKT_OK);
}

static void engine_step(engine *e, float *gradient, float lr)
{
    const vkt_run run = { .lr = lr };
    each_param(e, gradient, write_gradient);
    assert_int_equal(vkt_program_run(e->program, &run, NULL), VKT_OK);
}

static void engine_free(engine *e)
{
    vkt_program_destroy(&e->program);
    vkt_store_destroy(&e->store);
    vkt_graph_destroy(&e->g);
}

/* ---- trajectories ---- */

/* A run of T steps from p0, n parameters: gradients (T,n), learning rates (T). */
typedef struct course {
    size_t T, n;
    float *p0, *gradients, *lr;
    double *p; /* (T,n): what the parameters must be after each step */
} course;

static void course_free(course *c)
{
    free(c->p0);
    free(c->gradients);
    free(c->lr);
    free(c->p);
}

/* What T steps in float32 may add up to in element i: per step a rounding of p, and 1e-5 of the largest step. Both
 * moments gather a few roundings per step and forget them at the rate 1 - beta, so a step is exact to some 100 of
 * 2^-24. */
static double allowed(const course *c, size_t i)
{
    double size = fabs((double)c->p0[i]), step = fabs(c->p[i] - (double)c->p0[i]);
    for (size_t t = 0; t < c->T; t++) {
        size = fmax(size, fabs(c->p[t * c->n + i]));
        if (t) step = fmax(step, fabs(c->p[t * c->n + i] - c->p[(t - 1) * c->n + i]));
    }
    return (double)c->T * (0x1p-23 * size + 1e-5 * step);
}

/* Runs the engine along the course and compares after each step. */
static void follow(engine *e, const course *c, const char *what)
{
    float *got = malloc(c->n * sizeof *got);
    assert_non_null(got);
    assert_int_equal(total(e), c->n);
    each_param(e, c->p0, write_value);
    for (size_t t = 0; t < c->T; t++) {
        engine_step(e, c->gradients + t * c->n, c->lr[t]);
        each_param(e, got, read_value);
        for (size_t i = 0; i < c->n; i++) {
            const double want = c->p[t * c->n + i];
            if (!(fabs((double)got[i] - want) <= allowed(c, i)))
                fail_msg("%s: parameter %zu after step %zu is %.9g, wanted %.9g +- %.2g", what, i, t + 1,
                         (double)got[i], want, allowed(c, i));
        }
    }
    free(got);
}

/* c->p by the reference; moments are left in m and v (n each, zero at first). */
static void by_reference(course *c, const vkt_optimizer *o, double *m, double *v)
{
    double *p = malloc(2 * c->n * sizeof *p), *g = p + c->n;
    assert_non_null(p);
    for (size_t i = 0; i < c->n; i++) p[i] = (double)c->p0[i];
    for (size_t t = 0; t < c->T; t++) {
        for (size_t i = 0; i < c->n; i++) g[i] = (double)c->gradients[t * c->n + i];
        if (o->kind == VKT_ADAM)
            vkt_ref_adam(o, (double)c->lr[t], t + 1, c->n, p, g, m, v);
        else
            vkt_ref_sgd(o, (double)c->lr[t], t + 1, c->n, p, g, m);
        memcpy(c->p + t * c->n, p, c->n * sizeof *p);
    }
    free(p);
}

/* ---- against PyTorch and Keras ---- */

static vkt_optimizer optimizer_of(const char *name)
{
    json_t *a = golden_attributes(&file, name);
    const char *kind = json_string_value(json_object_get(a, "kind"));
    const vkt_optimizer o = { .kind = strcmp(kind, "adam") == 0 ? VKT_ADAM : VKT_SGD,
                              .weight_decay = (float)golden_number(a, "weight_decay", 0),
                              .momentum = (float)golden_number(a, "momentum", 0),
                              .dampening = (float)golden_number(a, "dampening", 0),
                              .nesterov = golden_flag(a, "nesterov"),
                              .beta1 = golden_number(a, "beta1", 0),
                              .beta2 = golden_number(a, "beta2", 0),
                              .eps = (float)golden_number(a, "eps", 0),
                              .keras = golden_flag(a, "keras") };
    json_decref(a);
    return o;
}

static course golden_course(const char *name)
{
    vkt_shape s;
    course c = { .p0 = golden_f32(&file, "p0", NULL, NULL),
                 .gradients = golden_f32(&file, "gradients", NULL, NULL),
                 .lr = golden_f32(&file, name, "lr", NULL),
                 .p = golden_f64(&file, name, "p", &s) };
    assert_true(c.p0 && c.gradients && c.lr && c.p && s.rank == 2);
    c.T = s.dim[0];
    c.n = s.dim[1];
    return c;
}

/* The reference's trajectory beside the file's. eps is a float in vkt_optimizer, 6e-9 of itself away from torch's. */
static void check_reference(const course *want, const vkt_optimizer *o, const char *name)
{
    course c = *want;
    vkt_optimizer resolved = *o; /* with the defaults that optim.h states */
    if (resolved.beta1 == 0) resolved.beta1 = 0.9;
    if (resolved.beta2 == 0) resolved.beta2 = 0.999;
    if (resolved.eps == 0) resolved.eps = resolved.keras ? 1e-7f : 1e-8f;
    c.p = malloc(c.T * c.n * sizeof *c.p);
    double *moments = calloc(2 * c.n, sizeof *moments);
    assert_true(c.p && moments);
    by_reference(&c, &resolved, moments, moments + c.n);
    for (size_t i = 0; i < c.T * c.n; i++)
        if (!(fabs(c.p[i] - want->p[i]) <= 1e-9))
            fail_msg("%s: the reference has %.15g for parameter %zu after step %zu, PyTorch %.15g", name, c.p[i],
                     i % c.n, i / c.n + 1, want->p[i]);
    free(moments);
    free(c.p);
}

static void an_update_is_as_in_pytorch(void **state)
{
    const char *name = *state;
    const vkt_optimizer o = optimizer_of(name);
    course c = golden_course(name);
    check_reference(&c, &o, name);
    if (ctx) {
        engine e = { .size = { 1, 5, 31 } };
        engine_build(&e, &o);
        follow(&e, &c, name);
        engine_free(&e);
    }
    course_free(&c);
}

/* ---- against the reference ---- */

static vkt_optimizer random_optimizer(vkt_rng *r)
{
    vkt_optimizer o = { .kind = vkt_rng_range(r, 0, 1) ? VKT_ADAM : VKT_SGD,
                        .weight_decay = vkt_rng_range(r, 0, 1) ? vkt_rng_uniform(r, 0, 0.1f) : 0 };
    if (o.kind == VKT_ADAM) {
        o.beta1 = (double)vkt_rng_uniform(r, 0.5f, 0.95f);
        o.beta2 = (double)vkt_rng_uniform(r, 0.9f, 0.9999f);
        o.eps = vkt_rng_range(r, 0, 1) ? 1e-8f : 1e-3f;
        o.keras = vkt_rng_range(r, 0, 1) != 0;
    } else if (vkt_rng_range(r, 0, 2)) {
        o.momentum = vkt_rng_uniform(r, 0.1f, 0.95f);
        o.nesterov = vkt_rng_range(r, 0, 1) != 0;
        if (!o.nesterov) o.dampening = vkt_rng_uniform(r, 0, 0.9f);
    }
    return o;
}

static course random_course(vkt_rng *r, size_t T, size_t n)
{
    course c = { .T = T,
                 .n = n,
                 .p0 = malloc(n * sizeof *c.p0),
                 .gradients = malloc(T * n * sizeof *c.gradients),
                 .lr = malloc(T * sizeof *c.lr),
                 .p = malloc(T * n * sizeof *c.p) };
    assert_true(c.p0 && c.gradients && c.lr && c.p);
    const float lr = vkt_rng_uniform(r, 1e-3f, 0.1f);
    for (size_t i = 0; i < n; i++) c.p0[i] = vkt_rng_uniform(r, -1, 1);
    for (size_t i = 0; i < T * n; i++) c.gradients[i] = (float)vkt_rng_normal(r) * (i % 3 ? 1.0f : 1e-3f);
    for (size_t t = 0; t < T; t++) c.lr[t] = t % 8 == 7 ? 2 * lr : lr;
    return c;
}

static void check_moment(engine *e, const double *want, void (*read)(engine *, uint32_t, float *), const char *what)
{
    float *got = malloc(total(e) * sizeof *got);
    assert_non_null(got);
    each_param(e, got, read);
    const bool close = harness_close(what, got, want, total(e), 2e-6, 2e-6); /* some 30 roundings of 2^-24 */
    free(got);
    assert_true(close);
}

static void trajectories_are_those_of_the_reference(void **state)
{
    (void)state;
    harness_needs(ctx);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        char what[32];
        vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 4, 0);
        const vkt_optimizer o = random_optimizer(&r);
        engine e = { .size = { 7, 1, vkt_rng_range(&r, 1, 700), 33 } };
        course c = random_course(&r, 20, total(&e));
        double *m = calloc(2 * c.n, sizeof *m), *v = m + c.n;
        assert_non_null(m);
        by_reference(&c, &o, m, v);
        engine_build(&e, &o);
        snprintf(what, sizeof what, "seed %u", (unsigned)seed);
        follow(&e, &c, what);
        if (vkt_store_has(e.store, VKT_PART_MOMENT1)) check_moment(&e, m, read_moment1, what);
        if (vkt_store_has(e.store, VKT_PART_MOMENT2)) check_moment(&e, v, read_moment2, what);
        assert_int_equal(vkt_store_has(e.store, VKT_PART_MOMENT2), o.kind == VKT_ADAM);
        engine_free(&e);
        course_free(&c);
        free(m);
    }
}

/* Bias corrections restored at step 100,000 are those of a run that went there: 1 - b2^t is exact for any t. */
static void the_clock_can_be_set(void **state)
{
    (void)state;
    harness_needs(ctx);
    static const uint64_t clocks[] = { 0, 1, 999, 100000, 4000000000u };
    const vkt_optimizer o = { .kind = VKT_ADAM, .beta2 = 0.99999 },
                        resolved = { .kind = VKT_ADAM, .beta1 = 0.9, .beta2 = 0.99999, .eps = 1e-8f };
    engine e = { .size = { 3 } };
    engine_build(&e, &o);
    for (size_t k = 0; k < VKT_COUNT(clocks); k++) {
        float p0[] = { 1, -2, 3 }, g[] = { 0.5f, 1, -2 }, m0[] = { 0.1f, 0.2f, 0.3f }, v0[] = { 1, 2, 3 }, got[3];
        double p[3], dg[3], m[3], v[3];
        uint64_t t, seed;
        for (int i = 0; i < 3; i++)
            p[i] = (double)p0[i], dg[i] = (double)g[i], m[i] = (double)m0[i], v[i] = (double)v0[i];
        assert_int_equal(vkt_store_set_clock(e.store, clocks[k], 42), VKT_OK);
        assert_int_equal(vkt_store_write(e.store, 0, VKT_PART_MOMENT1, m0), VKT_OK);
        assert_int_equal(vkt_store_write(e.store, 0, VKT_PART_MOMENT2, v0), VKT_OK);
        each_param(&e, p0, write_value);
        engine_step(&e, g, 0.01f);
        each_param(&e, got, read_value);
        assert_int_equal(vkt_store_get_clock(e.store, &t, &seed), VKT_OK);
        assert_true(t == clocks[k] + 1 && seed == 42);
        vkt_ref_adam(&resolved, (double)0.01f, t, 3, p, dg, m, v);
        assert_true(harness_close("after the clock was set", got, p, 3, 1e-6, 0));
    }
    engine_free(&e);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(trajectories_are_those_of_the_reference),
        cmocka_unit_test(the_clock_can_be_set),
    };
    static struct CMUnitTest tests[64];
    size_t n = 0;
    harness_open(&ctx);
    golden_open(&file, "optim.safetensors");
    for (size_t i = 0; i < VKT_COUNT(others); i++) tests[n++] = others[i];
    for (size_t i = 0; i < file.n && n < VKT_COUNT(tests); i++)
        tests[n++] = (struct CMUnitTest){ .name = file.cases[i],
                                          .test_func = an_update_is_as_in_pytorch,
                                          .initial_state = file.cases[i] };
    const int failures = _cmocka_run_group_tests("optimizers", tests, n, NULL, NULL);
    golden_close(&file); /* only now: the tests' names are in it */
    vkt_ctx_destroy(&ctx);
    return failures + !vkt_test_is_clean();
}
