/* Tests fit, evaluate and predict on a small network. (test_trainer_state.c tests save, load and resume.) */
#include "train/rig.h"

#include <math.h>
#include <stdio.h>

#include "gpu/gpu.h"

/* ---- sources of batches ---- */

static void streamed_and_resident_data_give_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *resident = rig_trainer(r, &p);
    p.stream = true;
    p.workers = 3;
    vkt_trainer *streamed = rig_trainer(r, &p);
    assert_false(vkt_trainer_streams(resident));
    assert_true(vkt_trainer_streams(streamed));
    rig_same(resident, streamed, VKT_PART_VALUE); /* the same initial weights */
    rig_fit(resident, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(streamed, &(vkt_fit_params){ .epochs = 2 });
    for (int part = VKT_PART_VALUE; part <= VKT_PART_MOMENT2; part++)
        rig_same(resident, streamed, (vkt_store_part)part);
    uint32_t n, m;
    const vkt_epoch_record *a = vkt_trainer_history(resident, &n), *b = vkt_trainer_history(streamed, &m);
    assert_true(n == 2 && m == 2);
    for (uint32_t i = 0; i < n; i++)
        assert_true(a[i].train_loss == b[i].train_loss && a[i].val_loss == b[i].val_loss &&
                    a[i].val_acc == b[i].val_acc);
}

/* A data set is streamed (it stays on the host, and each step gets its batch from there) even without
 * vkt_trainer_params.stream, if it is larger than half of the memory that is free below max_device_bytes. */
static void data_that_does_not_fit_is_streamed(void **state)
{
    rig *r = rig_of(state);
    const vkt_host h = r->h;
    vkt_dataset *large = rig_data(&h, 0, 60000);
    vkt_ctx *small;
    assert_int_equal(vkt_ctx_create(&(vkt_ctx_params){ .max_device_bytes = 14u << 20 }, &h, &small), VKT_OK);
    vkt_trainer_params p = rig_params(r);
    p.train = large;
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(small, &p, &t), VKT_OK);
    assert_true(vkt_trainer_streams(t));
    vkt_memory_stats m;
    vkt_ctx_memory(small, &m);
    assert_true(m.reserved_peak_bytes <= 14u << 20);
    vkt_trainer_destroy(&t);
    vkt_ctx_destroy(&small);
    vkt_dataset_destroy(&large);
}

/* Samples that change in each epoch are streamed. Any number of workers gives the same result. An evaluation reads the
 * samples without their changes. */
