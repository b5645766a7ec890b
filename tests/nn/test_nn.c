/* Tests the layers of a builder: shapes, names, initial values, errors and the summary. Also tests the trace of a
 * step. */
#include "train/rig.h"

#include <jansson.h>
#include <math.h>

#include "base/file.h"
#include "nn/builder.h"
#include "vktrain/models.h"

static void padding_of_one_axis_is_padding_of_one_axis(void **state)
{
    (void)state;
    static const struct {
        uint32_t kernel[2], pad[2], out[2]; /* out: height and width of the output for an image of 20 x 30 */
    } cases[] = { { { 3 }, { 0 }, { 18, 28 } },       { { 3 }, { 1 }, { 20, 30 } },
                  { { 3 }, { 0, 1 }, { 18, 30 } },    { { 3, 3 }, { 1 }, { 20, 28 } },
                  { { 5, 1 }, { 2, 0 }, { 20, 30 } }, { { 1, 5 }, { 0, 2 }, { 20, 30 } },
                  { { 3, 5 }, { 1, 2 }, { 20, 30 } } };
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_graph *g;
        vkt_builder *b;
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
        assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(2, 1, 20, 30));
        vkt_nn_conv2d_params p = { .out_channels = 4 };
        memcpy(p.kernel, cases[i].kernel, sizeof p.kernel);
        memcpy(p.pad, cases[i].pad, sizeof p.pad);
        const vkt_shape y = vkt_tensor_shape(g, vkt_nn_conv2d(b, "conv", x, &p));
        assert_int_equal(y.dim[2], cases[i].out[0]);
        assert_int_equal(y.dim[3], cases[i].out[1]);
        vkt_builder_destroy(&b);
        vkt_graph_destroy(&g);
    }
    vkt_test_no_messages_and_no_leaks();
}

/* Checks pools, upsampling, padding and a transposed convolution of images, and layers of sequences. */
static void pools_and_sequences_have_torchs_shapes(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_builder *b;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(2, 3, 112, 57));
    vkt_nn_pool2d_params p = { .kernel = { 3 }, .stride = { 2 }, .pad = { 1 } };
    const vkt_shape floored = vkt_tensor_shape(g, vkt_nn_max_pool2d_with(b, x, &p));
    assert_true(vkt_shape_equal(floored, vkt_shape4(2, 3, 56, 29)));
    p.ceil_mode = true;
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, vkt_nn_avg_pool2d_with(b, x, &p)), vkt_shape4(2, 3, 57, 29)));
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, vkt_nn_avg_pool2d(b, x, 2)), vkt_shape4(2, 3, 56, 28)));
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, vkt_nn_global_avg_pool(b, x)), vkt_shape2(2, 3)));

    const vkt_upsample2d_params twice = { .scale = { 2, 3 }, .mode = VKT_UPSAMPLE_BILINEAR };
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, vkt_nn_upsample2d(b, x, &twice)), vkt_shape4(2, 3, 224, 171)));
    const vkt_shape framed = vkt_tensor_shape(g, vkt_nn_constant_pad2d(b, x, 1, 2, 3, 4, 0));
    assert_true(vkt_shape_equal(framed, vkt_shape4(2, 3, 119, 60)));

    const vkt_nn_conv_transpose2d_params grow = {
        .out_channels = 5, .kernel = { 3 }, .stride = { 2 }, .pad = { 1 }, .output_pad = { 1 }, .no_bias = true
    };
    const vkt_shape grown = vkt_tensor_shape(g, vkt_nn_conv_transpose2d(b, "grow", x, &grow));
    assert_true(vkt_shape_equal(grown, vkt_shape4(2, 5, 224, 114)));
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, (vkt_tensor){ g->params[0] }), vkt_shape4(3, 5, 3, 3)));

    x = vkt_input(g, "s", VKT_F32, VKT_ROWS, vkt_shape3(5, 6, 300));
    const vkt_nn_conv1d_params conv = { .out_channels = 4, .kernel = 5, .stride = 2, .pad = 1, .groups = 2 };
    x = vkt_nn_conv1d(b, "conv", x, &conv);
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, x), vkt_shape3(5, 4, 149)));
    x = vkt_nn_max_pool1d(b, x, &(vkt_pool1d_params){ .kernel = 2 });
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, x), vkt_shape3(5, 4, 74)));
    const vkt_tensor w = { g->params[1] };
    assert_string_equal(vkt_tensor_name(g, w), "conv.weight");
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, w), vkt_shape3(4, 3, 5)));
    assert_int_equal(vkt_nn_parameters(b), 3 * 5 * 3 * 3 + 4 * 3 * 5 + 4);
    const vkt_nn_conv_transpose1d_params up = { .out_channels = 6, .kernel = 4, .stride = 2, .pad = 1, .groups = 2 };
    x = vkt_nn_conv_transpose1d(b, "up", x, &up);
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, x), vkt_shape3(5, 6, 148)));
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, (vkt_tensor){ g->params[3] }), vkt_shape3(4, 3, 4)));
    assert_int_equal(vkt_graph_status(g), VKT_OK);
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    vkt_test_no_messages_and_no_leaks();
}

