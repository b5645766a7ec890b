/* Training steps of the MNIST network against runs that PyTorch recorded in float64 and float32: golden/README.md says
 * what the file holds and how far a float32 engine may be off.
 *
 * The yardstick is PyTorch's own float32: we stay within four times its deviation from float64, tensor by tensor and
 * loss by loss. One run of it can fall on a float64 value by luck, so its deviation is the largest of five runs: of its
 * default, without oneDNN, with the rows of a batch in two other orders, with another form of the normalisation. Even
 * so all five can meet at a loss (they are float32 numbers), so a loss is measured by those of its step and the two
 * beside it. */
#include "train/rig.h"

#include <math.h>
#include <stdio.h>

#include "io/safetensors.h"

enum { BATCH = 128, STEPS = 50, ROWS = BATCH * STEPS, PARAMS = 8, AREA = 28 * 28 };
#define TIMES 4.0

static const char *const params[PARAMS] = { "conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                            "fc1.weight",   "fc1.bias",   "fc2.weight",   "fc2.bias" };

/* ---- the samples, by the formula of golden/README.md ---- */

static uint32_t mix(uint32_t v)
{
    v *= 2654435761u;
    v ^= v >> 15;
    v *= 2246822519u;
    return v ^ v >> 13;
}

static void draw_sample(uint32_t i, unsigned char *pixels, uint32_t *label)
{
    static const uint32_t across[10] = { 9, 0, 7, 7, 14, 4, 14, 4, 12, 12 };
    static const uint32_t down[10] = { 0, 9, 7, 57, 4, 14, 60, 50, 12, 52 };
    const uint32_t h = mix(i + 0x10000000u);
    *label = (h >> 4) % 10;
    for (uint32_t y = 0; y < 28; y++)
        for (uint32_t x = 0; x < 28; x++) {
            const uint32_t phase = (across[*label] * x + down[*label] * y + (h >> 20)) % 64;
            const uint32_t wave = phase < 32 ? phase : 63 - phase;
            pixels[28 * y + x] = (unsigned char)(4 * wave + (mix(AREA * i + 28 * y + x) >> 25));
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

/* ---- the file ---- */

static vkt_safetensors *open_golden(const vkt_host *h, const char *name)
{
    vkt_safetensors *st;
    char path[512];
    snprintf(path, sizeof path, VKT_TEST_DIR "/golden/%s.safetensors", name);
    assert_int_equal(vkt_safetensors_open(h, path, &st), VKT_OK);
    return st;
}

/* All numbers of a tensor as doubles: test_free. */
static double *numbers(const vkt_safetensors *st, const char *name, uint64_t *n)
{
    const vkt_st_entry *e = vkt_safetensors_find(st, name);
    if (!e) fail_msg("the golden file has no '%s'", name);
    double *d = test_malloc((e->elements + 1) * sizeof *d);
    *n = e->elements;
    if (e->dtype == VKT_ST_F64) {
        assert_int_equal(vkt_safetensors_read_raw(st, e, d, e->bytes), VKT_OK);
        return d;
    }
    float *f = test_malloc((e->elements + 1) * sizeof *f);
    assert_int_equal(vkt_safetensors_read_f32(st, e, f, e->elements), VKT_OK);
    for (uint64_t i = 0; i < e->elements; i++) d[i] = (double)f[i];
    test_free(f);
    return d;
}

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

/* ---- measuring ---- */

/* Largest absolute difference of a part of our store from `prefix`<name>, over what is stored there. */
static double deviation(const vkt_safetensors *st, vkt_trainer *t, vkt_store_part part, const char *prefix, uint32_t i)
{
    char name[64];
    uint64_t n;
    snprintf(name, sizeof name, "%s%s", prefix, params[i]);
    double *want = numbers(st, name, &n), worst = 0;
    const uint64_t all = vkt_shape_elements(vkt_store_shape(vkt_trainer_store(t), i));
    assert_true(n > 0 && n <= all);
    float *got = test_malloc(all * sizeof *got);
    assert_int_equal(vkt_store_read(vkt_trainer_store(t), i, part, got), VKT_OK);
    for (uint64_t k = 0; k < n; k++) worst = fmax(worst, fabs((double)got[k] - want[k]));
    test_free(want);
    test_free(got);
    return worst;
}

/* theirs[i] = the largest of the deviations of PyTorch's runs, `n` numbers each: `runs` names arrays of the file, of
 * one run or several. test_free. */
static double *deviations(const vkt_safetensors *st, const char *const *runs, uint64_t n)
{
    double *theirs = test_malloc(n * sizeof *theirs);
    for (uint64_t i = 0; i < n; i++) theirs[i] = 0;
    for (; *runs; runs++) {
        uint64_t all;
        double *d = numbers(st, *runs, &all);
        assert_true(all > 0 && all % n == 0);
        for (uint64_t i = 0; i < all; i++) theirs[i % n] = fmax(theirs[i % n], d[i]);
        test_free(d);
    }
    return theirs;
}

static void check_tensors(const vkt_safetensors *st, vkt_trainer *t, vkt_store_part part, const char *prefix,
                          const char *const *runs)
{
    double *limit = deviations(st, runs, PARAMS), worst = 0;
    int bad = 0;
    for (uint32_t i = 0; i < PARAMS; i++) {
        const double d = deviation(st, t, part, prefix, i), times = d / limit[i];
        worst = fmax(worst, times);
        if (times <= TIMES) continue;
        print_error("%s%s: off by %.3g, PyTorch's float32 by %.3g\n", prefix, params[i], d, limit[i]);
        bad++;
    }
    print_message("%-16s at most %.2f times PyTorch's float32 deviation\n", prefix, worst);
    test_free(limit);
    assert_int_equal(bad, 0);
}

static void check_losses(const vkt_safetensors *st, const double *got, const char *const *runs, uint32_t steps)
{
    uint64_t n;
    double *want = numbers(st, "loss64", &n), *limit = deviations(st, runs, steps), worst = 0;
    int bad = 0;
    assert_int_equal(n, steps);
    for (uint32_t i = 0; i < steps; i++) {
        double near = limit[i];
        if (i > 0) near = fmax(near, limit[i - 1]);
        if (i + 1 < steps) near = fmax(near, limit[i + 1]);
        const double d = fabs(got[i] - want[i]);
        worst = fmax(worst, d / near);
        if (d <= TIMES * near) continue;
        print_error("loss of step %u: off by %.3g, PyTorch's float32 by %.3g\n", i, d, near);
        bad++;
    }
    print_message("%-16s at most %.2f times PyTorch's float32 deviation\n", "losses", worst);
    test_free(want);
    test_free(limit);
    assert_int_equal(bad, 0);
}

/* ---- the runs ---- */

static vkt_trainer *network(rig *r, const vkt_dataset *data)
{
    static float no_dropout = 0;
    vkt_trainer_params p = rig_params(r);
    p.model = (vkt_model){ .name = "MNIST network", .forward = rig_mnist_forward, .user = &no_dropout };
    p.train = data;
    p.validation = NULL;
    p.batch = BATCH;
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    vkt_order_identity(t->feed.host_order, ROWS);
    assert_int_equal(vkt_feed_start(&t->feed, 0, (vkt_pass){ 0 }), VKT_OK);
    return t;
}

static double step(vkt_trainer *t, uint32_t first, uint32_t rows)
{
    uint64_t run;
    vkt_metrics m;
    const vkt_run what = { .lr = 0.01f, .rows = rows, .first = first };
    assert_int_equal(vkt_program_run(vkt_trainer_program(t), &what, &run), VKT_OK);
    assert_int_equal(vkt_program_metrics(vkt_trainer_program(t), run, &m), VKT_OK);
    assert_int_equal(m.rows, rows);
    return (double)m.loss;
}

static void fifty_steps_follow_the_float64_run(void **state)
{
    static const char *const gradients[] = { "grad32_dev", "others/grad_dev", NULL };
    static const char *const finals[] = { "final32_dev", "others/final_dev", NULL };
    rig *r = rig_of(state);
    vkt_safetensors *st = open_golden(&r->h, "mnist_cnn");
    vkt_dataset *data = samples(&r->h);
    vkt_trainer *t = network(r, data);
    start_from_init(st, t);
    double losses[STEPS];
    losses[0] = step(t, 0, BATCH);
    check_tensors(st, t, VKT_PART_GRADIENT, "grad64/", gradients);
    for (uint32_t s = 1; s < STEPS; s++) losses[s] = step(t, s * BATCH, BATCH);
    check_losses(st, losses, (const char *const[]){ "others/loss_dev", NULL }, STEPS);
    check_tensors(st, t, VKT_PART_VALUE, "final64/", finals);
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&data);
    vkt_safetensors_close(&st);
}

static void partial_batches_follow_the_float64_run(void **state)
{
    static const uint32_t rows[4] = { 16, 16, 12, 16 };
    rig *r = rig_of(state);
    vkt_safetensors *init = open_golden(&r->h, "mnist_cnn"), *st = open_golden(&r->h, "mnist_partial");
    vkt_dataset *data = samples(&r->h);
    vkt_trainer *t = network(r, data);
    start_from_init(init, t);
    double losses[4];
    for (uint32_t s = 0, first = 3780; s < 4; first += rows[s++]) losses[s] = step(t, first, rows[s]);
    check_losses(st, losses, (const char *const[]){ "loss_dev", NULL }, 4);
    check_tensors(st, t, VKT_PART_VALUE, "final64/", (const char *const[]){ "final_dev", NULL });
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&data);
    vkt_safetensors_close(&st);
    vkt_safetensors_close(&init);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(fifty_steps_follow_the_float64_run),
        rig_test(partial_batches_follow_the_float64_run),
    };
    return cmocka_run_group_tests_name("training against PyTorch", tests, NULL, NULL);
}
