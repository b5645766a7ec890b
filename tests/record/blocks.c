/* record/blocks.c - see blocks.h. */
#include "record/blocks.h"

#include <stdio.h>
#include <stdlib.h>

#include "vktrain/models.h"

void begin(vkt_builder *b, const job *j, uint32_t i)
{
    char scope[16];
    snprintf(scope, sizeof scope, "block%u", i);
    vkt_nn_push(b, scope);
    if (j->blocks) vkt_recompute_begin(vkt_builder_graph(b));
}

void end(vkt_builder *b, const job *j)
{
    if (j->blocks) vkt_recompute_end(vkt_builder_graph(b));
    vkt_nn_pop(b);
}

vkt_tensor linear(vkt_builder *b, const char *name, vkt_tensor x, uint32_t outputs)
{
    return vkt_nn_linear(b, name, x, &(vkt_nn_linear_params){ .out_features = outputs });
}

vkt_tensor input(vkt_builder *b, vkt_layout layout, vkt_shape s)
{
    return vkt_input(vkt_builder_graph(b), "x", VKT_F32, layout, s);
}

vkt_tensor target(vkt_builder *b, vkt_tensor y)
{
    vkt_graph *g = vkt_builder_graph(b);
    const vkt_tensor t = vkt_input(g, "t", VKT_F32, vkt_tensor_layout(g, y), vkt_tensor_shape(g, y));
    return vkt_mse(g, y, t);
}

/* Transformer blocks. Attention weights, the outputs of attention and the outputs of the MLP have dropout. */
vkt_tensor transformer(vkt_builder *b, const job *j)
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

/* Blocks of convolutions, batch norm with running statistics, and a pooling. Without VKT_NO_FUSE=1, the pooling is
 * fused with the relu in front of it. */
vkt_tensor images(vkt_builder *b, const job *j)
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

/* Linear layers and relus. Without VKT_NO_FUSE=1, the op mlp_mse fuses all of them, across the blocks, with the mean
 * squared error. */
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

/* In each block, dropouts and sums follow a tanh and a sigmoid. The gradients of tanh and sigmoid read the outputs of
 * tanh and sigmoid. So the fusion of a dropout or a sum must not replace these outputs. Block i + 1 reads s, the
 * dropout of the sigmoid in block i. The tanh t of block 1 is kept. The input v of the last gelu is also read outside
 * of the blocks, by a softmax. The softmax needs v in 32 bits. */
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

/* In each block, the sum reads the dropout d and the kept relu r. The relu runs behind the dropout, so the sum is not
 * fused with the dropout. In the second computation r exists before the dropout, and the sum must not be fused either,
 * because in 16 bits d would be rounded in the first computation only. */
static vkt_tensor kept_behind(vkt_builder *b, const job *j)
{
    vkt_tensor x = input(b, VKT_BATCH_LAST, vkt_shape2(16, 20));
    for (uint32_t i = 0; i < j->n; i++) {
        begin(b, j, i);
        const vkt_tensor d = vkt_nn_dropout(b, linear(b, "a", x, 20), 0.25f);
        const vkt_tensor r = vkt_nn_relu(b, linear(b, "b", x, 20));
        vkt_keep(vkt_builder_graph(b), r);
        x = linear(b, "c", vkt_nn_add(b, d, r), 20);
        end(b, j);
    }
    return target(b, x);
}

/* One block, which has the whole network and the loss. */
static vkt_tensor all_in_one(vkt_builder *b, const job *j)
{
    vkt_tensor x = input(b, VKT_BATCH_LAST, vkt_shape2(16, 20));
    begin(b, j, 0);
    x = vkt_nn_silu(b, linear(b, "a", x, 300));
    x = target(b, linear(b, "b", x, 20));
    end(b, j);
    return x;
}

/* The library's GPT. vkt_gpt_params.recompute_blocks marks the blocks. */
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

const network networks[NETWORKS] = { { "transformer", transformer },    { "images", images },
                                     { "fused", fused, .fused = true }, { "functions", functions },
                                     { "all in one", all_in_one },      { "gpt", gpt },
                                     { "kept behind", kept_behind } };

net make(build_fn build, const job *j)
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

void free_net(net *n)
{
    vkt_program_destroy(&n->p);
    vkt_store_destroy(&n->s);
    vkt_builder_destroy(&n->b);
    vkt_graph_destroy(&n->g);
}

void train(net *n, int runs)
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