/* The initial values are torch's: N(0, 1), and zeros in row padding_id. */
static void an_embedding_starts_normal_with_a_row_of_zeros(void **state)
{
    (void)state;
    enum { V = 500, D = 6, PADDING = 3 };
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_builder *b;
    static float w[V * D];
    double sum = 0, squares = 0;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    const vkt_tensor ids = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(5, 7));
    vkt_nn_embedding_params p = { .num_embeddings = V, .embedding_dim = D, .has_padding = true, .padding_id = PADDING };
    const vkt_shape rows = vkt_tensor_shape(g, vkt_nn_embedding(b, "words", ids, &p));
    assert_true(vkt_shape_equal(rows, vkt_shape3(5, 7, D)));
    assert_string_equal(vkt_tensor_name(g, (vkt_tensor){ g->params[0] }), "words.weight");
    vkt_builder_draw(b, 0, 1, w);
    for (uint32_t i = 0; i < V * D; i++) {
        assert_int_equal(w[i] == 0, i / D == PADDING);
        sum += (double)w[i];
        squares += (double)w[i] * (double)w[i];
    }
    assert_true(fabs(sum / (V * D)) < 4 / sqrt(V * D) && fabs(squares / (V * D) - 1) < 4 * sqrt(2.0 / (V * D)));
    p.channels = true;
    const vkt_shape channels = vkt_tensor_shape(g, vkt_nn_embedding(b, "letters", ids, &p));
    assert_true(vkt_shape_equal(channels, vkt_shape3(5, D, 7)));
    p.padding_id = V;
    vkt_test_expect_errors(true);
    vkt_nn_embedding(b, "wrong", ids, &p);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_graph_status(g), VKT_E_ARG);
    vkt_test_error_contains("padding_id");
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    vkt_test_no_messages_and_no_leaks();
}

static void a_hash_grid_starts_close_to_zero(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_builder *b;
    vkt_hash_grid_level level[VKT_HASH_GRID_MAX_LEVELS];
    static float w[4 * 1024];
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    /* The levels have 5^2, 7^2 and 10^2 corners. The first two levels have an entry for each corner, rounded up to
     * multiples of 8 entries. The third level hashes its corners to 64 entries. */
    const vkt_nn_hash_grid_params p = {
        { .levels = 3, .log2_table_size = 6, .base_resolution = 4, .per_level_scale = 1.5 }
    };
    const vkt_shape table = vkt_hash_grid_table(&p.grid, 2, level);
    assert_true(vkt_shape_equal(table, vkt_shape2(32 + 56 + 64, 2)));
    for (uint32_t l = 0; l < 3; l++) {
        static const vkt_hash_grid_level want[] = { { 4, 0, 0, 32 }, { 6, 0, 32, 56 }, { 9, 63, 88, 64 } };
        assert_memory_equal(&level[l], &want[l], sizeof want[l]);
    }
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(11, 2));
    const vkt_tensor y = vkt_nn_hash_grid(b, "grid", x, &p);
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, y), vkt_shape2(11, 6)));
    assert_string_equal(vkt_tensor_name(g, (vkt_tensor){ g->params[0] }), "grid.table");
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, vkt_nn_frequency(b, x, 0)), vkt_shape2(11, 40)));
    vkt_builder_draw(b, 0, 1, w);
    float most = 0;
    for (uint32_t i = 0; i < vkt_shape_elements(table); i++) most = fmaxf(most, fabsf(w[i]));
    assert_true(most <= 1e-4f && most > 0.97e-4f);
    assert_int_equal(vkt_hash_grid_table(NULL, 3, NULL).dim[1], 2);
    assert_int_equal(vkt_hash_grid_table(NULL, 4, NULL).rank, 0);
    vkt_test_expect_errors(true);
    vkt_nn_hash_grid(b, "wrong", y, NULL);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_graph_status(g), VKT_E_ARG);
    vkt_test_error_contains("wrong: want points");
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    vkt_test_no_messages_and_no_leaks();
}

