/* Tests the initial values of layers (distributions and fans), and the defaults of each preset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "ir/attrs.h"
#include "nn/builder.h"
#include "support/host.h"

typedef struct net {
    vkt_graph *g;
    vkt_builder *b;
} net;

static net net_open(void)
{
    const vkt_host h = vkt_test_host();
    net n;
    assert_int_equal(vkt_graph_create(&h, &n.g), VKT_OK);
    assert_int_equal(vkt_builder_create(n.g, true, &n.b), VKT_OK);
    return n;
}

static void net_close(net *n)
{
    assert_int_equal(vkt_graph_status(n->g), VKT_OK);
    vkt_builder_destroy(&n->b);
    vkt_graph_destroy(&n->g);
    vkt_test_no_messages_and_no_leaks();
}

/* ---- distributions ---- */

enum { ROWS = 400, COLUMNS = 250, SAMPLES = ROWS * COLUMNS };

/* Generates ROWS x COLUMNS numbers and checks their mean and variance. Each of these two may be off by four standard
 * deviations of its estimate. All numbers must be in [least, most]. `kurtosis` is the fourth central moment divided by
 * variance^2. */
static void expect_moments(vkt_init init, double mean, double variance, double kurtosis, double least, double most)
{
    static float w[SAMPLES];
    net n = net_open();
    vkt_nn_param(n.b, "w", vkt_shape2(ROWS, COLUMNS), init, COLUMNS, ROWS);
    vkt_builder_draw(n.b, 0, 5, w);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const double x = (double)w[i];
        if (!(x >= least && x <= most)) fail_msg("kind %d: %g is not within [%g, %g]", init.kind, x, least, most);
        sum += x - mean;
        squares += (x - mean) * (x - mean);
    }
    if (fabs(sum / SAMPLES) > 4 * sqrt(variance / SAMPLES) ||
        fabs(squares / SAMPLES - variance) > 4 * variance * sqrt((kurtosis - 1) / SAMPLES))
        fail_msg("kind %d: mean %g and variance %g beside %g and %g", init.kind, mean + sum / SAMPLES,
                 squares / SAMPLES, mean, variance);
    net_close(&n);
}

static void initialisers_have_their_moments(void **state)
{
    (void)state;
    const double in = COLUMNS, out = ROWS, both = in + out;
    const double normal = 3, uniform = 1.8, truncated = 2.3655; /* kurtosis (2.3655: by quadrature) */
    const double kept = 0.773741304; /* variance of N(0, 1) truncated to [-2, 2], by quadrature */
    expect_moments((vkt_init){ VKT_INIT_DEFAULT }, 0, 1 / (3 * in), uniform, -1 / sqrt(in), 1 / sqrt(in));
    expect_moments((vkt_init){ VKT_INIT_UNIFORM, -1, 3 }, 1, 16.0 / 12, uniform, -1, 3);
    expect_moments((vkt_init){ VKT_INIT_NORMAL, 2, 0.5f }, 2, 0.25, normal, -10, 10);
    expect_moments((vkt_init){ VKT_INIT_XAVIER_UNIFORM }, 0, 2 / both, uniform, -sqrt(6 / both), sqrt(6 / both));
    expect_moments((vkt_init){ VKT_INIT_XAVIER_NORMAL }, 0, 2 / both, normal, -1, 1);
    expect_moments((vkt_init){ VKT_INIT_KAIMING_UNIFORM }, 0, 2 / in, uniform, -sqrt(6 / in), sqrt(6 / in));
    expect_moments((vkt_init){ VKT_INIT_KAIMING_NORMAL }, 0, 2 / in, normal, -1, 1);
    expect_moments((vkt_init){ VKT_INIT_TRUNCATED_NORMAL, 0.5f, 0.25f }, 0.5, kept / 16, truncated, 0, 1);
    const double edge = 2 * sqrt(2 / both / kept) * (1 + 1e-6);
    expect_moments((vkt_init){ VKT_INIT_GLOROT_NORMAL }, 0, 2 / both, truncated, -edge, edge);
    expect_moments((vkt_init){ VKT_INIT_ORTHOGONAL }, 0, 1.0 / ROWS, normal, -1, 1);
}

/* Checks that all rows are orthogonal to each other and have the Euclidean norm `gain`. If there are fewer columns than
 * rows, checks the columns instead. A gain of 0 means 1. */
static void expect_orthogonal(vkt_shape s, float gain)
{
    static float w[4096];
    net n = net_open();
    vkt_nn_param(n.b, "w", s, (vkt_init){ VKT_INIT_ORTHOGONAL, .a = gain }, 1, 1);
    const uint32_t height = s.dim[0], width = (uint32_t)vkt_shape_elements(s) / height;
    assert_true(height * width <= VKT_COUNT(w));
    vkt_builder_draw(n.b, 0, 3, w);
    const bool wide = height <= width;
    const uint32_t count = wide ? height : width, length = wide ? width : height;
    const uint32_t next = wide ? width : 1, stride = wide ? 1 : width;
    const double square = gain == 0 ? 1 : (double)gain * (double)gain;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++) {
            double dot = 0;
            for (uint32_t k = 0; k < length; k++)
                dot += (double)w[i * next + k * stride] * (double)w[j * next + k * stride];
            assert_true(fabs(dot - (i == j ? square : 0)) < 1e-6 * square);
        }
    net_close(&n);
}

