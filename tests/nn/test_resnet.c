/* Tests residual networks: numbers of parameters, names, initial values, pretrained weights, and freezing. */
#include "train/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "nn/builder.h"
#include "vktrain/models.h"

typedef struct net {
    vkt_graph *g;
    vkt_builder *b;
    vkt_tensor y;
} net;

/* Builds the training graph, for two images of side x side. */
static net net_of(const vkt_resnet_params *p, uint32_t side)
{
    const vkt_host h = vkt_test_host();
    net n;
    assert_int_equal(vkt_graph_create(&h, &n.g), VKT_OK);
    assert_int_equal(vkt_builder_create(n.g, true, &n.b), VKT_OK);
    n.y = vkt_resnet(n.b, vkt_input(n.g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(2, 3, side, side)), p);
    return n;
}

static void net_free(net *n)
{
    vkt_builder_destroy(&n->b);
    vkt_graph_destroy(&n->g);
}

/* The numbers of trainable parameters are from torchvision's documentation of its weights and from
 * akamaster/pytorch_resnet_cifar10. */
static void every_depth_has_the_published_number_of_parameters(void **state)
{
    (void)state;
    static const struct {
        vkt_resnet_params p;
        uint64_t parameters;
        uint32_t norms;
    } cases[] = { { { .depth = 18 }, 11689512, 20 },
                  { { .depth = 34 }, 21797672, 36 },
                  { { .depth = 50 }, 25557032, 53 },
                  { { .depth = 101 }, 44549160, 104 },
                  { { .depth = 152 }, 60192808, 155 },
                  { { .depth = 50, .classes = 101 }, 25557032 - 899 * 2049, 53 },
                  { { .depth = 20, .cifar = true }, 269722, 19 },
                  { { .depth = 32, .cifar = true }, 464154, 31 },
                  { { .depth = 44, .cifar = true }, 658586, 43 },
                  { { .depth = 56, .cifar = true }, 853018, 55 } };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const vkt_resnet_params *p = &cases[i].p;
        net n = net_of(p, p->cifar ? 32 : 224);
        const uint32_t classes = p->classes ? p->classes : p->cifar ? 10 : 1000;
        assert_int_equal(vkt_graph_status(n.g), VKT_OK);
        assert_int_equal(vkt_nn_parameters(n.b), cases[i].parameters);
        assert_true(vkt_shape_equal(vkt_tensor_shape(n.g, n.y), vkt_shape2(2, classes)));
        uint32_t states = 0;
        for (size_t k = 0; k < n.b->n_inits; k++) states += vkt_value_of(n.g, n.b->inits[k].param)->state;
        assert_int_equal(states, 2 * cases[i].norms);
        net_free(&n);
    }
    vkt_test_no_messages_and_no_leaks();
}

static void expect_param(const net *n, const char *name, vkt_shape shape)
{
    size_t i = 0;
    while (i < n->b->n_inits && strcmp(vkt_tensor_name(n->g, n->b->inits[i].param), name) != 0) i++;
    if (i == n->b->n_inits) fail_msg("no parameter is called %s", name);
    assert_true(vkt_shape_equal(vkt_tensor_shape(n->g, n->b->inits[i].param), shape));
}

static void names_and_shapes_are_torchvisions(void **state)
{
    (void)state;
    net n = net_of(&(vkt_resnet_params){ .depth = 50 }, 64);
    expect_param(&n, "conv1.weight", vkt_shape4(64, 3, 7, 7));
    expect_param(&n, "bn1.running_var", vkt_shape1(64));
    expect_param(&n, "layer1.0.conv1.weight", vkt_shape4(64, 64, 1, 1));
    expect_param(&n, "layer1.0.downsample.0.weight", vkt_shape4(256, 64, 1, 1));
    expect_param(&n, "layer1.0.downsample.1.running_mean", vkt_shape1(256));
    expect_param(&n, "layer2.0.conv2.weight", vkt_shape4(128, 128, 3, 3));
    expect_param(&n, "layer3.5.bn3.weight", vkt_shape1(1024));
    expect_param(&n, "layer4.2.conv3.weight", vkt_shape4(2048, 512, 1, 1));
    expect_param(&n, "fc.weight", vkt_shape2(1000, 2048));
    expect_param(&n, "fc.bias", vkt_shape1(1000));
    net_free(&n);
    n = net_of(&(vkt_resnet_params){ .depth = 34 }, 33);
    expect_param(&n, "layer4.0.downsample.0.weight", vkt_shape4(512, 256, 1, 1));
    expect_param(&n, "layer3.5.conv2.weight", vkt_shape4(256, 256, 3, 3));
    net_free(&n);
    n = net_of(&(vkt_resnet_params){ .depth = 56, .cifar = true }, 32);
    expect_param(&n, "layer3.8.bn2.bias", vkt_shape1(64));
    expect_param(&n, "linear.weight", vkt_shape2(10, 64));
    net_free(&n);
    vkt_test_no_messages_and_no_leaks();
}

