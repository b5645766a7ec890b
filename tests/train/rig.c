/* train/rig.c - see rig.h. */
#include "train/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

bool rig_open(const vkt_host *h, vkt_ctx **ctx)
{
    const vkt_result r = vkt_ctx_create(NULL, h, ctx);
#ifndef VKT_REQUIRE_DEVICE
    if (r == VKT_E_NO_LOADER || r == VKT_E_NO_DEVICE) {
        puts("SKIPPED: no Vulkan device");
        return false;
    }
#endif
    assert_int_equal(r, VKT_OK);
    const vkt_device_info *info = vkt_ctx_device(*ctx);
    vkt_test_ran_on(info->name, info->driver);
    return true;
}

int rig_setup(void **state)
{
    vkt_test_setup(state);
    rig *r = test_calloc(1, sizeof *r);
    r->h = vkt_test_host();
    if (!rig_open(&r->h, &r->ctx)) {
        test_free(r);
        *state = NULL;
        return 0;
    }
    r->train = rig_data(&r->h, 0, RIG_ROWS);
    r->check = rig_data(&r->h, RIG_ROWS, RIG_CHECK_ROWS);
    r->dir = vkt_temp_dir_make();
    *state = r;
    return 0;
}

int rig_teardown(void **state)
{
    rig *r = *state;
    if (!r) return 0;
    for (size_t i = 0; i < VKT_COUNT(r->trainers); i++) vkt_trainer_destroy(&r->trainers[i]);
    vkt_dataset_destroy(&r->train);
    vkt_dataset_destroy(&r->check);
    vkt_ctx_destroy(&r->ctx);
    vkt_temp_dir_remove(&r->dir);
    test_free(r);
    return vkt_test_teardown(state);
}

rig *rig_here(void **state)
{
    return *state;
}

vkt_dataset *rig_data(const vkt_host *h, uint32_t first, uint32_t rows)
{
    enum { AREA = RIG_SIDE * RIG_SIDE };
    unsigned char *pixels = test_malloc((size_t)rows * AREA);
    uint32_t *labels = test_malloc(rows * sizeof *labels);
    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t label = (first + i) * 7 % RIG_CLASSES, top = label / 5 * 5 + 1, left = label % 5 * 2;
        labels[i] = label;
        vkt_rng noise = vkt_rng_make(11, VKT_STREAM_TEST, first + i, 0);
        for (uint32_t p = 0; p < AREA; p++) {
            const uint32_t y = p / RIG_SIDE, x = p % RIG_SIDE;
            const bool inside = y >= top && y < top + 4 && x >= left && x < left + 4;
            pixels[i * AREA + p] = (unsigned char)((inside ? 120 : 0) + vkt_rng_range(&noise, 0, 120));
        }
    }
    const double mean = 0.3, std = 0.2;
    const vkt_dataset_params p = { .rows = rows,
                                   .height = RIG_SIDE,
                                   .width = RIG_SIDE,
                                   .labels = labels,
                                   .classes = RIG_CLASSES,
                                   .mean = &mean,
                                   .std = &std };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(h, &p, pixels, &d), VKT_OK);
    test_free(pixels);
    test_free(labels);
    return d;
}

static vkt_result fetch_varying(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    enum { AREA = RIG_SIDE * RIG_SIDE };
    (void)worker;
    nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL); /* slow: 32 samples take one worker 16 ms */
    const unsigned char *from = (const unsigned char *)vkt_dataset_features(self) + (size_t)row * AREA;
    vkt_rng noise = vkt_rng_make(pass.seed, VKT_STREAM_TEST, row, pass.epoch);
    for (uint32_t p = 0; p < AREA; p++) {
        const uint32_t moved = from[p] + (pass.epoch ? vkt_rng_range(&noise, 0, 80) : 40);
        ((unsigned char *)dst)[p] = (unsigned char)(VKT_MAX(40, VKT_MIN(moved, 295)) - 40);
    }
    return VKT_OK;
}

vkt_dataset *rig_from_source(const rig *r, const vkt_data_source *source)
{
    const vkt_dataset_params p = { .rows = RIG_ROWS,
                                   .height = RIG_SIDE,
                                   .width = RIG_SIDE,
                                   .labels = vkt_dataset_labels(r->train),
                                   .classes = RIG_CLASSES,
                                   .mean = vkt_dataset_mean(r->train),
                                   .std = vkt_dataset_std(r->train) };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_source(&r->h, &p, source, &d), VKT_OK);
    return d;
}

