/* Tests dw, the gradient of a convolution's weights, for a convolution in front of a pooling. With fusion, dw is
 * computed from the gradient of the pooling's output (ops/conv/fused_unpool.c). Without fusion, dw is computed from the
 * gradient of the convolution's output. Both ways must give the same bits. Only a max pooling is fused, and only if its
 * windows have no overlap, gaps or padding. Nothing is fused if another node reads the gradient of the convolution's
 * output, if this gradient is a sum, or with `no_fuse`. With fusion, memory has the gradient of the convolution's
 * output only if the gradient is kept, or if a variant needs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "kernel/ids.h"
#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
#define POISON 0x7fc5a5a5u /* a NaN */

/* The network x -> convolution -> relu (if `relu` is true) -> pooling. */
typedef struct net {
    vkt_shape x, w;
    bool bias, relu;
    vkt_conv2d_params conv;
    vkt_pool2d_params pool;
    uint32_t adaptive; /* output height and width; 0: windows are as `pool` says */
    /* `trained`: x is a parameter. `fork`: the convolution's output has a second reader, in the loss. */
    bool average, trained, fork;
    bool ask; /* before vkt_backward, the test asks for gradients and keeps them */
} net;

typedef struct rig {
    vkt_graph *g;
    vkt_tensor x, weights; /* y is multiplied by `weights` before the sum, so dy is `weights` */
    vkt_tensor asked[2];   /* if net.ask: gradients of the convolution's output and of the parameter w; else {0} */
    vkt_store *store;
    vkt_program *program;
} rig;

static vkt_tensor pooled(vkt_graph *g, const net *n, vkt_tensor h)
{
    if (n->adaptive) return vkt_adaptive_max_pool2d(g, h, n->adaptive, n->adaptive);
    return n->average ? vkt_avg_pool2d(g, h, &n->pool) : vkt_max_pool2d(g, h, &n->pool);
}

/* Makes a rig. Returns false if the device, with the limits of the view (harness.h), cannot run the program. */
static bool rig_make(rig *r, const net *n, const harness_view *view, bool fuse)
{
    vkt_graph *g = harness_graph();
    g->no_fuse = !fuse;
    *r = (rig){ .g = g };
    r->x = n->trained ? vkt_param(g, "x", n->x) : vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, n->x);
    const vkt_tensor w = vkt_param(g, "w", n->w), none = { 0 };
    const vkt_tensor bias = n->bias ? vkt_param(g, "bias", vkt_shape1(n->w.dim[0])) : none;
    const vkt_tensor h = vkt_conv2d(g, r->x, w, bias, &n->conv), y = pooled(g, n, n->relu ? vkt_relu(g, h) : h);
    vkt_keep(g, h); /* so convolution and pooling stay two nodes; test_relu_pool.c tests the fused node */
    r->weights = vkt_input(g, "weights", VKT_F32, VKT_BATCH_LAST, vkt_tensor_shape(g, y));
    vkt_tensor loss = vkt_sum(g, vkt_mul(g, y, r->weights));
    if (n->fork) loss = vkt_add(g, loss, vkt_sum(g, h));
    if (n->ask) {
        OK(vkt_gradients(g, &y, &r->weights, 1, (vkt_tensor[]){ h, w }, 2, r->asked));
        for (int i = 0; i < 2; i++) vkt_keep(g, r->asked[i]);
    }
    OK(vkt_backward(g, loss));
    OK(vkt_update(g, &(vkt_optimizer){ .kind = VKT_SGD }));
    OK(vkt_store_create(harness_ctx, g, &r->store));
    const vkt_limits real = harness_ctx->limits;
    const vkt_program_params params = { .precision = view->precision };
    view->change(&harness_ctx->limits);
    harness_ctx->limits.choices.force = view->force;
    vkt_test_expect_errors(view->may_refuse);
    const vkt_result made = vkt_program_create_guarded(harness_ctx, g, r->store, &params, &r->program);
    vkt_test_expect_errors(false);
    harness_ctx->limits = real;
    assert_true(made == VKT_OK || (view->may_refuse && made == VKT_E_UNSUPPORTED));
    return made == VKT_OK;
}

