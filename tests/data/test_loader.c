/* Tests the loader: it must give the same bytes as direct fetches, for any number of workers and slots. (A slot is
 * memory of the caller for one batch.) Also tests errors, and epochs that end early. A failed assertion of cmocka calls
 * longjmp, so only the test's own thread may use assertions. The data source below runs on worker threads, so it uses
 * no assertions, but counts its calls in atomic variables. The test checks these counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/base.h"
#include "base/philox.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "support/host.h"

enum { ROWS = 333, ROW = 21, MAX_BATCH = 400, MAX_SLOTS = 7 };

/* A source that computes its samples, fails on request, and records its calls. */
typedef struct source {
    uint32_t bad[2];  /* sample bad[0] fails with VKT_E_IO, sample bad[1] with VKT_E_FORMAT */
    uint32_t slow_us; /* each fetch takes at least this time */
    uint32_t meet;    /* not 0: a fetch waits, at most about 5 s, until this many fetches have run at once */
    atomic_uint fetched, inside, most_inside;
    atomic_uint busy[VKT_DATA_MAX_WORKERS];
    atomic_uint overlaps, last_worker;
} source;

static void pause_us(uint32_t us)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)us * 1000 }, NULL);
}

static vkt_result source_fetch(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    source *s = self;
    if (atomic_fetch_add(&s->busy[worker], 1) != 0) atomic_fetch_add(&s->overlaps, 1);
    const unsigned inside = atomic_fetch_add(&s->inside, 1) + 1;
    unsigned most = atomic_load(&s->most_inside);
    while (inside > most && !atomic_compare_exchange_weak(&s->most_inside, &most, inside)) continue;
    for (int i = 0; i < 5000 && atomic_load(&s->most_inside) < s->meet; i++) pause_us(1000);
    if (s->slow_us) pause_us(s->slow_us);
    for (uint32_t i = 0; i < ROW; i++)
        ((uint8_t *)dst)[i] = (uint8_t)(row * 31 + i * 7 + (row >> 3) + pass.seed + pass.epoch * 5);
    unsigned last = atomic_load(&s->last_worker);
    while (worker > last && !atomic_compare_exchange_weak(&s->last_worker, &last, worker)) continue;
    atomic_fetch_sub(&s->inside, 1);
    atomic_fetch_sub(&s->busy[worker], 1);
    atomic_fetch_add(&s->fetched, 1);
    return row == s->bad[0] ? VKT_E_IO : row == s->bad[1] ? VKT_E_FORMAT : VKT_OK;
}

static const char *source_why(void *self, uint32_t worker)
{
    source *s = self;
    return atomic_load(&s->busy[worker]) == 0 ? "the disk has a hole" : "asked too late";
}

/* A data set over a source, and slots followed by guard bytes. */
typedef struct fixture {
    vkt_host h;
    source src;
    vkt_dataset *ds;
    vkt_pass pass;
    uint32_t labels[ROWS], order[ROWS];
    uint8_t features[MAX_SLOTS][MAX_BATCH * ROW + 8];
    uint32_t slot_labels[MAX_SLOTS][MAX_BATCH + 1];
    float targets[ROWS][2], slot_targets[MAX_SLOTS][MAX_BATCH + 1][2];
    vkt_loader_slot slots[MAX_SLOTS];
    vkt_loader *l;
} fixture;

/* Fills a slot and its guard with 0xab. */
static void dirty(fixture *t, uint32_t slot)
{
    memset(t->features[slot], 0xab, sizeof t->features[slot]);
    memset(t->slot_labels[slot], 0xab, sizeof t->slot_labels[slot]);
    memset(t->slot_targets[slot], 0xab, sizeof t->slot_targets[slot]);
}

static void start(fixture *t, uint32_t batch, uint32_t n_slots, uint32_t workers)
{
    const vkt_loader_params p = { t->ds, batch, t->slots, n_slots, workers };
    for (uint32_t i = 0; i < n_slots; i++) dirty(t, i);
    assert_int_equal(vkt_loader_create(&t->h, &p, &t->l), VKT_OK);
}