/* The weights of layer2.0.conv1 are random numbers from N(0, 2 / fan_out), with fan_out = 32 * 3 * 3. */
static void convolutions_begin_as_in_torchvision(void **state)
{
    (void)state;
    net n = net_of(&(vkt_resnet_params){ .depth = 20, .cifar = true }, 32);
    enum { N = 32 * 16 * 9 };
    static float w[N];
    double sum = 0, squares = 0;
    size_t i = 0;
    while (strcmp(vkt_tensor_name(n.g, n.b->inits[i].param), "layer2.0.conv1.weight") != 0) i++;
    vkt_builder_draw(n.b, i, 3, w);
    for (int k = 0; k < N; k++) {
        sum += (double)w[k];
        squares += (double)w[k] * (double)w[k];
    }
    const double variance = 2.0 / (32 * 9); /* the bounds below are four standard deviations of each estimate */
    assert_true(fabs(sum / N) < 4 * sqrt(variance / N));
    assert_true(fabs(squares / N - variance) < 4 * variance * sqrt(2.0 / N));
    net_free(&n);
    vkt_test_no_messages_and_no_leaks();
}

static void a_depth_that_is_none_is_refused(void **state)
{
    (void)state;
    static const vkt_resnet_params wrong[] = {
        { .depth = 20 }, { .depth = 51 }, { .depth = 18, .cifar = true }, { .depth = 2, .cifar = true }, { .depth = 0 }
    };
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        vkt_test_expect_errors(true);
        net n = net_of(&wrong[i], 32);
        vkt_test_expect_errors(false);
        assert_int_equal(vkt_graph_status(n.g), VKT_E_ARG);
        vkt_test_error_contains(wrong[i].cifar ? "6 n + 2" : "18, 34, 50, 101 or 152");
        net_free(&n);
    }
    vkt_test_no_messages_and_no_leaks();
}

/* ---- pretrained weights ---- */

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    return vkt_resnet(b, x, user);
}

static const double mean[] = { 0.485, 0.456, 0.406 }, deviation[] = { 0.229, 0.224, 0.225 };

/* Normalizes `data`. Makes a ResNet-20 trainer for `data`, and loads the weights of the file. */
static vkt_trainer *pretrained(rig *r, vkt_dataset *data, const char *weights)
{
    static vkt_resnet_params resnet20 = { .depth = 20, .cifar = true };
    assert_int_equal(vkt_dataset_normalize(data, mean, deviation), VKT_OK);
    vkt_trainer_params p = rig_params(r);
    p.model = (vkt_model){ .name = "ResNet-20", .forward = forward, .user = &resnet20 };
    p.train = p.validation = data;
    p.batch = 100;
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_load(t, weights), VKT_OK);
    return t;
}

/* After a heading, each line of the .tsv file has the name of an image, its label, its prediction, and its ten logits.
 * Prediction and logits are from a float64 implementation in numpy. */
static void logits_of_pretrained_weights_are_those_recorded(void **state)
{
    enum { N = 16, CLASSES = 10 };
    rig *r = rig_of(state);
    char weights[512], images[512], table[512], line[512];
    if (!vkt_test_find_data("pretrained/cifar10-resnet20.safetensors", weights) ||
        !vkt_test_find_data("pretrained/ref/cifar16-images-idx4-ubyte", images) ||
        !vkt_test_find_data("pretrained/ref/cifar10-resnet20.tsv", table))
        skip();
    vkt_dataset *data;
    const uint32_t labels[N] = { 0 };
    vkt_dataset *unlabelled;
    assert_int_equal(vkt_dataset_from_idx(&r->h, images, NULL, 0, &unlabelled), VKT_OK);
    const vkt_dataset_params p = {
        .rows = N, .channels = 3, .height = 32, .width = 32, .labels = labels, .classes = 10
    };
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &p, vkt_dataset_features(unlabelled), &data), VKT_OK);
    vkt_trainer *t = pretrained(r, data, weights);
    uint32_t classes[N];
    float got[N][CLASSES];
    assert_int_equal(vkt_trainer_predict(t, data, 0, N, classes, &got[0][0]), VKT_OK);
    FILE *f = fopen(table, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    double worst = 0;
    for (int i = 0; i < N; i++) {
        unsigned label, prediction;
        int end;
        assert_non_null(fgets(line, sizeof line, f));
        assert_int_equal(sscanf(line, "%*s %u %u%n", &label, &prediction, &end), 2);
        assert_int_equal(classes[i], prediction);
        char *at = line + end;
        for (int k = 0; k < CLASSES; k++) {
            const double d = fabs(strtod(at, &at) - (double)got[i][k]);
            worst = isfinite(d) ? fmax(worst, d) : INFINITY;
        }
    }
    fclose(f);
    print_message("logits off by %.2g at most\n", worst);
    assert_true(worst < 1e-4); /* the file has six decimals; float32 errors add up over 20 layers */
    vkt_trainer_destroy(&r->trainers[0]);
    vkt_dataset_destroy(&data);
    vkt_dataset_destroy(&unlabelled);
}

