/* train/group.c - see group.h. */
#include "train/group.h"

vkt_tensor group_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 6, .kernel = { 3 }, .pad = { 1 } });
    x = vkt_nn_max_pool2d(b, vkt_nn_relu(b, vkt_nn_batch_norm(b, "norm", x, NULL)), 2);
    x = vkt_nn_dropout(b, vkt_nn_flatten(b, x), 0.25);
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

vkt_trainer_params group_params(const rig *r)
{
    vkt_trainer_params p = rig_params(r);
    p.model.forward = group_forward;
    p.dist.shards = 8;
    p.dist.bucket_bytes = 1024;
    p.dist.check_every = 3;
    return p;
}

group group_make(rig *r, vkt_trainer_params p, uint32_t ranks)
{
    group g = { .n = ranks - 1 };
    assert_true(ranks >= 1 && ranks <= GROUP_MOST);
    for (uint32_t i = 0; i < g.n; i++) assert_true(rig_open(&r->h, &g.more[i]));
    p.more_devices = g.more;
    p.n_more_devices = g.n;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &g.t), VKT_OK);
    return g;
}

void group_free(group *g)
{
    vkt_trainer_destroy(&g->t);
    for (uint32_t i = 0; i < g->n; i++) vkt_ctx_destroy(&g->more[i]);
}

static bool same_epoch(const vkt_epoch_record *a, const vkt_epoch_record *b)
{
    const double x[] = { a->train_loss, a->train_acc, a->val_loss, a->val_acc, a->lr };
    const double y[] = { b->train_loss, b->train_acc, b->val_loss, b->val_acc, b->lr };
    bool same = memcmp(x, y, sizeof x) == 0 && a->epoch == b->epoch && a->n_metrics == b->n_metrics;
    for (uint32_t i = 0; same && i < a->n_metrics; i++)
        same = memcmp(&a->metrics[i].value, &b->metrics[i].value, sizeof a->metrics[i].value) == 0;
    return same;
}

void group_same_at(vkt_trainer *a, vkt_trainer *b, const char *file, int line)
{
    /* Gradients are not compared, because the store of a rank has only the gradients of the rank's last shard. */
    for (int part = 0; part < VKT_ARENAS; part++) {
        if (part == VKT_PART_GRADIENT || !vkt_store_has(vkt_trainer_store(a), (vkt_store_part)part)) continue;
        rig_same_at(a, b, (vkt_store_part)part, file, line);
    }
    uint32_t n, m;
    const vkt_epoch_record *x = vkt_trainer_history(a, &n), *y = vkt_trainer_history(b, &m);
    bool same = n == m;
    for (uint32_t i = 0; same && i < n; i++) same = same_epoch(&x[i], &y[i]);
    if (same) return;
    print_error("the histories of %u and %u epochs differ\n", n, m);
    _fail(file, line);
}

void group_alike(rig *r, const vkt_trainer_params *p, const vkt_fit_params *fit, const uint32_t *ranks)
{
    group one = group_make(r, *p, 1);
    assert_int_equal(vkt_trainer_fit(one.t, fit), VKT_OK);
    for (; *ranks; ranks++) {
        group g = group_make(r, *p, *ranks);
        assert_int_equal(vkt_trainer_fit(g.t, fit), VKT_OK);
        for (uint32_t i = 0; i < g.n; i++) rig_same(g.t, g.t->replicas[i], VKT_PART_VALUE);
        group_same(one.t, g.t);
        group_free(&g);
    }
    group_free(&one);
}
