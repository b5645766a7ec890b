/* Tests convolutions that random shapes seldom reach:
 * - 3x3 kernels by Winograd's F(2x2,3x3) (ops/conv/winograd.c), and which shapes choose this variant;
 * - pixels of 8 or 24 vec4s, for which shaders/conv/tile.comp may divide a subgroup into blocks of lanes;
 * - 1x1 kernels;
 * - spans of pixels (shaders/conv/span.comp).
 * A pixel of a channel has the numbers of all samples of the batch. A plane has the pixels of one channel. A tap is a
 * position of the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"
#include "support/host.h"

typedef struct conv {
    vkt_shape x, w;
    uint32_t pad[2], stride_h, dilation_h, groups;
    bool no_bias;
} conv;

static void as_it_is(vkt_limits *lim)
{
    (void)lim;
}

/* Limits storage bindings to 8 KiB. If the packed weights (a copy in the order in which a kernel reads them) or a
 * stored result are larger, dispatches are split. An operand that texel loads read may be larger than 8 KiB. */
static void small_storage(vkt_limits *lim)
{
    lim->max_storage_range_bytes = 8192;
}

/* Sets the traits of a GPU. With these traits, Winograd's 16 products are one batch of tiles in shared memory. The
 * trait winograd_kib is small, so Winograd transforms most images in several pieces. */
static void gpu_in_small_pieces(vkt_limits *lim)
{
    static vkt_traits small;
    harness_as_gpu(lim);
    small = *lim->traits;
    small.winograd_kib = 16;
    lim->traits = &small;
}

/* Makes the graph of y = conv2d(x, w, bias) with random inputs. */
static void begin(subject *s, const conv *c, uint64_t seed)
{
    const vkt_conv2d_params p = { .pad = { c->pad[0], c->pad[1] },
                                  .stride = { c->stride_h, 1 },
                                  .dilation = { c->dilation_h, 1 },
                                  .groups = c->groups };
    subject_begin(s, seed);
    subject_input(s, &(vkt_case_input){ .layout = VKT_BATCH_LAST, .shape = c->x, .lo = -1, .hi = 1 }, NULL);
    subject_input(s, &(vkt_case_input){ .shape = c->w, .lo = -1, .hi = 1 }, NULL);
    if (!c->no_bias) subject_input(s, &(vkt_case_input){ .shape = vkt_shape1(c->w.dim[0]), .lo = -1, .hi = 1 }, NULL);
    subject_set_output(s, vkt_conv2d(s->g, s->in[0].t, s->in[1].t, c->no_bias ? (vkt_tensor){ 0 } : s->in[2].t, &p));
}

/* Returns the limits of a device that does not exist, with the traits of a CPU or of a GPU. */
static vkt_limits device(bool cpu, uint64_t force)
{
    return (vkt_limits){ .traits = &vkt_class_traits[cpu ? VKT_CLASS_CPU : VKT_CLASS_OTHER],
                         .subgroup_size = 8,
                         .max_workgroup_lanes = 1024,
                         .max_groups = 65535,
                         .shared_bytes = 32768,
                         .max_storage_range_bytes = 1u << 27,
                         .max_texel_elements = 1u << 27,
                         .choices = { .force = force } };
}

/* Returns how many nodes of the subject use the variant `force`, with the traits of a CPU or of a GPU. If `force` is 0,
 * returns how many nodes use WINOGRAD. */
