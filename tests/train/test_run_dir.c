/* Tests vktrain/run_dir.h: the files of a folder, a run that continues in its folder, and files that cannot be written.
 * tests/samples/test_run_dir.c tests signals, locks and the event files. */
#include "train/hands.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "vktrain/run_dir.h"

static vkt_run_dir *open_run(rig *r, const char *name)
{
    vkt_run_dir *d;
    assert_int_equal(vkt_run_dir_open(&r->h, vkt_temp_dir_file(&r->dir, name), "a test", &d), VKT_OK);
    return d;
}

static bool has(const vkt_run_dir *d, vkt_run_file f)
{
    return access(vkt_run_dir_path(d, f), F_OK) == 0;
}

static bool file_says(const rig *r, const vkt_run_dir *d, vkt_run_file f, const char *text)
{
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&r->h, vkt_run_dir_path(d, f), 1 << 20, &bytes, &n), VKT_OK);
    const bool found = strstr(bytes, text) != NULL;
    vkt_free(&r->h, bytes);
    return found;
}

/* Trains up to epoch `epochs` in the folder with a new trainer, and returns the trainer. */
static vkt_trainer *train(rig *r, vkt_run_dir *d, uint32_t epochs)
{
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_run_dir_fit(d, t, &(vkt_fit_params){ .epochs = epochs }, NULL), VKT_OK);
    return t;
}

static void a_fit_leaves_all_files(void **state)
{
    rig *r = rig_of(state);
    vkt_run_dir *d = open_run(r, "runs/first");
    assert_false(vkt_run_dir_resumes(d));
    assert_null(vkt_run_dir_path(d, VKT_RUN_FILE_COUNT));
    vkt_trainer *t = train(r, d, 2);
    for (int f = 0; f < VKT_RUN_FILE_COUNT; f++) assert_true(has(d, (vkt_run_file)f));
    vkt_run_dir_log(d, "a note\n");
    assert_true(file_says(r, d, VKT_RUN_OPTIONS, "\"batch\": 32"));
    assert_true(file_says(r, d, VKT_RUN_RESULTS, "\"best_epoch\""));
    assert_true(file_says(r, d, VKT_RUN_LOG, ": a test\nepoch 1/2  ") && file_says(r, d, VKT_RUN_LOG, "\na note\n"));
    assert_int_equal(vkt_trainer_save(t, vkt_temp_dir_file(&r->dir, "w")), VKT_OK);
    rig_same_file(vkt_run_dir_path(d, VKT_RUN_WEIGHTS), vkt_temp_dir_file(&r->dir, "w"));
    vkt_run_dir_destroy(&d);
    assert_null(d);
}

static void the_same_program_goes_on(void **state)
{
    rig *r = rig_of(state);
    vkt_run_dir *whole = open_run(r, "whole"), *parts = open_run(r, "parts");
    vkt_trainer *a = train(r, whole, 3);
    (void)train(r, parts, 1);
    vkt_run_dir_destroy(&parts);
    parts = open_run(r, "parts");
    assert_true(vkt_run_dir_resumes(parts));
    vkt_trainer *b = train(r, parts, 3);
    rig_same(a, b, VKT_PART_VALUE);
    rig_same_file(vkt_run_dir_path(whole, VKT_RUN_CHECKPOINT), vkt_run_dir_path(parts, VKT_RUN_CHECKPOINT));
    rig_same_file(vkt_run_dir_path(whole, VKT_RUN_WEIGHTS), vkt_run_dir_path(parts, VKT_RUN_WEIGHTS));
    vkt_run_dir_destroy(&whole);
    vkt_run_dir_destroy(&parts);
}

/* vkt_fit_params.checkpoint may name a file outside the folder of the run. The second fit must resume this file. */
static void another_checkpoint_goes_on(void **state)
{
    rig *r = rig_of(state);
    char path[256];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "own.ckpt"));
    vkt_run_dir *whole = open_run(r, "whole"), *parts = open_run(r, "parts");
    vkt_trainer *a = train(r, whole, 3), *b[2];
    for (uint32_t i = 0; i < 2; i++) {
        const vkt_trainer_params p = rig_params(r);
        const vkt_fit_params fit = { .epochs = 1 + 2 * i, .checkpoint = path };
        b[i] = rig_trainer(r, &p);
        assert_false(vkt_run_dir_resumes(parts));
        assert_int_equal(vkt_run_dir_fit(parts, b[i], &fit, NULL), VKT_OK);
        vkt_run_dir_destroy(&parts);
        parts = open_run(r, "parts");
    }
    rig_same(a, b[1], VKT_PART_VALUE);
    vkt_run_dir_destroy(&whole);
    vkt_run_dir_destroy(&parts);
}