/* vkt_nn_init refuses a store if its parameter w has another shape, or if it has no parameter w. */
static void initial_values_want_a_store_of_the_same_shapes(void **state)
{
    rig *r = rig_of(state);
    for (int named = 0; named < 2; named++) {
        vkt_graph *theirs, *ours;
        vkt_builder *b;
        vkt_store *store;
        assert_int_equal(vkt_graph_create(&r->h, &theirs), VKT_OK);
        assert_int_equal(vkt_graph_create(&r->h, &ours), VKT_OK);
        vkt_param(theirs, named ? "w" : "v", vkt_shape1(100000));
        assert_int_equal(vkt_store_create(r->ctx, theirs, &store), VKT_OK);
        assert_int_equal(vkt_builder_create(ours, true, &b), VKT_OK);
        vkt_nn_param(b, "w", vkt_shape1(4), (vkt_init){ VKT_INIT_DEFAULT }, 4, 4);
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_nn_init(b, store, 1), VKT_E_NOT_FOUND);
        vkt_test_expect_errors(false);
        vkt_test_error_contains("no parameter 'w' of shape (4)");
        vkt_builder_destroy(&b);
        vkt_store_destroy(&store);
        vkt_graph_destroy(&ours);
        vkt_graph_destroy(&theirs);
    }
}

static void a_trace_is_json_whatever_the_model_is_called(void **state)
{
    rig *r = rig_of(state);
    char name[] = "a \"model\"\\\n";
    vkt_trainer_params p = rig_params(r);
    p.model.name = name;
    p.profile = true;
    vkt_trainer *t = rig_trainer(r, &p);
    memset(name, 'x', sizeof name - 1); /* the trainer has a copy of the name */
    const char *path = vkt_temp_dir_file(&r->dir, "trace.json");
    assert_int_equal(vkt_trainer_profile(t, path), VKT_OK);
    void *text;
    size_t n;
    assert_int_equal(vkt_file_read(&r->h, path, 1u << 24, &text, &n), VKT_OK);
    json_t *root = json_loadb(text, n, 0, NULL);
    const json_t *events = json_object_get(root, "traceEvents");
    const json_t *about = json_object_get(json_array_get(events, 0), "args");
    assert_string_equal(json_string_value(json_object_get(about, "name")), "a \"model\"\\\n: one training step");
    assert_true(json_array_size(events) > 10);
    assert_true(json_is_real(json_object_get(json_array_get(events, 1), "dur")));
    json_decref(root);
    vkt_free(&r->h, text);
}

/* The layers of this test keep the shape. Only PReLU has parameters: one slope, or one per channel. The slopes have
 * torch's initial value 0.25. */