static uint32_t taken(const subject *s, bool cpu, uint64_t force)
{
    const vkt_limits lim = device(cpu, force);
    vkt_emit e;
    uint32_t n = 0;
    assert_int_equal(vkt_lower(s->g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    for (size_t i = 0; i < e.n_picked; i++) n += (force ? force : VKT_V(WINOGRAD)) >> e.picked[i].variant & 1;
    vkt_lower_free(&e);
    return n;
}

/* Checks y and every gradient with the variant `force` in five views: on the device as it is, with the traits of a GPU,
 * in 16 bits, and with two kinds of limits that split the work. A run with few cases checks only the first view and one
 * of the other views. With the traits of a CPU, `nodes` nodes must use the variant. */
static void check(const conv *cases, size_t n, const char *name, uint64_t force, uint32_t nodes)
{
    harness_needs(harness_ctx);
    for (size_t i = 0; i < n; i++) {
        harness_view views[] = {
            { name, as_it_is, .force = force },
            { "with the traits of a GPU", harness_as_gpu, .force = force },
            harness_half_views[i % 2],
            { "with the traits of a GPU, and small pieces", gpu_in_small_pieces, .force = force },
            { "with storage bindings of 8 KiB", small_storage, .may_refuse = force == VKT_V(WINOGRAD), .force = force }
        }; /* may_refuse: in some cases of Winograd, one channel of an image is larger than 8 KiB */
        harness_report report = { .faults = 0 };
        subject s;
        views[2].force = force;
        begin(&s, &cases[i], i);
        assert_int_equal(taken(&s, true, force), nodes);
        subject_forward(&s);
        subject_backward(&s);
        for (size_t v = 0; v < VKT_COUNT(views) && !report.faults; v++)
            if (v == 0 || !vkt_test_leaves_out(i + v, 4)) harness_check_in(harness_ctx, &s, &views[v], &report);
        if (report.faults) fail_msg("%s", report.text);
        subject_free(&s);
    }
}

/* Checks that on a GPU one dispatch computes all 16 products of y, and another dispatch computes all 16 products of dx.
 * On a CPU there are no such dispatches. */
static void expect_batch(const conv *c, bool gpu)
{
    const vkt_limits lim = device(!gpu, VKT_V(WINOGRAD));
    subject s;
    vkt_emit e;
    uint32_t batches = 0;
    begin(&s, c, 1);
    assert_int_equal(vkt_lower(s.g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    for (size_t i = 0; i < e.n; i++)
        batches += e.list[i].kernel == VKT_K_GEMM_SHARED && e.list[i].groups[2] == 16 && e.list[i].groups[1] == 1;
    assert_int_equal(batches, gpu ? 2 : 0);
    vkt_lower_free(&e);
    subject_free(&s);
}

enum { SMALL_KIB = 64 };

static void gpu_with_small_bindings(vkt_limits *lim)
{
    harness_as_gpu(lim);
    lim->max_storage_range_bytes = SMALL_KIB << 10;
}

/* The images are 41 KiB, and their transformed patches are 180 KiB. A binding of 64 KiB holds the images but not all
 * patches, so Winograd transforms the patches in pieces that fit. */
static void pieces_are_no_larger_than_a_binding(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const conv c = { vkt_shape4(9, 8, 10, 11), vkt_shape4(8, 8, 3, 3), { 1, 1 } };
    const harness_view view = { "with bindings of 64 KiB", gpu_with_small_bindings, .force = VKT_V(WINOGRAD) };
    harness_report report = { .faults = 0 };
    subject s;
    begin(&s, &c, 1);
    for (int cpu = 0; cpu < 2; cpu++) {
        vkt_limits lim = device(cpu, VKT_V(WINOGRAD));
        vkt_emit e;
        uint32_t pieces = 0;
        lim.max_storage_range_bytes = SMALL_KIB << 10;
        assert_int_equal(vkt_lower(s.g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
        for (size_t i = 0; i < e.n; i++) pieces += e.list[i].kernel == VKT_K_WINOGRAD_INPUT;
        vkt_lower_free(&e);
        assert_true(pieces > 2); /* y and dx have the same shape, so each has half of the pieces: at least two */
    }
    subject_forward(&s);
    subject_backward(&s);
    harness_check_in(harness_ctx, &s, &view, &report);
    if (report.faults) fail_msg("%s", report.text);
    subject_free(&s);
}

static void every_size_and_padding_is_right(void **state)
{
    (void)state;
    const conv cases[] = {
        { vkt_shape4(5, 4, 7, 9), vkt_shape4(8, 4, 3, 3), { 1, 1 } },
        { vkt_shape4(3, 12, 5, 3), vkt_shape4(36, 12, 3, 3), { 2, 0 } },
        { vkt_shape4(17, 8, 3, 4), vkt_shape4(4, 8, 3, 3), { 0, 0 } },
        { vkt_shape4(33, 20, 6, 13), vkt_shape4(68, 20, 3, 3), { 1, 2 } },
        { vkt_shape4(2, 4, 1, 1), vkt_shape4(4, 4, 3, 3), { 1, 1 } },
        /* On a CPU, the image is transformed in two pieces. */
        { vkt_shape4(1, 4, 34, 34), vkt_shape4(64, 4, 3, 3), { 1, 1 } },
    };
    check(cases, VKT_COUNT(cases), "winograd", VKT_V(WINOGRAD), 2); /* y and dx */
    expect_batch(&cases[3], true);
    expect_batch(&cases[3], false);
}

/* Pixels have 8 or 24 vec4s. On a CPU, a subgroup of 16 lanes is divided into blocks of 8 lanes if a plane of the
 * result has only 8 vec4s, or if at least an eighth of the taps are outside of the image. In most cases, the last block
 * has fewer channels than the other blocks, or none. */
static void blocks_of_lanes_are_right(void **state)
{
    (void)state;
    const conv cases[] = {
        { vkt_shape4(30, 36, 5, 3), vkt_shape4(37, 36, 2, 1), { 1, 0 } },
        { vkt_shape4(95, 33, 2, 3), vkt_shape4(66, 33, 2, 2), { 0, 1 } },
        { vkt_shape4(32, 40, 1, 1), vkt_shape4(68, 40, 1, 1), { 0, 0 } }, /* w is not packed; y has an empty block */
        { vkt_shape4(29, 64, 2, 1), vkt_shape4(97, 64, 2, 1), { 0, 0 } }, /* y has 28 channels per block, dx has 32 */
        { vkt_shape4(29, 36, 1, 9),
          vkt_shape4(41, 36, 1, 2),
          { 0, 0 } }, /* y: a subgroup is not divided, because no tap is outside of x */
    };
    check(cases, VKT_COUNT(cases), "tile", VKT_V(TILE), 3);
}

/* Tests 1x1 kernels. With a stride of 1 and no padding, the shader for the gradient of w reads a plane, or
 * each slice of a plane, as if it were one large pixel. In the other cases the shader loops over the pixels. */
static void a_kernel_of_one_pixel_is_right(void **state)
{
    (void)state;
    const conv cases[] = {
        { vkt_shape4(5, 7, 3, 9), vkt_shape4(19, 7, 1, 1), { 0, 0 } },
        { vkt_shape4(3, 36, 13, 11), vkt_shape4(67, 36, 1, 1), { 0, 0 }, .no_bias = true },
        { vkt_shape4(2, 6, 19, 23), vkt_shape4(9, 2, 1, 1), { 0, 0 }, .groups = 3 },
        { vkt_shape4(6, 5, 7, 4), vkt_shape4(18, 5, 1, 1), { 0, 0 }, .stride_h = 2 },
        { vkt_shape4(7, 9, 3, 5), vkt_shape4(6, 9, 1, 1), { 1, 0 } },
        { vkt_shape4(1, 3, 4, 6), vkt_shape4(5, 3, 1, 1), { 0, 2 } },
    };
    check(cases, VKT_COUNT(cases), "tile", VKT_V(TILE), 3);
}

/* The cases have widths that are no multiple of a span, tiles with spans at the ends of different rows, every number of
 * taps in a row (2 to 7), and kernels that are wider than the image. */
static void runs_of_pixels_are_right(void **state)
{
    (void)state;
    const conv cases[] = {
        { vkt_shape4(5, 3, 4, 9), vkt_shape4(7, 3, 2, 3), { 1, 1 } },
        { vkt_shape4(3, 8, 1, 17), vkt_shape4(9, 8, 1, 5), { 0, 0 } },
        { vkt_shape4(17, 4, 3, 6), vkt_shape4(17, 4, 3, 2), { 0, 1 } },
        { vkt_shape4(33, 10, 2, 13), vkt_shape4(20, 10, 1, 7), { 0, 3 } },
        { vkt_shape4(30, 13, 5, 3), vkt_shape4(11, 13, 2, 6), { 1, 3 } },
        { vkt_shape4(2, 6, 7, 1), vkt_shape4(3, 6, 3, 4), { 1, 2 } },
        { vkt_shape4(9, 12, 5, 8), vkt_shape4(18, 4, 3, 3), { 1, 2 }, .dilation_h = 2, .groups = 3 },
        /* The weights are 15.5 KiB, more than a binding of 8 KiB. */
        { vkt_shape4(14, 66, 2, 5), vkt_shape4(60, 22, 1, 3), { 0, 1 }, .groups = 3, .no_bias = true },
        { vkt_shape4(61, 5, 1, 23), vkt_shape4(33, 5, 1, 4), { 0, 0 } },
    };
    check(cases, VKT_COUNT(cases), "span", VKT_V(SPAN), 2); /* y and dx */
    const conv strided = { vkt_shape4(6, 4, 9, 7), vkt_shape4(10, 4, 3, 3), { 1, 1 }, .stride_h = 2 };
    /* Only y uses spans. span.comp cannot compute dx here, because the pixels of a phase are in every second row. */
    check(&strided, 1, "span", VKT_V(SPAN), 1);
}

static void it_is_chosen_where_it_is_faster(void **state)
{
    (void)state;
    const struct {
        conv c;
        uint32_t on_cpu;
    } cases[] = {
        { { vkt_shape4(8, 64, 56, 56), vkt_shape4(64, 64, 3, 3), { 1, 1 } }, 2 },
        { { vkt_shape4(8, 128, 28, 28), vkt_shape4(128, 128, 3, 3), { 1, 1 } }, 2 },
        { { vkt_shape4(8, 512, 7, 7), vkt_shape4(512, 512, 3, 3), { 1, 1 } }, 2 },
        { { vkt_shape4(32, 32, 15, 15), vkt_shape4(64, 32, 3, 3), { 0, 0 } }, 0 }, /* few channels */
        { { vkt_shape4(8, 64, 56, 56), vkt_shape4(64, 64, 3, 1), { 1, 0 } }, 0 },
        { { vkt_shape4(8, 66, 56, 56), vkt_shape4(64, 66, 3, 3), { 1, 1 } }, 0 }, /* 66 is no multiple of 4 */
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        subject s;
        begin(&s, &cases[i].c, i);
        assert_int_equal(taken(&s, true, 0), cases[i].on_cpu);
        assert_int_equal(taken(&s, false, 0), 0);
        subject_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_no_larger_than_a_binding), cmocka_unit_test(every_size_and_padding_is_right),
        cmocka_unit_test(it_is_chosen_where_it_is_faster),     cmocka_unit_test(blocks_of_lanes_are_right),
        cmocka_unit_test(a_kernel_of_one_pixel_is_right),      cmocka_unit_test(runs_of_pixels_are_right),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
