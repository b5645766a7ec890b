/* Tests which variants ops choose by their costs, on invented devices. Every variant of convolutions
 * (ops/conv/choose.c), of matrix products (ops/product/gemm_choose.c), of attention (ops/product/attention_tiles.c), of
 * networks in one node (ops/product/mlp_emit.c), of linear layers with quantized weights
 * (ops/product/linear_quantized.c) and of a hash grid's gradient (ops/encode/hash_grid.c) is the cheapest in at least
 * one case. Only the lowering runs, so no device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "ir/ir.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "passes/passes.h"

typedef struct device {
    vkt_device_class cls;
    const char *traits;             /* traits that differ from those of the class: "name=value,.." */
    bool coop, flexible, coop_bf16; /* has cooperative matrices of f16, flexible matrices of f16, matrices of bf16 */
    vkt_choices choices;
} device;

static const device cpu = { VKT_CLASS_CPU, "", false }, gpu = { VKT_CLASS_OTHER, "", false },
                    coop = { VKT_CLASS_OTHER, "", true };
/* No class of devices prefers matrices of bf16. For `fast_bf16`, a trait says that they are fast. `no_bf16` has the
 * same trait, but no matrices of bf16. */
static const device bf16 = { VKT_CLASS_AMD, "", true, .coop_bf16 = true },
                    fast_bf16 = { VKT_CLASS_AMD, "coop_bf16_pays=1", true, .coop_bf16 = true },
                    no_bf16 = { VKT_CLASS_AMD, "coop_bf16_pays=1", true };
/* On winograd_gpu, Winograd transforms cost almost nothing. On fft_gpu, Fourier transforms cost little. */
static const device winograd_gpu = {
    VKT_CLASS_AMD,
    "transforms_pay=1,winograd_in_cost=1,winograd_out_cost=1,winograd_weight_cost=1,winograd_product_cost=0.1", false
};
static const device fft_gpu = {
    VKT_CLASS_INTEL, "transforms_pay=1,fft_point_cost=0.01,fft_tiles_point_cost=1,fft_weight_cost=0.01,shared_cost=2",
    false
};
/* On no_direct_gpu, the variants DIRECT and DIRECT_SHARED are slow. On tile_gpu, the variant TILE is fast. On span_gpu,
 * SPAN is fast. On shared_cpu, SHARED is fast. base/variant.h describes the variants. */
static const device no_direct_gpu = { VKT_CLASS_NVIDIA, "direct_cost=32,direct_deep_cost=32", false };
static const device tile_gpu = { VKT_CLASS_AMD, "tile_cost=2,direct_deep_cost=32", false };
static const device span_gpu = { VKT_CLASS_MOBILE, "span_channels=64,shared_cost=3,direct_deep_cost=4", false };
static const device shared_cpu = { VKT_CLASS_CPU, "shared_pays=1,shared_cost=0.01", false };

/* Lowers g for the device. Ops choose variants: none, one or several for a node. picked[i] gets the variant of choice
 * i, if i is below `most`. Returns the number of choices. */
static uint32_t lower(const device *d, const vkt_graph *g, vkt_precision precision, vkt_variant *picked, uint32_t most)
{
    const vkt_host host = vkt_test_host();
    const vkt_coop size = { 16, 16, 16 };
    vkt_traits traits = vkt_class_traits[d->cls];
    assert_int_equal(vkt_traits_parse(&host, "test", d->traits, 1024, &traits, NULL), VKT_OK);
    const vkt_limits lim = { .traits = &traits,
                             .choices = d->choices,
                             .subgroup_size = d->cls == VKT_CLASS_CPU ? 8 : 32,
                             .max_workgroup_lanes = 1024,
                             .max_groups = 65535,
                             .max_push_bytes = 128,
                             .shared_bytes = 49152,
                             .max_storage_range_bytes = 1u << 30,
                             .max_texel_elements = 1u << 27,
                             .coop = d->coop ? size : (vkt_coop){ 0 },
                             .coop2 = d->flexible ? size : (vkt_coop){ 0 },
                             .coop_bf16 = d->coop_bf16 ? size : (vkt_coop){ 0 } };
    vkt_emit e;
    bool *live = calloc(g->n_nodes, sizeof *live); /* live[i]: a result needs node i (without an optimizer: always) */
    assert_non_null(live);
    for (size_t i = 0; i < g->n_nodes; i++) live[i] = true;
    if (g->has_optimizer) vkt_find_live(g, live);
    assert_int_equal(vkt_lower(g, &lim, live, (vkt_storage){ .precision = precision }, &e), VKT_OK);
    const uint32_t n = (uint32_t)e.n_picked;
    for (uint32_t i = 0; i < n && i < most; i++) picked[i] = e.picked[i].variant;
    vkt_lower_free(&e);
    free(live);
    return n;
}

