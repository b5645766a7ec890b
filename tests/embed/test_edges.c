/* Tests edge cases of the API: outputs that no node computes, forked children, seeds of vkt_gradients, limits of a
 * device, messages that name the fault, and a GPT without dropout. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "support/host.h"
#include "vktrain/vktrain.h"

static vkt_ctx *open_device(void)
{
    static vkt_host h;
    vkt_ctx *ctx;
    h = vkt_test_host();
    assert_int_equal(vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &h, &ctx), VKT_OK);
    return ctx;
}

static vkt_graph *new_graph(void)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    return g;
}

/* ---- an output that no node computes ---- */

static void an_input_or_a_reshape_of_one_is_an_output(void **state)
{
    static const float data[6] = { 1, 2, 3, 4, 5, 6 };
    (void)state;
    vkt_ctx *ctx = open_device();
    for (int reshaped = 0; reshaped < 2; reshaped++) {
        float got[6] = { 0 };
        vkt_graph *g = new_graph();
        vkt_program *p;
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(2, 3));
        const vkt_tensor y = reshaped ? vkt_reshape(g, x, vkt_shape1(6)) : x;
        vkt_keep(g, y);
        assert_int_equal(vkt_program_create(ctx, g, NULL, NULL, &p), VKT_OK);
        assert_int_equal(vkt_program_write(p, x, data, sizeof data), VKT_OK);
        for (int run = 0; run < 3; run++) assert_int_equal(vkt_program_run(p, NULL, NULL), VKT_OK);
        assert_int_equal(vkt_program_read(p, y, got, sizeof got), VKT_OK);
        assert_memory_equal(got, data, sizeof data);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
    vkt_ctx_destroy(&ctx);
}

/* ---- a forked child ---- */

/* Destroys the objects, in the child and later in the parent. No call may hang or log an error. Returns 0 if all
 * handles are NULL and no error was logged. */
static int destroy_all(vkt_program **p, vkt_store **s, vkt_array *a[2], vkt_ctx **ctx)
{
    const unsigned before = vkt_test_errors();
    alarm(60); /* ends a test that would hang */
    vkt_program_destroy(p);
    vkt_store_destroy(s);
    vkt_array_destroy(&a[0]);
    vkt_array_destroy(&a[1]);
    vkt_ctx_destroy(ctx);
    return *p || *s || a[0] || a[1] || *ctx || vkt_test_errors() != before;
}

static void a_forked_child_may_destroy_what_it_inherits(void **state)
{
    (void)state;
    static const float data[4] = { 1, 2, 3, 4 };
    float got[4];
    vkt_ctx *ctx = open_device();
    vkt_graph *g = new_graph();
    vkt_program *p;
    vkt_store *s;
    vkt_array *a[2];
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(4));
    const vkt_tensor y = vkt_mul(g, x, vkt_param(g, "w", vkt_shape1(4)));
    vkt_keep(g, y);
    assert_int_equal(vkt_store_create(ctx, g, &s), VKT_OK);
    assert_int_equal(vkt_program_create(ctx, g, s, NULL, &p), VKT_OK);
    for (int i = 0; i < 2; i++) {
        const vkt_array_params params = { .shape = vkt_shape1(4), .dtype = VKT_F32, .data = data, .host_visible = i };
        assert_int_equal(vkt_array_create(ctx, &params, &a[i]), VKT_OK);
    }
    assert_int_equal(vkt_store_write(s, 0, VKT_PART_VALUE, data), VKT_OK);
    assert_int_equal(vkt_program_write(p, x, data, sizeof data), VKT_OK);
    /* The device may still be working when the process forks. */
    assert_int_equal(vkt_program_run(p, NULL, NULL), VKT_OK);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(destroy_all(&p, &s, a, &ctx));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(vkt_program_read(p, y, got, sizeof got), VKT_OK); /* the parent's objects are unchanged */
    assert_true(got[0] == 1 && got[3] == 16);
    assert_int_equal(destroy_all(&p, &s, a, &ctx), 0);
    alarm(0);
    vkt_graph_destroy(&g);
}

/* ---- seeds ---- */