static void files_can_be_left_out(void **state)
{
    rig *r = rig_of(state);
    vkt_run_dir *d = open_run(r, "run");
    for (int f = VKT_RUN_WEIGHTS; f <= VKT_RUN_OPTIONS; f++) vkt_run_dir_omit(d, (vkt_run_file)f);
    (void)train(r, d, 1);
    for (int f = VKT_RUN_WEIGHTS; f <= VKT_RUN_OPTIONS; f++) assert_false(has(d, (vkt_run_file)f));
    assert_true(has(d, VKT_RUN_CHECKPOINT) && has(d, VKT_RUN_LOG));
    vkt_run_dir_destroy(&d);
}

/* Callbacks: count_epoch counts epochs, and stop_in_second stops the fit in the second epoch. */
static bool count_epoch(void *user, const vkt_epoch_record *e, bool best)
{
    uint32_t *epochs = user;
    (void)e, (void)best;
    ++*epochs;
    return false;
}
static bool stop_in_second(void *user)
{
    const uint32_t *epochs = user;
    return *epochs == 1;
}

static void a_stopped_fit_keeps_the_best_weights(void **state)
{
    rig *r = rig_of(state);
    vkt_run_dir *d = open_run(r, "run"), *one = open_run(r, "one");
    const vkt_trainer_params p = rig_params(r);
    uint32_t epochs = 0;
    const vkt_fit_params f = { .epochs = 3,
                               .callbacks = { .user = &epochs, .on_epoch = count_epoch, .stop = stop_in_second } };
    assert_int_equal(vkt_run_dir_fit(d, rig_trainer(r, &p), &f, "{}"), VKT_OK);
    assert_int_equal(epochs, 1);
    (void)train(r, one, 1);
    rig_same_file(vkt_run_dir_path(d, VKT_RUN_WEIGHTS), vkt_run_dir_path(one, VKT_RUN_WEIGHTS));
    assert_true(file_says(r, d, VKT_RUN_OPTIONS, "{}"));
    vkt_run_dir_destroy(&d);
    vkt_run_dir_destroy(&one);
}

/* Trains two ranks in the folder of rank 0. If `stops`, the callback of rank 1 ends the fit in its second epoch. */
static void train_two(rig *r, vkt_run_dir *d, uint32_t epochs, bool stops)
{
    hands h = hands_make(r, 2, 0);
    uint32_t done = 0;
    vkt_fit_params f = { .epochs = epochs, .checkpoint = vkt_run_dir_path(d, VKT_RUN_CHECKPOINT) };
    hands_train(&h, 0, group_params(r), &f);
    if (stops) f.callbacks = (vkt_fit_callbacks){ .user = &done, .on_epoch = count_epoch, .stop = stop_in_second };
    hands_train(&h, 1, group_params(r), &f);
    h.rank[0].dir = d;
    hands_fit(&h);
    for (int i = 0; i < 2; i++) assert_int_equal(h.rank[i].result, VKT_OK);
    assert_int_equal(done, stops);
    hands_free(&h);
}

/* A `stop` of another rank ends the fit, too. */
static void another_ranks_stop_keeps_the_best_weights(void **state)
{
    rig *r = rig_of(state);
    vkt_run_dir *d = open_run(r, "run"), *one = open_run(r, "one");
    train_two(r, d, 3, true);
    train_two(r, one, 1, false);
    rig_same_file(vkt_run_dir_path(d, VKT_RUN_WEIGHTS), vkt_run_dir_path(one, VKT_RUN_WEIGHTS));
    vkt_run_dir_destroy(&d);
    vkt_run_dir_destroy(&one);
}

static bool stop_at_once(void *user)
{
    (void)user;
    return true;
}

/* A run that continues the checkpoint of another folder and is stopped before an epoch is better. Its folder must still
 * get the weights of the best epoch. */
