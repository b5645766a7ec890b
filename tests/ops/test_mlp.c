/* Tests networks that vkt_backward fuses into one node. Trainings of 20 steps are compared with those of PyTorch
 * (tests/golden/mlp.safetensors), in float32 and with cooperative matrices. Other networks are compared with the same
 * graph without fusion (`no_fuse`). Some of these networks can be fused only in part, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/ids.h"
#include "ops/golden.h"
#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

enum { MAX_LAYERS = 6 };

/* A network of linear layers, with a relu behind each layer but the last. The loss is mse. The optimizer is Adam. */
typedef struct net {
    uint32_t batch, layers, width[MAX_LAYERS + 1];
    uint32_t rows; /* number of rows of the batch that a run uses; 0: all */
    bool no_bias, rows_layout, network_op;
    uint32_t keep_hidden; /* the layer whose output is kept; 1 is the first layer, 0 is none */
    uint32_t fork;        /* the layer whose mean output is added to the loss; 1 is the first layer, 0 is none */
    float factor;         /* a factor of the loss; 0 means 1 */
    bool keep_y;
    bool matrices; /* the variant COOP (cooperative matrices) is forced */
    vkt_precision precision;
} net;

typedef struct rig {
    const net *n;
    vkt_graph *g;
    vkt_tensor x, t, y, hidden;
    vkt_store *store;
    vkt_program *program;
} rig;

static void build_layers(rig *r, vkt_tensor *extra)
{
    const net *n = r->n;
    const vkt_layout layout = n->rows_layout ? VKT_ROWS : VKT_BATCH_LAST;
    vkt_mlp_layer layers[MAX_LAYERS] = { { { 0 }, { 0 } } };
    r->x = vkt_input(r->g, "x", VKT_F32, layout, vkt_shape2(n->batch, n->width[0]));
    r->t = vkt_input(r->g, "t", VKT_F32, layout, vkt_shape2(n->batch, n->width[n->layers]));
    r->y = r->x;
    for (uint32_t l = 0; l < n->layers; l++) {
        char name[16];
        snprintf(name, sizeof name, "w%u", l);
        layers[l].weight = vkt_param(r->g, name, vkt_shape2(n->width[l + 1], n->width[l]));
        snprintf(name, sizeof name, "b%u", l);
        if (!n->no_bias) layers[l].bias = vkt_param(r->g, name, vkt_shape1(n->width[l + 1]));
        if (n->network_op) continue;
        r->y = vkt_linear(r->g, r->y, layers[l].weight, layers[l].bias);
        if (l + 1 < n->layers) r->y = vkt_relu(r->g, r->y);
        if (n->keep_hidden == l + 1) vkt_keep(r->g, r->hidden = r->y);
        if (n->fork == l + 1) *extra = vkt_mean(r->g, r->y);
    }
    if (n->network_op) r->y = vkt_mlp(r->g, r->x, layers, n->layers);
    if (n->keep_y) vkt_keep(r->g, r->y);
}

static void rig_make(rig *r, const net *n, bool fuse)
{
    const vkt_host h = vkt_test_host();
    vkt_tensor extra = { 0 };
    *r = (rig){ .n = n };
    OK(vkt_graph_create(&h, &r->g));
    build_layers(r, &extra);
    vkt_tensor loss = vkt_mse(r->g, r->y, r->t);
    if (extra.id) loss = vkt_add(r->g, loss, extra);
    if (n->factor != 0) {
        const vkt_tensor factor = vkt_graph_const(r->g, "factor", VKT_F32, vkt_shape0(), &n->factor);
        loss = vkt_mul(r->g, loss, factor);
    }
    r->g->no_fuse = !fuse;
    OK(vkt_backward(r->g, loss));
    r->g->no_fuse = false; /* a relu may still become an epilogue of its layer, which test_epilogue.c tests */
    OK(vkt_update(r->g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    vkt_report(r->g, loss, (vkt_tensor){ 0 });
    OK(vkt_store_create(harness_ctx, r->g, &r->store));
    const vkt_choices own = harness_ctx->limits.choices;
    if (n->matrices) harness_ctx->limits.choices.force = VKT_V(COOP);
    OK(vkt_program_create(harness_ctx, r->g, r->store, &(vkt_program_params){ .precision = n->precision },
                          &r->program));
    harness_ctx->limits.choices = own;
}

static void rig_free(rig *r)
{
    vkt_program_destroy(&r->program);
    vkt_store_destroy(&r->store);
    vkt_graph_destroy(&r->g);
}

static uint32_t dispatches(const rig *r)
{
    vkt_plan_info info;
    vkt_program_plan(r->program, &info);
    return info.dispatches;
}

static uint32_t count(const rig *r, vkt_kernel_id kernel)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->program->lowered.n; i++) n += r->program->lowered.list[i].kernel == kernel;
    return n;
}

