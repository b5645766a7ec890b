/* Tests the cost of a node, as each op descriptor computes it. Also tests attributes as text. No test needs a
 * device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/ops.h"
#include "ops/subject.h"
#include "support/host.h"

static void every_op_has_a_cost(void **state)
{
    (void)state;
    for (size_t i = 0; vkt_ops[i]; i++)
        if (!vkt_ops[i]->flops) fail_msg("%s has no flops (vkt_flops_none where it only moves data)", vkt_ops[i]->name);
}

/* The cost of each node of random cases, also of nodes that compute gradients, is finite and not negative. The bytes
 * are at most those of the node's inputs and outputs, unless the op counts its bytes itself. */
static void costs_are_sane(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; vkt_ops[i]; i++)
        for (uint64_t seed = 1; seed <= 8 && vkt_ops[i]->sample; seed++) {
            subject s;
            assert_int_equal(vkt_subject_make(&h, &s, vkt_ops[i], seed), VKT_OK);
            for (size_t k = 0; k < s.g->n_nodes; k++) {
                const vkt_node *n = s.g->nodes[k];
                const vkt_cost c = vkt_node_cost(n);
                double most = 0; /* the bytes of the node's inputs and outputs */
                for (uint32_t j = 0; j < n->n_in; j++) most += n->in[j].id ? (double)vkt_node_in(n, j)->bytes : 0;
                for (uint32_t j = 0; j < n->n_out; j++) most += (double)vkt_node_out(n, j)->bytes;
                if (!(c.flops >= 0) || !isfinite(c.flops) || !(c.bytes > 0) || (!n->op->bytes && c.bytes > most))
                    fail_msg("%s in %s %s: %g flops, %g bytes of %g", n->op->name, s.op->name, s.c.text, c.flops,
                             c.bytes, most);
            }
            subject_free(&s);
        }
}

static void costs(const vkt_node *n, double flops, double bytes)
{
    const vkt_cost c = vkt_node_cost(n);
    if (c.flops != flops || c.bytes != bytes)
        fail_msg("%s: %g flops and %g bytes, want %g and %g", n->op->name, c.flops, c.bytes, flops, bytes);
}

static const vkt_node *producer(const vkt_graph *g, vkt_tensor t)
{
    return g->nodes[vkt_value_of(g, t)->producer - 1];
}

static void costs_are_those_worked_out_by_hand(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor a = vkt_input(g, "a", VKT_F32, VKT_ROWS, vkt_shape3(2, 3, 5));
    const vkt_tensor b = vkt_input(g, "b", VKT_F32, VKT_ROWS, vkt_shape2(7, 5));
    const vkt_tensor bias = vkt_input(g, "bias", VKT_F32, VKT_ROWS, vkt_shape1(7));
    const vkt_tensor rows = vkt_input(g, "rows", VKT_F32, VKT_ROWS, vkt_shape2(4, 5));
    costs(producer(g, vkt_matmul(g, a, b, false, true)), 2 * 42 * 5, 4 * (30 + 35 + 42));
    costs(producer(g, vkt_linear(g, rows, b, bias)), 28 * 11, 4 * (20 + 35 + 7 + 28));
    costs(producer(g, vkt_linear(g, rows, b, (vkt_tensor){ 0 })), 28 * 10, 4 * (20 + 35 + 28));
    costs(producer(g, vkt_relu(g, a)), 30, 240);
    costs(producer(g, vkt_sum(g, a)), 30, 124);
    const vkt_tensor x =
        vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(3, 4, 6, 6)); /* only 3 samples count, not the padding */
    const vkt_tensor w = vkt_input(g, "w", VKT_F32, VKT_ROWS, vkt_shape4(8, 2, 3, 3));
    const vkt_conv2d_params two_groups = { .groups = 2, .stride = { 2, 1 } };
    const vkt_tensor y = vkt_conv2d(g, x, w, (vkt_tensor){ 0 }, &two_groups); /* (3,8,2,4) */
    const double products = 2.0 * 3 * 8 * 2 * 4 * 2 * 9;
    costs(producer(g, y), products, 4 * (3 * 4 * 36 + 8 * 2 * 9 + 3 * 8 * 8));
    vkt_tensor wrt[] = { x, w }, grads[2], seed = vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, vkt_shape4(3, 8, 2, 4));
    assert_int_equal(vkt_gradients(g, &y, &seed, 1, wrt, 2, grads), VKT_OK);
    for (int i = 0; i < 2; i++) costs(producer(g, grads[i]), products, 4 * (3 * 4 * 36 + 8 * 2 * 9 + 3 * 8 * 8));
    vkt_graph_destroy(&g);
}

static const vkt_op *find_op(const char *name)
{
    for (size_t i = 0; vkt_ops[i]; i++)
        if (strcmp(vkt_ops[i]->name, name) == 0) return vkt_ops[i];
    fail_msg("there is no op %s", name);
    return NULL;
}

static void attributes_have_text(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_op *conv = find_op("conv2d");
    vkt_conv2d_attr a = { 0 };
    vkt_attr_defaults(conv, &a);
    assert_true(a.stride[0] == 1 && a.stride[1] == 1 && a.dilation[0] == 1 && a.groups == 1 && a.pad[0] == 0);
    assert_int_equal(vkt_attr_parse(&h, conv, "stride=2,1", &a), VKT_OK);
    assert_int_equal(vkt_attr_parse(&h, conv, "groups=3", &a), VKT_OK);
    assert_true(a.stride[0] == 2 && a.stride[1] == 1 && a.groups == 3 && a.pad[0] == 0);
    vkt_text t = { .h = &h };
    vkt_attr_text(conv, &a, &t);
    assert_string_equal(t.s, "stride=2,1 groups=3");
    vkt_text_free(&t);
    vkt_test_expect_errors(true);
    static const char *const bad[] = { "strid=1,1",   "stride",       "stride=",  "stride=1", "stride=1,2,3",
                                       "stride=1,-2", "stride=1.5,1", "groups=x", "groups=1 " };
    for (size_t i = 0; i < VKT_COUNT(bad); i++) assert_int_equal(vkt_attr_parse(&h, conv, bad[i], &a), VKT_E_FORMAT);
    assert_int_equal(vkt_attr_parse(&h, find_op("relu"), "slope=1", &a), VKT_E_FORMAT);
    vkt_test_error_contains("there are: none");
    vkt_test_expect_errors(false);
}

/* The fields of each op's attributes are within the op's attribute struct and do not overlap. */
static void fields_are_inside_their_struct(void **state)
{
    (void)state;
    static const size_t bytes[] = { sizeof(bool), 4, 4, 8 };
    for (size_t i = 0; vkt_ops[i]; i++)
        for (const vkt_field *f = vkt_ops[i]->fields; f && f->name; f++) {
            const size_t end = f->offset + f->count * bytes[f->kind];
            assert_true(end <= vkt_ops[i]->attr_bytes);
            for (const vkt_field *k = vkt_ops[i]->fields; k != f; k++)
                assert_true(k->offset >= end || k->offset + k->count * bytes[k->kind] <= f->offset);
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_op_has_a_cost),
        TEST(costs_are_sane),
        TEST(costs_are_those_worked_out_by_hand),
        TEST(attributes_have_text),
        TEST(fields_are_inside_their_struct),
    };
    return cmocka_run_group_tests_name("costs and attributes", tests, NULL, NULL);
}
