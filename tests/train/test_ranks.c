/* Tests data parallel training by threads, on one device. If the number of shards is the same, the result must not
 * depend on the number of ranks. (test_ranks_fit.c tests fits; test_ranks_resume.c tests checkpoints.) */
#include "train/group.h"

#include <math.h>

static const uint32_t two[] = { 2, 0 }, four[] = { 4, 0 }, all[] = { 2, 4, 8, 0 };
static const vkt_fit_params once = { .epochs = 1 }, twice = { .epochs = 2 };

static void adam_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    const vkt_trainer_params p = group_params(r);
    group_alike(r, &p, &twice, all);
    group g = group_make(r, p, 2);
    rig_fit(g.t, &twice);
    assert_true(vkt_trainer_history(g.t, &(uint32_t){ 0 })[1].train_loss < 2.2); /* the network learns */
    /* x.n is the number of buckets in which gradients are exchanged. */
    assert_true(g.t->shards.x.n > 2);
    group_free(&g);
}

static void streamed_samples_have_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.stream = true;
    group_alike(r, &p, &twice, all);
}

static void clipping_micro_batches_and_averages_have_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.batch = 16;
    p.optimizer.clip_norm = 0.5f;
    p.optimizer.micro_batches = 3;
    p.ema_decay = 0.9;
    p.no_shuffle = true;
    group_alike(r, &p, &twice, all);
}

static void half_precision_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.precision = VKT_PRECISION_F16;
    group_alike(r, &p, &twice, all);
}

static void messages_in_bf16_have_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.dist.wire = VKT_WIRE_BF16;
    group_alike(r, &p, &twice, all);
}

/* The learning rate is 0, so the gradients, which messages in bf16 round, change nothing. */
static void messages_in_bf16_do_not_round_running_statistics(void **state)
{
    static const uint32_t ranks[] = { 1, 4 };
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.lr = VKT_ZERO;
    p.validation = NULL;
    p.batch = RIG_BATCH / 2;
    p.optimizer.micro_batches = 2;
    group exact = group_make(r, p, 1);
    rig_fit(exact.t, &once);
    p.dist.wire = VKT_WIRE_BF16;
    for (size_t i = 0; i < VKT_COUNT(ranks); i++) {
        p.dist.bucket_bytes = i ? 1024 : 0; /* 0: all in one bucket */
        group g = group_make(r, p, ranks[i]);
        rig_fit(g.t, &once);
        rig_same(exact.t, g.t, VKT_PART_VALUE);
        group_free(&g);
    }
    group_free(&exact);
}

enum { GIVEN = 12 };

/* Builds a batch norm that does not change its running statistics, before the network of group_forward, whose batch
 * norm does. */
static vkt_tensor given_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    x = vkt_nn_conv2d(b, "first", x, &(vkt_nn_conv2d_params){ .out_channels = GIVEN, .kernel = { 3 }, .pad = { 1 } });
    x = vkt_nn_batch_norm(b, "given", x, &(vkt_nn_batch_norm_params){ .use_running = true });
    return group_forward(b, x, user);
}

/* Writes `write` to the running variance of the layer `given`, then reads it to `read`. Either may be NULL. */
static void given_variance(vkt_trainer *t, const float *write, float *read)
{
    uint32_t i;
    assert_true(vkt_store_find(vkt_trainer_store(t), "given.running_var", &i));
    if (write) assert_int_equal(vkt_store_write(vkt_trainer_store(t), i, VKT_PART_VALUE, write), VKT_OK);
    if (read) assert_int_equal(vkt_store_read(vkt_trainer_store(t), i, VKT_PART_VALUE, read), VKT_OK);
}

