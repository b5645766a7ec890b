/* Tests encodings of points beyond the random cases (test_ops.c): NaN, points at the edges and far outside, large
 * numbers in a sine, and gradients that fixed-point sums add up. Also tests vkt_quantize and vkt_latent_grid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

static vkt_ctx *ctx;

#define OK(call) assert_int_equal((call), VKT_OK)

/* Tests points with NaN, at the edges and outside, in a dense level of 3 x 3 corners and in a hashed level. NaN stays
 * NaN. A point outside gives the result of the nearest point inside. At a corner, each feature is one entry of the
 * table. A point has no gradient along the axes on which it is outside. */
static void points_at_the_edges_of_a_hash_grid(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { N = 7, E = 16 + 16 };
    const vkt_hash_grid_params grid = {
        .levels = 2, .features = 1, .log2_table_size = 4, .base_resolution = 2, .per_level_scale = 3
    };
    static const float x[N][2] = { { 0, 0 },         { 1, 1 },   { 1, 0 },    { 2, -INFINITY },
                                   { -7, INFINITY }, { NAN, 1 }, { 0.25f, 3 } };
    float table[E], y[N][2], dx[N][2], dy[N][2];
    for (uint32_t i = 0; i < E; i++) table[i] = (float)(i * i % 37);
    for (uint32_t n = 0; n < N; n++) dy[n][0] = dy[n][1] = 1;
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor at = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(N, 2));
    const vkt_tensor t = vkt_input(g, "table", VKT_F32, VKT_ROWS, vkt_hash_grid_table(&grid, 2, NULL));
    const vkt_tensor seed = vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, vkt_shape2(N, 2));
    const vkt_tensor out = vkt_hash_grid(g, at, t, &grid);
    vkt_tensor d;
    OK(vkt_gradients(g, &out, &seed, 1, &at, 1, &d));
    vkt_keep(g, out);
    vkt_keep(g, d);
    OK(vkt_program_create_guarded(ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, at, x, sizeof x));
    OK(vkt_program_write(p, t, table, sizeof table));
    OK(vkt_program_write(p, seed, dy, sizeof dy));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, out, y[0]);
    harness_read_f32(p, g, d, dx[0]);
#define DENSE(i, j) table[(i) + 3 * (j)]
#define HASHED(i, j) table[16 + (((i) ^ (j)*2654435761u) & 15u)]
    static const uint32_t corner[][2] = { { 0, 0 }, { 1, 1 }, { 1, 0 }, { 1, 0 }, { 0, 1 } };
    for (uint32_t n = 0; n < 5; n++) {
        const uint32_t i = corner[n][0], j = corner[n][1];
        assert_true(y[n][0] == DENSE(2 * i, 2 * j) && y[n][1] == HASHED(6 * i, 6 * j));
    }
    assert_true(isnan(y[5][0]) && isnan(y[5][1]));
    assert_true(y[6][0] == (DENSE(0, 2) + DENSE(1, 2)) / 2 && y[6][1] == (HASHED(1, 6) + HASHED(2, 6)) / 2);
    assert_true(dx[0][0] == 2 * (DENSE(1, 0) - DENSE(0, 0)) + 6 * (HASHED(1, 0) - HASHED(0, 0)));
    assert_true(dx[1][1] == 2 * (DENSE(2, 2) - DENSE(2, 1)) + 6 * (HASHED(6, 6) - HASHED(6, 5)));
    assert_true(dx[3][0] == 0 && dx[3][1] == 0 && dx[4][0] == 0 && dx[4][1] == 0 && dx[6][1] == 0);
    assert_true(dx[6][0] == 2 * (DENSE(1, 2) - DENSE(0, 2)) + 6 * (HASHED(2, 6) - HASHED(1, 6)));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* ---- latents ---- */

/* Quantizes numbers at the bounds and outside, and NaN, to 2 bits: levels 0, 1/3, 2/3 and 1. A number in the middle
 * between two levels is rounded up. A gradient that would move a number further outside is 0. A gradient of the other
 * sign stays. */
