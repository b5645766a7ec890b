/* custom/stand.c - see stand.h. */
#include "custom/stand.h"

#include <math.h>

#include "ops/custom.h"
#include "record/debug.h"

vkt_custom_shader shader_of(const char *name, uint64_t elements)
{
    const module m = module_of(name);
    assert_non_null(m.words);
    return (vkt_custom_shader){ .spirv = m.words, .spirv_bytes = m.bytes, .elements = elements };
}

stand stand_make(rig *r)
{
    stand b = { .r = r };
    assert_int_equal(vkt_graph_create(&r->h, &b.g), VKT_OK);
    return b;
}

void stand_start(stand *b)
{
    assert_int_equal(vkt_graph_status(b->g), VKT_OK);
    if (b->g->n_params) assert_int_equal(vkt_store_create(b->r->ctx, b->g, &b->store), VKT_OK);
    assert_int_equal(vkt_program_create_guarded(b->r->ctx, b->g, b->store, NULL, &b->p), VKT_OK);
    assert_int_equal(vkt_program_poison(b->p, POISON), VKT_OK);
}

void stand_run(stand *b, uint32_t rows, uint32_t times)
{
    bool intact;
    const char *bad;
    for (uint32_t i = 0; i < times; i++)
        assert_int_equal(vkt_program_run(b->p, &(vkt_run){ .rows = rows, .lr = 0.1f }, NULL), VKT_OK);
    assert_int_equal(vkt_program_check_guards(b->p, POISON, &intact, &bad), VKT_OK);
    if (!intact) fail_msg("a shader wrote behind '%s'", bad);
}

void stand_end(stand *b)
{
    vkt_program_destroy(&b->p);
    vkt_store_destroy(&b->store);
    vkt_graph_destroy(&b->g);
}

vkt_tensor stand_input(stand *b, vkt_shape shape, float low, float high, uint64_t seed, float *numbers)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0; i < vkt_shape_elements(shape); i++) numbers[i] = low + (high - low) * vkt_rng_unit(&r);
    return vkt_input(b->g, "in", VKT_F32, VKT_ROWS, shape);
}

void stand_write(stand *b, vkt_tensor t, const float *numbers)
{
    const uint64_t n = vkt_shape_elements(vkt_tensor_shape(b->g, t));
    assert_int_equal(vkt_program_write(b->p, t, numbers, n * sizeof *numbers), VKT_OK);
}

float *stand_read(stand *b, vkt_tensor t)
{
    const uint64_t n = vkt_shape_elements(vkt_tensor_shape(b->g, t));
    float *numbers = test_malloc(n * sizeof *numbers);
    assert_int_equal(vkt_program_read(b->p, t, numbers, n * sizeof *numbers), VKT_OK);
    return numbers;
}

vkt_tensor wave(vkt_graph *g, vkt_tensor x, vkt_tensor a, const char *gradient)
{
    const vkt_shape shape = vkt_tensor_shape(g, x);
    const uint32_t n = (uint32_t)vkt_shape_elements(shape);
    const vkt_custom_input in[] = { { .tensor = x, .low = -1.5f, .high = 1.5f },
                                    { .tensor = a, .low = -2, .high = 2 } };
    const vkt_custom_output out = { .shape = shape };
    vkt_custom_params p = { .name = "wave", .inputs = in, .n_inputs = 2, .outputs = &out, .n_outputs = 1 };
    p.forward = shader_of("wave", n);
    p.gradient = gradient ? shader_of(gradient, n) : (vkt_custom_shader){ .spirv = NULL };
    p.forward.push = p.gradient.push = &n;
    p.forward.push_bytes = p.gradient.push_bytes = sizeof n;
    p.forward.bind[0] = p.gradient.bind[1] = VKT_CUSTOM_X(0);
    p.forward.bind[1] = p.gradient.bind[4] = VKT_CUSTOM_X(1);
    p.forward.bind[2] = VKT_CUSTOM_Y(0);
    p.gradient.bind[0] = VKT_CUSTOM_DY(0);
    p.gradient.bind[7] = VKT_CUSTOM_DX(0);
    p.gradient.bind[2] = VKT_CUSTOM_DX(1);
    return vkt_custom(g, &p, NULL);
}

vkt_tensor own_relu_in(vkt_graph *g, vkt_tensor x, float low, float high)
{
    const vkt_shape shape = vkt_tensor_shape(g, x);
    const vkt_layout layout = vkt_tensor_layout(g, x);
    uint64_t bytes = 0;
    vkt_physical_bytes(shape, layout, VKT_F32, &bytes);
    const uint32_t n = (uint32_t)(bytes / 4);
    const vkt_custom_input in = { .tensor = x, .layout = layout, .low = low, .high = high };
    const vkt_custom_output out = { .shape = shape, .layout = layout };
    vkt_custom_params p = { .name = "own_relu", .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1 };
    p.forward = shader_of("relu", n);
    p.gradient = shader_of("relu_dx", n);
    p.forward.loops = p.gradient.loops = true;
    p.forward.push = p.gradient.push = &n;
    p.forward.push_bytes = p.gradient.push_bytes = sizeof n;
    p.forward.bind[0] = VKT_CUSTOM_X(0);
    p.forward.bind[1] = p.gradient.bind[0] = VKT_CUSTOM_Y(0);
    p.gradient.bind[1] = VKT_CUSTOM_DY(0);
    p.gradient.bind[2] = VKT_CUSTOM_DX(0);
    return vkt_custom(g, &p, NULL);
}

vkt_tensor own_relu(vkt_graph *g, vkt_tensor x)
{
    return own_relu_in(g, x, 0, 0);
}

void expect_close(double got, double want, double allowed, const char *what, size_t at)
{
    if (!(fabs(got - want) <= allowed)) fail_msg("%s[%zu] is %.9g, want %.9g", what, at, got, want);
}
