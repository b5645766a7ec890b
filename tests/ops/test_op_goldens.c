/* Tests ops at awkward shapes with PyTorch's float64 numbers (tests/golden/ops.safetensors). The references must agree
 * with these numbers, except for rounding in float64. The harness compares the device with the references. A function
 * of several nodes has no reference, so the device is compared with PyTorch's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/golden.h"
#include "ops/golden_ops.h"
#include "ops/harness.h"
#include "support/host.h"

static vkt_ctx *ctx;
static golden file;

/* ---- a case ---- */

/* Adds input k of the case. The input is absent if the file does not have it. */
static void add_input(subject *s, const char *name, uint32_t k, vkt_layout layout, vkt_dtype dtype)
{
    char part[16];
    vkt_case_input c = { .dtype = dtype, .layout = layout, .bound = 1 };
    snprintf(part, sizeof part, "in%u", k);
    float *data = golden_f32(&file, name, part, &c.shape);
    c.absent = !data;
    subject_input(s, &c, data);
    free(data);
}

/* Sets the seed and the counter of random numbers. The store has both. The harness makes a store only if the graph has
 * a parameter, so a parameter is added. */
static void set_clock(subject *s, const json_t *attr)
{
    vkt_param(s->g, "clock's", vkt_shape1(1));
    s->key = (uint64_t)golden_number(attr, "seed", 0);
    s->t = (uint64_t)golden_number(attr, "draw", 0);
}

/* Adds the inputs of the case, applies its function and returns the result. Sets *several to whether the function
 * consists of several nodes. */
static vkt_tensor apply(subject *s, const char *name, bool *several)
{
    json_t *attr = golden_attributes(&file, name);
    const golden_op *op = golden_op_of(attr);
    vkt_tensor in[VKT_MAX_IN] = { { 0 } };
    subject_begin(s, 1 + vkt_hash(VKT_HASH_START, name, strlen(name)) % 100);
    s->run.rows = (uint32_t)golden_number(attr, "rows", 0);
    if (json_object_get(attr, "seed")) set_clock(s, attr);
    for (uint32_t k = 0; k < op->n_in; k++) {
        add_input(s, name, k, op->images && k == 0 ? VKT_BATCH_LAST : VKT_ROWS,
                  op->integers >> k & 1 ? VKT_U32 : VKT_F32);
        in[k] = s->in[k].t;
    }
    const vkt_tensor out = op->build(s->g, in, attr);
    assert_int_equal(vkt_graph_status(s->g), VKT_OK);
    *several = op->several;
    json_decref(attr);
    return out;
}

static void set_output(subject *s, const char *name, vkt_tensor out)
{
    subject_set_output(s, out);
    float *dout = golden_f32(&file, name, "grad_out", NULL);
    assert_non_null(dout);
    subject_set(&s->dout[0], dout, side_count(&s->dout[0]));
    free(dout);
    subject_forward(s);
    subject_backward(s);
}

static double *expected(const char *name, const char *part, const side *v)
{
    vkt_shape shape = { 0 };
    double *want = golden_f64(&file, name, part, &shape);
    char got[80], of[80];
    if (want && !vkt_shape_equal(shape, v->ref.shape))
        fail_msg("%s/%s has shape %s, PyTorch's %s", name, part, vkt_shape_text(v->ref.shape, got),
                 vkt_shape_text(shape, of));
    return want;
}

/* Checks that the reference has PyTorch's numbers, up to roundings: float64 additions may have another order. */
static void check_reference(const char *name, const char *part, const side *v)
{
    double *want = expected(name, part, v);
    double scale = 0;
    assert_non_null(want);
    for (size_t i = 0; i < side_count(v); i++) scale = fmax(scale, fabs(want[i]));
    for (size_t i = 0; i < side_count(v); i++)
        if (!(fabs(v->ref.f[i] - want[i]) <= 1e-13 * (scale > 0 ? scale : 1)))
            fail_msg("%s/%s[%zu]: the reference has %.17g, PyTorch %.17g", name, part, i, v->ref.f[i], want[i]);
    free(want);
}

/* ---- functions of several nodes: the device's results are compared with PyTorch's numbers ---- */

/* The tolerance of functions of several nodes, whose sums have fewer than 100 terms. A single op has its own
 * tolerance. */
#define CLOSE 2e-5