/* Compares the batch at `position` of the epoch with direct fetches. */
static void check_batch(fixture *t, uint32_t batch, uint32_t slot, uint32_t rows, const uint32_t *order,
                        uint32_t position)
{
    const uint8_t *got = t->features[slot];
    for (uint32_t i = 0; i < batch; i++, got += ROW) {
        uint8_t want[ROW] = { 0 };
        const uint32_t row = order ? order[position + i % rows] : position + i % rows;
        if (i < rows) assert_int_equal(vkt_dataset_fetch_as(t->ds, row, t->pass, want, 0), VKT_OK);
        assert_memory_equal(got, want, ROW);
        assert_int_equal(t->slot_labels[slot][i], i < rows ? t->labels[row] : 0);
        const float none[2] = { 0 };
        assert_memory_equal(t->slot_targets[slot][i], i < rows ? t->targets[row] : none, sizeof none);
    }
    assert_int_equal(*got, 0xab);
    assert_int_equal(t->slot_labels[slot][batch], 0xabababab);
    static const uint32_t guard[2] = { 0xabababab, 0xabababab };
    assert_memory_equal(t->slot_targets[slot][batch], guard, sizeof guard);
}

/* Checks a whole epoch. Releases the slot of batch i after the check of batch i + hold. If there is no such batch,
 * releases the slot at the end. */
static void check_epoch(fixture *t, uint32_t batch, uint32_t n_slots, const uint32_t *order, uint32_t n, uint32_t hold)
{
    assert_int_equal(vkt_loader_start_epoch(t->l, order, n, t->pass), VKT_OK);
    uint32_t slot, rows, position = 0, i = 0;
    for (;; position += rows, i++) {
        assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
        if (rows == 0) break;
        assert_int_equal(slot, i % n_slots);
        assert_int_equal(rows, VKT_MIN(batch, n - position));
        check_batch(t, batch, slot, rows, order, position);
        if (i >= hold) {
            const uint32_t old = (i - hold) % n_slots;
            dirty(t, old);
            assert_int_equal(vkt_loader_release(t->l, old), VKT_OK);
        }
    }
    assert_int_equal(position, n);
    assert_int_equal(slot, UINT32_MAX);
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK); /* the loader stays at the epoch's end */
    assert_int_equal(rows, 0);
    for (uint32_t k = VKT_MIN(hold, i); k > 0; k--) {
        dirty(t, (i - k) % n_slots);
        assert_int_equal(vkt_loader_release(t->l, (i - k) % n_slots), VKT_OK);
    }
}

static void batches_equal_direct_fetches(void **state)
{
    fixture *t = *state;
    static const uint32_t workers[] = { 1, 2, 5 }, slots[] = { 1, 2, 3, 7 };
    static const uint32_t batches[] = { 1, 15, 16, 17, 100, 111, 333, 400 };
    for (size_t w = 0; w < VKT_COUNT(workers); w++)
        for (size_t s = 0; s < VKT_COUNT(slots); s++)
            for (size_t b = 0; b < VKT_COUNT(batches); b++) {
                start(t, batches[b], slots[s], workers[w]);
                for (uint32_t epoch = 0; epoch < 2; epoch++) {
                    vkt_shuffle(t->order, ROWS, 4, epoch);
                    t->pass = (vkt_pass){ .seed = 3, .epoch = epoch };
                    check_epoch(t, batches[b], slots[s], t->order, ROWS, epoch ? slots[s] - 1 : 0);
                }
                check_epoch(t, batches[b], slots[s], NULL, ROWS - 20, 0);
                vkt_loader_destroy(&t->l);
                assert_null(t->l);
                assert_int_equal(atomic_load(&t->src.overlaps), 0);
                assert_in_range(atomic_load(&t->src.last_worker), 1, workers[w]);
                atomic_store(&t->src.last_worker, 0);
            }
}

static void tables_in_memory_and_slices_are_loaded(void **state)
{
    fixture *t = *state;
    static uint8_t rows[ROWS][ROW];
    for (uint32_t i = 0; i < ROWS; i++) assert_int_equal(vkt_dataset_fetch(t->ds, i, rows[i]), VKT_OK);
    const vkt_dataset_params p = {
        .rows = ROWS, .width = ROW, .labels = t->labels, .targets = t->targets[0], .target_width = 2
    };
    vkt_dataset *all;
    vkt_dataset_destroy(&t->ds);
    assert_int_equal(vkt_dataset_from_arrays(&t->h, &p, rows, &all), VKT_OK);
    assert_int_equal(vkt_dataset_slice(all, 33, 300, &t->ds), VKT_OK);
    vkt_dataset_destroy(&all);
    memmove(t->labels, t->labels + 33, 300 * sizeof *t->labels);
    memmove(t->targets, t->targets + 33, 300 * sizeof *t->targets);
    vkt_shuffle(t->order, 300, 1, 0);
    start(t, 64, 2, 3);
    check_epoch(t, 64, 2, t->order, 300, 1);
    t->slots[0].labels = t->slots[1].labels = NULL; /* the next loader gives neither labels nor targets */
    t->slots[0].targets = t->slots[1].targets = NULL;
    vkt_loader_destroy(&t->l);
    start(t, 300, 1, 3);
    assert_int_equal(vkt_loader_start_epoch(t->l, NULL, 300, t->pass), VKT_OK);
    uint32_t slot, n;
    assert_int_equal(vkt_loader_next(t->l, &slot, &n), VKT_OK);
    assert_memory_equal(t->features[0], rows[33], 300 * ROW);
    assert_int_equal(t->slot_labels[0][0], 0xabababab);
    assert_int_equal(memcmp(t->slot_targets[0][0], t->slot_labels[0], sizeof t->slot_targets[0][0]), 0);
    vkt_loader_destroy(&t->l);
}

