/* Compares training steps of the MNIST network with float64 steps of PyTorch. Float32 runs of PyTorch give the
 * tolerance. golden/README.md describes the files and the tolerance. */
#include <stdio.h>

#include "train/golden.h"

enum { BATCH = 128, STEPS = 50, ROWS = BATCH * STEPS, PARAMS = 8, AREA = 28 * 28 };
static const float LR = 0.01f;

static const char *const params[PARAMS] = { "conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                            "fc1.weight",   "fc1.bias",   "fc2.weight",   "fc2.bias" };

/* ---- the samples, by the formula of golden/README.md ---- */

static void draw_sample(uint32_t i, unsigned char *pixels, uint32_t *label)
{
    static const uint32_t across[10] = { 9, 0, 7, 7, 14, 4, 14, 4, 12, 12 };
    static const uint32_t down[10] = { 0, 9, 7, 57, 4, 14, 60, 50, 12, 52 };
    const uint32_t h = golden_mix(i + 0x10000000u);
    *label = (h >> 4) % 10;
    for (uint32_t y = 0; y < 28; y++)
        for (uint32_t x = 0; x < 28; x++) {
            const uint32_t phase = (across[*label] * x + down[*label] * y + (h >> 20)) % 64;
            const uint32_t wave = phase < 32 ? phase : 63 - phase;
            pixels[28 * y + x] = (unsigned char)(4 * wave + (golden_mix(AREA * i + 28 * y + x) >> 25));
        }
}

static vkt_dataset *samples(const vkt_host *h)
{
    unsigned char *pixels = test_malloc((size_t)ROWS * AREA);
    uint32_t *labels = test_malloc(ROWS * sizeof *labels);
    for (uint32_t i = 0; i < ROWS; i++) draw_sample(i, pixels + (size_t)i * AREA, &labels[i]);
    const double mean = 0.1307, std = 0.3081;
    const vkt_dataset_params p = {
        .rows = ROWS, .height = 28, .width = 28, .labels = labels, .classes = 10, .mean = &mean, .std = &std
    };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(h, &p, pixels, &d), VKT_OK);
    test_free(pixels);
    test_free(labels);
    return d;
}

/* ---- the runs ---- */

static void start_from_init(const vkt_safetensors *st, vkt_trainer *t)
{
    assert_int_equal(vkt_store_count(vkt_trainer_store(t)), PARAMS);
    for (uint32_t i = 0; i < PARAMS; i++) {
        char name[64];
        assert_string_equal(vkt_store_name(vkt_trainer_store(t), i), params[i]);
        snprintf(name, sizeof name, "init/%s", params[i]);
        const vkt_st_entry *e = vkt_safetensors_find(st, name);
        assert_non_null(e);
        float *f = test_malloc(e->elements * sizeof *f);
        assert_int_equal(vkt_safetensors_read_f32(st, e, f, e->elements), VKT_OK);
        assert_int_equal(vkt_store_write(vkt_trainer_store(t), i, VKT_PART_VALUE, f), VKT_OK);
        test_free(f);
    }
}

static vkt_trainer *network(rig *r, const vkt_dataset *data, vkt_precision precision)
{
    static float no_dropout = 0;
    vkt_trainer_params p = rig_params(r);
    p.model = (vkt_model){ .name = "MNIST network", .forward = rig_mnist_forward, .user = &no_dropout };
    p.train = data;
    p.validation = NULL;
    p.batch = BATCH;
    p.precision = precision;
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    golden_start(t);
    return t;
}

static void fifty_steps_follow_the_float64_run(void **state)
{
    static const char *const gradients[] = { "grad32_dev", "others/grad_dev", NULL };
    static const char *const finals[] = { "final32_dev", "others/final_dev", NULL };
    rig *r = rig_of(state);
    vkt_safetensors *st = golden_open(&r->h, "mnist_cnn");
    vkt_dataset *data = samples(&r->h);
    vkt_trainer *t = network(r, data, VKT_PRECISION_F32);
    start_from_init(st, t);
    double losses[STEPS];
    losses[0] = golden_step(t, LR, 0, BATCH);
    golden_check_tensors(st, t, VKT_PART_GRADIENT, "grad64/", gradients, 0);
    for (uint32_t s = 1; s < STEPS; s++) losses[s] = golden_step(t, LR, s * BATCH, BATCH);
    golden_check_losses(st, "loss64", losses, STEPS, (const char *const[]){ "others/loss_dev", NULL });
    golden_check_tensors(st, t, VKT_PART_VALUE, "final64/", finals, 0);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&data);
    vkt_safetensors_close(&st);
}

static void check_partial_batches(rig *r, vkt_precision precision)
{
    static const uint32_t rows[4] = { 16, 16, 12, 16 };
    vkt_safetensors *init = golden_open(&r->h, "mnist_cnn"), *st = golden_open(&r->h, "mnist_partial");
    vkt_dataset *data = samples(&r->h);
    vkt_trainer *t = network(r, data, precision);
    start_from_init(init, t);
    double losses[4];
    for (uint32_t s = 0, first = 3780; s < 4; first += rows[s++]) losses[s] = golden_step(t, LR, first, rows[s]);
    golden_check_losses(st, "loss64", losses, 4, (const char *const[]){ "loss_dev", NULL });
    golden_check_tensors(st, t, VKT_PART_VALUE, "final64/", (const char *const[]){ "final_dev", NULL }, 0);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&data);
    vkt_safetensors_close(&st);
    vkt_safetensors_close(&init);
}

static void partial_batches_follow_the_float64_run(void **state)
{
    rig *r = rig_of(state);
    check_partial_batches(r, VKT_PRECISION_F32);
}

/* In VKT_PRECISION_F32_SPLIT, three f16 products on cooperative matrices compute one f32 product. The tolerance is as
 * small as for VKT_PRECISION_F32. The test forces cooperative matrices for all products that can use them. On a device
 * without cooperative matrices there is nothing to test. The test runs four steps instead of fifty, because on a CPU
 * the steps take seconds. */
static void steps_of_split_operands_follow_it_too(void **state)
{
    rig *r = rig_of(state);
    /* tests/run.sh sets VKT_REQUIRE_COOP for the driver that must have cooperative matrices. */
    assert_true(r->ctx->limits.coop.m || !vkt_env_int("VKT_REQUIRE_COOP", 0));
    if (!r->ctx->limits.coop.m) return;
    r->ctx->limits.choices.force = VKT_V(COOP);
    check_partial_batches(r, VKT_PRECISION_F32_SPLIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(fifty_steps_follow_the_float64_run),
        rig_test(partial_batches_follow_the_float64_run),
        rig_test(steps_of_split_operands_follow_it_too),
    };
    return cmocka_run_group_tests_name("training against PyTorch", tests, NULL, NULL);
}
