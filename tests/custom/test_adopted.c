/* Tests an op of an application on a device that the application created. The op's shader needs the capability Float64,
 * which the application enabled. The program runs by vkt_program_run, by vkt_program_record in a command buffer of the
 * application, and by vkt_step_budget. */
#include "embed/app.h"

#include <math.h>
#include <stdio.h>

#include "custom/modules.h"
#include "vktrain/custom.h"

enum { N = 4 };

/* Adds an op whose shader declares Float64. Each element of y is sin(1) * 1. The shader converts the factor 1 to
 * float64 and back. */
static vkt_tensor add_op(vkt_graph *g, vkt_tensor x)
{
    const module m = module_of("odd1");
    const vkt_custom_input in = { .tensor = x };
    const vkt_custom_output out = { .shape = vkt_shape1(N) };
    vkt_custom_params p = { .name = "double", .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1 };
    p.forward = (vkt_custom_shader){ .spirv = m.words, .spirv_bytes = m.bytes, .groups = { 1 } };
    p.forward.bind[0] = VKT_CUSTOM_X(0);
    p.forward.bind[1] = VKT_CUSTOM_Y(0);
    return vkt_custom(g, &p, NULL);
}

static void check(vkt_program *p, vkt_tensor y)
{
    float got[N];
    assert_int_equal(vkt_program_read(p, y, got, sizeof got), VKT_OK);
    for (int i = 0; i < N; i++) assert_float_equal(got[i], sin(1) + 1, 1e-5);
}

static void run_in_all_ways(app *a, vkt_ctx *ctx)
{
    vkt_graph *g;
    vkt_program *p;
    vkt_step_progress progress;
    assert_int_equal(vkt_graph_create(&a->host, &g), VKT_OK);
    const vkt_tensor one = vkt_input(g, "one", VKT_F32, VKT_ROWS, vkt_shape1(N));
    const vkt_tensor y = vkt_add(g, add_op(g, one), one);
    const float ones[N] = { 1, 1, 1, 1 };
    vkt_keep(g, y);
    assert_int_equal(vkt_program_create(ctx, g, NULL, NULL, &p), VKT_OK);
    assert_int_equal(vkt_program_write(p, one, ones, sizeof ones), VKT_OK);
    assert_int_equal(vkt_program_run(p, NULL, NULL), VKT_OK);
    check(p, y);
    VkCommandBuffer cmd = app_begin(a, false);
    app_barrier(a, cmd);
    assert_int_equal(vkt_program_record(p, cmd, NULL), VKT_OK);
    app_barrier(a, cmd);
    app_end(a, cmd);
    app_submit(a, cmd, NULL, 0);
    app_wait(a);
    check(p, y);
    for (progress.completed = false; !progress.completed;) {
        uint64_t left_ns = UINT64_MAX; /* the budget of one frame: no limit */
        assert_int_equal(vkt_step_budget(p, NULL, NULL, &left_ns, &progress), VKT_OK);
        assert_int_equal(vkt_ctx_wait_idle(ctx), VKT_OK);
    }
    check(p, y);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void a_device_of_the_application(void **state)
{
    (void)state;
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    if (a.features.features.shaderFloat64)
        run_in_all_ways(&a, ctx);
    else
        puts("SKIPPED: a shader with float64: the device has none");
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(a_device_of_the_application, vkt_test_setup,
                                                                        vkt_test_teardown) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
