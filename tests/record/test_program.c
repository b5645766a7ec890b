/* Tests programs: the requirements that their graph, store, arrays and runs must meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

static vkt_graph *graph(void)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    OK(vkt_graph_create(&h, &g));
    return g;
}

/* Checks that the call fails with `want` and a message that contains `part`. */
#define REFUSED(call, want, part)         \
    do {                                  \
        vkt_test_expect_errors(true);     \
        assert_int_equal((call), (want)); \
        vkt_test_expect_errors(false);    \
        vkt_test_error_contains(part);    \
    } while (0)

static void a_graph_with_a_program_does_not_change(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (int keep = 0; keep < 2; keep++) {
        vkt_graph *g = graph();
        vkt_program *p, *again;
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(5)), y = vkt_relu(g, x);
        const vkt_tensor z = vkt_add(g, y, y);
        vkt_keep(g, z);
        OK(vkt_program_create(harness_ctx, g, NULL, NULL, &p));
        OK(vkt_program_create(harness_ctx, g, NULL, NULL, &again));
        vkt_program_destroy(&again);
        const size_t values = g->n_values;
        vkt_test_expect_errors(true);
        if (keep)
            vkt_keep(g, y);
        else
            for (int i = 0; i < 40; i++) assert_int_equal(vkt_relu(g, z).id, 0);
        vkt_test_expect_errors(false);
        vkt_test_error_contains("vkt_program_create finished it");
        assert_int_equal(vkt_graph_status(g), VKT_E_STATE);
        assert_int_equal(g->n_values, values);
        /* The program still works. y is not kept, so it cannot be read. */
        const float in[5] = { -1, 2, -3, 4, 5 };
        float out[5];
        OK(vkt_program_write(p, x, in, sizeof in));
        OK(vkt_program_run(p, NULL, NULL));
        OK(vkt_program_read(p, z, out, sizeof out));
        for (int i = 0; i < 5; i++) assert_true(out[i] == 2 * (in[i] > 0 ? in[i] : 0));
        REFUSED(vkt_program_read(p, y, out, sizeof out), VKT_E_ARG, "vkt_keep");
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

static void stores_and_arrays_of_another_context_are_refused(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_ctx *other;
    const vkt_host h = vkt_test_host();
    OK(vkt_ctx_create(NULL, &h, &other));
    vkt_graph *g = graph();
    vkt_store *store;
    vkt_array *array;
    vkt_program *p;
    const vkt_tensor w = vkt_param(g, "w", vkt_shape1(4)), e = vkt_external(g, "e", VKT_F32, vkt_shape1(4));
    vkt_keep(g, vkt_add(g, w, e));
    OK(vkt_store_create(other, g, &store));
    REFUSED(vkt_program_create(harness_ctx, g, store, NULL, &p), VKT_E_ARG, "store is of another context");
    OK(vkt_array_create(harness_ctx, &(vkt_array_params){ .dtype = VKT_F32, .shape = vkt_shape1(4) }, &array));
    const vkt_binding binding = { e, array };
    const vkt_program_params params = { .arrays = &binding, .n_arrays = 1 };
    REFUSED(vkt_program_create(other, g, store, &params, &p), VKT_E_ARG, "made by this context");
    const vkt_program_params no_arrays = { .n_arrays = 1 };
    REFUSED(vkt_program_create(harness_ctx, g, store, &no_arrays, &p), VKT_E_ARG, "want `params->arrays`, got NULL");
    vkt_array_destroy(&array);
    vkt_store_destroy(&store);
    vkt_graph_destroy(&g);
    vkt_ctx_destroy(&other);
}

/* A program of the graph `small` may use the store of the graph `big`. A store that is made from `small` afterwards
 * still has the layout of `small`. */
static void a_store_is_laid_out_by_its_own_graph(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_graph *big = graph(), *small = graph();
    vkt_store *theirs, *own;
    vkt_program *p;
    vkt_param(big, "a", vkt_shape1(1000));
    vkt_param(big, "w", vkt_shape1(4));
    const vkt_tensor y = vkt_relu(small, vkt_param(small, "w", vkt_shape1(4)));
    vkt_keep(small, y);
    OK(vkt_store_create(harness_ctx, big, &theirs));
    OK(vkt_program_create(harness_ctx, small, theirs, NULL, &p));
    vkt_program_destroy(&p);
    OK(vkt_store_create(harness_ctx, small, &own));
    const float w[4] = { 1, -2, 3, 4 };
    float got[4];
    OK(vkt_store_write(own, 0, VKT_PART_VALUE, w));
    OK(vkt_program_create(harness_ctx, small, own, NULL, &p));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, y, got, sizeof got));
    for (int i = 0; i < 4; i++) assert_true(got[i] == (w[i] > 0 ? w[i] : 0));
    vkt_program_destroy(&p);
    vkt_store_destroy(&own);
    vkt_store_destroy(&theirs);
    vkt_graph_destroy(&small);
    vkt_graph_destroy(&big);
}