static void is_variant(const char *what, size_t i, vkt_variant got, vkt_variant want)
{
    if (got != want) fail_msg("case %zu, %s: want %s, got %s", i, what, vkt_variant_name(want), vkt_variant_name(got));
}

typedef struct conv_case {
    const device *d;
    vkt_shape x, w;
    uint32_t pad, stride;
    vkt_variant y, dx, dw;
} conv_case;

#define S4 vkt_shape4

static void convolutions_use_the_cheapest_variant(void **state)
{
    (void)state;
    const conv_case cases[] = {
        { &cpu, S4(8, 256, 14, 14), S4(256, 256, 3, 3), 1, 1, VKT_V_WINOGRAD, VKT_V_WINOGRAD, VKT_V_TILE },
        { &cpu, S4(8, 64, 56, 56), S4(64, 64, 3, 3), 1, 1, VKT_V_WINOGRAD, VKT_V_WINOGRAD, VKT_V_FFT16 },
        { &cpu, S4(64, 256, 14, 14), S4(64, 256, 1, 1), 0, 1, VKT_V_TILE, VKT_V_TILE, VKT_V_TILE },
        { &cpu, S4(64, 1, 28, 28), S4(32, 1, 5, 5), 2, 1, VKT_V_DIRECT, VKT_V_SPAN, VKT_V_TILE },
        { &cpu, S4(64, 3, 28, 28), S4(2, 3, 3, 3), 1, 1, VKT_V_DIRECT, VKT_V_DIRECT, VKT_V_DIRECT },
        { &cpu, S4(64, 48, 9, 40), S4(7, 48, 1, 5), 0, 1, VKT_V_SPAN, VKT_V_DIRECT, VKT_V_TILE },
        { &fft_gpu, S4(64, 32, 7, 7), S4(64, 32, 3, 3), 1, 1, VKT_V_FFT8, VKT_V_FFT8, VKT_V_FFT8 },
        { &fft_gpu, S4(64, 32, 11, 11), S4(64, 32, 5, 5), 2, 1, VKT_V_FFT13, VKT_V_FFT13, VKT_V_FFT13 },
        { &fft_gpu, S4(64, 32, 12, 12), S4(64, 32, 5, 5), 2, 1, VKT_V_FFT14, VKT_V_FFT14, VKT_V_FFT14 },
        { &fft_gpu, S4(64, 32, 13, 13), S4(64, 32, 5, 5), 2, 1, VKT_V_FFT15, VKT_V_FFT15, VKT_V_FFT15 },
        { &fft_gpu, S4(64, 32, 14, 14), S4(64, 32, 5, 5), 2, 1, VKT_V_FFT16, VKT_V_FFT16, VKT_V_FFT16 },
        { &winograd_gpu, S4(8, 256, 14, 14), S4(256, 256, 3, 3), 1, 1, VKT_V_WINOGRAD, VKT_V_WINOGRAD, VKT_V_SHARED },
        { &gpu, S4(8, 256, 14, 14), S4(256, 256, 3, 3), 1, 1, VKT_V_SHARED, VKT_V_SHARED, VKT_V_SHARED },
        { &gpu, S4(8, 256, 14, 14), S4(256, 256, 3, 3), 1, 2, VKT_V_SHARED, VKT_V_SHARED, VKT_V_SHARED },
        /* If x or y has few channels, `gpu` uses DIRECT_SHARED or SHARED: the one that costs less (traits.def). */
        { &gpu, S4(64, 1, 28, 28), S4(32, 1, 5, 5), 2, 1, VKT_V_DIRECT_SHARED, VKT_V_DIRECT_SHARED, VKT_V_SHARED },
        { &gpu, S4(64, 48, 9, 40), S4(7, 48, 1, 5), 0, 1, VKT_V_DIRECT_SHARED, VKT_V_DIRECT_SHARED,
          VKT_V_DIRECT_SHARED },
        { &gpu, S4(64, 48, 9, 40), S4(12, 48, 1, 5), 0, 1, VKT_V_SHARED, VKT_V_SHARED, VKT_V_SHARED },
        { &no_direct_gpu, S4(64, 1, 28, 28), S4(32, 1, 5, 5), 2, 1, VKT_V_SHARED, VKT_V_SHARED, VKT_V_SHARED },
        { &tile_gpu, S4(64, 1, 28, 28), S4(32, 1, 5, 5), 2, 1, VKT_V_DIRECT_SHARED, VKT_V_TILE, VKT_V_SHARED },
        { &span_gpu, S4(64, 48, 9, 40), S4(32, 48, 1, 5), 0, 1, VKT_V_SPAN, VKT_V_SPAN, VKT_V_SHARED },
        { &shared_cpu, S4(64, 256, 14, 14), S4(64, 256, 1, 1), 0, 1, VKT_V_SHARED, VKT_V_SHARED, VKT_V_SHARED },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const conv_case *c = &cases[i];
        const vkt_conv2d_params p = { .pad = { c->pad, c->pad }, .stride = { c->stride, c->stride } };
        vkt_graph *g = harness_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, c->x);
        const vkt_tensor w = vkt_input(g, "w", VKT_F32, VKT_ROWS, c->w);
        const vkt_tensor of[] = { x, w }, y = vkt_conv2d(g, x, w, (vkt_tensor){ 0 }, &p);
        const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, vkt_tensor_shape(g, y));
        vkt_tensor d[2];
        vkt_variant v[3];
        assert_int_equal(vkt_gradients(g, &y, &dy, 1, of, 2, d), VKT_OK);
        assert_int_equal(lower(c->d, g, VKT_PRECISION_F32, v, 3), 3);
        is_variant("y", i, v[0], c->y);
        is_variant("dx", i, v[1], c->dx);
        is_variant("dw", i, v[2], c->dw);
        vkt_graph_destroy(&g);
    }
}

