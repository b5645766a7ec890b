/* Tests the thread group: ordered exchanges of any size, barriers, a fault, ranks that do not answer, arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "dist/crew.h"
#include "support/host.h"

enum { RANKS = 8, ROUNDS = 300, MOST_BYTES = 5000 };

/* ---- what goes well ---- */

static unsigned char byte_of(uint32_t from, uint32_t to, uint32_t round, size_t i)
{
    return (unsigned char)(from * 31 + to * 7 + round * 3 + i);
}

/* Exchanges messages of many sizes with all other ranks, one after the other. Returns VKT_E_WRONG if data are wrong. */
static vkt_result exchange_with_all(const vkt_transport *t, void *user)
{
    unsigned char send[MOST_BYTES], receive[MOST_BYTES];
    (void)user;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t mask = 1 + round % (t->ranks - 1), peer = t->rank ^ mask;
        const size_t bytes = (size_t)round * 17 % MOST_BYTES;
        for (size_t i = 0; i < bytes; i++) send[i] = byte_of(t->rank, peer, round, i);
        VKT_TRY(t->exchange(t->user, peer, send, receive, bytes));
        for (size_t i = 0; i < bytes; i++)
            if (receive[i] != byte_of(peer, t->rank, round, i)) return VKT_E_WRONG;
        memset(send, 0xee, bytes); /* exchange has returned, so the peer must have copied the data */
        if (round % 50 == 0) VKT_TRY(t->barrier(t->user));
    }
    return t->exchange(t->user, t->rank ^ 1, NULL, NULL, 0);
}

static void exchanges_are_in_order(void **state)
{
    const vkt_host h = vkt_test_host();
    (void)state;
    for (uint32_t ranks = 2; ranks <= CREW_MOST; ranks *= 2) crew_run_ok(&h, ranks, exchange_with_all, NULL);
}

static vkt_result count_in_step(const vkt_transport *t, void *user)
{
    atomic_uint *count = user;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        atomic_fetch_add(count, 1);
        VKT_TRY(t->barrier(t->user));
        if (atomic_load(count) != round * t->ranks) return VKT_E_WRONG;
        VKT_TRY(t->barrier(t->user));
    }
    return VKT_OK;
}

static void a_barrier_waits_for_all(void **state)
{
    const vkt_host h = vkt_test_host();
    (void)state;
    for (uint32_t ranks = 1; ranks <= CREW_MOST; ranks *= 4) {
        atomic_uint count = 0;
        crew_run_ok(&h, ranks, count_in_step, &count);
    }
}

/* ---- what goes wrong: every rank gets VKT_E_PEER, after one message ---- */

/* Checks that one message was logged. Rank `except` must have returned VKT_OK, and all other ranks VKT_E_PEER. */
static void all_failed(const vkt_result *result, uint32_t except, const char *message)
{
    for (uint32_t r = 0; r < RANKS; r++) assert_int_equal(result[r], r == except ? VKT_OK : VKT_E_PEER);
    vkt_test_error_contains(message);
    assert_int_equal(vkt_test_errors(), 1);
}

/* Rank 7 calls fault while the other ranks wait. Ranks 1 and 6 wait for an exchange with rank 7. Ranks 0 and 2 to 5
 * wait in the barrier. */
static vkt_result fail_last(const vkt_transport *t, void *user)
{
    unsigned char send[4] = { 0 }, receive[4];
    (void)user;
    if (t->rank == t->ranks - 1) {
        crew_pause_ms(20);
        t->fault(t->user, "the disk is full");
        t->fault(t->user, "a second reason is not reported");
        return t->barrier(t->user) == VKT_E_PEER ? VKT_OK : VKT_E_WRONG;
    }
    const vkt_result r = t->rank == 0   ? t->barrier(t->user)
                         : t->rank == 1 ? t->exchange(t->user, t->ranks - 1, send, receive, 4)
                                        : t->exchange(t->user, t->rank ^ 1, send, receive, 4);
    if (r == VKT_OK) return t->barrier(t->user); /* ranks 2 to 5 have exchanged in pairs */
    return t->exchange(t->user, t->rank ^ 1, send, receive, 4) == VKT_E_PEER ? r : VKT_E_WRONG;
}

