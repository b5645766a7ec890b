/* Tests vkt_program_needs, which computes how much memory a program will need. The programs, stores and staging rings
 * (buffers for copies between host and device) of these tests must use exactly this memory. vkt_program_needs also
 * computes cap_bytes: a context with this memory cap must have enough memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gpu/gpu.h"
#include "support/host.h"
#include "vktrain/vktrain.h"

#define OK(call) assert_int_equal((call), VKT_OK)

/* Makes a network of two layers, with an update if `trains`. With a width of 4000, an activation has 1.5 MB. This is
 * more than block_bytes, the size of the memory blocks of the context (1 MiB). */
static vkt_graph *make_graph(uint32_t width, bool trains, vkt_tensor *x, vkt_tensor *y)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    OK(vkt_graph_create(&h, &g));
    *x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(96, 24));
    const vkt_tensor t = vkt_input(g, "t", VKT_F32, VKT_ROWS, vkt_shape2(96, 8));
    vkt_tensor v = vkt_linear(g, *x, vkt_param(g, "w1", vkt_shape2(width, 24)), vkt_param(g, "b1", vkt_shape1(width)));
    v = vkt_relu(g, v);
    *y = vkt_linear(g, v, vkt_param(g, "w2", vkt_shape2(8, width)), vkt_param(g, "b2", vkt_shape1(8)));
    vkt_keep(g, *y);
    const vkt_tensor loss = vkt_mse(g, *y, t);
    if (trains) {
        OK(vkt_backward(g, loss));
        OK(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM, .clip_norm = 1 }));
    }
    vkt_report(g, loss, (vkt_tensor){ 0 });
    return g;
}

static vkt_ctx *open_device(uint64_t cap)
{
    const vkt_host h = vkt_test_host();
    const vkt_ctx_params params = {
        .max_device_bytes = cap, .block_bytes = 1 << 20, .staging_bytes = 1 << 16, .no_pipeline_cache = true
    };
    vkt_ctx *ctx = NULL;
    const vkt_result r = vkt_ctx_create(&params, &h, &ctx);
#ifndef VKT_REQUIRE_DEVICE
    if (r == VKT_E_NO_LOADER || r == VKT_E_NO_DEVICE) skip();
#endif
    OK(r);
    return ctx;
}

/* Makes a store and a program, writes x, runs the program and reads y. *used gets the bytes in use. */
static vkt_result use(vkt_ctx *ctx, uint32_t width, bool trains, uint64_t *used)
{
    static float numbers[96 * 24];
    vkt_tensor x, y;
    vkt_graph *g = make_graph(width, trains, &x, &y);
    vkt_store *s = NULL;
    vkt_program *p = NULL;
    vkt_memory_stats m;
    vkt_result r = vkt_store_create(ctx, g, &s);
    if (r == VKT_OK) r = vkt_program_create(ctx, g, s, NULL, &p);
    if (r == VKT_OK) r = vkt_program_write(p, x, numbers, sizeof numbers);
    for (int i = 0; r == VKT_OK && i < 4; i++) r = vkt_program_run(p, NULL, NULL);
    if (r == VKT_OK) r = vkt_program_read(p, y, numbers, 96 * 8 * sizeof *numbers);
    vkt_ctx_memory(ctx, &m);
    *used = m.used_total_bytes;
    vkt_program_destroy(&p);
    vkt_store_destroy(&s);
    vkt_graph_destroy(&g);
    return r;
}

static vkt_memory_needs needs_of(uint32_t width, bool trains)
{
    vkt_tensor x, y;
    vkt_memory_needs needs;
    vkt_ctx *ctx = open_device(0);
    vkt_graph *g = make_graph(width, trains, &x, &y);
    OK(vkt_program_needs(ctx, g, NULL, &needs));
    vkt_graph_destroy(&g);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(needs.total_bytes, needs.program_bytes + needs.store_bytes + needs.staging_bytes);
    return needs;
}

static void the_least_memory_is_enough_and_less_is_not(void **state)
{
    (void)state;
    static const uint32_t widths[] = { 16, 700, 4000 };
    for (int w = 0; w < 3; w++)
        for (int trains = 0; trains < 2; trains++) {
            const vkt_memory_needs needs = needs_of(widths[w], trains);
            uint64_t used;
            vkt_ctx *ctx = open_device(needs.cap_bytes);
            OK(use(ctx, widths[w], trains, &used));
            assert_int_equal(used, needs.total_bytes);
            vkt_ctx_destroy(&ctx);
            ctx = open_device(needs.program_bytes + needs.store_bytes); /* this cap leaves no memory for staging */
            vkt_test_expect_errors(true);
            assert_int_equal(use(ctx, widths[w], trains, &used), VKT_E_MEMORY_CAP);
            vkt_test_expect_errors(false);
            vkt_ctx_destroy(&ctx);
        }
}

/* Makes a graph with blocks of the network that are computed again (vkt_recompute_begin). The graph's store has all
 * parts (vkt_store_part). The graph has four external values. scale[0] uses the array `weights`, and scale[1] uses the
 * array `shift` (NULL: no array yet). The caller may bind an array to scale[2]. To scale[3], the caller may bind the
 * array of scale[2] and a second array (vkt_binding.other). */
