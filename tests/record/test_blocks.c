/* Tests blocks that are computed again for their gradients (vkt_recompute_begin). The networks of blocks.c train to the
 * same bits with blocks and without. A chain of blocks keeps only the inputs of its blocks for the backward pass. Nodes
 * that no gradient needs are not computed again. Wrong calls are refused. */
#include "record/blocks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define REFUSED(call, want, part)         \
    do {                                  \
        vkt_test_expect_errors(true);     \
        assert_int_equal((call), (want)); \
        vkt_test_expect_errors(false);    \
        vkt_test_error_contains(part);    \
    } while (0)

static vkt_plan_info plan_of(const net *n)
{
    vkt_plan_info plan;
    vkt_program_plan(n->p, &plan);
    return plan;
}

static void same_bits(const net *a, const net *b, vkt_store_part part)
{
    for (uint32_t i = 0; i < vkt_store_count(a->s); i++) {
        const uint64_t n = vkt_shape_elements(vkt_store_shape(a->s, i));
        float *x = malloc(2 * n * sizeof *x);
        assert_non_null(x);
        OK(vkt_store_read(a->s, i, part, x));
        OK(vkt_store_read(b->s, i, part, x + n));
        if (memcmp(x, x + n, n * sizeof *x) != 0) fail_msg("part %d of %s differs", (int)part, vkt_store_name(a->s, i));
        free(x);
    }
}

static uint32_t again_nodes(const net *n)
{
    uint32_t count = 0;
    for (size_t i = 0; i < n->g->n_nodes; i++) count += n->g->nodes[i]->after != 0;
    return count;
}

/* ---- the same bits ---- */

/* Checks that the first moments of each parameter are finite and not all 0. The moments of a parameter that is a state
 * (vkt_state) may be 0. */
static void check_trained(const net *n)
{
    for (uint32_t i = 0; i < vkt_store_count(n->s); i++) {
        const uint64_t count = vkt_shape_elements(vkt_store_shape(n->s, i));
        float *x = malloc(count * sizeof *x);
        assert_non_null(x);
        OK(vkt_store_read(n->s, i, VKT_PART_MOMENT1, x));
        double sum = 0;
        for (uint64_t k = 0; k < count; k++) sum += fabs((double)x[k]);
        if (!isfinite(sum)) fail_msg("the moment of %s is not finite", vkt_store_name(n->s, i));
        if (sum == 0 && !n->g->values[n->g->params[i]].state) fail_msg("%s has no moment", vkt_store_name(n->s, i));
        free(x);
    }
}

static void compare(size_t at, job j)
{
    j.n = BLOCKS;
    net keeps = make(networks[at].build, &j);
    j.blocks = true;
    net again = make(networks[at].build, &j);
    assert_int_equal(again_nodes(&keeps), 0);
    assert_true(networks[at].fused || again_nodes(&again) > 0);
    train(&keeps, 3);
    train(&again, 3);
    check_trained(&again);
    for (int part = VKT_PART_VALUE; part <= VKT_PART_MOMENT2; part++) same_bits(&keeps, &again, (vkt_store_part)part);
    free_net(&keeps);
    free_net(&again);
    harness_forget(harness_ctx);
}

static void a_training_has_the_same_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < NETWORKS; i++)
        for (int precision = VKT_PRECISION_F32; precision <= VKT_PRECISION_BF16; precision++)
            compare(i, (job){ .precision = (vkt_precision)precision });
}

static void both_kinds_of_recomputation_go_together(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < NETWORKS; i++) compare(i, (job){ .cheap = true });
}

static void micro_batches_have_the_same_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < 2; i++) compare(i, (job){ .micro_batches = 2 });
}

static void nodes_that_are_not_fused_have_the_same_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    assert_int_equal(setenv("VKT_NO_FUSE", "1", 1), 0);
    for (size_t i = 0; i < NETWORKS; i++) compare(i, (job){ 0 });
    assert_int_equal(unsetenv("VKT_NO_FUSE"), 0);
}

/* With the traits of a GPU, a program may have other kernels and other fused nodes than on a CPU. The order of its
 * nodes may be one that has fewer barriers, but needs more memory. */
static void a_gpu_has_the_same_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_limits real = harness_ctx->limits;
    harness_as_gpu(&harness_ctx->limits);
    for (size_t i = 0; i < NETWORKS; i++)
        compare(i, (job){ .precision = i % 2 ? VKT_PRECISION_F16 : VKT_PRECISION_F32 });
    harness_ctx->limits = real;
}