static void a_seed_is_like_its_output(void **state)
{
    (void)state;
    vkt_graph *g = new_graph();
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(4, 3)), y = vkt_tanh(g, x);
    const vkt_tensor rows = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape2(4, 3));
    vkt_tensor dx;
    assert_int_equal(vkt_tensor_layout(g, y), VKT_BATCH_LAST);
    assert_int_equal(vkt_tensor_layout(g, rows), VKT_ROWS);
    assert_int_equal(vkt_tensor_dtype(g, vkt_argmax(g, x)), VKT_U32);
    const vkt_tensor seed = vkt_to_layout(g, rows, vkt_tensor_layout(g, y));
    assert_int_equal(vkt_gradients(g, &y, &seed, 1, &x, 1, &dx), VKT_OK);
    assert_true(dx.id != 0);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_gradients(g, &y, &rows, 1, &x, 1, &dx), VKT_E_SHAPE);
    vkt_test_error_contains("want a seed f32 (4,3) with the batch last");
    vkt_test_expect_errors(false);
    assert_true(dx.id == 0);
    assert_int_equal(vkt_graph_status(g), VKT_E_SHAPE); /* as after any error of a builder */
    vkt_graph_destroy(&g);
}

/* ---- limits ---- */

/* A value that is too large for any allocation is reported with the name of its op. The report comes before the op is
 * split into dispatches. */
static void what_a_device_cannot_hold_is_named(void **state)
{
    (void)state;
    vkt_ctx *ctx = open_device();
    vkt_graph *g = new_graph();
    vkt_program *p;
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(1, 1));
    const vkt_tensor large = vkt_expand(g, x, vkt_shape3(1u << 20, 1u << 20, 1u << 18), VKT_ROWS);
    vkt_tensor_set_name(g, large, "large one");
    vkt_keep(g, large);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_create(ctx, g, NULL, NULL, &p), VKT_E_DEVICE_MEMORY);
    vkt_test_error_contains("expand: its result 'large one'");
    vkt_test_expect_errors(false);
    vkt_graph_destroy(&g);
    vkt_ctx_destroy(&ctx);
}

/* ---- messages ---- */

static vkt_tensor bad_axis(vkt_graph *g, vkt_tensor x)
{
    return vkt_softmax(g, x, -3);
}

static vkt_tensor no_parameters(vkt_graph *g, vkt_tensor x)
{
    vkt_backward(g, vkt_mean(g, x));
    return (vkt_tensor){ 0 };
}

static vkt_tensor weight_batch_last(vkt_graph *g, vkt_tensor x)
{
    const vkt_tensor image = vkt_input(g, "image", VKT_F32, VKT_BATCH_LAST, vkt_shape4(1, 1, 4, 4));
    (void)x;
    return vkt_conv2d(g, image, vkt_input(g, "w", VKT_F32, VKT_BATCH_LAST, vkt_shape4(1, 1, 3, 3)), (vkt_tensor){ 0 },
                      NULL);
}

static vkt_tensor both_sizes(vkt_graph *g, vkt_tensor x)
{
    const vkt_tensor image = vkt_input(g, "image", VKT_F32, VKT_BATCH_LAST, vkt_shape4(1, 1, 4, 4));
    (void)x;
    return vkt_upsample2d(g, image, &(vkt_upsample2d_params){ .size = { 8, 8 }, .scale = { 2, 2 } });
}

static vkt_tensor trained_statistics(vkt_graph *g, vkt_tensor x)
{
    const vkt_batch_norm_params p = { .running_mean = vkt_param(g, "mean", vkt_shape1(3)),
                                      .running_var = vkt_param(g, "var", vkt_shape1(3)) };
    return vkt_batch_norm(g, x, &p);
}

static vkt_tensor empty_name(vkt_graph *g, vkt_tensor x)
{
    (void)x;
    return vkt_param(g, "", vkt_shape1(3));
}

static vkt_tensor empty_layer_name(vkt_graph *g, vkt_tensor x)
{
    vkt_builder *b;
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    const vkt_tensor y = vkt_nn_linear(b, "", x, &(vkt_nn_linear_params){ .out_features = 2 });
    vkt_builder_destroy(&b);
    return y;
}

