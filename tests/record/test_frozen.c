/* Tests the memory of a network with frozen, quantized weights and small adapters that are trained. Only the adapters
 * have gradients and moments. Only the activations that some gradient reads are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "ops/harness.h"

#define OK(call) assert_int_equal((call), VKT_OK)

enum { ROWS = 64, WIDTH = 256, RANK = 8, LAYERS = 16 };

/* A network of layers y = f(x w^T) or, with an adapter, y = f(x w^T + x a^T b^T). f is gelu or the identity. All layers
 * share w, which is quantized and frozen. Each adapter has its own a and b, which are trained. */
typedef struct tuning {
    vkt_graph *g;
    vkt_array *weights;
    vkt_store *s;
    vkt_program *p;
    vkt_plan_info plan;
} tuning;

/* Returns y + x a^T b^T, with new parameters a and b. */
static vkt_tensor with_adapter(vkt_graph *g, vkt_tensor x, vkt_tensor y, uint32_t i)
{
    char a[32], b[32];
    snprintf(a, sizeof a, "%u.lora_A", i);
    snprintf(b, sizeof b, "%u.lora_B", i);
    const vkt_tensor down = vkt_linear(g, x, vkt_param(g, a, vkt_shape2(RANK, WIDTH)), (vkt_tensor){ 0 });
    return vkt_add(g, y, vkt_linear(g, down, vkt_param(g, b, vkt_shape2(WIDTH, RANK)), (vkt_tensor){ 0 }));
}

/* Makes a network of `layers` layers. The layers from `first` on have adapters. `function`: the layers have gelu.
 * `blocks`: each layer is a block that is computed again (vkt_recompute_begin). */
static tuning tune(uint32_t layers, uint32_t first, bool function, bool blocks)
{
    tuning t = { .g = harness_graph() };
    const uint32_t words = (uint32_t)(vkt_quantized_bytes(VKT_QUANT_Q8_0, WIDTH, WIDTH) / 4);
    OK(vkt_array_create(harness_ctx, &(vkt_array_params){ .dtype = VKT_U32, .shape = vkt_shape1(words) }, &t.weights));
    const vkt_tensor w = vkt_external_array(t.g, "weights", t.weights, VKT_U32, vkt_shape1(words));
    vkt_tensor x = vkt_input(t.g, "x", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, WIDTH));
    for (uint32_t i = 0; i < layers; i++) {
        if (blocks) vkt_recompute_begin(t.g);
        vkt_tensor y = vkt_linear_quantized(t.g, x, w, (vkt_tensor){ 0 }, VKT_QUANT_Q8_0, WIDTH);
        if (i >= first) y = with_adapter(t.g, x, y, i);
        x = function ? vkt_gelu(t.g, y) : y;
        if (blocks) vkt_recompute_end(t.g);
    }
    OK(vkt_backward(t.g, vkt_mean(t.g, vkt_mul(t.g, x, x))));
    OK(vkt_update(t.g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    OK(vkt_store_create(harness_ctx, t.g, &t.s));
    const vkt_limits real = harness_ctx->limits;
    vkt_traits traits = *real.traits;
    traits.barriers_kib = 0; /* the memory plan spends no extra memory on fewer barriers */
    harness_ctx->limits.traits = &traits;
    OK(vkt_program_create(harness_ctx, t.g, t.s, NULL, &t.p));
    harness_ctx->limits = real;
    vkt_program_plan(t.p, &t.plan);
    return t;
}

static void free_tuning(tuning *t)
{
    vkt_program_destroy(&t->p);
    vkt_store_destroy(&t->s);
    vkt_graph_destroy(&t->g);
    vkt_array_destroy(&t->weights);
}

static uint64_t peak(uint32_t layers, uint32_t first, bool function, bool blocks)
{
    tuning t = tune(layers, first, function, blocks);
    const uint64_t bytes = t.plan.total_bytes;
    free_tuning(&t);
    return bytes;
}

/* Returns how many bytes more the memory plan needs for one more layer: the mean over LAYERS additional layers.
 * `adapters`: each layer has an adapter. Otherwise only the last layer has an adapter. */
static uint64_t growth(uint32_t adapters, bool function, bool blocks)
{
    const uint64_t few = peak(8, adapters ? 0 : 7, function, blocks);
    const uint64_t many = peak(8 + LAYERS, adapters ? 0 : 7 + LAYERS, function, blocks);
    assert_true(many >= few);
    return (many - few) / LAYERS;
}

static void only_what_a_gradient_reads_is_kept(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const uint64_t x = 4ull * ROWS * WIDTH, down = 4ull * ROWS * RANK;
    assert_int_equal(growth(true, false, false), x + down);    /* x, and x a^T for the gradient of b */
    assert_int_equal(growth(true, true, false), 2 * x + down); /* x, x a^T, and the input of gelu */
    assert_int_equal(growth(true, true, true), x);             /* only the input of the block */
    /* If only the last layer has an adapter, nothing of the other layers is kept, with and without blocks. */
    assert_int_equal(growth(false, true, false), 0);
    assert_int_equal(growth(false, true, true), 0);
}

/* If the layers unpack their weights, all layers use the same memory for the unpacked weights. */
static void unpacked_weights_share_memory(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const uint64_t x = 4ull * ROWS * WIDTH, unpacked = 4ull * WIDTH * WIDTH;
    assert_true(peak(LAYERS, LAYERS - 1, true, false) <= unpacked + 4 * x);
}

static void gradients_and_moments_are_those_of_adapters(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    tuning t = tune(LAYERS, 0, true, true);
    vkt_memory_stats m;
    const uint64_t adapters = 4ull * LAYERS * 2 * RANK * WIDTH;
    vkt_ctx_memory(harness_ctx, &m);
    assert_int_equal(m.used_bytes[VKT_MEM_PARAMETERS], adapters);
    assert_int_equal(m.used_bytes[VKT_MEM_GRADIENTS], adapters);
    assert_int_equal(m.used_bytes[VKT_MEM_MOMENTS], 2 * adapters);
    assert_int_equal(m.used_bytes[VKT_MEM_DATA], vkt_quantized_bytes(VKT_QUANT_Q8_0, WIDTH, WIDTH));
    free_tuning(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_a_gradient_reads_is_kept),
        cmocka_unit_test(unpacked_weights_share_memory),
        cmocka_unit_test(gradients_and_moments_are_those_of_adapters),
    };
    return cmocka_run_group_tests_name("frozen weights", tests, harness_setup, harness_teardown);
}