/* The last step has 13 rows: if its states were 13 equal summands divided by 13, some would change by a rounding. */
static void running_statistics_that_no_layer_changes_keep_their_bits(void **state)
{
    rig *r = rig_of(state);
    float want[GIVEN], got[GIVEN];
    for (uint32_t i = 0; i < GIVEN; i++) want[i] = 0.7f + 0.0137f * (float)i;
    vkt_dataset *part;
    assert_int_equal(vkt_dataset_slice(r->train, 0, RIG_BATCH + 13, &part), VKT_OK);
    for (int wire = 0; wire < 2; wire++) {
        vkt_trainer_params p = group_params(r);
        p.model.forward = given_forward;
        p.train = part;
        p.validation = NULL;
        p.dist.wire = wire ? VKT_WIRE_BF16 : VKT_WIRE_F32;
        group g = group_make(r, p, 2);
        given_variance(g.t, want, NULL);
        given_variance(g.t->replicas[0], want, NULL);
        rig_fit(g.t, &twice);
        given_variance(g.t, NULL, got);
        assert_memory_equal(got, want, sizeof got);
        rig_same(g.t, g.t->replicas[0], VKT_PART_VALUE);
        group_free(&g);
    }
    vkt_dataset_destroy(&part);
}

static void every_optimizer_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    for (int kind = 0; kind < VKT_OPTIMIZER_KIND_COUNT; kind++) {
        vkt_trainer_params p = group_params(r);
        p.optimizer = (vkt_optimizer){ .kind = (vkt_optimizer_kind)kind, .weight_decay = 0.01f, .clip_value = 0.1f };
        p.validation = NULL;
        group_alike(r, &p, &once, two);
    }
}

/* The last step of an epoch is not full. In the first four cases, a shard has up to 4 samples and a rank up to 8. So in
 * the last step, some of the 8 shards and some of the 4 ranks have no samples. In the last case, an epoch is one step
 * of two micro-batches, with 61 instead of 64 samples. */
static void a_last_step_of_any_length_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    static const uint32_t lengths[] = { 1, 4, 13, 16, 29 };
    for (size_t i = 0; i < VKT_COUNT(lengths); i++) {
        vkt_trainer_params p = group_params(r);
        vkt_dataset *part;
        assert_int_equal(vkt_dataset_slice(r->train, 0, RIG_BATCH + lengths[i], &part), VKT_OK);
        p.train = part;
        p.validation = NULL;
        p.stream = i % 2;
        p.optimizer.micro_batches = i == 4 ? 2 : 0;
        group_alike(r, &p, &twice, four);
        vkt_dataset_destroy(&part);
    }
}

/* In the first and the last case, a shard has one sample. In the last two cases, a trainer of one rank has more shards
 * than VKT_RUN_RING, the number of runs whose results a program keeps. */
static void any_number_of_shards_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        uint32_t shards, batch, ranks[2];
    } cases[] = { { 8, 8, { 2 } }, { 2, 32, { 2 } }, { 16, 32, { 4 } }, { 32, 32, { 4 } } };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_trainer_params p = group_params(r);
        p.dist.shards = cases[i].shards;
        p.batch = cases[i].batch;
        p.validation = NULL;
        group_alike(r, &p, &once, cases[i].ranks);
    }
}

static vkt_tensor frozen_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    x = group_forward(b, x, user);
    assert_int_equal(vkt_freeze(vkt_builder_graph(b), "conv.*"), VKT_OK);
    assert_int_equal(vkt_set_group(vkt_builder_graph(b), "*.bias", 0), VKT_OK);
    return x;
}

static void frozen_parameters_stay_on_all_ranks(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.model.forward = frozen_forward;
    p.optimizer.clip_norm = 0.3f; /* the norm must leave out frozen parameters */
    group_alike(r, &p, &once, four);
    group g = group_make(r, p, 2);
    uint64_t n;
    float *before = rig_weights(g.t, VKT_PART_VALUE, &n);
    rig_fit(g.t, &once);
    float *after = rig_weights(g.t, VKT_PART_VALUE, &n);
    const uint64_t frozen = vkt_shape_elements(vkt_store_shape(vkt_trainer_store(g.t), 0));
    assert_memory_equal(before, after, frozen * sizeof *before);
    assert_memory_not_equal(before, after, n * sizeof *before);
    test_free(before);
    test_free(after);
    group_free(&g);
}

static void losses_of_classes_have_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    static const float weights[RIG_CLASSES] = { 1, 2, 0.5f, 1, 1, 0, 1, 3, 1, 1 };
    vkt_trainer_params p = group_params(r);
    p.class_weights = weights;
    p.label_smoothing = 0.1f;
    p.recompute = true;
    group_alike(r, &p, &once, four);
}