static void quantized_numbers_at_the_bounds_and_outside(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { N = 10 };
    static const float x[N] = { 0, 1, -0.5f, -0.5f, 1.5f, 1.5f, 0.5f, INFINITY, -INFINITY, NAN },
                       dy[N] = { 1, -1, 1, -1, 1, -1, 3, 1, -1, 5 }, want[N] = { 0, 1, 0, 0, 1, 1, 2.0f / 3, 1, 0 },
                       gradient[N] = { 1, -1, 0, -1, 1, 0, 3, 1, -1, 5 };
    float y[N], dx[N];
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N));
    const vkt_tensor seed = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape1(N));
    const vkt_tensor out = vkt_quantize(g, in, 2, false);
    vkt_tensor d;
    OK(vkt_gradients(g, &out, &seed, 1, &in, 1, &d));
    vkt_keep(g, out);
    vkt_keep(g, d);
    OK(vkt_program_create_guarded(ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, in, x, sizeof x));
    OK(vkt_program_write(p, seed, dy, sizeof dy));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, out, y);
    harness_read_f32(p, g, d, dx);
    for (uint32_t i = 0; i < N; i++) {
        if (i + 1 < N) assert_true(fabsf(y[i] - want[i]) < 1e-6f);
        assert_true(dx[i] == gradient[i]);
    }
    assert_true(isnan(y[N - 1]));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* vkt_upsample2d resizes the grid to an image. A tile that vkt_latent_grid computes must have the numbers of the part
 * of this image from row TOP and column LEFT on. test_op_goldens.c compares vkt_upsample2d with PyTorch. */
static void a_tile_of_a_latent_grid_is_a_part_of_the_resized_image(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { F = 3, H = 5, W = 7, S = 4, R = 6, C = 8, TOP = 9, LEFT = 13 };
    float cells[F * H * W], whole[F * H * S * W * S], tile[R * C * F];
    const uint32_t at[2] = { TOP, LEFT };
    const vkt_latent_grid_params params = { .tile = { R, C }, .scale = S };
    for (uint32_t i = 0; i < F * H * W; i++) cells[i] = (float)(i * i % 23);
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor grid = vkt_input(g, "grid", VKT_F32, VKT_ROWS, vkt_shape3(F, H, W));
    const vkt_tensor origin = vkt_input(g, "origin", VKT_U32, VKT_ROWS, vkt_shape2(1, 2));
    const vkt_tensor part = vkt_latent_grid(g, grid, origin, &params);
    const vkt_upsample2d_params up = { .scale = { S, S }, .mode = VKT_UPSAMPLE_BILINEAR };
    const vkt_tensor all = vkt_upsample2d(g, vkt_reshape(g, grid, vkt_shape4(1, F, H, W)), &up);
    vkt_keep(g, part);
    vkt_keep(g, all);
    OK(vkt_program_create_guarded(ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, grid, cells, sizeof cells));
    OK(vkt_program_write(p, origin, at, sizeof at));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, part, tile);
    harness_read_f32(p, g, all, whole);
    for (uint32_t n = 0; n < R * C; n++)
        for (uint32_t f = 0; f < F; f++) {
            const uint32_t y = TOP + n / C, x = LEFT + n % C;
            assert_true(fabsf(tile[n * F + f] - whole[(f * H * S + y) * W * S + x]) < 1e-5f);
        }
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* ---- the gradient of a hash grid's table by sums of fixed-point numbers ---- */

/* A node of vkt_hash_grid: its grid, its points x and the gradient dy of its output. */
typedef struct sums {
    vkt_hash_grid_params grid;
    uint32_t n, dims;
    const float *x, *dy; /* x: (n, dims); dy: (n, levels * features) */
} sums;

static size_t table_size(const sums *c)
{
    const vkt_shape s = vkt_hash_grid_table(&c->grid, c->dims, NULL);
    return (size_t)s.dim[0] * s.dim[1];
}

/* Computes the gradient by a variant. Checks that a second run gives the same bits. The caller frees the result. */
static float *gradient_by(const sums *c, vkt_variant v)
{
    const uint64_t force = ctx->limits.choices.force;
    const size_t bytes = table_size(c) * sizeof(float);
    const uint32_t columns = c->grid.levels * c->grid.features;
    float *one = malloc(bytes), *two = malloc(bytes);
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(c->n, c->dims));
    const vkt_tensor t = vkt_input(g, "table", VKT_F32, VKT_ROWS, vkt_hash_grid_table(&c->grid, c->dims, NULL));
    const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, vkt_shape2(c->n, columns));
    const vkt_tensor y = vkt_hash_grid(g, x, t, &c->grid);
    vkt_tensor d;
    assert_true(one && two);
    OK(vkt_gradients(g, &y, &dy, 1, &t, 1, &d));
    vkt_keep(g, d);
    ctx->limits.choices.force = (uint64_t)1 << v;
    OK(vkt_program_create_guarded(ctx, g, NULL, NULL, &p));
    ctx->limits.choices.force = force;
    OK(vkt_program_write(p, x, c->x, (size_t)c->n * c->dims * sizeof(float)));
    OK(vkt_program_write(p, dy, c->dy, (size_t)c->n * columns * sizeof(float)));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, d, one);
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, d, two);
    assert_memory_equal(one, two, bytes);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    free(two);
    return one;
}

