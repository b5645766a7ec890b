/* Tests blocks that are computed again for their gradients (vkt_recompute_begin): a training has the same bits as
 * without them, and needs the memory of one block; what nobody needs is not computed again; wrong calls are refused. */
#include "train/rig.h"

#include <stdio.h>
#include <stdlib.h>

#include "ops/harness.h"
#include "vktrain/models.h"
#include "vktrain/nn.h"

#define OK(call) assert_int_equal((call), VKT_OK)
#define REFUSED(call, want, part)         \
    do {                                  \
        vkt_test_expect_errors(true);     \
        assert_int_equal((call), (want)); \
        vkt_test_expect_errors(false);    \
        vkt_test_error_contains(part);    \
    } while (0)

enum { BLOCKS = 3 };

/* One training: what a network needs to build itself, and how its program is made. */
typedef struct job {
    bool blocks; /* each block is marked */
    uint32_t n;  /* number of blocks */
    vkt_precision precision;
    bool cheap; /* vkt_program_params.recompute */
    uint32_t micro_batches;
} job;

typedef vkt_tensor (*build_fn)(vkt_builder *b, const job *j);

static void begin(vkt_builder *b, const job *j, uint32_t i)
{
    char scope[16];
    snprintf(scope, sizeof scope, "block%u", i);
    vkt_nn_push(b, scope);
    if (j->blocks) vkt_recompute_begin(vkt_builder_graph(b));
}

static void end(vkt_builder *b, const job *j)
{
    if (j->blocks) vkt_recompute_end(vkt_builder_graph(b));
    vkt_nn_pop(b);
}

static vkt_tensor linear(vkt_builder *b, const char *name, vkt_tensor x, uint32_t outputs)
{
    return vkt_nn_linear(b, name, x, &(vkt_nn_linear_params){ .out_features = outputs });
}

static vkt_tensor input(vkt_builder *b, vkt_layout layout, vkt_shape s)
{
    return vkt_input(vkt_builder_graph(b), "x", VKT_F32, layout, s);
}

static vkt_tensor target(vkt_builder *b, vkt_tensor y)
{
    vkt_graph *g = vkt_builder_graph(b);
    const vkt_tensor t = vkt_input(g, "t", VKT_F32, vkt_tensor_layout(g, y), vkt_tensor_shape(g, y));
    return vkt_mse(g, y, t);
}

/* Transformer blocks with dropout of weights and results. */
static vkt_tensor transformer(vkt_builder *b, const job *j)
{
    vkt_graph *g = vkt_builder_graph(b);
    const vkt_nn_multi_head_attention_params heads = { .heads = 4, .causal = true, .dropout = 0.1f };
    vkt_tensor x = input(b, VKT_ROWS, vkt_shape3(4, 16, 32));
    for (uint32_t i = 0; i < j->n; i++) {
        begin(b, j, i);
        const vkt_tensor a = vkt_nn_multi_head_attention(b, "attn", vkt_nn_layer_norm(b, "ln", x, NULL), &heads);
        x = vkt_nn_add(b, x, vkt_nn_dropout(b, a, 0.2f));
        const vkt_tensor h = vkt_nn_rms_norm(b, "rms", x, NULL);
        const vkt_tensor m = vkt_nn_swiglu(b, linear(b, "gate", h, 64), linear(b, "up", h, 64));
        x = vkt_nn_add(b, x, vkt_nn_dropout(b, vkt_nn_gelu(b, linear(b, "down", m, 32)), 0.1f));
        end(b, j);
    }
    return target(b, vkt_reshape(g, x, vkt_shape2(64, 32)));
}

