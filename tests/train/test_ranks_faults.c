/* Tests ranks that fail: a rank computes wrong numbers, loses its device, lacks memory, or hangs. The fits of the other
 * ranks end in bounded time. One message names the failed rank. The last checkpoint stays. */
#include "train/hands.h"

#include <stdio.h>

#include "gpu/gpu.h"

enum { RANKS = 4, WRONG = 2 };

/* ---- a device that computes wrong numbers ---- */

/* change_a_weight changes one weight of trainer `t` after batch number `batch` of the second epoch. */
typedef struct poke {
    vkt_trainer *t;
    uint32_t batch;
} poke;

static void change_a_weight(void *user, const vkt_fit_progress *p)
{
    const poke *k = user;
    float w[6 * 9];
    if (p->validating || p->epoch != 2 || p->batch != k->batch) return;
    vkt_store *s = vkt_trainer_store(k->t);
    if (vkt_store_read(s, 0, VKT_PART_VALUE, w) != VKT_OK) return;
    uint32_t bits;
    memcpy(&bits, &w[5], sizeof bits);
    bits ^= 1u; /* changes the last bit */
    memcpy(&w[5], &bits, sizeof bits);
    (void)vkt_store_write(s, 0, VKT_PART_VALUE, w);
}

/* Rank 2 changes a weight after the first step of the second epoch, which is step 8. `check_every`: the ranks compare
 * their weights once in this many steps. The comparison after step `found` must find the changed weight, and end the
 * fit of every rank. */
static void corrupted_run(rig *r, uint32_t check_every, const char *checkpoint, uint32_t found)
{
    hands h = hands_make(r, RANKS, 20);
    poke k = { .batch = 1 };
    char says[80];
    vkt_trainer_params p = group_params(r);
    p.dist.check_every = check_every;
    for (uint32_t i = 0; i < RANKS; i++) {
        vkt_fit_params fit = { .epochs = 3, .checkpoint = checkpoint };
        if (i == WRONG) fit.callbacks = (vkt_fit_callbacks){ .user = &k, .on_batch = change_a_weight };
        hands_train(&h, i, p, &fit);
    }
    k.t = h.rank[WRONG].t;
    const unsigned before = vkt_test_errors();
    vkt_test_expect_errors(true);
    hands_fit(&h);
    vkt_test_expect_errors(false);
    for (uint32_t i = 0; i < RANKS; i++) assert_int_equal(h.rank[i].result, VKT_E_PEER);
    assert_int_equal(vkt_test_errors() - before, 1);
    snprintf(says, sizeof says, "step %u: the weights of rank 2 differ from those of most ranks", found);
    vkt_test_error_contains(says);
    hands_free(&h);
}

static void silent_corruption_is_found_by_its_rank(void **state)
{
    rig *r = rig_of(state);
    corrupted_run(r, 6, NULL, 12);
}

/* The ranks differ, and the second epoch ends before the next regular comparison. The checkpoint of the second epoch
 * must not be written. The checkpoint of the first epoch must stay. */
static void no_checkpoint_is_written_of_ranks_that_differ(void **state)
{
    rig *r = rig_of(state);
    char path[256], first[256];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "checkpoint"));
    snprintf(first, sizeof first, "%s", vkt_temp_dir_file(&r->dir, "first"));
    group one = group_make(r, group_params(r), 1);
    rig_fit(one.t, &(vkt_fit_params){ .epochs = 1, .checkpoint = first });
    corrupted_run(r, 100, path, 14);
    rig_same_file(path, first);
    group_free(&one);
}

/* If no weight is changed, the comparison after each step finds no difference, and the fit succeeds. */
static void sound_ranks_are_not_accused(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = group_params(r);
    p.dist.check_every = 1;
    const unsigned before = vkt_test_errors();
    group g = group_make(r, p, 2);
    rig_fit(g.t, &(vkt_fit_params){ .epochs = 2 });
    group_free(&g);
    assert_int_equal(vkt_test_errors(), before);
}

/* ---- a device that is lost, or lacks memory ---- */

