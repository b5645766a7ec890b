/* Tests late epilogues (vkt_op.late_epilogues), which are fused after all other epilogues. A node that is already fused
 * cannot become a late epilogue. There are two kinds:
 * - The gradient of a convolution, with weights in shared memory, applies the gradient of the relu in front of the
 *   convolution.
 * - A pooling, or the gradient of a pooling, applies the dropout behind it.
 * The results must have the same bits as those of a program that fuses no epilogues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "kernel/ids.h"
#include "ops/pair.h"
#include "support/host.h"

#include "abi/abi.h"
#include "abi/conv2d_direct_shared.abi.h"

#define OK(call) assert_int_equal((call), VKT_OK)

typedef pair_net net;
typedef pair_spec spec;

static uint32_t count(const vkt_program *p, vkt_kernel_id kernel)
{
    uint32_t n = 0;
    for (size_t i = 0; i < p->lowered.n; i++) n += p->lowered.list[i].kernel == kernel;
    return n;
}

/* Returns a tensor for the gradient of y. The padding of a gradient must be zero. But inputs get random numbers in the
 * padding, too. So vkt_scale copies an input, and sets the padding of the copy to zero. */
static vkt_tensor seed(net *n, vkt_tensor y)
{
    return vkt_scale(n->g, pair_input(n, false, vkt_tensor_shape(n->g, y), false), 1, 0);
}

static vkt_tensor gradient(net *n, vkt_tensor y, vkt_tensor x)
{
    const vkt_tensor dy = seed(n, y);
    vkt_tensor dx;
    OK(vkt_gradients(n->g, &y, &dy, 1, &x, 1, &dx));
    return dx;
}

/* ---- the gradient of a relu behind the gradient of a convolution ---- */

/* The kinds of graphs that conv_slope builds. v is the output of s->act, in most tests a relu. A convolution or a
 * linear layer reads v. ALONE: only the gradient of the relu reads the gradient of v. NORM: the relu is behind a norm.
 * KEPT: the gradient of v is kept. SUMMED: a sum also reads v, so v is stored as f32 in any program. */
enum { ALONE, NORM, KEPT, SUMMED };

/* Builds the gradient of x through conv(act(x)), or through linear(act(x)). NORM: act reads a norm of x, not x. */
static void conv_slope(net *n)
{
    const spec *s = n->s;
    const vkt_tensor x = pair_input(n, false, s->x, false), none = { 0 };
    const vkt_tensor w = pair_input(n, true, s->w, false);
    const vkt_tensor h = s->other == NORM ? vkt_batch_norm(n->g, x, &(vkt_batch_norm_params){ .eps = 0.1f }) : x;
    const vkt_tensor v = s->act(n->g, h);
    const vkt_tensor y = s->w.rank == 2 ? vkt_linear(n->g, v, w, none) : vkt_conv2d(n->g, v, w, none, &s->conv);
    if (s->other == SUMMED) pair_show(n, vkt_sum(n->g, v), false);
    if (s->other != KEPT) {
        pair_show(n, gradient(n, y, x), true);
        return;
    }
    const vkt_tensor dy = seed(n, y);
    vkt_tensor dx[2];
    OK(vkt_gradients(n->g, &y, &dy, 1, (vkt_tensor[]){ x, v }, 2, dx));
    for (int i = 0; i < 2; i++) pair_show(n, dx[i], true);
}

static void as_it_is(vkt_limits *lim)
{
    (void)lim;
}

static const harness_view in_shared_memory = { "shared", as_it_is, .force = VKT_V(DIRECT_SHARED) };

#define IMAGE .x = { 4, { 6, 4, 9, 7 } }, .w = { 4, { 8, 4, 3, 2 } }
#define RELU .act = vkt_relu, .left = 2

