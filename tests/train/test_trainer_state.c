/* Tests checkpoints and weight files: bit-identical runs, resumes (also after a kill), failed writes, bad files,
 * attached texts, and weights that are loaded by name. Also tests a source that fails once, and a forked child that
 * destroys a trainer.
 *
 * One test kills runs. Each of these runs is a new process of this program: `train_test_trainer_state worker CHECKPOINT
 * [resume]`. */
#include "train/rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "io/checkpoint.h"

enum { EPOCHS = 3, EVERY = 3, WORKER_EPOCHS = 12 };

static void run_to(rig *r, uint32_t epochs, uint64_t every, const char *checkpoint)
{
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = epochs, .checkpoint = checkpoint, .checkpoint_every = every });
}

static void two_runs_of_one_seed_end_in_the_same_bytes(void **state)
{
    rig *r = rig_of(state);
    const char *a = vkt_temp_dir_file(&r->dir, "a"), *b = vkt_temp_dir_file(&r->dir, "b");
    run_to(r, EPOCHS, 0, a);
    run_to(r, EPOCHS, 2, b); /* another number of checkpoints gives the same bytes */
    rig_same_file(a, b);

    vkt_trainer_params p = rig_params(r);
    p.seed++;
    const char *c = vkt_temp_dir_file(&r->dir, "c");
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = c });
    void *x, *y;
    size_t n, m;
    assert_int_equal(vkt_file_read(&r->h, a, 1u << 30, &x, &n), VKT_OK);
    assert_int_equal(vkt_file_read(&r->h, c, 1u << 30, &y, &m), VKT_OK);
    assert_true(n != m || memcmp(x, y, n) != 0); /* another seed gives other bytes */
    vkt_free(&r->h, x);
    vkt_free(&r->h, y);
}

/* ---- resuming ---- */

static bool after_ten_steps(void *user)
{
    return ++*(uint32_t *)user == 10;
}

static void a_resumed_run_ends_like_one_that_never_stopped(void **state)
{
    rig *r = rig_of(state);
    const char *whole = vkt_temp_dir_file(&r->dir, "whole"), *part = vkt_temp_dir_file(&r->dir, "part");
    run_to(r, EPOCHS, 0, whole);
    /* If `middle` is 0, `first` ends after one epoch. If `middle` is 1, `first` and `second` stream their data, and
     * `first` stops in the second epoch. */
    for (int middle = 0; middle < 2; middle++) {
        vkt_trainer_params p = rig_params(r);
        p.stream = middle;
        vkt_trainer *first = rig_trainer(r, &p);
        uint32_t asked = 0;
        const vkt_fit_callbacks stop = { .user = &asked, .stop = after_ten_steps };
        rig_fit(first, &(vkt_fit_params){ .epochs = 1 + (uint32_t)middle,
                                          .checkpoint = part,
                                          .callbacks = middle ? stop : (vkt_fit_callbacks){ 0 } });
        assert_int_equal(first->at.t, middle ? 10 : RIG_STEPS);
        p.seed = 99; /* has no effect: the seed in the file is used */
        vkt_trainer *second = rig_trainer(r, &p);
        assert_int_equal(vkt_trainer_resume(second, part), VKT_OK);
        uint32_t n;
        assert_true(vkt_trainer_history(second, &n)[0].train_loss == vkt_trainer_history(first, &n)[0].train_loss);
        rig_fit(second, &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = part, .checkpoint_every = EVERY });
        vkt_trainer_history(second, &n);
        assert_int_equal(n, EPOCHS);
        rig_same_file(whole, part);
    }
}

static void rows_that_vary_are_the_same_after_a_resume(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *varying = rig_varying(r);
    const char *whole = vkt_temp_dir_file(&r->dir, "whole"), *part = vkt_temp_dir_file(&r->dir, "part");
    vkt_trainer_params p = rig_params(r);
    p.train = varying;
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = whole });
    uint32_t asked = 0;
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .epochs = EPOCHS,
                                                   .checkpoint = part,
                                                   .callbacks = { .user = &asked, .stop = after_ten_steps } });
    p.seed = 99;
    p.workers = 5;
    vkt_trainer *second = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_resume(second, part), VKT_OK);
    rig_fit(second, &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = part });
    rig_same_file(whole, part);
    for (size_t i = 0; i < VKT_COUNT(r->trainers); i++) vkt_trainer_destroy(&r->trainers[i]);
    vkt_dataset_destroy(&varying);
}