/* Blocks of convolution, batch norm with running statistics, relu, and a pooling that is fused with what is before. */
static vkt_tensor images(vkt_builder *b, const job *j)
{
    vkt_tensor x = input(b, VKT_BATCH_LAST, vkt_shape4(8, 3, 16, 16));
    const vkt_nn_conv2d_params conv = { .out_channels = 8, .kernel = { 3 }, .pad = { 1 } };
    for (uint32_t i = 0; i < j->n; i++) {
        begin(b, j, i);
        x = vkt_nn_relu(b, vkt_nn_batch_norm(b, "bn", vkt_nn_conv2d(b, "conv1", x, &conv), NULL));
        x = vkt_nn_dropout2d(b, vkt_nn_max_pool2d(b, vkt_nn_relu(b, vkt_nn_conv2d(b, "conv2", x, &conv)), 2), 0.1f);
        end(b, j);
    }
    return target(b, linear(b, "fc", vkt_nn_flatten(b, x), 4));
}

/* Linear layers and relus, which are fused with mse (mlp_mse) across all blocks. */
static vkt_tensor fused(vkt_builder *b, const job *j)
{
    vkt_tensor x = input(b, VKT_BATCH_LAST, vkt_shape2(32, 24));
    for (uint32_t i = 0; i < j->n; i++) {
        begin(b, j, i);
        x = linear(b, "fc", x, 24);
        if (i + 1 < j->n) x = vkt_nn_relu(b, x);
        end(b, j);
    }
    return target(b, x);
}

/* Functions whose gradients read their results, before dropouts and sums: epilogues that fuse only where no gradient
 * reads what is between. Values that leave a block at its middle, and one that is kept. What gelu reads
 * is also read outside, by a softmax, which wants it in 32 bits. */
static vkt_tensor functions(vkt_builder *b, const job *j)
{
    vkt_graph *g = vkt_builder_graph(b);
    vkt_tensor x = input(b, VKT_BATCH_LAST, vkt_shape2(16, 20)), middle = x, v = x;
    for (uint32_t i = 0; i < j->n; i++) {
        begin(b, j, i);
        v = linear(b, "c", x, 20);
        const vkt_tensor t = vkt_nn_tanh(b, linear(b, "a", x, 20));
        const vkt_tensor s = vkt_nn_dropout(b, vkt_nn_sigmoid(b, linear(b, "b", x, 20)), 0.25f);
        if (i == 1) vkt_keep(g, t);
        x = vkt_nn_add(b, vkt_nn_dropout(b, t, 0.25f), vkt_mul(g, s, middle));
        x = vkt_nn_add(b, x, vkt_nn_gelu(b, v));
        middle = s;
        end(b, j);
    }
    const vkt_tensor outside = vkt_softmax(g, v, 1);
    return vkt_add(g, target(b, x), vkt_mean(g, vkt_mul(g, outside, outside)));
}

/* The loss itself is in the last block. */
static vkt_tensor all_in_one(vkt_builder *b, const job *j)
{
    vkt_tensor x = input(b, VKT_BATCH_LAST, vkt_shape2(16, 20));
    begin(b, j, 0);
    x = vkt_nn_silu(b, linear(b, "a", x, 300));
    x = target(b, linear(b, "b", x, 20));
    end(b, j);
    return x;
}

/* The library's GPT, whose params mark its blocks. */
static vkt_tensor gpt(vkt_builder *b, const job *j)
{
    vkt_graph *g = vkt_builder_graph(b);
    const vkt_gpt_params p = { .vocabulary = 20,
                               .context = 12,
                               .layers = j->n,
                               .heads = 2,
                               .width = 16,
                               .dropout = 0.1f,
                               .recompute_blocks = j->blocks };
    const vkt_tensor ids = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(4, 12));
    const vkt_tensor next = vkt_input(g, "next", VKT_U32, VKT_ROWS, vkt_shape2(4, 12));
    return vkt_mean(g, vkt_cross_entropy(g, vkt_gpt(b, ids, &p), next, NULL));
}

static const struct {
    const char *name;
    build_fn build;
} networks[] = { { "transformer", transformer }, { "images", images },         { "fused", fused },
                 { "functions", functions },     { "all in one", all_in_one }, { "gpt", gpt } };

/* A network with its update, store and program. */
typedef struct net {
    vkt_graph *g;
    vkt_builder *b;
    vkt_store *s;
    vkt_program *p;
} net;

