/* Tests optimizers over many steps, through vkt_update, the store and its clock. After each run, the parameters are
 * compared with those of PyTorch or Keras (tests/golden/optim.safetensors, float64). Another test compares the
 * parameters with the float64 reference for random settings, with parameter groups, frozen parameters, clipping and
 * micro-batches.
 *
 * The arena holds several parameters, with padding between them. The loss is sum_k <p_k, c_k>, so that the gradients
 * are the inputs c_k, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/golden.h"
#include "ops/harness.h"
#include "ops/step/optimizer.h"
#include "support/host.h"

static vkt_ctx *ctx;
static golden file;

/* ---- an engine that does nothing but update ---- */

#define PARAMS 4
#define BLOCK 64 /* in floats; parameters start at multiples of BLOCK */
static const vkt_store_part moment_parts[] = { VKT_PART_MOMENT1, VKT_PART_MOMENT2, VKT_PART_MOMENT3 };

/* An optimizer and its settings for each parameter. */
typedef struct setting {
    vkt_optimizer o;
    uint32_t size[PARAMS]; /* elements of each parameter; a 0 ends the list */
    bool grouped[PARAMS];  /* grouped[k]: parameter k is in parameter group k; else it is in no group */
    bool frozen[PARAMS];
} setting;

typedef struct engine {
    const setting *s;
    vkt_graph *g;
    vkt_tensor c[PARAMS];
    vkt_store *store;
    vkt_program *program;
} engine;

static uint32_t total(const setting *s)
{
    uint32_t n = 0;
    for (int k = 0; k < PARAMS; k++) n += s->size[k];
    return n;
}

static void engine_build(engine *e, const setting *s)
{
    const vkt_host h = vkt_test_host();
    vkt_tensor loss = { 0 };
    *e = (engine){ .s = s };
    assert_int_equal(vkt_graph_create(&h, &e->g), VKT_OK);
    for (uint32_t k = 0; k < PARAMS && s->size[k]; k++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", k);
        const vkt_tensor p = vkt_param(e->g, name, vkt_shape1(s->size[k]));
        e->c[k] = vkt_input(e->g, "c", VKT_F32, VKT_ROWS, vkt_shape1(s->size[k]));
        const vkt_tensor dot = vkt_sum(e->g, vkt_mul(e->g, p, e->c[k]));
        loss = k ? vkt_add(e->g, loss, dot) : dot;
        if (s->grouped[k]) assert_int_equal(vkt_set_group(e->g, name, k), VKT_OK);
        if (s->frozen[k]) assert_int_equal(vkt_freeze(e->g, name), VKT_OK);
    }
    assert_int_equal(vkt_backward(e->g, loss), VKT_OK);
    assert_int_equal(vkt_update(e->g, &s->o), VKT_OK);
    vkt_report(e->g, loss, (vkt_tensor){ 0 });
    assert_int_equal(vkt_store_create(ctx, e->g, &e->store), VKT_OK);
    assert_int_equal(vkt_program_create(ctx, e->g, e->store, NULL, &e->program), VKT_OK);
}

static void engine_free(engine *e)
{
    vkt_program_destroy(&e->program);
    vkt_store_destroy(&e->store);
    vkt_graph_destroy(&e->g);
}

/* Writes a part (values, gradients or moments) of all parameters. `all` has them one after the other. */
static void put(engine *e, vkt_store_part part, const float *all)
{
    for (uint32_t k = 0; k < PARAMS && e->s->size[k]; all += e->s->size[k], k++)
        assert_int_equal(vkt_store_write(e->store, k, part, all), VKT_OK);
}

static void get(engine *e, vkt_store_part part, float *all)
{
    for (uint32_t k = 0; k < PARAMS && e->s->size[k]; all += e->s->size[k], k++)
        assert_int_equal(vkt_store_read(e->store, k, part, all), VKT_OK);
}

