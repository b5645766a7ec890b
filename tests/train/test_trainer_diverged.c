/* Tests losses and weights that are not finite. Without allow_nonfinite, the fit returns VKT_E_DIVERGED, and keeps the
 * checkpoint and the best weights of earlier epochs. Also tests which monitors a fit accepts, and a change of the
 * monitor. */
#include "train/rig.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"

static bool exists(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f) fclose(f);
    return f != NULL;
}

/* Trains a trainer of rig_params for one epoch, and writes a checkpoint to `path`. Returns the trainer. */
static vkt_trainer *first_epoch(rig *r, const char *path)
{
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
    return t;
}

static void a_run_that_diverges_stops_with_a_status_of_its_own(void **state)
{
    rig *r = rig_of(state);
    const char *checkpoint = vkt_temp_dir_file(&r->dir, "c"), *weights = vkt_temp_dir_file(&r->dir, "w");
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *good = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_save(good, weights), VKT_OK);
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD };
    p.lr = 1e30f;
    vkt_trainer *t = rig_trainer(r, &p);
    const vkt_fit_params f = { .epochs = 3, .checkpoint = checkpoint, .checkpoint_every = 1 };
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &f), VKT_E_DIVERGED);
    vkt_test_error_contains("epoch 1, batch ");
    vkt_test_error_contains("the loss is not a finite number, at learning rate 1e+30");
    vkt_test_error_contains("Try a lower learning rate");
    assert_int_equal(vkt_trainer_best_epoch(t), 0);
    assert_true(t->at.epoch == 1 && t->at.batch < RIG_STEPS); /* the run stopped in the first epoch */
    assert_int_equal(vkt_trainer_save(t, weights), VKT_E_DIVERGED);
    vkt_test_error_contains(weights);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_trainer_load(t, weights), VKT_OK); /* the refused save left the file as it was */
    rig_same(t, good, VKT_PART_VALUE);
    if (!exists(checkpoint)) return; /* the checkpoint, if there is one, is of a step before the divergence */
    p.lr = 0.01f;
    vkt_trainer *again = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_resume(again, checkpoint), VKT_OK);
    uint64_t n;
    float *values = rig_weights(again, VKT_PART_VALUE, &n);
    for (uint64_t i = 0; i < n; i++) assert_true(isfinite(values[i]));
    test_free(values);
}

static void what_was_finite_outlives_a_divergence(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c"), *copy = vkt_temp_dir_file(&r->dir, "copy");
    vkt_trainer *first = first_epoch(r, copy);
    first_epoch(r, path);
    vkt_trainer_params p = rig_params(r);
    p.lr = 1e38f; /* after one step of Adam, no loss is finite */
    vkt_trainer *t = rig_trainer(r, &p);
    /* The checkpoint has another learning rate. The resume logs this, and uses the rate of p. */
    assert_int_equal(vkt_trainer_resume(t, path), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 3, .checkpoint = path, .checkpoint_every = 5 }),
                     VKT_E_DIVERGED);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("epoch 2");
    rig_same_file(path, copy);
    assert_int_equal(vkt_trainer_best_epoch(t), 1);
    rig_same(t, first, VKT_PART_VALUE); /* the fit has restored the best weights */
    assert_int_equal(vkt_trainer_save(t, path), VKT_OK);
}

/* Makes samples of class 0 whose pixels are NaN. The outputs of the model are NaN, too. The argmax of NaNs is index 0,
 * so the accuracy is 1. */
static vkt_dataset *no_numbers(const rig *r)
{
    enum { N = RIG_CHECK_ROWS * RIG_SIDE * RIG_SIDE };
    float *x = test_malloc(N * sizeof *x);
    for (uint32_t i = 0; i < N; i++) x[i] = NAN;
    static const uint32_t labels[RIG_CHECK_ROWS];
    const vkt_dataset_params p = { .rows = RIG_CHECK_ROWS,
                                   .height = RIG_SIDE,
                                   .width = RIG_SIDE,
                                   .type = VKT_ROW_F32,
                                   .labels = labels,
                                   .classes = RIG_CLASSES };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &p, x, &d), VKT_OK);
    test_free(x);
    return d;
}

