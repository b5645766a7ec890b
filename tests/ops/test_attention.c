/* Tests attention beyond its random cases (test_ops.c): heads of a width that no kernel supports, infinite numbers,
 * masks, memory, and loops that would be too long. test_attention_tiles.c has larger shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/philox.h"
#include "kernel/ids.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "reference/reference.h"
#include "support/host.h"

#include "abi/abi.h"

#define OK(call) assert_int_equal((call), VKT_OK)

/* ---- other widths ---- */

/* A head has 6 numbers, a width that no kernel supports. The result for q, k and v in one tensor (B,T,3D) is compared
 * with the reference of attention. */
static void packed_heads_of_any_width_are_split_and_put_together(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { B = 2, T = 5, HEADS = 3, WIDTH = 6, D = HEADS * WIDTH, N = B * T * 3 * D };
    float x[N], y[N / 3];
    double in[N], want[N / 3];
    vkt_rng r = vkt_rng_make(3, VKT_STREAM_TEST, 0, 0);
    for (int i = 0; i < N; i++) in[i] = (double)(x[i] = vkt_rng_uniform(&r, -2, 2));
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor qkv = vkt_input(g, "qkv", VKT_F32, VKT_ROWS, vkt_shape3(B, T, 3 * D));
    const vkt_tensor out =
        vkt_attention_packed(g, qkv, HEADS, &(vkt_attention_params){ .causal = true, .scale = 0.5f });
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, out), vkt_shape3(B, T, D)));
    vkt_keep(g, out);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, qkv, x, sizeof x));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, out, y, sizeof y));
    const vkt_attention_attr a = { .heads = HEADS, .group = 1, .causal = 1, .scale = 0.5f };
    const vkt_ref_tensor ref_in = { .shape = vkt_tensor_shape(g, qkv), .f = in };
    vkt_ref_tensor ref_out = { .shape = vkt_tensor_shape(g, out), .f = want };
    vkt_ref_find("attention")
        ->forward(&(vkt_ref_call){ .attr = &a, .n_in = 1, .n_out = 1, .in = &ref_in, .out = &ref_out });
    assert_true(harness_close("packed", y, want, N / 3, 1e-5, 1e-6));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* ---- infinite numbers ---- */

/* A score of -infinity has the weight 0, at any position. The result of a query is NaN if one of its scores is
 * +infinity or NaN, or if all its scores are -infinity. torch's softmax gives the same. Queries are (1,0,0,0), so a
 * score is the first number of a key, times the scale. */
static void scores_may_be_infinite(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { CASES = 5, S = 70, D = 4 };
    static float q[CASES * D], k[CASES * S * D], v[CASES * S * D], y[CASES * D];
    for (int c = 0; c < CASES; c++) q[c * D] = 1;
    for (int i = 0; i < CASES * S * D; i++) v[i] = (float)(i / D % S);
    for (int s = 0; s < S; s++) {
        k[(0 * S + s) * D] = s < 66 ? -INFINITY : 0; /* fully masked tiles, then four keys */
        k[(1 * S + s) * D] = s >= 4 ? -INFINITY : 0; /* four keys, then fully masked tiles */
        k[(2 * S + s) * D] = -INFINITY;
    }
    k[(3 * S + 50) * D] = INFINITY;
    k[(4 * S + 50) * D] = NAN;
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor in[] = { vkt_input(g, "q", VKT_F32, VKT_ROWS, vkt_shape3(CASES, 1, D)),
                              vkt_input(g, "k", VKT_F32, VKT_ROWS, vkt_shape3(CASES, S, D)),
                              vkt_input(g, "v", VKT_F32, VKT_ROWS, vkt_shape3(CASES, S, D)) };
    const vkt_tensor out = vkt_attention(g, in[0], in[1], in[2], NULL);
    vkt_keep(g, out);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, in[0], q, sizeof q));
    OK(vkt_program_write(p, in[1], k, sizeof k));
    OK(vkt_program_write(p, in[2], v, sizeof v));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, out, y, sizeof y));
    for (int d = 0; d < D; d++) {
        assert_true(y[0 * D + d] == 67.5f);
        assert_true(y[1 * D + d] == 1.5f);
        for (int c = 2; c < CASES; c++) assert_true(isnan(y[c * D + d]));
    }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* All attention weights are above 0. So the infinite value of the last key makes the result of every query infinite,
 * and the infinite dy of the last query makes the dv of every key infinite. A result must not be NaN: in the empty part
 * of the last tile, no kernel may multiply infinity by 0. */
