/* Compares programs with fused nodes (passes/epilogue.c, passes/companion.c) with programs that have a dispatch for
 * each node. The programs train a residual network, one convolution with a norm, and a classifier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "ops/pair.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

typedef pair_net net;
typedef pair_spec spec;

static vkt_tensor input_x(net *n)
{
    return pair_input(n, n->s->by_rows, n->s->x, false);
}

static vkt_tensor weight(net *n, vkt_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "p%zu", n->g->n_params);
    return vkt_param(n->g, name, shape);
}

static vkt_tensor statistic(net *n, uint32_t channels)
{
    char name[16];
    snprintf(name, sizeof name, "s%zu", n->g->n_params);
    return n->s->bare ? (vkt_tensor){ 0 } : vkt_state(n->g, name, vkt_shape1(channels));
}

/* Builds a convolution and its norm, which has running statistics unless the spec is `bare`. */
static vkt_tensor conv_norm(net *n, vkt_tensor x, uint32_t channels, uint32_t kernel)
{
    const vkt_tensor w = weight(n, vkt_shape4(channels, vkt_tensor_shape(n->g, x).dim[1], kernel, kernel));
    x = vkt_conv2d(n->g, x, w, (vkt_tensor){ 0 }, &(vkt_conv2d_params){ .pad = { kernel / 2, kernel / 2 } });
    const vkt_tensor gamma = weight(n, vkt_shape1(channels)), beta = weight(n, vkt_shape1(channels));
    return vkt_batch_norm(n->g, x,
                          &(vkt_batch_norm_params){ .gamma = gamma,
                                                    .beta = beta,
                                                    .running_mean = statistic(n, channels),
                                                    .running_var = statistic(n, channels) });
}

static vkt_tensor block(net *n, vkt_tensor x, uint32_t channels)
{
    const bool same = vkt_tensor_shape(n->g, x).dim[1] == channels;
    const vkt_tensor h = vkt_relu(n->g, conv_norm(n, x, channels, 3)), skip = same ? x : conv_norm(n, x, channels, 1);
    return vkt_relu(n->g, vkt_add(n->g, conv_norm(n, h, channels, 3), skip));
}

static void train(net *n)
{
    const vkt_tensor stem = vkt_relu(n->g, conv_norm(n, input_x(n), 4, 3));
    const vkt_tensor y = block(n, block(n, block(n, stem, 4), 4), 6);
    const vkt_tensor loss = vkt_sum(n->g, vkt_mul(n->g, y, pair_input(n, false, vkt_tensor_shape(n->g, y), false)));
    OK(vkt_backward(n->g, loss));
    OK(vkt_update(n->g, &(vkt_optimizer){ .kind = VKT_SGD }));
}

/* In the forward pass, all seven relus, all three sums and the running statistics of all eight norms are fused. In the
 * backward pass, three relu gradients are fused into sums of two gradients, and three relu gradients into the gradient
 * of the norm in front of the relu. Five elementwise dispatches remain: the three sums of gradients; the gradient of
 * the last relu, because the gradients of two norms read it; and the product in the gradient of the loss. */
static void a_residual_network_trains_alike(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec specs[] = {
        { train, .x = { 4, { 6, 2, 5, 6 } }, .rows = 5, .memory = PACKED, .left = 5, .fused = 24 },
        { train, .x = { 4, { 6, 2, 5, 6 } }, .left = 5, .fused = 24 },
        { train, .x = { 4, { 6, 2, 5, 6 } }, .bare = true, .left = 5, .fused = 16 },
    };
    pair_agree(specs, VKT_COUNT(specs));
}

/* The running variance is also the gamma of the norm. */
static void scaled_by_a_statistic(net *n)
{
    const vkt_tensor w = weight(n, vkt_shape4(3, 2, 1, 1)), var = statistic(n, 3);
    const vkt_tensor x = vkt_conv2d(n->g, input_x(n), w, (vkt_tensor){ 0 }, &(vkt_conv2d_params){ .pad = { 0, 0 } });
    const vkt_tensor y = vkt_batch_norm(
        n->g, x, &(vkt_batch_norm_params){ .gamma = var, .running_mean = statistic(n, 3), .running_var = var });
    const vkt_tensor loss = vkt_sum(n->g, vkt_mul(n->g, y, pair_input(n, false, vkt_tensor_shape(n->g, y), false)));
    OK(vkt_backward(n->g, loss));
    OK(vkt_update(n->g, &(vkt_optimizer){ .kind = VKT_SGD }));
}

/* Here the running variance is also gamma, which all work groups of the norm read. So the norm must not update the
 * running variance: one work group could change it before another work group has read it. */