/* Declares the parameters "a" and "b" of 64 numbers, "b" first if `swapped`, with gradients if `backward`. */
static vkt_graph *two_params(bool swapped, bool backward)
{
    vkt_graph *g = graph();
    const vkt_tensor first = vkt_param(g, swapped ? "b" : "a", vkt_shape1(64));
    const vkt_tensor loss = vkt_sum(g, vkt_mul(g, first, vkt_param(g, swapped ? "a" : "b", vkt_shape1(64))));
    if (backward)
        OK(vkt_backward(g, loss));
    else
        vkt_keep(g, loss);
    return g;
}

/* A graph with gradients writes them to the store's arena. The offsets depend on the order of the graph's parameters.
 * So the graph must declare the parameters in the store's order, even if the graph has no update. A graph without
 * gradients may declare the parameters in any order. */
static void gradients_need_the_order_of_the_store(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_graph *same = two_params(false, true), *other = two_params(true, true), *plain = two_params(true, false);
    vkt_store *store;
    vkt_program *p;
    OK(vkt_store_create(harness_ctx, same, &store));
    REFUSED(vkt_program_create(harness_ctx, other, store, NULL, &p), VKT_E_STATE, "laid out for another graph");
    assert_null(p);
    OK(vkt_program_create(harness_ctx, plain, store, NULL, &p));
    vkt_program_destroy(&p);
    OK(vkt_program_create(harness_ctx, same, store, NULL, &p));
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    vkt_graph_destroy(&plain);
    vkt_graph_destroy(&other);
    vkt_graph_destroy(&same);
}

static vkt_graph *updated(const vkt_optimizer *o)
{
    vkt_graph *g = two_params(false, true);
    OK(vkt_update(g, o));
    return g;
}

/* The clock of a store has powers of the decay rates (beta1, beta2, momentum_decay) of the optimizer for which the
 * store was made. With an optimizer of another kind, or with other decay rates, steps would be wrong, so the program is
 * refused. Other numbers of the optimizer, for instance eps, may differ. Adam and AdamW count as one kind. */
static void updates_have_the_optimizer_of_the_store(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const struct {
        vkt_optimizer made, other;
        const char *says; /* part of the message; NULL: the optimizers fit */
    } cases[] = {
        { { .kind = VKT_ADAM }, { .kind = VKT_ADAM, .beta2 = 0.99 }, "beta2 0.99)" },
        { { .kind = VKT_ADAM }, { .kind = VKT_NADAM }, "adam (beta1 0.9, beta2 0.999), got nadam (" },
        { { .kind = VKT_ADAM }, { .kind = VKT_SGD }, "got sgd" },
        { { .kind = VKT_NADAM }, { .kind = VKT_NADAM, .momentum_decay = 1 }, "0.96^momentum_decay 0.96)" },
        { { .kind = VKT_ADAM }, { .kind = VKT_ADAM, .beta1 = 0.9, .eps = 1e-3f }, NULL },
        { { .kind = VKT_ADAM }, { .kind = VKT_ADAMW }, NULL },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_graph *made = updated(&cases[i].made), *other = updated(&cases[i].other);
        vkt_store *store;
        vkt_program *p;
        OK(vkt_store_create(harness_ctx, made, &store));
        if (cases[i].says)
            REFUSED(vkt_program_create(harness_ctx, other, store, NULL, &p), VKT_E_STATE, cases[i].says);
        else
            OK(vkt_program_create(harness_ctx, other, store, NULL, &p));
        vkt_program_destroy(&p);
        vkt_store_destroy(&store);
        vkt_graph_destroy(&other);
        vkt_graph_destroy(&made);
    }
}