static void the_last_value_may_be_infinite(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { MOST = 67, D = 4 };
    static const uint32_t sizes[] = { 1, 5, 33, MOST };
    static float q[MOST * D], v[MOST * D], dy[MOST * D], y[MOST * D], dv[MOST * D];
    for (size_t i = 0; i < VKT_COUNT(sizes); i++) {
        const uint32_t n = sizes[i], bytes = n * D * 4;
        for (uint32_t k = 0; k < n * D; k++) {
            q[k] = (float)(k % 7) / 8;
            v[k] = dy[k] = k / D == n - 1 ? INFINITY : 1;
        }
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor in[] = { vkt_input(g, "q", VKT_F32, VKT_ROWS, vkt_shape2(n, D)),
                                  vkt_input(g, "v", VKT_F32, VKT_ROWS, vkt_shape2(n, D)),
                                  vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape2(n, D)) };
        const vkt_tensor out = vkt_attention(g, in[0], in[0], in[1], NULL);
        vkt_tensor grad;
        OK(vkt_gradients(g, &out, &in[2], 1, &in[1], 1, &grad));
        vkt_keep(g, out);
        vkt_keep(g, grad);
        OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
        OK(vkt_program_write(p, in[0], q, bytes));
        OK(vkt_program_write(p, in[1], v, bytes));
        OK(vkt_program_write(p, in[2], dy, bytes));
        OK(vkt_program_run(p, NULL, NULL));
        OK(vkt_program_read(p, out, y, bytes));
        OK(vkt_program_read(p, grad, dv, bytes));
        for (uint32_t k = 0; k < n * D; k++) assert_true(isinf(y[k]) && y[k] > 0 && isinf(dv[k]) && dv[k] > 0);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

/* Query ODD and the keys 0 .. ODD are finite, but their products overflow. So the attention weights of query ODD are
 * NaN, and the gradients of the keys 0 .. ODD, which query ODD sees, are not finite. Query ODD does not see the keys
 * behind ODD, so their gradients are finite. */
static void unseen_keys_have_gradients(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { T = 70, D = 8, ODD = 5 };
    static float q[T * D], k[T * D], dy[T * D], dk[T * D], dv[T * D];
    for (int i = 0; i < T * D; i++) {
        q[i] = i / D == ODD ? 1e30f : (float)(i % 7) / 8;
        k[i] = i / D <= ODD ? 1e30f : (float)(i % 5 + 1) / 8;
        dy[i] = (float)(i % 3 + 1);
    }
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor in[] = { vkt_input(g, "q", VKT_F32, VKT_ROWS, vkt_shape2(T, D)),
                              vkt_input(g, "k", VKT_F32, VKT_ROWS, vkt_shape2(T, D)),
                              vkt_input(g, "v", VKT_F32, VKT_ROWS, vkt_shape2(T, D)),
                              vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape2(T, D)) };
    const vkt_tensor y = vkt_attention(g, in[0], in[1], in[2], &(vkt_attention_params){ .causal = true });
    vkt_tensor grads[2];
    OK(vkt_gradients(g, &y, &in[3], 1, &in[1], 2, grads));
    vkt_keep(g, grads[0]);
    vkt_keep(g, grads[1]);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, in[0], q, sizeof q));
    OK(vkt_program_write(p, in[1], k, sizeof k));
    OK(vkt_program_write(p, in[2], dy, sizeof dy));
    OK(vkt_program_write(p, in[3], dy, sizeof dy));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, grads[0], dk, sizeof dk));
    OK(vkt_program_read(p, grads[1], dv, sizeof dv));
    for (int i = 0; i < T * D; i++) assert_true(isfinite(dk[i]) == (i / D > ODD) && isfinite(dv[i]) == (i / D > ODD));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* With a causal mask, no query sees the keys T .. S - 1. The gradients of these keys are 0, even if their values are
 * NaN or a visible key is infinite: no kernel may multiply the weight 0 of an unseen key by NaN. HEADS heads of q read
 * the same keys. */