static void the_bytes_between_rows_are_zero(void **state)
{
    fixture *t = *state;
    enum { PITCH = ROW + 3, BATCH = 100, N = 130 }; /* the second batch has 30 samples */
    const vkt_loader_params p = {
        .dataset = t->ds, .batch = BATCH, .slots = t->slots, .n_slots = 2, .workers = 3, .row_pitch = PITCH
    };
    dirty(t, 0);
    dirty(t, 1);
    assert_int_equal(vkt_loader_create(&t->h, &p, &t->l), VKT_OK);
    assert_int_equal(vkt_loader_start_epoch(t->l, NULL, N, t->pass), VKT_OK);
    for (uint32_t position = 0, slot, rows; position < N; position += rows) {
        assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
        for (uint32_t i = 0; i < BATCH; i++) {
            uint8_t want[PITCH] = { 0 };
            if (i < rows) assert_int_equal(vkt_dataset_fetch_as(t->ds, position + i, t->pass, want, 0), VKT_OK);
            assert_memory_equal(t->features[slot] + i * PITCH, want, PITCH);
        }
        assert_int_equal(t->features[slot][BATCH * PITCH], 0xab);
    }
    vkt_loader_destroy(&t->l);
    vkt_test_expect_errors(true);
    const vkt_loader_params narrow = {
        .dataset = t->ds, .batch = BATCH, .slots = t->slots, .n_slots = 2, .row_pitch = ROW - 1
    };
    assert_int_equal(vkt_loader_create(&t->h, &narrow, &t->l), VKT_E_ARG);
    vkt_test_error_contains("want a row pitch of 21 bytes or more, got 20");
}

static void workers_run_at_once_on_one_batch(void **state)
{
    fixture *t = *state;
    t->src.meet = 4;
    start(t, 64, 1, 4); /* with one slot, workers can fetch samples of only one batch */
    assert_int_equal(vkt_loader_start_epoch(t->l, NULL, 64, t->pass), VKT_OK);
    uint32_t slot, rows;
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
    assert_int_equal(atomic_load(&t->src.most_inside), 4);
    vkt_loader_destroy(&t->l);
}

static void free_slots_are_filled_ahead_and_no_more(void **state)
{
    fixture *t = *state;
    start(t, 20, 3, 2);
    assert_int_equal(vkt_loader_start_epoch(t->l, NULL, ROWS, t->pass), VKT_OK);
    for (int i = 0; i < 5000 && atomic_load(&t->src.fetched) < 60; i++) pause_us(1000);
    pause_us(20000);
    assert_int_equal(atomic_load(&t->src.fetched), 60);
    vkt_loader_destroy(&t->l);
}

static void waits_for_rows_are_counted(void **state)
{
    fixture *t = *state;
    uint32_t slot, rows;
    uint64_t waited = 0;
    t->src.slow_us = 20000;
    /* A batch takes 100 ms, so the first vkt_loader_next waits. The loop repeats only if this thread was suspended for
     * about 100 ms. */
    for (int i = 0; i < 20 && waited <= 1000000; i++) {
        vkt_loader_destroy(&t->l);
        atomic_store(&t->src.fetched, 0);
        start(t, 5, 2, 1);
        assert_int_equal(vkt_loader_start_epoch(t->l, NULL, 15, t->pass), VKT_OK);
        assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
        waited = vkt_loader_waited_ns(t->l);
    }
    assert_true(waited > 1000000);
    assert_int_equal(vkt_loader_release(t->l, slot), VKT_OK);
    /* Waits until a sample of the third batch is fetched. The only worker fetches in order, so the second batch is
     * ready. */
    for (int i = 0; i < 5000 && atomic_load(&t->src.fetched) < 11; i++) pause_us(1000);
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
    assert_int_equal(rows, 5);
    assert_true(vkt_loader_waited_ns(t->l) == waited); /* the batch was ready, so there was no wait */
    vkt_loader_destroy(&t->l);
}

