/* Tests that data parallel training refuses wrong numbers of ranks or shards, and ranks that are not alike. A new rank
 * that replaces another one must not be refused. */
#include "train/hands.h"

#include <stdio.h>

/* ---- numbers that do not fit ---- */

static void refused(const rig *r, vkt_trainer_params p, const char *says)
{
    vkt_trainer *t = (vkt_trainer *)(void *)&p;
    const unsigned before = vkt_test_errors();
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_ARG);
    vkt_test_expect_errors(false);
    assert_null(t);
    vkt_test_error_contains(says);
    assert_int_equal(vkt_test_errors() - before, 1);
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        uint32_t shards, batch, ranks;
        const char *says;
    } cases[] = {
        { 8, 32, 3, "want a number of ranks that is a power of two, at most 4096, got 3: 2 would work" },
        { 6, 30, 1, "want a number of shards that is a power of two, at most 4096, got 6" },
        { 8192, 8192, 1, "at most 4096, got 8192" },
        { 2, 32, 4, "want at least one shard for each of the 4 ranks, got 2 shards" },
        { 8, 30, 1, "want a batch that is a multiple of the 8 shards, got 30: 24 would work" },
        { 8, 5, 2, "got 5: 8 would work" },
        { 256, 256, 1, "want at least one sample for each of the 256 shards, got 200" },
    };
    vkt_ctx *more[3] = { NULL };
    for (int i = 0; i < 3; i++) assert_true(rig_open(&r->h, &more[i]));
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_trainer_params p = group_params(r);
        p.dist.shards = cases[i].shards;
        p.batch = cases[i].batch;
        p.more_devices = more;
        p.n_more_devices = cases[i].ranks - 1;
        refused(r, p, cases[i].says);
    }
    for (int i = 0; i < 3; i++) vkt_ctx_destroy(&more[i]);
}

static void contexts_and_transports_that_do_not_fit_are_refused(void **state)
{
    rig *r = rig_of(state);
    vkt_ctx *other;
    assert_true(rig_open(&r->h, &other));
    vkt_ctx *const own[] = { r->ctx }, *const twice[] = { other, other, NULL }, *const none[] = { NULL };
    const vkt_transport three = { .ranks = 3 }, one = { .ranks = 1 };
    vkt_trainer_params p = group_params(r);
    p.n_more_devices = 1;
    refused(r, p, "want contexts in more_devices, each one once");
    p.more_devices = own;
    refused(r, p, "each one once");
    p.more_devices = none;
    refused(r, p, "each one once");
    p.more_devices = twice;
    p.n_more_devices = 3;
    refused(r, p, "each one once");
    p.n_more_devices = 1;
    p.dist.transport = &one;
    refused(r, p, "want dist.transport or more_devices, got both");
    p.n_more_devices = 0;
    p.dist.transport = &three;
    refused(r, p, "got 3: 2 would work");
    p = group_params(r);
    p.dist.wire = (vkt_wire)2;
    refused(r, p, "want a vkt_wire, got 2");
    vkt_ctx_destroy(&other);
}

/* ---- ranks that are not alike ---- */

/* The settings of one rank. */
typedef struct own {
    float momentum;
    vkt_trainer_params p;
    vkt_fit_params fit;
    float weight;         /* not 0: replaces the first weight */
    const char *texts[2]; /* for vkt_trainer_attach, as "model" and "words", in this order; NULL: not attached */
    bool backwards;       /* the texts are attached in the other order */
    float scale;          /* not 0: the model multiplies its result by `array`, whose last number is `scale` */
    bool visible;         /* the host may write `array` */
    vkt_array *array;
} own;

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const own *o = user;
    const vkt_nn_batch_norm_params norm = { .momentum = o->momentum };
    vkt_graph *g = vkt_builder_graph(b);
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 4, .kernel = { 3 } });
    x = vkt_nn_max_pool2d(b, vkt_nn_batch_norm(b, "norm", x, &norm), 2);
    x = vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
    if (!o->array) return x;
    return vkt_mul(g, x, vkt_external_array(g, "scale", o->array, VKT_F32, vkt_shape1(RIG_CLASSES)));
}

static own own_of(const rig *r)
{
    own o = { .momentum = 0.1f, .p = group_params(r), .fit = { .epochs = 1 } };
    o.p.model.forward = forward;
    return o;
}