static void an_accuracy_of_nan_is_never_the_best(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    vkt_dataset *bad = no_numbers(r);
    vkt_trainer_params p = rig_params(r);
    p.validation = bad;
    uint32_t n;
    for (int allow = 0; allow < 2; allow++) {
        vkt_trainer *t = rig_trainer(r, &p);
        const vkt_fit_params f = { .epochs = 2, .checkpoint = path, .allow_nonfinite = allow };
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_fit(t, &f), VKT_E_DIVERGED);
        vkt_test_expect_errors(false);
        vkt_test_error_contains(allow ? "no epoch has a finite loss"
                                      : "the loss of the validation set is not a finite");
        const vkt_epoch_record *e = vkt_trainer_history(t, &n);
        assert_int_equal(n, allow ? 2 : 1);
        assert_true(e[0].val_acc == 1 && isnan(e[0].val_loss) && isfinite(e[0].train_loss));
        assert_int_equal(vkt_trainer_best_epoch(t), 0);
        assert_true(isnan(vkt_trainer_best_accuracy(t)));
        assert_false(exists(path));
    }
    for (size_t i = 0; i < VKT_COUNT(r->trainers); i++) vkt_trainer_destroy(&r->trainers[i]);
    vkt_dataset_destroy(&bad);
}

/* ---- epochs and steps that are not finite ---- */

/* Adds the parameter `extra` to the cross-entropy. If a test sets `extra` to infinity, the loss is infinite, and the
 * gradients of the model stay finite. `extra` is frozen, so no step changes it. */
static vkt_tensor loss_with_extra(vkt_builder *b, vkt_tensor y, vkt_tensor x, vkt_tensor labels, vkt_tensor targets,
                                  void *user)
{
    (void)x, (void)targets, (void)user;
    vkt_graph *g = vkt_builder_graph(b);
    const vkt_tensor extra = vkt_param(g, "extra", vkt_shape1(1));
    if (vkt_freeze(g, "extra") != VKT_OK) return (vkt_tensor){ 0 };
    return vkt_add(g, vkt_softmax_cross_entropy(g, y, labels), vkt_mean(g, extra));
}

typedef struct bad_epoch {
    vkt_trainer *t;
    const rig *r;
    const char *path, *copy; /* paths of the checkpoint, and of its copy after the first epoch */
} bad_epoch;

static void set_extra(vkt_trainer *t, float value)
{
    vkt_store *s = vkt_trainer_store(t);
    for (uint32_t i = 0; i < vkt_store_count(s); i++)
        if (strcmp(vkt_store_name(s, i), "extra") == 0)
            assert_int_equal(vkt_store_write(s, i, VKT_PART_VALUE, &value), VKT_OK);
}

static bool alternate_bad_and_good(void *user, const vkt_epoch_record *e, bool best)
{
    const bad_epoch *b = user;
    void *bytes;
    size_t n;
    if (e->epoch == 1) {
        assert_int_equal(vkt_file_read(&b->r->h, b->path, 1u << 30, &bytes, &n), VKT_OK);
        assert_int_equal(vkt_file_write(&b->r->h, b->copy, bytes, n), VKT_OK);
        vkt_free(&b->r->h, bytes);
    }
    if (e->epoch == 2) {
        assert_true(isinf(e->train_loss) && !best);
        rig_same_file(b->path, b->copy);
    }
    set_extra(b->t, e->epoch == 1 ? INFINITY : 0);
    return false;
}

