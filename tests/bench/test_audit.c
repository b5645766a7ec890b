/* Tests vkt-audit: correct graphs, a wrong graph, nodes that are reduced in size, and the program as its users run it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/file.h"
#include "bench/schema.h"
#include "check/case.h"
#include "check/differences.h"
#include "support/host.h"
#include "support/temp_dir.h"
#include "vktrain/audit.h"

static vkt_ctx *ctx;
static vkt_temp_dir dir;

static int setup(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    dir = vkt_temp_dir_make();
    const vkt_result r = vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &h, &ctx);
#ifdef VKT_REQUIRE_DEVICE
    assert_int_equal(r, VKT_OK);
#endif
    if (r == VKT_OK)
        vkt_test_ran_on(vkt_ctx_device(ctx)->name, vkt_ctx_device(ctx)->driver);
    else
        puts("SKIPPED: no Vulkan device");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    vkt_ctx_destroy(&ctx);
    vkt_temp_dir_remove(&dir);
    return vkt_test_is_clean() ? 0 : -1;
}

/* ---- graphs ---- */

/* The entries of an audit, in the order in which the audit reports them. */
typedef struct seen {
    uint32_t n, wrong, differences;
    struct {
        char op[24], text[160], name[48], fault[240];
        vkt_audit_entry e; /* its texts are valid only while see() runs: use the copies above */
    } list[64];
} seen;

static void see(void *user, const vkt_audit_entry *e)
{
    seen *s = user;
    assert_true(s->n < VKT_COUNT(s->list));
    snprintf(s->list[s->n].op, sizeof s->list[0].op, "%s", e->op);
    snprintf(s->list[s->n].text, sizeof s->list[0].text, "%s", e->text);
    snprintf(s->list[s->n].name, sizeof s->list[0].name, "%s", e->name);
    snprintf(s->list[s->n].fault, sizeof s->list[0].fault, "%s", e->fault);
    s->list[s->n++].e = *e;
    s->wrong += !e->right;
    s->differences += e->differences;
    assert_true(e->right == (strlen(e->fault) == 0));
}

static uint32_t find(const seen *s, const char *op)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].op, op) == 0) return i;
    fail_msg("%s was not audited", op);
    return 0;
}

static vkt_result audit(const vkt_graph *g, double max_cost, seen *s, vkt_audit_totals *t)
{
    *s = (seen){ .n = 0 };
    return vkt_audit_graph(ctx, g, &(vkt_audit_params){ .max_cost = max_cost, .on_entry = see, .user = s }, t);
}

/* Emits abs instead of relu: a planted fault. The emit function of elementwise ops selects the function of the
 * kernel by the op of the node. So this function passes a copy of the node, with the op abs. */
static void emit_abs(const vkt_node *n, vkt_emit *e)
{
    vkt_node as = *n;
    as.op = &vkt_op_abs;
    vkt_op_abs.emit(&as, e);
}

static void backward_of_relu(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_node as = *n;
    as.op = &vkt_op_relu;
    vkt_op_relu.backward(g, &as, dy, dx);
}

static vkt_op spoilt(void)
{
    vkt_op op = vkt_op_relu;
    op.emit = emit_abs;
    op.backward = backward_of_relu;
    op.flops = vkt_flops_an_output;
    return op;
}

/* Makes a text classifier with its gradients and an update. It has ids, an embedding, `activation`, a relu, a
 * linear layer and labels. */
static vkt_graph *classifier(uint32_t batch, uint32_t words, const vkt_op *activation)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor ids = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(batch, words));
    const vkt_tensor labels = vkt_input(g, "labels", VKT_U32, VKT_ROWS, vkt_shape1(batch));
    vkt_tensor x = vkt_embedding(g, ids, vkt_param(g, "table", vkt_shape2(50, 8)), 3);
    x = vkt_reshape(g, x, vkt_shape2(batch, words * 8));
    x = vkt_apply(g, activation, &x, 1, NULL, NULL);
    x = vkt_relu(g, x);
    x = vkt_linear(g, x, vkt_param(g, "w", vkt_shape2(7, words * 8)), vkt_param(g, "b", vkt_shape1(7)));
    assert_int_equal(vkt_backward(g, vkt_softmax_cross_entropy(g, x, labels)), VKT_OK);
    assert_int_equal(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }), VKT_OK);
    return g;
}