static void rows_that_vary_do_so_by_seed_and_epoch_alone(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *varying = rig_varying(r);
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *plain = rig_trainer(r, &p);
    p.train = varying;
    p.workers = 1;
    vkt_trainer *one = rig_trainer(r, &p);
    p.workers = 5;
    vkt_trainer *five = rig_trainer(r, &p);
    assert_true(vkt_trainer_streams(one) && !vkt_trainer_streams(plain));
    assert_true(isnan(vkt_trainer_data_wait_us_per_step(one)));
    double a, b;
    assert_int_equal(vkt_trainer_evaluate(plain, r->train, &a, NULL), VKT_OK);
    assert_int_equal(vkt_trainer_evaluate(one, varying, &b, NULL), VKT_OK);
    assert_true(a == b); /* samples of an evaluation do not vary */
    rig_fit(plain, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(one, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(five, &(vkt_fit_params){ .epochs = 2 });
    rig_same(one, five, VKT_PART_VALUE);
    rig_same(one, five, VKT_PART_MOMENT2);
    uint32_t n;
    assert_true(vkt_trainer_history(plain, &n)[0].train_loss != vkt_trainer_history(one, &n)[0].train_loss);
    assert_true(vkt_trainer_data_wait_us_per_step(one) >= 0 && vkt_trainer_data_wait_us_per_step(plain) == 0);
    for (size_t i = 0; i < VKT_COUNT(r->trainers); i++) vkt_trainer_destroy(&r->trainers[i]);
    vkt_dataset_destroy(&varying);
}

/* Builds a network without dropout. */
static vkt_tensor forward_plain(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_flatten(b, x);
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

/* The mean over an epoch weighs each batch by its number of samples. The last batch has 8. The learning rate is too
 * small to change a weight, and there is no shuffle and no dropout. So training must measure the same as an evaluation.
 */
static void a_partial_last_batch_counts_its_real_rows(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.model.forward = forward_plain;
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD };
    p.lr = 1e-30f;
    p.no_shuffle = true;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, NULL);
    uint32_t n;
    const vkt_epoch_record *h = vkt_trainer_history(t, &n);
    double loss, accuracy;
    assert_int_equal(vkt_trainer_evaluate(t, r->train, &loss, &accuracy), VKT_OK);
    assert_true(h[0].train_acc == accuracy);
    assert_true(fabs(h[0].train_loss - loss) < 1e-6 * loss);

    float *z = test_malloc(RIG_ROWS * RIG_CLASSES * sizeof *z); /* loss and accuracy follow from the logits */
    uint32_t *classes = test_malloc(RIG_ROWS * sizeof *classes), right = 0;
    assert_int_equal(vkt_trainer_predict(t, r->train, 0, RIG_ROWS, classes, z), VKT_OK);
    double mean = 0;
    for (uint32_t i = 0; i < RIG_ROWS; i++) {
        const uint32_t label = vkt_dataset_labels(r->train)[i];
        double sum = 0;
        for (uint32_t k = 0; k < RIG_CLASSES; k++) sum += exp((double)z[i * RIG_CLASSES + k]);
        mean += (log(sum) - (double)z[i * RIG_CLASSES + label]) / RIG_ROWS;
        right += classes[i] == label;
    }
    assert_true(fabs(mean - loss) < 1e-5 * loss);
    assert_true((double)right / RIG_ROWS == accuracy);
    test_free(z);
    test_free(classes);
}

/* Without shuffle the samples keep their order. With shuffle most samples are at another position. */
static void shuffling_can_be_switched_off(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *shuffled = rig_trainer(r, &p);
    p.no_shuffle = true;
    vkt_trainer *plain = rig_trainer(r, &p);
    rig_fit(shuffled, NULL);
    rig_fit(plain, NULL);
    uint32_t in_place = 0;
    for (uint32_t i = 0; i < RIG_ROWS; i++) {
        assert_int_equal(plain->feed.host_order[i], i);
        in_place += shuffled->feed.host_order[i] == i;
    }
    assert_true(in_place < RIG_ROWS / 4);
}

/* ---- evaluation ---- */

static void predictions_agree_with_evaluation_and_with_each_other(void **state)
{
    rig *r = rig_of(state);
    for (int stream = 0; stream < 2; stream++) {
        vkt_trainer_params p = rig_params(r);
        p.stream = stream;
        vkt_trainer *t = rig_trainer(r, &p);
        rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
        double accuracy;
        uint32_t all[RIG_CHECK_ROWS], some[40], right = 0;
        float z[RIG_CHECK_ROWS * RIG_CLASSES];
        assert_int_equal(vkt_trainer_evaluate(t, r->check, NULL, &accuracy), VKT_OK);
        assert_int_equal(vkt_trainer_predict(t, r->check, 0, RIG_CHECK_ROWS, all, z), VKT_OK);
        for (uint32_t i = 0; i < RIG_CHECK_ROWS; i++) {
            uint32_t best = 0;
            for (uint32_t k = 1; k < RIG_CLASSES; k++)
                if (z[i * RIG_CLASSES + k] > z[i * RIG_CLASSES + best]) best = k;
            assert_int_equal(all[i], best);
            right += best == vkt_dataset_labels(r->check)[i];
        }
        assert_true((double)right / RIG_CHECK_ROWS == accuracy);
        assert_int_equal(vkt_trainer_predict(t, r->check, 31, 40, some, NULL), VKT_OK); /* across the edge of a batch */
        assert_memory_equal(some, all + 31, sizeof some);
        assert_int_equal(vkt_trainer_predict(t, r->check, 5, 1, some, NULL), VKT_OK);
        assert_int_equal(some[0], all[5]);
        rig_fit(t, &(vkt_fit_params){ .epochs = 3 }); /* training still works after predictions */
    }
}

static void rows_without_labels_can_be_predicted_but_not_evaluated(void **state)
{
    rig *r = rig_of(state);
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    const vkt_dataset_params bare = { .rows = RIG_CHECK_ROWS,
                                      .height = RIG_SIDE,
                                      .width = RIG_SIDE,
                                      .mean = vkt_dataset_mean(r->check),
                                      .std = vkt_dataset_std(r->check) };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &bare, vkt_dataset_features(r->check), &d), VKT_OK);
    uint32_t a[RIG_CHECK_ROWS], b[RIG_CHECK_ROWS];
    assert_int_equal(vkt_trainer_predict(t, d, 0, RIG_CHECK_ROWS, a, NULL), VKT_OK);
    assert_int_equal(vkt_trainer_predict(t, r->check, 0, RIG_CHECK_ROWS, b, NULL), VKT_OK);
    assert_memory_equal(a, b, sizeof a);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_evaluate(t, d, NULL, NULL), VKT_E_ARG);
    vkt_test_error_contains("has no labels");
    assert_int_equal(vkt_trainer_predict(t, d, RIG_CHECK_ROWS - 1, 2, a, NULL), VKT_E_ARG);
    vkt_test_error_contains("rows within 72");
    vkt_test_expect_errors(false);
    vkt_dataset_destroy(&d);
}