static void rig_free(rig *r)
{
    vkt_program_destroy(&r->program);
    vkt_store_destroy(&r->store);
    vkt_graph_destroy(&r->g);
}

/* Returns `count` random numbers of only 9 different values. So many windows have ties, and in some windows no number
 * is above 0 before relu. The caller frees the array. */
static float *numbers(uint64_t count, uint32_t stream)
{
    vkt_rng rng = vkt_rng_make(3, VKT_STREAM_TEST, 8, stream);
    float *v = test_malloc(count * sizeof *v);
    for (uint64_t i = 0; i < count; i++) v[i] = ((float)vkt_rng_range(&rng, 0, 8) - 4.5f) / 3;
    return v;
}

static void write_input(rig *r, vkt_tensor t)
{
    const uint64_t count = vkt_shape_elements(vkt_tensor_shape(r->g, t));
    float *v = numbers(count, t.id == r->x.id);
    OK(vkt_program_write(r->program, t, v, count * sizeof *v));
    test_free(v);
}

static void run(rig *r)
{
    bool intact;
    const char *bad;
    for (uint32_t k = 0; k < vkt_store_count(r->store); k++) {
        float *v = numbers(vkt_shape_elements(vkt_store_shape(r->store, k)), 2 + k);
        OK(vkt_store_write(r->store, k, VKT_PART_VALUE, v));
        test_free(v);
    }
    if (vkt_value_of(r->g, r->x)->role == VKT_ROLE_INPUT) write_input(r, r->x);
    write_input(r, r->weights);
    OK(vkt_program_poison(r->program, POISON));
    OK(vkt_program_run(r->program, &(vkt_run){ .lr = 0.01f }, NULL));
    OK(vkt_program_check_guards(r->program, POISON, &intact, &bad));
    if (!intact) fail_msg("words behind %s were written to", bad);
}

static void same_gradients(const rig *a, const rig *b)
{
    for (uint32_t k = 0; k < vkt_store_count(a->store); k++) {
        const size_t elements = (size_t)vkt_shape_elements(vkt_store_shape(a->store, k));
        float *x = test_malloc(2 * elements * sizeof *x);
        OK(vkt_store_read(a->store, k, VKT_PART_GRADIENT, x));
        OK(vkt_store_read(b->store, k, VKT_PART_GRADIENT, x + elements));
        assert_memory_equal(x, x + elements, elements * sizeof *x);
        test_free(x);
    }
}

static void same_answers(const rig *a, const rig *b)
{
    for (int i = 0; i < 2; i++) {
        const size_t elements = (size_t)vkt_shape_elements(vkt_tensor_shape(a->g, a->asked[i]));
        float *x = test_malloc(2 * elements * sizeof *x);
        harness_read_f32(a->program, a->g, a->asked[i], x);
        harness_read_f32(b->program, b->g, b->asked[i], x + elements);
        assert_memory_equal(x, x + elements, elements * sizeof *x);
        test_free(x);
    }
}

static uint32_t count(const rig *r, vkt_kernel_id kernel)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->program->lowered.n; i++) n += r->program->lowered.list[i].kernel == kernel;
    return n;
}

/* Returns how many dispatches compute dw from the gradient of the pooling's output. */
static uint32_t count_unpool(const rig *r)
{
    return count(r, VKT_K_CONV2D_DW_UNPOOL) + count(r, VKT_K_CONV2D_DW_UNPOOL_SHARED);
}

/* The gradient from which the fused program must compute dw. ARRAY: the gradient of the convolution's output, which is
 * an array in memory. UNPOOL: the gradient of the pooling's output. EITHER: the test accepts both, because the device
 * may be unable to run the forced variant with the limits of the view. */
typedef enum how { ARRAY, UNPOOL, EITHER } how;

/* Compares the fused and the plain program. Returns count_unpool of the fused program, or 0 if the device, with the
 * limits of the view, cannot run both programs. */
