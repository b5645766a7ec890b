/* Tests products by tiles in shared memory (shaders/lib/blocks.glsl): which tile a product gets, and that each tile
 * gives right results in every kernel that uses it. Long sums may be divided into slices, which several work groups
 * compute. The kernels are for GPUs, but the tests run on any device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/product/blocks.h"
#include "ops/harness.h"
#include "kernel/ids.h"
#include "support/host.h"

#include "abi/abi.h"
#include "abi/gemm_shared.abi.h"

static void matmul_make(subject *s, uint32_t count, uint32_t m, uint32_t n, uint32_t k, uint32_t trans);

/* ---- the choice of tiles ---- */

static const vkt_limits gpu = { .cores = 64,
                                .subgroup_size = 32,
                                .max_workgroup_lanes = 1024,
                                .max_groups = 65535,
                                .shared_bytes = 49152,
                                .traits = &vkt_class_traits[VKT_CLASS_OTHER] };
static const vkt_limits least = { .cores = 64,
                                  .subgroup_size = 32,
                                  .max_workgroup_lanes = 128,
                                  .max_groups = 65535,
                                  .shared_bytes = 16384,
                                  .traits = &vkt_class_traits[VKT_CLASS_OTHER] };

static void tiles_are_chosen_by_shape_and_device(void **state)
{
    (void)state;
    vkt_limits few = gpu, many = gpu;
    few.cores = 4;
    many.cores = 132;
    vkt_limits arc = gpu, adreno = gpu;
    arc.traits = &vkt_class_traits[VKT_CLASS_INTEL];
    adreno.traits = &vkt_class_traits[VKT_CLASS_MOBILE];
    const struct {
        const vkt_limits *lim;
        vkt_blocks_job job;
        uint64_t most_slices;
        uint32_t bm, bn, slices;
    } cases[] = {
        { &gpu, { 4096, 4096, 4096, 1 }, 100, 128, 128, 1 },
        { &least, { 4096, 4096, 4096, 1 }, 100, 64, 64, 1 },
        { &gpu, { 512, 512, 512, 1 }, 1, 64, 64, 1 },       /* larger tiles would leave cores idle */
        { &gpu, { 512, 512, 512, 1 }, 100, 64, 64, 2 },     /* two slices of a sum keep the cores busy */
        { &few, { 512, 512, 512, 1 }, 100, 128, 128, 1 },   /* 16 tiles are enough for 4 cores */
        { &many, { 512, 512, 512, 1 }, 100, 32, 32, 2 },    /* no tile keeps 132 cores busy: the smallest is chosen */
        { &gpu, { 32, 100000, 800, 1 }, 1, 32, 64, 1 },     /* a tile of 64 rows would be half empty */
        { &gpu, { 17, 784, 60000, 1 }, 1000, 32, 64, 10 },  /* a small result, long sums */
        { &gpu, { 17, 784, 60000, 1 }, 4, 32, 32, 4 },      /* memory for 4 slices only */
        { &gpu, { 10, 784, 60000, 1 }, 1000, 16, 128, 19 }, /* a tile for at most 16 rows */
        { &gpu, { 10, 784, 60000, 1 }, 4, 16, 64, 4 },
        { &gpu, { 30, 7, 100, 1 }, 100, 32, 32, 1 },       /* the sums are too short to split */
        { &gpu, { 128, 128, 6000, 1 }, 1000, 64, 64, 16 }, /* tiles of 128 x 128 would give only 11 work groups */
        { &arc, { 4096, 4096, 4096, 1 }, 1, 64, 64, 1 },
        { &adreno, { 4096, 4096, 4096, 1 }, 1, 64, 64, 1 },
        { &gpu, { 125, 126, 20, 128 }, 1, 128, 128, 1 }, /* 128 products have enough tiles */
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_blocks b;
        assert_true(vkt_blocks_plan(cases[i].lim, &cases[i].job, cases[i].most_slices, &b));
        const uint32_t *s = b.spec, bm = s[BLOCKS_SPEC_BM], bn = s[BLOCKS_SPEC_BN];
        if (bm != cases[i].bm || bn != cases[i].bn || b.slices != cases[i].slices)
            fail_msg("case %zu: %u x %u in %u slices", i, bm, bn, b.slices);
        assert_int_equal(s[BLOCKS_SPEC_LANES], bm / s[BLOCKS_SPEC_TM] * (bn / s[BLOCKS_SPEC_TN]));
        assert_true(s[BLOCKS_SPEC_LANES] <= cases[i].lim->max_workgroup_lanes);
        assert_true(s[BLOCKS_SPEC_TM] * s[BLOCKS_SPEC_TN] <= cases[i].lim->traits->tile_sums);
        assert_true(2 * 4 * BLOCKS_K * (bm + bn) <= cases[i].lim->shared_bytes);
        assert_int_equal(b.slice % BLOCKS_K, 0);
        assert_true((uint64_t)b.slice * b.slices >= cases[i].job.k);
        assert_true((uint64_t)b.slice * (b.slices - 1) < cases[i].job.k);
    }
}

