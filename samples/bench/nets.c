/* bench/nets.c - see nets.h. */
#include "bench/nets.h"

#include <stdlib.h>

#include "base/philox.h"
#include "ir/ir.h"
#include "vktrain/models.h"

enum { TABLE_ROWS = 1024, TABLE_BYTES = 16 << 20, WORDS = 30982, SEED = 1 };

static vkt_tensor linear(vkt_builder *b, const char *name, vkt_tensor x, uint32_t out)
{
    return vkt_nn_linear(b, name, x, &(vkt_nn_linear_params){ .out_features = out });
}

static vkt_tensor conv(vkt_builder *b, const char *name, vkt_tensor x, uint32_t out, uint32_t kernel)
{
    return vkt_nn_conv2d(b, name, x, &(vkt_nn_conv2d_params){ .out_channels = out, .kernel = { kernel } });
}

static vkt_tensor line(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return linear(b, "fc", x, 1);
}

static vkt_tensor mnist(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_max_pool2d(b, conv(b, "conv1", x, 32, 3), 2);
    x = vkt_nn_max_pool2d(b, conv(b, "conv2", x, 64, 5), 2);
    x = vkt_nn_flatten(b, vkt_nn_adaptive_max_pool2d(b, vkt_nn_dropout2d(b, x, 0.1f), 1, 1));
    return linear(b, "fc2", vkt_nn_relu(b, linear(b, "fc1", x, 32)), 10);
}

static vkt_tensor image(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_max_pool2d(b, vkt_nn_relu(b, conv(b, "conv1", x, 32, 3)), 2);
    x = vkt_nn_max_pool2d(b, vkt_nn_relu(b, conv(b, "conv2", x, 64, 3)), 2);
    x = vkt_nn_relu(b, linear(b, "fc1", vkt_nn_flatten(b, x), 256));
    return linear(b, "fc3", vkt_nn_relu(b, linear(b, "fc2", x, 128)), 101);
}

static vkt_tensor reuters(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    const vkt_pool1d_params halve = { .kernel = 2 };
    const vkt_nn_embedding_params words = { .num_embeddings = WORDS, .embedding_dim = 7, .channels = true };
    x = vkt_nn_embedding(b, "embedding", x, &words);
    x = vkt_nn_conv1d(b, "conv1", x, &(vkt_nn_conv1d_params){ .out_channels = 64, .kernel = 5 });
    x = vkt_nn_max_pool1d(b, vkt_nn_relu(b, x), &halve);
    x = vkt_nn_conv1d(b, "conv2", x, &(vkt_nn_conv1d_params){ .out_channels = 32, .kernel = 3 });
    x = vkt_nn_max_pool1d(b, vkt_nn_relu(b, x), &halve);
    return linear(b, "fc", vkt_nn_flatten(b, x), 46);
}

static vkt_tensor mlp(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_relu(b, linear(b, "fc1", x, 64));
    x = vkt_nn_relu(b, linear(b, "fc2", x, 64));
    return linear(b, "fc3", x, 3);
}

/* Builds a network that computes an image from positions x in [-1,1]. */
static vkt_tensor neural_field(vkt_builder *b, vkt_tensor x, void *user)
{
    const vkt_nn_hash_grid_params p = { .grid = { .log2_table_size = 14, .per_level_scale = 1.5 } };
    return mlp(b, vkt_nn_hash_grid(b, "grid", vkt_scale(vkt_builder_graph(b), x, 0.5f, 0.5f), &p), user);
}

/* Builds a block of GPT-2: x += attention(norm(x)), then x += MLP(norm(x)). x has the shape (B,256,768). */
static vkt_tensor transformer(vkt_builder *b, vkt_tensor x, void *user)
{
    const vkt_nn_multi_head_attention_params heads = { .heads = 12, .causal = true };
    vkt_graph *g = vkt_builder_graph(b);
    (void)user;
    x = vkt_add(g, x, vkt_nn_multi_head_attention(b, "attn", vkt_nn_layer_norm(b, "ln_1", x, NULL), &heads));
    const vkt_tensor wide = linear(b, "mlp.c_fc", vkt_nn_layer_norm(b, "ln_2", x, NULL), 4 * 768);
    return vkt_add(g, x, linear(b, "mlp.c_proj", vkt_nn_gelu(b, wide), 768));
}

static vkt_tensor resnet50(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_resnet(b, x, &(vkt_resnet_params){ .depth = 50 });
}

