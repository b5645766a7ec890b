/* Tests of rope (rotary position embedding) beyond its random cases: far positions, positions from an input, use with
 * attention. The last test is about swiglu of numbers that are not finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/philox.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

static void fill(float *x, size_t n, uint64_t seed)
{
    vkt_rng r = vkt_rng_make(seed, 0, 0, 0);
    for (size_t i = 0; i < n; i++) x[i] = vkt_rng_uniform(&r, -2, 2);
}

/* Writes `data` to the input x, runs the graph and copies y to `out`. If `first` is not null, it is an input of one
 * u32, which becomes `value`. */
static void run(vkt_graph *g, vkt_tensor x, const float *data, vkt_tensor first, uint32_t value, vkt_tensor y,
                float *out)
{
    vkt_program *p = NULL;
    vkt_keep(g, y);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, x, data, 4 * vkt_shape_elements(vkt_tensor_shape(g, x))));
    if (first.id) OK(vkt_program_write(p, first, &value, sizeof value));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, y, out);
    vkt_program_destroy(&p);
}

/* ---- precision ---- */

/* Returns the frequency of pair j, rounded to f32 after each operation, as Hugging Face's transformers does. */
static float frequency(float base, uint32_t dims, uint32_t j, float factor)
{
    const float exponent = (float)(2 * j) / (float)dims, power = (float)pow((double)base, (double)exponent);
    return 1.0f / power / factor;
}

/* An angle at position 131071 has up to 17 bits before the binary point. Rounding it to f32 adds an error of up to
 * 0.004, and for so large an angle the sine of a GPU may be wrong by any amount. The results here are as exact as at
 * position 0: the error of a pair (a, b) is at most 6e-7 of its length sqrt(a^2 + b^2). */
static void far_positions_are_as_exact_as_near_ones(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { T = 8, D = 128 };
    static const uint32_t at[] = { 0, 1000, 32760, 131064, 1048568 };
    static const float bases[] = { 10000, 500000 };
    static float x[T][D], y[T][D];
    fill(x[0], T * D, 1);
    for (size_t i = 0; i < VKT_COUNT(at) * 4; i++) {
        const vkt_rope_params p = { .order = i & 1 ? VKT_ROPE_NEIGHBOURS : VKT_ROPE_HALVES,
                                    .base = bases[i >> 1 & 1],
                                    .factor = 2,
                                    .position = at[i / 4] };
        vkt_graph *g = harness_graph();
        const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(T, D));
        run(g, in, x[0], (vkt_tensor){ 0 }, 0, vkt_rope(g, in, &p), y[0]);
        for (uint32_t t = 0; t < T; t++)
            for (uint32_t j = 0; j < D / 2; j++) {
                const uint32_t ia = i & 1 ? 2 * j : j, ib = i & 1 ? 2 * j + 1 : D / 2 + j;
                const double angle = (double)(p.position + t) * (double)frequency(p.base, D, j, 2);
                const double a = (double)x[t][ia], b = (double)x[t][ib], c = cos(angle), s = sin(angle);
                const double error = hypot((double)y[t][ia] - (a * c - b * s), (double)y[t][ib] - (b * c + a * s));
                if (!(error <= 6e-7 * hypot(a, b)))
                    fail_msg("position %u, pair %u: an error of %g of the pair's length", p.position + t, j,
                             error / hypot(a, b));
            }
        vkt_graph_destroy(&g);
    }
}

/* The rotation of (1, 0) is (cos, sin). Also for a small angle, the relative error of the sine is at most 5e-7. */
static void small_angles_keep_their_digits(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { T = 3, D = 64 };
    static float x[T][D], y[T][D];
    for (uint32_t t = 0; t < T; t++)
        for (uint32_t j = 0; j < D / 2; j++) x[t][j] = 1;
    vkt_graph *g = harness_graph();
    const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(T, D));
    run(g, in, x[0], (vkt_tensor){ 0 }, 0, vkt_rope(g, in, &(vkt_rope_params){ .base = 1e8f }), y[0]);
    for (uint32_t t = 0; t < T; t++)
        for (uint32_t j = 0; j < D / 2; j++) {
            const double want = sin(t * (double)frequency(1e8f, D, j, 1));
            assert_true(fabs((double)y[t][D / 2 + j] - want) <= 5e-7 * fabs(want));
        }
    vkt_graph_destroy(&g);
}

/* ---- positions ---- */