static void step(engine *e, const float *gradient, float lr, uint32_t rows)
{
    const vkt_run run = { .lr = lr, .rows = rows };
    for (uint32_t k = 0; k < PARAMS && e->s->size[k]; gradient += e->s->size[k], k++)
        assert_int_equal(vkt_program_write(e->program, e->c[k], gradient, e->s->size[k] * sizeof *gradient), VKT_OK);
    assert_int_equal(vkt_program_run(e->program, &run, NULL), VKT_OK);
}

/* ---- trajectories ---- */

/* A sequence of T runs, which begins with the n parameters p0. Each run has n gradients, a learning rate and a number
 * of rows. */
typedef struct course {
    size_t T, n;
    float *p0, *gradients, *lr, *rows;
    double *p; /* (T,n): what the parameters must be after each run */
} course;

static void course_free(course *c)
{
    free(c->p0);
    free(c->gradients);
    free(c->lr);
    free(c->rows);
    free(c->p);
}

/* Returns the largest error that element i may have after T steps in float32. Each step adds two errors: one rounding
 * of p, and the error of the change that the step makes to p. This second error is below 1e-5 of the largest change. (A
 * moment gets a few roundings in each step, but earlier roundings decay at the rate 1 - beta. So a moment has about 100
 * roundings of 2^-24, and a relative error of 6e-6.) */
static double allowed(const course *c, size_t i)
{
    double size = fabs((double)c->p0[i]), step_size = fabs(c->p[i] - (double)c->p0[i]);
    for (size_t t = 0; t < c->T; t++) {
        size = fmax(size, fabs(c->p[t * c->n + i]));
        if (t) step_size = fmax(step_size, fabs(c->p[t * c->n + i] - c->p[(t - 1) * c->n + i]));
    }
    return (double)c->T * (0x1p-23 * size + 1e-5 * step_size);
}

/* Makes the runs of the course, and compares the parameters after each run. */
static void follow(engine *e, const course *c, const char *what)
{
    float *got = malloc(c->n * sizeof *got);
    assert_non_null(got);
    assert_int_equal(total(e->s), c->n);
    put(e, VKT_PART_VALUE, c->p0);
    for (size_t t = 0; t < c->T; t++) {
        step(e, c->gradients + t * c->n, c->lr[t], (uint32_t)c->rows[t]);
        get(e, VKT_PART_VALUE, got);
        for (size_t i = 0; i < c->n; i++) {
            const double want = c->p[t * c->n + i];
            if (!(fabs((double)got[i] - want) <= allowed(c, i)))
                fail_msg("%s: parameter %zu after run %zu is %.9g, wanted %.9g +- %.2g", what, i, t + 1, (double)got[i],
                         want, allowed(c, i));
        }
    }
    free(got);
}

/* ---- the reference's trajectory ---- */

/* Vectors with the layout of the arena: parameter k begins at element start[k]. */
typedef struct arena {
    size_t n, start[PARAMS];
    double *p, *g, *moments[3], *groups; /* groups: 2 settings of each BLOCK; NULL: the same for all parameters */
} arena;

static arena arena_make(const setting *s, const vkt_optimizer *o)
{
    arena a = { .n = 0 };
    bool any = false;
    for (int k = 0; k < PARAMS && s->size[k]; k++) {
        a.start[k] = a.n;
        a.n += (s->size[k] + BLOCK - 1) / BLOCK * BLOCK;
        any |= s->grouped[k] || s->frozen[k];
    }
    double **all[] = { &a.p, &a.g, &a.moments[0], &a.moments[1], &a.moments[2] };
    for (size_t i = 0; i < VKT_COUNT(all); i++) {
        *all[i] = calloc(a.n, sizeof(double));
        assert_non_null(*all[i]);
    }
    for (size_t i = 0; o->kind == VKT_ADAGRAD && i < a.n; i++) a.moments[0][i] = (double)o->initial_accumulator;
    if (!any) return a;
    a.groups = calloc(a.n / BLOCK, 2 * sizeof(double));
    assert_non_null(a.groups);
    for (int k = 0; k < PARAMS && s->size[k]; k++)
        for (size_t b = a.start[k] / BLOCK; b < (a.start[k] + s->size[k] + BLOCK - 1) / BLOCK; b++) {
            a.groups[2 * b] = s->frozen[k] ? -1 : s->grouped[k] ? (double)o->groups[k].lr_factor : 1;
            a.groups[2 * b + 1] = (double)(s->grouped[k] ? o->groups[k].weight_decay : o->weight_decay);
        }
    return a;
}