/* One node computes the convolution, the relu and the max pooling. */
static void pooled_convolutions_use_the_cheapest_variant(void **state)
{
    (void)state;
    const struct {
        const device *d;
        vkt_variant want;
    } cases[] = { { &cpu, VKT_V_DIRECT }, { &gpu, VKT_V_DIRECT_SHARED } };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_graph *g = harness_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, S4(64, 1, 28, 28));
        const vkt_tensor y = vkt_conv2d(g, x, vkt_param(g, "w", S4(32, 1, 5, 5)), (vkt_tensor){ 0 }, NULL);
        vkt_variant v[2];
        assert_int_equal(
            vkt_backward(g, vkt_sum(g, vkt_max_pool2d(g, vkt_relu(g, y), &(vkt_pool2d_params){ { 2, 2 } }))), VKT_OK);
        assert_int_equal(vkt_update(g, &(vkt_optimizer){ .kind = VKT_SGD }), VKT_OK);
        assert_int_equal(lower(cases[i].d, g, VKT_PRECISION_F32, v, 2), 2);
        is_variant("conv2d_max_pool", i, v[0], cases[i].want);
        vkt_graph_destroy(&g);
    }
}

static void programs_of_16_bits_use_cooperative_matrices(void **state)
{
    (void)state;
    static const struct {
        const device *d;
        vkt_precision precision;
        vkt_variant want;
    } cases[] = {
        { &coop, VKT_PRECISION_F32, VKT_V_SHARED },     { &coop, VKT_PRECISION_F16, VKT_V_COOP },
        { &coop, VKT_PRECISION_BF16, VKT_V_SHARED },    { &bf16, VKT_PRECISION_F16, VKT_V_COOP },
        { &bf16, VKT_PRECISION_BF16, VKT_V_SHARED },    { &fast_bf16, VKT_PRECISION_BF16, VKT_V_COOP },
        { &fast_bf16, VKT_PRECISION_F16, VKT_V_COOP },  { &fast_bf16, VKT_PRECISION_F32, VKT_V_SHARED },
        { &no_bf16, VKT_PRECISION_BF16, VKT_V_SHARED },
    };
    for (size_t c = 0; c < VKT_COUNT(cases); c++) {
        vkt_graph *g = harness_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, S4(8, 256, 14, 14));
        const vkt_tensor w = vkt_input(g, "w", VKT_F32, VKT_ROWS, S4(256, 256, 3, 3));
        const vkt_tensor of[] = { x, w }, y = vkt_conv2d(g, x, w, (vkt_tensor){ 0 }, NULL);
        const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, vkt_tensor_shape(g, y));
        vkt_tensor d[2];
        vkt_variant v[3];
        assert_int_equal(vkt_gradients(g, &y, &dy, 1, of, 2, d), VKT_OK);
        assert_int_equal(lower(cases[c].d, g, cases[c].precision, v, 3), 3);
        for (size_t i = 0; i < 3; i++) is_variant("conv2d", c, v[i], cases[c].want);
        vkt_graph_destroy(&g);
    }
}

