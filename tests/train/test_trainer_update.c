/* Tests the options of a trainer's update: micro-batches, parameter groups, frozen layers, clipping, amsgrad, and a
 * learning rate of zero. */
#include "train/rig.h"

#include <math.h>
#include <stdlib.h>

enum {
    ROWS = 192,
    BATCH = 64,
    MICRO = 4
}; /* ROWS samples are three steps of BATCH samples; a step is one batch, or MICRO micro-batches */

/* Builds conv 3x3 1->8, relu, max pool to 2x2, linear. There is no dropout, because a batch and its micro-batches would
 * have different masks. */
static vkt_tensor plain_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 8, .kernel = { 3 } });
    x = vkt_nn_flatten(b, vkt_nn_adaptive_max_pool2d(b, vkt_nn_relu(b, x), 2, 2));
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static vkt_tensor grouped_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const vkt_tensor y = plain_forward(b, x, user);
    return vkt_set_group(vkt_builder_graph(b), "*.bias", 0) == VKT_OK ? y : (vkt_tensor){ 0 };
}

static vkt_tensor frozen_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const vkt_tensor y = plain_forward(b, x, user);
    return vkt_freeze(vkt_builder_graph(b), "conv.*") == VKT_OK ? y : (vkt_tensor){ 0 };
}

/* Returns params for SGD with momentum. With this optimizer, a difference in the last digit of a gradient makes a
 * difference only in the last digits of the weights. */
static vkt_trainer_params params(const vkt_dataset *train, uint32_t batch)
{
    return (vkt_trainer_params){ .model = { .forward = plain_forward },
                                 .train = train,
                                 .batch = batch,
                                 .optimizer = { .kind = VKT_SGD, .momentum = 0.9f },
                                 .lr = 0.05f,
                                 .seed = 7 };
}

static double largest(const float *x, uint64_t n)
{
    double most = 0;
    for (uint64_t i = 0; i < n; i++) most = fmax(most, fabs((double)x[i]));
    return most;
}

/* Returns the largest difference of the two trainers' weights, divided by the largest weight. */
static double apart(vkt_trainer *a, vkt_trainer *b)
{
    uint64_t n, m;
    float *x = rig_weights(a, VKT_PART_VALUE, &n), *y = rig_weights(b, VKT_PART_VALUE, &m);
    const double scale = largest(x, n);
    assert_int_equal(n, m);
    for (uint64_t i = 0; i < n; i++) x[i] -= y[i];
    const double most = largest(x, n) / scale;
    test_free(x);
    test_free(y);
    return most;
}

static void micro_batches_are_one_batch(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *d = rig_data(&r->h, 0, ROWS);
    vkt_trainer_params whole = params(d, BATCH), parts = params(d, BATCH / MICRO);
    vkt_trainer *a, *small = rig_trainer(r, &parts);
    parts.optimizer.micro_batches = MICRO;
    whole.schedule = parts.schedule = (vkt_schedule){ .warmup = 4 }; /* four steps, not four micro-batches */
    a = rig_trainer(r, &whole);
    vkt_trainer *b = rig_trainer(r, &parts);
    rig_fit(a, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(b, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(small, &(vkt_fit_params){ .epochs = 2 });
    /* A gradient is a sum over 64 samples. In another order the sum differs by about 1e-7. The momentum of 0.9
     * multiplies a difference by up to 10. So after 6 steps the weights differ by at most 6 * 10 * 1e-7 = 6e-6. */
    assert_true(apart(a, b) < 1e-5);
    assert_true(apart(a, small) > 1e-2); /* shows that apart() finds a difference: `small` makes more steps than `a` */
    uint32_t n;
    uint64_t steps, seed;
    const vkt_epoch_record *x = vkt_trainer_history(a, &n), *y = vkt_trainer_history(b, &n);
    assert_int_equal(n, 2);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(fabs(x[i].train_loss - y[i].train_loss) < 1e-5 * x[i].train_loss);
        assert_true(x[i].train_acc == y[i].train_acc);
    }
    assert_int_equal(vkt_store_get_clock(vkt_trainer_store(b), &steps, &seed), VKT_OK);
    assert_int_equal(steps, 2 * ROWS / BATCH);
    for (size_t i = 0; i < 3; i++) vkt_trainer_destroy(&r->trainers[i]);
    vkt_dataset_destroy(&d);
}

/* The last step has 10 samples for 4 shards of 4, so the last shard has none, and its mean loss is 0 / 0. VKT_DEBUG=4
 * does not report this NaN. */
static void a_shard_without_samples_is_no_nan(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *d = rig_data(&r->h, 0, 26);
    vkt_trainer_params p = params(d, 16);
    p.dist.shards = 4;
    assert_int_equal(setenv("VKT_DEBUG", "4", 1), 0);
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 1 }), VKT_OK);
    vkt_trainer_destroy(&r->trainers[0]);
    assert_int_equal(unsetenv("VKT_DEBUG"), 0);
    vkt_dataset_destroy(&d);
}

/* The callback `stop`: each call subtracts 1 from the count at `user`, and returns true when the count is 0. */
static bool stop_at_zero(void *user)
{
    uint32_t *left = user;
    return --*left == 0;
}

