/* Tests a trainer with ema_decay. Evaluation uses the averaged weights. The best weights and the saved weights are
 * averaged weights, too. Training steps use the weights that are not averaged. */
#include "train/rig.h"

enum { EPOCHS = 3 };

static vkt_trainer_params params(const rig *r)
{
    vkt_trainer_params p = rig_params(r);
    p.ema_decay = 0.8;
    p.optimizer.micro_batches = 2; /* seven batches an epoch: epochs 1, 3, .. end in the middle of a step */
    return p;
}

static bool after_ten_steps(void *user)
{
    return ++*(uint32_t *)user == 10;
}

/* Makes a trainer whose fit is stopped in the second epoch. A stopped fit does not restore the best weights: the
 * trainer has the weights of the last step. */
static vkt_trainer *stopped(rig *r, const vkt_trainer_params *p, const char *checkpoint)
{
    uint32_t asked = 0;
    vkt_trainer *t = rig_trainer(r, p);
    rig_fit(t, &(vkt_fit_params){ .epochs = EPOCHS,
                                  .checkpoint = checkpoint,
                                  .callbacks = { .user = &asked, .stop = after_ten_steps } });
    return t;
}

static double loss_of(vkt_trainer *t, const vkt_dataset *d)
{
    double loss;
    assert_int_equal(vkt_trainer_evaluate(t, d, &loss, NULL), VKT_OK);
    return loss;
}

static void the_averaged_weights_are_evaluated_and_saved(void **state)
{
    rig *r = rig_of(state);
    const char *saved = vkt_temp_dir_file(&r->dir, "saved");
    vkt_trainer_params p = params(r), plain = params(r);
    plain.ema_decay = 0;
    vkt_trainer *t = stopped(r, &p, NULL), *values = stopped(r, &plain, NULL), *average = rig_trainer(r, &plain);
    rig_same(t, values, VKT_PART_VALUE); /* averaging does not change the training steps */
    uint64_t n;
    float *published = rig_weights(t, VKT_PART_PUBLISHED, &n);
    assert_int_equal(vkt_trainer_put(average, VKT_PART_VALUE, published), VKT_OK);
    assert_true(loss_of(t, r->check) == loss_of(average, r->check));
    /* r->train is not the validation set. So vkt_trainer_evaluate makes another vkt_program for r->train. This
     * vkt_program must use the averaged weights, too. */
    assert_true(loss_of(t, r->train) == loss_of(average, r->train));
    assert_true(loss_of(t, r->check) != loss_of(values, r->check));
    assert_int_equal(vkt_trainer_save(t, saved), VKT_OK);
    assert_int_equal(vkt_trainer_load(values, saved), VKT_OK);
    rig_same(values, average, VKT_PART_VALUE);
    /* load_matching writes the loaded parameters to both parts, VKT_PART_VALUE and VKT_PART_PUBLISHED. The parameters
     * that do not match the pattern do not change. */
    float *before = rig_weights(t, VKT_PART_VALUE, &n);
    assert_int_equal(vkt_trainer_load_matching(t, saved, "fc.*"), VKT_OK);
    float *after = rig_weights(t, VKT_PART_VALUE, &n), *also = rig_weights(t, VKT_PART_PUBLISHED, &n);
    assert_memory_equal(also, published, n * sizeof *also);
    uint64_t changed = 0;
    for (uint64_t i = 0; i < n; i++) changed += after[i] != before[i];
    assert_true(changed > 0 && changed < n);
    test_free(published);
    test_free(before);
    test_free(after);
    test_free(also);
}

static void the_best_weights_are_averaged_ones(void **state)
{
    rig *r = rig_of(state);
    const vkt_trainer_params p = params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = EPOCHS });
    uint32_t n;
    uint64_t count;
    const vkt_epoch_record *h = vkt_trainer_history(t, &n);
    assert_true(loss_of(t, r->check) == h[t->at.best_epoch - 1].val_loss);
    float *values = rig_weights(t, VKT_PART_VALUE, &count), *published = rig_weights(t, VKT_PART_PUBLISHED, &count);
    /* The fit has written the best weights to VKT_PART_VALUE and to VKT_PART_PUBLISHED. */
    assert_memory_equal(values, published, count * sizeof *values);
    test_free(values);
    test_free(published);
}

static void a_resumed_run_averages_on(void **state)
{
    rig *r = rig_of(state);
    const char *whole = vkt_temp_dir_file(&r->dir, "whole"), *part = vkt_temp_dir_file(&r->dir, "part");
    vkt_trainer_params p = params(r);
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = whole });
    vkt_trainer *first = stopped(r, &p, part), *second = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_resume(second, part), VKT_OK);
    rig_same(first, second, VKT_PART_VALUE);
    rig_same(first, second, VKT_PART_PUBLISHED);
    rig_fit(second, &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = part });
    rig_same_file(whole, part);
    /* A trainer with another decay, or with none, refuses the checkpoint. */
    static const double others[] = { 0, 0.9 };
    for (size_t i = 0; i < VKT_COUNT(others); i++) {
        p.ema_decay = others[i];
        vkt_trainer *other = rig_trainer(r, &p);
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_resume(other, whole), VKT_E_STATE);
        vkt_test_expect_errors(false);
        vkt_test_error_contains("of another run");
    }
}

static void a_profile_leaves_the_average(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = params(r);
    p.profile = true;
    vkt_trainer *t = stopped(r, &p, NULL), *same = stopped(r, &p, NULL);
    assert_int_equal(vkt_trainer_profile(t, vkt_temp_dir_file(&r->dir, "trace")), VKT_OK);
    rig_same(t, same, VKT_PART_PUBLISHED);
    p.ema_decay = 1;
    vkt_trainer *none;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &none), VKT_E_ARG);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("decay in [0,1)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(the_averaged_weights_are_evaluated_and_saved),
        rig_test(the_best_weights_are_averaged_ones),
        rig_test(a_resumed_run_averages_on),
        rig_test(a_profile_leaves_the_average),
    };
    return cmocka_run_group_tests_name("trainer_ema", tests, NULL, NULL);
}
