/* Checks the memory plans of three common networks, for a CPU and for a GPU. A plan runs the dispatches in stages
 * (plan/plan.h). In each stage some values are live: an earlier stage or this stage has written them, and this stage or
 * a later stage reads them. A plan may have at most 1.15 times the bytes that are live in the stage with the most live
 * bytes. A plan may have at most as many barriers as the dispatches need in the order of the graph's nodes. The test
 * needs no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "kernel/kernel.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "support/host.h"
#include "train/rig.h"

/* Builds a network for small colour images (B,3,32,32) of 101 classes. */
static vkt_tensor image_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_relu(b, vkt_nn_conv2d(b, "conv1", x, &(vkt_nn_conv2d_params){ .out_channels = 32, .kernel = { 3 } }));
    x = vkt_nn_max_pool2d(b, x, 2);
    x = vkt_nn_relu(b, vkt_nn_conv2d(b, "conv2", x, &(vkt_nn_conv2d_params){ .out_channels = 64, .kernel = { 3 } }));
    x = vkt_nn_flatten(b, vkt_nn_max_pool2d(b, x, 2));
    x = vkt_nn_relu(b, vkt_nn_linear(b, "fc1", x, &(vkt_nn_linear_params){ .out_features = 256 }));
    x = vkt_nn_relu(b, vkt_nn_linear(b, "fc2", x, &(vkt_nn_linear_params){ .out_features = 128 }));
    return vkt_nn_linear(b, "fc3", x, &(vkt_nn_linear_params){ .out_features = 101 });
}

/* Builds three linear layers with 64, 64 and 3 outputs. */
static vkt_tensor mlp_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_relu(b, vkt_nn_linear(b, "fc1", x, &(vkt_nn_linear_params){ .out_features = 64 }));
    x = vkt_nn_relu(b, vkt_nn_linear(b, "fc2", x, &(vkt_nn_linear_params){ .out_features = 64 }));
    return vkt_nn_linear(b, "fc3", x, &(vkt_nn_linear_params){ .out_features = 3 });
}

static float dropout = 0.1f;

static const struct {
    const char *name;
    vkt_forward_fn forward;
    vkt_shape x;
    vkt_optimizer optimizer;
} networks[] = {
    { "MNIST network", rig_mnist_forward, { 4, { 128, 1, 28, 28 } }, { .kind = VKT_ADAM } },
    { "image network",
      image_forward,
      { 4, { 32, 3, 32, 32 } },
      { .kind = VKT_SGD, .momentum = 0.9f, .dampening = 0.1f } },
    { "32-64-64-3", mlp_forward, { 2, { 64, 32 } }, { .kind = VKT_ADAM } },
};

static const struct {
    const char *name;
    vkt_limits limits;
} devices[] = {
    { "CPU", { .subgroup_size = 8, .max_texel_elements = 1u << 27, .traits = &vkt_class_traits[VKT_CLASS_CPU] } },
    { "GPU", { .subgroup_size = 32, .max_texel_elements = 1u << 27, .traits = &vkt_class_traits[VKT_CLASS_OTHER] } },
};

static vkt_limits limits_of(size_t device)
{
    vkt_limits l = devices[device].limits;
    l.max_workgroup_lanes = 1024;
    l.max_groups = 65535;
    l.max_push_bytes = 128;
    l.shared_bytes = 32768;
    l.max_storage_range_bytes = 1u << 27;
    l.max_allocation_bytes = 1u << 30;
    return l;
}

static vkt_access access_of(const vkt_dispatch *d)
{
    const vkt_kernel_entry *row = vkt_kernel_get((vkt_kernel_id)d->kernel);
    return (vkt_access){ row->reads, row->writes };
}