static void rows_are_those_of_the_batch(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { BATCH = 6 };
    vkt_graph *g = graph();
    vkt_array *table;
    vkt_program *p;
    vkt_metrics m;
    uint64_t run;
    const uint32_t numbers[BATCH] = { 5, 4, 3, 2, 1, 0 };
    const vkt_array_params ap = { .dtype = VKT_U32, .shape = vkt_shape1(BATCH), .data = numbers };
    OK(vkt_array_create(harness_ctx, &ap, &table));
    const vkt_tensor e = vkt_external(g, "order", VKT_U32, vkt_shape1(BATCH));
    const vkt_tensor z = vkt_input(g, "z", VKT_F32, VKT_ROWS, vkt_shape2(BATCH, 7));
    vkt_report(g, vkt_softmax_cross_entropy(g, z, vkt_gather_labels(g, e, e, BATCH)), (vkt_tensor){ 0 });
    const vkt_binding binding = { e, table };
    OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .arrays = &binding, .n_arrays = 1 }, &p));
    REFUSED(vkt_program_run(p, &(vkt_run){ .rows = BATCH + 1 }, NULL), VKT_E_ARG, "at most the batch of 6 rows, got 7");
    OK(vkt_program_run(p, NULL, &run));
    assert_int_equal(run, 0);
    OK(vkt_program_metrics(p, run, &m));
    assert_int_equal(m.rows, BATCH);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    vkt_array_destroy(&table);

    g = graph(); /* without a gather op, the batch is the number of rows of y */
    const vkt_tensor y = vkt_input(g, "y", VKT_F32, VKT_ROWS, vkt_shape2(BATCH, 7));
    vkt_report(g, vkt_mse(g, y, y), (vkt_tensor){ 0 });
    OK(vkt_program_create(harness_ctx, g, NULL, NULL, &p));
    for (uint32_t rows = 0; rows < 3; rows++) {
        OK(vkt_program_run(p, &(vkt_run){ .rows = rows }, &run));
        OK(vkt_program_metrics(p, run, &m));
        assert_int_equal(m.rows, rows);
    }
    REFUSED(vkt_program_run(p, &(vkt_run){ .rows = BATCH + 1 }, NULL), VKT_E_ARG, "at most the batch of 6 rows, got 7");
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* If there is no memory for a program, the graph stays usable. */
static void a_program_may_be_made_again_after_a_failed_allocation(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_graph *g = graph();
    vkt_program *p;
    vkt_metrics m;
    uint64_t run;
    char *text;
    const vkt_tensor y = vkt_input(g, "y", VKT_F32, VKT_ROWS, vkt_shape2(3, 5));
    const vkt_tensor t = vkt_input(g, "t", VKT_F32, VKT_ROWS, vkt_shape2(3, 5));
    vkt_report(g, vkt_mse(g, y, t), (vkt_tensor){ 0 });
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_program_create(harness_ctx, g, NULL, NULL, &p);
        const bool failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(r, failed ? VKT_E_NOMEM : VKT_OK);
        OK(vkt_graph_status(g));
        if (failed) continue;
        assert_true(n > 20); /* at least 20 allocations failed */
        break;
    }
    const float ones[15] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    OK(vkt_program_write(p, y, ones, sizeof ones));
    OK(vkt_program_run(p, NULL, &run));
    OK(vkt_program_metrics(p, run, &m));
    assert_true(m.loss == 1);
    OK(vkt_program_print(p, &text));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    assert_non_null(strstr(text, "step_advance")); /* the text stays valid after its program and graph are destroyed */
    vkt_text_release(&text);
    assert_null(text);
    vkt_text_release(&text);
}

/* A text is released by the application's allocator, also after the context is destroyed. So the text has its own
 * reference to the allocator. */
