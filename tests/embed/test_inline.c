/* Tests vktrain/vktrain.glsl and vktrain.hlsl. A shader of the application evaluates a network inline, directly from
 * the store's buffer. Except for rounding, the results must be those of the library's program. */
#include <math.h>
#include <string.h>

#include "embed/shader.h"
#include "eight_comp.spv.h"
#include "eight_hlsl.spv.h"
#include "plane_comp.spv.h"
#include "plane_hlsl.spv.h"
#include "single_comp.spv.h"
#include "single_hlsl.spv.h"
#include "space_comp.spv.h"
#include "space_hlsl.spv.h"

#define DO(call) assert_int_equal((call), VKT_OK)
#define STORAGE VK_BUFFER_USAGE_STORAGE_BUFFER_BIT

enum { POINTS = 301, HIDDEN = 16, LANES = 16, MOST = 1 << 13 };

/* The allowed error, relative to the largest result. A driver may add in another order or fuse operations. (Lavapipe
 * gives equal bits.) A result comes from four sums, of up to 8, 30, 16 and 16 products. These sums have 70 roundings of
 * 2^-24 in total, which is 4e-6. The bound is larger, because a product may be larger than the largest result. */
#define CLOSE 1e-5f

/* ---- the network ---- */

typedef struct network {
    uint32_t dims, frequencies;
    vkt_hash_grid_params grid;
    vkt_hash_grid_level level[VKT_HASH_GRID_MAX_LEVELS];
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    float x[POINTS * 3], y[POINTS * 3]; /* the points, and the program's results for them */
} network;

/* Returns random number i, in [-1, 1). */
static float number(uint32_t i)
{
    return (float)(i * 2654435761u >> 8) / (float)(1 << 23) - 1;
}

/* Fills n->x with points. The first 8 are corners of the unit square or cube. Most of the other points are inside it,
 * and some are outside. */
static void upload_points(network *n)
{
    for (uint32_t i = 0; i < POINTS * n->dims; i++) {
        const uint32_t point = i / n->dims;
        n->x[i] = point < 8 ? (float)(point >> i % n->dims & 1) : 0.55f * number(i) + 0.5f;
    }
}

static void fill(network *n)
{
    static float w[MOST];
    for (uint32_t i = 0; i < vkt_store_count(n->store); i++) {
        const vkt_shape s = vkt_store_shape(n->store, i);
        const uint32_t elements = s.dim[0] * (s.rank > 1 ? s.dim[1] : 1);
        assert_true(elements <= MOST);
        for (uint32_t k = 0; k < elements; k++) w[k] = 0.4f * number(k + 7919 * i);
        DO(vkt_store_write(n->store, i, VKT_PART_VALUE, w));
    }
}

/* Makes the network, and computes n->y. The parameters have this order: the table, w1, b1, w2, b2, w3. */
static void make(network *n, vkt_ctx *ctx)
{
    const vkt_host host = vkt_ctx_host(ctx);
    DO(vkt_graph_create(&host, &n->g));
    vkt_graph *g = n->g;
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(POINTS, n->dims));
    const vkt_tensor table = vkt_param(g, "table", vkt_hash_grid_table(&n->grid, n->dims, n->level));
    const vkt_tensor both[] = { vkt_hash_grid(g, x, table, &n->grid), vkt_frequency(g, x, n->frequencies) };
    const vkt_tensor e = vkt_concat(g, both, 2, 1);
    const vkt_mlp_layer layers[] = {
        { vkt_param(g, "w1", vkt_shape2(HIDDEN, vkt_tensor_shape(g, e).dim[1])),
          vkt_param(g, "b1", vkt_shape1(HIDDEN)) },
        { vkt_param(g, "w2", vkt_shape2(HIDDEN, HIDDEN)), vkt_param(g, "b2", vkt_shape1(HIDDEN)) },
        { .weight = vkt_param(g, "w3", vkt_shape2(3, HIDDEN)) },
    };
    const vkt_tensor y = vkt_mlp(g, e, layers, 3);
    vkt_keep(g, y);
    DO(vkt_store_create(ctx, g, &n->store));
    fill(n);
    upload_points(n);
    DO(vkt_program_create(ctx, g, n->store, NULL, &n->p));
    DO(vkt_program_write(n->p, x, n->x, POINTS * n->dims * sizeof n->x[0]));
    DO(vkt_program_run(n->p, NULL, NULL));
    DO(vkt_program_read(n->p, y, n->y, sizeof n->y));
}

typedef struct push {
    uint32_t points, parameter[6], unused;
} push;

/* Binds the range of the store from the first parameter to the last one. Writes to *pc the offset of each parameter
 * from the start of this range, in floats. */
