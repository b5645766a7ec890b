/* Tests what a fit of several ranks does besides its steps: the caller's metrics, callbacks, early stopping, schedules.
 * The tests also cover the calls after a fit, a second fit, and fits that are refused or diverge. */
#include "train/group.h"

#include <math.h>
#include <stdio.h>

static const uint32_t four[] = { 4, 0 };

/* ---- own metrics ---- */

/* `resets` counts the calls of reset(), and `results` the calls of result(). `rows` counts samples. `sum` is a weighted
 * sum of the outputs since the last reset(). */
typedef struct tally {
    uint32_t resets, results, rows;
    double sum;
} tally;

static void reset(void *user)
{
    tally *t = user;
    t->resets++;
    t->sum = 0;
}

static void add(void *user, const vkt_metric_batch *b)
{
    tally *t = user;
    t->rows += b->rows;
    for (uint64_t i = 0; i < b->rows * b->width; i++) t->sum += (double)b->outputs[i] * (double)(i % 7);
}

static double result(void *user)
{
    tally *t = user;
    t->results++;
    return t->sum;
}

/* Only rank 0 calls the functions of the metric. As in a fit of one rank, these calls come on the caller's thread and
 * get all samples in order. All ranks get the value of the metric. */
static void own_metrics_see_every_sample_once(void **state)
{
    enum { EPOCHS = 4 };
    rig *r = rig_of(state);
    tally seen[2] = { { 0 } };
    group g[2];
    for (uint32_t i = 0; i < 2; i++) {
        const vkt_metric m = { .name = "own", .reset = reset, .add = add, .result = result, .user = &seen[i] };
        vkt_trainer_params p = group_params(r);
        p.metrics = &m;
        p.n_metrics = 1;
        g[i] = group_make(r, p, i ? 4 : 1);
        rig_fit(g[i].t, &(vkt_fit_params){ .epochs = EPOCHS, .patience = 2, .monitor = VKT_MONITOR_METRIC });
    }
    uint32_t epochs;
    vkt_trainer_history(g[0].t, &epochs);
    group_same(g[0].t, g[1].t);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(seen[i].resets, epochs);
        assert_int_equal(seen[i].results, epochs);
        assert_int_equal(seen[i].rows, epochs * RIG_CHECK_ROWS);
    }
    for (uint32_t k = 0; k < g[1].n; k++) {
        group_same(g[1].t, g[1].t->replicas[k]);
        assert_int_equal(vkt_trainer_best_epoch(g[1].t->replicas[k]), vkt_trainer_best_epoch(g[0].t));
    }
    group_free(&g[0]);
    group_free(&g[1]);
}

/* ---- a callback that reads weights ---- */

enum { LOOKS = 64 };

/* The hash of the weights at each call of `stop`. */
typedef struct looks {
    vkt_trainer *t;
    uint64_t hash[LOOKS];
    uint32_t n;
} looks;

static bool look(void *user)
{
    looks *l = user;
    uint64_t n;
    float *weights = rig_weights(l->t, VKT_PART_VALUE, &n);
    assert_true(l->n < LOOKS);
    l->hash[l->n++] = vkt_hash(VKT_HASH_START, weights, n * sizeof *weights);
    test_free(weights);
    return false;
}

/* `stop` is called after a step was submitted. A read of the weights in `stop` waits for this step and its exchange. */
static void stop_sees_the_weights_of_each_step(void **state)
{
    rig *r = rig_of(state);
    looks seen[3] = { { 0 } };
    for (uint32_t i = 0; i < 3; i++) {
        group g = group_make(r, group_params(r), 1u << i);
        seen[i].t = g.t;
        rig_fit(g.t, &(vkt_fit_params){ .epochs = 2, .callbacks = { .user = &seen[i], .stop = look } });
        group_free(&g);
    }
    assert_int_equal(seen[0].n, 2 * RIG_STEPS);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(seen[i].n, seen[0].n);
        assert_memory_equal(seen[i].hash, seen[0].hash, seen[0].n * sizeof seen[0].hash[0]);
    }
    for (uint32_t k = 1; k < seen[0].n; k++)
        assert_true(seen[0].hash[k] != seen[0].hash[k - 1]); /* each step changes the weights */
}

/* ---- what ends a fit, and what changes the learning rate ---- */

static void early_stopping_is_the_same(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.lr = 0.3f;
    const vkt_fit_params fit = { .epochs = 30, .patience = 2 };
    group_alike(r, &p, &fit, four);
    group g = group_make(r, p, 2);
    rig_fit(g.t, &fit);
    uint32_t n;
    vkt_trainer_history(g.t, &n);
    assert_true(n < 30 && n == vkt_trainer_best_epoch(g.t) + 2); /* the fit stopped early */
    group_free(&g);
}