/* A vkt_blocks_job may name a tile, for instance one that was measured to be the fastest. vkt_blocks_plan uses this
 * tile if it is in the list of tiles for the job's number of rows (m), and if the device can compute this tile. */
static void a_wanted_tile_is_used(void **state)
{
    (void)state;
    static const struct {
        const vkt_limits *lim;
        uint64_t m;
        vkt_tile tile;
        uint32_t bm, bn;
    } cases[] = {
        { &gpu, 4096, { 32, 64, 4, 4 }, 32, 64 },     { &gpu, 4096, { 64, 64, 4, 4 }, 64, 64 },
        { &gpu, 4096, { 48, 64, 4, 4 }, 128, 128 },   /* there is no such tile */
        { &least, 4096, { 128, 128, 8, 8 }, 64, 64 }, /* too many lanes */
        { &gpu, 9, { 16, 64, 4, 4 }, 16, 64 },        { &gpu, 9, { 128, 128, 8, 8 }, 16, 128 },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_blocks b;
        const vkt_blocks_job job = { .m = cases[i].m, .n = 1 << 20, .k = 4096, .count = 1, .tile = cases[i].tile };
        assert_true(vkt_blocks_plan(cases[i].lim, &job, 1, &b));
        const vkt_tile used = vkt_blocks_tile(&b);
        if (used.m != cases[i].bm || used.n != cases[i].bn) fail_msg("case %zu: %u x %u", i, used.m, used.n);
        assert_int_equal(vkt_tile_is(used, cases[i].tile), cases[i].tile.m == cases[i].bm);
    }
    uint32_t n = 0;
    while (vkt_blocks_tile_at(n).m) n++;
    assert_int_equal(n, 7);
}

/* The first iteration has no results of tuning. In the second iteration, the results of tuning (vkt_tuned) have a tile
 * for the key of the product, and the product uses this tile. */