static void the_first_failing_row_in_order_is_reported(void **state)
{
    fixture *t = *state;
    vkt_test_expect_errors(true);
    vkt_shuffle(t->order, ROWS, 8, 0);
    for (uint32_t workers = 1; workers <= 5; workers += 2)
        for (int swap = 0; swap < 2; swap++) {
            /* Both bad samples are in the third batch of 50. A worker claims at most 16 samples at once, so two
             * different workers may fetch the two bad samples. */
            t->src.bad[swap] = t->order[130];
            t->src.bad[!swap] = t->order[104];
            start(t, 50, 4, workers);
            assert_int_equal(vkt_loader_start_epoch(t->l, t->order, ROWS, t->pass), VKT_OK);
            uint32_t slot, rows;
            for (uint32_t i = 0; i < 2; i++) {
                assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
                check_batch(t, 50, slot, rows, t->order, i * 50);
            }
            const vkt_result want = swap ? VKT_E_IO : VKT_E_FORMAT;
            for (int again = 0; again < 2; again++) {
                assert_int_equal(vkt_loader_next(t->l, &slot, &rows), want);
                assert_true(slot == UINT32_MAX && rows == 0);
            }
            vkt_test_error_contains("(104 of the epoch) could not be fetched: the disk has a hole");
            assert_int_equal(vkt_loader_release(t->l, 0), VKT_OK);
            assert_int_equal(vkt_loader_release(t->l, 1), VKT_OK);
            /* The call is refused, but it ends the epoch. So no worker reads src.bad while the next line changes it. */
            assert_int_equal(vkt_loader_start_epoch(t->l, NULL, 0, t->pass), VKT_E_ARG);
            t->src.bad[0] = t->src.bad[1] = UINT32_MAX; /* no sample fails any more, so the next epoch is complete */
            for (uint32_t i = 0; i < 4; i++) dirty(t, i);
            check_epoch(t, 50, 4, t->order, ROWS, 0);
            vkt_loader_destroy(&t->l);
        }
}

static void it_can_be_destroyed_or_restarted_at_any_time(void **state)
{
    fixture *t = *state;
    uint32_t slot, rows;
    start(t, 30, 3, 3); /* this loader is destroyed before its first epoch */
    vkt_loader_destroy(&t->l);
    t->src.slow_us = 100;
    for (uint32_t taken = 0; taken <= 3; taken++) {
        start(t, 30, 3, 3);
        assert_int_equal(vkt_loader_start_epoch(t->l, NULL, ROWS, t->pass), VKT_OK);
        for (uint32_t i = 0; i < taken; i++) assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
        vkt_loader_destroy(&t->l); /* `taken` slots belong to the caller; workers may fill the other slots */
    }
    start(t, 30, 3, 3);
    for (uint32_t epoch = 0; epoch < 5; epoch++) {
        vkt_shuffle(t->order, ROWS, 1, epoch); /* `order` may change: no epoch of this loop uses it */
        assert_int_equal(vkt_loader_start_epoch(t->l, NULL, ROWS, t->pass), VKT_OK);
        for (uint32_t i = 0; i < epoch; i++) {
            assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
            check_batch(t, 30, slot, rows, NULL, i * 30);
            dirty(t, slot);
            assert_int_equal(vkt_loader_release(t->l, slot), VKT_OK);
        }
    }
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK); /* batch 4 stays in its slot during the restart */
    assert_int_equal(slot, 1);
    assert_int_equal(vkt_loader_start_epoch(t->l, t->order, ROWS, t->pass), VKT_OK);
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
    check_batch(t, 30, 1, 30, NULL, 120);
    assert_int_equal(vkt_loader_release(t->l, 1), VKT_OK);
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
    check_batch(t, 30, slot, rows, t->order, 30);
    vkt_loader_destroy(&t->l);
}