/* ---- kill -9 ---- */

static int worker(const char *checkpoint, bool resume)
{
    rig r = { .h = vkt_test_host() };
    if (!rig_open(&r.h, &r.ctx)) return 1;
    r.train = rig_data(&r.h, 0, RIG_ROWS);
    r.check = rig_data(&r.h, RIG_ROWS, RIG_CHECK_ROWS);
    const vkt_trainer_params p = rig_params(&r);
    vkt_trainer *t = NULL;
    vkt_result status = vkt_trainer_create(r.ctx, &p, &t);
    if (status == VKT_OK && resume) status = vkt_trainer_resume(t, checkpoint);
    if (status == VKT_OK)
        status = vkt_trainer_fit(
            t, &(vkt_fit_params){ .epochs = WORKER_EPOCHS, .checkpoint = checkpoint, .checkpoint_every = 1 });
    vkt_trainer_destroy(&t);
    vkt_dataset_destroy(&r.train);
    vkt_dataset_destroy(&r.check);
    vkt_ctx_destroy(&r.ctx);
    return status == VKT_OK ? 0 : 1;
}

static pid_t start_worker(const char *checkpoint, bool resume)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    execl("/proc/self/exe", "worker", "worker", checkpoint, resume ? "resume" : NULL, (char *)NULL);
    _exit(127);
}

static ino_t inode_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? s.st_ino : 0;
}

static void nap(uint32_t us)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)us * 1000 }, NULL);
}

/* Waits until the worker has replaced its checkpoint two to nine times, then kills the worker at a random time, up to
 * 6 ms later. Returns false if the worker ended before the kill. */
static bool kill_amid_work(pid_t child, const char *checkpoint, vkt_rng *rng)
{
    int status = 0;
    ino_t last = inode_of(checkpoint);
    for (uint32_t renewals = vkt_rng_range(rng, 2, 9); renewals > 0;) {
        if (waitpid(child, &status, WNOHANG) == child) return false;
        const ino_t now = inode_of(checkpoint);
        if (now != last) renewals--;
        last = now;
        nap(100);
    }
    nap(vkt_rng_range(rng, 0, 6000));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

static void a_run_killed_again_and_again_ends_in_the_same_bytes(void **state)
{
    rig *r = rig_of(state);
    const char *whole = vkt_temp_dir_file(&r->dir, "whole"), *part = vkt_temp_dir_file(&r->dir, "part");
    run_to(r, WORKER_EPOCHS, 0, whole);
    vkt_rng rng = vkt_rng_make((uint64_t)getpid(), VKT_STREAM_TEST, 0, 0); /* each run of this test has another seed */
    int killed = 0, status;
    /* If a worker ends before the kill, it has finished its run, and the next worker starts a new run. Three kills in a
     * row are enough. From round 20 on, one kill is enough. */
    for (int round = 0; killed < 3 && round < (killed ? 20 : 200); round++)
        killed = kill_amid_work(start_worker(part, killed > 0), part, &rng) ? killed + 1 : 0;
    assert_true(killed > 0);
    const pid_t last = start_worker(part, true);
    assert_int_equal(waitpid(last, &status, 0), last);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rig_same_file(whole, part);
    assert_int_equal(vkt_temp_dir_count(&r->dir), 2); /* no temporary file is left */
}

/* ---- bad files ---- */

static void refuse_resume(vkt_trainer *t, const char *path, vkt_result want, const char *says)
{
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_resume(t, path), want);
    vkt_test_expect_errors(false);
    vkt_test_error_contains(says);
}