static void every_node_of_a_graph_is_audited(void **state)
{
    (void)state;
    if (!ctx) skip();
    seen s;
    vkt_audit_totals t;
    vkt_graph *g = classifier(12, 5, &vkt_op_relu);
    assert_int_equal(audit(g, 0, &s, &t), VKT_OK);
    const uint32_t relu = find(&s, "relu"), loss = find(&s, "softmax_xent"), linear = find(&s, "linear");
    assert_int_equal(s.list[relu].e.times, 2);
    assert_string_equal(s.list[linear].text, "(12,40) (7,40) (7)");
    assert_string_equal(s.list[loss].text, "(12,7) u32<7(12)"); /* labels are below 7, the number of classes */
    assert_true(s.list[linear].e.gradients == 7 && s.list[linear].e.differences > 0);
    assert_true(s.list[find(&s, "embedding")].e.gradients == 2);
    assert_string_equal(s.list[find(&s, "embedding")].text, "u32<50(12,5) (50,8) padding=3");
    assert_true(s.list[find(&s, "adam")].e.gradients == 0);
    assert_true(t.failed == 0 && t.reduced == 0 && t.sampled == 0 && t.cases == s.n);
    assert_int_equal(t.nodes + t.parts, g->n_nodes);
    vkt_graph_destroy(&g);
}

static void a_wrong_node_is_named(void **state)
{
    (void)state;
    if (!ctx) skip();
    seen s;
    vkt_audit_totals t;
    const vkt_op bad = spoilt();
    vkt_graph *g = classifier(12, 5, &bad);
    vkt_test_expect_errors(true);
    assert_int_equal(audit(g, 0, &s, &t), VKT_E_WRONG);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("relu (12,40): "); /* each fault is logged */
    const uint32_t relu = find(&s, "relu");
    assert_true(t.failed == 1 && s.wrong == 1 && !s.list[relu].e.right);
    assert_non_null(strstr(s.list[relu].fault, "output 0["));
    vkt_graph_destroy(&g);
}

static void large_nodes_are_reduced_in_their_batch(void **state)
{
    (void)state;
    if (!ctx) skip();
    seen s;
    vkt_audit_totals t;
    vkt_graph *g = classifier(1024, 5, &vkt_op_relu);
    assert_int_equal(audit(g, 5e5, &s, &t), VKT_OK);
    const uint32_t linear = find(&s, "linear");
    assert_true(s.list[linear].e.reduced && !s.list[linear].e.sampled);
    assert_string_equal(s.list[linear].text, "(128,40) (7,40) (7)");
    /* The attributes of a reshape contain its shape, so the node cannot be reduced. The audit checks three random cases
     * of the op instead. */
    const uint32_t reshape = find(&s, "reshape");
    assert_true(s.list[reshape].e.sampled && !s.list[reshape].e.reduced);
    assert_true(t.reduced > 0 && t.sampled % 3 == 0);
    vkt_graph_destroy(&g);
}

static void ops_are_audited_by_name(void **state)
{
    (void)state;
    if (!ctx) skip();
    seen s = { .n = 0 };
    vkt_audit_totals t = { 0 };
    const vkt_audit_params p = { .seed = 5, .on_entry = see, .user = &s };
    assert_int_equal(vkt_audit_op(ctx, "conv2d", 3, &p, &t), VKT_OK);
    assert_true(t.cases == 3 && s.differences > 0);
    assert_string_equal(s.list[2].name, "seed 7");
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_audit_op(ctx, "conv9d", 3, &p, &t), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_audit_op(ctx, "conv2d_dx", 3, &p, &t), VKT_E_NOT_FOUND);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("conv2d_dx");
}

/* Computes a wrong gradient of relu: half of the derivative. The difference quotients must differ from it. */
static void half_a_gradient(const vkt_ref_call *c)
{
    vkt_ref_find("relu")->backward(c);
    for (size_t i = 0; i < vkt_shape_elements(c->in[0].shape); i++) c->din[0][i] /= 2;
}

static void a_wrong_gradient_of_the_reference_is_found(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_differences d = { .tried = 0 };
    vkt_subject s;
    assert_int_equal(vkt_subject_make(&h, &s, &vkt_op_relu, 1), VKT_OK);
    assert_int_equal(vkt_subject_differences(&s, 16, &d), VKT_OK);
    assert_true(d.tried == 16 && d.excess <= 1);
    const vkt_ref_op wrong = { "relu", 1, s.ref->forward, half_a_gradient, NULL };
    s.ref = &wrong;
    assert_int_equal(vkt_subject_differences(&s, 16, &d), VKT_OK);
    assert_true(d.excess > 1 && d.got == d.got && d.quotient != d.got);
    vkt_subject_free(&s);
}