static void wrong_calls_are_refused(void **state)
{
    fixture *t = *state;
    uint32_t slot, rows;
    vkt_test_expect_errors(true);
    vkt_loader_slot none = { 0 };
    const vkt_loader_params bad[] = {
        { NULL, 10, t->slots, 2, 1 },  { t->ds, 0, t->slots, 2, 1 }, { t->ds, 10, NULL, 2, 1 },
        { t->ds, 10, t->slots, 0, 1 }, { t->ds, 10, &none, 1, 1 },   { t->ds, 10, t->slots, 2, VKT_DATA_MAX_WORKERS },
    };
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        assert_int_equal(vkt_loader_create(&t->h, &bad[i], &t->l), VKT_E_ARG);
        assert_null(t->l);
    }
    start(t, 10, 1, 0);
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_E_STATE);
    vkt_test_error_contains("no epoch was started");
    assert_int_equal(vkt_loader_start_epoch(t->l, NULL, 0, t->pass), VKT_E_ARG);
    assert_int_equal(vkt_loader_start_epoch(t->l, NULL, ROWS + 1, t->pass), VKT_E_ARG);
    vkt_order_identity(t->order, ROWS);
    t->order[200] = ROWS;
    assert_int_equal(vkt_loader_start_epoch(t->l, t->order, ROWS, t->pass), VKT_E_ARG);
    vkt_test_error_contains("order[200]: want a row below 333, got 333");
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_E_STATE);
    assert_int_equal(vkt_loader_start_epoch(t->l, t->order, 200, t->pass), VKT_OK);
    assert_int_equal(vkt_loader_release(t->l, 0), VKT_E_STATE);
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK);
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_E_STATE); /* no slot is free: a wait would never end */
    vkt_test_error_contains("was not released");
    assert_int_equal(vkt_loader_release(t->l, 1), VKT_E_STATE);
    assert_int_equal(vkt_loader_release(t->l, 0), VKT_OK);
    assert_int_equal(vkt_loader_release(t->l, 0), VKT_E_STATE);
    assert_int_equal(vkt_loader_next(t->l, &slot, &rows), VKT_OK); /* the refused calls of this epoch changed nothing */
    check_batch(t, 10, slot, rows, NULL, 10);
    vkt_loader_destroy(&t->l);
    vkt_loader_destroy(&t->l);
    vkt_loader_destroy(NULL);
}

static void epochs_allocate_nothing_and_failed_allocations_are_a_status(void **state)
{
    fixture *t = *state;
    const vkt_loader_params p = { t->ds, 32, t->slots, 2, 2 };
    const size_t before = vkt_test_live_blocks();
    unsigned n = 1;
    for (;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_loader_create(&t->h, &p, &t->l);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_null(t->l);
        assert_int_equal(vkt_test_live_blocks(), before);
    }
    vkt_test_fail_allocation(0);
    assert_int_equal(n, 4); /* there are three allocations: the loader, its slots, its workers */
    dirty(t, 0);
    dirty(t, 1);
    const unsigned long allocations = vkt_test_allocations();
    check_epoch(t, 32, 2, NULL, ROWS, 0);
    assert_int_equal(vkt_test_allocations(), allocations);
    vkt_loader_destroy(&t->l);
}

static int setup(void **state)
{
    static fixture t;
    vkt_test_setup(state);
    t = (fixture){ .h = vkt_test_host(), .src.bad = { UINT32_MAX, UINT32_MAX } };
    for (uint32_t i = 0; i < ROWS; i++) {
        t.labels[i] = (i * 7 + 1) % 11;
        t.targets[i][0] = (float)i + 0.5f;
        t.targets[i][1] = -(float)i;
    }
    for (uint32_t i = 0; i < MAX_SLOTS; i++)
        t.slots[i] = (vkt_loader_slot){ t.features[i], t.slot_labels[i], t.slot_targets[i][0] };
    const vkt_dataset_params p = {
        .rows = ROWS, .width = ROW, .labels = t.labels, .targets = t.targets[0], .target_width = 2
    };
    const vkt_data_source src = { .fetch = source_fetch, .self = &t.src, .why = source_why, .varies = true };
    *state = &t;
    return vkt_dataset_from_source(&t.h, &p, &src, &t.ds) == VKT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    fixture *t = *state;
    vkt_loader_destroy(&t->l);
    vkt_dataset_destroy(&t->ds);
    return vkt_test_teardown(state);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(batches_equal_direct_fetches),
        TEST(tables_in_memory_and_slices_are_loaded),
        TEST(the_bytes_between_rows_are_zero),
        TEST(workers_run_at_once_on_one_batch),
        TEST(free_slots_are_filled_ahead_and_no_more),
        TEST(waits_for_rows_are_counted),
        TEST(the_first_failing_row_in_order_is_reported),
        TEST(it_can_be_destroyed_or_restarted_at_any_time),
        TEST(wrong_calls_are_refused),
        TEST(epochs_allocate_nothing_and_failed_allocations_are_a_status),
    };
    return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}
