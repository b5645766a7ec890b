/* Tests networks in one node whose activations and weights are in shared memory (shaders/product/mlp_shared.comp). The
 * variant SHARED copies the weights of a layer to shared memory in one or several slices. The variant COOP computes the
 * products with cooperative matrices. The kernels are for GPUs, but the tests also run on CPU devices. The tests of
 * COOP need a device with cooperative matrices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "kernel/ids.h"
#include "ops/product/mlp.h"
#include "ops/harness.h"
#include "support/host.h"

#include "abi/abi.h"
#include "abi/mlp.abi.h"

/* A network on a device with at most shared_kib KiB of shared memory. slices: for SHARED, the largest number of slices
 * of a layer's weights. forward_only: with cooperative matrices, only the forward pass fits into shared memory. */
typedef struct network {
    uint32_t batch, layers, width[VKT_MLP_MAX_LAYERS + 1], shared_kib, slices;
    bool forward_only;
} network;

static uint32_t shared_kib; /* the size that `shrink` sets */

/* Shrinks shared memory. Also limits the number of work groups, so that a work group may have several blocks of
 * samples. */
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

/* Checks that the network's kernel has the expected number of slices. */
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
    /* Mesa 25 takes seconds to compile the kernel of a network. So VKT_TEST_SMALL tests only two networks. */
    const size_t count = vkt_env_int("VKT_TEST_SMALL", 0) ? 2 : VKT_COUNT(networks);
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

static const harness_view by_matrices = { "by matrices", shrink, .force = VKT_V(COOP), .precision = VKT_PRECISION_F16 };

/* Lowers the subject (one op with one case: check/subject.h) in f16, with the variant COOP forced. Checks that `count`
 * dispatches use `kernel`. */
static void check_kernels(const subject *s, vkt_kernel_id kernel, uint32_t count)
{
    vkt_limits lim = harness_ctx->limits;
    vkt_emit e;
    uint32_t n = 0;
    shrink(&lim);
    lim.choices.force = by_matrices.force;
    assert_int_equal(vkt_lower(s->g, &lim, NULL, (vkt_storage){ .precision = by_matrices.precision }, &e), VKT_OK);
    for (size_t i = 0; i < e.n; i++) n += e.list[i].kernel == kernel;
    vkt_lower_free(&e);
    if (n != count) fail_msg("%u dispatches of %s, wanted %u", n, vkt_kernel_get(kernel)->name, count);
}

/* Tests shapes for cooperative matrices, with all gradients: widths that are or are not multiples of a matrix's size, a
 * single sample, work groups with several blocks of samples, and networks that only just fit into shared memory. */
static void networks_multiply_matrices(void **state)
{
    (void)state;
    if (!harness_has_matrices()) return;
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
    for (size_t i = 0; i < 2 * VKT_COUNT(networks); i++) {
        const network *n = &networks[i / 2];
        harness_report report = { .faults = 0 };
        subject s = { .seed = 0 };
        vkt_case c;
        shared_kib = n->shared_kib;
        make_case(&c, n, i % 2);
        assert_int_equal(vkt_subject_of_case(&h, &s, i % 2 ? &vkt_op_mlp_mse : &vkt_op_mlp, &c, i), VKT_OK);
        check_kernels(&s, VKT_K_MLP_FORWARD_COOP, i % 2 ? 0 : 1);
        check_kernels(&s, VKT_K_MLP_GRAD_COOP, i % 2 || n->forward_only ? 0 : 1);
        /* A case of mlp_mse has two dispatches of MLP_MSE_COOP: one for the node of the case, and one for the node that
         * computes the gradients for another dloss. With forward_only it has none. */
        check_kernels(&s, VKT_K_MLP_MSE_COOP, i % 2 == 0 || n->forward_only ? 0 : 2);
        harness_check_in(harness_ctx, &s, &by_matrices, &report);
        subject_free(&s);
        if (report.faults) fail_msg("case %zu: %s", i, report.text);
        assert_int_equal(report.coops, !(n->forward_only && i % 2));
    }
}

/* Bounds of the magnitudes of the inputs of mlp_mse. weight, bias: the parameters of hidden layers. last_weight,
 * last_bias: the parameters of the last layer. dloss is no bound: it is the gradient of the loss, for instance a loss
 * scale. */
typedef struct sizes {
    float x, weight, bias, last_weight, last_bias, target, dloss;
} sizes;

static void set_sizes(vkt_case *c, uint32_t layers, const sizes *z)
{
    c->in[0].hi = z->x;
    c->in[1].hi = z->target;
    for (uint32_t l = 0; l < layers; l++) {
        c->in[3 + 2 * l].hi = l + 1 < layers ? z->weight : z->last_weight;
        c->in[4 + 2 * l].hi = l + 1 < layers ? z->bias : z->last_bias;
    }
    for (uint32_t i = 0; i < c->n_in; i++) c->in[i].lo = -c->in[i].hi;
}

/* A residual y - t may be too small or too large for f16. The gradient of y still fits into f16. This gradient is
 * 2 dloss (y - t) / n, where n is the number of elements of y in the rows that the run uses. The harness rounds inputs
 * to f16, so a residual above 65,504 needs a large bias and a large target. */
static void residuals_may_have_any_size(void **state)
{
    (void)state;
    if (!harness_has_matrices()) return;
    static const sizes all[] = {
        { 0x1p-4f, 0x1p-5f, 0x1p-9f, 0x1p-10f, 0x1p-20f, 0x1p-20f, 32768 },  /* residuals: mostly 1e-6 to 1e-4 */
        { 0x1p-6f, 0x1p-6f, 0x1p-11f, 0x1p-12f, 0x1p-23f, 0x1p-23f, 65504 }, /* residuals: mostly 1e-7 to 1e-5 */
        { 1, 0.5f, 1, 0.5f, 60000, 60000, 0.5f },                            /* residuals of up to 1.2e5 */
    };
    static const network networks[] = { { 33, 1, { 20, 3 }, 32, 0, false },
                                        { 40, 3, { 17, 23, 20, 2 }, 32, 0, false } };
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(all) * VKT_COUNT(networks); i++) {
        const network *n = &networks[i % VKT_COUNT(networks)];
        const sizes *z = &all[i / VKT_COUNT(networks)];
        harness_report report = { .faults = 0 };
        subject s = { .seed = 0 };
        vkt_case c;
        shared_kib = n->shared_kib;
        make_case(&c, n, true);
        set_sizes(&c, n->layers, z);
        assert_int_equal(vkt_subject_of_case(&h, &s, &vkt_op_mlp_mse, &c, i), VKT_OK);
        subject_set(&s.dout[0], &z->dloss, 1);
        harness_check_in(harness_ctx, &s, &by_matrices, &report);
        subject_free(&s);
        if (report.faults) fail_msg("case %zu: %s", i, report.text);
        assert_int_equal(report.coops, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_fit_into_shared_memory),
        cmocka_unit_test(networks_multiply_matrices),
        cmocka_unit_test(residuals_may_have_any_size),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