static void check_value(vkt_program *p, const vkt_graph *g, const char *name, const char *part, vkt_tensor t)
{
    vkt_shape shape;
    char text[80];
    double *want = golden_f64(&file, name, part, &shape);
    assert_non_null(want);
    assert_true(vkt_shape_equal(shape, vkt_tensor_shape(g, t)));
    const size_t n = (size_t)vkt_shape_elements(shape);
    float *got = malloc(n * sizeof *got);
    assert_int_equal(vkt_program_read(p, t, got, n * sizeof *got), VKT_OK);
    snprintf(text, sizeof text, "%s/%s", name, part);
    assert_true(harness_close(text, got, want, n, CLOSE, CLOSE));
    free(got);
    free(want);
}

static bool has_gradient(const char *name, uint32_t k)
{
    char part[24];
    snprintf(part, sizeof part, "grad_in%u", k);
    double *there = golden_f64(&file, name, part, NULL);
    free(there);
    return there != NULL;
}

static void run_nodes(subject *s, const char *name, vkt_tensor out)
{
    vkt_tensor wrt[VKT_MAX_IN], grads[VKT_MAX_IN];
    uint32_t n_wrt = 0, input_of[VKT_MAX_IN];
    vkt_shape shape;
    vkt_program *p;
    float *seed = golden_f32(&file, name, "grad_out", &shape);
    const vkt_tensor dout = vkt_input(s->g, "dout", VKT_F32, vkt_value_of(s->g, out)->layout, shape);
    for (uint32_t k = 0; k < s->c.n_in; k++)
        if (has_gradient(name, k)) {
            input_of[n_wrt] = k;
            wrt[n_wrt++] = s->in[k].t;
        }
    assert_int_equal(vkt_gradients(s->g, &out, &dout, 1, wrt, n_wrt, grads), VKT_OK);
    vkt_keep(s->g, out);
    for (uint32_t i = 0; i < n_wrt; i++) vkt_keep(s->g, grads[i]);
    assert_int_equal(vkt_program_create_guarded(ctx, s->g, NULL, NULL, &p), VKT_OK);
    for (uint32_t k = 0; k < s->c.n_in; k++) {
        const side *in = &s->in[k];
        if (in->t.id) assert_int_equal(vkt_program_write(p, in->t, in->data, 4 * side_count(in)), VKT_OK);
    }
    assert_int_equal(vkt_program_write(p, dout, seed, 4 * vkt_shape_elements(shape)), VKT_OK);
    assert_int_equal(vkt_program_run(p, &s->run, NULL), VKT_OK);
    check_value(p, s->g, name, "out", out);
    for (uint32_t i = 0; i < n_wrt; i++) {
        char part[24];
        snprintf(part, sizeof part, "grad_in%u", input_of[i]);
        check_value(p, s->g, name, part, grads[i]);
    }
    vkt_program_destroy(&p);
    free(seed);
}

static void a_case_is_as_in_pytorch(void **state)
{
    const char *name = *state;
    harness_report report = { .faults = 0 };
    subject s;
    bool several;
    const vkt_tensor out = apply(&s, name, &several);
    if (several) {
        if (ctx) run_nodes(&s, name, out);
        subject_free(&s);
        return;
    }
    set_output(&s, name, out);
    check_reference(name, "out", &s.out[0]);
    for (uint32_t k = 0; k < s.c.n_in; k++) {
        char part[24];
        snprintf(part, sizeof part, "grad_in%u", k);
        if (s.din[k].t.id) check_reference(name, part, &s.din[k]);
    }
    if (ctx) harness_check_in(ctx, &s, &harness_views[0], &report); /* test_ops.c checks in the other views */
    subject_free(&s);
    if (report.faults) fail_msg("%s: %s", name, report.text);
}

int main(void)
{
    static struct CMUnitTest tests[512];
    size_t n = 0;
    harness_open(&ctx);
    golden_open(&file, "ops.safetensors");
    for (; n < file.n && n < VKT_COUNT(tests); n++)
        tests[n] = (struct CMUnitTest){ .name = file.cases[n],
                                        .test_func = a_case_is_as_in_pytorch,
                                        .initial_state = file.cases[n] };
    const int failures = _cmocka_run_group_tests("ops as in PyTorch", tests, n, NULL, NULL);
    golden_close(&file); /* not earlier: the file has the names of the tests */
    vkt_ctx_destroy(&ctx);
    return failures + !vkt_test_is_clean();
}