static void make(hands *h, uint32_t rank, own *o)
{
    o->p.model.user = o;
    const float scales[RIG_CLASSES] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, o->scale };
    const vkt_array_params array = {
        .dtype = VKT_F32, .shape = vkt_shape1(RIG_CLASSES), .data = scales, .host_visible = o->visible
    };
    if (o->scale != 0) assert_int_equal(vkt_array_create(h->rank[rank].ctx, &array, &o->array), VKT_OK);
    hands_train(h, rank, o->p, &o->fit);
    for (int k = 0; k < 2; k++) {
        const int i = o->backwards ? 1 - k : k;
        if (o->texts[i])
            assert_int_equal(vkt_trainer_attach(h->rank[rank].t, i ? "words" : "model", o->texts[i]), VKT_OK);
    }
    if (o->weight == 0) return;
    vkt_store *s = vkt_trainer_store(h->rank[rank].t);
    float w[4 * 9];
    assert_int_equal(vkt_store_read(s, 0, VKT_PART_VALUE, w), VKT_OK);
    w[0] = o->weight;
    assert_int_equal(vkt_store_write(s, 0, VKT_PART_VALUE, w), VKT_OK);
}

/* Checks that both ranks refuse the fit, that one message names the difference, and that both trainers still work. */
static void unlike_both(rig *r, own *first, own *other, const char *says)
{
    hands h = hands_make(r, 2, 0);
    make(&h, 0, first);
    make(&h, 1, other);
    const unsigned before = vkt_test_errors();
    vkt_test_expect_errors(true);
    hands_fit(&h);
    vkt_test_expect_errors(false);
    assert_int_equal(h.rank[0].result, VKT_E_STATE);
    assert_int_equal(h.rank[1].result, VKT_E_STATE);
    assert_int_equal(vkt_test_errors() - before, 1);
    vkt_test_error_contains("fit: the ranks are not alike, so their bits would differ: ");
    vkt_test_error_contains(says);
    for (int i = 0; i < 2; i++)
        assert_int_equal(vkt_trainer_save(h.rank[i].t, vkt_temp_dir_file(&r->dir, "weights")), VKT_OK);
    hands_free(&h);
}

static void unlike(rig *r, own *other, const char *says)
{
    own usual = own_of(r);
    unlike_both(r, &usual, other, says);
}

static void ranks_that_are_not_alike_are_refused(void **state)
{
    rig *r = rig_of(state);
    own o = own_of(r);
    o.momentum = 0.2f;
    unlike(r, &o, "network: not the same as in rank 0");
    o = own_of(r);
    o.p.lr = 0.02f;
    unlike(r, &o, "learning rate: rank 0 0.01, rank 1 0.02");
    o = own_of(r);
    o.p.precision = VKT_PRECISION_F16;
    unlike(r, &o, "precision: rank 0 f32, rank 1 f16");
    o = own_of(r);
    o.p.seed = 8;
    unlike(r, &o, "seed: rank 0 7, rank 1 8");
    o = own_of(r);
    o.weight = 0.25f;
    unlike(r, &o, "weights: not the same as in rank 0");
    o = own_of(r);
    vkt_dataset *data = rig_data(&r->h, 1, RIG_ROWS);
    o.p.train = data;
    unlike(r, &o, "data: not the same as in rank 0");
    vkt_dataset_destroy(&data);
    o = own_of(r);
    o.fit.epochs = 2;
    unlike(r, &o, "epochs: rank 0 1, rank 1 2");
    o = own_of(r);
    o.p.optimizer.clip_norm = 1;
    unlike(r, &o, "clip_norm");
    o = own_of(r);
    o.p.dist.bucket_bytes = 1u << 20;
    unlike(r, &o, "buckets: rank 0 ");
    o = own_of(r);
    o.p.dist.wire = VKT_WIRE_BF16;
    unlike(r, &o, "messages: rank 0 f32, rank 1 bf16");
}

/* A text that is attached to a trainer (vkt_trainer_attach) may name something that the trainer does not read itself,
 * for instance a file of frozen weights. If the texts differ, the frozen weights may differ, so the ranks are refused.
 * The order of the texts does not matter. */