/* One level of 3 corners along each of two axes. Corner (i,j) is entry i + 3 j. */
static const vkt_hash_grid_params small_grid = {
    .levels = 1, .features = 1, .log2_table_size = 4, .base_resolution = 2, .per_level_scale = 1
};

/* All points are at corner (0,0) and have a weight of 1 there, so element 0 is the sum of dy. A sum of floats that
 * reaches 1 loses terms of 2^-30. A fixed-point sum keeps these terms, in any order, also if the large terms cancel. */
static void fixed_point_sums_keep_what_floats_lose(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { N = 4099 };
    static float x[N][2], dy[N];
    for (uint32_t n = 0; n < N; n++) dy[n] = n % 2 ? 0x1p-30f : n % 4 ? 1 : -1;
    dy[0] = dy[N - 1] = 0; /* 1,024 terms are 1 and 1,024 terms are -1: they cancel */
    const sums c = { small_grid, N, 2, x[0], dy };
    float *d = gradient_by(&c, VKT_V_ATOMIC);
    double want = 0;
    for (uint32_t n = 0; n < N; n++) want += dy[n];
    assert_true(want != 0 && d[0] == (float)want);
    for (uint32_t e = 1; e < 9; e++) assert_true(d[e] == 0);
    free(d);
}

/* Each point adds a product of a weight and dy to each of four corners. Let 2^ADDENDS be at least the number of all
 * products, and M the largest |dy|. Then the error of a sum of k products is at most k * 2^(ADDENDS - 62) * M, plus
 * 2^-23 of the result, plus 2^-126. The products are exact here, because weights have 9 bits and dy has 12 bits. */
static void the_error_of_fixed_point_sums_is_bounded(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { N = 5000, ADDENDS = 15 }; /* 20,000 products are fewer than 2^15 */
    static float x[N][2], dy[N];
    static const float size[] = { 0x1p-90f, 0x1p-20f, 1, 0x1p20f, 0x1p115f };
    for (size_t i = 0; i < VKT_COUNT(size); i++) {
        double want[9] = { 0 }, terms[9] = { 0 }, largest = 0;
        for (uint32_t n = 0; n < N; n++) {
            x[n][0] = (float)(n * 37 % 64) / 64, x[n][1] = (float)(n * 11 % 32) / 32;
            dy[n] = size[i] * ((float)(n * 2654435761u >> 20) / 4096 - 0.5f) * (n % 7 ? 1 : 0x1p-16f);
            largest = fmax(largest, fabsf(dy[n]));
            const float at[] = { 2 * x[n][0], 2 * x[n][1] };
            const uint32_t cx = (uint32_t)at[0], cy = (uint32_t)at[1];
            for (uint32_t k = 0; k < 4; k++) {
                const float fx = at[0] - (float)cx, fy = at[1] - (float)cy;
                const float w = (k & 1 ? fx : 1 - fx) * (k >> 1 ? fy : 1 - fy);
                const uint32_t e = cx + (k & 1) + 3 * (cy + (k >> 1));
                want[e] += (double)w * dy[n];
                terms[e]++;
            }
        }
        const sums c = { small_grid, N, 2, x[0], dy };
        float *d = gradient_by(&c, VKT_V_ATOMIC);
        for (uint32_t e = 0; e < 9; e++) {
            const double most = terms[e] * 0x1p-62 * (1 << ADDENDS) * largest + 0x1p-23 * fabs(want[e]) + 0x1p-126;
            if (!(fabs(d[e] - want[e]) <= most)) fail_msg("%g: [%u]: want %g, got %g", size[i], e, want[e], d[e]);
        }
        free(d);
    }
}