static double step(rig *r, float lr)
{
    uint64_t run;
    vkt_metrics m;
    OK(vkt_program_run(r->program, &(vkt_run){ .lr = lr, .rows = r->n->rows }, &run));
    OK(vkt_program_metrics(r->program, run, &m));
    return (double)m.loss;
}

/* ---- PyTorch ---- */

/* Compares 20 steps with the file, in float32 or with cooperative matrices of f16. Errors grow: each step adds some
 * roundings to the loss, and an error to each parameter. Cooperative matrices round each operand to f16, with a
 * relative error of up to 2^-11. */
static void follows(const golden *file, const char *name, bool matrices)
{
    vkt_shape xs, ts, ws;
    float *x = golden_f32(file, name, "x", &xs), *t = golden_f32(file, name, "t", &ts);
    double *loss = golden_f64(file, name, "loss64", NULL);
    json_t *attr = golden_attributes(file, name);
    net n = { .batch = xs.dim[0], .layers = (uint32_t)golden_number(attr, "layers", 0), .width = { xs.dim[1] } };
    n.matrices = matrices;
    n.precision = matrices ? VKT_PRECISION_F16 : VKT_PRECISION_F32;
    char part[24];
    for (uint32_t l = 0; l < n.layers; l++) {
        snprintf(part, sizeof part, "init/w%u", l);
        free(golden_f32(file, name, part, &ws));
        n.width[l + 1] = ws.dim[0];
    }
    rig r;
    rig_make(&r, &n, true);
    /* The dispatches in float32: the clock, the packing of the parameters for the network's kernel, this kernel, the
     * sums of the gradients, Adam, and the report. A single narrow layer needs no packing (mlp_line.comp). In f16, two
     * more dispatches adapt the scale of the loss, and each network needs packing. */
    assert_int_equal(dispatches(&r), matrices ? 8 : n.layers == 1 ? 5 : 6);
    assert_int_equal(count(&r, VKT_K_MLP_MSE_COOP), matrices);
    OK(vkt_program_write(r.program, r.x, x, vkt_shape_elements(xs) * 4));
    OK(vkt_program_write(r.program, r.t, t, vkt_shape_elements(ts) * 4));
    for (uint32_t k = 0; k < vkt_store_count(r.store); k++) {
        snprintf(part, sizeof part, "init/%s", vkt_store_name(r.store, k));
        float *p = golden_f32(file, name, part, NULL);
        OK(vkt_store_write(r.store, k, VKT_PART_VALUE, p));
        free(p);
    }
    for (int i = 0; i < 20; i++) {
        const double got = step(&r, 0.01f);
        const double most = matrices ? 0x1p-9 * loss[i] : 1e-6;
        if (!(fabs(got - loss[i]) <= most)) fail_msg("%s: loss %d is %.9g, wanted %.9g", name, i, got, loss[i]);
    }
    for (uint32_t k = 0; k < vkt_store_count(r.store); k++) {
        const size_t elements = (size_t)vkt_shape_elements(vkt_store_shape(r.store, k));
        float *got = test_malloc(elements * sizeof *got);
        snprintf(part, sizeof part, "final64/%s", vkt_store_name(r.store, k));
        double *want = golden_f64(file, name, part, NULL);
        OK(vkt_store_read(r.store, k, VKT_PART_VALUE, got));
        /* The parameters of PyTorch's own float32 training differ by up to 6e-7 from `want`. In f16, parameters are not
         * compared, because a small gradient may have the wrong sign, and Adam's step for a small gradient is as large
         * as for a large gradient. */
        if (!matrices) assert_true(harness_close(part, got, want, elements, 2e-6, 2e-6));
        test_free(got);
        free(want);
    }
    rig_free(&r);
    json_decref(attr);
    free(x);
    free(t);
    free(loss);
}

static void trainings_are_pytorchs(void **state)
{
    (void)state;
    golden file;
    harness_needs(harness_ctx);
    golden_open(&file, "mlp.safetensors");
    assert_int_equal(file.n, 2);
    for (size_t i = 0; i < file.n; i++) follows(&file, file.cases[i], false);
    golden_close(&file);
}

static void trainings_by_matrices_are_pytorchs(void **state)
{
    (void)state;
    golden file;
    harness_needs(harness_ctx);
    if (!harness_has_matrices()) return;
    golden_open(&file, "mlp.safetensors");
    for (size_t i = 0; i < file.n; i++) follows(&file, file.cases[i], true);
    golden_close(&file);
}