static vkt_tensor nothing_packed(vkt_graph *g, vkt_tensor x)
{
    (void)x;
    return vkt_attention_packed(g, (vkt_tensor){ 0 }, 2, NULL);
}

static void messages_name_what_was_wrong(void **state)
{
    static const struct {
        vkt_tensor (*build)(vkt_graph *g, vkt_tensor x);
        const char *says;
    } cases[] = {
        { bad_axis, "softmax: (4,3) has no axis -3" },
        { no_parameters, "the graph has no parameters" },
        { weight_batch_last, "conv2d: want w by rows" },
        { both_sizes, "want a size or a scale, got 8,8 and 2,2" },
        { trained_statistics, "of vkt_state, got the parameter 'mean'" },
        { empty_name, "want a name" },
        { empty_layer_name, "want a name" },
        { nothing_packed, "attention: want a tensor of this graph, got the null tensor" },
    };
    (void)state;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vkt_graph *g = new_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(4, 3));
        assert_int_equal(cases[i].build(g, x).id, 0);
        assert_int_not_equal(vkt_graph_status(g), VKT_OK);
        vkt_test_error_contains(cases[i].says);
        vkt_graph_destroy(&g);
    }
    vkt_test_expect_errors(false);
}

/* ---- layers ---- */

static vkt_tensor prelu(vkt_builder *b, const char *name, vkt_tensor x)
{
    return vkt_nn_prelu(b, name, x, false);
}

static vkt_tensor layer_norm(vkt_builder *b, const char *name, vkt_tensor x)
{
    return vkt_nn_layer_norm(b, name, x, NULL);
}

static vkt_tensor hash_grid(vkt_builder *b, const char *name, vkt_tensor x)
{
    return vkt_nn_hash_grid(b, name, x, NULL);
}

static vkt_tensor attention(vkt_builder *b, const char *name, vkt_tensor x)
{
    return vkt_nn_multi_head_attention(b, name, x, &(vkt_nn_multi_head_attention_params){ .heads = 1 });
}

/* Layers without a name, with an empty name or without an input are refused. */
static void layers_want_a_name_and_an_input(void **state)
{
    typedef vkt_tensor (*layer_fn)(vkt_builder * b, const char *name, vkt_tensor x);
    static const layer_fn layers[] = { prelu, layer_norm, hash_grid, attention };
    static const char *const names[] = { NULL, "", "layer" };
    (void)state;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (size_t k = 0; k < 3; k++) {
            vkt_graph *g = new_graph();
            vkt_builder *b;
            assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
            const vkt_shape s = layers[i] == attention ? vkt_shape3(2, 3, 4) : vkt_shape2(4, 2);
            const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, s);
            assert_int_equal(layers[i](b, names[k], k < 2 ? x : (vkt_tensor){ 0 }).id, 0);
            assert_int_equal(vkt_graph_status(g), VKT_E_ARG);
            vkt_test_error_contains(k < 2 ? "want a name" : "got the null tensor");
            vkt_builder_destroy(&b);
            vkt_graph_destroy(&g);
        }
    vkt_test_expect_errors(false);
}

static void a_gpt_may_be_without_dropout(void **state)
{
    const vkt_gpt_params p = {
        .vocabulary = 5, .context = 3, .layers = 1, .heads = 1, .width = 4, .dropout = VKT_ZERO
    };
    vkt_graph *g = new_graph();
    vkt_builder *b;
    (void)state;
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    assert_int_not_equal(vkt_gpt(b, vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(2, 3)), &p).id, 0);
    assert_int_equal(vkt_graph_status(g), VKT_OK);
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_input_or_a_reshape_of_one_is_an_output),
        TEST(a_forked_child_may_destroy_what_it_inherits),
        TEST(a_seed_is_like_its_output),
        TEST(what_a_device_cannot_hold_is_named),
        TEST(messages_name_what_was_wrong),
        TEST(layers_want_a_name_and_an_input),
        TEST(a_gpt_may_be_without_dropout),
    };
    return cmocka_run_group_tests_name("edges of the API", tests, NULL, NULL);
}