static void a_wrong_file_is_refused_and_changes_nothing(void **state)
{
    rig *r = rig_of(state);
    const char *good = vkt_temp_dir_file(&r->dir, "good"), *bad = vkt_temp_dir_file(&r->dir, "bad");
    run_to(r, 1, 0, good);
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p), *untouched = rig_trainer(r, &p);

    unsigned char *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&r->h, good, 1u << 30, (void **)&bytes, &n), VKT_OK);
    refuse_resume(t, bad, VKT_E_NOT_FOUND, "bad");
    assert_int_equal(vkt_file_write(&r->h, bad, bytes, n - 1), VKT_OK);
    refuse_resume(t, bad, VKT_E_FORMAT, "truncated");
    bytes[n / 2] ^= 1;
    assert_int_equal(vkt_file_write(&r->h, bad, bytes, n), VKT_OK);
    refuse_resume(t, bad, VKT_E_FORMAT, "damaged");
    vkt_free(&r->h, bytes);
    assert_int_equal(vkt_trainer_save(t, bad), VKT_OK);
    refuse_resume(t, bad, VKT_E_FORMAT, "not a vktrain checkpoint");
    p.batch = 16;
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .checkpoint = bad });
    refuse_resume(t, bad, VKT_E_STATE, "batch: checkpoint 16, this run 32");

    assert_int_equal(t->at.t, 0);
    for (int part = VKT_PART_VALUE; part <= VKT_PART_MOMENT2; part++) rig_same(t, untouched, (vkt_store_part)part);
    assert_int_equal(vkt_trainer_resume(t, good), VKT_OK);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(untouched, &(vkt_fit_params){ .epochs = 2 });
    rig_same(t, untouched, VKT_PART_VALUE);
}

/* First simulates a full disk by a limit of the file size. Then writes to a folder that does not exist. */
static void a_failed_write_keeps_the_old_checkpoint_and_the_run_goes_on(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "a"), *copy = vkt_temp_dir_file(&r->dir, "copy");
    run_to(r, 1, 0, path);
    run_to(r, 1, 0, copy);
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    struct rlimit all, little;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    little = (struct rlimit){ .rlim_cur = 4096, .rlim_max = all.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    vkt_test_expect_errors(true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    const vkt_result full = vkt_trainer_fit(t, &(vkt_fit_params){ .checkpoint = path, .checkpoint_every = 2 });
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    assert_int_equal(full, VKT_E_CHECKPOINT);
    vkt_test_error_contains(path);
    assert_int_equal(t->at.t, RIG_STEPS); /* all steps were made */
    rig_same_file(path, copy);
    char nowhere[300];
    snprintf(nowhere, sizeof nowhere, "%s/none/a", r->dir.path);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .checkpoint = nowhere }), VKT_E_CHECKPOINT);
    vkt_test_error_contains(nowhere);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_temp_dir_count(&r->dir), 2);
    assert_int_equal(remove(path), 0);
    /* The disk has space again. No step is left to train, but the fit writes the missing checkpoint. */
    rig_fit(t, &(vkt_fit_params){ .checkpoint = path });
    rig_same_file(path, copy);
}

/* Removes the limit for the file size after four batches, as if the disk had space again. */
static void make_room(void *user, const vkt_fit_progress *p)
{
    if (p->batch == 4 && !p->validating) assert_int_equal(setrlimit(RLIMIT_FSIZE, user), 0);
}

static void the_checkpoint_after_a_failed_one_is_tried_again(void **state)
{
    rig *r = rig_of(state);
    const char *whole = vkt_temp_dir_file(&r->dir, "whole"), *path = vkt_temp_dir_file(&r->dir, "c");
    run_to(r, 2, 0, whole);
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    struct rlimit all;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    const struct rlimit little = { .rlim_cur = 4096, .rlim_max = all.rlim_max };
    const vkt_fit_params full = {
        .epochs = 2, .checkpoint = path, .checkpoint_every = 1, .callbacks = { .user = &all, .on_batch = make_room }
    };
    signal(SIGXFSZ, SIG_IGN);
    vkt_test_expect_errors(true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    const vkt_result result = vkt_trainer_fit(t, &full);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    vkt_test_expect_errors(false);
    assert_int_equal(result, VKT_E_CHECKPOINT); /* the checkpoints before batch 4 were not written */
    rig_same_file(path, whole);                 /* the last checkpoint is complete */
    assert_int_equal(vkt_temp_dir_count(&r->dir), 2);
}

static bool count_epoch(void *user, const vkt_epoch_record *record, bool best)
{
    (void)best;
    *(uint32_t *)user += record->epoch == 1;
    return false;
}

/* The checkpoint of epoch 1 cannot be written. The epoch is complete in spite of this: the fit calls on_epoch. Then the
 * trainer resumes another checkpoint. After that, a fit no longer writes the missing checkpoint. */
static void an_epoch_without_its_checkpoint_is_reported(void **state)
{
    rig *r = rig_of(state);
    const char *good = vkt_temp_dir_file(&r->dir, "good"), *other = vkt_temp_dir_file(&r->dir, "other");
    run_to(r, 1, 0, good);
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    char nowhere[300];
    uint32_t heard = 0;
    snprintf(nowhere, sizeof nowhere, "%s/none/a", r->dir.path);
    const vkt_fit_params lost = { .epochs = 1,
                                  .checkpoint = nowhere,
                                  .callbacks = { .user = &heard, .on_epoch = count_epoch } };
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &lost), VKT_E_CHECKPOINT);
    vkt_test_expect_errors(false);
    assert_int_equal(heard, 1);
    assert_int_equal(vkt_trainer_resume(t, good), VKT_OK);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1, .checkpoint = other }); /* no epoch is left: the fit writes no file */
    assert_int_equal(vkt_temp_dir_count(&r->dir), 1);
}