/* A step has 4 micro-batches. An epoch has 7 micro-batches, so its second step ends in the next epoch. The last
 * micro-batch of an epoch is not full. The network has dropout, so the masks must also be the same after the resume. */
static void a_checkpoint_in_the_middle_of_a_step_goes_on(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "a"), *whole = vkt_temp_dir_file(&r->dir, "whole");
    vkt_trainer_params p = rig_params(r);
    p.optimizer.micro_batches = MICRO;
    p.schedule = (vkt_schedule){ .warmup = 4 }; /* the rate differs from step to step */
    vkt_trainer *a = rig_trainer(r, &p);
    rig_fit(a, &(vkt_fit_params){ .epochs = 3, .checkpoint = whole });
    for (uint32_t at = 6; at <= 9; at++) { /* an epoch ends after batch 7, and a step ends after batch 8 */
        uint32_t left = at;
        vkt_accumulation run;
        vkt_trainer *b = rig_trainer(r, &p), *c = rig_trainer(r, &p);
        rig_fit(b, &(vkt_fit_params){ .epochs = 3, .checkpoint = path, .callbacks = { &left, .stop = stop_at_zero } });
        assert_int_equal(vkt_trainer_resume(c, path), VKT_OK);
        assert_int_equal(vkt_store_get_accumulation(vkt_trainer_store(c), &run), VKT_OK);
        assert_int_equal(run.batches, at % MICRO);
        rig_same(b, c, VKT_PART_GRADIENT_SUM);
        rig_fit(c, &(vkt_fit_params){ .epochs = 3, .checkpoint = path });
        rig_same(a, c, VKT_PART_VALUE);
        rig_same(a, c, VKT_PART_GRADIENT_SUM);
        rig_same_file(whole, path);
        vkt_trainer_destroy(&r->trainers[1]);
        vkt_trainer_destroy(&r->trainers[2]);
    }
}

/* Makes one step in three ways. ALL: all parameters decay. NONE: no parameter decays. GROUPS: all except the biases
 * decay. A weight w with gradient g becomes w * (1 - lr * weight_decay) - lr * g. Without decay, weight_decay is 0. */
static void biases_do_not_decay(void **state)
{
    enum { ALL, NONE, GROUPS };
    rig *r = rig_of(state);
    vkt_dataset *d = rig_data(&r->h, 0, BATCH);
    vkt_trainer_params p = params(d, BATCH);
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD, .decoupled = true };
    vkt_trainer *t[3] = { [NONE] = rig_trainer(r, &p), [ALL] = NULL, [GROUPS] = NULL };
    vkt_store *store = vkt_trainer_store(t[NONE]);
    const uint32_t n = vkt_store_count(store);
    float before[4][1024], after[3][4][1024];
    assert_int_equal(n, 4);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(vkt_shape_elements(vkt_store_shape(store, i)) <= 1024);
        assert_int_equal(vkt_store_read(store, i, VKT_PART_VALUE, before[i]), VKT_OK);
    }
    p.optimizer.weight_decay = 0.5f;
    t[ALL] = rig_trainer(r, &p);
    p.model.forward = grouped_forward;
    t[GROUPS] = rig_trainer(r, &p);
    for (int k = ALL; k <= GROUPS; k++) {
        rig_fit(t[k], &(vkt_fit_params){ .epochs = 1 });
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(vkt_store_read(vkt_trainer_store(t[k]), i, VKT_PART_VALUE, after[k][i]), VKT_OK);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t elements = vkt_shape_elements(vkt_store_shape(store, i));
        const bool bias = strstr(vkt_store_name(store, i), ".bias");
        assert_memory_equal(after[GROUPS][i], after[bias ? NONE : ALL][i], elements * sizeof(float));
        assert_memory_not_equal(after[ALL][i], after[NONE][i], elements * sizeof(float));
        for (uint64_t e = 0; e < elements; e++) {
            const double decay = (double)before[i][e] * 0.05 * 0.5;
            assert_true(fabs((double)after[NONE][i][e] - (double)after[ALL][i][e] - decay) < 1e-6);
        }
    }
    for (int i = 0; i < 3; i++) vkt_trainer_destroy(&r->trainers[i]);
    vkt_dataset_destroy(&d);
}

