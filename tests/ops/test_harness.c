/* Proves that the harness of the op tests finds faults. Each faulty op here is wrong in one way, and the harness must
 * report this fault. Without this test, no test would fail if a check of the harness were broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#include "abi/abi.h"
#include "abi/elementwise.abi.h"

static vkt_ctx *ctx;

/* ---- relu with faults ---- */

/* Returns a copy of the node, with the correct relu as its op. The functions of relu read the op from the node. */
static vkt_node as_relu(const vkt_node *n)
{
    vkt_node as = *n;
    as.op = &vkt_op_relu;
    return as;
}

static void emit_sound(const vkt_node *n, vkt_emit *e)
{
    const vkt_node as = as_relu(n);
    vkt_op_relu.emit(&as, e);
}

static void backward_sound(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_node as = as_relu(n);
    vkt_op_relu.backward(g, &as, dy, dx);
}

static vkt_op copy_of_relu(void)
{
    vkt_op op = vkt_op_relu;
    op.emit = emit_sound;
    op.backward = backward_sound;
    return op;
}

static vkt_dispatch *emit_relu(const vkt_node *n, vkt_emit *e, vkt_elementwise_push *push)
{
    emit_sound(n, e);
    vkt_dispatch *last = &e->list[e->n - 1];
    memcpy(push, last->push, sizeof *push);
    return last;
}

static void emit_short(const vkt_node *n, vkt_emit *e)
{
    vkt_elementwise_push push;
    vkt_dispatch *d = emit_relu(n, e, &push);
    push.n--;
    memcpy(d->push, &push, sizeof push);
}

static void emit_long(const vkt_node *n, vkt_emit *e)
{
    vkt_elementwise_push push;
    vkt_dispatch *d = emit_relu(n, e, &push);
    push.n += 4;
    d->bind[ELEMENTWISE_Y].bytes += 16;
    memcpy(d->push, &push, sizeof push);
}

static void emit_nothing(const vkt_node *n, vkt_emit *e)
{
    vkt_elementwise_push push;
    emit_relu(n, e, &push);
    e->n--;
}

static void emit_swapped(const vkt_node *n, vkt_emit *e)
{
    vkt_elementwise_push push;
    vkt_dispatch *d = emit_relu(n, e, &push);
    const vkt_bind x = d->bind[ELEMENTWISE_A];
    d->bind[ELEMENTWISE_A] = d->bind[ELEMENTWISE_Y];
    d->bind[ELEMENTWISE_Y] = x;
}

/* Emits a wrong result only if texel loads (loads through texel buffers) are off. If the device has texel loads, the
 * result is right in view 0 of harness_views, so the view "without texel loads" must find the fault. */
static void emit_wrong_without_texels(const vkt_node *n, vkt_emit *e)
{
    if (e->lim->max_texel_elements)
        emit_sound(n, e);
    else
        emit_short(n, e);
}

static void pass_gradient(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    (void)g, (void)n;
    dx[0] = dy[0];
}

/* Replaces dx by max(dx, x - 50). This is a fault in the padding only. The elements of x are small, so the maximum is
 * dx. But the harness writes 77 and -77 to the padding of x, and convolution and pooling compute the padding too. The
 * padding of dx becomes 27 where the padding of x is 77. */
static void soil_padding(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_shape shape = vkt_node_in(n, 0)->shape;
    const vkt_shape line = vkt_shape4(shape.dim[0], 1, 1, (uint32_t)(vkt_shape_elements(shape) / shape.dim[0]));
    const float one = 1, low = -50;
    const vkt_tensor w = vkt_graph_const(g, "one", VKT_F32, vkt_shape4(1, 1, 1, 1), &one);
    const vkt_tensor bias = vkt_graph_const(g, "low", VKT_F32, vkt_shape1(1), &low);
    backward_sound(g, n, dy, dx);
    const vkt_tensor lower = vkt_conv2d(g, vkt_reshape(g, n->in[0], line), w, bias, NULL);
    const vkt_tensor sound = vkt_to_layout(g, vkt_reshape(g, dx[0], line), VKT_BATCH_LAST);
    const vkt_tensor both = vkt_concat(g, (vkt_tensor[]){ sound, lower }, 2, 2);
    const vkt_tensor larger = vkt_max_pool2d(g, both, &(vkt_pool2d_params){ .kernel = { 2, 1 } });
    dx[0] = vkt_reshape(g, vkt_to_layout(g, larger, vkt_node_in(n, 0)->layout), shape);
}