vkt_dataset *rig_varying(rig *r)
{
    return rig_from_source(r, &(vkt_data_source){ .fetch = fetch_varying, .self = r->train, .varies = true });
}

vkt_tensor rig_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 8, .kernel = { 3 } });
    x = vkt_nn_max_pool2d(b, x, 2);
    x = vkt_nn_dropout2d(b, x, 0.1f);
    x = vkt_nn_adaptive_max_pool2d(b, x, 2, 2);
    x = vkt_nn_flatten(b, x);
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

vkt_tensor rig_mnist_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const float *dropout = user;
    x = vkt_nn_conv2d(b, "conv1", x, &(vkt_nn_conv2d_params){ .out_channels = 32, .kernel = { 3 } });
    x = vkt_nn_max_pool2d(b, x, 2);
    x = vkt_nn_conv2d(b, "conv2", x, &(vkt_nn_conv2d_params){ .out_channels = 64, .kernel = { 5 } });
    x = vkt_nn_max_pool2d(b, x, 2);
    x = vkt_nn_dropout2d(b, x, *dropout);
    x = vkt_nn_adaptive_max_pool2d(b, x, 1, 1);
    x = vkt_nn_flatten(b, x);
    x = vkt_nn_linear(b, "fc1", x, &(vkt_nn_linear_params){ .out_features = 32 });
    x = vkt_nn_relu(b, x);
    return vkt_nn_linear(b, "fc2", x, &(vkt_nn_linear_params){ .out_features = 10 });
}

vkt_trainer_params rig_params(const rig *r)
{
    return (vkt_trainer_params){ .model = { .name = "small", .forward = rig_forward },
                                 .train = r->train,
                                 .validation = r->check,
                                 .batch = RIG_BATCH,
                                 .optimizer = { .kind = VKT_ADAM },
                                 .lr = 0.01f,
                                 .seed = 7 };
}

vkt_trainer *rig_trainer(rig *r, const vkt_trainer_params *p)
{
    size_t i = 0;
    while (r->trainers[i]) i++;
    assert_true(i < VKT_COUNT(r->trainers));
    assert_int_equal(vkt_trainer_create(r->ctx, p, &r->trainers[i]), VKT_OK);
    return r->trainers[i];
}

void rig_fit(vkt_trainer *t, const vkt_fit_params *p)
{
    assert_int_equal(vkt_trainer_fit(t, p), VKT_OK);
}

float *rig_weights(vkt_trainer *t, vkt_store_part part, uint64_t *n)
{
    *n = vkt_store_elements(vkt_trainer_store(t));
    float *values = test_malloc(*n * sizeof *values);
    assert_int_equal(vkt_trainer_get(t, part, values), VKT_OK);
    return values;
}

void rig_count_steady(void *user, const vkt_fit_progress *p)
{
    rig_steady *s = user;
    if (p->validating || p->epoch != 2) return;
    s->batches++;
    if (p->batch == 2) {
        s->from = s->ctx->counters;
        s->host_from = vkt_test_allocations();
    }
    if (p->batch == 5) {
        s->to = s->ctx->counters;
        s->host_to = vkt_test_allocations();
    }
}

void rig_same_at(vkt_trainer *a, vkt_trainer *b, vkt_store_part part, const char *file, int line)
{
    uint64_t n, m, different = 0;
    float *x = rig_weights(a, part, &n), *y = rig_weights(b, part, &m);
    if (n != m) different = n;
    for (uint64_t i = 0; i < n && n == m; i++) different += memcmp(&x[i], &y[i], sizeof *x) != 0;
    test_free(x);
    test_free(y);
    if (!different) return;
    print_error("%llu of %llu numbers differ\n", (unsigned long long)different, (unsigned long long)n);
    _fail(file, line);
}

void rig_same_file_at(const char *a, const char *b, const char *file, int line)
{
    const vkt_host h = vkt_test_host();
    void *x, *y;
    size_t n, m;
    assert_int_equal(vkt_file_read(&h, a, 1u << 30, &x, &n), VKT_OK);
    assert_int_equal(vkt_file_read(&h, b, 1u << 30, &y, &m), VKT_OK);
    const bool same = n == m && memcmp(x, y, n) == 0;
    vkt_free(&h, x);
    vkt_free(&h, y);
    if (same) return;
    print_error("%s (%zu bytes) and %s (%zu bytes) differ\n", a, n, b, m);
    _fail(file, line);
}