/* A source in which one fetch fails, like a file system that fails for a moment. */
typedef struct transient_failure {
    const vkt_dataset *of;
    atomic_int left; /* the fetch that finds a 1 here fails; each fetch subtracts 1 */
} transient_failure;

static vkt_result fetch_with_failure(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    transient_failure *h = self;
    (void)pass;
    (void)worker;
    return atomic_fetch_sub(&h->left, 1) == 1 ? VKT_E_IO : vkt_dataset_fetch(h->of, row, dst);
}

static void a_row_that_could_not_be_fetched_once_changes_nothing(void **state)
{
    rig *r = rig_of(state);
    transient_failure h = { .of = r->train };
    const vkt_dataset_params d = { .rows = RIG_ROWS,
                                   .height = RIG_SIDE,
                                   .width = RIG_SIDE,
                                   .labels = vkt_dataset_labels(r->train),
                                   .classes = RIG_CLASSES };
    const vkt_data_source source = { .fetch = fetch_with_failure, .self = &h };
    vkt_dataset *data;
    assert_int_equal(vkt_dataset_from_source(&r->h, &d, &source, &data), VKT_OK);
    const char *whole = vkt_temp_dir_file(&r->dir, "whole"), *part = vkt_temp_dir_file(&r->dir, "part");
    vkt_trainer_params p = rig_params(r);
    p.train = data;
    p.stream = true;
    rig_fit(rig_trainer(r, &p), &(vkt_fit_params){ .checkpoint = whole });
    vkt_trainer *t = rig_trainer(r, &p);
    atomic_store(&h.left, 4 * RIG_BATCH + 3); /* a sample of the fifth batch cannot be fetched */
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .checkpoint = part }), VKT_E_IO);
    vkt_test_expect_errors(false);
    assert_int_equal(t->at.t, 4);
    rig_fit(t, &(vkt_fit_params){ .checkpoint = part });
    rig_same_file(whole, part);
    for (size_t i = 0; i < VKT_COUNT(r->trainers); i++) vkt_trainer_destroy(&r->trainers[i]);
    vkt_dataset_destroy(&data);
}

/* ---- weights ---- */

static void saved_weights_come_back(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "w"), *again = vkt_temp_dir_file(&r->dir, "again");
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *a = rig_trainer(r, &p);
    rig_fit(a, NULL);
    assert_int_equal(vkt_trainer_save(a, path), VKT_OK);
    p.seed = 1234;
    p.optimizer = (vkt_optimizer){ .kind = VKT_SGD };
    vkt_trainer *b = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_load(b, path), VKT_OK);
    rig_same(a, b, VKT_PART_VALUE);
    assert_int_equal(vkt_trainer_save(b, again), VKT_OK);
    rig_same_file(path, again);
    double x, y;
    assert_int_equal(vkt_trainer_evaluate(a, r->check, &x, NULL), VKT_OK);
    assert_int_equal(vkt_trainer_evaluate(b, r->check, &y, NULL), VKT_OK);
    assert_true(x == y);

    vkt_safetensors *st; /* the file has the names and shapes of PyTorch */
    assert_int_equal(vkt_safetensors_open(&r->h, path, &st), VKT_OK);
    assert_int_equal(vkt_safetensors_count(st), 4);
    const vkt_st_entry *w = vkt_safetensors_find(st, "conv.weight");
    assert_true(w && w->dtype == VKT_ST_F32 && w->rank == 4 && w->dims[0] == 8 && w->dims[1] == 1 && w->dims[3] == 3);
    w = vkt_safetensors_find(st, "fc.bias");
    assert_true(w && w->rank == 1 && w->dims[0] == RIG_CLASSES);
    vkt_safetensors_close(&st);
}