typedef struct product_case {
    const device *d;
    uint32_t m, k, n;
    vkt_precision precision;
    vkt_variant want;
} product_case;

static void products_use_the_cheapest_variant(void **state)
{
    (void)state;
    const device packing_cpu = { VKT_CLASS_CPU, "pack_reads=64", false };
    const device flexible = { VKT_CLASS_NVIDIA, "", true, true };
    const device flexible_pays = { VKT_CLASS_AMD, "coop2_pays=1", true, true };
    const device flexible_cpu = { VKT_CLASS_CPU, "", true, true };
    const product_case cases[] = {
        { &cpu, 1000, 256, 1000, VKT_PRECISION_F32, VKT_V_PACKED },
        /* Each of 1,000 rows of the product needs all of B. Only 256 columns need all of A. So only B is packed. */
        { &cpu, 1000, 256, 256, VKT_PRECISION_F32, VKT_V_PACKED_B },
        { &cpu, 256, 256, 1000, VKT_PRECISION_F32, VKT_V_PACKED_A },
        { &cpu, 256, 256, 2048, VKT_PRECISION_F32, VKT_V_PACKED }, /* a row of B has two pages: slow if not copied */
        { &cpu, 256, 256, 256, VKT_PRECISION_F32, VKT_V_PLACED },
        { &packing_cpu, 256, 256, 256, VKT_PRECISION_F32, VKT_V_PACKED },
        { &gpu, 2048, 256, 2048, VKT_PRECISION_F32, VKT_V_SHARED },
        { &gpu, 64, 8192, 64, VKT_PRECISION_F32, VKT_V_SPLIT_K },
        { &coop, 2048, 256, 2048, VKT_PRECISION_F32, VKT_V_SHARED },
        { &coop, 2048, 256, 2048, VKT_PRECISION_F16, VKT_V_COOP },
        { &flexible, 2048, 256, 2048, VKT_PRECISION_F16, VKT_V_COOP }, /* no class prefers COOP2: not measured yet */
        { &flexible_pays, 2048, 256, 2048, VKT_PRECISION_F16, VKT_V_COOP2 },
        { &flexible_pays, 64, 8192, 64, VKT_PRECISION_F16, VKT_V_COOP2 },
        { &flexible_pays, 2048, 256, 2048, VKT_PRECISION_F32, VKT_V_SHARED },
        { &flexible_pays, 2048, 256, 2048, VKT_PRECISION_BF16, VKT_V_SHARED },
        { &flexible_pays, 2048, 256, 2048, VKT_PRECISION_F32_SPLIT, VKT_V_COOP },
        { &flexible_cpu, 256, 256, 256, VKT_PRECISION_F16, VKT_V_PLACED },
        { &bf16, 2048, 256, 2048, VKT_PRECISION_BF16, VKT_V_SHARED },
        { &fast_bf16, 2048, 256, 2048, VKT_PRECISION_BF16, VKT_V_COOP },
        { &no_bf16, 2048, 256, 2048, VKT_PRECISION_BF16, VKT_V_SHARED },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const product_case *c = &cases[i];
        vkt_graph *g = harness_graph();
        const vkt_tensor a = vkt_input(g, "a", VKT_F32, VKT_ROWS, vkt_shape2(c->k, c->m));
        const vkt_tensor b = vkt_input(g, "b", VKT_F32, VKT_ROWS, vkt_shape2(c->k, c->n));
        vkt_variant v[1];
        assert_int_not_equal(vkt_matmul(g, a, b, true, false).id, 0);
        assert_int_equal(lower(c->d, g, c->precision, v, 1), 1);
        is_variant("matmul", i, v[0], c->want);
        vkt_graph_destroy(&g);
    }
}