static void a_text_outlives_its_context(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_host h = vkt_test_host();
    vkt_ctx *ctx;
    vkt_program *p;
    char *text;
    OK(vkt_ctx_create(NULL, &h, &ctx));
    vkt_graph *g = graph();
    vkt_keep(g, vkt_relu(g, vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(5))));
    OK(vkt_program_create(ctx, g, NULL, NULL, &p));
    OK(vkt_program_print(p, &text));
    vkt_program_destroy(&p);
    vkt_ctx_destroy(&ctx);
    vkt_graph_destroy(&g);
    const size_t blocks = vkt_test_live_blocks();
    assert_non_null(strstr(text, "relu"));
    vkt_text_release(&text);
    assert_null(text);
    assert_int_equal(vkt_test_live_blocks(), blocks - 1);
}

static void gradients_are_made_once(void **state)
{
    (void)state;
    vkt_graph *g = graph();
    const vkt_tensor p = vkt_param(g, "p", vkt_shape1(8));
    OK(vkt_backward(g, vkt_sum(g, p)));
    REFUSED(vkt_backward(g, vkt_mean(g, p)), VKT_E_STATE, "gradients already");
    assert_int_equal(vkt_graph_status(g), VKT_E_STATE);
    vkt_graph_destroy(&g);
}

/* Makes two independent chains of permutations. An order that alternates between the chains needs fewer barriers, but
 * memory for both chains at once. */
static vkt_graph *two_chains(void)
{
    vkt_graph *g = graph();
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(512, 512));
    vkt_tensor y[2] = { x, x };
    for (int branch = 0; branch < 2; branch++)
        for (int i = 0; i < 4; i++) y[branch] = vkt_permute(g, y[branch], (const uint32_t[]){ 1, 0 });
    vkt_keep(g, vkt_add(g, y[0], y[1]));
    return g;
}

static vkt_plan_info plan_within(uint64_t max_bytes)
{
    vkt_graph *g = two_chains();
    vkt_program *p;
    vkt_plan_info plan;
    OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .max_bytes = max_bytes }, &p));
    OK(vkt_program_run(p, NULL, NULL));
    vkt_program_plan(p, &plan);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    return plan;
}

static uint64_t all_bytes(const vkt_plan_info *plan)
{
    uint64_t sum = 0;
    for (int i = 0; i < VKT_MEM_CLASS_COUNT; i++) sum += plan->bytes[i];
    return sum;
}

/* GPUs may use more memory for fewer barriers, but only if half of the memory below the cap stays free for other
 * programs. Near the cap, a program can still be made, with the least memory. */
static void barriers_are_not_saved_near_the_cap(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { MORE_KIB = 4096 };
    const vkt_limits real = harness_ctx->limits;
    vkt_traits traits = *real.traits;
    harness_ctx->limits.traits = &traits;
    traits.barriers_kib = 0;
    const vkt_plan_info least = plan_within(0);
    traits.barriers_kib = MORE_KIB;
    const vkt_plan_info fast = plan_within(0);
    assert_true(fast.barriers < least.barriers && fast.total_bytes > least.total_bytes);
    const uint64_t need = all_bytes(&least), enough = 2 * (need + 1024ull * MORE_KIB);
    assert_int_equal(plan_within(enough).barriers, fast.barriers);
    assert_int_equal(plan_within(enough - 2 * VKT_ALIGN_BYTES).barriers, least.barriers);
    assert_int_equal(plan_within(all_bytes(&fast)).total_bytes, least.total_bytes);
    assert_int_equal(plan_within(need).total_bytes, least.total_bytes);
    vkt_graph *g = two_chains();
    vkt_program *p;
    REFUSED(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .max_bytes = need - 1 }, &p),
            VKT_E_MEMORY_CAP, "are left below the cap");
    vkt_graph_destroy(&g);
    harness_ctx->limits = real;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_with_a_program_does_not_change),
        cmocka_unit_test(stores_and_arrays_of_another_context_are_refused),
        cmocka_unit_test(a_store_is_laid_out_by_its_own_graph),
        cmocka_unit_test(gradients_need_the_order_of_the_store),
        cmocka_unit_test(updates_have_the_optimizer_of_the_store),
        cmocka_unit_test(rows_are_those_of_the_batch),
        cmocka_unit_test(a_program_may_be_made_again_after_a_failed_allocation),
        cmocka_unit_test(a_text_outlives_its_context),
        cmocka_unit_test(gradients_are_made_once),
        cmocka_unit_test(barriers_are_not_saved_near_the_cap),
    };
    return cmocka_run_group_tests_name("program", tests, harness_setup, harness_teardown);
}