static void a_fault_ends_all_ranks(void **state)
{
    const vkt_host h = vkt_test_host();
    vkt_result result[CREW_MOST];
    (void)state;
    vkt_test_expect_errors(true);
    crew_run(&h, RANKS, 0, fail_last, NULL, result);
    all_failed(result, RANKS - 1, "rank 7 has failed: the disk is full");
}

/* Rank 0 waits for rank 1, rank 1 for rank 2, and so on up to rank 4, which waits for rank 5. Rank 5 returns at once,
 * like a thread that has ended. Ranks 6 and 7 wait in the barrier. */
static vkt_result wait_in_a_chain(const vkt_transport *t, void *user)
{
    unsigned char send[4] = { 0 }, receive[4];
    (void)user;
    if (t->rank == 5) return VKT_OK;
    crew_pause_ms(t->rank == 4 ? 100 : 0); /* rank 4, which waits for rank 5, begins to wait last */
    return t->rank < 5 ? t->exchange(t->user, t->rank + 1, send, receive, 4) : t->barrier(t->user);
}

static void the_end_of_a_chain_is_named(void **state)
{
    const vkt_host h = vkt_test_host();
    vkt_result result[CREW_MOST];
    char message[100];
    (void)state;
    vkt_test_expect_errors(true);
    crew_run(&h, RANKS, 4, wait_in_a_chain, NULL, result);
    all_failed(result, 5, "rank 5 does not answer: rank ");
    uint32_t culprit, waiting;
    double seconds;
    snprintf(message, sizeof message, "%s", vkt_test_last_error());
    assert_int_equal(
        sscanf(message, "rank %u does not answer: rank %u waits for it since %lf s", &culprit, &waiting, &seconds), 3);
    /* Ranks 6 and 7 wait for rank 0 in the barrier, rank 0 for rank 1, and so on. So only rank 4 waits for rank 5. */
    assert_int_equal(waiting, 4);
    assert_true(seconds >= 4);
}

static vkt_result come_late(const vkt_transport *t, void *user)
{
    unsigned char send[4] = { 0 }, receive[4];
    (void)user;
    while (t->rank == 0 && vkt_test_errors() == 0) crew_pause_ms(1);
    if (t->rank == 0) return t->exchange(t->user, 1, send, receive, 4) == VKT_E_PEER ? VKT_OK : VKT_E_WRONG;
    return t->rank == 1 ? t->exchange(t->user, 0, send, receive, 4) : t->barrier(t->user);
}

static void a_rank_that_comes_late_gets_the_failure_too(void **state)
{
    const vkt_host h = vkt_test_host();
    vkt_result result[CREW_MOST];
    (void)state;
    vkt_test_expect_errors(true);
    crew_run(&h, RANKS, 0.2, come_late, NULL, result);
    all_failed(result, 0, "rank 0 does not answer: rank ");
}

/* Exchanges in a ring: each rank waits for the next rank. */
static vkt_result wait_in_a_ring(const vkt_transport *t, void *user)
{
    unsigned char send[4] = { 0 }, receive[4];
    (void)user;
    return t->exchange(t->user, (t->rank + 1) % t->ranks, send, receive, 4);
}

static vkt_result disagree(const vkt_transport *t, void *user)
{
    unsigned char send[8] = { 0 }, receive[8];
    (void)user;
    return t->rank < 2 ? t->exchange(t->user, t->rank ^ 1, send, receive, 4 + 4 * t->rank) : t->barrier(t->user);
}

static void calls_that_do_not_match_are_found(void **state)
{
    const vkt_host h = vkt_test_host();
    vkt_result result[CREW_MOST];
    (void)state;
    vkt_test_expect_errors(true);
    crew_run(&h, RANKS, 0.2, wait_in_a_ring, NULL, result);
    all_failed(result, UINT32_MAX, "wait for each other");
    crew_run(&h, RANKS, 0, disagree, NULL, result);
    for (uint32_t r = 0; r < RANKS; r++) assert_int_equal(result[r], VKT_E_PEER);
    vkt_test_error_contains(" has failed: it exchanges ");
}

