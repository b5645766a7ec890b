/* Tests vkt_dataset_params.terms. The samples differ in how many of their labels are terms of the loss. A batch,
 * micro-batch or shard with more terms must have more influence on a step. */
#include <math.h>

#include "lm/tiny.h"

enum { ROWS = 12, STEPS = 4 };

/* Makes a data set of the first ROWS samples of tiny_data. In the first ROWS / 2 samples, only the last two labels
 * are terms of the loss. */
static vkt_dataset *unequal(const vkt_host *h, bool with_terms)
{
    static uint32_t rows[ROWS][2][TINY_CONTEXT];
    uint32_t terms[ROWS] = { 0 };
    vkt_dataset *all = tiny_data(h), *d;
    memcpy(rows, vkt_dataset_features(all), sizeof rows);
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t t = 0; t < TINY_CONTEXT; t++) {
            if (i < ROWS / 2 && t + 2 < TINY_CONTEXT) rows[i][1][t] = UINT32_MAX;
            terms[i] += rows[i][1][t] != UINT32_MAX;
        }
    const vkt_dataset_params p = {
        .rows = ROWS, .width = 2 * TINY_CONTEXT, .type = VKT_ROW_U32, .terms = with_terms ? terms : NULL
    };
    assert_int_equal(vkt_dataset_from_arrays(h, &p, rows, &d), VKT_OK);
    vkt_dataset_destroy(&all);
    return d;
}

/* How a trainer computes its steps. */
typedef struct way {
    uint32_t batch, micro, shards;
    bool two; /* in two contexts */
    bool streams;
} way;

static vkt_trainer *make(const rig *r, tiny *t, const vkt_dataset *data, way w, vkt_ctx *second)
{
    vkt_trainer_params p = tiny_trainer(t, data);
    vkt_trainer *trainer;
    p.validation = data;
    p.batch = w.batch;
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD, .micro_batches = w.micro };
    p.lr = 0.25f;
    p.stream = w.streams;
    p.dist.shards = w.shards;
    p.more_devices = &second;
    p.n_more_devices = w.two;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &trainer), VKT_OK);
    tiny_set_adapters(vkt_trainer_store(trainer));
    return trainer;
}

static vkt_trainer *train(const rig *r, tiny *t, const vkt_dataset *data, way w, vkt_ctx *second)
{
    vkt_trainer *trainer = make(r, t, data, w, second);
    rig_fit(trainer, &(vkt_fit_params){ .epochs = STEPS });
    return trainer;
}

/* Returns the largest difference between a weight of `a` and the same weight of `b`, divided by the largest change of
 * a weight from `start` to `a`. */
static double difference(vkt_trainer *a, vkt_trainer *b, vkt_trainer *start)
{
    uint64_t n;
    float *x = rig_weights(a, VKT_PART_VALUE, &n), *y = rig_weights(b, VKT_PART_VALUE, &n);
    float *from = rig_weights(start, VKT_PART_VALUE, &n);
    double most = 0, change = 0;
    for (uint64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)x[i] - (double)y[i]));
        change = fmax(change, fabs((double)x[i] - (double)from[i]));
    }
    assert_true(change > 1e-3);
    test_free(x);
    test_free(y);
    test_free(from);
    return most / change;
}

/* Trains in each of the `ways` and with one large batch, and compares the weights. The second half of the loop trains
 * without terms: there, the weights must differ. */
static void micro_batches_and_shards_equal_one_large_batch(void **state)
{
    rig *r = rig_of(state);
    static const way ways[] = { { 4, 3, 1, false }, { 2, 6, 1, false }, { 12, 1, 4, false },
                                { 6, 2, 2, false }, { 12, 1, 4, true }, { 6, 2, 2, true } };
    tiny t = tiny_open(r, "llama");
    vkt_dataset *data = unequal(&r->h, true), *plain = unequal(&r->h, false);
    vkt_ctx *second;
    assert_true(rig_open(&r->h, &second));
    assert_int_equal(vkt_lm_add_context(t.lm, second), VKT_OK);
    vkt_trainer *start = make(r, &t, data, (way){ .batch = ROWS, .shards = 1 }, second);
    vkt_trainer *whole = train(r, &t, data, (way){ .batch = ROWS, .shards = 1 }, second);
    for (size_t i = 0; i < 2 * VKT_COUNT(ways); i++) {
        const bool with_terms = i < VKT_COUNT(ways);
        vkt_trainer *other = train(r, &t, with_terms ? data : plain, ways[i % VKT_COUNT(ways)], second);
        const double d = difference(whole, other, start);
        const vkt_epoch_record *e = vkt_trainer_best(whole), *f = vkt_trainer_best(other);
        const double train_loss = fabs(e->train_loss / f->train_loss - 1),
                     val_loss = fabs(e->val_loss / f->val_loss - 1);
        print_message("way %zu: weights %.2g, training loss %.2g, validation loss %.2g\n", i, d, train_loss, val_loss);
        assert_true(with_terms ? d < 1e-5 : d > 1e-2);
        assert_true(!with_terms || (train_loss < 1e-6 && val_loss < 1e-6));
        vkt_trainer_destroy(&other);
    }
    vkt_trainer_destroy(&start);
    vkt_trainer_destroy(&whole);
    vkt_dataset_destroy(&data);
    vkt_dataset_destroy(&plain);
    vkt_lm_destroy(&t.lm);
    vkt_ctx_destroy(&second);
}