static void frozen_layers_stay_also_after_a_resume(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "a");
    float before[1024], after[1024], moment[1024];
    vkt_trainer_params p = rig_params(r);
    p.model.forward = frozen_forward;
    p.optimizer = (vkt_optimizer){ .kind = VKT_ADAMW, .weight_decay = 0.1f, .clip_norm = 1 };
    vkt_trainer *a = rig_trainer(r, &p), *b = rig_trainer(r, &p);
    vkt_store *store = vkt_trainer_store(a);
    assert_string_equal(vkt_store_name(store, 0), "conv.weight");
    assert_string_equal(vkt_store_name(store, 2), "fc.weight");
    assert_int_equal(vkt_store_read(store, 0, VKT_PART_VALUE, before), VKT_OK);
    rig_fit(a, &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
    assert_int_equal(vkt_store_read(store, 0, VKT_PART_VALUE, after), VKT_OK);
    assert_memory_equal(before, after, 72 * sizeof(float));
    assert_int_equal(vkt_store_read(store, 0, VKT_PART_MOMENT1, moment), VKT_OK);
    assert_true(largest(moment, 72) == 0);
    assert_int_equal(vkt_store_read(store, 2, VKT_PART_MOMENT1, moment), VKT_OK);
    assert_true(largest(moment, 320) > 0);
    assert_int_equal(vkt_trainer_resume(b, path), VKT_OK);
    rig_fit(a, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(b, &(vkt_fit_params){ .epochs = 2 });
    rig_same(a, b, VKT_PART_VALUE);
    assert_int_equal(vkt_store_read(vkt_trainer_store(b), 0, VKT_PART_VALUE, after), VKT_OK);
    assert_memory_equal(before, after, 72 * sizeof(float));
    uint32_t n;
    const vkt_epoch_record *e = vkt_trainer_history(a, &n);
    assert_true(e[1].train_loss < e[0].train_loss);
}

/* If the norm |g| of the gradient g is larger than clip_norm, SGD moves the weights by lr * clip_norm * g / (|g| +
 * 1e-6). The length of this step is almost lr * clip_norm. */
static void a_clipped_step_has_the_length_of_the_bound(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *d = rig_data(&r->h, 0, BATCH);
    vkt_trainer_params p = params(d, BATCH);
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD, .clip_norm = 0.01f };
    vkt_trainer *t = rig_trainer(r, &p);
    uint64_t n;
    double moved = 0;
    float *before = rig_weights(t, VKT_PART_VALUE, &n);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1 });
    float *after = rig_weights(t, VKT_PART_VALUE, &n);
    for (uint64_t i = 0; i < n; i++) moved += pow((double)after[i] - (double)before[i], 2);
    /* The step has length 5e-4. There are 410 weights, so each moves by about 5e-4 / sqrt(410) = 2.5e-5. A weight is at
     * most 1/3, so its rounding error is at most 3e-8. This is about 1e-3 of 2.5e-5. */
    assert_true(fabs(sqrt(moved) / (0.05 * 0.01) - 1) < 2e-3);
    test_free(before);
    test_free(after);
    vkt_trainer_destroy(&r->trainers[0]);
    vkt_dataset_destroy(&d);
}

/* With amsgrad, a third moment has the maxima of the second moment. A checkpoint has the third moment. A trainer of
 * Adam without amsgrad refuses the checkpoint. */
static void amsgrad_goes_on_after_a_resume(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "amsgrad");
    vkt_trainer_params p = rig_params(r);
    p.optimizer = (vkt_optimizer){ .kind = VKT_ADAM, .amsgrad = true, .beta2 = 0.5 };
    vkt_trainer *a = rig_trainer(r, &p), *b = rig_trainer(r, &p), *c = rig_trainer(r, &p);
    p.optimizer.amsgrad = false;
    vkt_trainer *d = rig_trainer(r, &p);
    rig_fit(a, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(b, &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
    assert_int_equal(vkt_trainer_resume(d, path), VKT_E_STATE);
    assert_int_equal(vkt_trainer_resume(c, path), VKT_OK);
    rig_same(b, c, VKT_PART_MOMENT3);
    rig_fit(c, &(vkt_fit_params){ .epochs = 2 });
    rig_same(a, c, VKT_PART_VALUE);
    rig_same(a, c, VKT_PART_MOMENT3);
}

/* In the params, lr = 0 selects the default rate, and VKT_ZERO is a rate of zero. At a rate of zero the loss is
 * measured, and the weights do not change. */
static void a_rate_of_zero_moves_nothing(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *d = rig_data(&r->h, 0, BATCH);
    vkt_trainer_params p = params(d, BATCH);
    p.lr = VKT_ZERO;
    vkt_trainer *t = rig_trainer(r, &p);
    uint64_t n;
    uint32_t epochs;
    float *before = rig_weights(t, VKT_PART_VALUE, &n);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1 });
    float *after = rig_weights(t, VKT_PART_VALUE, &n);
    assert_memory_equal(before, after, n * sizeof *before);
    const vkt_epoch_record *e = vkt_trainer_history(t, &epochs);
    assert_true(e[0].train_loss > 0 && e[0].lr == 0);
    test_free(before);
    test_free(after);
    vkt_trainer_destroy(&r->trainers[0]);
    vkt_dataset_destroy(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(micro_batches_are_one_batch),
        rig_test(a_shard_without_samples_is_no_nan),
        rig_test(a_checkpoint_in_the_middle_of_a_step_goes_on),
        rig_test(biases_do_not_decay),
        rig_test(frozen_layers_stay_also_after_a_resume),
        rig_test(amsgrad_goes_on_after_a_resume),
        rig_test(a_rate_of_zero_moves_nothing),
        rig_test(a_clipped_step_has_the_length_of_the_bound),
    };
    return cmocka_run_group_tests_name("updates of the trainer", tests, NULL, NULL);
}