static void arena_free(arena *a)
{
    free(a->p);
    free(a->g);
    free(a->groups);
    for (int i = 0; i < 3; i++) free(a->moments[i]);
}

/* Returns the position of element i in the arena. Here i counts the elements of all parameters, one parameter after the
 * other. */
static size_t index_of(const setting *s, const arena *a, size_t i)
{
    int k = 0;
    for (; i >= s->size[k]; k++) i -= s->size[k];
    return a->start[k] + i;
}

/* Computes c->p by the reference. Afterwards `a` has the state after the last step. The caller must have filled
 * in the defaults of `o`. */
static void by_reference(course *c, const setting *s, const vkt_optimizer *o, arena *a)
{
    uint64_t t = 0;
    double rows = 0;
    for (size_t i = 0; i < c->n; i++) a->p[index_of(s, a, i)] = (double)c->p0[i];
    for (size_t run = 0; run < c->T; run++) {
        const bool first = run % o->micro_batches == 0, last = run % o->micro_batches == o->micro_batches - 1;
        if (first) memset(a->g, 0, a->n * sizeof *a->g);
        rows = (first ? 0 : rows) + (double)c->rows[run];
        for (size_t i = 0; i < c->n; i++)
            a->g[index_of(s, a, i)] += (double)c->rows[run] * (double)c->gradients[run * c->n + i];
        for (size_t i = 0; last && i < a->n; i++) a->g[i] /= rows;
        if (last) vkt_ref_update(o, (double)c->lr[run], ++t, a->n, a->p, a->g, a->moments, a->groups);
        for (size_t i = 0; i < c->n; i++) c->p[run * c->n + i] = a->p[index_of(s, a, i)];
    }
}

/* ---- comparison with PyTorch and Keras ---- */

static vkt_optimizer_kind kind_of(const char *name)
{
    static const char *const names[] = { "sgd", "adam", "adamw", "nadam", "rmsprop", "adagrad" };
    size_t i = 0;
    while (i < VKT_COUNT(names) && strcmp(names[i], name) != 0) i++;
    assert_true(i < VKT_COUNT(names));
    return (vkt_optimizer_kind)i;
}

/* Returns the attribute `key`, which is a number. A 0 in the file becomes VKT_ZERO, because 0 in vkt_optimizer means
 * the default. Returns 0 if there is no such attribute. */
static double option(const json_t *a, const char *key)
{
    const double x = golden_number(a, key, NAN);
    return isnan(x) ? 0 : x == 0 ? (double)VKT_ZERO : x;
}