static void a_bad_epoch_is_passed_by_where_that_is_allowed(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.model.loss = loss_with_extra;
    vkt_trainer *once = rig_trainer(r, &p);
    set_extra(once, 0);
    rig_fit(once, &(vkt_fit_params){ .epochs = 1 });
    for (int allow = 0; allow < 2; allow++) {
        bad_epoch b = { rig_trainer(r, &p), r, vkt_temp_dir_file(&r->dir, "c"), vkt_temp_dir_file(&r->dir, "copy") };
        set_extra(b.t, 0);
        const vkt_fit_params f = { .epochs = 4,
                                   .checkpoint = b.path,
                                   .checkpoint_every = 3,
                                   .allow_nonfinite = allow,
                                   .callbacks = { .user = &b, .on_epoch = alternate_bad_and_good } };
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_fit(b.t, &f), allow ? VKT_OK : VKT_E_DIVERGED);
        vkt_test_expect_errors(false);
        uint32_t n;
        vkt_trainer_history(b.t, &n);
        assert_int_equal(n, allow ? 4 : 1);
        assert_true(vkt_trainer_best_epoch(b.t) != 0 && vkt_trainer_best_epoch(b.t) != 2);
        if (!allow) rig_same(b.t, once, VKT_PART_VALUE);
        if (!allow) rig_same_file(b.path, b.copy);
    }
}

/* If a checkpoint cannot be written, a later fit writes it (test_trainer_state.c). This test checks an exception. Epoch
 * 1 is good, but its checkpoint cannot be written. Epoch 2 diverges, and the state of epoch 1 is lost. So a later fit
 * must not write the checkpoint of epoch 1. */
static void after_a_divergence_no_checkpoint_is_owed(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.model.loss = loss_with_extra;
    vkt_trainer *t = rig_trainer(r, &p);
    set_extra(t, 0);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .checkpoint = vkt_temp_dir_file(&r->dir, "none/c") }),
                     VKT_E_CHECKPOINT);
    set_extra(t, INFINITY);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 2 }), VKT_E_DIVERGED);
    vkt_test_expect_errors(false);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    rig_fit(t, &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
    assert_false(exists(path));
}

/* A fit with a checkpoint that cannot be written. Then the trainer no longer has the weights of the last step: it has
 * those of the best epoch, averaged weights, or weights of a file. So another fit must not write the checkpoint. */
static void without_the_weights_of_the_last_step_no_checkpoint_is_owed(void **state)
{
    rig *r = rig_of(state);
    const char *nowhere = vkt_temp_dir_file(&r->dir, "none/c"), *weights = vkt_temp_dir_file(&r->dir, "w");
    enum { BEST, AVERAGED, LOADED, CASES };
    for (int i = 0; i < CASES; i++) {
        vkt_trainer_params p = rig_params(r);
        if (i == AVERAGED) p.ema_decay = 0.8;
        vkt_trainer *t = rig_trainer(r, &p);
        assert_int_equal(vkt_trainer_save(t, weights), VKT_OK);
        vkt_fit_params f = { .epochs = i == BEST ? 2 : 1, .min_delta = 2, .checkpoint = nowhere };
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_fit(t, &f), VKT_E_CHECKPOINT);
        vkt_test_expect_errors(false);
        assert_int_equal(vkt_trainer_best_epoch(t), 1);
        if (i == LOADED) assert_int_equal(vkt_trainer_load(t, weights), VKT_OK);
        f.checkpoint = vkt_temp_dir_file(&r->dir, "c");
        rig_fit(t, &f); /* no epoch is left to train */
        assert_false(exists(f.checkpoint));
    }
}

/* Returns a trainer that diverged in its second epoch. The moments are not finite. The weights are those of the first
 * epoch. */
static vkt_trainer *diverged(rig *r, const vkt_trainer_params *p)
{
    vkt_trainer *t = rig_trainer(r, p);
    set_extra(t, 0);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1 });
    const float bad = NAN;
    assert_int_equal(vkt_store_write(t->store, 0, VKT_PART_VALUE, (float[8 * 9]){ bad }), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 2 }), VKT_E_DIVERGED);
    vkt_test_expect_errors(false);
    return t;
}

