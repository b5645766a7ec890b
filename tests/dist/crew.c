/* dist/crew.c - see crew.h. */
#include "dist/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <pthread.h>
#include <time.h>

typedef struct hand {
    pthread_t thread;
    vkt_transport transport;
    crew_job job;
    void *user;
    vkt_result result;
} hand;

static void *work(void *arg)
{
    hand *h = arg;
    h->result = h->job(&h->transport, h->user);
    return NULL;
}

void crew_run(const vkt_host *h, uint32_t ranks, double timeout_seconds, crew_job job, void *user, vkt_result *result)
{
    vkt_thread_group *group;
    hand hands[CREW_MOST];
    assert_true(ranks <= CREW_MOST);
    assert_int_equal(vkt_thread_group_create(h, ranks, timeout_seconds, &group), VKT_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        hands[r] = (hand){ .transport = vkt_thread_group_transport(group, r), .job = job, .user = user };
        assert_int_equal(pthread_create(&hands[r].thread, NULL, work, &hands[r]), 0);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        pthread_join(hands[r].thread, NULL);
        result[r] = hands[r].result;
    }
    vkt_thread_group_destroy(&group);
    assert_null(group);
}

void crew_run_ok(const vkt_host *h, uint32_t ranks, crew_job job, void *user)
{
    vkt_result result[CREW_MOST];
    crew_run(h, ranks, 0, job, user, result);
    for (uint32_t r = 0; r < ranks; r++) assert_int_equal(result[r], VKT_OK);
}

void crew_pause_ms(uint32_t ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 }, NULL);
}