/* The ranks exchange large buffers on their stacks, and rank 3 fails before one of its exchanges. No rank may copy from
 * the stack of a rank that has returned. Sanitizers find such a copy. */
static vkt_result fail_while_others_copy(const vkt_transport *t, void *user)
{
    unsigned char send[1 << 16], receive[1 << 16];
    memset(send, (int)t->rank, sizeof send);
    for (uint32_t round = 0; round < 200; round++) {
        if (t->rank == 3 && round == *(const uint32_t *)user) {
            t->fault(t->user, "it is the test's turn");
            return VKT_E_PEER;
        }
        VKT_TRY(t->exchange(t->user, t->rank ^ (1u << round % 3), send, receive, sizeof send));
    }
    return VKT_OK;
}

static void a_failure_waits_for_copies(void **state)
{
    const vkt_host h = vkt_test_host();
    vkt_result result[CREW_MOST];
    (void)state;
    vkt_test_expect_errors(true);
    for (uint32_t round = 0; round < 40; round++) {
        crew_run(&h, RANKS, 0, fail_while_others_copy, &round, result);
        assert_int_equal(result[3], VKT_E_PEER);
    }
    vkt_test_error_contains("rank 3 has failed: it is the test's turn");
    assert_int_equal(vkt_test_errors(), 40);
}

/* ---- arguments and memory ---- */

static void wrong_arguments_are_errors(void **state)
{
    const vkt_host h = vkt_test_host();
    static const uint32_t bad_ranks[] = { 0, 3, 6, 2 * VKT_MAX_SHARDS, UINT32_MAX };
    static const double bad_seconds[] = { -1, NAN, INFINITY };
    vkt_thread_group *group = NULL;
    unsigned char byte[1];
    (void)state;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad_ranks); i++) {
        assert_int_equal(vkt_thread_group_create(&h, bad_ranks[i], 0, &group), VKT_E_ARG);
        vkt_test_error_contains("want a power of two of at most 4096 ranks");
        assert_null(group);
    }
    for (size_t i = 0; i < VKT_COUNT(bad_seconds); i++)
        assert_int_equal(vkt_thread_group_create(&h, 2, bad_seconds[i], &group), VKT_E_ARG);
    assert_int_equal(vkt_thread_group_create(&h, 2, 0, NULL), VKT_E_ARG);
    assert_int_equal(vkt_thread_group_create(&h, VKT_MAX_SHARDS, 0, &group), VKT_OK);
    assert_null(vkt_thread_group_transport(group, VKT_MAX_SHARDS).exchange);
    assert_null(vkt_thread_group_transport(NULL, 0).exchange);
    const vkt_transport t = vkt_thread_group_transport(group, 5);
    assert_int_equal(t.rank, 5);
    assert_int_equal(t.ranks, VKT_MAX_SHARDS);
    assert_int_equal(t.exchange(t.user, 5, byte, byte, 1), VKT_E_ARG);
    assert_int_equal(t.exchange(t.user, VKT_MAX_SHARDS, byte, byte, 1), VKT_E_ARG);
    assert_int_equal(t.exchange(t.user, 4, NULL, byte, 1), VKT_E_ARG);
    vkt_thread_group_destroy(&group);
    vkt_thread_group_destroy(&group);
    vkt_thread_group_destroy(NULL);
}

static void no_memory_is_an_error(void **state)
{
    const vkt_host h = vkt_test_host();
    vkt_thread_group *group;
    (void)state;
    for (unsigned n = 1;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = vkt_thread_group_create(&h, 4, 0, &group);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(r, VKT_E_NOMEM);
        assert_null(group);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    vkt_test_fail_allocation(0);
    vkt_thread_group_destroy(&group);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(exchanges_are_in_order),
        TEST(a_barrier_waits_for_all),
        TEST(a_fault_ends_all_ranks),
        TEST(the_end_of_a_chain_is_named),
        TEST(a_rank_that_comes_late_gets_the_failure_too),
        TEST(calls_that_do_not_match_are_found),
        TEST(a_failure_waits_for_copies),
        TEST(wrong_arguments_are_errors),
        TEST(no_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("thread group", tests, NULL, NULL);
}
