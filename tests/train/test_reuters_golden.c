/* Compares the network of samples/reuters.c with runs that PyTorch recorded. These runs use the layers of PyTorch, and
 * Nadam by the formula of Keras 3. golden/README.md describes the file. Words repeat, and short sequences are padded at
 * the front. Every fifth batch has fewer samples than the others. */
#include "train/golden.h"

#include <math.h>

enum {
    WORDS = 1000,
    WIDTH = 7,
    LENGTH = 300,
    CLASSES = 46,
    ROWS = 148,
    BATCH = 32,
    EPOCHS = 4,
    EPOCH_STEPS = 5,
    STEPS = EPOCHS * EPOCH_STEPS,
    PARAMS = 7,
    FOLD = 1021
};

static const char *const params[PARAMS] = { "embedding.weight", "conv1.weight", "conv1.bias", "conv2.weight",
                                            "conv2.bias",       "fc.weight",    "fc.bias" };

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    const vkt_nn_embedding_params words = { .num_embeddings = WORDS, .embedding_dim = WIDTH, .channels = true };
    const vkt_pool1d_params halve = { .kernel = 2 };
    x = vkt_nn_embedding(b, "embedding", x, &words);
    x = vkt_nn_conv1d(b, "conv1", x, &(vkt_nn_conv1d_params){ .out_channels = 64, .kernel = 5 });
    x = vkt_nn_max_pool1d(b, vkt_nn_relu(b, x), &halve);
    x = vkt_nn_conv1d(b, "conv2", x, &(vkt_nn_conv1d_params){ .out_channels = 32, .kernel = 3 });
    x = vkt_nn_max_pool1d(b, vkt_nn_relu(b, x), &halve);
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = CLASSES });
}

/* ---- sequences and weights, by the formulas of golden/README.md ---- */

static uint16_t word(uint32_t i, uint32_t label)
{
    const uint32_t r = golden_mix(i);
    return (uint16_t)(3 + (r % 4 == 0 ? 21 * label + (r >> 2) % 21 : (r >> 2) % 997 * ((r >> 12) % 997) / 997));
}

static vkt_dataset *texts(const vkt_host *h)
{
    static uint16_t ids[ROWS][LENGTH];
    uint32_t labels[ROWS];
    memset(ids, 0, sizeof ids);
    for (uint32_t i = 0; i < ROWS; i++) {
        const uint32_t hash = golden_mix(i + 0x30001000u), words = 20 + (hash >> 12) % 400;
        labels[i] = (hash >> 4) % CLASSES;
        for (uint32_t k = 0; k < LENGTH && k < words; k++) /* fills the row from its end */
            ids[i][LENGTH - 1 - k] = word(512 * i + words - 1 - k, labels[i]);
        if (words < LENGTH) ids[i][LENGTH - 1 - words] = 1;
    }
    const vkt_dataset_params p = {
        .rows = ROWS, .width = LENGTH, .type = VKT_ROW_U16, .labels = labels, .classes = CLASSES
    };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(h, &p, ids, &d), VKT_OK);
    return d;
}

static void set_weights(vkt_store *store)
{
    assert_int_equal(vkt_store_count(store), PARAMS);
    for (uint32_t number = 0; number < PARAMS; number++) {
        assert_string_equal(vkt_store_name(store, number), params[number]);
        const vkt_shape s = vkt_store_shape(store, number);
        const uint32_t n = (uint32_t)vkt_shape_elements(s), taps = s.rank == 3 ? s.dim[2] : 1;
        const double limit = number == 0 ? 0.05 : sqrt(6 / (double)((s.dim[0] + s.dim[1]) * taps));
        float *w = test_calloc(n, sizeof *w);
        for (uint32_t i = 0; i < n && s.rank > 1; i++)
            w[i] = (float)(((golden_mix(i + ((number + 16) << 24)) >> 8) - 0x1p23) * (limit / 0x1p23));
        assert_int_equal(vkt_store_write(store, number, VKT_PART_VALUE, w), VKT_OK);
        test_free(w);
    }
}

/* ---- the run ---- */

static double step(vkt_trainer *t, uint32_t first)
{
    uint64_t run;
    vkt_metrics m;
    const vkt_run what = { .lr = 0.001f, .first = first, .rows = VKT_MIN(BATCH, ROWS - first) };
    assert_int_equal(vkt_program_run(vkt_trainer_program(t), &what, &run), VKT_OK);
    assert_int_equal(vkt_program_metrics(vkt_trainer_program(t), run, &m), VKT_OK);
    return (double)m.loss;
}

static void twenty_steps_follow_the_float64_run(void **state)
{
    rig *r = rig_of(state);
    vkt_safetensors *st = golden_open(&r->h, "reuters");
    vkt_dataset *data = texts(&r->h);
    const vkt_trainer_params p = { .model = { .forward = forward },
                                   .train = data,
                                   .batch = BATCH,
                                   .optimizer = vkt_optimizer_preset(VKT_NADAM, VKT_PRESET_KERAS3) };
    vkt_trainer *t;
    double losses[STEPS];
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    set_weights(vkt_trainer_store(t));
    vkt_order_identity(t->feed.host_order, ROWS);
    assert_int_equal(vkt_feed_start(&t->feed, 0, (vkt_pass){ 0 }), VKT_OK);
    for (uint32_t s = 0; s < STEPS; s++) {
        losses[s] = step(t, s % EPOCH_STEPS * BATCH);
        if (s == 0)
            golden_check_tensors(st, t, VKT_PART_GRADIENT, "grad64/", (const char *const[]){ "grad_dev", NULL }, FOLD);
    }
    golden_check_losses(st, "loss64", losses, STEPS, (const char *const[]){ "loss_dev", NULL });
    golden_check_tensors(st, t, VKT_PART_VALUE, "final64/", (const char *const[]){ "final_dev", NULL }, FOLD);
    golden_check_tensors(st, t, VKT_PART_MOMENT1, "moment64/", (const char *const[]){ "moment_dev", NULL }, FOLD);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&data);
    vkt_safetensors_close(&st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(twenty_steps_follow_the_float64_run),
    };
    return cmocka_run_group_tests_name("the network of vkt-reuters against PyTorch", tests, NULL, NULL);
}