static net make(build_fn build, const job *j)
{
    net n = { .g = harness_graph() };
    OK(vkt_builder_create(n.g, true, &n.b));
    OK(vkt_backward(n.g, build(n.b, j)));
    const vkt_optimizer adam = { .kind = VKT_ADAM, .micro_batches = j->micro_batches };
    OK(vkt_update(n.g, &adam));
    OK(vkt_store_create(harness_ctx, n.g, &n.s));
    OK(vkt_nn_init(n.b, n.s, 3));
    OK(vkt_store_set_clock(n.s, 0, 11));
    const vkt_program_params params = { .precision = j->precision, .recompute = j->cheap };
    OK(vkt_program_create(harness_ctx, n.g, n.s, &params, &n.p));
    return n;
}

static void free_net(net *n)
{
    vkt_program_destroy(&n->p);
    vkt_store_destroy(&n->s);
    vkt_builder_destroy(&n->b);
    vkt_graph_destroy(&n->g);
}

static vkt_plan_info plan_of(const net *n)
{
    vkt_plan_info plan;
    vkt_program_plan(n->p, &plan);
    return plan;
}

/* Writes random numbers to the inputs, and runs `runs` steps. */
static void train(net *n, int runs)
{
    for (size_t i = 1; i < n->g->n_values; i++) {
        const vkt_value *v = &n->g->values[i];
        if (v->role != VKT_ROLE_INPUT || v->alias) continue;
        const uint64_t count = vkt_shape_elements(v->shape);
        float *data = malloc(count * sizeof *data);
        assert_non_null(data);
        vkt_rng r = vkt_rng_make(5, VKT_STREAM_TEST, (uint32_t)i, 0);
        for (uint64_t k = 0; k < count; k++) {
            data[k] = vkt_rng_uniform(&r, -1, 1);
            const uint32_t id = vkt_rng_range(&r, 0, 19);
            if (v->dtype == VKT_U32) memcpy(&data[k], &id, sizeof id);
        }
        OK(vkt_program_write(n->p, (vkt_tensor){ (uint32_t)i }, data, count * sizeof *data));
        free(data);
    }
    for (int i = 0; i < runs; i++) OK(vkt_program_run(n->p, &(vkt_run){ .lr = 0.01f }, NULL));
    OK(vkt_program_wait(n->p));
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

static void compare(size_t network, job j)
{
    j.n = BLOCKS;
    net keeps = make(networks[network].build, &j);
    j.blocks = true;
    net again = make(networks[network].build, &j);
    assert_int_equal(again_nodes(&keeps), 0);
    assert_true(networks[network].build == fused || again_nodes(&again) > 0);
    train(&keeps, 4);
    train(&again, 4);
    for (int part = VKT_PART_VALUE; part <= VKT_PART_MOMENT2; part++) same_bits(&keeps, &again, (vkt_store_part)part);
    free_net(&keeps);
    free_net(&again);
    harness_forget(harness_ctx);
}

static void a_training_has_the_same_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < VKT_COUNT(networks); i++)
        for (int precision = VKT_PRECISION_F32; precision <= VKT_PRECISION_BF16; precision++)
            compare(i, (job){ .precision = (vkt_precision)precision });
}

static void both_kinds_of_recomputation_go_together(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < VKT_COUNT(networks); i++) compare(i, (job){ .cheap = true });
}

static void micro_batches_have_the_same_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < VKT_COUNT(networks); i++) compare(i, (job){ .micro_batches = 2 });
}

static void nodes_that_are_not_fused_have_the_same_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    assert_int_equal(setenv("VKT_NO_FUSE", "1", 1), 0);
    for (size_t i = 0; i < VKT_COUNT(networks); i++) compare(i, (job){ 0 });
    assert_int_equal(unsetenv("VKT_NO_FUSE"), 0);
}