/* After vkt_backward, vkt_write adds a node that reads the value y of a block. So relu must not be fused into the layer
 * that makes y: the layer would store relu(y) instead of y. */
static void a_value_may_be_read_after_its_gradients(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 24 };
    const vkt_shape shape = vkt_shape2(N, N);
    net n = { .g = harness_graph() };
    OK(vkt_builder_create(n.g, true, &n.b));
    vkt_array *written;
    OK(vkt_array_create(harness_ctx, &(vkt_array_params){ .dtype = VKT_F32, .shape = shape }, &written));
    const vkt_tensor x = input(n.b, VKT_ROWS, shape);
    vkt_recompute_begin(n.g);
    const vkt_tensor y = linear(n.b, "fc", x, N);
    vkt_recompute_end(n.g);
    OK(vkt_backward(n.g, target(n.b, vkt_relu(n.g, y))));
    vkt_write(n.g, y, vkt_external_array(n.g, "written", written, VKT_F32, shape));
    OK(vkt_store_create(harness_ctx, n.g, &n.s));
    OK(vkt_nn_init(n.b, n.s, 1));
    OK(vkt_program_create(harness_ctx, n.g, n.s, NULL, &n.p));
    train(&n, 1);
    float got[N * N], least = 0;
    OK(vkt_readback(harness_ctx, written->buffer, 0, got, sizeof got));
    for (int i = 0; i < N * N; i++) least = fminf(least, got[i]);
    assert_true(least < 0);
    free_net(&n);
    vkt_array_destroy(&written);
}

/* ---- the memory ---- */

enum { ROWS = 64, WIDTH = 32, HIDDEN = 256 };

/* A network of blocks x += linear(gelu(linear(x))). A linear layer is in front of the blocks, so that the input of the
 * first block has a gradient. */
static vkt_tensor chain(vkt_builder *b, const job *j)
{
    vkt_tensor x = linear(b, "first", input(b, VKT_ROWS, vkt_shape2(ROWS, WIDTH)), WIDTH);
    for (uint32_t i = 0; i < j->n; i++) {
        begin(b, j, i);
        x = vkt_nn_add(b, x, linear(b, "down", vkt_nn_gelu(b, linear(b, "up", x, HIDDEN)), WIDTH));
        end(b, j);
    }
    return target(b, x);
}

static uint64_t peak_of(uint32_t n, bool blocks, bool cheap)
{
    net made = make(chain, &(job){ .n = n, .blocks = blocks, .cheap = cheap });
    const uint64_t bytes = plan_of(&made).total_bytes;
    free_net(&made);
    return bytes;
}

/* The gradients of a block read two values of 64 x 256 numbers, and the input of the block. Without
 * vkt_recompute_begin and with `cheap` = 0, all these values are kept for the backward pass. With vkt_recompute_begin,
 * only the inputs of the blocks are kept. */
static void a_chain_of_blocks_needs_the_memory_of_one_block(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const uint64_t kept = 4ull * ROWS * WIDTH, inner = 2 * 4ull * ROWS * HIDDEN;
    const vkt_limits real = harness_ctx->limits;
    for (int gpu = 0; gpu < 2; gpu++) {
        vkt_traits traits = *real.traits;
        harness_ctx->limits.traits = &traits;
        traits.barriers_kib = gpu ? 64 * 1024 : 0; /* 64 MiB are more than all values of the network need */
        for (int cheap = 0; cheap < 2; cheap++) {
            const uint64_t few = peak_of(4, false, cheap), many = peak_of(16, false, cheap);
            const uint64_t again_few = peak_of(4, true, cheap), again = peak_of(16, true, cheap);
            printf("%s%s: 4 blocks %llu and %llu bytes, 16 blocks %llu and %llu bytes\n",
                   gpu ? "fewer barriers" : "least", cheap ? ", cheap ops again" : "", (unsigned long long)few,
                   (unsigned long long)again_few, (unsigned long long)many, (unsigned long long)again);
            assert_true(cheap || many - few >= 12 * (kept + inner));
            assert_true(again - again_few <= 12 * kept + (gpu ? inner : 0));
            assert_true(again <= 16 * kept + 2 * inner);
        }
    }
    harness_ctx->limits = real;
}

