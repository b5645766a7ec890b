/* Cases as lines of text: the table of sizes, what is refused, and how a case is cut down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "bench/case.h"
#include "support/host.h"

static const char *const sizes[] = {
#define BENCH_SIZE(set, line) line,
#include "bench/sizes.def"
#undef BENCH_SIZE
};

/* The case's node is legal: what infer says of it. */
static vkt_result infers(const vkt_host *h, const vkt_op *op, const vkt_case *c)
{
    vkt_graph *g;
    vkt_tensor in[VKT_MAX_IN] = { { 0 } };
    assert_int_equal(vkt_graph_create(h, &g), VKT_OK);
    for (uint32_t i = 0; i < c->n_in; i++)
        if (!c->in[i].absent) in[i] = vkt_input(g, "x", c->in[i].dtype, c->in[i].layout, c->in[i].shape);
    vkt_apply(g, op, in, c->n_in, c->attr, NULL);
    const vkt_result r = vkt_graph_status(g);
    vkt_graph_destroy(&g);
    return r;
}

static void every_size_is_a_legal_case_and_its_own_text(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(sizes); i++) {
        const vkt_op *op;
        vkt_case c;
        char text[160], line[256];
        assert_int_equal(bench_case_parse(&h, sizes[i], &op, &c), VKT_OK);
        assert_non_null(op);
        if (infers(&h, op, &c) != VKT_OK) fail_msg("\"%s\" is not legal", sizes[i]);
        vkt_case_text(&h, op, &c, text);
        snprintf(line, sizeof line, "%s %s", op->name, text);
        assert_string_equal(line, sizes[i]);
    }
}

static void a_line_has_all_kinds_of_inputs(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_op *op;
    vkt_case c;
    assert_int_equal(bench_case_parse(&h, "conv2d\t(3,4,5,6)b (2,4,3,3)  - pad=1,2 # why", &op, &c), VKT_OK);
    assert_string_equal(op->name, "conv2d");
    const vkt_conv2d_attr *a = (const vkt_conv2d_attr *)c.attr;
    assert_true(c.n_in == 3 && c.in[0].layout == VKT_BATCH_LAST && c.in[1].layout == VKT_ROWS && c.in[2].absent);
    assert_true(a->pad[0] == 1 && a->pad[1] == 2 && a->stride[0] == 1 && a->groups == 1);
    assert_int_equal(bench_case_parse(&h, "softmax_xent (5,7) u32<7(5)", &op, &c), VKT_OK);
    assert_true(c.in[1].dtype == VKT_U32 && c.in[1].bound == 7 && c.in[1].shape.rank == 1);
    assert_int_equal(bench_case_parse(&h, "  # nothing", &op, &c), VKT_OK);
    assert_null(op);
}

static void bad_lines_are_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    static const char *const bad[] = { "warp (3)",
                                       "conv2d_dx (1)",
                                       "relu (3",
                                       "relu (0)",
                                       "relu (3,)",
                                       "relu 3",
                                       "relu (3)x",
                                       "relu u9<3(3)",
                                       "relu u32(3)",
                                       "relu (1,2,3,4,5,6,7)",
                                       "relu (99999999999)",
                                       "relu slope=1",
                                       "matmul (2,2) (2,2) trans_a=2",
                                       "relu (3)b(4)" };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        const vkt_op *op;
        vkt_case c;
        if (bench_case_parse(&h, bad[i], &op, &c) != VKT_E_FORMAT || op) fail_msg("\"%s\" is accepted", bad[i]);
    }
    vkt_test_expect_errors(false);
}

/* The largest dimension is halved wherever it stands, so the shapes fit each other still. */
static void a_case_is_halved_as_a_whole(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_op *op;
    vkt_case c;
    char text[160];
    assert_int_equal(bench_case_parse(&h, "matmul (512,512) (512,300)", &op, &c), VKT_OK);
    assert_true(vkt_case_halve(&c));
    vkt_case_text(&h, op, &c, text);
    assert_string_equal(text, "(256,256) (256,300)");
    assert_int_equal(bench_case_parse(&h, "softmax_xent (500,1000)b u32<1000(500)", &op, &c), VKT_OK);
    assert_true(vkt_case_halve(&c));
    assert_true(vkt_case_halve(&c));
    vkt_case_text(&h, op, &c, text);
    assert_string_equal(text, "(252,252)b u32<252(252)");
    assert_int_equal(infers(&h, op, &c), VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(sizes); i++) {
        assert_int_equal(bench_case_parse(&h, sizes[i], &op, &c), VKT_OK);
        const bool fixed = /* a dimension follows from attributes */
            strstr(sizes[i], "groups=") || strstr(sizes[i], "batch=") || strstr(sizes[i], "log2_table_size=");
        for (int times = 0; times < 2 && vkt_case_halve(&c); times++)
            if (!fixed && infers(&h, op, &c) != VKT_OK) {
                vkt_case_text(&h, op, &c, text);
                fail_msg("%s %s, halved, is not legal", op->name, text);
            }
    }
    assert_int_equal(bench_case_parse(&h, "relu (16,3)", &op, &c), VKT_OK);
    assert_false(vkt_case_halve(&c));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_size_is_a_legal_case_and_its_own_text),
        TEST(a_line_has_all_kinds_of_inputs),
        TEST(bad_lines_are_refused),
        TEST(a_case_is_halved_as_a_whole),
    };
    return cmocka_run_group_tests_name("cases of vkt-bench", tests, NULL, NULL);
}