static void a_statistic_that_the_norm_reads_is_updated_behind_it(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec s = { scaled_by_a_statistic, .x = { 4, { 6, 2, 5, 6 } }, .left = 2 };
    pair_agree(&s, 1);
}

static void joined(vkt_limits *lim, uint32_t blocks)
{
    static vkt_traits traits[2];
    traits[blocks > 0] = *lim->traits;
    traits[blocks > 0].blocks_joined = blocks;
    lim->traits = &traits[blocks > 0];
}

static void never_joined(vkt_limits *lim)
{
    joined(lim, 0);
}

static void always_joined(vkt_limits *lim)
{
    joined(lim, 64);
}

/* A norm divides the 2 x 80 x 50 vec4s of a channel into four blocks. With always_joined, each work group of the norm
 * combines the results of the blocks. With never_joined, an extra dispatch combines them, and the running statistics of
 * the eight norms have dispatches of their own. The bits are the same in both cases. */
static void blocks_of_a_channel_are_combined_anywhere(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const harness_view views[] = { { "blocks apart", never_joined }, { "blocks joined", always_joined } };
    const spec specs[] = { { train, .x = { 4, { 6, 2, 80, 50 } }, .rows = 5, .left = 13, .fused = 16 },
                           { train, .x = { 4, { 6, 2, 80, 50 } }, .rows = 5, .left = 5, .fused = 24 } };
    net fused[2], plain[2];
    for (int i = 0; i < 2; i++) assert_true(pair_make(&fused[i], &plain[i], &specs[i], &views[i]));
    assert_int_equal(fused[0].p->lowered.n,
                     fused[1].p->lowered.n + 24); /* for each norm: kernels batch_norm_finish (twice), running_stats */
    pair_same(&fused[0], &fused[1]);
    for (int i = 0; i < 2; i++) pair_free(&fused[i], &plain[i]);
}

static void classify(net *n)
{
    const uint32_t rows = n->s->x.dim[0], classes = n->s->w.dim[0];
    uint32_t labels[64];
    for (uint32_t i = 0; i < rows; i++) labels[i] = i * 7 % classes;
    const vkt_tensor t = vkt_graph_const(n->g, "labels", VKT_U32, vkt_shape1(rows), labels);
    const vkt_tensor z = vkt_linear(n->g, input_x(n), weight(n, n->s->w), (vkt_tensor){ 0 });
    const vkt_tensor loss = vkt_softmax_cross_entropy(n->g, z, t);
    pair_show(n, z, false);
    OK(vkt_backward(n->g, loss));
    OK(vkt_update(n->g, &(vkt_optimizer){ .kind = VKT_SGD }));
}

static void spread(vkt_limits *lim, bool on)
{
    static vkt_traits traits[2];
    traits[on] = *lim->traits;
    traits[on].classes_spread = on;
    lim->traits = &traits[on];
}

static void spread_classes(vkt_limits *lim)
{
    spread(lim, true);
}

static void classes_of_a_lane(vkt_limits *lim)
{
    spread(lim, false);
}

/* If the lanes of a work group share the classes of a sample (classes_spread), one dispatch computes the loss and its
 * gradient. With 2100 classes there are two dispatches, because the classes are too many for the registers. */
static void a_loss_and_its_gradient_are_one_dispatch(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const harness_view on = { "classes spread", spread_classes }, off = { "classes of a lane", classes_of_a_lane };
    const spec specs[] = {
        { classify, .x = { 2, { 6, 5 } }, .w = { 2, { 3, 5 } }, .rows = 5, .fused = 1 },
        { classify, .x = { 2, { 29, 5 } }, .w = { 2, { 31, 5 } }, .memory = PACKED, .fused = 1 },
        { classify, .x = { 2, { 9, 5 } }, .w = { 2, { 2100, 5 } }, .rows = 8, .left = 1 },
    };
    pair_agree_in(&specs[0], &on);
    pair_agree_in(&specs[1], &on);
    pair_agree_in(&specs[2], &on);
    for (size_t i = 0; i < VKT_COUNT(specs); i++) {
        spec apart = specs[i];
        apart.left = 1;
        apart.fused = 0;
        pair_agree_in(&apart, &off);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_residual_network_trains_alike),
        cmocka_unit_test(blocks_of_a_channel_are_combined_anywhere),
        cmocka_unit_test(a_statistic_that_the_norm_reads_is_updated_behind_it),
        cmocka_unit_test(a_loss_and_its_gradient_are_one_dispatch),
    };
    return cmocka_run_group_tests_name("companion", tests, harness_setup, harness_teardown);
}