static void activations_are_layers(void **state)
{
    (void)state;
    vkt_tensor (*const plain[])(vkt_builder *, vkt_tensor) = { vkt_nn_relu,     vkt_nn_gelu,    vkt_nn_gelu_tanh,
                                                               vkt_nn_silu,     vkt_nn_sigmoid, vkt_nn_tanh,
                                                               vkt_nn_hardswish };
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_builder *b;
    char *summary;
    float slopes[5];
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(2, 5, 3, 4));
    for (size_t i = 0; i < VKT_COUNT(plain); i++) x = plain[i](b, x);
    x = vkt_nn_softplus(b, vkt_nn_elu(b, vkt_nn_leaky_relu(b, x, 0.01f), 1), 1, 20);
    x = vkt_nn_rope(b, vkt_nn_swiglu(b, x, x), NULL);
    assert_int_equal(vkt_nn_parameters(b), 0);
    x = vkt_nn_prelu(b, "one", x, false);
    assert_int_equal(vkt_nn_parameters(b), 1);
    x = vkt_nn_prelu(b, "each", x, true);
    assert_int_equal(vkt_nn_parameters(b), 6);
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, x), vkt_shape4(2, 5, 3, 4)));
    assert_int_equal(vkt_nn_rope(NULL, x, NULL).id, 0);
    assert_int_equal(vkt_nn_swiglu(NULL, x, x).id, 0);
    vkt_builder_draw(b, 1, 7, slopes);
    for (int i = 0; i < 5; i++) assert_true(slopes[i] == 0.25f);
    assert_int_equal(vkt_nn_summary(b, "activations", &summary), VKT_OK);
    assert_non_null(strstr(summary, "LeakyReLU"));
    assert_non_null(strstr(summary, "SwiGLU"));
    assert_non_null(strstr(summary, "RoPE"));
    assert_non_null(strstr(summary, "each (PReLU)"));
    vkt_text_release(&summary);
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    vkt_test_no_messages_and_no_leaks();
}

/* ---- params that are NULL ---- */

#define WITHOUT(name, type)                                        \
    static vkt_tensor name##_without(vkt_builder *b, vkt_tensor x) \
    {                                                              \
        return vkt_nn_##name(b, "layer", x, (const type *)NULL);   \
    }
WITHOUT(conv2d, vkt_nn_conv2d_params)
WITHOUT(conv1d, vkt_nn_conv1d_params)
WITHOUT(conv_transpose2d, vkt_nn_conv_transpose2d_params)
WITHOUT(conv_transpose1d, vkt_nn_conv_transpose1d_params)
WITHOUT(linear, vkt_nn_linear_params)
WITHOUT(embedding, vkt_nn_embedding_params)
WITHOUT(multi_head_attention, vkt_nn_multi_head_attention_params)
WITHOUT(batch_norm, vkt_nn_batch_norm_params)
WITHOUT(layer_norm, vkt_nn_norm_params)
WITHOUT(rms_norm, vkt_nn_norm_params)
WITHOUT(hash_grid, vkt_nn_hash_grid_params)

static vkt_tensor group_norm_without(vkt_builder *b, vkt_tensor x)
{
    return vkt_nn_group_norm(b, "layer", x, 2, NULL);
}
static vkt_tensor max_pool2d_without(vkt_builder *b, vkt_tensor x)
{
    return vkt_nn_max_pool2d_with(b, x, NULL);
}
static vkt_tensor avg_pool2d_without(vkt_builder *b, vkt_tensor x)
{
    return vkt_nn_avg_pool2d_with(b, x, NULL);
}
static vkt_tensor max_pool1d_without(vkt_builder *b, vkt_tensor x)
{
    return vkt_nn_max_pool1d(b, x, NULL);
}
static vkt_tensor avg_pool1d_without(vkt_builder *b, vkt_tensor x)
{
    return vkt_nn_avg_pool1d(b, x, NULL);
}
static vkt_tensor upsample2d_without(vkt_builder *b, vkt_tensor x)
{
    return vkt_nn_upsample2d(b, x, NULL);
}
static vkt_tensor resnet_without(vkt_builder *b, vkt_tensor x)
{
    return vkt_resnet(b, x, NULL);
}
static vkt_tensor gpt_without(vkt_builder *b, vkt_tensor x)
{
    return vkt_gpt(b, x, NULL);
}