/* Rope of one token at a time gives the same bits as rope of all tokens at once. A single token is at the position
 * `position` plus the number in the input `first`. Positions wrap at 2^32: in the last iteration, `position` is
 * 2^32 - 3 and `first` is 3, so the token is at position 0. */
static void first_positions_continue_a_sequence(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { T = 6, H = 3, D = 20 };
    static float x[T][H * D], whole[T][H * D], one[H * D];
    const vkt_tensor none = { 0 };
    fill(x[0], T * H * D, 2);
    vkt_graph *g = harness_graph();
    vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape3(1, T, H * D));
    run(g, in, x[0], none, 0, vkt_rope(g, in, &(vkt_rope_params){ .heads = H, .dims = 16, .position = 70 }), whole[0]);
    vkt_graph_destroy(&g);
    for (uint32_t t = 0; t <= T; t++) {
        g = harness_graph();
        in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape3(1, 1, H * D));
        vkt_rope_params p = { .heads = H, .dims = 16, .position = t < T ? 68 : UINT32_MAX - 2 };
        p.first = vkt_input(g, "first", VKT_U32, VKT_ROWS, vkt_shape1(1));
        run(g, in, x[t % T], p.first, t < T ? t + 2 : 3, vkt_rope(g, in, &p), one);
        assert_memory_equal(one, t < T ? whole[t] : x[0], sizeof one);
        vkt_graph_destroy(&g);
    }
}

/* Layers with the same frequencies share one table of frequencies. The layers' positions may differ. */
static void a_graph_has_one_table(void **state)
{
    (void)state;
    vkt_graph *g = harness_graph();
    const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(3, 8));
    static const vkt_rope_params options[] = { { .position = 0 }, { .position = 3 }, { .base = 100 }, { .dims = 4 } };
    vkt_tensor table[VKT_COUNT(options)];
    for (size_t i = 0; i < VKT_COUNT(options); i++) {
        const vkt_tensor y = vkt_rope(g, in, &options[i]);
        table[i] = g->nodes[vkt_value_of(g, y)->producer - 1]->in[1];
    }
    assert_int_equal(table[0].id, table[1].id);
    assert_int_not_equal(table[0].id, table[2].id);
    assert_int_not_equal(table[0].id, table[3].id);
    vkt_graph_destroy(&g);
}

/* ---- with attention ---- */

enum { B = 2, TOKENS = 9, HEADS = 3, WIDTH = 16, ROW = HEADS * WIDTH };

/* Computes attention of q, k and v in one tensor. Rope rotates the heads of q and k, and copies those of v. */
static vkt_tensor packed(vkt_graph *g, vkt_tensor qkv, vkt_rope_params p)
{
    p.heads = 3 * HEADS;
    p.rotated = 2 * HEADS;
    return vkt_attention_packed(g, vkt_rope(g, qkv, &p), HEADS, &(vkt_attention_params){ .causal = true });
}

/* Computes the same attention from three tensors (B,H,T,D). Rope puts the heads of q and k before the tokens, and
 * vkt_permute puts the heads of v there. */
static vkt_tensor apart(vkt_graph *g, vkt_tensor qkv, vkt_rope_params p)
{
    static const uint32_t heads_second[] = { 0, 2, 1, 3 };
    vkt_tensor part[3];
    OK(vkt_split_sizes(g, qkv, 2, (const uint32_t[]){ ROW, ROW, ROW }, 3, part));
    p.heads = HEADS;
    p.split = true;
    const vkt_tensor v = vkt_permute(g, vkt_reshape(g, part[2], vkt_shape4(B, TOKENS, HEADS, WIDTH)), heads_second);
    const vkt_tensor y = vkt_attention(g, vkt_rope(g, part[0], &p), vkt_rope(g, part[1], &p), v,
                                       &(vkt_attention_params){ .causal = true });
    return vkt_reshape(g, vkt_permute(g, y, heads_second), vkt_shape3(B, TOKENS, ROW));
}