static void orthogonal_matrices_are_orthogonal(void **state)
{
    (void)state;
    float zeros[6];
    net n = net_open();
    vkt_nn_param(n.b, "w", vkt_shape2(2, 3), (vkt_init){ VKT_INIT_ORTHOGONAL, .a = VKT_ZERO }, 1, 1);
    vkt_builder_draw(n.b, 0, 3, zeros);
    for (size_t i = 0; i < VKT_COUNT(zeros); i++) assert_true(zeros[i] == 0);
    net_close(&n);
    expect_orthogonal(vkt_shape2(64, 64), 0);
    expect_orthogonal(vkt_shape2(31, 50), 1);
    expect_orthogonal(vkt_shape2(53, 17), 2);
    expect_orthogonal(vkt_shape4(8, 5, 3, 3), 1.5f);
    expect_orthogonal(vkt_shape4(40, 2, 3, 3), 0);
    expect_orthogonal(vkt_shape2(1, 1), 0);
}

/* torch computes fan_out from the first dimension of the weight, for any number of groups of channels. This dimension
 * is the number of output channels of a convolution, and the number of input channels of a transposed convolution. */
static void fans_are_torchs(void **state)
{
    (void)state;
    net n = net_open();
    const vkt_tensor x = vkt_input(n.g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(2, 6, 9, 9));
    const vkt_tensor s = vkt_input(n.g, "s", VKT_F32, VKT_BATCH_LAST, vkt_shape3(2, 6, 9));
    vkt_nn_conv2d(n.b, "a", x, &(vkt_nn_conv2d_params){ .out_channels = 4, .kernel = { 3, 2 }, .groups = 2 });
    vkt_nn_conv1d(n.b, "b", s, &(vkt_nn_conv1d_params){ .out_channels = 9, .kernel = 5, .groups = 3 });
    vkt_nn_conv_transpose2d(n.b, "c", x,
                            &(vkt_nn_conv_transpose2d_params){ .out_channels = 4, .kernel = { 3, 2 }, .groups = 2 });
    vkt_nn_conv_transpose1d(n.b, "d", s,
                            &(vkt_nn_conv_transpose1d_params){ .out_channels = 9, .kernel = 5, .groups = 3 });
    static const uint32_t in[] = { 3 * 6, 2 * 5, 2 * 6, 3 * 5 }, out[] = { 4 * 6, 9 * 5, 6 * 6, 6 * 5 };
    assert_int_equal(n.b->n_inits, 8); /* weight and bias alternate */
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(n.b->inits[2 * i].fan_in, in[i]);
        assert_int_equal(n.b->inits[2 * i].fan_out, out[i]);
        assert_int_equal(n.b->inits[2 * i + 1].fan_in, in[i]);
    }
    net_close(&n);
}

/* ---- presets ---- */

static void expect_init(const net *n, const char *name, vkt_init_kind kind, float a, float b)
{
    for (size_t i = 0; i < n->b->n_inits; i++) {
        const vkt_init *got = &n->b->inits[i].init;
        if (strcmp(vkt_tensor_name(n->g, n->b->inits[i].param), name) != 0) continue;
        if (got->kind == kind && got->a == a && got->b == b) return;
        fail_msg("%s: kind %d with %g and %g", name, got->kind, (double)got->a, (double)got->b);
    }
    fail_msg("no parameter %s", name);
}

/* Returns the attributes of the last node of the op. */
static const void *attr_of(const net *n, const char *op)
{
    size_t i = n->g->n_nodes;
    while (i > 0 && strcmp(n->g->nodes[i - 1]->op->name, op) != 0) i--;
    assert_true(i > 0);
    return n->g->nodes[i - 1]->attr;
}

static void expect_row_norm(const net *n, vkt_tensor y, float eps)
{
    const vkt_row_norm_attr *a = attr_of(n, "row_norm");
    assert_true(y.id && a->eps == eps);
}

static void expect_batch_norm(const net *n, vkt_tensor y, float eps, float momentum, bool unbiased)
{
    const vkt_batch_norm_attr *a = attr_of(n, "batch_norm");
    const vkt_running_stats_attr *running = attr_of(n, "running_stats");
    assert_true(y.id && a->eps == eps && running->momentum == momentum);
    assert_int_equal(running->unbiased, unbiased);
}