static void attention_uses_the_cheapest_variant(void **state)
{
    (void)state;
    const struct {
        const device *d;
        vkt_precision precision;
        vkt_variant want;
    } cases[] = {
        { &cpu, VKT_PRECISION_F32, VKT_V_SHUFFLED }, { &gpu, VKT_PRECISION_F32, VKT_V_SHARED },
        { &coop, VKT_PRECISION_F32, VKT_V_SHARED },  { &shared_cpu, VKT_PRECISION_F32, VKT_V_SHARED },
        { &coop, VKT_PRECISION_F16, VKT_V_COOP },    { &coop, VKT_PRECISION_BF16, VKT_V_SHARED },
        { &gpu, VKT_PRECISION_F16, VKT_V_SHARED },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_graph *g = harness_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape3(4, 256, 768));
        const vkt_tensor y = vkt_attention_packed(g, x, 4, &(vkt_attention_params){ .causal = true });
        const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_tensor_shape(g, y));
        vkt_tensor dx;
        vkt_variant v[2];
        assert_int_equal(vkt_gradients(g, &y, &dy, 1, &x, 1, &dx), VKT_OK);
        assert_int_equal(lower(cases[i].d, g, cases[i].precision, v, 2), 2);
        is_variant("attention", i, v[0], cases[i].want);
        is_variant("attention_dx", i, v[1], cases[i].want);
        vkt_graph_destroy(&g);
    }
}