/* ---- early stopping, history ---- */

/* Makes a validation set whose labels contradict the training set. So the validation accuracy falls while the network
 * learns. */
static vkt_dataset *mislabelled(const rig *r)
{
    uint32_t labels[RIG_CHECK_ROWS];
    for (uint32_t i = 0; i < RIG_CHECK_ROWS; i++) labels[i] = (vkt_dataset_labels(r->check)[i] + 1) % RIG_CLASSES;
    const vkt_dataset_params p = { .rows = RIG_CHECK_ROWS,
                                   .height = RIG_SIDE,
                                   .width = RIG_SIDE,
                                   .labels = labels,
                                   .classes = RIG_CLASSES,
                                   .mean = vkt_dataset_mean(r->check),
                                   .std = vkt_dataset_std(r->check) };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &p, vkt_dataset_features(r->check), &d), VKT_OK);
    return d;
}

static void early_stopping_restores_the_best_epoch(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *wrong = mislabelled(r);
    vkt_trainer_params p = rig_params(r);
    p.validation = wrong;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 30, .patience = 2 });
    uint32_t n;
    const vkt_epoch_record *h = vkt_trainer_history(t, &n);
    assert_in_range(n, 3, 29);
    uint32_t best = 0;
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(h[i].epoch, i + 1);
        if (h[i].val_acc > h[best].val_acc) best = i; /* of equal epochs, the first one is the best */
    }
    assert_int_equal(n, best + 1 + 2); /* two epochs in a row did not improve */
    assert_true(vkt_trainer_best_accuracy(t) == h[best].val_acc);
    double loss, accuracy;
    assert_int_equal(vkt_trainer_evaluate(t, wrong, &loss, &accuracy), VKT_OK);
    assert_true(accuracy == h[best].val_acc && loss == h[best].val_loss);
    rig_fit(t, &(vkt_fit_params){ .epochs = 30 }); /* the run has stopped, so this has no effect */
    vkt_trainer_history(t, &n);
    assert_int_equal(n, best + 3);
    vkt_dataset_destroy(&wrong);
}

static void the_network_learns_and_without_validation_the_training_loss_decides(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.validation = NULL;
    p.lr = 0.03f;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 8 });
    uint32_t n;
    const vkt_epoch_record *h = vkt_trainer_history(t, &n);
    assert_int_equal(n, 8);
    assert_true(isnan(h[7].val_loss) && isnan(h[7].val_acc) && isnan(vkt_trainer_best_accuracy(t)));
    assert_true(h[7].train_loss < 0.2 * h[0].train_loss);
    double accuracy;
    assert_int_equal(vkt_trainer_evaluate(t, r->check, NULL, &accuracy), VKT_OK);
    assert_true(accuracy > 0.8);
}

/* ---- callbacks ---- */

typedef struct watch {
    uint32_t batches, checks, epochs, stop_after;
} watch;

static void count_batch(void *user, const vkt_fit_progress *p)
{
    watch *w = user;
    uint32_t *n = p->validating ? &w->checks : &w->batches;
    *n += 1;
    assert_int_equal(p->batch, (*n - 1) % p->batches + 1);
    assert_int_equal(p->batches, p->validating ? 3 : RIG_STEPS);
    assert_true(p->accuracy >= 0 && p->accuracy <= 1 && p->loss > 0);
}

static bool count_epoch(void *user, const vkt_epoch_record *record, bool best)
{
    watch *w = user;
    w->epochs++;
    assert_int_equal(record->epoch, w->epochs);
    assert_true(best || record->epoch > 1);
    return w->epochs == w->stop_after;
}

static void callbacks_hear_of_every_batch_and_can_stop(void **state)
{
    rig *r = rig_of(state);
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    watch w = { .stop_after = 2 };
    assert_true(isnan(vkt_trainer_host_us_per_step(t)));
    rig_fit(t, &(vkt_fit_params){ .epochs = 9,
                                  .callbacks = { .user = &w, .on_batch = count_batch, .on_epoch = count_epoch } });
    assert_int_equal(w.epochs, 2);
    assert_int_equal(w.batches, 2 * RIG_STEPS);
    assert_int_equal(w.checks, 2 * 3);
    assert_true(vkt_trainer_ms_per_step(t) > 0);
    assert_true(vkt_trainer_host_us_per_step(t) > 0);
    assert_true(vkt_trainer_host_us_per_step(t) <=
                1000 * vkt_trainer_ms_per_step(t)); /* the host's time is a part of the wall time */
    assert_true(vkt_trainer_first_step_ns(t) > 0);
}

