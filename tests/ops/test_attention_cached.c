/* Tests attention over a cache of keys and values, beyond random cases: long caches, rows that are not used, infinite
 * scores, a cache in an array over several runs, caches that fill a binding, the least number of lanes of a work group,
 * operands in VKT_BATCH_LAST, and uses that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "base/philox.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "record/record.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

static void fill(float *x, size_t n, uint64_t seed)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 40, 0);
    for (size_t i = 0; i < n; i++) x[i] = vkt_rng_uniform(&r, -1, 1);
}

/* The sizes of a case. There is one head of k and v. All `heads` heads of q read this head. */
typedef struct sizes {
    uint32_t heads, queries, keys, width;
} sizes;

/* Computes attention on the device. Query t sees the keys 0 .. past + t. */
static void run(sizes s, const float *q, const float *k, const float *v, uint32_t past, float *y)
{
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor in[] = { vkt_input(g, "q", VKT_F32, VKT_ROWS, vkt_shape4(1, s.heads, s.queries, s.width)),
                              vkt_input(g, "k", VKT_F32, VKT_ROWS, vkt_shape4(1, 1, s.keys, s.width)),
                              vkt_input(g, "v", VKT_F32, VKT_ROWS, vkt_shape4(1, 1, s.keys, s.width)),
                              vkt_input(g, "past", VKT_U32, VKT_ROWS, vkt_shape1(1)) };
    const void *const data[] = { q, k, v, &past };
    const vkt_tensor out = vkt_attention_cached(g, in[0], in[1], in[2], in[3], NULL);
    vkt_keep(g, out);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    for (int i = 0; i < 4; i++)
        OK(vkt_program_write(p, in[i], data[i], 4 * vkt_shape_elements(vkt_tensor_shape(g, in[i]))));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, out, y, 4 * vkt_shape_elements(vkt_tensor_shape(g, out))));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* Computes attention of one query over the first n keys, in double precision. */
static void attend(sizes s, const float *q, const float *k, const float *v, uint32_t n, double *y)
{
    double most = -INFINITY, total = 0;
    for (uint32_t d = 0; d < s.width; d++) y[d] = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++) {
            double score = 0;
            for (uint32_t d = 0; d < s.width; d++) score += (double)q[d] * (double)k[i * s.width + d];
            score /= sqrt(s.width);
            if (pass == 0) most = fmax(most, score);
            if (pass == 0) continue;
            total += exp(score - most);
            for (uint32_t d = 0; d < s.width; d++) y[d] += exp(score - most) * (double)v[i * s.width + d];
        }
    for (uint32_t d = 0; d < s.width; d++) y[d] /= total;
}

enum { MOST_Q = 3 * 5 * 128, MOST_K = 3000 * 128 };

/* Rows of k and v that no query sees are NaN here. In a cache, these rows may be memory that was never written. */
static void rows_behind_the_text_are_not_used(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const struct {
        sizes s;
        uint32_t past;
    } cases[] = { { { 1, 1, 1, 4 }, 0 },        { { 3, 1, 40, 64 }, 0 },     { { 3, 1, 40, 64 }, 38 },
                  { { 2, 5, 40, 64 }, 7 },      { { 2, 5, 40, 128 }, 33 },   { { 1, 5, 300, 100 }, 120 },
                  { { 3, 1, 3000, 64 }, 2998 }, { { 1, 3, 3000, 128 }, 511 } };
    static float q[MOST_Q], k[MOST_K], v[MOST_K], y[MOST_Q];
    for (size_t c = 0; c < VKT_COUNT(cases); c++) {
        const sizes s = cases[c].s;
        const uint32_t past = cases[c].past, used = past + s.queries;
        fill(q, s.heads * s.queries * s.width, c);
        fill(k, used * s.width, 100 + c);
        fill(v, used * s.width, 200 + c);
        for (uint32_t i = used * s.width; i < s.keys * s.width; i++) k[i] = v[i] = NAN;
        run(s, q, k, v, past, y);
        for (uint32_t row = 0; row < s.heads * s.queries; row++) {
            double want[128];
            attend(s, q + row * s.width, k, v, past + row % s.queries + 1, want);
            assert_true(harness_close("row", y + row * s.width, want, s.width, 1e-5, 2e-6));
        }
        harness_forget(harness_ctx);
    }
}

/* The rules are those of attention without a cache. A score of -infinity has the weight 0. The result is NaN if a score
 * is +infinity or NaN, or if all scores are -infinity. */
