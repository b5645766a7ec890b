/* Compares the network of samples/images.c with runs that PyTorch recorded. The optimizer is SGD with dampening. The
 * last batch of an epoch is smaller than the others. A validation follows each epoch. A plateau of the validation loss
 * lowers the learning rate. tests/golden/README.md describes the
 * recorded runs. */
#include "train/golden.h"

#include <math.h>

enum {
    SIDE = 32,
    AREA = SIDE * SIDE,
    CLASSES = 101,
    BATCH = 32,
    EPOCHS = 5,
    ROWS = 108,
    CHECK = 40,
    STEPS = 20,
    PARAMS = 10,
    FOLD = 1021
};

static const char *const params[PARAMS] = { "conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                            "fc1.bias",     "fc2.weight", "fc2.bias",     "fc3.weight", "fc3.bias" };

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv1", x, &(vkt_nn_conv2d_params){ .out_channels = 32, .kernel = { 3 } });
    x = vkt_nn_max_pool2d(b, vkt_nn_relu(b, x), 2);
    x = vkt_nn_conv2d(b, "conv2", x, &(vkt_nn_conv2d_params){ .out_channels = 64, .kernel = { 3 } });
    x = vkt_nn_max_pool2d(b, vkt_nn_relu(b, x), 2);
    x = vkt_nn_flatten(b, x);
    x = vkt_nn_relu(b, vkt_nn_linear(b, "fc1", x, &(vkt_nn_linear_params){ .out_features = 256 }));
    x = vkt_nn_relu(b, vkt_nn_linear(b, "fc2", x, &(vkt_nn_linear_params){ .out_features = 128 }));
    return vkt_nn_linear(b, "fc3", x, &(vkt_nn_linear_params){ .out_features = CLASSES });
}

/* ---- images and weights, by the formulas of golden/README.md ---- */

static void draw_image(uint32_t i, unsigned char *pixels, uint32_t *label)
{
    const uint32_t h = golden_mix(i + 0x20000000u), root = (h >> 4) % 11;
    *label = root * root;
    for (uint32_t k = 0; k < 3 * AREA; k++) {
        const uint32_t c = k / AREA, y = k / SIDE % SIDE, x = k % SIDE, kind = golden_mix(3 * root + c);
        const uint32_t phase = ((kind & 15) * x + (kind >> 4 & 15) * y + (h >> 20)) % 64;
        const uint32_t wave = phase < 32 ? phase : 63 - phase;
        pixels[k] = (unsigned char)(4 * wave + (golden_mix(3 * AREA * i + k) >> 25));
    }
}

static vkt_dataset *images(const vkt_host *h)
{
    static const double mean[3] = { 0.4948052, 0.48568845, 0.44682974 }, std[3] = { 0.24580306, 0.24236229, 0.2603115 };
    static unsigned char pixels[(ROWS + CHECK) * 3 * AREA];
    uint32_t labels[ROWS + CHECK];
    for (uint32_t i = 0; i < ROWS + CHECK; i++) draw_image(i, pixels + (size_t)i * 3 * AREA, &labels[i]);
    const vkt_dataset_params p = { .rows = ROWS + CHECK,
                                   .channels = 3,
                                   .height = SIDE,
                                   .width = SIDE,
                                   .labels = labels,
                                   .classes = CLASSES,
                                   .mean = mean,
                                   .std = std };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(h, &p, pixels, &d), VKT_OK);
    return d;
}

static void set_weights(vkt_store *store)
{
    assert_int_equal(vkt_store_count(store), PARAMS);
    for (uint32_t number = 0; number < PARAMS; number++) {
        assert_string_equal(vkt_store_name(store, number), params[number]);
        const vkt_shape s = vkt_store_shape(store, number);
        const uint32_t n = (uint32_t)vkt_shape_elements(s);
        const double std = s.rank == 4 ? sqrt(2 / (double)((s.dim[0] + s.dim[1]) * 9)) : 0.01;
        float *w = test_calloc(n, sizeof *w);
        for (uint32_t i = 0; i < n && s.rank > 1; i++) {
            const uint32_t h = golden_mix(i + (number << 24));
            const int sum = (int)((h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24)) - 510;
            w[i] = (float)(sum * (std / sqrt(21845)));
        }
        assert_int_equal(vkt_store_write(store, number, VKT_PART_VALUE, w), VKT_OK);
        test_free(w);
    }
}