static setting setting_of(const char *name)
{
    json_t *a = golden_attributes(&file, name);
    setting s = { .size = { 1, 5, 31 },
                  .o = { .kind = kind_of(json_string_value(json_object_get(a, "kind"))),
                         .keras = golden_flag(a, "keras"),
                         .nesterov = golden_flag(a, "nesterov"),
                         .centered = golden_flag(a, "centered"),
                         .amsgrad = golden_flag(a, "amsgrad"),
                         .alpha = option(a, "alpha"),
                         .beta1 = option(a, "beta1"),
                         .beta2 = option(a, "beta2"),
                         .momentum_decay = option(a, "momentum_decay"),
                         .micro_batches = (uint32_t)golden_number(a, "micro_batches", 0) } };
    const struct {
        const char *key;
        float *to;
    } floats[] = { { "weight_decay", &s.o.weight_decay }, { "momentum", &s.o.momentum },
                   { "dampening", &s.o.dampening },       { "eps", &s.o.eps },
                   { "lr_decay", &s.o.lr_decay },         { "initial_accumulator", &s.o.initial_accumulator },
                   { "clip_norm", &s.o.clip_norm },       { "clip_value", &s.o.clip_value } };
    for (size_t i = 0; i < VKT_COUNT(floats); i++) *floats[i].to = (float)option(a, floats[i].key);
    for (size_t k = 0; k < json_array_size(json_object_get(a, "groups")); k++) {
        const json_t *pair = json_array_get(json_object_get(a, "groups"), k);
        if (json_is_null(pair)) continue;
        const float factor = (float)json_number_value(json_array_get(pair, 0));
        s.frozen[k] = factor < 0;
        s.grouped[k] = factor >= 0;
        if (s.grouped[k])
            s.o.groups[k] =
                (vkt_param_group){ factor == 0 ? VKT_ZERO : factor, (float)json_number_value(json_array_get(pair, 1)) };
    }
    json_decref(a);
    return s;
}

static course golden_course(const char *name)
{
    vkt_shape s;
    course c = { .p0 = golden_f32(&file, "p0", NULL, NULL),
                 .gradients = golden_f32(&file, "gradients", NULL, NULL),
                 .rows = golden_f32(&file, "rows", NULL, NULL),
                 .lr = golden_f32(&file, name, "lr", NULL),
                 .p = golden_f64(&file, name, "p", &s) };
    assert_true(c.p0 && c.gradients && c.lr && c.rows && c.p && s.rank == 2);
    c.T = s.dim[0];
    c.n = s.dim[1];
    return c;
}

/* Returns `o` with the defaults that optim.h states. */
static vkt_optimizer resolved(vkt_optimizer o)
{
    const bool keras = o.keras;
    const float eps = keras ? 1e-7f : o.kind == VKT_ADAGRAD ? 1e-10f : 1e-8f;
    if (o.kind == VKT_ADAMW && o.weight_decay == 0) o.weight_decay = keras ? 0.004f : 0.01f;
    o.decoupled |= o.kind == VKT_ADAMW;
    if (o.beta1 == 0) o.beta1 = 0.9;
    if (o.beta2 == 0) o.beta2 = 0.999;
    if (o.alpha == 0) o.alpha = keras ? 0.9 : 0.99;
    if (o.momentum_decay == 0) o.momentum_decay = keras ? 1 : 0.004;
    if (o.initial_accumulator == 0 && keras) o.initial_accumulator = 0.1f;
    if (o.eps == 0) o.eps = eps;
    if (o.micro_batches == 0) o.micro_batches = 1;
    for (int k = 0; k < VKT_PARAM_GROUPS; k++)
        if (o.groups[k].lr_factor == 0) o.groups[k].lr_factor = 1;
    float *const floats[] = { &o.weight_decay, &o.initial_accumulator, &o.groups[0].lr_factor };
    double *const doubles[] = { &o.beta1, &o.beta2, &o.alpha };
    for (size_t i = 0; i < VKT_COUNT(floats); i++)
        if (*floats[i] == VKT_ZERO) *floats[i] = 0;
    for (size_t i = 0; i < VKT_COUNT(doubles); i++)
        if (*doubles[i] == (double)VKT_ZERO) *doubles[i] = 0;
    return o;
}

/* Compares the reference's trajectory with the trajectory in the file. The tolerance of 1e-9 allows for the rounding of
 * eps, which is a float in vkt_optimizer. */
static void check_reference(const course *want, const setting *s, const char *name)
{
    course c = *want;
    const vkt_optimizer o = resolved(s->o);
    arena a = arena_make(s, &o);
    c.p = malloc(c.T * c.n * sizeof *c.p);
    assert_non_null(c.p);
    by_reference(&c, s, &o, &a);
    for (size_t i = 0; i < c.T * c.n; i++)
        if (!(fabs(c.p[i] - want->p[i]) <= 1e-9))
            fail_msg("%s: the reference has %.15g for parameter %zu after run %zu, PyTorch %.15g", name, c.p[i],
                     i % c.n, i / c.n + 1, want->p[i]);
    arena_free(&a);
    free(c.p);
}

