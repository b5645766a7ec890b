/* Encodings of points that random cases do not reach: NaN, edges, points outside, and numbers of many periods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

static vkt_ctx *ctx;

#define OK(call) assert_int_equal((call), VKT_OK)

/* Points with NaN, at the edges and outside, in a dense level of 3 x 3 corners and in a hashed level. NaN stays NaN. A
 * point outside gives the result of the nearest point inside. At a corner, each feature is one entry of the table. A
 * point has no gradient along the axes on which it is outside. */
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
        cmocka_unit_test(frequencies_of_whole_halves_are_exact),
        cmocka_unit_test(nothing_leaks),
    };
    harness_open(&ctx);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