/* A classifier whose last block ends with the scores. On GPUs, the kernel of the loss also computes the gradient of the
 * scores (passes/companion.c). So the node that makes the gradient of the last block's result has no dispatch of its
 * own. */
static vkt_tensor classifier(vkt_builder *b, const job *j)
{
    vkt_graph *g = vkt_builder_graph(b);
    vkt_tensor x = input(b, VKT_BATCH_LAST, vkt_shape2(16, 24));
    for (uint32_t i = 0; i < j->n; i++) {
        begin(b, j, i);
        x = linear(b, "down", vkt_nn_gelu(b, linear(b, "up", x, 40)), 24);
        end(b, j);
    }
    const vkt_tensor t = vkt_input(g, "t", VKT_U32, VKT_ROWS, vkt_shape1(16));
    return vkt_softmax_cross_entropy(g, x, t);
}

/* The nodes that compute a block again run after the first computation of all blocks, and after the node that makes the
 * gradient of the block's result (vkt_node.after). This is the order even if the plan may use 64 MiB more for fewer
 * barriers. */
static void a_second_computation_waits_for_its_gradient(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const build_fn builds[] = { transformer, classifier };
    const vkt_limits real = harness_ctx->limits;
    for (size_t i = 0; i < 2 * VKT_COUNT(builds); i++) {
        if (i % 2) harness_as_gpu(&harness_ctx->limits);
        vkt_traits traits = *harness_ctx->limits.traits;
        traits.barriers_kib = 64 * 1024;
        harness_ctx->limits.traits = &traits;
        net n = make(builds[i / 2], &(job){ .n = BLOCKS, .blocks = true });
        const vkt_emit *low = &n.p->lowered;
        const uint32_t forward = n.g->blocks[BLOCKS - 1].end;
        uint32_t found = 0, second = 0;
        for (size_t d = 0; d < low->n; d++) {
            const uint32_t after = n.g->nodes[low->list[d].node]->after;
            bool waits = false;
            second += after != 0;
            for (size_t e = 0; after && e < low->n; e++) {
                const uint32_t node = low->list[e].node;
                if (node == after - 1 || node < forward) assert_true(e < d);
                waits |= node == after - 1;
            }
            found += waits;
        }
        assert_true(second > 0 && found > 0);
        assert_true(builds[i / 2] != classifier || i % 2 == 0 || found < second);
        free_net(&n);
        harness_ctx->limits = real;
    }
}

/* ---- what is not computed again ---- */

/* Three blocks, each of a linear layer and a function. The first `frozen` layers are frozen. `square`: the function is
 * x * x, whose gradient reads x, the output of the linear layer. Otherwise the function is a scaling, whose gradient
 * reads no value of the block. */
static net layers(uint32_t frozen, bool blocks, bool square)
{
    net n = { .g = harness_graph() };
    const job j = { .blocks = blocks };
    OK(vkt_builder_create(n.g, true, &n.b));
    vkt_tensor x = input(n.b, VKT_ROWS, vkt_shape2(ROWS, WIDTH));
    for (uint32_t i = 0; i < 3; i++) {
        begin(n.b, &j, i);
        x = linear(n.b, "fc", x, WIDTH);
        x = square ? vkt_mul(n.g, x, x) : vkt_scale(n.g, x, 2, 0);
        end(n.b, &j);
    }
    for (uint32_t i = 0; i < frozen; i++) {
        char pattern[16];
        snprintf(pattern, sizeof pattern, "block%u.*", i);
        OK(vkt_freeze(n.g, pattern));
    }
    OK(vkt_backward(n.g, target(n.b, x)));
    OK(vkt_update(n.g, &(vkt_optimizer){ .kind = VKT_SGD }));
    OK(vkt_store_create(harness_ctx, n.g, &n.s));
    OK(vkt_program_create(harness_ctx, n.g, n.s, NULL, &n.p));
    return n;
}

static void what_no_gradient_needs_is_not_computed_again(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (uint32_t frozen = 0; frozen < 3; frozen++)
        for (int square = 0; square < 2; square++) {
            net keeps = layers(frozen, false, square), again = layers(frozen, true, square);
            /* A block of a frozen layer at the start of the network has no gradient, so it is not computed again. */
            assert_int_equal(again.p->lowered.n - keeps.p->lowered.n, square ? 3 - frozen : 0);
            free_net(&keeps);
            free_net(&again);
        }
}