static struct {
    PFN_vkQueueSubmit2 submit;
    vkt_ctx *ctx;
    const vkt_gate *gate; /* submitted work of the exchange waits for this gate */
    uint32_t left;        /* n: the n-th submission from now on fails; 0: none fails any more */
    VkResult fault;
} injected; /* static, because fail_once has no user argument */

static VKAPI_ATTR VkResult VKAPI_CALL fail_once(VkQueue queue, uint32_t n, const VkSubmitInfo2 *infos, VkFence fence)
{
    if (injected.left == 0 || --injected.left > 0) return injected.submit(queue, n, infos, fence);
    /* The device is not really lost, but the engine will count all submitted work as done. So this function opens the
     * gate for this work, and waits until the device has done it. */
    if (injected.fault == VK_ERROR_DEVICE_LOST) {
        for (uint64_t v = injected.gate->value + 1; v < injected.gate->value + 200; v++) {
            const VkSemaphoreSignalInfo all = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                                .semaphore = injected.gate->semaphore,
                                                .value = v };
            injected.ctx->vk.SignalSemaphore(injected.ctx->device, &all);
        }
        injected.ctx->vk.DeviceWaitIdle(injected.ctx->device);
    }
    return injected.fault;
}

/* Makes submission number `left` of a rank fail once; the next submission is number 1. `rank` is not 0. */
static void inject(group *g, uint32_t rank, VkResult fault, uint32_t left)
{
    vkt_trainer *t = g->t->replicas[rank - 1];
    injected.ctx = g->more[rank - 1];
    injected.gate = &t->shards.x.gate;
    injected.submit = injected.ctx->vk.QueueSubmit2;
    injected.left = left;
    injected.fault = fault;
    injected.ctx->vk.QueueSubmit2 = fail_once;
}

static void a_lost_device_ends_the_run_of_all(void **state)
{
    rig *r = rig_of(state);
    char path[256];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "checkpoint"));
    const vkt_fit_params fit = { .epochs = 3, .checkpoint = path };
    group one = group_make(r, group_params(r), 1);
    rig_fit(one.t, &(vkt_fit_params){ .epochs = 3 });
    for (uint32_t left = 20; left < 60; left += 13) {
        group g = group_make(r, group_params(r), RANKS);
        rig_fit(g.t, &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
        inject(&g, 3, VK_ERROR_DEVICE_LOST, left);
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_trainer_fit(g.t, &fit), VKT_E_PEER);
        assert_int_equal(injected.left, 0);
        vkt_test_error_contains("rank 3 has failed: ");
        assert_int_equal(vkt_trainer_save(g.t, path), VKT_E_STATE);
        group_free(&g);
        vkt_test_expect_errors(false);
        group again = group_make(r, group_params(r), 2);
        assert_int_equal(vkt_trainer_resume(again.t, path), VKT_OK);
        assert_int_equal(vkt_trainer_position(again.t).batch, 0); /* at the end of the last complete epoch */
        rig_fit(again.t, &fit);
        group_same(one.t, again.t);
        group_free(&again);
    }
    group_free(&one);
}

/* In each fit, the driver refuses a different submission. The device still works. After a resume from the last
 * checkpoint, the trainer must end with the same bits as a run without failures. */
