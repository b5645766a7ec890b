/* Tests a relu behind a convolution, and behind a transposed convolution, which uses the kernel for dx. The sums of
 * both convolutions are computed in slices (ops/conv/shared.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "abi/storage.abi.h"
#include "kernel/ids.h"
#include "ops/pair.h"

typedef pair_net net;
typedef pair_spec spec;

static void conv(net *n)
{
    const vkt_tensor x = pair_input(n, false, n->s->x, false), w = pair_input(n, true, n->s->w, false);
    const vkt_tensor bias = pair_input(n, true, vkt_shape1(n->s->w.dim[0]), false);
    pair_show(n, vkt_relu(n->g, vkt_conv2d(n->g, x, w, bias, &n->s->conv)), false);
}

static void conv_transpose(net *n)
{
    const vkt_conv_transpose2d_params p = { .pad = { n->s->conv.pad[0], n->s->conv.pad[1] } };
    const vkt_tensor x = pair_input(n, false, n->s->x, false), w = pair_input(n, true, n->s->w, false);
    const vkt_tensor bias = pair_input(n, true, vkt_shape1(n->s->w.dim[1]), false);
    pair_show(n, vkt_relu(n->g, vkt_conv_transpose2d(n->g, x, w, bias, &p)), false);
}

/* Each sum of 576 products is computed in two slices. Only the kernel that adds the slices applies relu. */
static void only_the_sum_of_slices_is_clamped_at_zero(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const spec forward = {
        conv, .x = { 4, { 5, 64, 5, 5 } }, .w = { 4, { 8, 64, 3, 3 } }, .conv.pad = { 1, 1 }, .bias = true, .fused = 1
    };
    const spec back = {
        conv_transpose, .x = { 4, { 5, 64, 5, 5 } }, .w = { 4, { 64, 8, 3, 3 } }, .conv.pad = { 1, 1 }, .bias = true,
        .fused = 1
    };
    harness_view view = pair_whole;
    view.force = VKT_V(SHARED);
    for (int i = 0; i < 4; i++) {
        uint32_t slices = 0, clamped = 0, sums = 0;
        net fused, plain;
        view.precision = i / 2 ? VKT_PRECISION_F16 : VKT_PRECISION_F32;
        assert_true(pair_make(&fused, &plain, i % 2 ? &back : &forward, &view));
        for (size_t k = 0; k < fused.p->lowered.n; k++) {
            const vkt_dispatch *d = &fused.p->lowered.list[k];
            if (d->kernel == VKT_K_CONV2D_SHARED || d->kernel == VKT_K_CONV2D_SHARED_DX) slices = d->groups[1];
            clamped += (d->storage & STORAGE_RELU) != 0;
            sums += d->kernel == VKT_K_GEMM_SUM4 && d->storage & STORAGE_RELU;
        }
        assert_true(slices > 1 && clamped == 1 && sums == 1);
        pair_free(&fused, &plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_sum_of_slices_is_clamped_at_zero),
    };
    return cmocka_run_group_tests_name("slices", tests, harness_setup, harness_teardown);
}
