/* Tests that a run that was stopped or has failed can continue from its checkpoint with another number of ranks. At the
 * end, its weights and its checkpoint must have the same bytes as after an uninterrupted run of one rank. */
#include "train/group.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/file.h"

enum { EPOCHS = 3, STOP_AFTER = 9 }; /* step 9 is in the second epoch: an epoch has 7 steps */

static void file_of(const rig *r, const char *name, char path[256])
{
    snprintf(path, 256, "%s", vkt_temp_dir_file(&r->dir, name));
}

static void copy_file(const rig *r, const char *from, const char *to)
{
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&r->h, from, 1u << 24, &bytes, &n), VKT_OK);
    assert_int_equal(vkt_file_write(&r->h, to, bytes, n), VKT_OK);
    vkt_free(&r->h, bytes);
}

/* Trains with one rank from the start to the end of the run. Writes the checkpoint to `path`. */
static group undisturbed(rig *r, const vkt_trainer_params *p, const char *path)
{
    group g = group_make(r, *p, 1);
    assert_int_equal(vkt_trainer_fit(g.t, &(vkt_fit_params){ .epochs = EPOCHS, .checkpoint = path }), VKT_OK);
    return g;
}

/* Continues a copy of the checkpoint `from` with this number of ranks. At the end, compares the checkpoint with the
 * file `wanted`, and the trainer with `whole`. */
static void goes_on(rig *r, const vkt_trainer_params *p, uint32_t ranks, const char *from, group *whole,
                    const char *wanted)
{
    char path[256];
    file_of(r, "resumed", path);
    copy_file(r, from, path);
    group g = group_make(r, *p, ranks);
    assert_int_equal(vkt_trainer_resume(g.t, path), VKT_OK);
    const vkt_fit_params fit = { .epochs = EPOCHS, .checkpoint = path, .checkpoint_every = 4 };
    assert_int_equal(vkt_trainer_fit(g.t, &fit), VKT_OK);
    rig_same_file(path, wanted);
    group_same(whole->t, g.t);
    group_free(&g);
}

static bool stop(void *user)
{
    uint32_t *left = user;
    return (*left)-- == 1;
}

/* Stops a run of `ranks` ranks in its second epoch. */
static void stopped_run(rig *r, const vkt_trainer_params *p, uint32_t ranks, const char *path)
{
    uint32_t left = STOP_AFTER;
    group g = group_make(r, *p, ranks);
    const vkt_fit_params fit = { .epochs = EPOCHS, .checkpoint = path, .callbacks = { .user = &left, .stop = stop } };
    assert_int_equal(vkt_trainer_fit(g.t, &fit), VKT_OK);
    const vkt_fit_progress at = vkt_trainer_position(g.t);
    assert_true(at.epoch == 2 && at.batch > 0 && at.batch < at.batches); /* in the middle of the epoch */
    for (uint32_t i = 0; i < g.n; i++) assert_int_equal(g.t->replicas[i]->at.batch, at.batch);
    group_free(&g);
}

static void a_stopped_run_goes_on_with_any_number_of_ranks(void **state)
{
    rig *r = rig_of(state);
    static const uint32_t ranks[] = { 2, 1, 8 };
    char wanted[256], path[256];
    file_of(r, "wanted", wanted);
    file_of(r, "stopped", path);
    const vkt_trainer_params p = group_params(r);
    group whole = undisturbed(r, &p, wanted);
    stopped_run(r, &p, 4, path);
    for (size_t i = 0; i < VKT_COUNT(ranks); i++) goes_on(r, &p, ranks[i], path, &whole, wanted);
    stopped_run(r, &p, 1, path);
    goes_on(r, &p, 4, path, &whole, wanted);
    group_free(&whole);
}

static void micro_batches_in_half_precision_go_on_too(void **state)
{
    rig *r = rig_of(state);
    char wanted[256], path[256];
    file_of(r, "wanted", wanted);
    file_of(r, "stopped", path);
    vkt_trainer_params p = group_params(r);
    p.batch = 16; /* a step has two such batches, so the program runs twice for each shard */
    p.optimizer.micro_batches = 2;
    p.precision = VKT_PRECISION_F16;
    p.ema_decay = 0.8;
    p.stream = true;
    group whole = undisturbed(r, &p, wanted);
    stopped_run(r, &p, 4, path);
    goes_on(r, &p, 2, path, &whole, wanted);
    goes_on(r, &p, 1, path, &whole, wanted);
    group_free(&whole);
}

/* ---- a source that fails ---- */

/* A source of the rig's samples. While `armed` is set, sample `row` of epoch `epoch` fails. `overlaps` counts calls
 * that overlap although they have the same `worker`. There must be none. */
typedef struct flaky {
    const vkt_dataset *data;
    uint32_t row, epoch;
    atomic_bool armed;
    atomic_uint busy[VKT_DATA_MAX_WORKERS], overlaps;
} flaky;

static vkt_result fetch(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    enum { AREA = RIG_SIDE * RIG_SIDE };
    flaky *f = self;
    if (atomic_fetch_add(&f->busy[worker], 1) != 0) atomic_fetch_add(&f->overlaps, 1);
    nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL); /* so that the calls of several ranks overlap */
    memcpy(dst, (const char *)vkt_dataset_features(f->data) + (size_t)row * AREA, AREA);
    const bool fails = atomic_load(&f->armed) && row == f->row && pass.epoch == f->epoch;
    atomic_fetch_sub(&f->busy[worker], 1);
    return fails ? VKT_E_IO : VKT_OK;
}