static void gradients_of_unseen_keys_are_zero(vkt_variant variant)
{
    enum { HEADS = 3, T = 5, S = 9, D = 8, N = HEADS * T * D };
    const bool coop = variant == VKT_V_COOP;
    for (int kind = 0; kind < 2; kind++) { /* 0: the values of unseen keys are NaN; 1: a visible key is infinite */
        float q[N], k[S * D], v[S * D], dy[N], dk[S * D], dv[S * D];
        for (int i = 0; i < S * D; i++) {
            k[i] = kind == 1 && i / D == 1 ? INFINITY : (float)(1 + i * 29 % 13) / 8;
            v[i] = kind == 0 && i / D >= T ? NAN : 1;
        }
        for (int i = 0; i < N; i++) {
            q[i] = (float)(1 + i * 37 % 11) / 8;
            dy[i] = 1;
        }
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor in[] = { vkt_input(g, "q", VKT_F32, VKT_ROWS, vkt_shape3(HEADS, T, D)),
                                  vkt_input(g, "k", VKT_F32, VKT_ROWS, vkt_shape3(1, S, D)),
                                  vkt_input(g, "v", VKT_F32, VKT_ROWS, vkt_shape3(1, S, D)),
                                  vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape3(HEADS, T, D)) };
        const vkt_attention_params group = { .causal = true, .kv_heads = 1 };
        const vkt_tensor y = vkt_attention(g, in[0], in[1], in[2], &group);
        vkt_tensor grads[2];
        OK(vkt_gradients(g, &y, &in[3], 1, &in[1], 2, grads));
        for (int i = 0; i < 2; i++) vkt_keep(g, grads[i]);
        const vkt_program_params params = { .precision = coop ? VKT_PRECISION_F16 : VKT_PRECISION_F32 };
        OK(vkt_program_create_guarded(harness_ctx, g, NULL, &params, &p));
        const float *const data[] = { q, k, v, dy };
        for (int i = 0; i < 4; i++) OK(vkt_program_write(p, in[i], data[i], i == 1 || i == 2 ? sizeof k : sizeof q));
        OK(vkt_program_run(p, NULL, NULL));
        OK(vkt_program_read(p, grads[0], dk, sizeof dk));
        OK(vkt_program_read(p, grads[1], dv, sizeof dv));
        for (int i = T * D; i < S * D; i++)
            if (dk[i] != 0 || dv[i] != 0)
                fail_msg("%s, kind %d: dk %g and dv %g of key %d", vkt_variant_name(variant), kind, (double)dk[i],
                         (double)dv[i], i / D);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

static void unseen_keys_have_no_gradient_in_any_variant(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const vkt_variant variants[] = { VKT_V_SHUFFLED, VKT_V_SHARED, VKT_V_COOP };
    const vkt_choices own = harness_ctx->limits.choices;
    for (size_t i = 0; i < VKT_COUNT(variants); i++) {
        if (variants[i] == VKT_V_COOP && !harness_has_matrices()) continue;
        harness_ctx->limits.choices.force = (uint64_t)1 << variants[i];
        gradients_of_unseen_keys_are_zero(variants[i]);
        harness_ctx->limits.choices = own;
    }
}

/* Runs scores_may_be_infinite, the_last_value_may_be_infinite and unseen_keys_have_gradients with each variant of the
 * f32 kernels. */
static void numbers_may_be_infinite_in_every_variant(void **state)
{
    harness_needs(harness_ctx);
    static const uint64_t variants[] = { VKT_V(SHUFFLED), VKT_V(SHARED) };
    const vkt_choices own = harness_ctx->limits.choices;
    for (size_t i = 0; i < VKT_COUNT(variants); i++) {
        harness_ctx->limits.choices.force = variants[i];
        scores_may_be_infinite(state);
        the_last_value_may_be_infinite(state);
        unseen_keys_have_gradients(state);
        harness_ctx->limits.choices = own;
    }
}

/* A mask of -infinity hides keys. The result is within 1e-6 of the result without these keys. A query that sees no key
 * gives NaN. */
static void a_mask_hides_keys(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { T = 3, S = 6, SEEN = 4, D = 8 };
    float q[T * D], k[S * D], mask[T * S], y[T * D], want[T * D];
    for (int i = 0; i < T * D; i++) q[i] = (float)(i * 37 % 11) / 8;
    for (int i = 0; i < S * D; i++) k[i] = (float)(i * 29 % 13) / 8;
    for (int i = 0; i < T * S; i++) mask[i] = i % S >= SEEN || i / S == T - 1 ? -INFINITY : 0;
    for (int part = 0; part < 2; part++) {
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor in = vkt_input(g, "q", VKT_F32, VKT_ROWS, vkt_shape2(T, D));
        const vkt_tensor keys = vkt_input(g, "k", VKT_F32, VKT_ROWS, vkt_shape2(part ? SEEN : S, D));
        const vkt_tensor hides = vkt_graph_const(g, "mask", VKT_F32, vkt_shape2(T, S), mask);
        const vkt_attention_params params = { .mask = part ? (vkt_tensor){ 0 } : hides };
        const vkt_tensor out = vkt_attention(g, in, keys, keys, &params);
        vkt_keep(g, out);
        OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
        OK(vkt_program_write(p, in, q, sizeof q));
        OK(vkt_program_write(p, keys, k, (part ? sizeof k * SEEN / S : sizeof k)));
        OK(vkt_program_run(p, NULL, NULL));
        OK(vkt_program_read(p, out, part ? want : y, sizeof y));
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
    for (int i = 0; i < T * D; i++) assert_true(i / D == T - 1 ? isnan(y[i]) : fabsf(y[i] - want[i]) <= 1e-6f);
}

/* ---- memory and loops ---- */

/* Returns the bytes of activations and scratch of a program. The program computes causal self-attention over T tokens,
 * and its gradient. There are four heads of q and kv_heads heads of k and v, and a head has 8 numbers. */
static uint64_t plan_bytes(uint32_t T, uint32_t kv_heads, vkt_precision precision)
{
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor qkv = vkt_input(g, "qkv", VKT_F32, VKT_ROWS, vkt_shape3(1, T, 32 + 16 * kv_heads));
    const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape3(1, T, 32));
    const vkt_attention_params params = { .causal = true, .kv_heads = kv_heads };
    const vkt_tensor y = vkt_attention_packed(g, qkv, 4, &params);
    vkt_tensor dx;
    vkt_plan_info plan;
    OK(vkt_gradients(g, &y, &dy, 1, &qkv, 1, &dx));
    vkt_keep(g, dx);
    OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .precision = precision }, &p));
    vkt_program_plan(p, &plan);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    return plan.total_bytes;
}