static void an_update_is_as_in_pytorch(void **state)
{
    const char *name = *state;
    const setting s = setting_of(name);
    course c = golden_course(name);
    check_reference(&c, &s, name);
    if (ctx) {
        engine e;
        engine_build(&e, &s);
        follow(&e, &c, name);
        engine_free(&e);
    }
    course_free(&c);
}

/* ---- comparison with the reference ---- */

static setting random_setting(vkt_rng *r, vkt_optimizer_kind kind)
{
    setting s = { .size = { 7, 1, vkt_rng_range(r, 1, 700), 33 },
                  .o = { .kind = kind,
                         .keras = vkt_rng_range(r, 0, 1) != 0,
                         .decoupled = vkt_rng_range(r, 0, 1) != 0,
                         .weight_decay = vkt_rng_range(r, 0, 1) ? vkt_rng_uniform(r, 0, 0.1f) : 0,
                         .beta1 = (double)vkt_rng_uniform(r, 0.5f, 0.95f),
                         .beta2 = (double)vkt_rng_uniform(r, 0.9f, 0.9999f),
                         .eps = vkt_rng_range(r, 0, 1) ? 1e-8f : 1e-3f,
                         .micro_batches = vkt_rng_range(r, 1, 3) } };
    if (vkt_rng_range(r, 0, 2)) s.o.momentum = vkt_rng_uniform(r, 0.1f, 0.95f);
    if (s.o.kind == VKT_SGD && s.o.momentum != 0) s.o.nesterov = vkt_rng_range(r, 0, 1) != 0;
    if (s.o.kind == VKT_SGD && !s.o.nesterov && !s.o.keras) s.o.dampening = vkt_rng_uniform(r, 0, 0.9f);
    const float clip = vkt_rng_uniform(r, 0.2f, 2);
    *(vkt_rng_range(r, 0, 1) ? &s.o.clip_norm : &s.o.clip_value) = vkt_rng_range(r, 0, 2) ? clip : 0;
    for (int k = 1; k < PARAMS; k++) {
        s.grouped[k] = vkt_rng_range(r, 0, 2) == 0;
        s.frozen[k] = vkt_rng_range(r, 0, 4) == 0;
        s.o.groups[k] = (vkt_param_group){ vkt_rng_uniform(r, 0.1f, 3), vkt_rng_uniform(r, 0, 0.1f) };
    }
    return s;
}

static course random_course(vkt_rng *r, size_t T, size_t n)
{
    course c = { .T = T,
                 .n = n,
                 .p0 = malloc(n * sizeof *c.p0),
                 .gradients = malloc(T * n * sizeof *c.gradients),
                 .lr = malloc(T * sizeof *c.lr),
                 .rows = malloc(T * sizeof *c.rows),
                 .p = malloc(T * n * sizeof *c.p) };
    assert_true(c.p0 && c.gradients && c.lr && c.rows && c.p);
    const float lr = vkt_rng_uniform(r, 1e-3f, 0.1f);
    for (size_t i = 0; i < n; i++) c.p0[i] = vkt_rng_uniform(r, -1, 1);
    for (size_t i = 0; i < T * n; i++) c.gradients[i] = (float)vkt_rng_normal(r) * (i % 3 ? 1.0f : 1e-3f);
    for (size_t t = 0; t < T; t++) c.lr[t] = t % 8 == 7 ? 2 * lr : lr;
    for (size_t t = 0; t < T; t++) c.rows[t] = (float)vkt_rng_range(r, 1, 60);
    return c;
}