static vkt_dataset *flaky_data(const rig *r, flaky *f)
{
    f->data = r->train;
    return rig_from_source(r, &(vkt_data_source){ .fetch = fetch, .self = f, .varies = true });
}

/* Returns the sample that an epoch has at this position of its shuffled order. */
static uint32_t row_at(uint64_t seed, uint32_t epoch, uint32_t position)
{
    uint32_t order[RIG_ROWS];
    vkt_shuffle(order, RIG_ROWS, seed, epoch);
    return order[position];
}

/* Trains with ranks whose source fails in one shard of a step of the second epoch. This step is number 5, counted from
 * 0. Checks status and messages. */
static void failed_run(group *g, flaky *f, const vkt_fit_params *fit)
{
    atomic_store(&f->armed, true);
    const unsigned before = vkt_test_errors();
    vkt_test_expect_errors(true);
    const vkt_result result = vkt_trainer_fit(g->t, fit);
    assert_true(result == VKT_E_PEER || result == VKT_E_IO);
    assert_int_equal(vkt_test_errors() - before, 2); /* one message of the loader, one of the group of ranks */
    vkt_test_error_contains("rank 2 has failed: ");
    assert_int_equal(vkt_trainer_save(g->t, fit->checkpoint), VKT_E_STATE);
    vkt_test_error_contains("in the middle of a step");
    assert_int_equal(vkt_trainer_fit(g->t, fit), VKT_E_STATE);
    vkt_test_error_contains("resume its checkpoint");
    vkt_test_expect_errors(false);
    atomic_store(&f->armed, false);
}

static void a_failed_run_goes_on_with_any_number_of_ranks(void **state)
{
    rig *r = rig_of(state);
    static const uint32_t ranks[] = { 2, 1, 8 };
    char wanted[256], first[256], path[256];
    file_of(r, "wanted", wanted);
    file_of(r, "first", first);
    file_of(r, "failed", path);
    flaky f = { .epoch = 2, .row = row_at(7, 2, 5 * RIG_BATCH + 18) }; /* in shard 4, which is on rank 2 */
    vkt_dataset *d = flaky_data(r, &f);
    vkt_trainer_params p = group_params(r);
    p.train = d;
    group whole = undisturbed(r, &p, wanted), one = group_make(r, p, 1);
    rig_fit(one.t, &(vkt_fit_params){ .epochs = 1, .checkpoint = first });
    for (uint64_t every = 0; every <= 2; every += 2) {
        const vkt_fit_params fit = { .epochs = EPOCHS, .checkpoint = path, .checkpoint_every = every };
        group g = group_make(r, p, 4);
        failed_run(&g, &f, &fit);
        if (!every) rig_same_file(path, first); /* the checkpoint of the last complete epoch */
        for (size_t i = 0; i < VKT_COUNT(ranks); i++) goes_on(r, &p, ranks[i], path, &whole, wanted);
        if (every) assert_int_equal(vkt_trainer_resume(g.t, path), VKT_OK); /* the same trainer continues */
        if (every) assert_int_equal(vkt_trainer_fit(g.t, &fit), VKT_OK);
        if (every) group_same(whole.t, g.t);
        group_free(&g);
    }
    assert_int_equal(atomic_load(&f.overlaps), 0);
    group_free(&one);
    group_free(&whole);
    vkt_dataset_destroy(&d);
}

/* A trainer has one rank, and its source fails after some shards of a step. The next fit needs no resume. The shards of
 * the incomplete step must not have changed the running statistics. */
static void one_rank_goes_on_after_a_part_of_a_step(void **state)
{
    rig *r = rig_of(state);
    char wanted[256], path[256];
    file_of(r, "wanted", wanted);
    file_of(r, "failed", path);
    flaky f = { .epoch = 2, .row = row_at(7, 2, 3 * RIG_BATCH + 18) };
    vkt_dataset *d = flaky_data(r, &f);
    vkt_trainer_params p = group_params(r);
    p.train = d;
    for (int wire = 0; wire < 2; wire++) {
        p.dist.wire = wire ? VKT_WIRE_BF16 : VKT_WIRE_F32;
        group whole = undisturbed(r, &p, wanted), g = group_make(r, p, 1);
        const vkt_fit_params fit = { .epochs = EPOCHS, .checkpoint = path };
        atomic_store(&f.armed, true);
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_fit(g.t, &fit), VKT_E_IO);
        vkt_test_expect_errors(false);
        atomic_store(&f.armed, false);
        assert_int_equal(vkt_trainer_position(g.t).batch, 3);
        assert_int_equal(vkt_trainer_save(g.t, path), VKT_OK);
        assert_int_equal(vkt_trainer_fit(g.t, &fit), VKT_OK);
        rig_same_file(path, wanted);
        group_same(whole.t, g.t);
        g.t->shards.broken = true; /* as if a fit had failed in the middle of a step */
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_fit(g.t, &fit), VKT_E_STATE);
        vkt_test_error_contains("resume its checkpoint");
        vkt_test_expect_errors(false);
        assert_int_equal(vkt_trainer_resume(g.t, path), VKT_OK);
        assert_int_equal(vkt_trainer_fit(g.t, &fit), VKT_OK); /* nothing is left to do */
        group_free(&whole);
        group_free(&g);
    }
    vkt_dataset_destroy(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_stopped_run_goes_on_with_any_number_of_ranks),
        rig_test(micro_batches_in_half_precision_go_on_too),
        rig_test(a_failed_run_goes_on_with_any_number_of_ranks),
        rig_test(one_rank_goes_on_after_a_part_of_a_step),
    };
    return cmocka_run_group_tests_name("ranks and checkpoints", tests, NULL, NULL);
}