static void networks_use_the_cheapest_variant(void **state)
{
    (void)state;
    const device shuffling_gpu = { VKT_CLASS_NVIDIA, "mlp_shuffles=1,mlp_shared_width=0", false };
    const device sharing_cpu = { VKT_CLASS_CPU, "mlp_shared_width=1", false };
    const device coop_cpu = { VKT_CLASS_CPU, "", true };
    const vkt_precision f32 = VKT_PRECISION_F32, f16 = VKT_PRECISION_F16;
    const struct {
        const device *d;
        uint32_t in, hidden, out;
        vkt_precision precision;
        vkt_variant want;
    } cases[] = {
        { &cpu, 8, 64, 4, f32, VKT_V_WIDE },
        { &gpu, 8, 16, 4, f32, VKT_V_NARROW },
        { &shuffling_gpu, 8, 64, 4, f32, VKT_V_WIDE },
        { &gpu, 8, 64, 4, f32, VKT_V_SHARED },
        { &sharing_cpu, 8, 16, 4, f32, VKT_V_SHARED },
        { &gpu, 128, 128, 128, f32, VKT_V_NARROW }, /* activations do not fit into shared memory */
        { &cpu, 2, 0, 1, f32, VKT_V_LINE },         /* the network has one layer */
        { &gpu, 2, 0, 1, f32, VKT_V_LINE },
        { &coop, 8, 64, 4, f16, VKT_V_COOP },
        { &coop, 64, 128, 64, f16, VKT_V_COOP },   /* 48,128 bytes of shared memory */
        { &coop, 64, 128, 96, f16, VKT_V_SHARED }, /* COOP would need 58,880 bytes */
        { &coop, 8, 16, 4, f16, VKT_V_NARROW },
        { &coop, 2, 0, 1, f16, VKT_V_LINE },
        { &coop, 8, 64, 4, f32, VKT_V_SHARED },
        { &coop, 8, 64, 4, VKT_PRECISION_BF16, VKT_V_SHARED },
        { &coop, 8, 64, 4, VKT_PRECISION_F32_SPLIT, VKT_V_SHARED },
        { &gpu, 8, 64, 4, f16, VKT_V_SHARED },
        { &coop_cpu, 8, 64, 4, f16, VKT_V_WIDE },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const uint32_t hidden = cases[i].hidden;
        vkt_graph *g = harness_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(64, cases[i].in));
        const vkt_tensor t = vkt_input(g, "t", VKT_F32, VKT_BATCH_LAST, vkt_shape2(64, cases[i].out));
        vkt_tensor y = x;
        if (hidden) {
            const vkt_tensor w = vkt_param(g, "w0", vkt_shape2(hidden, cases[i].in));
            y = vkt_relu(g, vkt_linear(g, y, w, vkt_param(g, "b0", vkt_shape1(hidden))));
        }
        const vkt_tensor w = vkt_param(g, "w1", vkt_shape2(cases[i].out, hidden ? hidden : cases[i].in));
        y = vkt_linear(g, y, w, vkt_param(g, "b1", vkt_shape1(cases[i].out)));
        const vkt_tensor loss = vkt_mse(g, y, t);
        vkt_variant v[1];
        assert_int_equal(vkt_backward(g, loss), VKT_OK);
        assert_int_equal(vkt_update(g, &(vkt_optimizer){ .kind = VKT_SGD }), VKT_OK);
        assert_int_equal(lower(cases[i].d, g, cases[i].precision, v, 1), 1);
        is_variant("network", i, v[0], cases[i].want);
        vkt_graph_destroy(&g);
    }
}

/* Checks each dispatch whose kernel uses subgroups. With VKT_KF_SUBGROUP, the lanes of a work group are one subgroup.
 * With VKT_KF_SUBGROUPS, they are one or several whole subgroups. Returns the number of dispatches whose kernel has a
 * special subgroup size (VKT_KF_SHORT, VKT_KF_SHUFFLES). */
static uint32_t check_lanes(const vkt_limits *lim, const subject *s)
{
    uint32_t wishes = 0;
    vkt_emit e;
    const vkt_result r = vkt_lower(s->g, lim, NULL, (vkt_storage){ 0 }, &e);
    for (size_t i = 0; r == VKT_OK && i < e.n; i++) {
        const vkt_kernel_entry *k = vkt_kernel_get((vkt_kernel_id)e.list[i].kernel);
        const uint32_t size = vkt_subgroup(lim, e.list[i].kernel), lanes = e.list[i].spec[0];
        if (k->flags & VKT_KF_SUBGROUP ? lanes != size : k->flags & VKT_KF_SUBGROUPS && lanes % size)
            fail_msg("%s: %u lanes, in subgroups of %u", k->name, lanes, size);
        wishes += k->flags & (VKT_KF_SHORT | VKT_KF_SHUFFLES) ? 1 : 0;
    }
    vkt_lower_free(&e);
    return wishes;
}

/* Each op, in each variant, must compute the lanes of a work group from the subgroup size that the pipeline of the
 * kernel gets. */