const bench_net bench_nets[] = {
    { .name = "linreg-1e6",
      .what = "w x + b over 1,000,000 rows of 2, full batch, MSE, Adam",
      .batch = 1000000,
      .sample = { 1, { 2 } },
      .targets = 1,
      .range = 5,
      .optimizer = { .kind = VKT_ADAM },
      .lr = 0.1f,
      .forward = line },
    { .name = "mnist-b128",
      .what = "MNIST network of vkt-mnist, batch 128, Adam",
      .batch = 128,
      .sample = { 3, { 1, 28, 28 } },
      .classes = 10,
      .optimizer = { .kind = VKT_ADAM },
      .lr = 0.01f,
      .forward = mnist },
    { .name = "image-b32",
      .what = "3x32x32, two convolutions, 2304-256-128-101, batch 32, SGD 0.9/0.1",
      .batch = 32,
      .sample = { 3, { 3, 32, 32 } },
      .classes = 101,
      .optimizer = { .kind = VKT_SGD, .momentum = 0.9f, .dampening = 0.1f },
      .lr = 0.001f,
      .forward = image },
    { .name = "reuters-b32",
      .what = "vkt-reuters, 300 of 30,982 words, batch 32, Nadam",
      .batch = 32,
      .sample = { 1, { 300 } },
      .words = WORDS,
      .classes = 46,
      .optimizer = { .kind = VKT_NADAM, .keras = true },
      .lr = 0.001f,
      .forward = reuters },
    { .name = "mlp-b16384",
      .what = "32-64-64-3 ReLU, batch 16384, MSE, Adam",
      .batch = 16384,
      .sample = { 1, { 32 } },
      .targets = 3,
      .range = 1,
      .optimizer = { .kind = VKT_ADAM },
      .lr = 0.001f,
      .forward = mlp },
    { .name = "mlp-b65536",
      .what = "32-64-64-3 ReLU, batch 65536, MSE, Adam",
      .batch = 65536,
      .sample = { 1, { 32 } },
      .targets = 3,
      .range = 1,
      .optimizer = { .kind = VKT_ADAM },
      .lr = 0.001f,
      .forward = mlp },
    { .name = "grid-b16384",
      .what = "hash grid of 16 levels, 2^14 entries, then 32-64-64-3 ReLU, batch 16384, MSE, Adam",
      .batch = 16384,
      .sample = { 1, { 2 } },
      .targets = 3,
      .range = 1,
      .optimizer = { .kind = VKT_ADAM, .eps = 1e-15f },
      .lr = 0.01f,
      .forward = neural_field },
    { .name = "transformer-b4",
      .what = "a block of 768 features and 12 heads, 256 tokens, batch 4, MSE, AdamW",
      .batch = 4,
      .sample = { 2, { 256, 768 } },
      .range = 1,
      .optimizer = { .kind = VKT_ADAMW },
      .lr = 0.001f,
      .forward = transformer,
      .large = true },
    { .name = "resnet50-b8",
      .what = "ResNet-50, 224x224, 1000 classes, batch 8, SGD 0.9",
      .batch = 8,
      .sample = { 3, { 3, 224, 224 } },
      .classes = 1000,
      .optimizer = { .kind = VKT_SGD, .momentum = 0.9f },
      .lr = 0.001f,
      .forward = resnet50,
      .large = true },
    { .name = NULL },
};

/* ---- data ---- */

static vkt_result make_array(vkt_ctx *ctx, vkt_dtype dtype, vkt_shape shape, uint32_t bound, const char *name,
                             vkt_array **out)
{
    vkt_rng r = vkt_rng_make(SEED, VKT_STREAM_TEST, 2, dtype + bound);
    const size_t n = (size_t)shape.dim[0] * (shape.rank > 1 ? shape.dim[1] : 1);
    uint32_t *data = malloc(n * 4);
    if (!data) return VKT_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const uint32_t x = vkt_rng_range(&r, 0, bound - 1);
        if (dtype == VKT_U8)
            ((uint8_t *)data)[i] = (uint8_t)x;
        else
            data[i] = x;
    }
    const vkt_array_params params = { .dtype = dtype, .shape = shape, .data = data, .name = name };
    const vkt_result status = vkt_array_create(ctx, &params, out);
    free(data);
    return status;
}

/* Makes a batch and its labels, which the device gathers from tables. */
static vkt_result gathered(vkt_ctx *ctx, const bench_net *net, bench_step *s, vkt_binding bound[3], vkt_tensor *x,
                           vkt_tensor *t)
{
    static const double scale[3] = { 1 / 128.0, 1 / 128.0, 1 / 128.0 }, shift[3] = { -1, -1, -1 };
    const vkt_dtype dtype = net->words ? VKT_U32 : VKT_U8;
    const uint32_t elements = (uint32_t)vkt_shape_elements(net->sample);
    const uint32_t n = VKT_MIN(TABLE_ROWS, TABLE_BYTES / elements);
    const vkt_shape table = vkt_shape2(n, elements), rows = vkt_shape1(n);
    VKT_TRY(make_array(ctx, dtype, table, net->words ? net->words : 256, "features", &s->arrays[0]));
    VKT_TRY(make_array(ctx, VKT_U32, rows, net->classes, "labels", &s->arrays[1]));
    VKT_TRY(make_array(ctx, VKT_U32, rows, n, "order", &s->arrays[2]));
    const vkt_tensor features = vkt_external(s->g, "features", dtype, table);
    const vkt_tensor labels = vkt_external(s->g, "labels", VKT_U32, rows);
    const vkt_tensor order = vkt_external(s->g, "order", VKT_U32, rows);
    *x = net->words ? vkt_gather_ids(s->g, features, order, net->batch, elements, false)
                    : vkt_gather_rows(s->g, features, order, net->batch, net->sample, scale, shift);
    *t = vkt_gather_labels(s->g, labels, order, net->batch);
    bound[0] = (vkt_binding){ features, s->arrays[0] };
    bound[1] = (vkt_binding){ labels, s->arrays[1] };
    bound[2] = (vkt_binding){ order, s->arrays[2] };
    return VKT_OK;
}