static void scores_may_be_infinite(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const sizes s = { 1, 1, 70, 4 };
    static float q[4] = { 1 }, k[70 * 4], v[70 * 4], y[4];
    for (int i = 0; i < 70 * 4; i++) v[i] = (float)(i / 4);
    for (int c = 0; c < 5; c++) {
        for (int i = 0; i < 70; i++) {
            k[4 * i] = c == 0 ? i < 66 ? -INFINITY : 0 : c == 1 ? i >= 4 ? -INFINITY : 0 : c == 2 ? -INFINITY : 0;
            if (i == 50 && c > 2) k[4 * i] = c == 3 ? INFINITY : NAN;
        }
        run(s, q, k, v, 69, y);
        for (int d = 0; d < 4; d++) assert_true(c == 0 ? y[d] == 67.5f : c == 1 ? y[d] == 1.5f : isnan(y[d]));
    }
}

/* The cache is two arrays, for 9 keys and 9 values. A run appends two keys and two values. In the last run, only one
 * key and one value fit. Each query attends over all keys up to its own. A query whose own key does not fit attends
 * over all 9 keys. */
static void a_cache_grows_from_run_to_run(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { T = 2, C = 9, D = 8 };
    const sizes s = { 1, T, C, D };
    static float q[C * D], k[C * D + D], v[C * D + D];
    float y[T * D];
    vkt_array *arrays[2] = { NULL };
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    vkt_tensor in[3], cache[2], all[2];
    const vkt_tensor past = vkt_input(g, "past", VKT_U32, VKT_ROWS, vkt_shape1(1));
    for (int i = 0; i < 3; i++) in[i] = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape4(1, 1, T, D));
    for (int i = 0; i < 2; i++) {
        const vkt_array_params ap = { .shape = vkt_shape4(1, 1, C, D) };
        OK(vkt_array_create(harness_ctx, &ap, &arrays[i]));
        cache[i] = vkt_external_array(g, "cache", arrays[i], VKT_F32, ap.shape);
        all[i] = vkt_append(g, in[1 + i], cache[i], past);
    }
    const vkt_tensor out = vkt_attention_cached(g, in[0], all[0], all[1], past, NULL);
    vkt_keep(g, out);
    OK(vkt_graph_status(g));
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    fill(q, C * D, 1);
    fill(k, C * D, 2);
    fill(v, C * D, 3);
    for (int twice = 0; twice < 2; twice++)      /* the second time overwrites all rows */
        for (uint32_t at = 0; at < C; at += T) { /* in the last run, the second token is behind the end of the cache */
            const uint32_t from = at * D;
            float tail[T * D] = { 0 };
            memcpy(tail, q + from, sizeof(float) * D * VKT_MIN(T, C - at));
            OK(vkt_program_write(p, in[0], tail, sizeof tail));
            OK(vkt_program_write(p, in[1], k + from, sizeof tail));
            OK(vkt_program_write(p, in[2], v + from, sizeof tail));
            OK(vkt_program_write(p, past, &at, sizeof at));
            OK(vkt_program_run(p, NULL, NULL));
            OK(vkt_program_read(p, out, y, sizeof y));
            for (uint32_t t = 0; t < T; t++) {
                double want[D];
                attend(s, tail + t * D, k, v, VKT_MIN(at + t + 1, C), want);
                assert_true(harness_close("token", y + t * D, want, D, 1e-5, 2e-6));
            }
        }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    for (int i = 0; i < 2; i++) vkt_array_destroy(&arrays[i]);
}

/* The keys of a head are 7680 bytes, and a binding has at most 8 KiB. So each of the K heads of k and v has its own
 * dispatches. The cache has past_tokens rows before new keys and values are appended. */