/* Returns the harness's report on the op's cases of seeds 1 to `seeds`. The first case with a fault ends the loop. */
static harness_report report_on(const vkt_op *op, uint64_t seeds)
{
    harness_report report = { .faults = 0 };
    for (uint64_t seed = 1; seed <= seeds && !report.faults; seed++) {
        subject s;
        subject_make(&s, op, seed);
        harness_check(ctx, &s, &report);
        subject_free(&s);
    }
    return report;
}

static void must_say(const vkt_op *op, const char *part)
{
    const harness_report report = report_on(op, 12);
    if (!report.faults || !strstr(report.text, part))
        fail_msg("want a report that says \"%s\", got: %s", part, report.text);
}

static void a_correct_op_passes(void **state)
{
    (void)state;
    harness_needs(ctx);
    const harness_report report = report_on(&vkt_op_relu, 12);
    if (report.faults) fail_msg("%s", report.text);
}

static void an_element_that_is_not_written_is_found(void **state)
{
    (void)state;
    harness_needs(ctx);
    vkt_op op = copy_of_relu();
    op.emit = emit_short;
    must_say(&op, "is nan");
    op.emit = emit_nothing;
    must_say(&op, "is nan");
}

static void a_write_behind_the_tensor_is_found(void **state)
{
    (void)state;
    harness_needs(ctx);
    vkt_op op = copy_of_relu();
    op.emit = emit_long;
    must_say(&op, "words behind relu.0 were written to");
}

static void a_write_to_an_input_is_found(void **state)
{
    (void)state;
    harness_needs(ctx);
    vkt_op op = copy_of_relu();
    op.emit = emit_swapped;
    must_say(&op, "changed its input in0");
}

static void a_fault_of_one_variant_is_found(void **state)
{
    (void)state;
    harness_needs(ctx);
    if (!ctx->limits.max_texel_elements) {
        puts("SKIPPED: a fault of the texel variant: this device has no texel loads");
        skip();
    }
    vkt_op op = copy_of_relu();
    op.emit = emit_wrong_without_texels;
    must_say(&op, "(without texel loads)");
}

static void a_wrong_gradient_is_found(void **state)
{
    (void)state;
    harness_needs(ctx);
    vkt_op op = copy_of_relu();
    op.backward = pass_gradient;
    must_say(&op, "dy0[");
}

static void padding_that_is_not_zero_is_found(void **state)
{
    (void)state;
    harness_needs(ctx);
    vkt_op op = copy_of_relu();
    op.backward = soil_padding;
    must_say(&op, "are not zero");
}

static void a_result_out_of_tolerance_is_found(void **state)
{
    (void)state;
    harness_needs(ctx);
    vkt_op op = vkt_op_sum;
    op.rel_tol = op.abs_tol = 1e-12f;
    must_say(&op, "sum.0[] is");
}

static void a_missing_reference_is_named_with_its_file(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_op op = copy_of_relu();
    vkt_subject s;
    op.name = "new";
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_subject_make(&h, &s, &op, 1), VKT_E_NOT_FOUND);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("new has no reference: add one to engine/reference/reference.c and families.h");
    vkt_subject_free(&s);
}

static void nothing_leaks(void **state)
{
    (void)state;
    vkt_ctx_destroy(&ctx);
    vkt_test_no_messages_and_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_op_passes),
        cmocka_unit_test(an_element_that_is_not_written_is_found),
        cmocka_unit_test(a_write_behind_the_tensor_is_found),
        cmocka_unit_test(a_write_to_an_input_is_found),
        cmocka_unit_test(a_fault_of_one_variant_is_found),
        cmocka_unit_test(a_wrong_gradient_is_found),
        cmocka_unit_test(padding_that_is_not_zero_is_found),
        cmocka_unit_test(a_result_out_of_tolerance_is_found),
        cmocka_unit_test(a_missing_reference_is_named_with_its_file),
        cmocka_unit_test(nothing_leaks),
    };
    harness_open(&ctx);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