static void kernels_are_planned_with_their_own_subgroups(void **state)
{
    (void)state;
    static const vkt_device_class classes[] = { VKT_CLASS_CPU, VKT_CLASS_AMD };
    uint32_t wishes = 0;
    for (size_t i = 0; vkt_ops[i]; i++)
        for (uint64_t seed = 1; seed <= 4 && vkt_ops[i]->sample; seed++) {
            subject s;
            subject_make(&s, vkt_ops[i], seed);
            for (int v = 0; v <= VKT_V_COUNT; v++) {
                const vkt_limits lim = { .traits = &vkt_class_traits[classes[(seed + (uint64_t)v) % 2]],
                                         .subgroup_size = 16,
                                         .subgroup_short = 8,
                                         .subgroup_shuffles = 32,
                                         .max_workgroup_lanes = 1024,
                                         .max_groups = 65535,
                                         .max_push_bytes = 128,
                                         .shared_bytes = 49152,
                                         .max_storage_range_bytes = 1u << 30,
                                         .choices.force = v < VKT_V_COUNT ? 1ull << v : 0 };
                wishes += check_lanes(&lim, &s);
            }
            subject_free(&s);
        }
    assert_true(wishes > 0);
}

static void hash_grids_use_the_cheapest_variant(void **state)
{
    (void)state;
    const device owning_gpu = { VKT_CLASS_AMD, "atomics_pay=0", false },
                 adding_cpu = { VKT_CLASS_CPU, "atomics_pay=1", false };
    const struct {
        const device *d;
        uint32_t rows, log2_table_size;
        vkt_variant want;
    } cases[] = {
        { &cpu, 1024, 14, VKT_V_OWNED },
        { &gpu, 1024, 14, VKT_V_ATOMIC },
        { &owning_gpu, 1024, 14, VKT_V_OWNED },
        { &adding_cpu, 1024, 14, VKT_V_ATOMIC },
        { &gpu, 1u << 24, 14, VKT_V_ATOMIC },
        { &gpu, (1u << 24) + 4, 14, VKT_V_OWNED }, /* more than 2^27 addends, the limit of ATOMIC */
        { &gpu, 1024, 23, VKT_V_ATOMIC },
        { &gpu, 1024, 24, VKT_V_OWNED }, /* 2^27 sums of 8 bytes, with flags, exceed 2^30 bytes */
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const vkt_hash_grid_params grid = {
            .levels = 1, .features = 8, .log2_table_size = cases[i].log2_table_size, .base_resolution = 1024
        };
        vkt_graph *g = harness_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(cases[i].rows, 3));
        const vkt_tensor t = vkt_input(g, "table", VKT_F32, VKT_ROWS, vkt_hash_grid_table(&grid, 3, NULL));
        const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, vkt_shape2(cases[i].rows, 8));
        const vkt_tensor y = vkt_hash_grid(g, x, t, &grid);
        vkt_tensor d;
        vkt_variant v[1];
        assert_int_equal(vkt_gradients(g, &y, &dy, 1, &t, 1, &d), VKT_OK);
        assert_int_equal(lower(cases[i].d, g, VKT_PRECISION_F32, v, 1), 1);
        is_variant("hash_grid", i, v[0], cases[i].want);
        vkt_graph_destroy(&g);
    }
}

static void quantized_layers_use_the_cheapest_variant(void **state)
{
    (void)state;
    const struct {
        const device *d;
        uint32_t rows, columns;
        vkt_variant want;
    } cases[] = {
        { &cpu, 1, 576, VKT_V_ROW_LANES },       { &cpu, 8, 576, VKT_V_ROW_LANES },  { &cpu, 9, 576, VKT_V_UNPACKED },
        { &gpu, 1, 576, VKT_V_ROW_ACROSS },      { &gpu, 8, 576, VKT_V_ROW_ACROSS }, { &gpu, 9, 576, VKT_V_BLOCKS },
        { &cpu, 1, 1u << 21, VKT_V_UNPACKED }, /* 65536 blocks of 32 weights; Mesa 22.3 ends loops after 65535 */
        { &gpu, 1, 1u << 21, VKT_V_ROW_ACROSS }, { &gpu, 192, 576, VKT_V_BLOCKS },   { &gpu, 512, 576, VKT_V_UNPACKED },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_graph *g = harness_graph();
        const uint64_t words = vkt_quantized_bytes(VKT_QUANT_Q4_0, 64, cases[i].columns) / 4;
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(cases[i].rows, cases[i].columns));
        const vkt_tensor w = vkt_input(g, "w", VKT_U32, VKT_ROWS, vkt_shape1((uint32_t)words));
        vkt_keep(g, vkt_linear_quantized(g, x, w, (vkt_tensor){ 0 }, VKT_QUANT_Q4_0, 64));
        vkt_variant v[2];
        assert_int_equal(vkt_graph_status(g), VKT_OK);
        const bool product = cases[i].want == VKT_V_UNPACKED || cases[i].want == VKT_V_BLOCKS;
        assert_int_equal(lower(cases[i].d, g, VKT_PRECISION_F32, v, 2), product ? 2 : 1);
        is_variant("linear_quantized", i, v[0], cases[i].want);
        vkt_graph_destroy(&g);
    }
}