static uint32_t agree(const net *n, const harness_view *view, how want)
{
    rig fused, plain;
    uint32_t fused_kernels = 0;
    bool both = rig_make(&plain, n, view, false);
    both = rig_make(&fused, n, view, true) && both;
    if (both) {
        fused_kernels = count_unpool(&fused);
        if (want != EITHER) assert_int_equal(fused_kernels > 0, want == UNPOOL);
        assert_int_equal(count_unpool(&plain), 0);
        if (fused_kernels) assert_int_equal(count(&fused, VKT_K_MAX_POOL2D_DX_DISJOINT), n->ask);
        run(&fused);
        run(&plain);
        same_gradients(&fused, &plain);
        if (n->ask) same_answers(&fused, &plain);
    }
    rig_free(&fused);
    rig_free(&plain);
    return fused_kernels;
}

static void as_it_is(vkt_limits *lim)
{
    (void)lim;
}

static const harness_view tile = { "tile", as_it_is, .force = VKT_V(TILE) };
static const harness_view shared = { "shared", as_it_is, .force = VKT_V(DIRECT_SHARED) };

static net draw(uint64_t seed)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 8, 100);
    net n = { .bias = vkt_rng_range(&r, 0, 2) != 0, .relu = vkt_rng_range(&r, 0, 1) != 0 };
    n.conv.groups = vkt_rng_range(&r, 0, 2) ? 1 : 2;
    const uint32_t channels = vkt_rng_range(&r, 1, 3), batch = vkt_rng_range(&r, 1, 37);
    n.x = vkt_shape4(batch, channels * n.conv.groups, 0, 0);
    n.w = vkt_shape4(vkt_rng_range(&r, 1, 40) * n.conv.groups, channels, 0, 0);
    for (uint32_t i = 0; i < 2; i++) {
        n.conv.stride[i] = vkt_rng_range(&r, 1, 2);
        n.conv.dilation[i] = vkt_rng_range(&r, 1, 2);
        n.conv.pad[i] = vkt_rng_range(&r, 0, 1);
        n.pool.kernel[i] = vkt_rng_range(&r, 1, 3);
        n.w.dim[2 + i] = vkt_rng_range(&r, 1, 3);
        const uint32_t out = n.pool.kernel[i] * vkt_rng_range(&r, 1, 3) + vkt_rng_range(&r, 0, n.pool.kernel[i] - 1);
        n.x.dim[2 + i] = n.conv.dilation[i] * (n.w.dim[2 + i] - 1) + 1 + n.conv.stride[i] * (out - 1);
    }
    n.pool.ceil_mode = vkt_rng_range(&r, 0, 1) != 0;
    return n;
}

static void fused_unpooling_has_the_bits_of_the_array(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const bool few = vkt_env_int("VKT_TEST_SEEDS", 12) < 5;
    uint32_t checked = 0, in_shared_memory = 0;
    for (uint32_t i = 0; i < 12; i += few ? 3 : 1) {
        const net n = draw(i);
        harness_view view =
            i < harness_n_views ? harness_views[i] : harness_half_views[i % VKT_COUNT(harness_half_views)];
        view.force = VKT_V(TILE);
        checked += agree(&n, &view, UNPOOL) > 0;
        view.force = VKT_V(DIRECT_SHARED);
        in_shared_memory += agree(&n, &view, EITHER) > 0;
    }
    assert_true(checked > (few ? 2 : 8));
    assert_true(in_shared_memory > (few ? 2 : 8));
}

/* With bindings of 16 KiB, several dispatches compute dw of 60 channels, in f32 and in 16 bits. The gradient of the
 * pooling's output and the pooling's index may start at different offsets in their bindings. */
static void windows_of_channels_are_right(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    net n = { vkt_shape4(5, 2, 4, 8), vkt_shape4(60, 2, 3, 3), .bias = true, .relu = true,
              .pool = { .kernel = { 2, 2 } } };
    const harness_view *small[] = { &harness_views[3], &harness_half_views[2], &harness_half_views[3] };
    for (uint32_t i = 0; i < 2 * VKT_COUNT(small); i++) {
        harness_view view = *small[i / 2];
        view.force = VKT_V(TILE);
        n.conv.groups = 1 + i % 2;
        n.w.dim[1] = 2 / n.conv.groups;
        assert_true(agree(&n, &view, UNPOOL) > 1);
    }
    /* Each group of channels has its own dispatch. */
    n.conv.groups = 2;
    n.w.dim[1] = 1;
    for (uint32_t i = 0; i < VKT_COUNT(small); i++) {
        harness_view view = *small[i];
        view.force = VKT_V(DIRECT_SHARED);
        assert_true(agree(&n, &view, UNPOOL) > 1);
    }
}