static void ranks_with_other_attached_texts_are_refused(void **state)
{
    rig *r = rig_of(state);
    own a = own_of(r), b = own_of(r);
    a.texts[0] = b.texts[0] = "model 1";
    a.texts[1] = b.texts[1] = "words";
    b.texts[0] = "model 2";
    unlike_both(r, &a, &b, "differ: attached text \"model\": not the same as in rank 0");
    b.texts[0] = NULL;
    unlike_both(r, &a, &b, "differ: attached text \"model\": rank 0 #");
    b.texts[0] = "model 1";
    b.backwards = true;
    hands h = hands_make(r, 2, 0);
    make(&h, 0, &a);
    make(&h, 1, &b);
    hands_fit(&h);
    for (int i = 0; i < 2; i++) assert_int_equal(h.rank[i].result, VKT_OK);
    hands_free(&h);
}

/* Fits two ranks, and returns their common result. If the fits succeed, no message may be logged. If they fail, both
 * ranks together must log one message. The array of a rank is destroyed after the trainer of the rank and before the
 * context of the rank. */
static vkt_result fit_both(rig *r, own *a, own *b)
{
    hands h = hands_make(r, 2, 0);
    own *const both[] = { a, b };
    const unsigned before = vkt_test_errors();
    for (uint32_t i = 0; i < 2; i++) make(&h, i, both[i]);
    vkt_test_expect_errors(true);
    hands_fit(&h);
    vkt_test_expect_errors(false);
    const vkt_result result = h.rank[0].result;
    assert_int_equal(h.rank[1].result, result);
    assert_int_equal(vkt_test_errors() - before, result == VKT_OK ? 0 : 1);
    for (int i = 0; i < 2; i++) {
        vkt_trainer_destroy(&h.rank[i].t);
        vkt_array_destroy(&both[i]->array);
    }
    hands_free(&h);
    return result;
}

/* The arrays of the model must have the same bytes in all ranks, except arrays that the host may write. */
static void ranks_with_other_arrays_are_refused(void **state)
{
    rig *r = rig_of(state);
    own a = own_of(r), b = own_of(r);
    a.scale = b.scale = 2;
    assert_int_equal(fit_both(r, &a, &b), VKT_OK);
    b.scale = 3;
    assert_int_equal(fit_both(r, &a, &b), VKT_E_STATE);
    vkt_test_error_contains("differ: arrays of the model: not the same as in rank 0");
    a.visible = b.visible = true;
    assert_int_equal(fit_both(r, &a, &b), VKT_OK);
}

/* Rank 0 has an array that the host may write. Rank 1 has a copy of the array, and the host may not write the copy. The
 * ranks must not compare these two arrays. */
static void copies_of_visible_arrays_are_not_compared(void **state)
{
    rig *r = rig_of(state);
    own o = own_of(r);
    group g = { .n = 1 };
    vkt_array *copy;
    const float scales[RIG_CLASSES] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 2 };
    const vkt_array_params array = {
        .dtype = VKT_F32, .shape = vkt_shape1(RIG_CLASSES), .data = scales, .host_visible = true
    };
    assert_int_equal(vkt_array_create(r->ctx, &array, &o.array), VKT_OK);
    assert_true(rig_open(&r->h, &g.more[0]));
    assert_int_equal(vkt_array_copy(o.array, g.more[0], &copy), VKT_OK);
    o.p.model.user = &o;
    o.p.more_devices = g.more;
    o.p.n_more_devices = 1;
    assert_int_equal(vkt_trainer_create(r->ctx, &o.p, &g.t), VKT_OK);
    assert_int_equal(vkt_trainer_fit(g.t, &o.fit), VKT_OK);
    vkt_trainer_destroy(&g.t);
    vkt_array_destroy(&copy);
    vkt_array_destroy(&o.array);
    group_free(&g);
}

/* The ranks in more_devices have the attached texts of their trainer, so the ranks are alike. */
static void the_texts_of_a_trainer_are_those_of_its_devices(void **state)
{
    rig *r = rig_of(state);
    group g = group_make(r, group_params(r), 2);
    assert_int_equal(vkt_trainer_attach(g.t, "model", "model 1"), VKT_OK);
    assert_int_equal(vkt_trainer_fit(g.t, &(vkt_fit_params){ .epochs = 1 }), VKT_OK);
    group_free(&g);
}

/* The first fit is refused, because the weights differ. Then rank 1 loads the weights of rank 0. In the second fit the
 * comparison succeeds, and both ranks train. */
