/* Data parallel training by threads, on one device: the number of ranks is no part of the result. */
#include "train/rig.h"

enum { MOST_RANKS = 8, EPOCHS = 2 };

/* conv, batch norm, relu, pooling, dropout, linear: everything that depends on the place of a sample in its step. */
static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 6, .kernel = { 3 }, .pad = { 1 } });
    x = vkt_nn_max_pool2d(b, vkt_nn_relu(b, vkt_nn_batch_norm(b, "norm", x, NULL)), 2);
    x = vkt_nn_dropout(b, vkt_nn_flatten(b, x), 0.25);
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

/* The trainers of one number of ranks: further contexts, and the trainer of rank 0. */
typedef struct group {
    vkt_ctx *more[MOST_RANKS];
    uint32_t n;
    vkt_trainer *t;
} group;

static vkt_trainer_params params_of(const rig *r)
{
    vkt_trainer_params p = rig_params(r);
    p.model.forward = forward;
    p.dist.shards = 8;
    p.dist.bucket_bytes = 1024; /* several buckets */
    p.dist.check_every = 3;
    return p;
}

static group make(rig *r, vkt_trainer_params p, uint32_t ranks)
{
    group g = { .n = ranks - 1 };
    for (uint32_t i = 0; i < g.n; i++) assert_true(rig_open(&r->h, &g.more[i]));
    p.more_devices = g.more;
    p.n_more_devices = g.n;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &g.t), VKT_OK);
    return g;
}

static void unmake(group *g)
{
    vkt_trainer_destroy(&g->t);
    for (uint32_t i = 0; i < g->n; i++) vkt_ctx_destroy(&g->more[i]);
}

/* Trains with 1, 2, 4 and 8 ranks and compares all that a run leaves. */
static void same_for_all_ranks(rig *r, vkt_trainer_params p)
{
    static const vkt_store_part parts[] = { VKT_PART_VALUE, VKT_PART_MOMENT1, VKT_PART_MOMENT2, VKT_PART_PUBLISHED };
    const vkt_fit_params fit = { .epochs = EPOCHS };
    group one = make(r, p, 1);
    assert_int_equal(vkt_trainer_fit(one.t, &fit), VKT_OK);
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks *= 2) {
        group g = make(r, p, ranks);
        assert_int_equal(vkt_trainer_fit(g.t, &fit), VKT_OK);
        for (size_t i = 0; i < VKT_COUNT(parts); i++)
            if (vkt_store_has(vkt_trainer_store(one.t), parts[i])) rig_same(one.t, g.t, parts[i]);
        uint32_t n, m;
        const vkt_epoch_record *a = vkt_trainer_history(one.t, &n), *b = vkt_trainer_history(g.t, &m);
        assert_int_equal(n, EPOCHS);
        assert_int_equal(m, EPOCHS);
        for (uint32_t i = 0; i < n; i++) {
            assert_memory_equal(&a[i].train_loss, &b[i].train_loss, sizeof a->train_loss);
            assert_memory_equal(&a[i].train_acc, &b[i].train_acc, sizeof a->train_acc);
            assert_memory_equal(&a[i].val_loss, &b[i].val_loss, sizeof a->val_loss);
            assert_memory_equal(&a[i].val_acc, &b[i].val_acc, sizeof a->val_acc);
        }
        unmake(&g);
    }
    assert_true(vkt_trainer_history(one.t, &(uint32_t){ 0 })[EPOCHS - 1].train_loss < 2.2);
    unmake(&one);
}

static void adam_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    same_for_all_ranks(r, params_of(r));
}

static void streamed_samples_have_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = params_of(r);
    p.stream = true;
    same_for_all_ranks(r, p);
}

static void clipping_micro_batches_and_averages_have_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = params_of(r);
    p.batch = 16;
    p.optimizer.clip_norm = 0.5f;
    p.optimizer.micro_batches = 3;
    p.ema_decay = 0.9;
    p.no_shuffle = true;
    same_for_all_ranks(r, p);
}

static void half_precision_has_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = params_of(r);
    p.precision = VKT_PRECISION_F16;
    same_for_all_ranks(r, p);
}

static void messages_in_bf16_have_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = params_of(r);
    p.dist.wire = VKT_WIRE_BF16;
    same_for_all_ranks(r, p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(adam_has_the_same_bits),
        rig_test(streamed_samples_have_the_same_bits),
        rig_test(clipping_micro_batches_and_averages_have_the_same_bits),
        rig_test(half_precision_has_the_same_bits),
        rig_test(messages_in_bf16_have_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
