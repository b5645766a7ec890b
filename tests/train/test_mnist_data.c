/* The safetensors reader and the ops of this library evaluate a network that PyTorch trained. The data are the real
 * test set of MNIST.
 *
 * pretrained/mnist-cnn.safetensors: three 3x3 convolutions (1 -> 8 -> 16 -> 24), each with ReLU; batch norm; linear to
 * 32, ReLU; linear to 10; batch norm. In evaluation a batch norm is x * scale + shift per channel, with
 *     scale = weight / sqrt(running_var + 1e-5)    shift = bias - running_mean * scale
 * The README of the folder pretrained reports, for float32, 9,917 of 10,000 right and a mean loss of 0.02809. */
#include "train/rig.h"

#include <math.h>

#include "io/safetensors.h"

enum { IMAGES = 10000, AREA = 28 * 28, BATCH = 250 };

typedef struct net {
    vkt_graph *g;
    vkt_tensor table, labels, order, scale[2], shift[2];
} net;

static vkt_tensor conv(vkt_graph *g, vkt_tensor x, const char *name, uint32_t in, uint32_t out)
{
    char w[32], b[32];
    snprintf(w, sizeof w, "%s.weight", name);
    snprintf(b, sizeof b, "%s.bias", name);
    x = vkt_conv2d(g, x, vkt_param(g, w, vkt_shape4(out, in, 3, 3)), vkt_param(g, b, vkt_shape1(out)), NULL);
    return vkt_relu(g, x);
}

static vkt_tensor linear(vkt_graph *g, vkt_tensor x, const char *name, uint32_t in, uint32_t out)
{
    char w[32], b[32];
    snprintf(w, sizeof w, "%s.weight", name);
    snprintf(b, sizeof b, "%s.bias", name);
    return vkt_linear(g, x, vkt_param(g, w, vkt_shape2(out, in)), vkt_param(g, b, vkt_shape1(out)));
}

/* Adds batch norm i as x * scale + shift. `shape` is the shape of scale and shift: one number per channel. */
static vkt_tensor norm(net *n, int i, vkt_tensor x, vkt_shape shape)
{
    n->scale[i] = vkt_input(n->g, i ? "scale2" : "scale1", VKT_F32, VKT_ROWS, shape);
    n->shift[i] = vkt_input(n->g, i ? "shift2" : "shift1", VKT_F32, VKT_ROWS, shape);
    return vkt_add(n->g, vkt_mul(n->g, x, n->scale[i]), n->shift[i]);
}

static net build(const vkt_host *h)
{
    net n = { 0 };
    assert_int_equal(vkt_graph_create(h, &n.g), VKT_OK);
    n.table = vkt_external(n.g, "table", VKT_U8, vkt_shape2(IMAGES, AREA));
    n.labels = vkt_external(n.g, "labels", VKT_U32, vkt_shape1(IMAGES));
    n.order = vkt_external(n.g, "order", VKT_U32, vkt_shape1(IMAGES));
    const double scale = 1 / (255 * 0.3081), shift = -0.1307 / 0.3081;
    vkt_tensor x = vkt_gather_rows(n.g, n.table, n.order, BATCH, vkt_shape3(1, 28, 28), &scale, &shift);
    const vkt_tensor t = vkt_gather_labels(n.g, n.labels, n.order, BATCH);
    x = conv(n.g, x, "conv1", 1, 8);
    x = conv(n.g, x, "conv2", 8, 16);
    x = conv(n.g, x, "conv3", 16, 24);
    x = vkt_flatten(n.g, norm(&n, 0, x, vkt_shape3(24, 1, 1)));
    x = vkt_relu(n.g, linear(n.g, x, "fc1", 11616, 32));
    x = norm(&n, 1, linear(n.g, x, "fc2", 32, 10), vkt_shape1(10));
    vkt_report(n.g, vkt_softmax_cross_entropy(n.g, x, t), vkt_count_correct(n.g, x, t));
    assert_int_equal(vkt_graph_status(n.g), VKT_OK);
    return n;
}

static void load_weights(const vkt_safetensors *st, vkt_store *store)
{
    for (uint32_t i = 0; i < vkt_store_count(store); i++) {
        const vkt_st_entry *e = vkt_safetensors_find(st, vkt_store_name(store, i));
        assert_non_null(e);
        float *values = test_malloc(e->elements * sizeof *values);
        assert_int_equal(vkt_safetensors_read_f32(st, e, values, e->elements), VKT_OK);
        assert_int_equal(e->elements, vkt_shape_elements(vkt_store_shape(store, i)));
        assert_int_equal(vkt_store_write(store, i, VKT_PART_VALUE, values), VKT_OK);
        test_free(values);
    }
}