/* Params that are NULL select the defaults. A size that has no default causes an error, not a crash. */
static void params_that_are_null_are_defaults(void **state)
{
    (void)state;
    static const struct {
        vkt_tensor (*layer)(vkt_builder *b, vkt_tensor x);
        uint32_t rank;
        vkt_result want;
    } cases[] = { { conv2d_without, 4, VKT_E_ARG },
                  { conv1d_without, 3, VKT_E_ARG },
                  { conv_transpose2d_without, 4, VKT_E_ARG },
                  { conv_transpose1d_without, 3, VKT_E_ARG },
                  { linear_without, 2, VKT_E_ARG },
                  { embedding_without, 2, VKT_E_ARG },
                  { multi_head_attention_without, 3, VKT_E_ARG },
                  { max_pool2d_without, 4, VKT_E_ARG },
                  { avg_pool2d_without, 4, VKT_E_ARG },
                  { max_pool1d_without, 3, VKT_E_ARG },
                  { avg_pool1d_without, 3, VKT_E_ARG },
                  { upsample2d_without, 4, VKT_E_ARG },
                  { resnet_without, 4, VKT_E_ARG },
                  { gpt_without, 2, VKT_E_ARG },
                  { batch_norm_without, 4, VKT_OK },
                  { layer_norm_without, 3, VKT_OK },
                  { rms_norm_without, 3, VKT_OK },
                  { group_norm_without, 4, VKT_OK },
                  { hash_grid_without, 2, VKT_OK } };
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_graph *g;
        vkt_builder *b;
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
        assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
        const vkt_shape shape = { .rank = cases[i].rank, .dim = { 3, 2, 8, 8 } };
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, shape);
        vkt_test_expect_errors(cases[i].want != VKT_OK);
        const vkt_tensor y = cases[i].layer(b, x);
        vkt_test_expect_errors(false);
        if (vkt_graph_status(g) != cases[i].want) fail_msg("case %zu: %s", i, vkt_test_last_error());
        assert_int_equal(y.id != 0, cases[i].want == VKT_OK);
        vkt_builder_destroy(&b);
        vkt_graph_destroy(&g);
    }
    vkt_test_no_messages_and_no_leaks();
}

/* ---- missing sizes, the summary, attention ---- */

static void a_layer_without_a_size_says_which(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    for (int i = 0; i < 2; i++) {
        vkt_graph *g;
        vkt_builder *b;
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
        assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(2, 3, 8, 8));
        vkt_test_expect_errors(true);
        if (i == 0)
            vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 16 });
        else
            vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), NULL);
        vkt_test_expect_errors(false);
        vkt_test_error_contains(i == 0 ? "conv: want out_channels and a kernel of 1 or more"
                                       : "fc: want out_features of 1 or more");
        if (i == 0) vkt_test_error_contains("got 3 channels of x, 16 out_channels, kernel 0, groups 1");
        vkt_builder_destroy(&b);
        vkt_graph_destroy(&g);
    }
    vkt_test_no_messages_and_no_leaks();
}

static void the_summary_shows_sums_and_what_is_frozen(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_builder *b;
    char *summary;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(4, 1000));
    const vkt_tensor y = vkt_nn_linear(b, "a", x, &(vkt_nn_linear_params){ .out_features = 1000 });
    const vkt_tensor z = vkt_nn_add(b, x, vkt_nn_batch_norm(b, "norm", y, NULL));
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, z), vkt_shape2(4, 1000)));
    assert_int_equal(vkt_nn_summary(b, "sums", &summary), VKT_OK);
    assert_non_null(strstr(summary, "\nAdd  "));
    assert_non_null(strstr(summary, "\ntrainable: 1,003,000   frozen: 0\n"));
    vkt_text_release(&summary);
    assert_int_equal(vkt_freeze(g, "a.*"), VKT_OK);
    assert_int_equal(vkt_nn_summary(b, "sums", &summary), VKT_OK);
    assert_non_null(strstr(summary, "\ntrainable: 2,000   frozen: 1,001,000\n"));
    vkt_text_release(&summary);
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);

    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    const vkt_tensor ids = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(2, 4));
    vkt_gpt(b, ids, &(vkt_gpt_params){ .vocabulary = 9, .context = 4, .layers = 2, .heads = 2, .width = 8 });
    assert_int_equal(vkt_nn_summary(b, "gpt", &summary), VKT_OK);
    int sums = 0;
    for (const char *at = summary; (at = strstr(at, "\nAdd  ")); at++) sums++;
    assert_int_equal(sums, 4); /* a block of the network has two residual sums */
    vkt_text_release(&summary);
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    vkt_test_no_messages_and_no_leaks();
}

