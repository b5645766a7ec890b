/* Tests convolutions with weights in shared memory (shaders/conv/direct_shared.comp, pool_shared.comp,
 * dw_direct_shared.comp): how the work is divided into work groups, and that the results are right for each division.
 * These shaders are for GPUs, but the tests run on any device. A tap is one position (row and column) of the filter in
 * one channel of the source. A chunk is the taps whose weights are in shared memory at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/conv/variants.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

/* ---- work groups ---- */

#define MIN_SHARED_BYTES 16384 /* the smallest maxComputeSharedMemorySize that Vulkan allows */

static const vkt_limits gpu = { .subgroup_size = 32,
                                .max_groups = 65535,
                                .traits = &vkt_class_traits[VKT_CLASS_OTHER] };

static void check_tiles(const vkt_direct_job *j)
{
    const vkt_direct_tiles t = vkt_direct_tiles_of(&gpu, j);
    const uint32_t blocks = t.lanes / t.across, stride = t.rows < 3 ? t.rows : (uint32_t)vkt_round_up(t.rows, 4);
    if (t.lanes % t.across != 0 || t.lanes > gpu.traits->lanes_direct || t.rows == 0 || t.rows > j->most_rows ||
        (uint64_t)t.col_tiles * t.across < j->columns || (uint64_t)t.row_tiles * blocks * t.rows < j->rows ||
        (t.row_tiles - 1) * blocks * t.rows >= j->rows || t.chunk == 0 || t.chunk % t.unroll != 0 ||
        4 * (t.chunk * (blocks * stride + 4 + 4) + blocks * stride) > MIN_SHARED_BYTES ||
        (j->K <= 40 && t.chunk < j->K))
        fail_msg("%u columns, %u rows, K %llu: %u lanes, %u across, %u rows, %u x %u tiles, %u taps by %u", j->columns,
                 j->rows, (unsigned long long)j->K, t.lanes, t.across, t.rows, t.row_tiles, t.col_tiles, t.chunk,
                 t.unroll);
}

static void groups_cover_the_result_and_fit(void **state)
{
    (void)state;
    static const uint32_t columns[] = { 1, 2, 7, 32, 33, 100, 128, 129, 5000, 1000000 };
    static const uint32_t rows[] = { 1, 2, 3, 4, 7, 8, 9, 10, 17, 31, 32, 33, 100, 2048 };
    for (size_t c = 0; c < VKT_COUNT(columns); c++)
        for (size_t r = 0; r < VKT_COUNT(rows); r++)
            for (uint32_t K = 0; K <= 100; K++) {
                check_tiles(&(vkt_direct_job){ columns[c], rows[r], 1, K, 8 });
                check_tiles(&(vkt_direct_job){ columns[c], rows[r], 3, K * 1000, 8 });
                if (K && K <= 40) check_tiles(&(vkt_direct_job){ columns[c], rows[r], 1, K, 4 });
            }
}

static void large_planes_have_wide_lanes(void **state)
{
    (void)state;
    static const struct {
        vkt_direct_job job;
        uint32_t lanes, across, rows;
    } cases[] = {
        { { 100000, 32, 1, 25, 8 }, 128, 32, 8 }, /* four blocks of 8 channels read the same pixels */
        { { 100000, 8, 1, 25, 8 }, 128, 128, 8 }, { { 100000, 1, 64, 9, 8 }, 128, 128, 1 }, /* depthwise */
        { { 4000, 7, 1, 240, 8 }, 128, 32, 2 }, /* few work groups, so a lane has fewer channels */
        { { 32, 10, 1, 32, 8 }, 128, 32, 1 },   /* a linear layer of 10 neurons, a batch of 128 */
        { { 1, 10, 1, 32, 8 }, 16, 1, 1 },      /* one sample */
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const vkt_direct_tiles t = vkt_direct_tiles_of(&gpu, &cases[i].job);
        if (t.lanes != cases[i].lanes || t.across != cases[i].across || t.rows != cases[i].rows)
            fail_msg("case %zu: %u lanes, %u across, %u rows", i, t.lanes, t.across, t.rows);
    }
}

/* ---- results ---- */

static void as_it_is(vkt_limits *lim)
{
    (void)lim;
}

/* Sets the trait groups_shared to 1: one work group keeps the device busy. So each lane computes as many channels and
 * sums as possible. */
static void wide_lanes(vkt_limits *lim)
{
    static vkt_traits traits;
    traits = *lim->traits;
    traits.groups_shared = 1;
    lim->traits = &traits;
}

/* Does the same as wide_lanes, and limits storage bindings to 8 KiB, so that dispatches are split. */
static void small_storage(vkt_limits *lim)
{
    wide_lanes(lim);
    lim->max_storage_range_bytes = 8192;
}