/* The loss of a data set is the mean over all its terms, for any batch size. So a sample with few terms weighs less. */
static void losses_are_means_over_terms(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "qwen2");
    vkt_dataset *data = unequal(&r->h, true), *one;
    const uint32_t *terms = vkt_dataset_terms(data);
    vkt_trainer *trainer = make(r, &t, data, (way){ .batch = 5, .shards = 1 }, NULL);
    double all, sum = 0, n = 0;
    assert_int_equal(vkt_trainer_evaluate(trainer, data, &all, NULL), VKT_OK);
    for (uint32_t i = 0; i < ROWS; i++) {
        double loss;
        assert_int_equal(vkt_dataset_slice(data, i, 1, &one), VKT_OK);
        assert_int_equal(vkt_dataset_terms(one)[0], terms[i]);
        assert_int_equal(vkt_trainer_evaluate(trainer, one, &loss, NULL), VKT_OK);
        vkt_dataset_destroy(&one);
        sum += loss * terms[i];
        n += terms[i];
    }
    assert_true(fabs(all / (sum / n) - 1) < 1e-6);
    vkt_trainer_destroy(&trainer);
    vkt_dataset_destroy(&data);
    vkt_lm_destroy(&t.lm);
}

static void stop_after_two(void *user, const vkt_fit_progress *p)
{
    uint32_t *batches = user;
    *batches += p->batch > 0;
}

static bool two_are_done(void *user)
{
    return *(uint32_t *)user >= 2;
}

/* One run neither streams its data nor stops. The other run streams its data, stops in the middle of an epoch, and
 * resumes. Both runs have the same weights at the end, and the same training loss in the first epoch, to the bit. */
static void a_resumed_run_keeps_its_terms(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "qwen3");
    vkt_dataset *data = unequal(&r->h, true);
    char path[256];
    uint32_t batches = 0;
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "checkpoint"));
    const way w = { .batch = 2, .micro = 4, .shards = 1 },
              streamed = { .batch = 2, .micro = 4, .shards = 1, .streams = true };
    vkt_trainer *whole = train(r, &t, data, w, NULL), *half = make(r, &t, data, streamed, NULL);
    const vkt_fit_callbacks stop = { .user = &batches, .on_batch = stop_after_two, .stop = two_are_done };
    rig_fit(half, &(vkt_fit_params){ .epochs = STEPS, .checkpoint = path, .callbacks = stop });
    vkt_trainer_destroy(&half);
    half = make(r, &t, data, streamed, NULL);
    assert_int_equal(vkt_trainer_resume(half, path), VKT_OK);
    const vkt_fit_progress at = vkt_trainer_position(half);
    assert_true(at.epoch == 1 && at.batch >= 2 && at.batch < 6);
    rig_fit(half, &(vkt_fit_params){ .epochs = STEPS, .checkpoint = path });
    rig_same(whole, half, VKT_PART_VALUE);
    uint32_t n;
    const vkt_epoch_record *a = vkt_trainer_history(whole, &n), *b = vkt_trainer_history(half, &n);
    assert_int_equal(n, STEPS);
    assert_memory_equal(&a->train_loss, &b->train_loss, sizeof(double));
    vkt_trainer_destroy(&half);
    vkt_trainer_destroy(&whole);
    vkt_dataset_destroy(&data);
    vkt_lm_destroy(&t.lm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(micro_batches_and_shards_equal_one_large_batch),
        rig_test(losses_are_means_over_terms),
        rig_test(a_resumed_run_keeps_its_terms),
    };
    return cmocka_run_group_tests_name("terms of rows", tests, NULL, NULL);
}
