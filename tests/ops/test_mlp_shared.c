/* Networks in one node whose activations and weights are in shared memory (shaders/product/mlp_shared.comp): SHARED,
 * with few and many slices of weights, and COOP. The kernels are for GPUs, but the tests run on any device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/product/mlp.h"
#include "ops/harness.h"
#include "support/host.h"

#include "abi/abi.h"
#include "abi/mlp.abi.h"

/* A network, and the size of the device's shared memory in KiB. slices: the largest number of slices of a layer's
 * weights. forward_only: with cooperative matrices, only the forward pass fits into shared memory. */
typedef struct network {
    uint32_t batch, layers, width[VKT_MLP_MAX_LAYERS + 1], shared_kib, slices;
    bool forward_only;
} network;

static uint32_t shared_kib; /* for shrink */

/* Shrinks shared memory, and lets a group have several blocks of samples. */
static void shrink(vkt_limits *lim)
{
    static vkt_traits few;
    few = *lim->traits;
    few.groups_slices = 6;
    lim->traits = &few;
    lim->shared_bytes = VKT_MIN(lim->shared_bytes, 1024 * shared_kib);
}

static void make_case(vkt_case *c, const network *n, bool mse)
{
    vkt_mlp_attr a = { .layers = n->layers, .params = mse ? 3 : 1, .grads = mse };
    *c = (vkt_case){ .rows = mse ? n->batch - 1 : 0 };
    vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape2(n->batch, n->width[0]), -1, 1);
    if (mse) vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape2(n->batch, n->width[n->layers]), -1, 1);
    if (mse) vkt_case_f32(c, VKT_ROWS, vkt_shape0(), -1, 1);
    for (uint32_t l = 0; l < n->layers; l++) {
        const float bound = 2 / sqrtf((float)n->width[l]);
        vkt_case_f32(c, VKT_ROWS, vkt_shape2(n->width[l + 1], n->width[l]), -bound, bound);
        vkt_case_f32(c, VKT_ROWS, vkt_shape1(n->width[l + 1]), -1, 1);
        if (mse) a.grads |= 3u << (a.params + 2 * l);
    }
    vkt_case_attr(c, &a, sizeof a);
}

/* Checks that the network's kernel has the expected slices of weights. */
static void check_slices(const subject *s, const network *n)
{
    vkt_limits lim = harness_ctx->limits;
    vkt_emit e;
    uint32_t stage = 0, most = 0;
    shrink(&lim);
    lim.choices.force = VKT_V(SHARED);
    assert_int_equal(vkt_lower(s->g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    for (size_t i = 0; i < e.n; i++)
        if (e.list[i].spec[0] == MLP_SHARED_LANES) stage = e.list[i].spec[MLP_SPEC_STAGE];
    vkt_lower_free(&e);
    assert_int_not_equal(stage, 0);
    for (uint32_t l = 0; l < n->layers; l++) {
        const uint32_t K = n->width[l], M = n->width[l + 1];
        most = VKT_MAX(most, vkt_div_up(K, VKT_MIN(stage / vkt_div_up(M, 4), K)));
    }
    assert_int_equal(most, n->slices);
}

static void networks_fit_into_shared_memory(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const network networks[] = {
        { 333, 3, { 32, 64, 64, 3 }, 32, 2 }, { 70, 1, { 7, 5 }, 16, 1 },       { 31, 2, { 66, 65, 1 }, 32, 2 },
        { 100, 2, { 1, 90, 2 }, 32, 1 },      { 64, 2, { 31, 61, 18 }, 18, 4 }, { 40, 4, { 9, 17, 33, 12, 6 }, 16, 1 },
        { 33, 1, { 64, 100 }, 32, 4 },
    };
    const vkt_host h = vkt_test_host();
    const harness_view view = { "in shared memory", shrink, .force = VKT_V(SHARED) };
    const size_t count = vkt_env_int("VKT_TEST_SMALL", 0) ? 2 : VKT_COUNT(networks); /* Mesa 25 compiles for seconds */
    for (size_t i = 0; i < 2 * count; i++) {
        const network *n = &networks[i / 2];
        harness_report report = { .faults = 0 };
        subject s = { .seed = 0 };
        vkt_case c;
        shared_kib = n->shared_kib;
        make_case(&c, n, i % 2);
        assert_int_equal(vkt_subject_of_case(&h, &s, i % 2 ? &vkt_op_mlp_mse : &vkt_op_mlp, &c, i), VKT_OK);
        check_slices(&s, n);
        subject_forward(&s);
        subject_backward(&s);
        harness_check_in(harness_ctx, &s, &view, &report);
        subject_free(&s);
        if (report.faults) fail_msg("case %zu: %s", i, report.text);
    }
}

/* Shapes for cooperative matrices, with all gradients: widths that are whole matrices or not, one sample, a group with
 * several blocks of samples, and networks that hardly fit. */
static void networks_multiply_matrices(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_limits *lim = &harness_ctx->limits;
    assert_true(lim->coop.m || !vkt_env_int("VKT_REQUIRE_COOP", 0)); /* tests/run.sh sets VKT_REQUIRE_COOP */
    if (!lim->coop.m) return;
    static const network networks[] = {
        { 1, 1, { 1, 1 }, 32, 0, false },
        { 32, 1, { 16, 16 }, 32, 0, false },
        { 231, 2, { 17, 23, 1 }, 32, 0, false },
        { 333, 3, { 32, 64, 64, 3 }, 32, 0, false },
        { 229, 4, { 9, 13, 33, 47, 6 }, 32, 0, false },
        { 100, 2, { 37, 61, 29 }, 32, 0, false },
        { 65, 2, { 1, 90, 2 }, 32, 0, false },
        { 40, 1, { 90, 40 }, 32, 0, false },
        { 70, 1, { 128, 40 }, 32, 0, true },
    };
    const vkt_host h = vkt_test_host();
    const harness_view view = { "by matrices", shrink, .force = VKT_V(COOP), .precision = VKT_PRECISION_F16 };
    for (size_t i = 0; i < 2 * VKT_COUNT(networks); i++) {
        const network *n = &networks[i / 2];
        harness_report report = { .faults = 0 };
        subject s = { .seed = 0 };
        vkt_case c;
        shared_kib = n->shared_kib;
        make_case(&c, n, i % 2);
        assert_int_equal(vkt_subject_of_case(&h, &s, i % 2 ? &vkt_op_mlp_mse : &vkt_op_mlp, &c, i), VKT_OK);
        harness_check_in(harness_ctx, &s, &view, &report);
        subject_free(&s);
        if (report.faults) fail_msg("case %zu: %s", i, report.text);
        assert_int_equal(report.coops, !(n->forward_only && i % 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_fit_into_shared_memory),
        cmocka_unit_test(networks_multiply_matrices),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