/* Returns how many nodes of the subject use DIRECT_SHARED if it is forced. */
static uint32_t taken(const subject *s)
{
    const vkt_limits lim = { .traits = &vkt_class_traits[VKT_CLASS_CPU],
                             .subgroup_size = 8,
                             .max_workgroup_lanes = 1024,
                             .max_groups = 65535,
                             .shared_bytes = 32768,
                             .max_storage_range_bytes = 1u << 27,
                             .max_texel_elements = 1u << 27,
                             .choices = { .force = VKT_V(DIRECT_SHARED) } };
    vkt_emit e;
    uint32_t n = 0;
    assert_int_equal(vkt_lower(s->g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    for (size_t i = 0; i < e.n_picked; i++) n += e.picked[i].variant == VKT_V_DIRECT_SHARED;
    vkt_lower_free(&e);
    return n;
}

/* Checks a subject and its gradients: with wide lanes, with the traits of the device, with 16-bit storage, and with
 * wide lanes and small bindings. Frees the subject. */
static void check(subject *s, size_t seed, bool large)
{
    harness_view views[] = { { "wide lanes", wide_lanes, .force = VKT_V(DIRECT_SHARED) },
                             { "as it is", as_it_is, .force = VKT_V(DIRECT_SHARED) },
                             harness_half_views[seed % 2],
                             { "wide lanes and bindings of 8 KiB", small_storage, .may_refuse = large,
                               .force = VKT_V(DIRECT_SHARED) } };
    harness_report report = { .faults = 0 };
    views[2].force = VKT_V(DIRECT_SHARED);
    subject_forward(s);
    subject_backward(s);
    for (size_t v = 0; v < VKT_COUNT(views) && !report.faults; v++)
        harness_check_in(harness_ctx, s, &views[v], &report);
    if (report.faults) fail_msg("%s", report.text);
    subject_free(s);
}

typedef struct conv {
    vkt_shape x, w;
    vkt_conv2d_params p;
    bool no_bias, large; /* large: a channel is more than 8 KiB, so small_storage may make a program impossible */
} conv;

static void every_convolution_is_right(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const conv cases[] = {
        { vkt_shape4(5, 3, 9, 11), vkt_shape4(37, 3, 3, 3), { .pad = { 1, 1 } } }, /* y: several tiles of channels */
        { vkt_shape4(3, 23, 6, 7),
          vkt_shape4(5, 23, 3, 3),
          { .pad = { 1, 0 } },
          .no_bias = true }, /* y: 5 chunks of taps */
        { vkt_shape4(6, 12, 13, 10), vkt_shape4(12, 1, 3, 3), { .pad = { 1, 1 }, .groups = 12 } },
        { vkt_shape4(17, 6, 8, 9), vkt_shape4(18, 1, 5, 2), { .stride = { 2, 1 }, .pad = { 2, 1 }, .groups = 6 } },
        { vkt_shape4(2, 4, 12, 9),
          vkt_shape4(6, 4, 3, 2),
          { .stride = { 3, 2 }, .dilation = { 2, 3 }, .pad = { 2, 1 } } },
        { vkt_shape4(4, 3, 10, 7), vkt_shape4(9, 3, 1, 2), { .stride = { 3, 3 } } }, /* dx: phases without a tap */
        /* K is the number of products of a sum. In the next two cases, K is no multiple of the taps per iteration. In
         * the first case (K = 7) there is one chunk, and in the second case (K = 59) there are two. */
        { vkt_shape4(7, 7, 5, 6), vkt_shape4(11, 7, 1, 1), { .stride = { 1, 1 } } },
        { vkt_shape4(3, 59, 3, 4), vkt_shape4(13, 59, 1, 1), { .stride = { 2, 1 } }, .no_bias = true },
        { vkt_shape4(1, 200, 1, 1), vkt_shape4(10, 200, 1, 1), { .stride = { 1, 1 } } },
        { vkt_shape4(30, 64, 1, 1), vkt_shape4(70, 64, 1, 1), { .stride = { 1, 1 } } },
        { vkt_shape4(2, 1, 5, 5), vkt_shape4(1, 1, 1, 1), { .pad = { 1, 2 } }, .no_bias = true }, /* K is 1 */
        /* With the traits of a CPU, a work group computes several tiles of each channel in the next two cases. For y,
         * the first case has one chunk of taps, and the second case has several. */
        { vkt_shape4(64, 2, 40, 41), vkt_shape4(3, 2, 3, 3), { .pad = { 1, 1 } }, .large = true },
        { vkt_shape4(64, 50, 24, 30), vkt_shape4(2, 50, 1, 2), { .pad = { 0, 1 } }, .large = true },
    };
    const size_t n = vkt_env_int("VKT_TEST_SMALL", 0) ? 8 : VKT_COUNT(cases);
    for (size_t i = 0; i < n; i++) {
        const conv *c = &cases[i];
        subject s;
        subject_begin(&s, i);
        subject_input(&s, &(vkt_case_input){ .layout = VKT_BATCH_LAST, .shape = c->x, .lo = -1, .hi = 1 }, NULL);
        subject_input(&s, &(vkt_case_input){ .shape = c->w, .lo = -1, .hi = 1 }, NULL);
        if (!c->no_bias)
            subject_input(&s, &(vkt_case_input){ .shape = vkt_shape1(c->w.dim[0]), .lo = -1, .hi = 1 }, NULL);
        subject_set_output(&s,
                           vkt_conv2d(s.g, s.in[0].t, s.in[1].t, c->no_bias ? (vkt_tensor){ 0 } : s.in[2].t, &c->p));
        assert_int_equal(taken(&s), 3);
        check(&s, i, c->large);
    }
}

/* Tests random cases with pooling windows of up to 3 x 3, with and without relu and bias. */
static void every_pooled_convolution_is_right(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const size_t n = vkt_env_int("VKT_TEST_SMALL", 0) ? 3 : 16;
    for (size_t seed = 1001; seed <= 1000 + n; seed++) {
        subject s;
        subject_make(&s, &vkt_op_conv2d_max_pool, seed);
        assert_int_equal(taken(&s), 3); /* the nodes that compute y, dx and dw */
        check(&s, seed, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_cover_the_result_and_fit),
        cmocka_unit_test(large_planes_have_wide_lanes),
        cmocka_unit_test(every_convolution_is_right),
        cmocka_unit_test(every_pooled_convolution_is_right),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