static void a_variant_that_wants_the_array_gets_it(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const net n = { vkt_shape4(9, 4, 9, 9), vkt_shape4(8, 4, 2, 3), .bias = true, .relu = true,
                    .pool = { .kernel = { 2, 3 } } };
    const uint64_t variants[] = { VKT_V(DIRECT), VKT_V(SHARED), VKT_V(FFT16) };
    for (size_t i = 0; i < VKT_COUNT(variants); i++)
        agree(&n, &(harness_view){ "another variant", as_it_is, .force = variants[i] }, ARRAY);
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const net n = { vkt_shape4(2, 1, 4, 4), vkt_shape4(2, 1, 1, 1), .pool = { .kernel = { 2, 2 } } };
    const harness_view direct = { "direct", as_it_is, .force = VKT_V(DIRECT) };
    rig r;
    assert_true(rig_make(&r, &n, &direct, true));
    const uint64_t choices = harness_ctx->limits.choices.force;
    harness_ctx->limits.choices.force = direct.force;
    vkt_test_expect_errors(true);
    unsigned made = 0, tried = 0;
    while (!made) {
        vkt_program_destroy(&r.program);
        vkt_test_fail_allocation(++tried);
        const vkt_result result = vkt_program_create(harness_ctx, r.g, r.store, NULL, &r.program);
        made = !vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(result, made ? VKT_OK : VKT_E_NOMEM);
    }
    vkt_test_expect_errors(false);
    harness_ctx->limits.choices.force = choices;
    assert_true(tried > 30);
    rig_free(&r);
}

static void adaptive_windows_may_be_disjoint(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    net n = { vkt_shape4(5, 2, 10, 10), vkt_shape4(9, 2, 3, 3), .bias = true, .relu = true, .adaptive = 4 };
    agree(&n, &tile, UNPOOL);
    agree(&n, &shared, UNPOOL);
    n.adaptive = 3; /* three windows over 8 rows overlap */
    agree(&n, &tile, ARRAY);
}

static void another_reader_or_other_windows_keep_the_array(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const net n = { vkt_shape4(3, 2, 9, 8), vkt_shape4(5, 2, 2, 3), .bias = true, .pool = { .kernel = { 2, 2 } },
                    .adaptive = 0 };
    net trained = n, forked = n, averaged = n, overlapping = n, padded = n, gaps = n;
    trained.trained = true;
    forked.fork = true;
    averaged.average = true;
    overlapping.pool.stride[0] = 1;
    padded.pool.pad[1] = 1;
    gaps.pool.stride[1] = 3;
    const net *all[] = { &trained, &forked, &averaged, &overlapping, &padded, &gaps };
    for (size_t i = 0; i < VKT_COUNT(all); i++) agree(all[i], &tile, ARRAY);
    agree(&n, &tile, UNPOOL);
    agree(&n, &shared, UNPOOL);
}

/* The test asks for dw and for the gradient of the convolution's output, so this gradient is an array. dw is computed
 * twice, for the test and for vkt_backward, both times from the gradient of the pooling's output. */
static void what_was_asked_for_stays(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const net n = { vkt_shape4(6, 2, 8, 7), vkt_shape4(7, 2, 3, 2), .bias = true, .pool = { .kernel = { 2, 3 } },
                    .ask = true };
    assert_int_equal(agree(&n, &tile, UNPOOL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_unpooling_has_the_bits_of_the_array),
        cmocka_unit_test(windows_of_channels_are_right),
        cmocka_unit_test(a_variant_that_wants_the_array_gets_it),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(adaptive_windows_may_be_disjoint),
        cmocka_unit_test(another_reader_or_other_windows_keep_the_array),
        cmocka_unit_test(what_was_asked_for_stays),
    };
    return cmocka_run_group_tests_name("unpool", tests, harness_setup, harness_teardown);
}