/* ---- the run ---- */

typedef struct recorder {
    vkt_trainer *t;
    double losses[STEPS], sum; /* sum: sum of (loss * number of samples) over the steps of the epoch so far */
    uint32_t n;
    uint64_t rows;
} recorder;

static void on_batch(void *user, const vkt_fit_progress *p)
{
    recorder *r = user;
    if (p->validating) return;
    const vkt_sums *s = &r->t->at.sums;
    if (p->batch == 1) r->sum = 0, r->rows = 0;
    assert_true(r->n < STEPS);
    r->losses[r->n++] = (s->loss - r->sum) / (double)(s->rows - r->rows);
    r->sum = s->loss;
    r->rows = s->rows;
}

static bool at_once(void *user)
{
    (void)user;
    return true;
}

static void check_history(const vkt_safetensors *st, const vkt_trainer *t)
{
    uint32_t n;
    uint64_t stored;
    const vkt_epoch_record *history = vkt_trainer_history(t, &n);
    double val_loss[EPOCHS], *lr = golden_numbers(st, "lr64", &stored);
    assert_int_equal(n, EPOCHS);
    assert_int_equal(stored, EPOCHS);
    for (uint32_t i = 0; i < EPOCHS; i++) {
        val_loss[i] = history[i].val_loss;
        assert_true(fabs(history[i].lr - lr[i]) <= 1e-7 * lr[i]); /* 1e-7, because params.lr is a float */
    }
    assert_true(lr[EPOCHS - 1] < lr[0]);
    golden_check_losses(st, "val_loss64", val_loss, EPOCHS, (const char *const[]){ "val_loss_dev", NULL });
    test_free(lr);
}

static void five_epochs_follow_the_float64_run(void **state)
{
    rig *r = rig_of(state);
    vkt_safetensors *st = golden_open(&r->h, "images");
    vkt_dataset *all = images(&r->h), *train, *check;
    assert_int_equal(vkt_dataset_slice(all, 0, ROWS, &train), VKT_OK);
    assert_int_equal(vkt_dataset_slice(all, ROWS, CHECK, &check), VKT_OK);
    const vkt_trainer_params p = {
        .model = { .forward = forward },
        .train = train,
        .validation = check,
        .batch = BATCH,
        .optimizer = { .kind = VKT_SGD, .momentum = 0.9f, .dampening = 0.1f },
        .lr = 0.001f,
        .schedule = { .kind = VKT_SCHEDULE_PLATEAU, .plateau = { .patience = 1, .threshold = 1e-3 } },
        .no_shuffle = true,
    };
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    set_weights(vkt_trainer_store(t));
    recorder of = { .t = t };
    vkt_fit_params fit = { .epochs = EPOCHS, .monitor = VKT_MONITOR_VAL_LOSS };
    fit.callbacks = (vkt_fit_callbacks){ .user = &of, .on_batch = on_batch, .stop = at_once };
    rig_fit(t, &fit); /* one step */
    golden_check_tensors(st, t, VKT_PART_GRADIENT, "grad64/", (const char *const[]){ "grad_dev", NULL }, FOLD);
    fit.callbacks.stop = NULL;
    rig_fit(t, &fit);
    assert_int_equal(of.n, STEPS);
    golden_check_losses(st, "loss64", of.losses, STEPS, (const char *const[]){ "loss_dev", NULL });
    check_history(st, t);
    golden_check_tensors(st, t, VKT_PART_VALUE, "best64/", (const char *const[]){ "best_dev", NULL }, FOLD);
    golden_check_tensors(st, t, VKT_PART_MOMENT1, "momentum64/", (const char *const[]){ "momentum_dev", NULL }, FOLD);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&train);
    vkt_dataset_destroy(&check);
    vkt_dataset_destroy(&all);
    vkt_safetensors_close(&st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(five_epochs_follow_the_float64_run),
    };
    return cmocka_run_group_tests_name("the network of vkt-images against PyTorch", tests, NULL, NULL);
}
