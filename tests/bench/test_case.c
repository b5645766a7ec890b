/* Tests cases of vkt-bench (an op with its inputs and attributes, as a line of text): the cases of bench/sizes.def,
 * lines that are refused, and the functions that make a case smaller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "bench/case.h"
#include "check/subject.h"
#include "support/host.h"

static const char *const sizes[] = {
#define BENCH_SIZE(set, line) line,
#include "bench/sizes.def"
#undef BENCH_SIZE
};

/* Applies the op to the inputs of the case, and returns the status of the graph. */
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

/* Checks that vkt_case_halve finds the size of the largest dimension, and halves all dimensions of this size in all
 * shapes. So the shapes still fit each other. Half of 500 is rounded up to a multiple of 4. */
static void a_case_is_halved_as_a_whole(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_op *op;
    vkt_case c;
    char text[160];
    assert_int_equal(bench_case_parse(&h, "matmul (512,512) (512,300)", &op, &c), VKT_OK);
    assert_true(vkt_case_halve(op, &c));
    vkt_case_text(&h, op, &c, text);
    assert_string_equal(text, "(256,256) (256,300)");
    assert_int_equal(bench_case_parse(&h, "softmax_xent (500,1000)b u32<1000(500)", &op, &c), VKT_OK);
    assert_true(vkt_case_halve(op, &c));
    assert_true(vkt_case_halve(op, &c));
    vkt_case_text(&h, op, &c, text);
    assert_string_equal(text, "(252,252)b u32<252(252)");
    assert_int_equal(infers(&h, op, &c), VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(sizes); i++) {
        assert_int_equal(bench_case_parse(&h, sizes[i], &op, &c), VKT_OK);
        const bool fixed = /* these attributes set a dimension, so the halved case may be wrong */
            strstr(sizes[i], "groups=") || strstr(sizes[i], "batch=") || strstr(sizes[i], "log2_table_size=");
        for (int times = 0; times < 2 && vkt_case_halve(op, &c); times++)
            if (!fixed && infers(&h, op, &c) != VKT_OK) {
                vkt_case_text(&h, op, &c, text);
                fail_msg("%s %s, halved, is not legal", op->name, text);
            }
    }
    assert_int_equal(bench_case_parse(&h, "relu (16,3)", &op, &c), VKT_OK);
    assert_false(vkt_case_halve(op, &c));
}

/* A smaller case must not have more real rows than its batch, because the reference loops over the rows. 0 rows stay 0:
 * this means the whole batch. */
static void a_smaller_case_has_no_more_rows_than_its_batch(void **state)
{
    (void)state;
    static const uint32_t rows[][3] = { { 400, 252, 128 }, { 100, 100, 100 }, { 0, 0, 0 } };
    const vkt_host h = vkt_test_host();
    const vkt_op *op;
    vkt_case c, by_batch, whole;
    assert_int_equal(
        bench_case_parse(&h, "mlp_mse (500,70)b (500,60)b () (60,70) (60) layers=1 params=3 grads=24", &op, &c),
        VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(rows); i++) {
        c.rows = rows[i][0];
        by_batch = whole = c;
        for (size_t times = 1; times < VKT_COUNT(rows[i]); times++) {
            assert_true(vkt_case_halve_batch(&by_batch) && vkt_case_halve(op, &whole));
            assert_int_equal(by_batch.rows, rows[i][times]);
            assert_int_equal(whole.rows, rows[i][times]);
            assert_true(by_batch.in[0].shape.dim[0] == whole.in[0].shape.dim[0] &&
                        whole.rows <= whole.in[0].shape.dim[0]);
        }
    }
}

/* The lines have the right format, but a call that adds the op to a graph would refuse the values. vkt_subject_of_case
 * must refuse the values too, with a message that has the reason. */