static void load_norm(const vkt_safetensors *st, vkt_program *p, const net *n, int i, uint32_t channels)
{
    static const char *const parts[4] = { "weight", "bias", "running_mean", "running_var" };
    float v[4][24], scale[24], shift[24];
    for (int k = 0; k < 4; k++) {
        char name[32];
        snprintf(name, sizeof name, "norm%d.%s", i + 1, parts[k]);
        const vkt_st_entry *e = vkt_safetensors_find(st, name);
        assert_non_null(e);
        assert_int_equal(vkt_safetensors_read_f32(st, e, v[k], channels), VKT_OK);
    }
    for (uint32_t c = 0; c < channels; c++) {
        scale[c] = v[0][c] / sqrtf(v[3][c] + 1e-5f);
        shift[c] = v[1][c] - v[2][c] * scale[c];
    }
    assert_int_equal(vkt_program_write(p, n->scale[i], scale, channels * sizeof *scale), VKT_OK);
    assert_int_equal(vkt_program_write(p, n->shift[i], shift, channels * sizeof *shift), VKT_OK);
}

static vkt_array *array_of(const rig *r, vkt_dtype dtype, vkt_shape shape, const void *data)
{
    vkt_array *a;
    const vkt_array_params p = { .dtype = dtype, .shape = shape, .data = data };
    assert_int_equal(vkt_array_create(r->ctx, &p, &a), VKT_OK);
    return a;
}

static void run_all(vkt_program *p, double *loss, uint32_t *right)
{
    *loss = *right = 0;
    for (uint32_t first = 0; first < IMAGES; first += BATCH) {
        uint64_t run;
        vkt_metrics m;
        assert_int_equal(vkt_program_run(p, &(vkt_run){ .rows = BATCH, .first = first }, &run), VKT_OK);
        assert_int_equal(vkt_program_metrics(p, run, &m), VKT_OK);
        assert_int_equal(m.rows, BATCH);
        *loss += (double)m.loss * BATCH / IMAGES;
        *right += (uint32_t)m.correct;
    }
}

static void a_network_from_pytorch_reads_mnist_as_it_did_there(void **state)
{
    rig *r = rig_of(state);
    char weights[512], folder[512];
    if (!vkt_test_find_data("pretrained/mnist-cnn.safetensors", weights) || !vkt_test_find_mnist(folder)) skip();
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_open_mnist_like(&r->h, folder, VKT_SPLIT_TEST, 10, &d), VKT_OK);
    assert_int_equal(vkt_dataset_rows(d), IMAGES);
    uint32_t *order = test_malloc(IMAGES * sizeof *order);
    vkt_order_identity(order, IMAGES);

    net n = build(&r->h);
    vkt_store *store;
    vkt_program *p;
    vkt_array *arrays[3] = { array_of(r, VKT_U8, vkt_shape2(IMAGES, AREA), vkt_dataset_features(d)),
                             array_of(r, VKT_U32, vkt_shape1(IMAGES), vkt_dataset_labels(d)),
                             array_of(r, VKT_U32, vkt_shape1(IMAGES), order) };
    const vkt_binding bindings[3] = { { n.table, arrays[0] }, { n.labels, arrays[1] }, { n.order, arrays[2] } };
    assert_int_equal(vkt_store_create(r->ctx, n.g, &store), VKT_OK);
    const vkt_program_params params = { .name = "pretrained", .arrays = bindings, .n_arrays = 3 };
    assert_int_equal(vkt_program_create(r->ctx, n.g, store, &params, &p), VKT_OK);
    vkt_safetensors *st;
    assert_int_equal(vkt_safetensors_open(&r->h, weights, &st), VKT_OK);
    load_weights(st, store);
    load_norm(st, p, &n, 0, 24);
    load_norm(st, p, &n, 1, 10);
    double loss;
    uint32_t right;
    run_all(p, &loss, &right);
    print_message("%u of %u right, mean loss %.5f\n", right, IMAGES, loss);
    assert_in_range(right, 9915, 9919);
    assert_true(fabs(loss - 0.02809) < 2e-5);

    vkt_safetensors_close(&st);
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    for (int i = 0; i < 3; i++) vkt_array_destroy(&arrays[i]);
    vkt_graph_destroy(&n.g);
    vkt_dataset_destroy(&d);
    test_free(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(a_network_from_pytorch_reads_mnist_as_it_did_there) };
    return cmocka_run_group_tests_name("pretrained network", tests, NULL, NULL);
}