static void a_relus_gradient_is_stored_by_the_convolutions(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const spec specs[] = {
        { conv_slope, IMAGE, RELU, .fused = 1 },
        { conv_slope, IMAGE, RELU, .values = SPECIAL, .memory = PACKED, .fused = 1 },
        { conv_slope, IMAGE, RELU, .conv.pad = { 1, 1 }, .rows = 5, .fused = 1 },
        { conv_slope, IMAGE, RELU, .conv.stride = { 2, 3 }, .conv.pad = { 1, 0 }, .memory = PACKED, .fused = 1 },
        { conv_slope, .x = { 4, { 3, 6, 5, 8 } }, .w = { 4, { 21, 2, 2, 3 } }, RELU, .conv.groups = 3, .fused = 1 },
        { conv_slope, .x = { 4, { 37, 1, 4, 3 } }, .w = { 4, { 5, 1, 1, 1 } }, RELU, .fused = 1 },
        { conv_slope, .x = { 2, { 9, 32 } }, .w = { 2, { 10, 32 } }, RELU, .fused = 1 },
        { conv_slope, .x = { 2, { 130, 67 } }, .w = { 2, { 70, 67 } }, RELU, .values = SPECIAL, .fused = 1 },
    };
    for (size_t i = 0; i < VKT_COUNT(specs); i++) {
        net fused, plain;
        assert_true(pair_make(&fused, &plain, &specs[i], &in_shared_memory));
        assert_true(count(fused.p, VKT_K_CONV2D_DIRECT_SHARED_SLOPE) > 0);
        assert_int_equal(count(plain.p, VKT_K_CONV2D_DIRECT_SHARED_SLOPE), 0);
        pair_free(&fused, &plain);
    }
}

static void other_slopes_and_variants_have_a_dispatch(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec relu = { conv_slope, IMAGE, .act = vkt_relu, .left = 3 };
    static const vkt_variant variants[] = { VKT_V_TILE, VKT_V_DIRECT, VKT_V_SPAN, VKT_V_SHARED, VKT_V_FFT13 };
    for (size_t i = 0; i < VKT_COUNT(variants); i++)
        assert_true(pair_agree_in(&relu, &(harness_view){ "a variant", as_it_is, .force = 1ull << variants[i] }));
    spec other = relu;
    other.act = vkt_tanh;
    assert_true(pair_agree_in(&other, &in_shared_memory));
    spec kept = relu;
    kept.other = KEPT;
    assert_true(pair_agree_in(&kept, &in_shared_memory));
}

/* The relu is behind a norm. On any device, the kernel of the norm's gradient applies the relu's gradient when it loads
 * dy. So the relu's gradient does not become a late epilogue of the convolution's gradient. */
static void a_norm_takes_its_relu_first(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec s = { conv_slope, IMAGE, .act = vkt_relu, .other = NORM, .left = 1, .fused = 2 };
    net fused, plain;
    assert_true(pair_make(&fused, &plain, &s, &in_shared_memory));
    assert_int_equal(count(fused.p, VKT_K_CONV2D_DIRECT_SHARED_SLOPE), 0);
    pair_free(&fused, &plain);
}

/* ---- a dropout behind a pooling ---- */

static void joined(vkt_limits *lim)
{
    static vkt_traits traits;
    traits = *lim->traits;
    traits.dropout_joined = 1;
    lim->traits = &traits;
}

static void apart(vkt_limits *lim)
{
    static vkt_traits traits;
    traits = *lim->traits;
    traits.dropout_joined = 0;
    lim->traits = &traits;
}

static void joined_without_texels(vkt_limits *lim)
{
    joined(lim);
    lim->max_texel_elements = 0;
}

static void joined_by_few_groups(vkt_limits *lim)
{
    joined(lim);
    lim->max_groups = 7;
}

static void joined_in_small_bindings(vkt_limits *lim)
{
    joined(lim);
    lim->max_storage_range_bytes = 4096;
    lim->max_texel_elements = VKT_MIN(lim->max_texel_elements, 256);
}

/* With at most 2048 iterations in a loop, pooling windows of more than about 1,700 elements are divided into parts. */
static void joined_in_short_loops(vkt_limits *lim)
{
    static vkt_traits traits;
    joined(lim);
    traits = *lim->traits;
    traits.largest_loop = 2048;
    lim->traits = &traits;
}