/* The product for dx has the weights, (64, columns), as its second operand. A product can unpack the weights itself
 * (BLOCKS): to tiles in shared memory, or to panels (a copy in the order in which the kernel reads it). On a CPU, it
 * does so if the rows of the weights are whole pages of 4 KiB: with 1024 columns, but not with 576. If the forced
 * variant of the product cannot unpack weights, an earlier dispatch unpacks them (UNPACKED). */
static void gradients_of_quantized_layers_use_the_cheapest_variant(void **state)
{
    (void)state;
    const struct {
        const device *d;
        uint32_t rows, columns;
        uint64_t off, force;
        vkt_variant want;
    } cases[] = {
        { &cpu, 512, 1024, 0, 0, VKT_V_BLOCKS },
        { &cpu, 512, 576, 0, 0, VKT_V_UNPACKED },
        { &gpu, 64, 576, 0, 0, VKT_V_BLOCKS },
        { &gpu, 64, 576, VKT_V(BLOCKS), 0, VKT_V_UNPACKED },
        { &gpu, 64, 576, VKT_V(SHARED) | VKT_V(SPLIT_K), 0, VKT_V_BLOCKS }, /* the product unpacks w to panels */
        { &gpu, 64, 576, 0, VKT_V(PLACED), VKT_V_UNPACKED },
        { &coop, 64, 576, 0, VKT_V(PLACED) | VKT_V(BLOCKS), VKT_V_UNPACKED },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_graph *g = harness_graph();
        const uint64_t words = vkt_quantized_bytes(VKT_QUANT_Q8_0, 64, cases[i].columns) / 4;
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(cases[i].rows, cases[i].columns));
        const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape2(cases[i].rows, 64));
        const vkt_tensor w = vkt_input(g, "w", VKT_U32, VKT_ROWS, vkt_shape1((uint32_t)words));
        const vkt_tensor y = vkt_linear_quantized(g, x, w, (vkt_tensor){ 0 }, VKT_QUANT_Q8_0, 64);
        vkt_tensor dx;
        vkt_variant v[4];
        device d = *cases[i].d;
        d.choices = (vkt_choices){ .off = cases[i].off, .force = cases[i].force };
        assert_int_equal(vkt_gradients(g, &y, &dy, 1, &x, 1, &dx), VKT_OK);
        assert_int_equal(lower(&d, g, VKT_PRECISION_F32, v, 4), 4);
        is_variant("dx of linear_quantized", i, v[2], cases[i].want);
        vkt_graph_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_use_the_cheapest_variant),
        cmocka_unit_test(pooled_convolutions_use_the_cheapest_variant),
        cmocka_unit_test(programs_of_16_bits_use_cooperative_matrices),
        cmocka_unit_test(products_use_the_cheapest_variant),
        cmocka_unit_test(attention_uses_the_cheapest_variant),
        cmocka_unit_test(networks_use_the_cheapest_variant),
        cmocka_unit_test(kernels_are_planned_with_their_own_subgroups),
        cmocka_unit_test(hash_grids_use_the_cheapest_variant),
        cmocka_unit_test(quantized_layers_use_the_cheapest_variant),
        cmocka_unit_test(gradients_of_quantized_layers_use_the_cheapest_variant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