static bool stop_at_five(void *user)
{
    return ++*(uint32_t *)user == 5;
}

static void a_fit_stopped_between_steps_goes_on_bit_for_bit(void **state)
{
    rig *r = rig_of(state);
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p), *whole = rig_trainer(r, &p);
    uint32_t asked = 0;
    rig_fit(t, &(vkt_fit_params){ .epochs = 2, .callbacks = { .user = &asked, .stop = stop_at_five } });
    assert_int_equal(t->at.t, 5);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(whole, &(vkt_fit_params){ .epochs = 2 });
    rig_same(t, whole, VKT_PART_VALUE);
}

/* ---- the steady state ---- */

static void a_step_allocates_and_records_nothing(void **state)
{
    rig *r = rig_of(state);
    for (int stream = 0; stream < 2; stream++) {
        vkt_trainer_params p = rig_params(r);
        p.stream = stream;
        vkt_trainer *t = rig_trainer(r, &p);
        rig_steady s = { .ctx = r->ctx };
        rig_fit(t, &(vkt_fit_params){ .epochs = 2, .callbacks = { .user = &s, .on_batch = rig_count_steady } });
        assert_int_equal(s.batches, RIG_STEPS);
        /* rig_count_steady counts over three steps, and each step makes one submission. This number shows that the
         * counters work. */
        assert_int_equal(s.to.submits - s.from.submits, 3);
        assert_int_equal(s.to.host_allocs, s.from.host_allocs);
        assert_int_equal(s.host_to, s.host_from);
        assert_int_equal(s.to.device_allocs, s.from.device_allocs);
        assert_int_equal(s.to.buffers_created, s.from.buffers_created);
        assert_int_equal(s.to.recordings, s.from.recordings);
    }
}

/* ---- refusals ---- */

static void refuse(const rig *r, vkt_trainer_params p, vkt_result want, const char *says)
{
    vkt_trainer *t = (vkt_trainer *)(void *)&p;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), want);
    vkt_test_expect_errors(false);
    assert_null(t);
    vkt_test_error_contains(says);
}

static vkt_tensor forward_three(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_flatten(b, x);
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = 3 });
}

static vkt_tensor forward_too_deep(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 8, .kernel = { RIG_SIDE + 1 } });
}

static void what_makes_no_sense_is_refused(void **state)
{
    rig *r = rig_of(state);
    const vkt_trainer_params good = rig_params(r);
    vkt_trainer_params p = good;
    p.model.forward = NULL;
    refuse(r, p, VKT_E_ARG, "model.forward");
    p = good;
    p.train = NULL;
    refuse(r, p, VKT_E_ARG, "training set");
    p = good;
    p.lr = -1;
    refuse(r, p, VKT_E_ARG, "lr");
    p = good;
    p.lr = NAN;
    refuse(r, p, VKT_E_ARG, "lr");
    p = good;
    p.model.forward = forward_three;
    refuse(r, p, VKT_E_SHAPE, "gives (32,3)");
    p = good;
    p.model.forward = forward_too_deep;
    refuse(r, p, VKT_E_SHAPE, "conv2d");
    p = good;
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD, .nesterov = true };
    refuse(r, p, VKT_E_ARG, "esterov");
    vkt_dataset *other;
    const unsigned char pixels[16] = { 0 };
    const uint32_t label = 0;
    const vkt_dataset_params tiny = { .rows = 1, .height = 4, .width = 4, .labels = &label };
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &tiny, pixels, &other), VKT_OK);
    p = good;
    p.validation = other;
    refuse(r, p, VKT_E_SHAPE, "(1,12,12)");
    vkt_dataset_destroy(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(streamed_and_resident_data_give_the_same_bits),
        rig_test(data_that_does_not_fit_is_streamed),
        rig_test(rows_that_vary_do_so_by_seed_and_epoch_alone),
        rig_test(a_partial_last_batch_counts_its_real_rows),
        rig_test(shuffling_can_be_switched_off),
        rig_test(predictions_agree_with_evaluation_and_with_each_other),
        rig_test(rows_without_labels_can_be_predicted_but_not_evaluated),
        rig_test(early_stopping_restores_the_best_epoch),
        rig_test(the_network_learns_and_without_validation_the_training_loss_decides),
        rig_test(callbacks_hear_of_every_batch_and_can_stop),
        rig_test(a_fit_stopped_between_steps_goes_on_bit_for_bit),
        rig_test(a_step_allocates_and_records_nothing),
        rig_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests_name("trainer", tests, NULL, NULL);
}