static const harness_view together = { "joined", joined };

/* pool() builds a pooling, and drop() a dropout. They use these fields of the spec: `w` is (1,1,R,S), for pooling
 * windows of R x S. If conv.stride is 0, the windows are disjoint. `swap`: average pooling. `bias`: the size of the
 * output is rounded up. `given`: vkt_dropout2d, which drops whole planes (the pixels of one channel of a sample).
 * `bare`: the probability of dropout is 1/2. `flat`: the dropout gets the image (N,C,H,W) as (N, C * H, W), so a plane
 * is a row of the image. */
static vkt_tensor pool(net *n, vkt_tensor x)
{
    const spec *s = n->s;
    const vkt_pool2d_params p = { .kernel = { s->w.dim[2], s->w.dim[3] },
                                  .stride = { s->conv.stride[0], s->conv.stride[1] },
                                  .pad = { s->conv.pad[0], s->conv.pad[1] },
                                  .ceil_mode = s->bias };
    return s->swap ? vkt_avg_pool2d(n->g, x, &p) : vkt_max_pool2d(n->g, x, &p);
}

static vkt_tensor drop(net *n, vkt_tensor x)
{
    const float p = n->s->bare ? 0.5f : 0.3f;
    const vkt_shape s = vkt_tensor_shape(n->g, x);
    if (n->s->flat) x = vkt_reshape(n->g, x, vkt_shape3(s.dim[0], s.dim[1] * s.dim[2], s.dim[3]));
    x = n->s->given ? vkt_dropout2d(n->g, x, p) : vkt_dropout(n->g, x, p);
    return n->s->flat ? vkt_reshape(n->g, x, s) : x;
}

/* Builds dropout(pool(x)). */
static void pool_drop(net *n)
{
    const vkt_tensor y = pool(n, pair_input(n, false, n->s->x, false));
    if (n->s->other == KEPT) pair_show(n, y, false);
    pair_show(n, drop(n, y), false);
}

/* Builds the gradient of x through pool(dropout(x)). */
static void drop_pool(net *n)
{
    const vkt_tensor x = pair_input(n, false, n->s->x, false);
    pair_show(n, gradient(n, pool(n, drop(n, x)), x), true);
}

#define WINDOWS .x = { 4, { 6, 3, 9, 8 } }, .w = { 4, { 1, 1, 3, 2 } }
#define PLANES .given = true

static const spec pools[] = {
    { pool_drop, WINDOWS, .dropouts = 1 },
    { pool_drop, WINDOWS, PLANES, .dropouts = 1 },
    { pool_drop, WINDOWS, .values = SPECIAL, .memory = PACKED, .dropouts = 1 },
    { pool_drop, WINDOWS, .swap = true, .rows = 5, .dropouts = 1 },
    { pool_drop, WINDOWS, PLANES, .swap = true, .memory = AGAIN, .dropouts = 1 },
    { pool_drop, WINDOWS, PLANES, .conv.stride = { 1, 2 }, .conv.pad = { 1, 1 }, .dropouts = 1 },
    { pool_drop, .x = { 4, { 37, 5, 4, 4 } }, .w = { 4, { 1, 1, 4, 4 } }, PLANES, .dropouts = 1 },
    { pool_drop, WINDOWS, .flat = true, .dropouts = 1 },
    { drop_pool, .left = 1, WINDOWS, .dropouts = 1 },
    { drop_pool, .left = 1, WINDOWS, PLANES, .dropouts = 1 },
    { drop_pool, .left = 1, WINDOWS, .swap = true, .rows = 3, .dropouts = 1 },
    { drop_pool, .left = 1, WINDOWS, PLANES, .swap = true, .memory = PACKED, .dropouts = 1 },
    { drop_pool, .left = 1, .x = { 4, { 6, 3, 10, 9 } }, .w = { 4, { 1, 1, 3, 2 } }, PLANES, .bias = true,
      .dropouts = 1 },
    { drop_pool, .left = 1, .x = { 4, { 6, 3, 10, 9 } }, .w = { 4, { 1, 1, 3, 2 } }, .memory = AGAIN, .dropouts = 1 },
    { drop_pool, .left = 1, .x = { 4, { 37, 5, 4, 4 } }, .w = { 4, { 1, 1, 4, 4 } }, PLANES, .dropouts = 1 },
    { drop_pool, .left = 1, WINDOWS, .flat = true, .dropouts = 1 },
};