static void a_new_folder_gets_the_best_weights_of_its_checkpoint(void **state)
{
    rig *r = rig_of(state);
    vkt_run_dir *one = open_run(r, "one"), *d = open_run(r, "run");
    const vkt_trainer_params p = rig_params(r);
    (void)train(r, one, 1);
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_resume(t, vkt_run_dir_path(one, VKT_RUN_CHECKPOINT)), VKT_OK);
    const vkt_fit_params f = { .epochs = 3, .callbacks = { .stop = stop_at_once } };
    assert_int_equal(vkt_run_dir_fit(d, t, &f, "{}"), VKT_OK);
    assert_int_equal(vkt_trainer_best_epoch(t), 1);
    assert_true(vkt_trainer_position(t).batch > 0);
    rig_same_file(vkt_run_dir_path(d, VKT_RUN_WEIGHTS), vkt_run_dir_path(one, VKT_RUN_WEIGHTS));
    vkt_run_dir_destroy(&d);
    vkt_run_dir_destroy(&one);
}

static void what_cannot_be_written_is_reported(void **state)
{
    rig *r = rig_of(state);
    vkt_run_dir *d = open_run(r, "run"), *second;
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_run_dir_open(&r->h, "", NULL, &second), VKT_E_ARG);
    assert_int_equal(vkt_run_dir_open(&r->h, vkt_run_dir_path(d, VKT_RUN_LOG), NULL, &second), VKT_E_IO);
    vkt_test_error_contains("log.txt cannot be made: Not a directory");
    assert_null(second);
    assert_int_equal(mkdir(vkt_run_dir_path(d, VKT_RUN_HISTORY), 0777), 0);
    assert_int_equal(vkt_run_dir_fit(d, t, NULL, NULL), VKT_E_CHECKPOINT);
    vkt_test_error_contains("history.csv");
    assert_int_equal(vkt_trainer_best_epoch(t), 1);
    assert_true(has(d, VKT_RUN_WEIGHTS) && has(d, VKT_RUN_PLOT));
    vkt_test_expect_errors(false);
    vkt_run_dir_destroy(&d);
}

/* A fit that is refused before its first step must write no results, weights, history or plot. */
static void a_fit_that_fails_at_once_writes_no_results(void **state)
{
    rig *r = rig_of(state);
    vkt_run_dir *d = open_run(r, "run");
    vkt_trainer *t = train(r, d, 1);
    static const vkt_run_file files[] = { VKT_RUN_RESULTS, VKT_RUN_WEIGHTS, VKT_RUN_HISTORY, VKT_RUN_PLOT };
    for (size_t i = 0; i < VKT_COUNT(files); i++) assert_int_equal(remove(vkt_run_dir_path(d, files[i])), 0);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_run_dir_fit(d, t, &(vkt_fit_params){ .epochs = 2, .monitor = VKT_MONITOR_METRIC }, NULL),
                     VKT_E_ARG);
    vkt_test_expect_errors(false);
    for (size_t i = 0; i < VKT_COUNT(files); i++) assert_false(has(d, files[i]));
    vkt_run_dir_destroy(&d);
}

static void no_memory_is_an_error(void **state)
{
    rig *r = rig_of(state);
    vkt_test_expect_errors(true);
    for (unsigned n = 1, failed = 1; failed; n++) {
        vkt_run_dir *d = NULL;
        vkt_test_fail_allocation(n);
        const vkt_result status = vkt_run_dir_open(&r->h, vkt_temp_dir_file(&r->dir, "run"), NULL, &d);
        failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(status, failed ? VKT_E_NOMEM : VKT_OK);
        assert_true((d == NULL) == failed);
        vkt_run_dir_destroy(&d);
    }
    vkt_test_expect_errors(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_fit_leaves_all_files),
        rig_test(the_same_program_goes_on),
        rig_test(another_checkpoint_goes_on),
        rig_test(files_can_be_left_out),
        rig_test(a_stopped_fit_keeps_the_best_weights),
        rig_test(another_ranks_stop_keeps_the_best_weights),
        rig_test(a_new_folder_gets_the_best_weights_of_its_checkpoint),
        rig_test(what_cannot_be_written_is_reported),
        rig_test(a_fit_that_fails_at_once_writes_no_results),
        rig_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("a run's folder", tests, NULL, NULL);
}
