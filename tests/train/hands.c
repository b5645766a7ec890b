/* train/hands.c - see hands.h. */
#include "train/hands.h"

hands hands_make(rig *r, uint32_t n, double timeout_seconds)
{
    hands h = { .n = n };
    assert_true(n <= HANDS_MOST);
    assert_int_equal(vkt_thread_group_create(&r->h, n, timeout_seconds, &h.g), VKT_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(rig_open(&r->h, &h.rank[i].ctx));
        h.rank[i].transport = vkt_thread_group_transport(h.g, i);
    }
    return h;
}

void hands_train(hands *h, uint32_t rank, vkt_trainer_params p, const vkt_fit_params *fit)
{
    hand *one = &h->rank[rank];
    p.dist.transport = &one->transport;
    one->fit = *fit;
    assert_int_equal(vkt_trainer_create(one->ctx, &p, &one->t), VKT_OK);
}

static void *fit(void *arg)
{
    hand *one = arg;
    one->result = one->dir ? vkt_run_dir_fit(one->dir, one->t, &one->fit, "{}") : vkt_trainer_fit(one->t, &one->fit);
    return NULL;
}

void hands_fit(hands *h)
{
    for (uint32_t i = 0; i < h->n; i++) assert_int_equal(pthread_create(&h->rank[i].thread, NULL, fit, &h->rank[i]), 0);
    for (uint32_t i = 0; i < h->n; i++) pthread_join(h->rank[i].thread, NULL);
}

void hands_free(hands *h)
{
    for (uint32_t i = 0; i < h->n; i++) {
        vkt_trainer_destroy(&h->rank[i].t);
        vkt_ctx_destroy(&h->rank[i].ctx);
    }
    vkt_thread_group_destroy(&h->g);
}