static void memory_grows_with_the_sequence_not_with_its_square(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    /* For T tokens, the memory plan has: y (32 T numbers), log sum exp of scores (4 T), sums of dy * y (4 T), gradient
     * of qkv (96 T). */
    const uint64_t bytes = plan_bytes(4096, 4, VKT_PRECISION_F32), half = plan_bytes(4096, 4, VKT_PRECISION_BF16);
    assert_int_equal(bytes, 4ull * 4096 * (32 + 4 + 4 + 96));
    assert_int_equal(half, 4ull * 4096 * (4 + 4) + 2ull * 4096 * (32 + 96));
    assert_int_equal(plan_bytes(8192, 4, VKT_PRECISION_F32), 2 * bytes);
    assert_int_equal(plan_bytes(4096, 1, VKT_PRECISION_F32),
                     4ull * 4096 * (32 + 4 + 4 + 48)); /* the one head of k and v is not repeated */
}

/* On a CPU, Mesa 22.3 ends loops silently after 65,535 iterations. GPUs have no such limit. The variant SHUFFLED has
 * the longest loops, so a CPU may have to use SHARED. */
static void loops_that_would_be_too_long_are_refused(void **state)
{
    (void)state;
    vkt_limits lim = { .subgroup_size = 8,
                       .max_workgroup_lanes = 128,
                       .max_groups = 65535,
                       .shared_bytes = 16384,
                       .max_storage_range_bytes = 1u << 30,
                       .traits = &vkt_class_traits[VKT_CLASS_CPU] };
    static const struct {
        uint32_t keys;
        vkt_device_class cls;
        vkt_result want;
        vkt_variant variant;
    } cases[] = { { 60000, VKT_CLASS_CPU, VKT_OK, VKT_V_SHUFFLED },
                  { 90000, VKT_CLASS_CPU, VKT_OK, VKT_V_SHARED },
                  { 500000, VKT_CLASS_CPU, VKT_E_UNSUPPORTED, VKT_V_SHUFFLED },
                  { 500000, VKT_CLASS_OTHER, VKT_OK, VKT_V_SHARED } };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const bool refused = cases[i].want != VKT_OK;
        vkt_graph *g = harness_graph();
        vkt_emit e;
        const vkt_tensor q = vkt_input(g, "q", VKT_F32, VKT_ROWS, vkt_shape2(1, 64));
        const vkt_tensor k = vkt_input(g, "k", VKT_F32, VKT_ROWS, vkt_shape2(cases[i].keys, 64));
        vkt_keep(g, vkt_attention(g, q, k, k, NULL));
        lim.traits = &vkt_class_traits[cases[i].cls];
        vkt_test_expect_errors(refused);
        assert_int_equal(vkt_lower(g, &lim, NULL, (vkt_storage){ 0 }, &e), cases[i].want);
        vkt_test_expect_errors(false);
        if (refused) {
            vkt_test_error_contains("1 rows against 500000 in 1 heads of 64 numbers");
        } else {
            assert_int_equal(e.picked[0].variant, cases[i].variant);
            vkt_lower_free(&e);
        }
        vkt_graph_destroy(&g);
    }
}