/* A product that is infinite or NaN makes its element infinite or NaN. No other element changes. */
static void infinite_gradients_do_not_become_finite(void **state)
{
    (void)state;
    harness_needs(ctx);
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    static const vkt_variant by[] = { VKT_V_ATOMIC, VKT_V_OWNED };
    /* The second point is in the middle of the cell of corners 4, 5, 7 and 8. */
    static const float x[][2] = { { 0, 0 }, { 0.75f, 0.75f }, { 0.25f, 0.25f }, { 0, 1 }, { 0, 0 } };
    for (size_t i = 0; i < 2 * VKT_COUNT(bad); i++) {
        const float dy[] = { 1, bad[i / 2], 1, 2, 1 };
        const sums c = { small_grid, VKT_COUNT(dy), 2, x[0], dy };
        float *d = gradient_by(&c, by[i % 2]);
        const float want[] = { 2.25f, 0.25f, 0, 0.25f, NAN, NAN, 2, NAN, NAN };
        for (uint32_t e = 0; e < 9; e++) assert_true(isnan(want[e]) ? !isfinite(d[e]) : d[e] == want[e]);
        free(d);
    }
    for (size_t i = 0; i < VKT_COUNT(by); i++) {
        const float dy[] = { 3e38f, 0, 0, 0, 3e38f }; /* the sum is too large for a float */
        const sums c = { small_grid, VKT_COUNT(dy), 2, x[0], dy };
        float *d = gradient_by(&c, by[i]);
        assert_true(d[0] == INFINITY && d[1] == 0);
        free(d);
    }
}

/* Runs random cases by fixed-point sums in all views (harness_view in harness.h), for instance with few work groups,
 * with small bindings and in 16 bits. The variant ATOMIC computes these sums. It is forced, because a CPU would not
 * choose it. */
static void fixed_point_sums_agree_in_all_views(void **state)
{
    (void)state;
    harness_needs(ctx);
    const uint64_t seeds = vkt_env_int("VKT_TEST_SMALL", 0) ? 2 : 6;
    harness_report report = { .faults = 0 };
    for (uint64_t seed = 101; seed < 101 + seeds; seed++)
        for (size_t i = 0; i < harness_n_views + 4 && !report.faults; i++) {
            harness_view view = i < harness_n_views ? harness_views[i] : harness_half_views[i - harness_n_views];
            subject s;
            view.force = VKT_V(ATOMIC);
            view.same_bits = false; /* harness_check_in has no results of view 0 to compare with */
            subject_make(&s, &vkt_op_hash_grid, seed);
            harness_check_in(ctx, &s, &view, &report);
            subject_free(&s);
        }
    if (report.faults) fail_msg("%s", report.text);
    assert_true(report.halves > 0);
}

/* Whole periods are subtracted exactly, so the sine and cosine of pi x are exact for every multiple x of 1/2, however
 * large. Infinity gives NaN. */
static void frequencies_of_whole_halves_are_exact(void **state)
{
    (void)state;
    harness_needs(ctx);
    static const float x[] = { 0.5f, 1, -1.5f, 4194303.5f, 16777216, -8388607, 3e38f, INFINITY, NAN };
    static const float want[][2] = { { 1, 0 }, { 0, -1 }, { 1, 0 }, { -1, 0 }, { 0, 1 }, { 0, -1 }, { 0, 1 } };
    enum { N = VKT_COUNT(x), FINITE = VKT_COUNT(want) };
    float y[N][2];
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor at = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(N, 1));
    const vkt_tensor out = vkt_frequency(g, at, 1);
    vkt_keep(g, out);
    OK(vkt_program_create_guarded(ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, at, x, sizeof x));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, out, y[0]);
    for (uint32_t n = 0; n < FINITE; n++) assert_true(y[n][0] == want[n][0] && y[n][1] == want[n][1]);
    for (uint32_t n = FINITE; n < N; n++) assert_true(isnan(y[n][0]) && isnan(y[n][1]));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void nothing_leaks(void **state)
{
    (void)state;
    vkt_ctx_destroy(&ctx);
    vkt_test_no_messages_and_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_at_the_edges_of_a_hash_grid),
        cmocka_unit_test(quantized_numbers_at_the_bounds_and_outside),
        cmocka_unit_test(a_tile_of_a_latent_grid_is_a_part_of_the_resized_image),
        cmocka_unit_test(fixed_point_sums_keep_what_floats_lose),
        cmocka_unit_test(the_error_of_fixed_point_sums_is_bounded),
        cmocka_unit_test(infinite_gradients_do_not_become_finite),
        cmocka_unit_test(fixed_point_sums_agree_in_all_views),
        cmocka_unit_test(frequencies_of_whole_halves_are_exact),
        cmocka_unit_test(nothing_leaks),
    };
    harness_open(&ctx);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