static void a_diverged_trainer_wants_finite_numbers(void **state)
{
    rig *r = rig_of(state);
    const char *weights = vkt_temp_dir_file(&r->dir, "w"), *checkpoint = vkt_temp_dir_file(&r->dir, "c");
    vkt_trainer_params p = rig_params(r);
    p.model.loss = loss_with_extra;
    vkt_trainer *good = rig_trainer(r, &p);
    set_extra(good, 0);
    rig_fit(good, &(vkt_fit_params){ .checkpoint = checkpoint });
    assert_int_equal(vkt_trainer_save(good, weights), VKT_OK);
    const vkt_fit_params two = { .epochs = 2 };
    for (int resumed = 0; resumed < 2; resumed++) {
        vkt_trainer *t = diverged(r, &p);
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_fit(t, &two), VKT_E_STATE);
        vkt_test_error_contains("the run has diverged, and its first moments are not finite");
        vkt_test_error_contains("vkt_trainer_resume, vkt_trainer_load");
        vkt_test_expect_errors(false);
        rig_same(t, good, VKT_PART_VALUE); /* no epoch was trained */
        const vkt_result loaded = resumed ? vkt_trainer_resume(t, checkpoint) : vkt_trainer_load(t, weights);
        assert_int_equal(loaded, VKT_OK);
        rig_fit(t, &two);
        uint32_t n;
        const vkt_epoch_record *e = vkt_trainer_history(t, &n);
        assert_true(n == 2 && isfinite(e[1].train_loss));
        /* After a divergence, vkt_trainer_load resets the optimizer and its count of steps. */
        assert_int_equal(t->at.t, resumed ? 2 * RIG_STEPS : RIG_STEPS);
    }
}

/* A fit with allow_nonfinite trains with moments that are NaN. It returns VKT_OK, because epoch 1 of the run was
 * finite. The next fit without allow_nonfinite finds that the moments are not finite. */
static void an_allowed_divergence_is_found_later(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.model.loss = loss_with_extra;
    vkt_trainer *t = diverged(r, &p);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 3, .allow_nonfinite = true }), VKT_OK);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 4 }), VKT_E_STATE);
    vkt_test_error_contains("the run has diverged, and its first moments are not finite");
    vkt_test_expect_errors(false);
}

static bool stop_in_the_middle(void *user)
{
    uint32_t *calls = user;
    return ++*calls == 3;
}

/* A fit with allow_nonfinite has an infinite loss in epoch 2, and `stop` ends it there. Its checkpoint continues at the
 * start of epoch 2, and so does the trainer: the sums of the epoch are not finite. */
static void a_stop_does_not_hide_a_divergence(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    vkt_trainer_params p = rig_params(r);
    p.model.loss = loss_with_extra;
    vkt_trainer *t = rig_trainer(r, &p), *again = rig_trainer(r, &p);
    uint32_t calls = 0;
    set_extra(t, 0);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1 });
    set_extra(t, INFINITY);
    const vkt_fit_params stopped = { .epochs = 2,
                                     .allow_nonfinite = true,
                                     .callbacks = { .user = &calls, .stop = stop_in_the_middle } };
    assert_int_equal(vkt_trainer_fit(t, &stopped), VKT_OK);
    const vkt_fit_progress at = vkt_trainer_position(t);
    assert_true(at.epoch == 2 && at.batch == 0 && isnan(at.loss));
    set_extra(t, 0);
    assert_int_equal(vkt_trainer_checkpoint(t, path), VKT_OK);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    assert_int_equal(vkt_trainer_resume(again, path), VKT_OK);
    rig_fit(again, &(vkt_fit_params){ .epochs = 2 });
    rig_same(t, again, VKT_PART_VALUE);
}

/* The run diverges in the middle of epoch 2. Then the loss is finite again, and a fit with allow_nonfinite begins epoch
 * 2 again, like a fit without it. After this fit, the trainer counts as not diverged: a load keeps the moments. */