static void attention_has_gpt2s_names_and_shapes(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_builder *b;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, true, &b), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape3(2, 5, 12));
    vkt_nn_multi_head_attention_params p = { .heads = 3, .causal = true, .dropout = 0.1f };
    vkt_nn_push(b, "h");
    const vkt_tensor y = vkt_nn_multi_head_attention(b, "attn", x, &p);
    vkt_nn_pop(b);
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, y), vkt_shape3(2, 5, 12)));
    static const char *const names[] = { "h.attn.c_attn.weight", "h.attn.c_attn.bias", "h.attn.c_proj.weight",
                                         "h.attn.c_proj.bias" };
    for (size_t i = 0; i < VKT_COUNT(names); i++)
        assert_string_equal(vkt_tensor_name(g, (vkt_tensor){ g->params[i] }), names[i]);
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, (vkt_tensor){ g->params[0] }), vkt_shape2(36, 12)));
    assert_int_equal(vkt_nn_parameters(b), 36 * 12 + 36 + 12 * 12 + 12);
    p.kv_heads = 1;
    const vkt_tensor few = vkt_nn_multi_head_attention(b, "few", x, &p);
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, few), vkt_shape3(2, 5, 12)));
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, (vkt_tensor){ g->params[4] }), vkt_shape2(20, 12)));
    p.heads = 5;
    vkt_test_expect_errors(true);
    vkt_nn_multi_head_attention(b, "wrong", x, &p);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_graph_status(g), VKT_E_SHAPE);
    vkt_test_error_contains("heads that divide D, got (2,5,12) and 5");
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    vkt_test_no_messages_and_no_leaks();
}

static void attention_wants_operands_that_fit(void **state)
{
    (void)state;
    /* The last dimension of k, then the second dimension of k. 4 and 6 would be right. In the first case, the first
     * dimension of k is wrong: see `lead`. */
    static const uint32_t wrong[][2] = { { 4, 6 }, { 3, 6 }, { 4, 7 } };
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        vkt_graph *g;
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
        const uint32_t lead = i == 0 ? 3 : 2;
        const vkt_tensor q = vkt_input(g, "q", VKT_F32, VKT_ROWS, vkt_shape3(2, 5, 4));
        const vkt_tensor k = vkt_input(g, "k", VKT_F32, VKT_ROWS, vkt_shape3(lead, wrong[i][1], wrong[i][0]));
        const vkt_tensor v = vkt_input(g, "v", VKT_F32, VKT_ROWS, vkt_shape3(2, 6, 5));
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_attention(g, q, k, v, NULL).id, 0);
        vkt_test_expect_errors(false);
        assert_int_equal(vkt_graph_status(g), VKT_E_SHAPE);
        vkt_test_error_contains("attention: want q (..,T,D)");
        vkt_graph_destroy(&g);
    }
    vkt_test_no_messages_and_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(params_that_are_null_are_defaults, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(a_layer_without_a_size_says_which, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(the_summary_shows_sums_and_what_is_frozen, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test(padding_of_one_axis_is_padding_of_one_axis),
        cmocka_unit_test(pools_and_sequences_have_torchs_shapes),
        cmocka_unit_test(activations_are_layers),
        cmocka_unit_test(attention_has_gpt2s_names_and_shapes),
        cmocka_unit_test(attention_wants_operands_that_fit),
        cmocka_unit_test(an_embedding_starts_normal_with_a_row_of_zeros),
        cmocka_unit_test(a_hash_grid_starts_close_to_zero),
        rig_test(initial_values_want_a_store_of_the_same_shapes),
        rig_test(a_trace_is_json_whatever_the_model_is_called),
    };
    return cmocka_run_group_tests_name("nn", tests, NULL, NULL);
}