/* Running statistics change once in a step. A value of vkt_keep is not computed again. */
static void side_effects_happen_once(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    net n = make(images, &(job){ .n = BLOCKS, .blocks = true });
    size_t running = 0, norms = 0;
    for (size_t i = 0; i < n.g->n_nodes; i++) {
        running += strcmp(n.g->nodes[i]->op->name, "running_stats") == 0;
        norms += strcmp(n.g->nodes[i]->op->name, "batch_norm") == 0;
    }
    assert_int_equal(running, BLOCKS);
    assert_int_equal(norms, 2 * BLOCKS);
    free_net(&n);
    vkt_graph *g = harness_graph();
    const vkt_tensor w = vkt_param(g, "w", vkt_shape1(4));
    vkt_recompute_begin(g);
    const vkt_tensor y = vkt_exp(g, w);
    vkt_keep(g, y);
    const vkt_tensor z = vkt_mul(g, y, y);
    vkt_recompute_end(g);
    OK(vkt_backward(g, vkt_mean(g, z)));
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->after) assert_int_equal(g->nodes[i]->in[0].id, y.id);
    vkt_graph_destroy(&g);
}

/* ---- gradients by vkt_gradients ---- */

/* Two calls of vkt_gradients make the gradient of y = exp(tanh(x)) twice. Both gradients have the same bits, with and
 * without a block. */
static void gradients_may_be_asked_for_several_times(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 100 };
    float got[2][2][N];
    for (int blocks = 0; blocks < 2; blocks++) {
        vkt_graph *g = harness_graph();
        vkt_program *p;
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N));
        const vkt_tensor one = vkt_input(g, "one", VKT_F32, VKT_ROWS, vkt_shape1(N));
        vkt_tensor dx[2];
        if (blocks) vkt_recompute_begin(g);
        const vkt_tensor y = vkt_exp(g, vkt_tanh(g, x));
        if (blocks) vkt_recompute_end(g);
        for (int i = 0; i < 2; i++) {
            OK(vkt_gradients(g, &y, &one, 1, &x, 1, &dx[i]));
            vkt_keep(g, dx[i]);
        }
        OK(vkt_program_create(harness_ctx, g, NULL, NULL, &p));
        float in[N], ones[N];
        for (int i = 0; i < N; i++) in[i] = (float)(i - N / 2) / 20, ones[i] = 1;
        OK(vkt_program_write(p, x, in, sizeof in));
        OK(vkt_program_write(p, one, ones, sizeof ones));
        OK(vkt_program_run(p, NULL, NULL));
        for (int i = 0; i < 2; i++) harness_read_f32(p, g, dx[i], got[blocks][i]);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    assert_memory_equal(got[0][0], got[0][1], sizeof got[0][0]);
    assert_true(got[0][0][N / 2] == 1); /* x is 0, so the gradient is exp(tanh 0) (1 - tanh^2 0) */
}

/* ---- wrong calls ---- */

