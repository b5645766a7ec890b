/* Compares two ranks with PyTorch's DistributedDataParallel, which ran as two processes over Gloo (golden/README.md). A
 * shard has the same samples of a batch as one process of PyTorch, so batch norms have the same statistics. */
#include "train/golden.h"

#include <math.h>
#include <stdio.h>

enum { SHARDS = 2, ROWS = 80, BATCH = 16, EPOCHS = 8, STEPS = EPOCHS * ROWS / BATCH };

/* One recorded run. */
typedef struct ddp_case {
    const char *name;
    bool norm; /* true: the network has batch norms, and its convolutions have no bias */
    uint32_t seed;
    vkt_optimizer optimizer;
    float lr;
} ddp_case;

static const ddp_case cases[] = {
    { "sgd", true, 65, { .kind = VKT_SGD, .momentum = 0.9f, .weight_decay = 1e-4f }, 0.05f },
    { "adam", false, 24, { .kind = VKT_ADAM }, 0.003f },
};

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const ddp_case *c = user;
    vkt_nn_conv2d_params p = { .out_channels = 8, .kernel = { 3 }, .pad = { 1 }, .no_bias = c->norm };
    x = vkt_nn_conv2d(b, "conv1", x, &p);
    if (c->norm) x = vkt_nn_batch_norm(b, "bn1", x, NULL);
    x = vkt_nn_avg_pool2d(b, vkt_nn_relu(b, x), 2);
    p.out_channels = 16;
    x = vkt_nn_conv2d(b, "conv2", x, &p);
    if (c->norm) x = vkt_nn_batch_norm(b, "bn2", x, NULL);
    x = vkt_nn_flatten(b, vkt_nn_adaptive_avg_pool2d(b, vkt_nn_relu(b, x), 1, 1));
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = GOLDEN_CLASSES });
}

/* Sets the weights of convolutions and of the last layer by the formula of golden/README.md, and their biases to 0.
 * Batch norms keep their values. k of the formula is the index of a tensor in the store; running statistics are
 * not counted. */
static void set_weights(vkt_trainer *t, uint32_t seed)
{
    vkt_store *store = vkt_trainer_store(t);
    for (uint32_t i = 0, number = 0; i < vkt_store_count(store); i++) {
        if (t->g->values[t->g->params[i]].state) continue;
        const uint32_t k = number++;
        const vkt_shape s = vkt_store_shape(store, i);
        if (strstr(vkt_store_name(store, i), "bn")) continue;
        const uint32_t n = (uint32_t)vkt_shape_elements(s);
        const double bound = sqrt(6.0 * s.dim[0] / n);
        float *w = test_calloc(n, sizeof *w);
        for (uint32_t e = 0; s.rank > 1 && e < n; e++) {
            const uint32_t h = golden_mix((seed << 24 | k << 16) + e) >> 8;
            w[e] = ((float)h - 0x1p23f) * (float)(bound / 0x1p23);
        }
        assert_int_equal(vkt_store_write(store, i, VKT_PART_VALUE, w), VKT_OK);
        test_free(w);
    }
}

/* The mean loss of each step. A fit reports the mean loss of the epoch so far. add_loss subtracts the earlier steps. */
typedef struct losses {
    double of_step[STEPS], sum;
    uint32_t n;
} losses;

static void add_loss(void *user, const vkt_fit_progress *p)
{
    losses *l = user;
    if (p->batch == 1) l->sum = 0;
    assert_true(l->n < STEPS);
    l->of_step[l->n++] = p->loss * p->batch - l->sum;
    l->sum = p->loss * p->batch;
}

/* Trains on one context or, if `second` is not NULL, on two. set_weights sets the weights of rank 0 only. So the
 * trainer saves them and loads them again, which sets the weights of all ranks. */
static vkt_trainer *train(rig *r, const ddp_case *c, const vkt_dataset *data, vkt_ctx *second, losses *l)
{
    const vkt_trainer_params p = { .model = { .forward = forward, .user = (void *)(uintptr_t)c },
                                   .train = data,
                                   .batch = BATCH,
                                   .optimizer = c->optimizer,
                                   .lr = c->lr,
                                   .no_shuffle = true,
                                   .dist = { .shards = SHARDS, .bucket_bytes = 1024 },
                                   .more_devices = &second,
                                   .n_more_devices = second != NULL };
    vkt_trainer *t;
    char path[512];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "start.safetensors"));
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    set_weights(t, c->seed);
    assert_int_equal(vkt_trainer_save(t, path), VKT_OK);
    assert_int_equal(vkt_trainer_load(t, path), VKT_OK);
    *l = (losses){ 0 };
    const vkt_fit_params fit = { .epochs = EPOCHS, .callbacks = { .user = l, .on_batch = add_loss } };
    assert_int_equal(vkt_trainer_fit(t, &fit), VKT_OK);
    assert_int_equal(l->n, STEPS);
    assert_int_equal(vkt_trainer_best_epoch(t), EPOCHS); /* else the fit has returned to older weights */
    return t;
}

static void follow(rig *r, const ddp_case *c)
{
    vkt_safetensors *st = golden_open(&r->h, "ddp");
    vkt_dataset *data = golden_images(&r->h, ROWS);
    char loss[32], loss_dev[32], final[32], final_dev[32];
    snprintf(loss, sizeof loss, "%s/loss64", c->name);
    snprintf(loss_dev, sizeof loss_dev, "%s/loss_dev", c->name);
    snprintf(final, sizeof final, "%s/final64/", c->name);
    snprintf(final_dev, sizeof final_dev, "%s/final_dev", c->name);
    vkt_ctx *second;
    assert_true(rig_open(&r->h, &second));
    losses of_two, of_one;
    vkt_trainer *two = train(r, c, data, second, &of_two);
    golden_check_losses(st, loss, of_two.of_step, STEPS, (const char *const[]){ loss_dev, NULL });
    golden_check_tensors(st, two, VKT_PART_VALUE, final, (const char *const[]){ final_dev, NULL }, 0);
    vkt_trainer *one = train(r, c, data, NULL, &of_one);
    assert_memory_equal(&of_one, &of_two, sizeof of_one);
    rig_same(one, two, VKT_PART_VALUE);
    vkt_trainer_destroy(&one);
    vkt_trainer_destroy(&two);
    vkt_ctx_destroy(&second);
    vkt_dataset_destroy(&data);
    vkt_safetensors_close(&st);
}

static void momentum_and_batch_norms_follow_the_float64_run(void **state)
{
    rig *r = rig_of(state);
    follow(r, &cases[0]);
}

static void adam_follows_the_float64_run(void **state)
{
    rig *r = rig_of(state);
    follow(r, &cases[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(momentum_and_batch_norms_follow_the_float64_run),
        rig_test(adam_follows_the_float64_run),
    };
    return cmocka_run_group_tests_name("two ranks against PyTorch's DistributedDataParallel", tests, NULL, NULL);
}