/* Compares the moments. The tolerance of 2e-6 is about 30 roundings of 2^-24. */
static void check_moments(engine *e, const arena *a, const char *what)
{
    const uint32_t n = total(e->s);
    float *got = malloc(n * sizeof *got);
    double *want = malloc(n * sizeof *want);
    assert_true(got && want);
    for (size_t m = 0; m < VKT_COUNT(moment_parts); m++) {
        if (!vkt_store_has(e->store, moment_parts[m])) continue;
        get(e, moment_parts[m], got);
        for (size_t i = 0; i < n; i++) want[i] = a->moments[m][index_of(e->s, a, i)];
        assert_true(harness_close(what, got, want, n, 2e-6, 2e-6));
    }
    free(got);
    free(want);
}

static void trajectories_are_those_of_the_reference(void **state)
{
    (void)state;
    harness_needs(ctx);
    for (uint32_t seed = 1; seed <= 2 * VKT_OPTIMIZER_KIND_COUNT; seed++) { /* two seeds for each kind */
        const vkt_optimizer_kind kind = (vkt_optimizer_kind)((seed - 1) / 2);
        char what[32];
        vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 4, 0);
        const setting s = random_setting(&r, kind);
        const vkt_optimizer o = resolved(s.o);
        engine e;
        course c = random_course(&r, 20, total(&s));
        arena a = arena_make(&s, &o);
        by_reference(&c, &s, &o, &a);
        engine_build(&e, &s);
        snprintf(what, sizeof what, "%s, seed %u", vkt_optimizer_name(kind), seed);
        follow(&e, &c, what);
        check_moments(&e, &a, what);
        engine_free(&e);
        arena_free(&a);
        course_free(&c);
    }
}

/* vkt_store_set_clock sets the clock to t. The function computes the powers of the decay rates by repeated
 * multiplication, as the device does in t steps. So the next step must agree with step t + 1 of the reference. */
static void the_clock_can_be_set(void **state)
{
    (void)state;
    harness_needs(ctx);
    static const uint64_t clocks[] = { 0, 1, 999, 100000, 4000000000u };
    static const vkt_optimizer_kind kinds[] = { VKT_ADAM, VKT_NADAM, VKT_ADAGRAD };
    for (size_t k = 0; k < VKT_COUNT(kinds); k++) {
        const setting s = { .size = { 3 }, .o = { .kind = kinds[k], .beta2 = 0.99999 } };
        const vkt_optimizer o = resolved(s.o);
        engine e;
        engine_build(&e, &s);
        for (size_t c = 0; c < VKT_COUNT(clocks); c++) {
            const float p0[] = { 1, -2, 3 }, g[] = { 0.5f, 1, -2 }, m0[] = { 0.1f, 0.2f, 0.3f }, v0[] = { 1, 2, 3 };
            double p[3], dg[3], m[3], v[3];
            float got[3];
            uint64_t t, seed;
            for (int i = 0; i < 3; i++)
                p[i] = (double)p0[i], dg[i] = (double)g[i], m[i] = (double)m0[i], v[i] = (double)v0[i];
            assert_int_equal(vkt_store_set_clock(e.store, clocks[c], 42), VKT_OK);
            put(&e, VKT_PART_VALUE, p0);
            put(&e, VKT_PART_MOMENT1, m0);
            if (o.kind != VKT_ADAGRAD) put(&e, VKT_PART_MOMENT2, v0);
            step(&e, g, 0.01f, 0);
            get(&e, VKT_PART_VALUE, got);
            assert_int_equal(vkt_store_get_clock(e.store, &t, &seed), VKT_OK);
            assert_true(t == clocks[c] + 1 && seed == 42);
            vkt_ref_update(&o, (double)0.01f, t, 3, p, dg, (double *const[3]){ m, v, NULL }, NULL);
            assert_true(harness_close("after the clock was set", got, p, 3, 1e-6, 0));
        }
        engine_free(&e);
    }
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
    golden_close(&file); /* not earlier: the file has the names of the tests */
    vkt_ctx_destroy(&ctx);
    return failures + !vkt_test_is_clean();
}
