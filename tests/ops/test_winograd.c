/* Convolutions with 3x3 kernels by Winograd's F(2x2,3x3) (ops/conv2d_winograd.c), and what it is for: which of them
 * take it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"
#include "support/host.h"

typedef struct conv {
    vkt_shape x, w;
    uint32_t pad[2];
} conv;

static void as_it_is(vkt_limits *lim)
{
    (void)lim;
}

/* y = conv2d(x, w, bias) and all gradients; their data is not needed to lower them. */
static void begin(subject *s, const conv *c, uint64_t seed)
{
    const vkt_conv2d_params p = { .pad = { c->pad[0], c->pad[1] } };
    subject_begin(s, seed);
    subject_input(s, &(vkt_case_input){ .layout = VKT_BATCH_LAST, .shape = c->x, .lo = -1, .hi = 1 }, NULL);
    subject_input(s, &(vkt_case_input){ .shape = c->w, .lo = -1, .hi = 1 }, NULL);
    subject_input(s, &(vkt_case_input){ .shape = vkt_shape1(c->w.dim[0]), .lo = -1, .hi = 1 }, NULL);
    subject_take(s, vkt_conv2d(s->g, s->in[0].t, s->in[1].t, s->in[2].t, &p));
}

/* How many nodes of the subject take it. */
static uint32_t taken(const subject *s, bool cpu, uint64_t force)
{
    const vkt_limits lim = { .cpu = cpu,
                             .subgroup_size = 8,
                             .max_workgroup_lanes = 1024,
                             .max_groups = 65535,
                             .shared_bytes = 32768,
                             .max_storage_range_bytes = 1u << 27,
                             .max_texel_elements = 1u << 27,
                             .choices = { .force = force } };
    vkt_emit e;
    uint32_t n = 0;
    assert_int_equal(vkt_lower(s->g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    for (size_t i = 0; i < e.n_picked; i++) n += e.picked[i].variant == VKT_V_WINOGRAD;
    vkt_lower_free(&e);
    return n;
}

static void every_size_and_padding_is_right(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const conv cases[] = {
        { vkt_shape4(5, 4, 7, 9), vkt_shape4(8, 4, 3, 3), { 1, 1 } },
        { vkt_shape4(3, 12, 5, 3), vkt_shape4(36, 12, 3, 3), { 2, 0 } },
        { vkt_shape4(17, 8, 3, 4), vkt_shape4(4, 8, 3, 3), { 0, 0 } },
        { vkt_shape4(33, 20, 6, 13), vkt_shape4(68, 20, 3, 3), { 1, 2 } },
        { vkt_shape4(2, 4, 1, 1), vkt_shape4(4, 4, 3, 3), { 1, 1 } },
        { vkt_shape4(1, 4, 34, 34), vkt_shape4(64, 4, 3, 3), { 1, 1 } }, /* in two turns */
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        harness_view views[] = { { "winograd", as_it_is, .force = VKT_V(WINOGRAD) }, harness_half_views[i % 2] };
        harness_report report = { .faults = 0 };
        subject s;
        views[1].force = VKT_V(WINOGRAD);
        begin(&s, &cases[i], i);
        assert_int_equal(taken(&s, true, VKT_V(WINOGRAD)), 2); /* y and dx */
        subject_forward(&s);
        subject_backward(&s);
        for (size_t v = 0; v < VKT_COUNT(views) && !report.faults; v++)
            harness_check_in(harness_ctx, &s, &views[v], &report);
        if (report.faults) fail_msg("%s", report.text);
        subject_free(&s);
    }
}

static void it_is_taken_where_it_wins(void **state)
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
        { { vkt_shape4(8, 66, 56, 56), vkt_shape4(64, 66, 3, 3), { 1, 1 } }, 0 }, /* no vec4s */
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
        cmocka_unit_test(every_size_and_padding_is_right),
        cmocka_unit_test(it_is_taken_where_it_wins),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
