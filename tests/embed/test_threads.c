/* A frame loop runs on one thread and training on another. Both threads use one queue, under the application's lock.
 * ThreadSanitizer reports data that the two threads share without the lock. */
#include <pthread.h>

#include "embed/app.h"

enum { STEPS = 30 };

typedef struct frame_loop {
    app *a;
    pthread_mutex_t lock;
    bool stop; /* guarded by the lock */
    unsigned frames;
} frame_loop;

static void lock_queue(void *user)
{
    pthread_mutex_lock(user);
}

static void unlock_queue(void *user)
{
    pthread_mutex_unlock(user);
}

/* Submits until it is stopped, and waits for each frame outside of the lock. */
static void *draw(void *user)
{
    frame_loop *l = user;
    for (bool stop = false; !stop;) {
        pthread_mutex_lock(&l->lock);
        stop = l->stop;
        app_submit(l->a, VK_NULL_HANDLE, NULL, 0);
        pthread_mutex_unlock(&l->lock);
        app_wait(l->a);
        l->frames++;
    }
    return NULL;
}

static vkt_ctx *adopt_locked(app *a, frame_loop *l)
{
    vkt_ctx *ctx = NULL;
    vkt_adopt_params offer = app_offer(a);
    offer.lock_queue = lock_queue;
    offer.unlock_queue = unlock_queue;
    offer.lock_user = &l->lock;
    assert_int_equal(vkt_ctx_adopt(&offer, &(vkt_ctx_params){ .no_pipeline_cache = true }, &a->host, &ctx), VKT_OK);
    return ctx;
}

/* Makes step s: one whole run if s is odd, else a run that vkt_step_budget submits in parts. */
static void step(net *n, uint32_t s)
{
    const vkt_run run = net_run(s);
    vkt_step_progress progress = { .completed = s % 2 };
    if (s % 2) assert_int_equal(vkt_program_run(n->p, &run, NULL), VKT_OK);
    while (!progress.completed) {
        uint64_t left_ns = 1000000;
        assert_int_equal(vkt_step_budget(n->p, &run, NULL, &left_ns, &progress), VKT_OK);
    }
}

static void two_threads_share_a_queue(void **state)
{
    (void)state;
    app a;
    net n;
    float want[NET_PARAMS], got[NET_PARAMS];
    frame_loop l = { .a = &a };
    pthread_t thread;
    app_open(&a, NULL);
    pthread_mutex_init(&l.lock, NULL);
    vkt_ctx *ctx = adopt_locked(&a, &l);
    net_expected(ctx, STEPS, want);
    assert_int_equal(pthread_create(&thread, NULL, draw, &l), 0);
    net_make(&n, ctx, NULL, NULL);
    for (uint32_t s = 0; s < STEPS; s++) step(&n, s);
    net_params(&n, got);
    pthread_mutex_lock(&l.lock);
    l.stop = true;
    pthread_mutex_unlock(&l.lock);
    pthread_join(thread, NULL);
    assert_memory_equal(got, want, sizeof want);
    assert_true(l.frames > 0);
    net_free(&n);
    vkt_ctx_destroy(&ctx);
    pthread_mutex_destroy(&l.lock);
    app_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_threads_share_a_queue, vkt_test_setup, vkt_test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