static void a_dropout_is_stored_by_the_pooling(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < VKT_COUNT(pools); i++) {
        assert_true(pair_agree_in(&pools[i], &together));
        spec s = pools[i];
        s.dropouts = 0; /* both programs have a dispatch for the dropout, in place */
        assert_true(pair_agree_in(&s, &(harness_view){ "apart", apart }));
    }
}

static void dropouts_that_stay(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const spec specs[] = {
        { pool_drop, WINDOWS, .other = KEPT },
        { pool_drop, WINDOWS, PLANES, .flat = true }, /* the dropout and the pooling have different planes */
        { drop_pool, .left = 1, WINDOWS, PLANES, .flat = true },
        { drop_pool, .left = 1, WINDOWS, PLANES, .conv.stride = { 1, 2 } }, /* windows that are not disjoint */
    };
    for (size_t i = 0; i < VKT_COUNT(specs); i++) assert_true(pair_agree_in(&specs[i], &together));
    /* A large window is computed in parts. The kernels of the parts cannot fuse a dropout. */
    const spec large = { pool_drop, .x = { 4, { 3, 1, 62, 90 } }, .w = { 4, { 1, 1, 62, 45 } } };
    assert_true(pair_agree_in(&large, &(harness_view){ "short loops", joined_in_short_loops }));
}

/* Builds the gradient of x through pool(dropout(gelu(x))). */
static void slope_drop_pool(net *n)
{
    const vkt_tensor x = pair_input(n, false, n->s->x, false);
    pair_show(n, gradient(n, pool(n, drop(n, vkt_gelu(n->g, x))), x), true);
}

static void a_dropout_goes_to_the_function_behind_it_first(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec s = { slope_drop_pool, .x = { 4, { 8, 3, 9, 8 } }, .w = { 4, { 1, 1, 3, 2 } }, .left = 1, .fused = 2 };
    net fused, plain;
    assert_true(pair_make(&fused, &plain, &s, &together));
    assert_int_equal(count(fused.p, VKT_K_DROPOUT_BEFORE), 1);
    assert_int_equal(count(fused.p, VKT_K_MAX_POOL2D_DX_DROPOUT), 0);
    pair_free(&fused, &plain);
}

static void in_other_views(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const harness_view views[] = {
        { "without texel loads", joined_without_texels },
        { "with 7 groups", joined_by_few_groups, .may_refuse = true },
        { "with bindings of 4 KiB", joined_in_small_bindings, .may_refuse = true },
        { "as GPU", harness_as_gpu },
    };
    uint32_t small = 0;
    for (size_t v = 0; v < VKT_COUNT(views); v++)
        for (size_t i = 0; i < VKT_COUNT(pools); i++) {
            spec s = pools[i];
            s.dropouts = PAIR_MANY;
            const bool made = pair_agree_in(&s, &views[v]);
            if (v == 2) small += made;
        }
    assert_true(small > 3);
    const spec conv = { conv_slope, IMAGE, RELU, .fused = 1 };
    for (size_t v = 1; v < harness_n_views; v++) {
        harness_view view = harness_views[v];
        view.force = VKT_V(DIRECT_SHARED);
        view.may_refuse = false;
        /* Views 3 and 4 have small bindings, which slopes_in_small_bindings tests. */
        if (v != 3 && v != 4) assert_true(pair_agree_in(&conv, &view));
    }
}

static uint64_t binding_kib; /* the size that in_bindings sets */

static void in_bindings(vkt_limits *lim)
{
    lim->max_storage_range_bytes = binding_kib << 10;
    lim->max_texel_elements = VKT_MIN(lim->max_texel_elements, binding_kib << 6);
}