static void a_fit_that_allows_nonfinite_begins_the_epoch_again(void **state)
{
    rig *r = rig_of(state);
    const char *weights = vkt_temp_dir_file(&r->dir, "w");
    vkt_trainer_params p = rig_params(r);
    p.model.loss = loss_with_extra;
    vkt_trainer *t = rig_trainer(r, &p);
    set_extra(t, 0);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1 });
    assert_int_equal(vkt_trainer_save(t, weights), VKT_OK);
    set_extra(t, INFINITY);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 2 }), VKT_E_DIVERGED);
    vkt_test_expect_errors(false);
    assert_true(t->at.epoch == 2 && t->at.batch > 0);
    assert_int_equal(vkt_trainer_load(t, weights), VKT_OK); /* `extra` is 0 in the file */
    rig_fit(t, &(vkt_fit_params){ .epochs = 2, .allow_nonfinite = true });
    uint32_t n;
    const vkt_epoch_record *e = vkt_trainer_history(t, &n);
    assert_true(n == 2 && isfinite(e[1].train_loss));
    assert_int_equal(t->at.t, RIG_STEPS); /* the load has set the clock to 0; the fit has made all steps of epoch 2 */
    assert_int_equal(vkt_trainer_load(t, weights), VKT_OK);
    assert_int_equal(t->at.t, RIG_STEPS); /* the last fit has not diverged, so this load does not set the clock */
}

/* A load after a divergence sets Adagrad's sums of squares to initial_accumulator. The default of initial_accumulator
 * is 0.1 with `keras`, else 0. */
static void a_loaded_adagrad_starts_as_a_new_one(void **state)
{
    rig *r = rig_of(state);
    const char *weights = vkt_temp_dir_file(&r->dir, "w");
    const vkt_optimizer forms[] = { { .kind = VKT_ADAGRAD, .keras = true },
                                    { .kind = VKT_ADAGRAD, .keras = true, .initial_accumulator = VKT_ZERO },
                                    { .kind = VKT_ADAGRAD, .initial_accumulator = 0.5f } };
    const float starts[] = { 0.1f, 0, 0.5f };
    for (size_t i = 0; i < VKT_COUNT(forms); i++) {
        vkt_trainer_params p = rig_params(r);
        p.model.loss = loss_with_extra;
        p.optimizer = forms[i];
        float sum[8 * 9];
        vkt_trainer *good = rig_trainer(r, &p);
        assert_int_equal(vkt_trainer_save(good, weights), VKT_OK);
        vkt_trainer *t = diverged(r, &p);
        assert_int_equal(vkt_trainer_load(t, weights), VKT_OK);
        assert_int_equal(vkt_store_read(t->store, 0, VKT_PART_MOMENT1, sum), VKT_OK);
        for (size_t k = 0; k < VKT_COUNT(sum); k++) assert_true(sum[k] == starts[i]);
        rig_same(t, good, VKT_PART_MOMENT1);
    }
}

/* A step whose gradients overflow in half precision is skipped. Its loss is finite. */
static void a_skipped_step_is_no_divergence(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.precision = VKT_PRECISION_F16;
    vkt_trainer *t = rig_trainer(r, &p);
    vkt_loss_scale l = { .scale = 0x1p60f };
    assert_int_equal(vkt_store_set_loss_scale(t->store, &l), VKT_OK);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1 });
    assert_int_equal(vkt_store_get_loss_scale(t->store, &l), VKT_OK);
    assert_int_equal(l.skipped, RIG_STEPS);
    assert_int_equal(vkt_trainer_best_epoch(t), 1);
}

/* ---- monitors ---- */

static void a_monitor_that_is_not_measured_is_refused(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.validation = NULL;
    vkt_trainer *t = rig_trainer(r, &p);
    vkt_test_expect_errors(true);
    for (int m = VKT_MONITOR_VAL_ACC; m <= VKT_MONITOR_VAL_LOSS; m++) {
        assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .monitor = (vkt_monitor)m, .patience = 1 }), VKT_E_ARG);
        vkt_test_error_contains("wants a validation set, the trainer has none");
    }
    vkt_test_expect_errors(false);
    assert_int_equal(t->at.t, 0);
    rig_fit(t, &(vkt_fit_params){ .monitor = VKT_MONITOR_TRAIN_ACC });
}

