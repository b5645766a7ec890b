/* Tests the emulated cluster: the data received, a latency of 0, the least time of a message, the numbers of messages
 * and bytes, a fault, and wrong arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "dist/dist.h"
#include "support/host.h"

static vkt_emulation *make(uint32_t ranks, double latency, double bytes_per_second)
{
    const vkt_host h = vkt_test_host();
    const vkt_emulation_params params = { ranks, latency, bytes_per_second };
    vkt_emulation *e;
    assert_int_equal(vkt_emulation_create(&h, &params, &e), VKT_OK);
    return e;
}

static void it_receives_what_it_sent(void **state)
{
    vkt_emulation *e = make(4, 0, 0);
    const vkt_transport t = vkt_emulation_transport(e);
    unsigned char send[100], receive[100];
    (void)state;
    assert_int_equal(t.rank, 0);
    assert_int_equal(t.ranks, 4);
    for (size_t i = 0; i < sizeof send; i++) send[i] = (unsigned char)(3 * i);
    memset(receive, 0xaa, sizeof receive);
    assert_int_equal(t.exchange(t.user, 3, send, receive, 99), VKT_OK);
    assert_memory_equal(receive, send, 99);
    assert_int_equal(receive[99], 0xaa);
    assert_int_equal(t.exchange(t.user, 1, NULL, NULL, 0), VKT_OK);
    assert_int_equal(t.barrier(t.user), VKT_OK);
    vkt_emulation_destroy(&e);
}

static void a_latency_of_zero_may_be_named(void **state)
{
    static unsigned char byte[1];
    vkt_emulation *e = make(2, (double)VKT_ZERO, 0);
    const vkt_transport t = vkt_emulation_transport(e);
    (void)state;
    assert_int_equal(t.exchange(t.user, 1, byte, byte, 0), VKT_OK);
    vkt_emulation_destroy(&e);
}

static void a_message_takes_its_time(void **state)
{
    static unsigned char send[20000], receive[20000];
    vkt_emulation *e = make(8, 0.003, 1e6);
    const vkt_transport t = vkt_emulation_transport(e);
    (void)state;
    uint64_t start_ns = vkt_now_ns();
    assert_int_equal(t.exchange(t.user, 4, send, receive, sizeof send), VKT_OK);
    assert_true(vkt_now_ns() - start_ns >= 23000000); /* latency 3 ms, data 20 ms */
    start_ns = vkt_now_ns();
    assert_int_equal(t.barrier(t.user), VKT_OK);
    assert_true(vkt_now_ns() - start_ns >= 9000000); /* three rounds of 3 ms */
    vkt_emulation_destroy(&e);
}

static void a_sum_has_the_traffic_of_the_cluster(void **state)
{
    enum { N = 4096 };
    static float data[N], scratch[N / 2];
    (void)state;
    for (uint32_t ranks = 1, rounds = 0; ranks <= VKT_MAX_SHARDS; ranks *= 2, rounds++) {
        vkt_emulation *e = make(ranks, 1e-5, 0);
        const vkt_transport t = vkt_emulation_transport(e);
        vkt_traffic traffic = { 0 };
        data[0] = 1;
        assert_int_equal(vkt_all_reduce_counted(&t, data, N, VKT_WIRE_F32, scratch, &traffic), VKT_OK);
        assert_int_equal(traffic.messages, 2 * rounds);
        assert_int_equal(traffic.sent_bytes, (uint64_t)2 * N * (ranks - 1) / ranks * sizeof *data);
        assert_true(traffic.exchange_ns >= 2 * rounds * 10000);
        vkt_emulation_destroy(&e);
    }
}

static void a_fault_ends_it(void **state)
{
    vkt_emulation *e = make(2, 0, 0);
    const vkt_transport t = vkt_emulation_transport(e);
    (void)state;
    vkt_test_expect_errors(true);
    t.fault(t.user, "the disk is full");
    t.fault(t.user, "again");
    vkt_test_error_contains("rank 0 has failed: the disk is full");
    assert_int_equal(vkt_test_errors(), 1);
    assert_int_equal(t.barrier(t.user), VKT_E_PEER);
    assert_int_equal(t.exchange(t.user, 1, NULL, NULL, 0), VKT_E_PEER);
    vkt_emulation_destroy(&e);
}

static void wrong_arguments_are_errors(void **state)
{
    const vkt_host h = vkt_test_host();
    const vkt_emulation_params bad[] = { { 0 },
                                         { .ranks = 3 },
                                         { .ranks = 2 * VKT_MAX_SHARDS },
                                         { 2, -1, 0 },
                                         { 2, NAN, 0 },
                                         { 2, 0, -1 },
                                         { 2, INFINITY, 0.0 },
                                         { 2, 0, INFINITY },
                                         { UINT32_MAX, 0, 0 } };
    vkt_emulation *e;
    unsigned char byte[1] = { 0 };
    (void)state;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        assert_int_equal(vkt_emulation_create(&h, &bad[i], &e), VKT_E_ARG);
        assert_null(e);
    }
    assert_int_equal(vkt_emulation_create(&h, NULL, &e), VKT_E_ARG);
    assert_int_equal(vkt_emulation_create(&h, &bad[1], NULL), VKT_E_ARG);
    assert_null(vkt_emulation_transport(NULL).exchange);
    vkt_test_fail_allocation(1);
    assert_int_equal(vkt_emulation_create(&h, &(vkt_emulation_params){ .ranks = 2 }, &e), VKT_E_NOMEM);
    assert_null(e);
    vkt_test_fail_allocation(0);
    e = make(2, 0, 0);
    const vkt_transport t = vkt_emulation_transport(e);
    assert_int_equal(t.exchange(t.user, 0, byte, byte, 1), VKT_E_ARG);
    assert_int_equal(t.exchange(t.user, 2, byte, byte, 1), VKT_E_ARG);
    assert_int_equal(t.exchange(t.user, 1, NULL, byte, 1), VKT_E_ARG);
    vkt_emulation_destroy(&e);
    vkt_emulation_destroy(&e);
    vkt_emulation_destroy(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_receives_what_it_sent), TEST(a_message_takes_its_time),   TEST(a_sum_has_the_traffic_of_the_cluster),
        TEST(a_fault_ends_it),          TEST(wrong_arguments_are_errors), TEST(a_latency_of_zero_may_be_named),
    };
    return cmocka_run_group_tests_name("emulated cluster", tests, NULL, NULL);
}
