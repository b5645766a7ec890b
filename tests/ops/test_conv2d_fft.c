/* Tests convolutions and their gradients by Fourier transforms of each length (ops/conv/fft.c). In the second case, an
 * image has one tile; in the other cases, it has several. All cases have padding. The first case also has dilation, and
 * the last case has a kernel along one axis only. The code of the lengths differs: after the transforms along the rows,
 * one column is real if the length is odd, and two columns are real if it is even. 13 is a prime, 14 is 2 x 7, and 15
 * is 3 x 5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"

static void as_it_is(vkt_limits *lim)
{
    (void)lim;
}

static bool is_taken(const subject *s, vkt_variant v)
{
    vkt_limits lim = harness_ctx->limits;
    vkt_emit e;
    lim.choices.force = (uint64_t)1 << v;
    assert_int_equal(vkt_lower(s->g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    bool taken = false;
    for (size_t i = 0; i < e.n_picked; i++) taken = taken || e.picked[i].variant == v;
    vkt_lower_free(&e);
    return taken;
}

typedef struct conv {
    vkt_shape x, w;
    vkt_conv2d_params p;
} conv;

static void check(const conv *c, vkt_variant v)
{
    const harness_view view = { vkt_variant_name(v), as_it_is, .force = (uint64_t)1 << v };
    harness_report report = { .faults = 0 };
    subject s;
    subject_begin(&s, (uint64_t)v);
    subject_input(&s, &(vkt_case_input){ .layout = VKT_BATCH_LAST, .shape = c->x, .lo = -1, .hi = 1 }, NULL);
    subject_input(&s, &(vkt_case_input){ .shape = c->w, .lo = -1, .hi = 1 }, NULL);
    subject_input(&s, &(vkt_case_input){ .shape = vkt_shape1(c->w.dim[0]), .lo = -1, .hi = 1 }, NULL);
    subject_set_output(&s, vkt_conv2d(s.g, s.in[0].t, s.in[1].t, s.in[2].t, &c->p));
    assert_true(is_taken(&s, v));
    subject_forward(&s);
    subject_backward(&s);
    harness_check_in(harness_ctx, &s, &view, &report);
    if (report.faults) fail_msg("%s", report.text);
    subject_free(&s);
    harness_forget(harness_ctx);
}

static void every_length_convolves(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const vkt_variant lengths[] = { VKT_V_FFT13, VKT_V_FFT15, VKT_V_FFT14, VKT_V_FFT8, VKT_V_FFT16 };
    const conv cases[] = {
        { vkt_shape4(37, 4, 19, 14), vkt_shape4(8, 4, 2, 3), { .dilation = { 3, 1 }, .pad = { 1, 2 } } },
        { vkt_shape4(5, 8, 11, 12), vkt_shape4(12, 8, 3, 2), { .pad = { 1, 1 } } },
        { vkt_shape4(2, 12, 1, 33), vkt_shape4(4, 12, 1, 5), { .pad = { 0, 4 } } },
    };
    const bool few = vkt_env_int("VKT_TEST_SEEDS", 8) < 5; /* drivers are slow to compile the unrolled loops */
    for (size_t i = 0; i < (few ? 1 : VKT_COUNT(cases)); i++)
        for (size_t k = 0; k < (few || i > 0 ? 2 : VKT_COUNT(lengths)); k++) check(&cases[i], lengths[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_length_convolves) };
    return cmocka_run_group_tests_name("convolutions by transforms", tests, harness_setup, harness_teardown);
}
