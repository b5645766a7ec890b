/* Tests the audit of an application's ops: correct ops, and ops with planted faults in their gradient shaders. */
#include "custom/stand.h"

#include <stdio.h>

#include "vktrain/audit.h"

/* A driver may drop writes behind a binding. The size of a binding is rounded up to a multiple of 16 bytes. The
 * gradient of `a` has 999 elements, so a write to element 999 is inside of the binding, and the audit can see it. */
enum { ROWS = 37, COLUMNS = 27 };

/* The entry of the custom op. In this test, each audit has one such entry. */
static struct {
    vkt_audit_entry e;
    char text[160], fault[240];
    uint32_t n;
} seen;

static void see(void *user, const vkt_audit_entry *e)
{
    (void)user;
    if (strcmp(e->op, "custom") != 0) return;
    seen.e = *e;
    snprintf(seen.text, sizeof seen.text, "%s", e->text);
    snprintf(seen.fault, sizeof seen.fault, "%s", e->fault);
    seen.n++;
}

static vkt_result audit(rig *r, const char *gradient, bool relu, vkt_audit_totals *t)
{
    vkt_graph *g;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, COLUMNS));
    const vkt_tensor a = vkt_param(g, "a", vkt_shape2(ROWS, COLUMNS));
    const vkt_tensor y =
        relu ? own_relu(g, vkt_to_layout(g, vkt_mul(g, x, a), VKT_BATCH_LAST)) : wave(g, x, a, gradient);
    if (relu || gradient) assert_int_equal(vkt_backward(g, vkt_mean(g, y)), VKT_OK);
    const vkt_result result = vkt_audit_graph(r->ctx, g, &(vkt_audit_params){ .on_entry = see }, t);
    assert_int_equal(t->nodes + t->parts, g->n_nodes);
    assert_int_equal(seen.n, 1);
    vkt_graph_destroy(&g);
    return result;
}

static void right_gradients_are_right(void **state)
{
    rig *r = rig_of(state);
    vkt_audit_totals t;
    assert_int_equal(audit(r, "wave_dx", false, &t), VKT_OK);
    assert_string_equal(seen.text, "wave (37,27) (37,27)");
    assert_true(seen.e.right && seen.e.gradients == 3 && seen.e.differences >= 24 && seen.e.difference <= 1);
    assert_int_equal(t.failed, 0);
    assert_int_equal(audit(r, NULL, true, &t), VKT_OK); /* some elements may be near the kink of relu */
    assert_true(seen.e.right && seen.e.gradients == 1 && seen.e.differences + seen.e.kinks == 16);
    assert_int_equal(audit(r, NULL, false, &t), VKT_OK); /* without a gradient shader, only the outputs are checked */
    assert_true(seen.e.right && seen.e.gradients == 0 && seen.e.differences == 0);
}

static void expect_fault(rig *r, const char *gradient, const char *part)
{
    vkt_audit_totals t;
    vkt_test_expect_errors(true);
    assert_int_equal(audit(r, gradient, false, &t), VKT_E_WRONG);
    vkt_test_expect_errors(false);
    assert_true(!seen.e.right && t.failed == 1);
    if (!strstr(seen.fault, part)) fail_msg("\"%s\" is not in \"%s\"", part, seen.fault);
    vkt_test_error_contains(part);
}

static void planted_faults_are_found(void **state)
{
    rig *r = rig_of(state);
    expect_fault(r, "wave_dx_wrong", "the gradient of input 0["); /* 5 % too large */
    assert_true(seen.e.gradient[0] > 1 && seen.e.gradient[1] <= 1);
    expect_fault(r, "wave_dx_missing", "the gradient of input 1[36,26] was not written");
    expect_fault(r, "wave_dx_stray", "written behind the end of");
}

/* Numbers from 1e7 on differ by 1 or more in f32, so a small step does not change them. The audit leaves out such
 * elements. */
static void steps_that_rounding_removes_are_left_out(void **state)
{
    rig *r = rig_of(state);
    vkt_graph *g;
    vkt_audit_totals t;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
    const vkt_tensor a = vkt_param(g, "a", vkt_shape1(8));
    assert_int_equal(vkt_backward(g, vkt_mean(g, own_relu_in(g, a, 1e7f, 1e7f + 4))), VKT_OK);
    assert_int_equal(vkt_audit_graph(r->ctx, g, &(vkt_audit_params){ .on_entry = see }, &t), VKT_OK);
    assert_int_equal(seen.n, 1);
    assert_true(seen.e.right && seen.e.gradients == 1 && seen.e.differences == 0 && seen.e.kinks > 0);
    vkt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(right_gradients_are_right), rig_test(planted_faults_are_found),
                                        rig_test(steps_that_rounding_removes_are_left_out) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
