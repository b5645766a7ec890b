/* Checks that vkt_custom and vkt_program_create refuse wrong declarations and modules, each with the right message. */
#include "custom/stand.h"

#include "ops/custom.h"
#include "record/record.h"

/* The declaration of y = max(x, 0) for N numbers. Each test changes a part of it. */
enum { N = 24 };
static const uint32_t count = N;
typedef struct declared {
    vkt_custom_input in[VKT_CUSTOM_INPUTS];
    vkt_custom_output out[VKT_CUSTOM_OUTPUTS];
    vkt_custom_params p;
} declared;

static void declare(declared *d, vkt_tensor x)
{
    *d = (declared){ .in = { { .tensor = x } }, .out = { { .shape = vkt_shape1(N) } } };
    d->p = (vkt_custom_params){ .name = "op", .inputs = d->in, .n_inputs = 1, .outputs = d->out, .n_outputs = 1 };
    d->p.forward = shader_of("relu", N);
    d->p.gradient = shader_of("relu_dx", N);
    d->p.forward.push = d->p.gradient.push = &count;
    d->p.forward.push_bytes = d->p.gradient.push_bytes = sizeof count;
    d->p.forward.bind[0] = VKT_CUSTOM_X(0);
    d->p.forward.bind[1] = d->p.gradient.bind[0] = VKT_CUSTOM_Y(0);
    d->p.gradient.bind[1] = VKT_CUSTOM_DY(0);
    d->p.gradient.bind[2] = VKT_CUSTOM_DX(0);
}

/* Replaces the forward shader by a module of odd.comp. The module must have no push constants. */
static void odd(declared *d, const char *name)
{
    const module m = module_of(name);
    d->p.forward.spirv = m.words;
    d->p.forward.spirv_bytes = m.bytes;
    d->p.forward.push_bytes = 0;
}

/* The declarations that vkt_custom refuses: X(name of the case, expected status of the graph, a part of the message,
 * statements that make the declaration `d` wrong). */