static void each_cache_may_fill_a_binding(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { K = 3, G = 2, T = 2, C = 30, D = 64, PLANE = C * D };
    const sizes s = { 1, T, C, D };
    const vkt_limits real = harness_ctx->limits;
    const uint32_t past_tokens = 5;
    static float q[K * G * T * D], new[2][K * T * D], cache[2][K * PLANE], y[K * G * T * D];
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    vkt_tensor x[2], to[2], all[2];
    const vkt_tensor past = vkt_input(g, "past", VKT_U32, VKT_ROWS, vkt_shape1(1));
    const vkt_tensor in = vkt_input(g, "q", VKT_F32, VKT_ROWS, vkt_shape4(1, K * G, T, D));
    vkt_array *arrays[2] = { NULL };
    fill(q, K * G * T * D, 1);
    for (int i = 0; i < 2; i++) {
        const vkt_array_params ap = { .shape = vkt_shape4(1, K, C, D) };
        fill(cache[i], K * PLANE, 2 + (uint64_t)i);
        fill(new[i], K * T * D, 4 + (uint64_t)i);
        OK(vkt_array_create(harness_ctx, &ap, &arrays[i]));
        OK(vkt_array_write(arrays[i], 0, cache[i], sizeof cache[i]));
        x[i] = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape4(1, K, T, D));
        to[i] = vkt_external_array(g, "cache", arrays[i], VKT_F32, ap.shape);
        all[i] = vkt_append(g, x[i], to[i], past);
    }
    const vkt_tensor out = vkt_attention_cached(g, in, all[0], all[1], past, NULL);
    vkt_keep(g, out);
    harness_ctx->limits.max_storage_range_bytes = 8192;
    harness_ctx->limits.max_texel_elements = VKT_MIN(real.max_texel_elements, 512u);
    const vkt_result made = vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p);
    harness_ctx->limits = real;
    OK(made);
    assert_int_equal(p->lowered.n, 3 * K);
    OK(vkt_program_write(p, in, q, sizeof q));
    OK(vkt_program_write(p, past, &past_tokens, sizeof past_tokens));
    for (int i = 0; i < 2; i++) OK(vkt_program_write(p, x[i], new[i], sizeof new[i]));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, out, y, sizeof y));
    for (uint32_t i = 0; i < 2 * K; i++)
        memcpy(cache[i / K] + i % K * PLANE + past_tokens * D, new[i / K] + i % K *T *D, sizeof(float) * T * D);
    for (uint32_t i = 0; i < K * G * T; i++) {
        const float *k = cache[0] + i / (G * T) * PLANE, *v = cache[1] + i / (G * T) * PLANE;
        double want[D];
        attend(s, q + i * D, k, v, past_tokens + i % T + 1, want);
        assert_true(harness_close("row", y + i * D, want, D, 1e-5, 2e-6));
    }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    for (int i = 0; i < 2; i++) vkt_array_destroy(&arrays[i]);
}

/* A lane has at most 8 of the 32 vec4s of a row. So a work group has 4 lanes or more, even if subgroups are smaller. */
static void a_row_needs_four_lanes(void **state)
{
    (void)state;
    for (uint32_t lanes = 1; lanes <= 8; lanes *= 2) {
        vkt_graph *g = harness_graph();
        const vkt_limits lim = { .traits = &vkt_class_traits[VKT_CLASS_CPU],
                                 .subgroup_size = lanes,
                                 .max_workgroup_lanes = 256,
                                 .max_groups = 65535,
                                 .max_push_bytes = 128,
                                 .shared_bytes = 16384,
                                 .max_storage_range_bytes = 1u << 27,
                                 .max_texel_elements = 1u << 27 };
        vkt_emit e;
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape4(1, 1, 1, 128));
        const vkt_tensor past = vkt_input(g, "past", VKT_U32, VKT_ROWS, vkt_shape1(1));
        vkt_keep(g, vkt_attention_cached(g, x, x, x, past, NULL));
        OK(vkt_graph_status(g));
        OK(vkt_lower(g, &lim, NULL, (vkt_storage){ .precision = VKT_PRECISION_F32 }, &e));
        assert_int_equal(e.n, 1);
        assert_int_equal(e.list[0].spec[0], lanes < 4 ? 4 : lanes);
        vkt_lower_free(&e);
        vkt_graph_destroy(&g);
    }
}

/* q, k and v in VKT_BATCH_LAST give the same bits as in VKT_ROWS. */
static void other_layouts_are_converted(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { B = 5, T = 3, D = 8, N = B * 2 * T * D };
    static float data[3][N], y[2][N];
    const uint32_t zero = 0;
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        vkt_tensor in[3];
        const vkt_tensor past = vkt_input(g, "past", VKT_U32, VKT_ROWS, vkt_shape1(1));
        for (int i = 0; i < 3; i++) in[i] = vkt_input(g, "x", VKT_F32, (vkt_layout)layout, vkt_shape4(B, 2, T, D));
        const vkt_tensor out = vkt_attention_cached(g, in[0], in[1], in[2], past, NULL);
        vkt_keep(g, out);
        OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
        for (int i = 0; i < 3; i++) {
            fill(data[i], N, 7 + (uint64_t)i);
            OK(vkt_program_write(p, in[i], data[i], sizeof data[i]));
        }
        OK(vkt_program_write(p, past, &zero, sizeof zero));
        OK(vkt_program_run(p, NULL, NULL));
        OK(vkt_program_read(p, out, y[layout == VKT_BATCH_LAST], sizeof y[0]));
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
}

/* ---- uses that are refused ---- */

/* In the cases c < 3 a shape is wrong, and the message has the shapes of q, k and v. In the other cases an element type
 * is wrong. */