static void blocks_begin_and_end_in_turn(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    vkt_recompute_begin(NULL);
    vkt_recompute_end(NULL);
    for (int wrong = 0; wrong < 6; wrong++) {
        static const char *const parts[] = { "cannot be nested",          "no block is open",
                                             "backward: a block is open", "gradients: a block is open",
                                             "program: a block is open",  "a program was made" };
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        vkt_tensor dw;
        const vkt_tensor w = vkt_param(g, "w", vkt_shape1(4)), x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(4));
        vkt_recompute_begin(g);
        const vkt_tensor y = vkt_mul(g, wrong < 4 ? w : x, x), loss = vkt_mean(g, y);
        vkt_result r = VKT_E_STATE;
        OK(vkt_graph_status(g));
        if (wrong == 1 || wrong == 5) vkt_recompute_end(g);
        if (wrong == 5) {
            vkt_graph *small = harness_graph();
            vkt_keep(small, vkt_relu(small, vkt_input(small, "x", VKT_F32, VKT_ROWS, vkt_shape1(4))));
            OK(vkt_program_create(harness_ctx, small, NULL, NULL, &p));
            vkt_graph_destroy(&g);
            g = small;
        }
        vkt_test_expect_errors(true);
        if (wrong == 0 || wrong == 5) vkt_recompute_begin(g);
        if (wrong == 1) vkt_recompute_end(g);
        if (wrong == 2) r = vkt_backward(g, loss);
        if (wrong == 3) r = vkt_gradients(g, &y, &x, 1, &w, 1, &dw);
        if (wrong == 4) r = vkt_program_create(harness_ctx, g, NULL, NULL, &p);
        vkt_test_expect_errors(false);
        vkt_test_error_contains(parts[wrong]);
        assert_int_equal(r, VKT_E_STATE);
        assert_int_equal(vkt_graph_status(g), VKT_E_STATE);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

/* A node of a block reads a running mean. If a later node changes this mean, the second computation would read other
 * numbers, so vkt_backward refuses the block. `behind`: the node reads the mean after the change, which is allowed. */
static void a_state_that_changes_is_not_read_twice(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (int behind = 0; behind < 2; behind++) {
        vkt_graph *g = harness_graph();
        vkt_builder *b;
        OK(vkt_builder_create(g, true, &b));
        const job j = { .blocks = true };
        vkt_tensor x = linear(b, "fc", input(b, VKT_BATCH_LAST, vkt_shape2(8, 4)), 4);
        begin(b, &j, 0);
        const vkt_tensor y = vkt_nn_batch_norm(b, "bn", x, NULL);
        const vkt_tensor mean = { g->params[g->n_params - 2] };
        assert_string_equal(vkt_tensor_name(g, mean), "block0.bn.running_mean");
        size_t changes = 0;
        while (strcmp(g->nodes[changes]->op->name, "running_stats") != 0) changes++;
        x = vkt_mul(g, y, vkt_expand(g, mean, vkt_shape2(8, 4), VKT_BATCH_LAST));
        x = vkt_mul(g, x, x);
        end(b, &j);
        if (!behind) { /* puts the node that changes the running mean behind the node that reads the mean */
            vkt_node *n = g->nodes[changes];
            for (size_t i = changes; i + 1 < g->n_nodes; i++) g->nodes[i] = g->nodes[i + 1], g->nodes[i]->index--;
            g->nodes[g->n_nodes - 1] = n;
            n->index = (uint32_t)g->n_nodes - 1;
            for (size_t i = 0; i < g->n_nodes; i++)
                for (uint32_t k = 0; k < g->nodes[i]->n_out; k++)
                    g->values[g->nodes[i]->out[k].id].producer = (uint32_t)i + 1;
        }
        vkt_tensor loss = vkt_mean(g, x);
        if (behind)
            OK(vkt_backward(g, loss));
        else
            REFUSED(vkt_backward(g, loss), VKT_E_STATE, "reads the state 'block0.bn.running_mean'");
        vkt_builder_destroy(&b);
        vkt_graph_destroy(&g);
    }
}

static vkt_result build_blocks(const vkt_host *h)
{
    vkt_graph *g;
    vkt_builder *b = NULL;
    vkt_result r = vkt_graph_create(h, &g);
    if (r != VKT_OK) return r;
    r = vkt_builder_create(g, true, &b);
    if (r == VKT_OK) {
        const vkt_tensor loss = classifier(b, &(job){ .n = BLOCKS, .blocks = true });
        r = vkt_backward(g, loss);
    }
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    return r;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const size_t blocks = vkt_test_live_blocks();
    unsigned n = 1;
    for (;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = build_blocks(&h);
        if (!vkt_test_allocation_failed()) {
            assert_int_equal(r, VKT_OK);
            break;
        }
        assert_int_equal(r, VKT_E_NOMEM);
        assert_int_equal(vkt_test_live_blocks(), blocks);
    }
    vkt_test_fail_allocation(0);
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_has_the_same_bits),
        cmocka_unit_test(both_kinds_of_recomputation_go_together),
        cmocka_unit_test(micro_batches_have_the_same_bits),
        cmocka_unit_test(nodes_that_are_not_fused_have_the_same_bits),
        cmocka_unit_test(a_gpu_has_the_same_bits),
        cmocka_unit_test(a_value_may_be_read_after_its_gradients),
        cmocka_unit_test(a_chain_of_blocks_needs_the_memory_of_one_block),
        cmocka_unit_test(a_second_computation_waits_for_its_gradient),
        cmocka_unit_test(what_no_gradient_needs_is_not_computed_again),
        cmocka_unit_test(side_effects_happen_once),
        cmocka_unit_test(gradients_may_be_asked_for_several_times),
        cmocka_unit_test(blocks_begin_and_end_in_turn),
        cmocka_unit_test(a_state_that_changes_is_not_read_twice),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("blocks", tests, harness_setup, harness_teardown);
}