/* Checks for each op with a gradient and random cases that vkt_subject_differences computes the outputs before the
 * gradients. The outputs are NaN at first. (The gradients of max_to and min_to read the outputs.) */
static void differences_compute_the_outputs_first(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; vkt_ops[i]; i++) {
        vkt_differences d = { .tried = 0 };
        vkt_subject s;
        if (!vkt_ops[i]->sample || !vkt_ops[i]->diff) continue;
        assert_int_equal(vkt_subject_make(&h, &s, vkt_ops[i], 1), VKT_OK);
        for (uint32_t k = 0; k < s.n_out; k++)
            for (size_t e = 0; s.out[k].ref.f && e < vkt_side_count(&s.out[k]); e++) s.out[k].ref.f[e] = NAN;
        assert_int_equal(vkt_subject_differences(&s, 8, &d), VKT_OK);
        if (!(d.excess <= 1)) fail_msg("%s: gradient %g, difference quotient %g", vkt_ops[i]->name, d.got, d.quotient);
        vkt_subject_free(&s);
    }
}

/* Makes four nodes of every op that has random cases. Checks that vkt_case_of_node returns the shapes and types of
 * their inputs. (For an op with a variable number of inputs, the function may return no case.) */
static void cases_are_those_of_their_nodes(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; vkt_ops[i]; i++)
        for (uint64_t seed = 100; seed < 104 && vkt_ops[i]->sample; seed++) {
            vkt_subject s;
            vkt_case c;
            assert_int_equal(vkt_subject_make(&h, &s, vkt_ops[i], seed), VKT_OK);
            const vkt_node *n = s.g->nodes[s.n_forward - 1];
            assert_ptr_equal(n->op, vkt_ops[i]);
            const vkt_case *own = &s.c;
            const bool known = vkt_case_of_node(n, &c);
            if (!known && vkt_ops[i]->max_in == vkt_ops[i]->min_in)
                fail_msg("%s %s: no random case has such inputs", vkt_ops[i]->name, own->text);
            for (uint32_t k = 0; k < c.n_in; k++) {
                assert_true(c.in[k].absent == (k >= own->n_in || own->in[k].absent));
                if (c.in[k].absent) continue;
                assert_true(vkt_shape_equal(c.in[k].shape, own->in[k].shape) && c.in[k].dtype == own->in[k].dtype);
                if (c.in[k].dtype == VKT_U32 || c.in[k].dtype == VKT_U8)
                    assert_true(c.in[k].bound > 0 && c.in[k].bound <= own->in[k].bound);
            }
            vkt_subject_free(&s);
        }
}

/* ---- the program ---- */

static char *text_of(const char *name)
{
    const vkt_host h = vkt_test_host();
    void *text;
    size_t n;
    assert_int_equal(vkt_file_read(&h, vkt_temp_dir_file(&dir, name), 1 << 24, &text, &n), VKT_OK);
    return text;
}

static void says(const char *file, const char *part)
{
    const vkt_host h = vkt_test_host();
    char *text = text_of(file);
    const bool found = strstr(text, part);
    if (!found) print_error("want \"%s\" in \"%s\"\n", part, text);
    vkt_free(&h, text);
    assert_true(found);
}

static vkt_tensor good_net(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_linear(b, "fc", vkt_nn_relu(b, x), &(vkt_nn_linear_params){ .out_features = 2 });
}

static vkt_tensor bad_net(vkt_builder *b, vkt_tensor x, void *user)
{
    static vkt_op bad; /* static, because the graph keeps its address */
    bad = spoilt();
    x = vkt_apply(vkt_builder_graph(b), &bad, &x, 1, NULL, NULL);
    vkt_tensor_set_name(vkt_builder_graph(b), x, "culprit");
    return good_net(b, x, user);
}

static const bench_net nets[] = {
    { .name = "good",
      .what = "one layer",
      .batch = 9,
      .sample = { 1, { 3 } },
      .targets = 2,
      .range = 1,
      .forward = good_net },
    { .name = "bad",
      .what = "a relu that is abs",
      .batch = 9,
      .sample = { 1, { 3 } },
      .targets = 2,
      .range = 1,
      .forward = bad_net },
    { .name = NULL },
};