/* Checks the defaults of layers with this preset. They must be those of Keras if `keras` is true, else torch's. */
static void expect_layers(vkt_preset preset, bool keras)
{
    net n = net_open();
    vkt_builder_set_preset(n.b, preset);
    const vkt_tensor ids = vkt_input(n.g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(3, 20));
    const vkt_tensor x = vkt_input(n.g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(3, 4, 8, 8));
    vkt_tensor s = vkt_nn_embedding(
        n.b, "words", ids, &(vkt_nn_embedding_params){ .num_embeddings = 9, .embedding_dim = 7, .channels = true });
    s = vkt_nn_conv1d(n.b, "conv1d", s, &(vkt_nn_conv1d_params){ .out_channels = 6, .kernel = 3 });
    vkt_nn_conv_transpose1d(n.b, "up1d", s, &(vkt_nn_conv_transpose1d_params){ .out_channels = 6, .kernel = 3 });
    vkt_nn_conv2d(n.b, "conv2d", x, &(vkt_nn_conv2d_params){ .out_channels = 6, .kernel = { 3 } });
    vkt_nn_conv_transpose2d(n.b, "up2d", x, &(vkt_nn_conv_transpose2d_params){ .out_channels = 6, .kernel = { 3 } });
    vkt_tensor y = vkt_nn_flatten(n.b, s);
    y = vkt_nn_linear(n.b, "fc", y, &(vkt_nn_linear_params){ .out_features = 5 });
    static const char *const layers[] = { "conv1d", "up1d", "conv2d", "up2d", "fc" };
    for (size_t i = 0; i < VKT_COUNT(layers); i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.weight", layers[i]);
        expect_init(&n, name, keras ? VKT_INIT_XAVIER_UNIFORM : VKT_INIT_DEFAULT, 0, 0);
        snprintf(name, sizeof name, "%s.bias", layers[i]);
        expect_init(&n, name, keras ? VKT_INIT_CONSTANT : VKT_INIT_DEFAULT, 0, 0);
    }
    expect_init(&n, "words.weight", keras ? VKT_INIT_UNIFORM : VKT_INIT_NORMAL, keras ? -0.05f : 0, keras ? 0.05f : 1);
    vkt_nn_prelu(n.b, "slope", y, false);
    expect_init(&n, "slope.weight", VKT_INIT_CONSTANT, keras ? 0 : 0.25f, 0);

    const float eps = keras ? 1e-3f : 1e-5f, momentum = keras ? 0.01f : 0.1f;
    expect_row_norm(&n, vkt_nn_layer_norm(n.b, "layer", y, NULL), eps);
    expect_row_norm(&n, vkt_nn_group_norm(n.b, "group", x, 2, NULL), eps);
    expect_row_norm(&n, vkt_nn_rms_norm(n.b, "rms", y, NULL), keras ? 1e-6f : 0x1p-23f);
    expect_batch_norm(&n, vkt_nn_batch_norm(n.b, "bn2d", x, NULL), eps, momentum, preset != VKT_PRESET_KERAS3);
    expect_batch_norm(&n, vkt_nn_batch_norm(n.b, "bn1d", s, NULL), eps, momentum, !keras);
    net_close(&n);
}

static void presets_are_the_libraries_defaults(void **state)
{
    (void)state;
    expect_layers(VKT_PRESET_TORCH, false);
    expect_layers(VKT_PRESET_KERAS3, true);
    expect_layers(VKT_PRESET_TF_KERAS, true);
}

static void params_override_the_preset(void **state)
{
    (void)state;
    net n = net_open();
    vkt_builder_set_preset(n.b, VKT_PRESET_KERAS3);
    const vkt_tensor x = vkt_input(n.g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape3(3, 4, 8));
    const vkt_init two = { VKT_INIT_CONSTANT, 2, 0 }, wide = { VKT_INIT_UNIFORM, -1, 1 };
    vkt_nn_conv1d(n.b, "conv", x,
                  &(vkt_nn_conv1d_params){ .out_channels = 6, .kernel = 3, .weight_init = wide, .bias_init = two });
    expect_init(&n, "conv.weight", VKT_INIT_UNIFORM, -1, 1);
    expect_init(&n, "conv.bias", VKT_INIT_CONSTANT, 2, 0);
    const vkt_nn_batch_norm_params own = { .eps = 0.5f, .momentum = 0.25f };
    expect_batch_norm(&n, vkt_nn_batch_norm(n.b, "bn", x, &own), 0.5f, 0.25f, false);
    expect_row_norm(&n, vkt_nn_group_norm(n.b, "group", x, 2, &(vkt_nn_norm_params){ .eps = 0.5f }), 0.5f);
    net_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initialisers_have_their_moments),
        cmocka_unit_test(orthogonal_matrices_are_orthogonal),
        cmocka_unit_test(fans_are_torchs),
        cmocka_unit_test(presets_are_the_libraries_defaults),
        cmocka_unit_test(params_override_the_preset),
    };
    return cmocka_run_group_tests_name("initial values and presets", tests, NULL, NULL);
}