/* At first, all y - t are 1e5, which is more than the largest f16. The loss is a mean of eight squares, so the gradient
 * of y is 2 * 1e5 / 8 times the scale of the loss. The scale begins at 65,536. It is halved until the gradient is
 * finite in f16. The scale is then 2, after 15 steps. */
static void large_residuals_lower_the_scale(void **state)
{
    static const net n = {
        .batch = 4, .layers = 2, .width = { 3, 5, 2 }, .matrices = true, .precision = VKT_PRECISION_F16
    };
    static const float t[8] = { -1e5f, -1e5f, -1e5f, -1e5f, -1e5f, -1e5f, -1e5f, -1e5f };
    static const float x[12] = { 1, -1, 0.5f, 0.25f, 1, -0.5f, 2, 1, -1, 0.125f, 1, 1 };
    (void)state;
    harness_needs(harness_ctx);
    if (!harness_has_matrices()) return;
    rig r;
    rig_make(&r, &n, true);
    assert_int_equal(count(&r, VKT_K_MLP_MSE_COOP), 1);
    OK(vkt_program_write(r.program, r.x, x, sizeof x));
    OK(vkt_program_write(r.program, r.t, t, sizeof t));
    for (uint32_t i = 1; i <= 20; i++) {
        uint64_t run;
        vkt_metrics m;
        OK(vkt_program_run(r.program, &(vkt_run){ .lr = 1 }, &run));
        OK(vkt_program_metrics(r.program, run, &m));
        assert_int_equal(m.skipped, VKT_MIN(i, 15));
        assert_int_equal(m.t, i - m.skipped);
        if (i <= 16) assert_true(fabsf(m.loss - 1e10f) <= 1e4f);
        if (i > 16) assert_true(m.loss < 1e10f - 1e4f);
    }
    rig_free(&r);
}

/* ---- the same graph without fusion ---- */

static void fill(rig *r)
{
    vkt_rng rng = vkt_rng_make(3, VKT_STREAM_TEST, 2, 0);
    const net *n = r->n;
    const size_t xs = (size_t)n->batch * n->width[0], ts = (size_t)n->batch * n->width[n->layers];
    float *data = test_malloc(VKT_MAX(xs, ts) * sizeof *data);
    for (size_t i = 0; i < xs; i++) data[i] = vkt_rng_uniform(&rng, -1, 1);
    OK(vkt_program_write(r->program, r->x, data, xs * sizeof *data));
    for (size_t i = 0; i < ts; i++) data[i] = vkt_rng_uniform(&rng, -1, 1);
    OK(vkt_program_write(r->program, r->t, data, ts * sizeof *data));
    test_free(data);
    for (uint32_t k = 0; k < vkt_store_count(r->store); k++) {
        const size_t elements = (size_t)vkt_shape_elements(vkt_store_shape(r->store, k));
        float *p = test_malloc(elements * sizeof *p);
        for (size_t i = 0; i < elements; i++) p[i] = vkt_rng_uniform(&rng, -0.5f, 0.5f);
        OK(vkt_store_write(r->store, k, VKT_PART_VALUE, p));
        test_free(p);
    }
}

/* Returns the gradients of all parameters as doubles. *out has them as floats, and *n is their number. The caller frees
 * both arrays. */
static double *gradients(rig *r, float **out, size_t *n)
{
    *n = (size_t)vkt_store_elements(r->store);
    float *all = test_malloc(*n * sizeof *all), *at = all;
    for (uint32_t k = 0; k < vkt_store_count(r->store); k++) {
        OK(vkt_store_read(r->store, k, VKT_PART_GRADIENT, at));
        at += vkt_shape_elements(vkt_store_shape(r->store, k));
    }
    double *d = test_malloc(*n * sizeof *d);
    for (size_t i = 0; i < *n; i++) d[i] = (double)all[i];
    *out = all;
    return d;
}

static double first_of(rig *r, vkt_tensor t)
{
    const uint64_t elements = vkt_shape_elements(vkt_tensor_shape(r->g, t));
    float *data = test_malloc(elements * sizeof *data);
    OK(vkt_program_read(r->program, t, data, elements * sizeof *data));
    const double first = (double)data[0];
    test_free(data);
    return first;
}

/* Compares two steps with and without fusion. If `fewer` is true, the fused program must have fewer dispatches than the
 * other program. If `fewer` is false, the fused program must not have fewer. */