static int run_with(const audit_options *o)
{
    const vkt_host h = vkt_test_host();
    FILE *out = fopen(vkt_temp_dir_file(&dir, "out"), "w");
    assert_non_null(out);
    const int status = audit_run(o, nets, &h, out);
    fclose(out);
    return status;
}

static void the_report_names_the_culprit_and_the_status_is_1(void **state)
{
    (void)state;
    if (!ctx) skip();
    char why[256], json[256], *names[] = { "good", "bad" };
    snprintf(json, sizeof json, "%s", vkt_temp_dir_file(&dir, "a.json"));
    audit_options o = { .networks = names, .n_networks = 1, .seed = 1, .json = json };
    assert_int_equal(run_with(&o), 0);
    says("out", "all right");
    says("a.json", "\"right\": true");
    if (!schema_fits("audit", json, why)) fail_msg("%s", why);
    o.n_networks = 2;
    vkt_test_expect_errors(true);
    assert_int_equal(run_with(&o), 1);
    vkt_test_expect_errors(false);
    says("out", "WRONG: node 0, 'culprit': relu: output 0[");
    says("out", ": 1 WRONG");
    says("a.json", "\"right\": false");
    says("a.json", "\"status\": \"VKT_E_WRONG\"");
    if (!schema_fits("audit", json, why)) fail_msg("%s", why);
}

/* Runs the real program, and writes its output to the files `out` and `err`. Returns its exit code, or -1 if a signal
 * ended it. */
static int run(const char *const *args)
{
    const char *argv[12] = { VKT_AUDIT_PROGRAM };
    for (int i = 0; args[i]; i++) argv[i + 1] = args[i];
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (chdir(dir.path) != 0) _exit(127);
        dup2(open("out", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
        dup2(open("err", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

static void random_cases_are_audited_by_the_program(void **state)
{
    (void)state;
    if (!ctx) skip();
    char why[256];
    assert_int_equal(RUN("--all", "--seeds", "2", "--filter", "^(relu|matmul|argmax)$", "--json", "b.json"), 0);
    says("out", "6 nodes, 6 different: all right");
    assert_int_equal(RUN("--all", "--seeds", "1", "--filter", "^relu$"), 0);
    says("out", "\n1 node, 1 different: all right");
    if (!schema_fits("audit", vkt_temp_dir_file(&dir, "b.json"), why)) fail_msg("%s", why);
}

static void wrong_options_have_a_message_with_what_was_expected(void **state)
{
    (void)state;
    assert_int_equal(RUN("--seeds", "0", "--all"), 2);
    says("err", "--seeds: want a whole number above 0, got '0'");
    assert_int_equal(RUN("--effort", "soon", "--all"), 2);
    says("err", "--effort: want seconds above 0, 1e6 at most, got 'soon'");
    assert_int_equal(RUN("--filter", "(", "--all"), 2);
    assert_int_equal(RUN("--filter", "nosuch", "--all", "--json", "none.json"), 1);
    says("err", "no op matches");
    says("none.json", "\"right\": false");
    says("none.json", "\"status\"");
    assert_int_equal(RUN("--filter", "relu", "mnist-b128"), 2);
    says("err", "--filter and --seeds go with --all");
    assert_int_equal(RUN("--quiet"), 2);
    says("err", "want a NETWORK");
    assert_int_equal(RUN("mnist"), 2);
    says("err", "there is no network 'mnist'");
    assert_int_equal(RUN("--help"), 0);
    says("out", "--effort");
    assert_int_equal(RUN("--list"), 0);
    says("out", "mnist-b128 ");
    says("out", "conv2d\n");
    assert_int_equal(RUN("-h"), 0);
    says("out", "--effort");
    assert_int_equal(RUN("--version"), 0);
    says("out", "vktrain ");
}

#define TEST(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_node_of_a_graph_is_audited),
        TEST(a_wrong_node_is_named),
        TEST(large_nodes_are_reduced_in_their_batch),
        TEST(ops_are_audited_by_name),
        TEST(a_wrong_gradient_of_the_reference_is_found),
        TEST(differences_compute_the_outputs_first),
        TEST(cases_are_those_of_their_nodes),
        TEST(the_report_names_the_culprit_and_the_status_is_1),
        TEST(random_cases_are_audited_by_the_program),
        TEST(wrong_options_have_a_message_with_what_was_expected),
    };
    return cmocka_run_group_tests_name("vkt-audit", tests, setup, teardown);
}