static void another_monitor_after_a_resume_keeps_the_best_epoch(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    first_epoch(r, path); /* the monitor of this run is the accuracy of the validation set */
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_resume(t, path), VKT_OK);
    uint32_t n;
    rig_fit(t, &(vkt_fit_params){ .epochs = 2, .monitor = VKT_MONITOR_VAL_LOSS });
    const vkt_epoch_record *e = vkt_trainer_history(t, &n);
    const uint32_t lower = e[1].val_loss < e[0].val_loss ? 2 : 1; /* the monitor is now val_loss: lower is better */
    assert_int_equal(vkt_trainer_best_epoch(t), lower);
    assert_true(t->at.best == e[lower - 1].val_loss);
}

/* A checkpoint keeps the value of the best epoch (at.best), even if it is infinite or NaN. The last case has no best
 * epoch: at.best is NaN, but the file has -inf. The trainer that resumes must have NaN. */
static void a_checkpoint_keeps_a_best_value_that_is_not_finite(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "c");
    static const double values[] = { -INFINITY, INFINITY, NAN, NAN };
    for (size_t i = 0; i < VKT_COUNT(values); i++) {
        vkt_trainer_params p = rig_params(r);
        vkt_trainer *t = first_epoch(r, path), *again;
        t->at.best = values[i];
        if (i == 3) t->at.best_epoch = 0;
        assert_int_equal(vkt_trainer_checkpoint(t, path), VKT_OK);
        assert_int_equal(vkt_trainer_create(r->ctx, &p, &again), VKT_OK);
        assert_int_equal(vkt_trainer_resume(again, path), VKT_OK);
        assert_int_equal(again->at.best_epoch, t->at.best_epoch);
        assert_true(again->at.best == values[i] || (isnan(values[i]) && isnan(again->at.best)));
        vkt_trainer_destroy(&again);
    }
}

/* No improvement is larger than min_delta, so epoch 1 stays the best, although epoch 2 has the highest accuracy. */
static void a_plot_marks_the_best_epoch_of_the_fit(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "history.svg");
    vkt_trainer *t = first_epoch(r, vkt_temp_dir_file(&r->dir, "c"));
    rig_fit(t, &(vkt_fit_params){ .epochs = 2, .min_delta = 2 });
    assert_int_equal(vkt_trainer_best_epoch(t), 1);
    t->history.records[0].val_acc = 0.5;
    t->history.records[1].val_acc = 1;
    void *text;
    size_t n;
    assert_int_equal(vkt_trainer_plot(t, path), VKT_OK);
    assert_int_equal(vkt_file_read(&r->h, path, 1 << 22, &text, &n), VKT_OK);
    assert_non_null(strstr(text, "best epoch 1:"));
    vkt_free(&r->h, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_run_that_diverges_stops_with_a_status_of_its_own),
        rig_test(what_was_finite_outlives_a_divergence),
        rig_test(an_accuracy_of_nan_is_never_the_best),
        rig_test(a_bad_epoch_is_passed_by_where_that_is_allowed),
        rig_test(after_a_divergence_no_checkpoint_is_owed),
        rig_test(without_the_weights_of_the_last_step_no_checkpoint_is_owed),
        rig_test(a_diverged_trainer_wants_finite_numbers),
        rig_test(an_allowed_divergence_is_found_later),
        rig_test(a_stop_does_not_hide_a_divergence),
        rig_test(a_fit_that_allows_nonfinite_begins_the_epoch_again),
        rig_test(a_loaded_adagrad_starts_as_a_new_one),
        rig_test(a_skipped_step_is_no_divergence),
        rig_test(a_monitor_that_is_not_measured_is_refused),
        rig_test(another_monitor_after_a_resume_keeps_the_best_epoch),
        rig_test(a_checkpoint_keeps_a_best_value_that_is_not_finite),
        rig_test(a_plot_marks_the_best_epoch_of_the_fit),
    };
    return cmocka_run_group_tests_name("trainer diverged", tests, NULL, NULL);
}