#define REFUSALS(X)                                                                                                  \
    X(no_name, VKT_E_ARG, "want a name", d.p.name = "")                                                              \
    X(no_outputs, VKT_E_ARG, "1 to 8 outputs, got 1 and 0", d.p.n_outputs = 0)                                       \
    X(too_many_inputs, VKT_E_ARG, "0 to 10 inputs", d.p.n_inputs = 11)                                               \
    X(null_inputs, VKT_E_ARG, "0 to 10 inputs", d.p.inputs = NULL)                                                   \
    X(null_input, VKT_E_ARG, "input 0: want a tensor of this graph, got the null", d.in[0].tensor.id = 0)            \
    X(strange_input, VKT_E_ARG, "input 0: want a tensor of this graph, got one of another", d.in[0].tensor.id = 999) \
    X(bytes_input, VKT_E_DTYPE, "want f32 or u32, got u8",                                                           \
      d.in[0].tensor = vkt_external(g, "bytes", VKT_U8, vkt_shape1(N)))                                              \
    X(no_layout, VKT_E_ARG, "want a vkt_layout", d.in[0].layout = (vkt_layout)7)                                     \
    X(range, VKT_E_ARG, "`low` up to `high`", d.in[0].low = 2)                                                       \
    X(bytes_output, VKT_E_DTYPE, "output 0: want f32 or u32", d.out[0].dtype = VKT_U8)                               \
    X(empty_output, VKT_E_SHAPE, "dimensions of at least 1", d.out[0].shape.dim[0] = 0)                              \
    X(no_spirv, VKT_E_ARG, "forward shader: want `spirv`, got NULL", d.p.forward.spirv = NULL)                       \
    X(short_spirv, VKT_E_FORMAT, "word 0: it is shorter than a header", d.p.forward.spirv_bytes = 16)                \
    X(half_word, VKT_E_FORMAT, "multiple of 4", d.p.forward.spirv_bytes--)                                           \
    X(cut_spirv, VKT_E_FORMAT, "the end of a function is missing", d.p.forward.spirv_bytes -= 4)                     \
    X(no_entry, VKT_E_NOT_FOUND, "no compute entry point 'other'", d.p.forward.entry = "other")                      \
    X(no_groups, VKT_E_ARG, "want either `groups` or `elements`, got neither", d.p.forward.elements = 0)             \
    X(both_groups, VKT_E_ARG, "got both", d.p.forward.groups[0] = 1)                                                 \
    X(loops, VKT_E_ARG, "`loops` wants `elements`",                                                                  \
      (d.p.forward.loops = true, d.p.forward.elements = 0, d.p.forward.groups[0] = 1))                               \
    X(push_missing, VKT_E_ARG, "has 4 bytes of push constants; want as many, got 0", d.p.forward.push_bytes = 0)     \
    X(push_large, VKT_E_ARG, "has 4 bytes of push constants; want as many, got 32", d.p.forward.push_bytes = 32)     \
    X(push_odd, VKT_E_ARG, "multiple of 4, got 3", d.p.forward.push_bytes = 3)                                       \
    X(push_above, VKT_E_ARG, "want 0 to 128 bytes", d.p.forward.push_bytes = 132)                                    \
    X(push_null, VKT_E_ARG, "got 4 at NULL", d.p.forward.push = NULL)                                                \
    X(bind_unknown, VKT_E_ARG, "binding 3: want VKT_CUSTOM_X(i) or its like, got 0x7", d.p.forward.bind[3] = 7)      \
    X(bind_input, VKT_E_ARG, "VKT_CUSTOM_X(1), but the op has 1 inputs", d.p.forward.bind[0] = VKT_CUSTOM_X(1))      \
    X(bind_output, VKT_E_ARG, "VKT_CUSTOM_Y(9), but", d.p.forward.bind[1] = VKT_CUSTOM_Y(9))                         \
    X(bind_twice, VKT_E_ARG, "bindings 0 and 2 are both VKT_CUSTOM_X(0)", d.p.forward.bind[2] = VKT_CUSTOM_X(0))     \
    X(bind_gradient, VKT_E_ARG, "only for gradient shaders", d.p.forward.bind[2] = VKT_CUSTOM_DX(0))                 \
    X(unwritten, VKT_E_ARG, "no binding has VKT_CUSTOM_Y(0)", d.p.forward.bind[1] = VKT_CUSTOM_STEP)                 \
    X(no_dx, VKT_E_ARG, "gradient shader: want a binding with VKT_CUSTOM_DX(i)", d.p.gradient.bind[2] = 0)           \
    X(stopped_dx, VKT_E_ARG, "input 0 has no_gradient", d.in[0].no_gradient = true)                                  \
    X(unread, VKT_E_ARG, "no binding has input 1", (d.in[1] = d.in[0], d.p.n_inputs = 2))                            \
    X(extra, VKT_E_ARG, "bind[5] is VKT_CUSTOM_STEP, but the module has no", d.p.forward.bind[5] = VKT_CUSTOM_STEP)  \
    X(missing, VKT_E_ARG, "the module has binding 0; want bind[0]",                                                  \
      (d.p.gradient.bind[0] = 0, d.p.gradient.bind[3] = VKT_CUSTOM_Y(0)))                                            \
    X(swapped, VKT_E_ARG, "want a `readonly` block, got one that may be written",                                    \
      (d.p.forward.bind[0] = VKT_CUSTOM_Y(0), d.p.forward.bind[1] = VKT_CUSTOM_X(0)))                                \
    X(another_set, VKT_E_ARG, "binding 0 is in descriptor set 1", odd(&d, "odd4"))                                   \
    X(uniform, VKT_E_ARG, "binding 0 (VKT_CUSTOM_X(0)): want one storage buffer", odd(&d, "odd5"))                   \
    X(array, VKT_E_ARG, "binding 0 (VKT_CUSTOM_X(0)): want one storage buffer", odd(&d, "odd6"))                     \
    X(image, VKT_E_ARG, "binding 0 (VKT_CUSTOM_X(0)): want one storage buffer", odd(&d, "odd7"))                     \
    X(writable, VKT_E_ARG, "binding 0 (VKT_CUSTOM_X(0)): want a `readonly` block", odd(&d, "odd8"))                  \
    X(read_only, VKT_E_ARG, "binding 1 (VKT_CUSTOM_Y(0)): want a block that the shader writes", odd(&d, "odd9"))     \
    X(high_binding, VKT_E_ARG, "binding 12 of the module; want bindings 0 to 11", odd(&d, "odd10"))                  \
    X(two_blocks, VKT_E_ARG, "binding 1", odd(&d, "odd13"))

#define CHECK(name, result, part, change)                                 \
    static void refuses_##name(void **state)                              \
    {                                                                     \
        const vkt_host h = vkt_test_host();                               \
        vkt_graph *g;                                                     \
        declared d;                                                       \
        vkt_tensor outs[VKT_CUSTOM_OUTPUTS] = { { 5 } };                  \
        (void)state;                                                      \
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);               \
        declare(&d, vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N))); \
        vkt_test_expect_errors(true);                                     \
        change;                                                           \
        assert_int_equal(vkt_custom(g, &d.p, outs).id, 0);                \
        vkt_test_expect_errors(false);                                    \
        assert_int_equal(vkt_graph_status(g), result);                    \
        vkt_test_error_contains(part);                                    \
        if (d.p.n_outputs) assert_int_equal(outs[0].id, 0);               \
        vkt_graph_destroy(&g);                                            \
    }