static vkt_tensor regress(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_relu(b, vkt_nn_linear(b, "in", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = 12 }));
    x = vkt_nn_layer_norm(b, "norm", x, NULL);
    return vkt_nn_linear(b, "out", x, &(vkt_nn_linear_params){ .out_features = 3 });
}

static void targets_have_the_same_bits(void **state)
{
    enum { ROWS = 75, WIDTH = 5, TARGETS = 3 };
    rig *r = rig_of(state);
    float x[ROWS * WIDTH], y[ROWS * TARGETS];
    for (uint32_t i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
    for (uint32_t i = 0; i < ROWS * TARGETS; i++) y[i] = x[i / TARGETS * WIDTH + i % TARGETS] * 2 - 1;
    const vkt_dataset_params dp = {
        .rows = ROWS, .height = 1, .width = WIDTH, .type = VKT_ROW_F32, .targets = y, .target_width = TARGETS
    };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &dp, x, &d), VKT_OK);
    for (int stream = 0; stream < 2; stream++) {
        vkt_trainer_params p = group_params(r);
        p.model.forward = regress;
        p.train = p.validation = d;
        p.stream = stream;
        group_alike(r, &p, &twice, four);
    }
    vkt_dataset_destroy(&d);
}

static void rows_that_vary_have_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *varying = rig_varying(r);
    vkt_trainer_params p = group_params(r);
    p.train = varying;
    group_alike(r, &p, &twice, four);
    vkt_dataset_destroy(&varying);
}

/* ---- shards, compared with a step that is not split ---- */

/* Builds a network in which the position of a sample in its step changes only the order of sums. So the network has
 * neither batch norm nor dropout (see group_forward). */
static vkt_tensor plain_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 6, .kernel = { 3 }, .pad = { 1 } });
    x = vkt_nn_flatten(b, vkt_nn_max_pool2d(b, vkt_nn_relu(b, x), 2));
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static void shards_train_like_a_step_that_is_not_split(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.model.forward = plain_forward;
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD, .momentum = 0.9f };
    const vkt_fit_params fit = { .epochs = 3 };
    vkt_trainer *split = rig_trainer(r, &p);
    p.dist = (vkt_dist_params){ 0 };
    vkt_trainer *plain = rig_trainer(r, &p);
    rig_fit(split, &fit);
    rig_fit(plain, &fit);
    uint32_t n;
    const vkt_epoch_record *a = vkt_trainer_history(split, &n), *b = vkt_trainer_history(plain, &n);
    /* A step that is split adds in another order, so a sum differs by about 6e-8. The momentum of 0.9 multiplies a
     * difference by up to 10. So after 21 steps the losses differ by about 21 * 10 * 6e-8 = 1.3e-5. */
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(fabs(a[i].train_loss - b[i].train_loss) < 2e-5);
        assert_true(fabs(a[i].val_loss - b[i].val_loss) < 2e-5);
    }
    assert_true(a[2].train_loss < a[0].train_loss - 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(adam_has_the_same_bits),
        rig_test(streamed_samples_have_the_same_bits),
        rig_test(clipping_micro_batches_and_averages_have_the_same_bits),
        rig_test(half_precision_has_the_same_bits),
        rig_test(messages_in_bf16_have_the_same_bits),
        rig_test(messages_in_bf16_do_not_round_running_statistics),
        rig_test(running_statistics_that_no_layer_changes_keep_their_bits),
        rig_test(every_optimizer_has_the_same_bits),
        rig_test(a_last_step_of_any_length_has_the_same_bits),
        rig_test(any_number_of_shards_has_the_same_bits),
        rig_test(frozen_parameters_stay_on_all_ranks),
        rig_test(losses_of_classes_have_the_same_bits),
        rig_test(targets_have_the_same_bits),
        rig_test(rows_that_vary_have_the_same_bits),
        rig_test(shards_train_like_a_step_that_is_not_split),
    };
    return cmocka_run_group_tests_name("ranks", tests, NULL, NULL);
}