static void a_refused_submission_ends_the_run_of_all(void **state)
{
    rig *r = rig_of(state);
    char path[256];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "checkpoint"));
    const vkt_fit_params fit = { .epochs = 2, .checkpoint = path };
    group one = group_make(r, group_params(r), 1), g = group_make(r, group_params(r), 2);
    rig_fit(one.t, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(g.t, &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
    vkt_test_expect_errors(true);
    uint32_t failures = 0;
    for (uint32_t left = 1; left < 40; left += 3) {
        inject(&g, 1, VK_ERROR_OUT_OF_DEVICE_MEMORY, left);
        const vkt_result result = vkt_trainer_fit(g.t, &(vkt_fit_params){ .epochs = 2 });
        g.more[0]->vk.QueueSubmit2 = injected.submit;
        assert_true(result == VKT_E_PEER || result == VKT_E_DEVICE_MEMORY);
        vkt_test_error_contains("rank 1 has failed: ");
        assert_int_equal(vkt_trainer_resume(g.t, path), VKT_OK);
        failures++;
    }
    vkt_test_expect_errors(false);
    assert_true(failures > 10);
    rig_fit(g.t, &fit);
    group_same(one.t, g.t);
    group_free(&g);
    group_free(&one);
}

/* One host allocation of a fit fails, in one of the two ranks. The fit must end in both ranks. After a resume, the
 * trainer must end with the same bits as a run without failures. */
static void a_failed_allocation_ends_the_run_of_all(void **state)
{
    rig *r = rig_of(state);
    char path[256];
    snprintf(path, sizeof path, "%s", vkt_temp_dir_file(&r->dir, "checkpoint"));
    group one = group_make(r, group_params(r), 1), g = group_make(r, group_params(r), 2);
    rig_fit(one.t, &(vkt_fit_params){ .epochs = 2 });
    rig_fit(g.t, &(vkt_fit_params){ .epochs = 1, .checkpoint = path });
    unsigned n = 1;
    for (bool failed = true; failed; n += 7) {
        vkt_test_fail_allocation(n);
        const vkt_result result = vkt_trainer_fit(g.t, &(vkt_fit_params){ .epochs = 2 });
        failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_true(failed ? result == VKT_E_PEER || result == VKT_E_NOMEM : result == VKT_OK);
        if (failed) assert_int_equal(vkt_trainer_resume(g.t, path), VKT_OK);
    }
    assert_true(n > 20);
    group_same(one.t, g.t);
    group_free(&g);
    group_free(&one);
}

/* ---- a rank that hangs ---- */

typedef struct hang {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over;
} hang;

static bool wait_for_the_end(void *user)
{
    hang *h = user;
    pthread_mutex_lock(&h->lock);
    while (!h->is_over) pthread_cond_wait(&h->over, &h->lock);
    pthread_mutex_unlock(&h->lock);
    return false;
}

static void *fit_one(void *arg)
{
    hand *one = arg;
    one->result = vkt_trainer_fit(one->t, &one->fit);
    return NULL;
}

/* Rank 1 stays in a callback until the fits of all other ranks have ended. */
static void a_rank_that_hangs_is_named(void **state)
{
    rig *r = rig_of(state);
    hands h = hands_make(r, RANKS, 1);
    hang k = { .lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER };
    for (uint32_t i = 0; i < RANKS; i++) {
        vkt_fit_params p = { .epochs = 2 };
        if (i == 1) p.callbacks = (vkt_fit_callbacks){ .user = &k, .stop = wait_for_the_end };
        hands_train(&h, i, group_params(r), &p);
    }
    const unsigned before = vkt_test_errors();
    vkt_test_expect_errors(true);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&h.rank[i].thread, NULL, fit_one, &h.rank[i]), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        if (i != 1) pthread_join(h.rank[i].thread, NULL);
    pthread_mutex_lock(&k.lock);
    k.is_over = true;
    pthread_cond_signal(&k.over);
    pthread_mutex_unlock(&k.lock);
    pthread_join(h.rank[1].thread, NULL);
    vkt_test_expect_errors(false);
    for (uint32_t i = 0; i < RANKS; i++) assert_int_equal(h.rank[i].result, VKT_E_PEER);
    assert_int_equal(vkt_test_errors() - before, 1);
    vkt_test_error_contains("rank 1 does not answer");
    hands_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(silent_corruption_is_found_by_its_rank),
        rig_test(no_checkpoint_is_written_of_ranks_that_differ),
        rig_test(sound_ranks_are_not_accused),
        rig_test(a_lost_device_ends_the_run_of_all),
        rig_test(a_refused_submission_ends_the_run_of_all),
        rig_test(a_failed_allocation_ends_the_run_of_all),
        rig_test(a_rank_that_hangs_is_named),
    };
    return cmocka_run_group_tests_name("ranks that fail", tests, NULL, NULL);
}