/* The gradients of k and v are computed in tiles of keys. For a tile, the kernel has one loop over the queries for each
 * head of q that reads these keys. The limit of iterations is for all loops of a tile together. */
static void loops_over_a_group_are_refused_as_one_loop(void **state)
{
    (void)state;
    const vkt_limits lim = { .subgroup_size = 8,
                             .max_workgroup_lanes = 128,
                             .max_groups = 65535,
                             .shared_bytes = 16384,
                             .max_storage_range_bytes = 1u << 30,
                             .traits = &vkt_class_traits[VKT_CLASS_CPU] };
    for (uint32_t group = 1; group <= 9; group += 8) {
        const vkt_shape q = vkt_shape3(group, 30000, 64), k = vkt_shape3(1, 5, 64);
        vkt_graph *g = harness_graph();
        vkt_emit e;
        const vkt_tensor in[] = { vkt_input(g, "q", VKT_F32, VKT_ROWS, q), vkt_input(g, "k", VKT_F32, VKT_ROWS, k) };
        const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_ROWS, q);
        const vkt_tensor y = vkt_attention(g, in[0], in[1], in[1], &(vkt_attention_params){ .kv_heads = 1 });
        vkt_tensor dk;
        OK(vkt_gradients(g, &y, &dy, 1, &in[1], 1, &dk));
        vkt_keep(g, dk);
        vkt_test_expect_errors(group > 1);
        assert_int_equal(vkt_lower(g, &lim, NULL, (vkt_storage){ 0 }, &e), group > 1 ? VKT_E_UNSUPPORTED : VKT_OK);
        vkt_test_expect_errors(false);
        if (group == 1) vkt_lower_free(&e);
        vkt_graph_destroy(&g);
    }
    vkt_test_error_contains("5 rows against 30000 in 9 heads of 64 numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_heads_of_any_width_are_split_and_put_together),
        cmocka_unit_test(numbers_may_be_infinite_in_every_variant),
        cmocka_unit_test(unseen_keys_have_no_gradient_in_any_variant),
        cmocka_unit_test(a_mask_hides_keys),
        cmocka_unit_test(memory_grows_with_the_sequence_not_with_its_square),
        cmocka_unit_test(loops_that_would_be_too_long_are_refused),
        cmocka_unit_test(loops_over_a_group_are_refused_as_one_loop),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