static void operands_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    for (int c = 0; c < 5; c++) {
        vkt_graph *g = harness_graph();
        const vkt_tensor past = vkt_input(g, "past", c == 4 ? VKT_F32 : VKT_U32, VKT_ROWS, vkt_shape1(1));
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape4(1, 1, 2, 8));
        const vkt_tensor flat = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(2, 8));
        const vkt_tensor more = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape3(1, 3, 8));
        const vkt_tensor u32 = vkt_input(g, "x", VKT_U32, VKT_ROWS, vkt_shape4(1, 1, 2, 8));
        vkt_test_expect_errors(true);
        if (c == 0) vkt_attention_cached(g, flat, flat, flat, past, NULL);
        if (c == 1) vkt_attention_cached(g, x, more, more, past, NULL);
        if (c == 2) vkt_attention_cached(g, x, x, more, past, NULL);
        if (c == 3) vkt_attention_cached(g, x, x, u32, past, NULL);
        if (c == 4) vkt_attention_cached(g, x, x, x, past, NULL);
        vkt_test_expect_errors(false);
        assert_int_equal(vkt_graph_status(g), c < 3 ? VKT_E_SHAPE : VKT_E_DTYPE);
        if (c == 2) vkt_test_error_contains("got (1,1,2,8), (1,1,2,8) and (1,3,8)");
        vkt_graph_destroy(&g);
    }
}

static void other_uses_of_a_cache_are_refused(void **state)
{
    (void)state;
    for (int c = 0; c < 7; c++) {
        vkt_graph *g = harness_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape4(1, 1, 2, 8));
        const vkt_tensor past = vkt_input(g, "past", VKT_U32, VKT_ROWS, vkt_shape1(1));
        const vkt_tensor cache = vkt_external(g, "cache", VKT_F32, vkt_shape4(1, 1, 9, 8));
        const vkt_tensor w = vkt_param(g, "w", vkt_shape1(8)), xw = vkt_mul(g, x, w);
        vkt_test_expect_errors(true);
        vkt_result want = VKT_E_STATE;
        const char *message = "is written by the graph: read the result of vkt_append instead";
        if (c == 0) vkt_relu(g, (vkt_append(g, x, cache, past), cache));
        if (c == 1) vkt_append(g, x, (vkt_append(g, x, cache, past), cache), past);
        if (c == 2) vkt_append(g, x, (vkt_relu(g, cache), cache), past);
        if (c == 3) vkt_append(g, x, x, past);
        if (c == 4) vkt_append(g, vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape4(1, 1, 2, 4)), cache, past);
        if (c == 5) vkt_attention_cached(g, x, cache, cache, past, &(vkt_attention_params){ .dropout = 0.5f });
        if (c == 6) vkt_backward(g, vkt_sum(g, vkt_append(g, xw, cache, past)));
        vkt_test_expect_errors(false);
        if (c == 1 || c == 2) message = "is an input of";
        if (c == 3) want = VKT_E_ARG, message = "want a value made by vkt_external";
        if (c == 4) want = VKT_E_SHAPE, message = "want x (..,T,D) and a cache (..,C,D)";
        if (c == 5) want = VKT_E_ARG, message = "want neither dropout nor mask";
        if (c == 6) want = VKT_E_UNSUPPORTED, message = "append has no gradient";
        assert_int_equal(vkt_graph_status(g), want);
        vkt_test_error_contains(message);
        vkt_graph_destroy(&g);
    }
}

static void a_gradient_through_the_cache_is_refused(void **state)
{
    (void)state;
    vkt_graph *g = harness_graph();
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape4(1, 1, 2, 8));
    const vkt_tensor past = vkt_input(g, "past", VKT_U32, VKT_ROWS, vkt_shape1(1));
    const vkt_tensor cache = vkt_input(g, "cache", VKT_F32, VKT_ROWS, vkt_shape4(1, 1, 9, 8));
    const vkt_tensor xw = vkt_mul(g, x, vkt_param(g, "w", vkt_shape1(8)));
    const vkt_tensor loss = vkt_sum(g, vkt_add(g, xw, vkt_attention_cached(g, xw, cache, cache, past, NULL)));
    OK(vkt_graph_status(g));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_backward(g, loss), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("attention_cached has no gradient");
    vkt_test_expect_errors(false);
    vkt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_behind_the_text_are_not_used),
        cmocka_unit_test(scores_may_be_infinite),
        cmocka_unit_test(a_cache_grows_from_run_to_run),
        cmocka_unit_test(each_cache_may_fill_a_binding),
        cmocka_unit_test(a_row_needs_four_lanes),
        cmocka_unit_test(other_layouts_are_converted),
        cmocka_unit_test(operands_that_do_not_fit_are_refused),
        cmocka_unit_test(other_uses_of_a_cache_are_refused),
        cmocka_unit_test(a_gradient_through_the_cache_is_refused),
    };
    return cmocka_run_group_tests_name("a cache of keys and values", tests, harness_setup, harness_teardown);
}