static void agree(const net *n, const char *what, bool fewer)
{
    rig fused, plain;
    size_t count;
    float *got, *unused;
    rig_make(&plain, n, false);
    rig_make(&fused, n, true);
    if (fewer != (dispatches(&fused) < dispatches(&plain)))
        fail_msg("%s: %u dispatches, %u without", what, dispatches(&fused), dispatches(&plain));
    fill(&fused);
    fill(&plain);
    for (int i = 0; i < 2; i++) {
        const double a = step(&fused, 0.01f), b = step(&plain, 0.01f);
        const double tolerance = n->precision == VKT_PRECISION_F32 ? 1e-5 : 2e-3;
        if (!(fabs(a - b) <= tolerance * fabs(b))) fail_msg("%s: loss %.9g, without %.9g", what, a, b);
        double *want = gradients(&plain, &unused, &count), *mine = gradients(&fused, &got, &count);
        if (!harness_close(what, got, want, count, tolerance, tolerance)) fail();
        test_free(want);
        test_free(mine);
        test_free(got);
        test_free(unused);
    }
    if (fused.hidden.id) assert_true(fabs(first_of(&fused, fused.hidden) - first_of(&plain, plain.hidden)) < 1e-5);
    if (n->keep_y) assert_true(fabs(first_of(&fused, fused.y) - first_of(&plain, plain.y)) < 1e-5);
    rig_free(&fused);
    rig_free(&plain);
}

static void a_fused_network_is_the_network(void **state)
{
    static const struct {
        const char *what;
        bool fewer;
        net n;
    } cases[] = {
        { "two layers", true, { .batch = 77, .layers = 2, .width = { 5, 7, 3 } } },
        { "real rows", true, { .batch = 77, .layers = 2, .width = { 5, 7, 3 }, .rows = 50 } },
        { "no bias", true, { .batch = 31, .layers = 2, .width = { 5, 7, 3 }, .no_bias = true } },
        { "the network as one op", true, { .batch = 77, .layers = 2, .width = { 5, 7, 3 }, .network_op = true } },
        { "more layers than a node has", true, { .batch = 40, .layers = 5, .width = { 4, 5, 6, 5, 4, 3 } } },
        { "a layer too wide", true, { .batch = 20, .layers = 3, .width = { 4, 130, 6, 3 } } },
        { "a kept hidden layer", true, { .batch = 40, .layers = 3, .width = { 4, 5, 6, 3 }, .keep_hidden = 1 } },
        { "a kept result", false, { .batch = 40, .layers = 2, .width = { 4, 5, 3 }, .keep_y = true } },
        { "a loss of two", false, { .batch = 40, .layers = 3, .width = { 4, 5, 6, 3 }, .fork = 2 } },
        { "a factor", false, { .batch = 40, .layers = 2, .width = { 4, 5, 3 }, .factor = 0.25f } },
        { "by rows", false, { .batch = 40, .layers = 2, .width = { 4, 5, 3 }, .rows_layout = true } },
        { "16 bits", true, { .batch = 77, .layers = 2, .width = { 5, 7, 3 }, .precision = VKT_PRECISION_F16 } },
    };
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) agree(&cases[i].n, cases[i].what, cases[i].fewer);
}

/* A fused network has no gradient of its target. Without fusion, the target has one. */
static void the_target_of_a_fused_network_has_no_gradient(void **state)
{
    (void)state;
    for (int fuse = 0; fuse < 2; fuse++) {
        const vkt_host h = vkt_test_host();
        vkt_graph *g;
        vkt_tensor dt = { 0 };
        OK(vkt_graph_create(&h, &g));
        g->no_fuse = !fuse;
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(8, 3));
        const vkt_tensor w = vkt_param(g, "w", vkt_shape2(2, 3)), v = vkt_param(g, "v", vkt_shape2(2, 3));
        OK(vkt_freeze(g, "v")); /* a frozen parameter of network and target does not prevent the fusion */
        const vkt_tensor t = vkt_linear(g, x, v, (vkt_tensor){ 0 });
        const vkt_tensor loss = vkt_mse(
            g, vkt_linear(g, vkt_linear(g, x, w, (vkt_tensor){ 0 }), vkt_slice(g, v, 1, 0, 2, 1), (vkt_tensor){ 0 }),
            t);
        OK(vkt_backward(g, loss));
        vkt_test_expect_errors(fuse != 0);
        assert_int_equal(vkt_gradients(g, &loss, &g->seed, 1, &v, 1, &dt), fuse ? VKT_E_UNSUPPORTED : VKT_OK);
        if (fuse) vkt_test_error_contains("mlp_mse computes no gradient of");
        vkt_test_expect_errors(false);
        assert_int_equal(dt.id == 0, fuse);
        vkt_graph_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trainings_are_pytorchs),
        cmocka_unit_test(trainings_by_matrices_are_pytorchs),
        cmocka_unit_test(large_residuals_lower_the_scale),
        cmocka_unit_test(a_fused_network_is_the_network),
        cmocka_unit_test(the_target_of_a_fused_network_has_no_gradient),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