static vkt_tensor forward_other(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 4, .kernel = { 3 } });
    x = vkt_nn_flatten(b, vkt_nn_max_pool2d(b, x, 5));
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static void expect_attached(rig *r, const char *path, const char *name, const char *want)
{
    char *text;
    assert_int_equal(vkt_read_attachment(&r->h, path, name, &text), VKT_OK);
    assert_string_equal(text, want);
    vkt_text_release(&text);
}

static void attached_texts_are_in_every_file(void **state)
{
    rig *r = rig_of(state);
    const char *checkpoint = vkt_temp_dir_file(&r->dir, "c"), *weights = vkt_temp_dir_file(&r->dir, "w");
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    static const char words[] = "\"words\"\n1 t\xc3\xaate\t\n";
    for (int i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(vkt_trainer_attach(t, name, name), VKT_OK);
    }
    assert_int_equal(vkt_trainer_attach(t, "vocabulary", "old"), VKT_OK);
    assert_int_equal(vkt_trainer_attach(t, "vocabulary", words), VKT_OK);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1, .checkpoint = checkpoint });
    assert_int_equal(vkt_trainer_save(t, weights), VKT_OK);
    for (int i = 0; i < 2; i++) {
        expect_attached(r, i ? weights : checkpoint, "vocabulary", words);
        expect_attached(r, i ? weights : checkpoint, "n19", "n19");
    }
    vkt_trainer *again = rig_trainer(r, &p); /* has no texts, and can still read both files */
    assert_int_equal(vkt_trainer_resume(again, checkpoint), VKT_OK);
    assert_int_equal(vkt_trainer_load(again, weights), VKT_OK);
    vkt_trainer *third = rig_trainer(r, &p); /* has only the text n19; a resume adds the other texts of the file */
    assert_int_equal(vkt_trainer_attach(third, "n19", "new"), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_resume(third, checkpoint), VKT_E_STATE);
    vkt_test_error_contains("attached text \"n19\": not the same as in the checkpoint");
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_trainer_attach(third, "n19", "n19"), VKT_OK);
    assert_int_equal(vkt_trainer_resume(third, checkpoint), VKT_OK);
    assert_int_equal(vkt_trainer_attach(third, "n19", "new"), VKT_OK);
    rig_fit(third, &(vkt_fit_params){ .epochs = 2, .checkpoint = checkpoint });
    expect_attached(r, checkpoint, "vocabulary", words);
    expect_attached(r, checkpoint, "n0", "n0");
    expect_attached(r, checkpoint, "n19", "new");

    char *text;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_read_attachment(&r->h, weights, "nothing", &text), VKT_E_NOT_FOUND);
    vkt_test_error_contains("has no text \"nothing\"");
    assert_null(text);
    assert_int_equal(vkt_read_attachment(&r->h, vkt_temp_dir_file(&r->dir, "none"), "n1", &text), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_read_attachment(&r->h, weights, NULL, &text), VKT_E_ARG);
    assert_int_equal(vkt_trainer_attach(t, "", "x"), VKT_E_ARG);
    assert_int_equal(vkt_trainer_attach(t, "x", NULL), VKT_E_ARG);
    assert_int_equal(vkt_trainer_attach(t, "x", "caf\xe9"),
                     VKT_E_ARG); /* a file has its texts in JSON, so they must be UTF-8 */
    vkt_test_error_contains("is not UTF-8");
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result result = vkt_trainer_attach(t, "late", "x");
        const bool failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(result, failed ? VKT_E_NOMEM : VKT_OK);
        if (!failed) break;
    }
}

static void weights_of_another_network_are_refused(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "w");
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p), *untouched = rig_trainer(r, &p);
    p.model.forward = forward_other;
    assert_int_equal(vkt_trainer_save(rig_trainer(r, &p), path), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_load(t, path), VKT_E_SHAPE);
    vkt_test_error_contains("'conv.weight' of shape (8,1,3,3)");
    static const float one = 1;
    const vkt_blob blob = { .name = "conv.weights", .dtype = VKT_ST_F32, .rank = 1, .dims = { 1 }, .data = &one };
    assert_int_equal(vkt_safetensors_write(&r->h, path, &blob, 1, NULL, 0), VKT_OK);
    assert_int_equal(vkt_trainer_load(t, path), VKT_E_NOT_FOUND);
    vkt_test_error_contains("conv.weight");
    vkt_test_expect_errors(false);
    rig_same(t, untouched, VKT_PART_VALUE);
}