static void lines_are_checked_as_calls_are(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } bad[] = {
        { "pool2d (1,1,4,4)b kernel=2,2 stride=2,2 out=9,9", "want an output of 2, got 9" },
        { "pool2d (1,1,4,4)b adaptive=1 kernel=2,2 out=2,2", "takes no kernel" },
        { "pool2d (1,1,4,4)b kernel=2,2 stride=0,2 out=2,2", "stride >= 1" },
        { "conv2d (1,1,4,4)b (1,1,3,3) - stride=0,0", "want a stride" },
        { "conv2d (1,1,4,4)b (1,1,3,3) - groups=0", "want a stride" },
        { "conv2d (1,1,4,4)b (1,1,3,3) - dilation=0,1", "want a stride" },
        { "conv2d (1,1,4,4)b (1,1,3,3) - pad=4294967295,0", "want a stride, dilation and pad of at most" },
        { "conv2d_max_pool (1,1,4,4)b (1,1,3,3) - conv.stride=0,0", "want a stride" },
        { "conv_transpose2d (1,1,4,4)b (1,1,3,3) - stride=0,0", "want a stride" },
        { "conv_transpose2d (1,8,4,4)b (8,1073741825,1,1) - groups=4", "groups that divide C" },
        { "mlp_mse (4,2)b (4,3)b () (3,2) (3) layers=1 params=3 grads=2147483647", "of x and parameters alone" },
        { "mlp_mse (4,2)b (4,3)b () (3,2) (3) layers=1 params=4294967294", "want params=3" },
        { "mlp (4,2)b (3,2) (3) layers=1 params=1 grads=2", "grads=0" },
        { "gather_rows u8<256(9,48) u32<9(5) batch=3 sample=2147483648,1,1,1,1,1,1", "want a sample (F) or (C,H,W)" },
        { "gather_rows u8<256(9,48) u32<9(5) batch=4294967295 sample=1,46,0,0,0,0,0", "want a batch" },
        { "gather_rows u8<256(9,48) u32<10(5) batch=4 sample=1,46,0,0,0,0,0", "numbers below 10" },
        { "softmax_xent (5,7)b u32<8(5)", "numbers below 8; dimension 1 of input 0 allows 7" },
        { "embedding u32<99(3,4) (7,2)", "numbers below 99" },
        { "running_stats (6) +(6) (6) +(6) batch=0", "want 1 to 2^32 - 1 numbers" },
        { "row_norm (24,20) +(20) (20) channels=20 groups=4294967295 inner=4294967295", "want whole samples" },
        { "softplus (5) beta=0", "want a beta above 0" },
        { "batch_norm (2,3)b - - eps=-1", "want eps >= 0" },
        { "adam (64) (64) (64) +(64) kind=0", "sgd" },
        { "adam (64) (64) (64) +(64) kind=4294967295", "unknown kind" },
        { "adam (64) (64) (64) +(64) beta1=2", "want betas in [0,1)" },
        { "publish (64) (64) - decay=1", "want a decay in [0,1)" },
        { "to_layout (3,4) layout=99", "want the other layout" },
        { "softmax (3,4) log=2", "want log and causal 0 or 1" },
    };
    const vkt_host h = vkt_test_host();
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        const vkt_op *op;
        vkt_case c;
        vkt_subject s;
        assert_int_equal(bench_case_parse(&h, bad[i].line, &op, &c), VKT_OK);
        if (vkt_subject_of_case(&h, &s, op, &c, 1) == VKT_OK) fail_msg("\"%s\" is accepted", bad[i].line);
        vkt_test_error_contains(bad[i].says);
        vkt_subject_free(&s);
    }
    vkt_test_expect_errors(false);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_size_is_a_legal_case_and_its_own_text),
        TEST(a_line_has_all_kinds_of_inputs),
        TEST(bad_lines_are_refused),
        TEST(a_case_is_halved_as_a_whole),
        TEST(a_smaller_case_has_no_more_rows_than_its_batch),
        TEST(lines_are_checked_as_calls_are),
    };
    return cmocka_run_group_tests_name("cases of vkt-bench", tests, NULL, NULL);
}