static void a_plateau_lowers_the_rate_of_all_ranks(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.lr = 0.1f;
    p.schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_PLATEAU,
                                 .plateau = { .patience = VKT_PATIENCE_NONE, .threshold = 0.9, .factor = 0.5 } };
    const vkt_fit_params fit = { .epochs = 4 };
    group_alike(r, &p, &fit, four);
    group g = group_make(r, p, 2);
    rig_fit(g.t, &fit);
    assert_true(g.t->at.plateau.scale < 1 && g.t->replicas[0]->at.plateau.scale == g.t->at.plateau.scale);
    group_free(&g);
}

typedef struct calls {
    uint32_t batches, epochs, stops, stop_after;
} calls;

static void on_batch(void *user, const vkt_fit_progress *p)
{
    calls *c = user;
    c->batches += !p->validating;
}

static bool on_epoch(void *user, const vkt_epoch_record *e, bool best)
{
    calls *c = user;
    (void)best;
    c->epochs++;
    return c->stop_after && e->epoch == c->stop_after;
}

/* Only rank 0 calls the callbacks, so each call comes once. */
static void callbacks_come_once(void **state)
{
    rig *r = rig_of(state);
    calls c = { .stop_after = 2 };
    group g = group_make(r, group_params(r), 4);
    const vkt_fit_callbacks calls_of = { .user = &c, .on_batch = on_batch, .on_epoch = on_epoch };
    rig_fit(g.t, &(vkt_fit_params){ .epochs = 5, .callbacks = calls_of });
    assert_int_equal(c.epochs, 2); /* on_epoch ended the fit of all ranks */
    assert_int_equal(c.batches, 2 * RIG_STEPS);
    for (uint32_t i = 0; i < g.n; i++) {
        uint32_t n;
        vkt_trainer_history(g.t->replicas[i], &n);
        assert_int_equal(n, 2);
    }
    group_free(&g);
}

/* ---- after a fit ---- */