/* As a GPU sees it: other kernels, companions that do the work of later nodes, orders with more memory. */
static void a_gpu_has_the_same_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_limits real = harness_ctx->limits;
    harness_as_gpu(&harness_ctx->limits);
    for (size_t i = 0; i < VKT_COUNT(networks); i++)
        for (int precision = VKT_PRECISION_F32; precision <= VKT_PRECISION_F16; precision++)
            compare(i, (job){ .precision = (vkt_precision)precision });
    harness_ctx->limits = real;
}

/* ---- the memory ---- */

enum { ROWS = 64, WIDTH = 32, HIDDEN = 256 };

/* Blocks x += linear(gelu(linear(x))), and a layer before them, so that their input has a gradient. */
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

/* A block's gradients read two values of 64 x 256 numbers, and its input. Without blocks all of them are kept, with
 * blocks the inputs only. */
static void a_chain_of_blocks_needs_the_memory_of_one_block(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const uint64_t kept = 4ull * ROWS * WIDTH, inner = 2 * 4ull * ROWS * HIDDEN;
    const vkt_limits real = harness_ctx->limits;
    for (int gpu = 0; gpu < 2; gpu++) {
        vkt_traits traits = *real.traits;
        harness_ctx->limits.traits = &traits;
        traits.barriers_kib = gpu ? 64 * 1024 : 0; /* 64 MiB more for fewer barriers, which is more than all values */
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

/* Even if memory does not matter, a second computation does not start before the gradients of its block. */
static void a_second_computation_waits_for_its_gradient(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_limits real = harness_ctx->limits;
    vkt_traits traits = *real.traits;
    traits.barriers_kib = 64 * 1024;
    harness_ctx->limits.traits = &traits;
    net n = make(transformer, &(job){ .n = BLOCKS, .blocks = true });
    uint32_t found = 0;
    for (size_t d = 0; d < n.p->lowered.n; d++) {
        const uint32_t after = n.g->nodes[n.p->lowered.list[d].node]->after;
        for (size_t e = 0; after && e < n.p->lowered.n; e++)
            if (n.p->lowered.list[e].node == after - 1) {
                assert_true(e < d);
                found++;
            }
    }
    assert_true(found > 0);
    free_net(&n);
    harness_ctx->limits = real;
}

/* ---- what is not computed again ---- */

/* Three layers, of which the first `frozen` ones are frozen. The last function of a block has a gradient that reads its
 * result, so that the blocks are computed again. */
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
            /* Gradients of x * x read x. The gradient of a scaling reads nothing. Blocks of frozen layers at the start
             * of a network have no gradient. */
            assert_int_equal(again.p->lowered.n - keeps.p->lowered.n, square ? 3 - frozen : 0);
            free_net(&keeps);
            free_net(&again);
        }
}

/* Running statistics change once in a step, and a kept value is computed once. */
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

/* Returns d sum(f(x)) / dx twice, each time by a call of its own, where f is in a block. */
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
    assert_true(got[0][0][N / 2] == 1); /* exp(tanh 0) (1 - tanh^2 0) */
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

/* A node that reads running statistics before they change would read others when it is computed again. */
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
        if (!behind) { /* puts the node that changes the state behind its reader */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_has_the_same_bits),
        cmocka_unit_test(both_kinds_of_recomputation_go_together),
        cmocka_unit_test(micro_batches_have_the_same_bits),
        cmocka_unit_test(nodes_that_are_not_fused_have_the_same_bits),
        cmocka_unit_test(a_gpu_has_the_same_bits),
        cmocka_unit_test(a_chain_of_blocks_needs_the_memory_of_one_block),
        cmocka_unit_test(a_second_computation_waits_for_its_gradient),
        cmocka_unit_test(what_no_gradient_needs_is_not_computed_again),
        cmocka_unit_test(side_effects_happen_once),
        cmocka_unit_test(gradients_may_be_asked_for_several_times),
        cmocka_unit_test(blocks_begin_and_end_in_turn),
        cmocka_unit_test(a_state_that_changes_is_not_read_twice),
    };
    return cmocka_run_group_tests_name("blocks", tests, harness_setup, harness_teardown);
}