static vkt_result write_floats(vkt_program *p, vkt_tensor t, size_t n, float range, uint32_t stream)
{
    vkt_rng r = vkt_rng_make(SEED, VKT_STREAM_TEST, 3, stream);
    float *data = malloc(n * sizeof *data);
    if (!data) return VKT_E_NOMEM;
    for (size_t i = 0; i < n; i++) data[i] = vkt_rng_uniform(&r, -range, range);
    const vkt_result status = vkt_program_write(p, t, data, n * sizeof *data);
    free(data);
    return status;
}

/* ---- the step ---- */

/* Makes an input of a regression: its batch or its targets. */
static vkt_tensor floats(vkt_graph *g, const bench_net *net, const char *name, uint32_t width)
{
    const vkt_shape s = net->sample;
    if (s.rank == 2) return vkt_input(g, name, VKT_F32, VKT_ROWS, vkt_shape3(net->batch, s.dim[0], s.dim[1]));
    return vkt_input(g, name, VKT_F32, VKT_BATCH_LAST, vkt_shape2(net->batch, width));
}

static vkt_result make_graph(vkt_ctx *ctx, const bench_net *net, bench_step *s, vkt_binding bound[3], vkt_tensor *x,
                             vkt_tensor *t)
{
    const vkt_host h = vkt_ctx_host(ctx);
    VKT_TRY(vkt_graph_create(&h, &s->g));
    VKT_TRY(vkt_builder_create(s->g, true, &s->builder));
    if (net->classes) {
        VKT_TRY(gathered(ctx, net, s, bound, x, t));
    } else {
        *x = floats(s->g, net, "x", net->sample.dim[0]);
        *t = floats(s->g, net, "t", net->targets);
    }
    const vkt_tensor y = net->forward(s->builder, *x, NULL);
    const vkt_tensor loss = net->classes ? vkt_softmax_cross_entropy(s->g, y, *t) : vkt_mse(s->g, y, *t);
    const vkt_tensor correct = net->classes ? vkt_count_correct(s->g, y, *t) : (vkt_tensor){ 0 };
    VKT_TRY(vkt_backward(s->g, loss));
    VKT_TRY(vkt_update(s->g, &net->optimizer));
    vkt_report(s->g, loss, correct);
    return vkt_graph_status(s->g);
}

vkt_result bench_step_graph(vkt_ctx *ctx, const bench_net *net, bench_step *s)
{
    vkt_binding bound[3];
    vkt_tensor x, t;
    *s = (bench_step){ .run = { .lr = net->lr } };
    return make_graph(ctx, net, s, bound, &x, &t);
}

vkt_result bench_step_create(vkt_ctx *ctx, const bench_net *net, vkt_precision precision, bool profile, bench_step *s)
{
    vkt_binding bound[3];
    vkt_tensor x, t;
    *s = (bench_step){ .run = { .lr = net->lr } };
    VKT_TRY(make_graph(ctx, net, s, bound, &x, &t));
    VKT_TRY(vkt_store_create(ctx, s->g, &s->store));
    VKT_TRY(vkt_nn_init(s->builder, s->store, SEED));
    const vkt_program_params params = {
        .name = net->name, .arrays = bound, .n_arrays = net->classes ? 3 : 0, .profile = profile, .precision = precision
    };
    VKT_TRY(vkt_program_create(ctx, s->g, s->store, &params, &s->program));
    if (net->classes) return VKT_OK;
    VKT_TRY(write_floats(s->program, x, vkt_shape_elements(vkt_tensor_shape(s->g, x)), net->range, 0));
    return write_floats(s->program, t, vkt_shape_elements(vkt_tensor_shape(s->g, t)), net->range, 1);
}

void bench_step_destroy(bench_step *s)
{
    vkt_program_destroy(&s->program);
    vkt_store_destroy(&s->store);
    for (int i = 0; i < 3; i++) vkt_array_destroy(&s->arrays[i]);
    vkt_builder_destroy(&s->builder);
    vkt_graph_destroy(&s->g);
}