REFUSALS(CHECK)
#undef CHECK

/* Checks that vkt_program_create refuses the module `name`, because the device cannot run it. If `name` is NULL, the
 * module is the relu of declare(), with too many work groups along z. */
static void check_program(rig *r, const char *name, const char *part)
{
    vkt_graph *g;
    vkt_program *p;
    declared d;
    assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
    declare(&d, vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N)));
    d.p.gradient.spirv = NULL;
    if (name)
        odd(&d, name);
    else
        d.p.forward.groups[2] = r->ctx->limits.max_groups + 1, d.p.forward.groups[0] = 1, d.p.forward.elements = 0;
    vkt_keep(g, vkt_custom(g, &d.p, NULL));
    assert_int_equal(vkt_graph_status(g), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_create(r->ctx, g, NULL, NULL, &p), VKT_E_UNSUPPORTED);
    vkt_test_expect_errors(false);
    vkt_test_error_contains(part);
    assert_null(p);
    vkt_graph_destroy(&g);
}

static void devices_have_limits(void **state)
{
    rig *r = rig_of(state);
    check_program(r, "odd1", "shader op: it declares capability Float64, which this device was not made with");
    check_program(r, "odd2", "work groups of 1024 x 1024 x 64; this device has at most ");
    check_program(r, "odd11", "4194304 bytes of shared memory; this device has ");
    check_program(r, NULL, "work groups along z; this device runs at most ");
}

/* Declares max_groups + 1 elements for a shader with one lane per work group. Without `loops`, the op needs more work
 * groups than the device runs, so vkt_program_create must refuse it. With `loops`, the call must succeed. */
static void elements_without_a_loop(void **state)
{
    rig *r = rig_of(state);
    const uint32_t n = r->ctx->limits.max_groups + 1;
    for (int loops = 0; loops < 2; loops++) {
        vkt_graph *g;
        vkt_program *p;
        declared d;
        assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
        declare(&d, vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(n)));
        d.out[0].shape = vkt_shape1(n);
        d.p.gradient.spirv = NULL;
        d.p.forward = shader_of("relu_lane", n);
        d.p.forward.push = &n;
        d.p.forward.push_bytes = sizeof n;
        d.p.forward.bind[0] = VKT_CUSTOM_X(0);
        d.p.forward.bind[1] = VKT_CUSTOM_Y(0);
        d.p.forward.loops = loops;
        vkt_keep(g, vkt_custom(g, &d.p, NULL));
        assert_int_equal(vkt_graph_status(g), VKT_OK);
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_program_create(r->ctx, g, NULL, NULL, &p), loops ? VKT_OK : VKT_E_UNSUPPORTED);
        vkt_test_expect_errors(false);
        if (!loops) vkt_test_error_contains("let the shader loop over the elements, and set `loops`");
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

/* Checks that vkt_custom copies SPIR-V, entry point, push constants and name: the test overwrites them afterwards. */
static void the_declaration_is_copied(void **state)
{
    rig *r = rig_of(state);
    stand b = stand_make(r);
    float numbers[N];
    declared d;
    const vkt_tensor x = stand_input(&b, vkt_shape1(N), -1, 1, 1, numbers);
    declare(&d, x);
    const size_t bytes = d.p.forward.spirv_bytes;
    uint32_t *code = test_malloc(bytes), n = N;
    char entry[] = "main", name[] = "brief";
    memcpy(code, d.p.forward.spirv, bytes);
    d.p.forward.spirv = code;
    d.p.forward.push = &n;
    d.p.forward.entry = entry;
    d.p.name = name;
    const vkt_tensor y = vkt_custom(b.g, &d.p, NULL);
    memset(code, 0xff, bytes);
    memset(entry, 'x', 4);
    memset(name, 'x', 4);
    test_free(code);
    n = 0;
    memset(&d, 0xff, sizeof d);
    vkt_keep(b.g, y);
    assert_string_equal(vkt_tensor_name(b.g, y), "brief.0");
    stand_start(&b);
    stand_write(&b, x, numbers);
    stand_run(&b, 0, 1);
    float *got = stand_read(&b, y);
    for (int i = 0; i < N; i++) assert_true(got[i] == (numbers[i] > 0 ? numbers[i] : 0));
    test_free(got);
    stand_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name, ...) cmocka_unit_test_setup_teardown(refuses_##name, vkt_test_setup, vkt_test_teardown),
        REFUSALS(TEST)
#undef TEST
            rig_test(devices_have_limits),
        rig_test(elements_without_a_loop), rig_test(the_declaration_is_copied)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