static void ranks_become_alike(void **state)
{
    rig *r = rig_of(state);
    hands h = hands_make(r, 2, 0);
    own a = own_of(r), b = own_of(r);
    b.weight = 0.25f;
    make(&h, 0, &a);
    make(&h, 1, &b);
    vkt_test_expect_errors(true);
    hands_fit(&h);
    vkt_test_expect_errors(false);
    const char *path = vkt_temp_dir_file(&r->dir, "weights");
    assert_int_equal(vkt_trainer_save(h.rank[0].t, path), VKT_OK);
    assert_int_equal(vkt_trainer_load(h.rank[1].t, path), VKT_OK);
    hands_fit(&h);
    assert_int_equal(h.rank[0].result, VKT_OK);
    assert_int_equal(h.rank[1].result, VKT_OK);
    group_same(h.rank[0].t, h.rank[1].t);
    hands_free(&h);
}

/* Wrong params in one rank or in both are refused before the first step. After that, the ranks still train together. */
static void ranks_go_on_after_wrong_params(void **state)
{
    rig *r = rig_of(state);
    hands h = hands_make(r, 2, 0);
    own a = own_of(r), b = own_of(r);
    make(&h, 0, &a);
    make(&h, 1, &b);
    for (uint32_t right = 0; right <= 2; right++) { /* the rank whose params are right; 2: no rank */
        for (uint32_t i = 0; i < 2; i++) h.rank[i].fit.min_delta = i == right ? 0 : -1;
        const unsigned before = vkt_test_errors();
        vkt_test_expect_errors(true);
        hands_fit(&h);
        vkt_test_expect_errors(false);
        for (uint32_t i = 0; i < 2; i++) assert_int_equal(h.rank[i].result, i == right ? VKT_E_STATE : VKT_E_ARG);
        assert_int_equal(vkt_test_errors() - before, right == 1 ? 1 : 2); /* rank 1 with right params logs nothing */
    }
    for (uint32_t i = 0; i < 2; i++) h.rank[i].fit.min_delta = 0;
    hands_fit(&h);
    for (uint32_t i = 0; i < 2; i++) assert_int_equal(h.rank[i].result, VKT_OK);
    group_same(h.rank[0].t, h.rank[1].t);
    hands_free(&h);
}

/* A rank is replaced by a new one, which has made no step yet. Both ranks resume the checkpoint and train together. */
static void a_rank_is_replaced(void **state)
{
    rig *r = rig_of(state);
    char path[256];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "checkpoint"));
    hands h = hands_make(r, 2, 5);
    const vkt_fit_params first = { .epochs = 1, .checkpoint = path }, second = { .epochs = 2, .checkpoint = path };
    for (uint32_t i = 0; i < 2; i++) hands_train(&h, i, group_params(r), &first);
    hands_fit(&h);
    vkt_trainer_destroy(&h.rank[1].t);
    hands_train(&h, 1, group_params(r), &second);
    h.rank[0].fit = second;
    for (uint32_t i = 0; i < 2; i++) assert_int_equal(vkt_trainer_resume(h.rank[i].t, path), VKT_OK);
    hands_fit(&h);
    assert_int_equal(h.rank[0].result, VKT_OK);
    assert_int_equal(h.rank[1].result, VKT_OK);
    group one = group_make(r, group_params(r), 1);
    assert_int_equal(vkt_trainer_fit(one.t, &(vkt_fit_params){ .epochs = 2 }), VKT_OK);
    group_same(one.t, h.rank[0].t);
    group_same(one.t, h.rank[1].t);
    group_free(&one);
    hands_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(numbers_that_do_not_fit_are_refused),
        rig_test(contexts_and_transports_that_do_not_fit_are_refused),
        rig_test(ranks_that_are_not_alike_are_refused),
        rig_test(ranks_with_other_attached_texts_are_refused),
        rig_test(ranks_with_other_arrays_are_refused),
        rig_test(copies_of_visible_arrays_are_not_compared),
        rig_test(the_texts_of_a_trainer_are_those_of_its_devices),
        rig_test(ranks_become_alike),
        rig_test(ranks_go_on_after_wrong_params),
        rig_test(a_rank_is_replaced),
    };
    return cmocka_run_group_tests_name("refused ranks", tests, NULL, NULL);
}