static void tuned_tiles_are_found_by_key(void **state)
{
    (void)state;
    vkt_tuned tuned = { .variants = VKT_V(SHARED), .tile = { 32, 32, 4, 4 } };
    vkt_limits lim = gpu;
    lim.max_storage_range_bytes = 1u << 30;
    for (int i = 0; i < 2; i++) {
        vkt_emit e;
        subject s;
        matmul_make(&s, 4, 512, 512, 64, 0);
        assert_int_equal(vkt_lower(s.g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
        assert_int_equal(e.picked[0].tile.m, i ? 32 : 128);
        assert_int_equal(e.list[0].spec[BLOCKS_SPEC_BM], i ? 32 : 128);
        tuned.key = e.picked[0].key;
        lim.choices.tuned = &tuned;
        lim.choices.n_tuned = 1;
        vkt_lower_free(&e);
        subject_free(&s);
    }
}

/* On CPU drivers, all loops of an invocation together have at most 60,000 iterations (trait largest_loop), because
 * Mesa 22.3 ends loops silently after 65,535 iterations. GPUs have no such limit. */
static void loops_that_would_be_too_long_are_refused(void **state)
{
    (void)state;
    vkt_limits cpu = gpu;
    vkt_blocks b;
    cpu.traits = &vkt_class_traits[VKT_CLASS_CPU];
    vkt_limits few = cpu;
    few.max_groups = 7;
    assert_true(vkt_blocks_plan(&cpu, &(vkt_blocks_job){ 32, 32, 190000, 1 }, 1, &b));
    assert_false(vkt_blocks_plan(&cpu, &(vkt_blocks_job){ 32, 32, 200000, 1 }, 1, &b));
    assert_true(vkt_blocks_plan(&gpu, &(vkt_blocks_job){ 32, 32, 200000, 1 }, 1, &b));
    assert_true(vkt_blocks_plan(&cpu, &(vkt_blocks_job){ 32, 32, 200000, 1 }, 2, &b));
    assert_false(vkt_blocks_plan(&few, &(vkt_blocks_job){ 1024, 1024, 65536, 1 }, 1, &b));
}

/* ---- matrix products ---- */

/* Sets the traits of a device that wants 128 work groups. A tile has at most 128 x 128 elements, and a lane at most 64
 * sums. */
static vkt_traits traits;
static void as_tested(vkt_limits *lim)
{
    traits = *lim->traits;
    traits.groups_shared = 128;
    traits.tile_side = 128;
    traits.tile_sums = 64;
    lim->traits = &traits;
}

/* Sets the traits of as_tested, but allows a lane at most 16 sums. */
static void with_few_sums(vkt_limits *lim)
{
    as_tested(lim);
    traits.tile_sums = 16;
}

/* Returns the tile of the first dispatch by the variant SHARED or SPLIT_K in the subject (one op with one case:
 * check/subject.h): 1000 times the tile's rows, plus the tile's columns. Returns 0 if there is no such dispatch. */
static uint32_t tile_rows(const subject *s, const harness_view *view)
{
    vkt_limits lim = gpu;
    vkt_emit e;
    uint32_t rows = 0;
    lim.subgroup_size = 8;
    lim.max_storage_range_bytes = 1u << 30;
    lim.choices.force = view->force;
    view->change(&lim);
    assert_int_equal(vkt_lower(s->g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    for (size_t i = 0; i < e.n && !rows; i++)
        for (size_t k = 0; k < e.n_picked; k++)
            if (e.picked[k].node == e.list[i].node &&
                (e.picked[k].variant == VKT_V_SHARED || e.picked[k].variant == VKT_V_SPLIT_K))
                rows = 1000 * e.list[i].spec[BLOCKS_SPEC_BM] + e.list[i].spec[BLOCKS_SPEC_BN];
    vkt_lower_free(&e);
    return rows;
}

/* Checks a subject in the 16-bit view `in_16`. `force` is a variant with cooperative matrices. */
static void check_coop(subject *s, uint64_t force, const harness_view *in_16, harness_report *report)
{
    harness_view view = *in_16;
    const unsigned before = report->coops;
    view.force = force;
    harness_check_in(harness_ctx, s, &view, report);
    assert_int_equal(report->coops, before + 1);
}

/* Checks that the subject uses the tile `tile` (a value that tile_rows returns), and that the subject's results are
 * right. `half`: also checks the results with values that are stored in 16 bits. `coop`: also checks the kernels with
 * cooperative matrices, if the device has such matrices. `flexible`, together with `coop`: also checks the kernels with
 * flexible matrices. */
static void check(subject *s, uint64_t force, uint32_t tile, bool half, bool coop, bool flexible)
{
    const harness_view view = { "in shared memory", as_tested, .force = force };
    harness_report report = { .faults = 0 };
    assert_int_equal(tile_rows(s, &view), tile);
    subject_forward(s);
    subject_backward(s);
    /* With VKT_TEST_SMALL, the full check runs this test on two drivers, and only one of them has cooperative matrices.
     * The other driver checks the two views without such matrices. So on a device with cooperative matrices, a case
     * that uses such matrices skips these two views. */
    const bool only_coop = coop && vkt_env_int("VKT_TEST_SMALL", 0) && harness_has_matrices();
    if (!only_coop) harness_check_in(harness_ctx, s, &view, &report);
    if (half && !only_coop && !report.faults) {
        harness_view in_half = harness_half_views[s->seed % 2];
        in_half.force = force;
        harness_check_in(harness_ctx, s, &in_half, &report);
        assert_int_equal(report.halves, 1);
    }
    if (coop && !report.faults && harness_has_matrices()) {
        harness_check_in(harness_ctx, s, &harness_split_view, &report);
        assert_int_equal(report.splits, 1);
        check_coop(s, VKT_V(COOP), &harness_half_views[1], &report);
        if (flexible && !report.faults && harness_has_flexible())
            check_coop(s, VKT_V(COOP2), &harness_half_views[1], &report);
    }
    if (coop && !report.faults && harness_ctx->limits.coop_bf16.m)
        check_coop(s, VKT_V(COOP), &harness_half_views[0], &report);
    if (report.faults) fail_msg("%s", report.text);
}

/* Makes `count` products c = a b, and the gradients of a and b. trans & 1: a is stored transposed. trans & 2: b is
 * stored transposed. */
static void matmul_make(subject *s, uint32_t count, uint32_t m, uint32_t n, uint32_t k, uint32_t trans)
{
    const bool ta = trans & 1, tb = trans & 2;
    subject_begin(s, 1);
    subject_input(s, &(vkt_case_input){ .shape = vkt_shape3(count, ta ? k : m, ta ? m : k), .lo = -1, .hi = 1 }, NULL);
    subject_input(s, &(vkt_case_input){ .shape = vkt_shape3(count, tb ? n : k, tb ? k : n), .lo = -1, .hi = 1 }, NULL);
    subject_set_output(s, vkt_matmul(s->g, s->in[0].t, s->in[1].t, ta, tb));
}

static void check_matmul(uint32_t count, uint32_t m, uint32_t n, uint32_t k, uint32_t trans, uint64_t force,
                         uint32_t tile)
{
    /* Mesa takes seconds to compile a kernel with cooperative matrices. With VKT_TEST_SMALL, the test uses these
     * kernels only if A is transposed. */
    const bool coop = !vkt_env_int("VKT_TEST_SMALL", 0) || trans & 1;
    const bool half = n % 4 == 0 || (trans & 1 ? m : k) % 4 == 0 || (trans & 2 && k % 4 == 0);
    subject s;
    matmul_make(&s, count, m, n, k, trans);
    check(&s, force, tile, half, coop, true);
    subject_free(&s);
}

static void every_tile_multiplies_in_every_orientation(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const uint32_t tiles[][3] = {
        { 126, 125, 128128 }, { 61, 63, 64064 },  { 30, 59, 32064 },
        { 29, 31, 32032 },    { 14, 126, 16128 }, { 13, 59, 16064 },
    };
    const bool small = vkt_env_int("VKT_TEST_SMALL", 0);
    for (uint32_t i = small; i < VKT_COUNT(tiles); i++) {
        /* The first call has sizes m, n and k that are no multiples of 4. The second call has only multiples of 4. In
         * both calls, i decides which of A and B are stored transposed. With six tiles, each call has all four
         * combinations. With VKT_TEST_SMALL there are five tiles, and each tile makes only one of the two calls. */
        if (!small || i % 2) check_matmul(128, tiles[i][0], tiles[i][1], 19, i % 4, VKT_V(SHARED), tiles[i][2]);
        if (!small || i % 2 == 0)
            check_matmul(128, tiles[i][0] / 4 * 4, tiles[i][1] / 4 * 4, 36, small ? i % 4 : (7 - i) % 4, VKT_V(SHARED),
                         tiles[i][2]);
    }
}

/* A device with few registers uses a tile of 64 x 64 with 4 x 4 sums in each lane. */
static void lanes_with_few_sums_multiply(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const harness_view view = { "with few sums", with_few_sums, .force = VKT_V(SHARED) };
    harness_report report = { .faults = 0 };
    subject s;
    matmul_make(&s, 128, 61, 63, 19, 2);
    assert_int_equal(tile_rows(&s, &view), 64064);
    subject_forward(&s);
    subject_backward(&s);
    harness_check_in(harness_ctx, &s, &view, &report);
    subject_free(&s);
    if (report.faults) fail_msg("%s", report.text);
}

static void unroll(vkt_limits *lim)
{
    static vkt_traits unrolled;
    unrolled = *lim->traits;
    unrolled.tile_unrolls = 1;
    lim->traits = &unrolled;
}

static void unrolled_loops_multiply(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const harness_view view = { "with an unrolled loop", unroll, .force = VKT_V(SHARED) };
    harness_report report = { .faults = 0 };
    vkt_limits lim = gpu;
    vkt_blocks b;
    subject s;
    unroll(&lim);
    assert_true(vkt_blocks_plan(&lim, &(vkt_blocks_job){ 30, 33, 37, 2 }, 1, &b));
    assert_int_equal(vkt_blocks_whole(&b, 30, 33, 37), BLOCKS_UNROLLED);
    matmul_make(&s, 2, 30, 33, 37, 1);
    subject_forward(&s);
    subject_backward(&s);
    harness_check_in(harness_ctx, &s, &view, &report);
    if (report.faults) fail_msg("%s", report.text);
    subject_free(&s);
}

static void slices_of_long_sums_add_up(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    check_matmul(16, 61, 60, 2060, 0, VKT_V(SPLIT_K), 64064);
    check_matmul(1, 9, 13, 5003, 3, VKT_V(SPLIT_K), 16064);
    check_matmul(1, 19, 13, 5003, 3, VKT_V(SPLIT_K), 32032);
}

/* Checks two products A^T B. A and B have k rows each, so a block of the sum over k is a range of whole rows. `half`:
 * the view stores some value in 16 bits. */
static void check_blocks(uint32_t m, uint32_t n, uint32_t k, const harness_view *view, uint64_t force, bool half)
{
    harness_report report = { .faults = 0 };
    harness_view small = *view;
    subject s;
    matmul_make(&s, 2, m, n, k, 1);
    subject_forward(&s);
    subject_backward(&s);
    small.force = force;
    small.may_refuse = false;
    harness_check_in(harness_ctx, &s, &small, &report);
    assert_int_equal(report.coops + report.splits, force == VKT_V(COOP));
    assert_int_equal(report.halves, half);
    if (report.faults) fail_msg("%s", report.text);
    subject_free(&s);
}

/* Limits a binding to 160 KiB. If subgroups have 8 lanes, the sum of 269,876 products in the test below is computed in
 * 212 blocks: 211 blocks of 1,276 products each, and a last block of 640. Each block is split into slices. The last
 * block has fewer slices than the other blocks. */
static void with_160_kib(vkt_limits *lim)
{
    as_tested(lim);
    lim->max_storage_range_bytes = 160 << 10;
}

/* With bindings of 16 KiB or 160 KiB, the sums over k are computed in blocks. The blocks are added up in C or, if C is
 * stored in 16 bits, in a separate f32 buffer. */
static void blocks_of_long_sums_add_up(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    check_blocks(9, 13, 603, &harness_views[3], VKT_V(SHARED), false);
    check_blocks(4, 4, 269876, &(harness_view){ "in 212 blocks", with_160_kib }, VKT_V(SPLIT_K), false);
    check_blocks(60, 60, 604, &harness_half_views[2], VKT_V(SHARED), true);
    /* On a CPU with subgroups of 16 lanes, one tile of 64 x 64 has all 60 x 60 sums. */
    check_blocks(60, 60, 604, &harness_half_views[3], VKT_V(PACKED), true);
    if (!harness_has_matrices()) return;
    check_blocks(9, 13, 603, &harness_half_views[3], VKT_V(COOP), false);
    check_blocks(12, 16, 604, &harness_half_views[3], VKT_V(COOP), true);
    if (harness_ctx->limits.coop_bf16.m) check_blocks(9, 13, 603, &harness_half_views[2], VKT_V(COOP), false);
    if (harness_ctx->limits.coop_bf16.m) check_blocks(12, 16, 604, &harness_half_views[2], VKT_V(COOP), true);
    harness_view split = harness_split_view;
    split.change = harness_views[3].change;
    check_blocks(9, 13, 603, &split, VKT_V(COOP), false);
}

/* The last block of a sum is shorter than the other blocks, so it must have fewer slices. Otherwise its last slices
 * would be empty, and an empty slice loads beyond the operands. Such loads change no result, so the test checks the
 * number of slices of each dispatch. */
static void no_slice_is_empty(void **state)
{
    (void)state;
    static const struct {
        vkt_variant variant;
        vkt_precision precision;
        uint16_t kernel;
    } cases[] = { { VKT_V_SPLIT_K, VKT_PRECISION_F32, VKT_K_GEMM_SHARED },
                  { VKT_V_COOP, VKT_PRECISION_F16, VKT_K_GEMM_COOP },
                  { VKT_V_COOP, VKT_PRECISION_F32_SPLIT, VKT_K_GEMM_SPLIT } };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_limits lim = gpu;
        vkt_emit e;
        subject s;
        uint32_t most = 0, fewest = UINT32_MAX;
        lim.max_storage_range_bytes = 600 << 10; /* 195 blocks of 1,196 products, and one of 608 */
        lim.coop = (vkt_coop){ 16, 16, 16 };
        lim.choices.force = (uint64_t)1 << cases[i].variant;
        matmul_make(&s, 1, 4, 4, 233828, 1);
        assert_int_equal(vkt_lower(s.g, &lim, NULL, (vkt_storage){ .precision = cases[i].precision }, &e), VKT_OK);
        for (size_t k = 0; k < e.n; k++) {
            vkt_gemm_shared_push push;
            if (e.list[k].kernel != cases[i].kernel) continue;
            memcpy(&push, e.list[k].push, sizeof push);
            const uint32_t slices = e.list[k].groups[1];
            assert_true(slices > 0 && push.slice * (slices - 1) < push.K && push.slice * slices >= push.K);
            most = VKT_MAX(most, slices);
            fewest = VKT_MIN(fewest, slices);
        }
        if (fewest >= most) fail_msg("case %zu: %u to %u slices", i, fewest, most);
        vkt_lower_free(&e);
        subject_free(&s);
    }
}

/* ---- convolutions ---- */

typedef struct conv {
    vkt_shape x, w;
    vkt_conv2d_params p;
    uint32_t tile; /* tile_rows of the kernel that computes y */
    bool no_bias;
} conv;

/* Checks y = conv2d(x, w, bias) and all gradients. */
static void check_conv(const conv *c, uint64_t seed)
{
    subject s;
    subject_begin(&s, seed);
    subject_input(&s, &(vkt_case_input){ .layout = VKT_BATCH_LAST, .shape = c->x, .lo = -1, .hi = 1 }, NULL);
    subject_input(&s, &(vkt_case_input){ .shape = c->w, .lo = -1, .hi = 1 }, NULL);
    if (!c->no_bias) subject_input(&s, &(vkt_case_input){ .shape = vkt_shape1(c->w.dim[0]), .lo = -1, .hi = 1 }, NULL);
    const vkt_tensor bias = c->no_bias ? (vkt_tensor){ 0 } : s.in[2].t;
    subject_set_output(&s, vkt_conv2d(s.g, s.in[0].t, s.in[1].t, bias, &c->p));
    check(&s, VKT_V(SHARED), c->tile, true, true, false);
    subject_free(&s);
}

static void every_tile_convolves(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const conv cases[] = {
        { vkt_shape4(63, 3, 16, 17), vkt_shape4(126, 3, 3, 2), { .pad = { 1, 1 } }, 128128 },
        { vkt_shape4(34, 125, 22, 23), vkt_shape4(3, 125, 1, 1), { .stride = { 1, 1 } }, 16128 }, /* dx: 128 x 128 */
        { vkt_shape4(67, 7, 23, 22), vkt_shape4(64, 7, 3, 3), { .stride = { 2, 2 }, .pad = { 1, 0 } }, 64064 },
        { vkt_shape4(17, 10, 13, 19),
          vkt_shape4(40, 5, 3, 5),
          { .dilation = { 2, 1 }, .pad = { 2, 2 }, .groups = 2 },
          32064 },
        { vkt_shape4(200, 17, 1, 1), vkt_shape4(24, 17, 1, 1), { .stride = { 1, 1 } }, 32032 },
        { vkt_shape4(7, 3, 9, 11), vkt_shape4(5, 3, 3, 3), { .pad = { 1, 1 } }, 16064 },
        { vkt_shape4(20, 8, 5, 5), vkt_shape4(6, 4, 1, 1), { .groups = 2 }, 16064 }, /* a group's w is (3,4) */
    };
    const size_t first = vkt_env_int("VKT_TEST_SMALL", 0) ? 2 : 0;
    for (size_t i = first; i < VKT_COUNT(cases); i++) check_conv(&cases[i], i);
}

/* The convolutions have few pixels and many channels. So the sums of y are computed in slices, which another kernel
 * adds. In the first two cases, the sums of dx are also computed in slices. */
static void slices_of_convolutions_add_up(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const conv cases[] = {
        { vkt_shape4(3, 130, 5, 5), vkt_shape4(70, 130, 3, 3), { .pad = { 1, 1 } }, 32032 },
        { vkt_shape4(4, 70, 6, 5),
          vkt_shape4(70, 35, 3, 5),
          { .stride = { 2, 1 }, .pad = { 1, 2 }, .groups = 2 },
          32032 },
        { vkt_shape4(4, 520, 3, 3), vkt_shape4(12, 520, 1, 1), { .stride = { 1, 1 } }, 16064 },
    };
    const size_t first = vkt_env_int("VKT_TEST_SMALL", 0) ? 2 : 0;
    for (size_t i = first; i < VKT_COUNT(cases); i++) check_conv(&cases[i], i);
}

/* ---- whole tiles: kernels check no bounds along the axes where all tiles are whole ---- */

static void whole_tiles_multiply(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    /* Along each axis of the product and of its gradients, all tiles are whole. */
    check_matmul(2, 32, 32, 64, 0, VKT_V(SHARED), 32032);
    check_matmul(2, 32, 31, 33, 1, VKT_V(SHARED), 32032); /* all tiles are whole only along m */
    check_matmul(2, 29, 32, 33, 2, VKT_V(SHARED), 32032); /* only along n */
    check_matmul(2, 29, 31, 64, 3, VKT_V(SHARED), 32032); /* only along k */
    check_matmul(1, 32, 64, 1024, 1, VKT_V(SPLIT_K), 32032);
}

static void whole_tiles_convolve(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const conv cases[] = {
        { vkt_shape4(32, 32, 6, 6), vkt_shape4(32, 32, 3, 3), { .pad = { 1, 1 } }, 32032, true },
        { vkt_shape4(32, 32, 6, 5), vkt_shape4(32, 32, 3, 2), { .stride = { 1, 1 } }, 32032, false }, /* no padding */
        { vkt_shape4(32, 32, 4, 4), vkt_shape4(32, 32, 1, 1), { .stride = { 1, 1 } }, 32032, true },
        { vkt_shape4(32, 32, 5, 5), vkt_shape4(32, 32, 1, 1), { .stride = { 2, 2 } }, 32032, false },
        { vkt_shape4(32, 30, 5, 4),
          vkt_shape4(32, 30, 1, 1),
          { .stride = { 1, 1 } },
          32032,
          false }, /* 30 channels are padded to 32, so tiles along k are whole */
    };
    const size_t first = vkt_env_int("VKT_TEST_SMALL", 0) ? 2 : 0;
    for (size_t i = first; i < VKT_COUNT(cases); i++) check_conv(&cases[i], i);
}

/* ---- cooperative matrices ---- */

static void matrices_must_divide_the_tile(void **state)
{
    (void)state;
    static const struct {
        vkt_coop coop;
        uint32_t subgroup, bm; /* bm: rows of the tile; 0: no tile fits */
    } cases[] = {
        { { 16, 16, 16 }, 32, 128 }, { { 16, 8, 16 }, 32, 128 }, { { 16, 16, 16 }, 64, 128 },
        { { 8, 16, 16 }, 16, 128 },  { { 8, 8, 8 }, 8, 128 },    { { 8, 8, 8 }, 4, 128 },
        { { 16, 16, 16 }, 4, 0 },    { { 0, 0, 0 }, 32, 0 },     { { 16, 16, 16 }, 128, 128 },
        { { 16, 16, 32 }, 32, 128 }, { { 16, 16, 64 }, 32, 0 },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_limits lim = gpu;
        vkt_blocks b;
        lim.coop = cases[i].coop;
        lim.subgroup_size = cases[i].subgroup;
        const bool fits = vkt_blocks_plan(&lim, &(vkt_blocks_job){ 4096, 4096, 4096, 1, true }, 1, &b);
        assert_int_equal(fits ? b.spec[BLOCKS_SPEC_BM] : 0, cases[i].bm);
        /* A tile has whole subgroups. The smallest tile has 64 lanes, so subgroups of 128 lanes use a larger tile. */
        const bool small = vkt_blocks_plan(&lim, &(vkt_blocks_job){ 30, 30, 100, 1, true }, 1, &b);
        assert_int_equal(small, fits);
        if (small) assert_int_equal(b.spec[BLOCKS_SPEC_BM], cases[i].subgroup <= 64 ? 32 : 64);
        const vkt_blocks_job bfloat = { 4096, 4096, 4096, 1, .coop = true, .bfloat = true };
        assert_false(vkt_blocks_plan(&lim, &bfloat, 1, &b));
        lim.coop_bf16 = cases[i].coop;
        assert_int_equal(vkt_blocks_plan(&lim, &bfloat, 1, &b), fits);
        if (fits) assert_int_equal(b.spec[BLOCKS_SPEC_BM], cases[i].bm);
        const vkt_blocks_job split = { 4096, 4096, 40, 1, .coop = true, .split = true };
        assert_int_equal(vkt_blocks_plan(&lim, &split, 1, &b), fits && lim.coop.k <= BLOCKS_SPLIT_K);
        if (fits && lim.coop.k <= BLOCKS_SPLIT_K) assert_int_equal(b.slice, 48);
        lim.shared_bytes = 16384;
        assert_int_equal(vkt_blocks_plan(&lim, &(vkt_blocks_job){ 4096, 4096, 4096, 1, true }, 1, &b), fits);
        if (fits) assert_int_equal(b.spec[BLOCKS_SPEC_BM], 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_chosen_by_shape_and_device),
        cmocka_unit_test(a_wanted_tile_is_used),
        cmocka_unit_test(tuned_tiles_are_found_by_key),
        cmocka_unit_test(loops_that_would_be_too_long_are_refused),
        cmocka_unit_test(every_tile_multiplies_in_every_orientation),
        cmocka_unit_test(lanes_with_few_sums_multiply),
        cmocka_unit_test(unrolled_loops_multiply),
        cmocka_unit_test(slices_of_long_sums_add_up),
        cmocka_unit_test(blocks_of_long_sums_add_up),
        cmocka_unit_test(every_tile_convolves),
        cmocka_unit_test(no_slice_is_empty),
        cmocka_unit_test(slices_of_convolutions_add_up),
        cmocka_unit_test(whole_tiles_multiply),
        cmocka_unit_test(whole_tiles_convolve),
        cmocka_unit_test(matrices_must_divide_the_tile),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