/* Counts the dispatches that apply the relu's gradient and whose push constant to_slope is not 0. to_slope is 0 if the
 * data of the relu's output and the data of dx begin at the same vec4 of their bindings. */
static uint32_t shifted(const vkt_program *p)
{
    uint32_t n = 0;
    for (size_t i = 0; i < p->lowered.n; i++) {
        vkt_conv2d_direct_shared_push push;
        if (p->lowered.list[i].kernel != VKT_K_CONV2D_DIRECT_SHARED_SLOPE) continue;
        memcpy(&push, p->lowered.list[i].push, sizeof push);
        n += push.to_slope != 0;
    }
    return n;
}

/* The convolution has two groups. With bindings of 9 or 12 KiB, the channels of each group have their own dispatch. The
 * channels of the second group do not begin at a multiple of 256 bytes, so they do not begin at the start of a binding.
 * If v (the output of the relu) is stored as f32 and dx as f16, the data of v and of dx begin at different vec4s of the
 * two bindings. */
static void slopes_in_small_bindings(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const uint64_t sizes[] = { 9, 12, 16 };
    for (size_t i = 0; i < 4 * VKT_COUNT(sizes); i++) {
        const bool half = i & 1, summed = i & 2;
        const spec conv = { conv_slope,
                            .x = { 4, { 6, 8, 9, 7 } },
                            .w = { 4, { 12, 4, 3, 2 } },
                            .conv.groups = 2,
                            .act = vkt_relu,
                            .other = summed ? SUMMED : ALONE,
                            .left = 2,
                            .fused = PAIR_MANY,
                            .unary = true };
        const harness_view view = { "small bindings", in_bindings, .force = VKT_V(DIRECT_SHARED),
                                    .precision = half ? VKT_PRECISION_F16 : VKT_PRECISION_F32 };
        net fused, plain;
        binding_kib = sizes[i / 4];
        assert_true(pair_make(&fused, &plain, &conv, &view));
        assert_int_equal(count(fused.p, VKT_K_CONV2D_DIRECT_SHARED_SLOPE), binding_kib < 16 ? 2 : 1);
        assert_int_equal(shifted(fused.p), half && summed && binding_kib < 16 ? 1 : 0);
        pair_free(&fused, &plain);
    }
}

/* With `bare`, dropout multiplies by 2, which is exact. So the mean of a pooling window may be rounded before
 * or after the dropout: the bits are the same, unless the mean is subnormal in 16 bits. */
static void stored_in_16_bits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t v = 0; v < 2; v++) {
        harness_view view = harness_half_views[v];
        view.force = VKT_V(DIRECT_SHARED);
        const spec conv = { conv_slope, IMAGE, RELU, .fused = 1 };
        assert_true(pair_agree_in(&conv, &view));
        view.change = joined;
        for (size_t i = 0; i < VKT_COUNT(pools); i++) {
            spec s = pools[i];
            s.bare = true;
            assert_true(pair_agree_in(&s, &view));
        }
    }
}

static void gpus_join_and_cpus_do_not(void **state)
{
    (void)state;
    for (int i = 0; i < VKT_CLASS_COUNT; i++) assert_int_equal(vkt_class_traits[i].dropout_joined, i != VKT_CLASS_CPU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_relus_gradient_is_stored_by_the_convolutions),
        cmocka_unit_test(other_slopes_and_variants_have_a_dispatch),
        cmocka_unit_test(a_norm_takes_its_relu_first),
        cmocka_unit_test(a_dropout_is_stored_by_the_pooling),
        cmocka_unit_test(dropouts_that_stay),
        cmocka_unit_test(a_dropout_goes_to_the_function_behind_it_first),
        cmocka_unit_test(in_other_views),
        cmocka_unit_test(slopes_in_small_bindings),
        cmocka_unit_test(stored_in_16_bits),
        cmocka_unit_test(gpus_join_and_cpus_do_not),
    };
    return cmocka_run_group_tests_name("late_epilogue", tests, harness_setup, harness_teardown);
}