static vkt_graph *training_graph(const vkt_host *h, size_t network)
{
    vkt_graph *g;
    vkt_builder *b;
    assert_int_equal(vkt_graph_create(h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, networks[network].x);
    const vkt_tensor t = vkt_input(g, "t", VKT_U32, VKT_ROWS, vkt_shape1(networks[network].x.dim[0]));
    const vkt_tensor z = networks[network].forward(b, x, &dropout);
    const vkt_tensor loss = vkt_softmax_cross_entropy(g, z, t), correct = vkt_count_correct(g, z, t);
    assert_int_equal(vkt_backward(g, loss), VKT_OK);
    assert_int_equal(vkt_update(g, &networks[network].optimizer), VKT_OK);
    vkt_report(g, loss, correct);
    assert_int_equal(vkt_graph_status(g), VKT_OK);
    vkt_builder_destroy(&b);
    return g;
}

static void check(const vkt_host *h, size_t network, size_t device)
{
    vkt_graph *g = training_graph(h, network);
    const vkt_limits limits = limits_of(device);
    bool *live = test_calloc(g->n_nodes, sizeof *live);
    vkt_emit e;
    vkt_plan p;
    vkt_find_live(g, live);
    assert_int_equal(vkt_lower(g, &limits, live, (vkt_storage){ 0 }, &e), VKT_OK);
    const vkt_plan_options o = { .max_block_bytes = 1u << 30, .in_place = true, .access = access_of };
    assert_int_equal(vkt_plan_make(&e, &o, &p), VKT_OK);
    printf("%s, %s: %llu bytes, %.3f of what is live at once; %zu barriers for %zu dispatches, %zu in the graph's "
           "order\n",
           networks[network].name, devices[device].name, (unsigned long long)p.packed_bytes,
           (double)p.packed_bytes / (double)p.lower_bound_bytes, p.n_barriers, e.n, p.emitted_barriers);
    assert_true(p.packed_bytes >= p.lower_bound_bytes);
    assert_true(p.packed_bytes <= p.lower_bound_bytes * 115 / 100);
    assert_true(p.n_barriers <= p.emitted_barriers);
    vkt_plan_free(&p);
    vkt_lower_free(&e);
    test_free(live);
    vkt_graph_destroy(&g);
}

static void plans_are_near_what_is_alive_at_once(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    for (size_t n = 0; n < VKT_COUNT(networks); n++)
        for (size_t d = 0; d < VKT_COUNT(devices); d++) check(&h, n, d);
}

static uint64_t accesses_asked; /* calls of counted_access */

static vkt_access counted_access(const vkt_dispatch *d)
{
    accesses_asked++;
    return access_of(d);
}

/* Multiplies a chain of values, and then reads each value of the chain again in the opposite order, as gradients read
 * activations. vkt_recompute inserts k dispatches (`again`), and the list then has n dispatches. vkt_recompute may call
 * counted_access at most 4 (k + 1) n times. So the time of one insertion is linear in n. */
static void recomputation_of_a_long_chain_is_linear_in_each_round(void **state)
{
    (void)state;
    enum { N = 300 };
    const vkt_host h = vkt_test_host();
    const vkt_limits limits = limits_of(0);
    vkt_graph *g;
    vkt_emit e;
    uint32_t again;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(1000));
    vkt_tensor y[N + 1] = { x };
    for (int i = 1; i <= N; i++) y[i] = vkt_mul(g, y[i - 1], x);
    vkt_tensor z = y[N];
    for (int i = N; i-- > 1;) z = vkt_mul(g, z, y[i]);
    vkt_keep(g, z);
    assert_int_equal(vkt_lower(g, &limits, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    accesses_asked = 0;
    assert_int_equal(vkt_recompute(&e, counted_access, &again), VKT_OK);
    assert_true(again > 100);
    assert_true(accesses_asked <= 4 * (again + 1ull) * e.n);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plans_are_near_what_is_alive_at_once, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(recomputation_of_a_long_chain_is_linear_in_each_round, vkt_test_setup,
                                        vkt_test_teardown),
    };
    return cmocka_run_group_tests_name("memory plans", tests, NULL, NULL);
}