/* Computes attention, and the gradient of the sum of its squared results with respect to q, k and v. */
static void attend(vkt_tensor (*build)(vkt_graph *, vkt_tensor, vkt_rope_params), vkt_rope_params p, const float *x,
                   float *y, float *dx)
{
    vkt_graph *g = harness_graph();
    vkt_program *program = NULL;
    const vkt_tensor qkv = vkt_input(g, "qkv", VKT_F32, VKT_ROWS, vkt_shape3(B, TOKENS, 3 * ROW));
    const vkt_tensor out = build(g, qkv, p), loss = vkt_sum(g, vkt_mul(g, out, out));
    const vkt_tensor one = vkt_input(g, "one", VKT_F32, VKT_ROWS, vkt_shape0());
    vkt_tensor d;
    OK(vkt_gradients(g, &loss, &one, 1, &qkv, 1, &d));
    vkt_keep(g, out);
    vkt_keep(g, d);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &program));
    OK(vkt_program_write(program, qkv, x, 4 * B * TOKENS * 3 * ROW));
    OK(vkt_program_write(program, one, &(float){ 1 }, sizeof(float)));
    OK(vkt_program_run(program, NULL, NULL));
    harness_read_f32(program, g, out, y);
    harness_read_f32(program, g, d, dx);
    vkt_program_destroy(&program);
    vkt_graph_destroy(&g);
}

static void assert_close(const float *a, const float *b, size_t n, float most)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= most)) fail_msg("number %zu: %g and %g", i, (double)a[i], (double)b[i]);
}

/* `packed` and `apart` agree. Positions from 100000 on give the results of positions from 0 on, because attention with
 * rope depends only on the distances between tokens. */
static void attention_sees_distances(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = B * TOKENS * ROW };
    static float x[3 * N], y[3][N], dx[3][3 * N];
    fill(x, 3 * N, 3);
    for (int order = 0; order < 2; order++) {
        const vkt_rope_params near = { .order = (vkt_rope_order)order };
        const vkt_rope_params far = { .order = (vkt_rope_order)order, .position = 100000 };
        attend(packed, near, x, y[0], dx[0]);
        attend(apart, near, x, y[1], dx[1]);
        attend(packed, far, x, y[2], dx[2]);
        for (int i = 1; i < 3; i++) {
            assert_close(y[0], y[i], N, 2e-5f);
            assert_close(dx[0], dx[i], 3 * (size_t)N, 2e-4f);
        }
    }
}

/* ---- swiglu ---- */

/* As in PyTorch, a NaN stays NaN, and silu(-inf) is NaN. For a = -200 both gradients are 0. For a = 200 the gradients
 * are those of the product of a and b. */
static void swiglu_of_numbers_that_are_not_finite(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const float a[] = { NAN, 1, INFINITY, INFINITY, -INFINITY, -200, 200, 0 };
    static const float b[] = { 1, NAN, 2, -2, 1, 3, 3, INFINITY };
    enum { N = VKT_COUNT(a) };
    static const float want[N] = { NAN, NAN, INFINITY, -INFINITY, NAN, 0, 600, NAN };
    float y[N], da[N], db[N], dy[N];
    for (int i = 0; i < N; i++) dy[i] = 1;
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    vkt_tensor in[2], d[2];
    for (int i = 0; i < 2; i++) in[i] = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N));
    const vkt_tensor out = vkt_swiglu(g, in[0], in[1]), seed = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape1(N));
    OK(vkt_gradients(g, &out, &seed, 1, in, 2, d));
    vkt_keep(g, out);
    for (int i = 0; i < 2; i++) vkt_keep(g, d[i]);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, in[0], a, sizeof a));
    OK(vkt_program_write(p, in[1], b, sizeof b));
    OK(vkt_program_write(p, seed, dy, sizeof dy));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, out, y);
    harness_read_f32(p, g, d[0], da);
    harness_read_f32(p, g, d[1], db);
    for (int i = 0; i < N; i++)
        if (!(isnan(want[i]) ? isnan(y[i]) : y[i] == want[i] || fabsf(y[i] - want[i]) < 1e-30f))
            fail_msg("swiglu(%g, %g) is %g", (double)a[i], (double)b[i], (double)y[i]);
    assert_true(isnan(da[0]) && isnan(db[0]) && isnan(da[1]));
    assert_true(fabsf(da[5]) < 1e-30f && fabsf(db[5]) < 1e-30f && da[6] == 3 && db[6] == 200);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_positions_are_as_exact_as_near_ones),
        cmocka_unit_test(small_angles_keep_their_digits),
        cmocka_unit_test(first_positions_continue_a_sequence),
        cmocka_unit_test(a_graph_has_one_table),
        cmocka_unit_test(attention_sees_distances),
        cmocka_unit_test(swiglu_of_numbers_that_are_not_finite),
    };
    return cmocka_run_group_tests_name("rope", tests, harness_setup, harness_teardown);
}