static void the_calls_after_a_fit_are_those_of_one_rank(void **state)
{
    rig *r = rig_of(state);
    group g[2];
    double loss[2][2], accuracy[2][2];
    uint32_t classes[2][RIG_CHECK_ROWS];
    float y[2][RIG_CHECK_ROWS * RIG_CLASSES];
    const char *path[2] = { "one", "four" };
    char files[2][256];
    for (int i = 0; i < 2; i++) {
        g[i] = group_make(r, group_params(r), i ? 4 : 1);
        rig_fit(g[i].t, &(vkt_fit_params){ .epochs = 2 });
        assert_int_equal(vkt_trainer_evaluate(g[i].t, r->check, &loss[i][0], &accuracy[i][0]), VKT_OK);
        assert_int_equal(vkt_trainer_evaluate(g[i].t, r->train, &loss[i][1], &accuracy[i][1]), VKT_OK);
        assert_int_equal(vkt_trainer_predict(g[i].t, r->check, 0, RIG_CHECK_ROWS, classes[i], y[i]), VKT_OK);
        snprintf(files[i], sizeof files[i], "%s", vkt_temp_dir_file(&r->dir, path[i]));
        assert_int_equal(vkt_trainer_save(g[i].t, files[i]), VKT_OK);
        rig_fit(g[i].t, &(vkt_fit_params){ .epochs = 4 }); /* a second fit continues */
    }
    assert_memory_equal(loss[0], loss[1], sizeof loss[0]);
    assert_memory_equal(accuracy[0], accuracy[1], sizeof accuracy[0]);
    assert_memory_equal(classes[0], classes[1], sizeof classes[0]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    rig_same_file(files[0], files[1]);
    group_same(g[0].t, g[1].t);
    uint32_t n;
    vkt_trainer_history(g[1].t, &n);
    assert_int_equal(n, 4);
    assert_int_equal(vkt_trainer_load(g[1].t, files[0]), VKT_OK); /* loads the file on all ranks */
    assert_int_equal(vkt_trainer_load(g[0].t, files[0]), VKT_OK);
    for (int i = 0; i < 2; i++) rig_fit(g[i].t, &(vkt_fit_params){ .epochs = 5 });
    group_same(g[0].t, g[1].t);
    group_free(&g[0]);
    group_free(&g[1]);
}

/* vkt_trainer_profile and vkt_trainer_find_lr run steps, but change no state. */
static void a_profile_and_a_rate_test_change_nothing(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    vkt_lr_test rates;
    p.profile = true;
    group a = group_make(r, p, 1), b = group_make(r, p, 1), c = group_make(r, p, 2);
    rig_fit(a.t, &(vkt_fit_params){ .epochs = 1 });
    rig_fit(b.t, &(vkt_fit_params){ .epochs = 1 });
    rig_fit(c.t, &(vkt_fit_params){ .epochs = 1 });
    assert_int_equal(vkt_trainer_profile(a.t, vkt_temp_dir_file(&r->dir, "trace.json")), VKT_OK);
    assert_int_equal(vkt_trainer_profile(c.t, vkt_temp_dir_file(&r->dir, "trace.json")), VKT_OK);
    assert_int_equal(vkt_trainer_find_lr(a.t, NULL, &rates), VKT_OK);
    rig_fit(a.t, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(b.t, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(c.t, &(vkt_fit_params){ .epochs = 2 });
    group_same(a.t, b.t);
    group_same(a.t, c.t);
    group_free(&a);
    group_free(&b);
    group_free(&c);
}

static void a_rate_test_wants_one_rank(void **state)
{
    rig *r = rig_of(state);
    vkt_lr_test rates;
    group g = group_make(r, group_params(r), 2);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_find_lr(g.t, NULL, &rates), VKT_E_UNSUPPORTED);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("want a trainer of one rank, got 2");
    rig_fit(g.t, NULL); /* the trainer still works */
    group_free(&g);
}

/* Wrong arguments are refused before the first step, and the trainer does not change. */
static void a_refused_fit_changes_nothing(void **state)
{
    rig *r = rig_of(state);
    group g = group_make(r, group_params(r), 2), one = group_make(r, group_params(r), 1);
    const vkt_fit_params wrong[] = { { .monitor = VKT_MONITOR_METRIC }, { .min_delta = -1 } };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        const unsigned before = vkt_test_errors();
        assert_int_equal(vkt_trainer_fit(g.t, &wrong[i]), VKT_E_ARG);
        assert_int_equal(vkt_test_errors() - before, 1);
    }
    vkt_test_expect_errors(false);
    rig_fit(g.t, NULL);
    rig_fit(one.t, NULL);
    assert_int_equal(vkt_trainer_save(g.t, vkt_temp_dir_file(&r->dir, "weights")), VKT_OK);
    group_same(one.t, g.t);
    group_free(&g);
    group_free(&one);
}

static double nothing(void *user)
{
    (void)user;
    return NAN;
}

/* A run without a best epoch logs one message, and the trainer still works. */
static void a_run_without_a_best_epoch_is_reported_once(void **state)
{
    rig *r = rig_of(state);
    tally seen = { 0 };
    const vkt_metric m = { .name = "own", .add = add, .result = nothing, .user = &seen };
    vkt_trainer_params p = group_params(r);
    p.metrics = &m;
    p.n_metrics = 1;
    group g = group_make(r, p, 2);
    const unsigned before = vkt_test_errors();
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(g.t, &(vkt_fit_params){ .monitor = VKT_MONITOR_METRIC }), VKT_E_STATE);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_test_errors() - before, 1);
    vkt_test_error_contains("is NaN in each epoch with a finite loss");
    assert_int_equal(vkt_trainer_save(g.t, vkt_temp_dir_file(&r->dir, "weights")), VKT_OK);
    rig_fit(g.t, &(vkt_fit_params){ .epochs = 2, .monitor = VKT_MONITOR_VAL_LOSS });
    group_free(&g);
}

/* Losses that are not finite end the fit of all ranks, with one message. */
static void a_divergence_is_that_of_all_ranks(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD };
    p.lr = 1e30f;
    group g = group_make(r, p, 4);
    const unsigned before = vkt_test_errors();
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(g.t, &(vkt_fit_params){ .epochs = 2 }), VKT_E_DIVERGED);
    vkt_test_error_contains("is not a finite number");
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_test_errors() - before, 1);
    for (uint32_t i = 0; i < g.n; i++) assert_int_equal(g.t->replicas[i]->at.batch, g.t->at.batch);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(g.t, &(vkt_fit_params){ .epochs = 2 }), VKT_E_STATE);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("its weights are not finite");
    assert_int_equal(vkt_test_errors() - before, 2);
    assert_false(g.t->shards.broken);
    group_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(own_metrics_see_every_sample_once),
        rig_test(stop_sees_the_weights_of_each_step),
        rig_test(early_stopping_is_the_same),
        rig_test(a_plateau_lowers_the_rate_of_all_ranks),
        rig_test(callbacks_come_once),
        rig_test(the_calls_after_a_fit_are_those_of_one_rank),
        rig_test(a_profile_and_a_rate_test_change_nothing),
        rig_test(a_rate_test_wants_one_rank),
        rig_test(a_refused_fit_changes_nothing),
        rig_test(a_run_without_a_best_epoch_is_reported_once),
        rig_test(a_divergence_is_that_of_all_ranks),
    };
    return cmocka_run_group_tests_name("fits of ranks", tests, NULL, NULL);
}