static void bind_store(const shader *s, const vkt_store *store, push *pc)
{
    const vkt_vk_buffer first = vkt_store_buffer(store, 0, VKT_PART_VALUE);
    uint64_t end = 0;
    for (uint32_t i = 0; i < vkt_store_count(store); i++) {
        const vkt_vk_buffer at = vkt_store_buffer(store, i, VKT_PART_VALUE);
        assert_true(at.buffer == first.buffer && at.offset_bytes >= first.offset_bytes);
        pc->parameter[i] = (uint32_t)((at.offset_bytes - first.offset_bytes) / 4);
        end = at.offset_bytes + at.bytes;
    }
    shader_bind(s, 0, first.buffer, first.offset_bytes, end - first.offset_bytes);
}

/* ---- the program and the shader ---- */

/* Runs one module on the points, and compares the results with those of the program. */
static void compare(const network *n, app *a, const uint32_t *words, size_t bytes)
{
    shader s;
    push pc = { .points = POINTS };
    app_buffer grid = app_buffer_make(a, sizeof n->level, STORAGE), x = app_buffer_make(a, sizeof n->x, STORAGE),
               y = app_buffer_make(a, sizeof n->y, STORAGE);
    shader_open(&s, a, words, bytes);
    memcpy(grid.mapped, n->level, sizeof n->level);
    memcpy(x.mapped, n->x, sizeof n->x);
    memset(y.mapped, 0xff, sizeof n->y); /* NaN */
    bind_store(&s, n->store, &pc);
    shader_bind(&s, 1, grid.handle, 0, grid.bytes);
    shader_bind(&s, 2, x.handle, 0, x.bytes);
    shader_bind(&s, 3, y.handle, 0, y.bytes);
    shader_dispatch(&s, &pc, (POINTS + LANES - 1) / LANES);
    float most = 0;
    for (uint32_t i = 0; i < POINTS * 3; i++) most = fmaxf(most, fabsf(n->y[i]));
    assert_true(most > 0.1f);
    for (uint32_t i = 0; i < POINTS * 3; i++) {
        const float got = ((const float *)y.mapped)[i];
        if (!(fabsf(got - n->y[i]) <= CLOSE * most))
            fail_msg("point %u: %.9g inline, %.9g by the program", i / 3, (double)got, (double)n->y[i]);
    }
    shader_close(&s);
    app_buffer_free(a, &grid);
    app_buffer_free(a, &x);
    app_buffer_free(a, &y);
}

/* Compares the results of the GLSL module and of the HLSL module with the results of the program. */
static void compare_both(network *n, const uint32_t *glsl, size_t glsl_bytes, const uint32_t *hlsl, size_t hlsl_bytes)
{
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    make(n, ctx);
    compare(n, &a, glsl, glsl_bytes);
    compare(n, &a, hlsl, hlsl_bytes);
    vkt_program_destroy(&n->p);
    vkt_store_destroy(&n->store);
    vkt_graph_destroy(&n->g);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}
#define COMPARE(n, name) \
    compare_both(n, name##_comp_spv, sizeof name##_comp_spv, name##_hlsl_spv, sizeof name##_hlsl_spv)

/* The grids of these tests have two or three dimensions. The grids of `plane` and `space` have dense levels first, and
 * hashed levels after them. `plane` has 14 features, which are no whole number of vec4s. tests/CMakeLists.txt compiles
 * the shaders with the same sizes as below. */
static void a_plane_is_as_the_program_has_it(void **state)
{
    (void)state;
    static network n = {
        .dims = 2,
        .frequencies = 3,
        .grid = { .levels = 7, .features = 2, .log2_table_size = 9, .base_resolution = 5, .per_level_scale = 1.7 }
    };
    COMPARE(&n, plane);
    assert_true(n.level[0].mask == 0 && n.level[6].mask == 511);
}

static void space_is_as_the_program_has_it(void **state)
{
    (void)state;
    static network n = {
        .dims = 3,
        .frequencies = 2,
        .grid = { .levels = 4, .features = 4, .log2_table_size = 8, .base_resolution = 3, .per_level_scale = 2 }
    };
    COMPARE(&n, space);
    assert_true(n.level[0].mask == 0 && n.level[3].mask == 255);
}

static void one_feature_and_eight_are_as_the_program_has_them(void **state)
{
    (void)state;
    static network single = {
        .dims = 2,
        .frequencies = 2,
        .grid = { .levels = 8, .features = 1, .log2_table_size = 9, .base_resolution = 4, .per_level_scale = 1.4 }
    };
    static network eight = {
        .dims = 3,
        .frequencies = 1,
        .grid = { .levels = 3, .features = 8, .log2_table_size = 8, .base_resolution = 3, .per_level_scale = 2 }
    };
    COMPARE(&single, single);
    COMPARE(&eight, eight);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plane_is_as_the_program_has_it),
        TEST(space_is_as_the_program_has_it),
        TEST(one_feature_and_eight_are_as_the_program_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