/* According to the data set's README, 1,627 of 2,000 images are classified correctly. Another JPEG decoder may change a
 * few predictions. */
static void pretrained_weights_classify_the_images_that_they_should(void **state)
{
    rig *r = rig_of(state);
    char weights[512], table[512];
    if (!vkt_test_find_data("pretrained/cifar10-resnet20.safetensors", weights) ||
        !vkt_test_find_data("cifar10-jpeg/test.csv", table))
        skip();
    vkt_dataset *data;
    const vkt_image_params p = { .height = 32, .width = 32 };
    assert_int_equal(vkt_dataset_from_image_table(&r->h, table, &p, &data), VKT_OK);
    vkt_trainer *t = pretrained(r, data, weights);
    double accuracy;
    assert_int_equal(vkt_trainer_evaluate(t, data, NULL, &accuracy), VKT_OK);
    const double right = accuracy * vkt_dataset_rows(data);
    print_message("%.0f of %u are recognised\n", right, vkt_dataset_rows(data));
    assert_int_equal(vkt_dataset_rows(data), 2000);
    assert_true(fabs(right - 1627) <= 5);
    vkt_trainer_destroy(&r->trainers[0]);
    vkt_dataset_destroy(&data);
}

/* ---- freezing ---- */

static vkt_tensor forward_frozen(vkt_builder *b, vkt_tensor x, void *user)
{
    static const char *const backbone[] = { "conv1.*", "bn1.*", "layer*" };
    const vkt_tensor y = vkt_resnet(b, x, user);
    for (size_t i = 0; i < VKT_COUNT(backbone); i++)
        if (vkt_freeze(vkt_builder_graph(b), backbone[i]) != VKT_OK) return (vkt_tensor){ 0 };
    return y;
}

/* Trains an epoch. Counts the tensors that have changed: moved[0] counts parameters of the backbone, moved[1] running
 * statistics, and moved[2] parameters of the last layer. */
static void count_moved(rig *r, vkt_forward_fn fn, bool use_running, uint32_t moved[3])
{
    vkt_resnet_params resnet8 = { .depth = 8, .cifar = true, .use_running = use_running };
    vkt_trainer_params p = rig_params(r);
    p.model = (vkt_model){ .forward = fn, .user = &resnet8 };
    vkt_trainer *t = rig_trainer(r, &p);
    uint64_t n, at = 0;
    float *before = rig_weights(t, VKT_PART_VALUE, &n);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 1 }), VKT_OK);
    float *after = rig_weights(t, VKT_PART_VALUE, &n);
    memset(moved, 0, 3 * sizeof *moved);
    for (uint32_t i = 0; i < vkt_store_count(vkt_trainer_store(t)); i++) {
        const char *name = vkt_store_name(vkt_trainer_store(t), i);
        const uint64_t size = vkt_shape_elements(vkt_store_shape(vkt_trainer_store(t), i));
        const int kind = strstr(name, "running_") ? 1 : strncmp(name, "linear", 6) == 0 ? 2 : 0;
        moved[kind] += memcmp(before + at, after + at, size * sizeof *before) != 0;
        at += size;
    }
    assert_int_equal(at, n);
    test_free(before);
    test_free(after);
}

/* ResNet-8 has 7 convolutions and 7 norms. vkt_freeze keeps the parameters of the backbone unchanged. use_running keeps
 * the running statistics unchanged. Each switch has this effect with and without the other switch. */
static void frozen_and_in_evaluation_mode_are_two_switches(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        vkt_forward_fn forward;
        bool use_running;
        uint32_t moved[3];
    } cases[] = { { forward, false, { 21, 14, 2 } },
                  { forward, true, { 21, 0, 2 } },
                  { forward_frozen, false, { 0, 14, 2 } },
                  { forward_frozen, true, { 0, 0, 2 } } };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        uint32_t moved[3];
        count_moved(r, cases[i].forward, cases[i].use_running, moved);
        for (int k = 0; k < 3; k++) assert_int_equal(moved[k], cases[i].moved[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_depth_has_the_published_number_of_parameters),
        cmocka_unit_test(names_and_shapes_are_torchvisions),
        cmocka_unit_test(convolutions_begin_as_in_torchvision),
        cmocka_unit_test(a_depth_that_is_none_is_refused),
        rig_test(logits_of_pretrained_weights_are_those_recorded),
        rig_test(pretrained_weights_classify_the_images_that_they_should),
        rig_test(frozen_and_in_evaluation_mode_are_two_switches),
    };
    return cmocka_run_group_tests_name("resnet", tests, NULL, NULL);
}