/* If the trainer has no attached texts and no averaged weights, vkt_store_save writes the same file as
 * vkt_trainer_save. vkt_store_load refuses weights of another network, as vkt_trainer_load does. */
static void stores_have_the_same_files(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "w"), *again = vkt_temp_dir_file(&r->dir, "again");
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *a = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_save(a, path), VKT_OK);
    p.seed++;
    vkt_trainer *b = rig_trainer(r, &p);
    assert_int_equal(vkt_store_load(&r->h, b->store, path), VKT_OK);
    rig_same(a, b, VKT_PART_VALUE);
    assert_int_equal(vkt_store_save(&r->h, b->store, VKT_PART_VALUE, again), VKT_OK);
    rig_same_file(path, again);

    p.model.forward = forward_other;
    assert_int_equal(vkt_trainer_save(rig_trainer(r, &p), again), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_store_load(&r->h, b->store, again), VKT_E_SHAPE);
    vkt_test_error_contains("'conv.weight' of shape (8,1,3,3)");
    assert_int_equal(vkt_store_load(&r->h, b->store, vkt_temp_dir_file(&r->dir, "none")), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_store_save(&r->h, b->store, VKT_PART_PUBLISHED, again), VKT_E_STATE);
    vkt_test_expect_errors(false);
    rig_same(a, b, VKT_PART_VALUE);
}

static void a_part_of_the_weights_is_loaded_by_name(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "w");
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p), *untouched = rig_trainer(r, &p);
    p.seed++;
    p.model.forward = forward_other; /* only fc.bias has the same shape as in t */
    vkt_trainer *other = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_save(other, path), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_load_matching(t, path, "*.weight"), VKT_E_SHAPE);
    assert_int_equal(vkt_trainer_load_matching(t, path, "fd.*"), VKT_E_NOT_FOUND);
    vkt_test_error_contains("'fd.*'");
    vkt_test_expect_errors(false);
    rig_same(t, untouched, VKT_PART_VALUE);
    assert_int_equal(vkt_trainer_load_matching(t, path, "fc.b*"), VKT_OK);
    uint64_t n, m;
    float *now = rig_weights(t, VKT_PART_VALUE, &n), *before = rig_weights(untouched, VKT_PART_VALUE, &n);
    float *theirs = rig_weights(other, VKT_PART_VALUE, &m);
    assert_memory_equal(now, before, (n - RIG_CLASSES) * sizeof *now);
    assert_memory_equal(now + n - RIG_CLASSES, theirs + m - RIG_CLASSES, RIG_CLASSES * sizeof *now);
    test_free(now);
    test_free(before);
    test_free(theirs);
}

/* A forked child has neither the driver's threads nor the threads that fill batches. So vkt_trainer_destroy must not
 * wait for these threads in the child. */
static void a_forked_child_may_destroy_a_trainer(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    p.stream = true;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 1 });
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* ends the child if it hangs */
        const unsigned before = vkt_test_errors();
        vkt_trainer_destroy(&t);
        _exit(t || vkt_test_errors() != before);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "worker") == 0) return worker(argv[2], argc > 3);
    const struct CMUnitTest tests[] = {
        rig_test(two_runs_of_one_seed_end_in_the_same_bytes),
        rig_test(a_resumed_run_ends_like_one_that_never_stopped),
        rig_test(rows_that_vary_are_the_same_after_a_resume),
        rig_test(a_run_killed_again_and_again_ends_in_the_same_bytes),
        rig_test(a_wrong_file_is_refused_and_changes_nothing),
        rig_test(a_failed_write_keeps_the_old_checkpoint_and_the_run_goes_on),
        rig_test(the_checkpoint_after_a_failed_one_is_tried_again),
        rig_test(an_epoch_without_its_checkpoint_is_reported),
        rig_test(a_row_that_could_not_be_fetched_once_changes_nothing),
        rig_test(saved_weights_come_back),
        rig_test(attached_texts_are_in_every_file),
        rig_test(weights_of_another_network_are_refused),
        rig_test(stores_have_the_same_files),
        rig_test(a_forked_child_may_destroy_a_trainer),
        rig_test(a_part_of_the_weights_is_loaded_by_name),
    };
    return cmocka_run_group_tests_name("trainer state", tests, NULL, NULL);
}