static vkt_graph *make_tuning(vkt_array *weights, vkt_array *shift, vkt_tensor scale[4])
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    OK(vkt_graph_create(&h, &g));
    const uint32_t words = (uint32_t)(vkt_quantized_bytes(VKT_QUANT_Q8_0, 64, 64) / 4);
    scale[0] = weights ? vkt_external_array(g, "w", weights, VKT_U32, vkt_shape1(words))
                       : vkt_external(g, "w", VKT_U32, vkt_shape1(words));
    scale[1] = shift ? vkt_external_array(g, "shift", shift, VKT_F32, vkt_shape1(64))
                     : vkt_external(g, "shift", VKT_F32, vkt_shape1(64));
    scale[2] = vkt_external(g, "scale", VKT_F32, vkt_shape1(64));
    scale[3] = vkt_external(g, "same", VKT_F32, vkt_shape1(64));
    vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(50, 64));
    for (int i = 0; i < 3; i++) {
        vkt_recompute_begin(g);
        const vkt_tensor a = vkt_param(g, i == 0 ? "a0" : i == 1 ? "a1" : "a2", vkt_shape2(64, 64));
        const vkt_tensor y = vkt_linear_quantized(g, x, scale[0], scale[1], VKT_QUANT_Q8_0, 64);
        x = vkt_add(g, y, vkt_mul(g, vkt_gelu(g, vkt_linear(g, x, a, (vkt_tensor){ 0 })), scale[2 + i % 2]));
        vkt_recompute_end(g);
    }
    const vkt_tensor loss = vkt_mean(g, vkt_mul(g, x, x));
    OK(vkt_backward(g, loss));
    const vkt_optimizer rmsprop = { .kind = VKT_RMSPROP, .momentum = 0.5f, .centered = true, .micro_batches = 2 };
    OK(vkt_update(g, &rmsprop));
    OK(vkt_publish(g, 0));
    vkt_report(g, loss, (vkt_tensor){ 0 });
    return g;
}

static vkt_array *array_of(vkt_ctx *ctx, vkt_dtype dtype, uint32_t n)
{
    vkt_array *a;
    OK(vkt_array_create(ctx, &(vkt_array_params){ .dtype = dtype, .shape = vkt_shape1(n) }, &a));
    return a;
}

static void each_class_has_exactly_the_planned_bytes(void **state)
{
    (void)state;
    const uint32_t words = (uint32_t)(vkt_quantized_bytes(VKT_QUANT_Q8_0, 64, 64) / 4);
    for (int precision = VKT_PRECISION_F32; precision <= VKT_PRECISION_F16; precision++)
        for (int recompute = 0; recompute < 2; recompute++) {
            vkt_ctx *ctx = open_device(0);
            vkt_tensor scale[4];
            vkt_memory_needs before, needs;
            vkt_memory_stats m;
            vkt_store *s;
            vkt_program *p;
            vkt_program_params params = { .precision = (vkt_precision)precision, .recompute = recompute };
            vkt_graph *g = make_tuning(NULL, NULL, scale); /* no array exists yet */
            OK(vkt_program_needs(ctx, g, &params, &before));
            vkt_graph_destroy(&g);
            vkt_array *arrays[] = { array_of(ctx, VKT_U32, words), array_of(ctx, VKT_F32, 64),
                                    array_of(ctx, VKT_F32, 90), array_of(ctx, VKT_F32, 130) };
            g = make_tuning(arrays[0], arrays[1], scale);
            const vkt_binding bindings[] = { { scale[2], arrays[2] }, { scale[3], arrays[2], arrays[3] } };
            params.arrays = bindings;
            params.n_arrays = 1; /* scale[3] has no array yet */
            OK(vkt_program_needs(ctx, g, &params, &needs));
            assert_int_equal(needs.array_bytes, 4 * words + 256 + 512 + 256);
            params.n_arrays = 2;
            OK(vkt_program_needs(ctx, g, &params, &needs));
            OK(vkt_store_create(ctx, g, &s));
            OK(vkt_program_create(ctx, g, s, &params, &p));
            for (int i = 0; i < 3; i++) OK(vkt_program_run(p, NULL, NULL));
            float weights[64 * 64];
            OK(vkt_store_read(s, 0, VKT_PART_VALUE, weights)); /* allocates the staging ring for reading back */
            vkt_ctx_memory(ctx, &m);
            for (int c = 0; c < VKT_MEM_CLASS_COUNT; c++) {
                const uint64_t data = c == VKT_MEM_DATA ? needs.array_bytes : 0;
                assert_int_equal(m.used_bytes[c], needs.bytes[c] + data);
                assert_int_equal(before.bytes[c], needs.bytes[c]);
            }
            assert_int_equal(m.used_total_bytes, needs.total_bytes + needs.array_bytes);
            assert_int_equal(needs.array_bytes,
                             4 * words + 256 + 512 + 768);             /* 90 numbers take 512 bytes, 130 take 768 */
            assert_int_equal(before.array_bytes, 4 * words + 3 * 256); /* without arrays, each external value counts */
            vkt_program_destroy(&p);
            vkt_store_destroy(&s);
            vkt_graph_destroy(&g);
            for (int i = 0; i < 4; i++) vkt_array_destroy(&arrays[i]);
            vkt_ctx_destroy(&ctx);
        }
}

static void a_graph_with_an_error_has_no_needs(void **state)
{
    (void)state;
    vkt_tensor x, y;
    vkt_memory_needs needs;
    vkt_ctx *ctx = open_device(0);
    vkt_graph *g = make_graph(16, false, &x, &y);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_needs(ctx, g, &(vkt_program_params){ .precision = (vkt_precision)99 }, &needs),
                     VKT_E_ARG);
    assert_int_equal(needs.cap_bytes, 0); /* after an error, the outputs are zeroed */
    (void)vkt_add(g, x, (vkt_tensor){ 999 });
    assert_int_equal(vkt_program_needs(ctx, g, NULL, &needs), VKT_E_ARG);
    vkt_test_expect_errors(false);
    vkt_graph_destroy(&g);
    vkt_ctx_destroy(&ctx);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_least_memory_is_enough_and_less_is_not),
        TEST(each_class_has_exactly_the_planned_bytes),
        TEST(a_graph_with_an_error_has_no_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
