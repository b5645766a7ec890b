/* Checks that the orders of samples in epochs are permutations and are evenly distributed. For a given number of
 * samples, an order must depend on seed and epoch alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/base.h"
#include "vktrain/data.h"

static void orders_are_pinned(void **state)
{
    (void)state;
    /* An independent program in Python computed these orders, with Philox4x32-10, Lemire's reduction and Durstenfeld's
     * shuffle. If an order changed, a run that resumes from an old checkpoint would get other batches. */
    static const struct pin {
        uint64_t seed;
        uint32_t epoch, want[10];
    } pins[] = {
        { 1, 0, { 6, 7, 0, 4, 5, 9, 8, 2, 3, 1 } },
        { 1, 1, { 4, 0, 2, 5, 9, 1, 7, 3, 6, 8 } },
        { (UINT64_C(1) << 32) + 1, 0, { 9, 7, 6, 5, 8, 1, 0, 3, 4, 2 } },
    };
    for (size_t i = 0; i < VKT_COUNT(pins); i++) {
        uint32_t order[10];
        vkt_shuffle(order, 10, pins[i].seed, pins[i].epoch);
        assert_memory_equal(order, pins[i].want, sizeof order);
    }
    uint32_t *order = calloc(60000, sizeof *order);
    assert_non_null(order);
    vkt_shuffle(order, 60000, 7, 3);
    const uint32_t head[] = { 54898, 3416, 51565, 54495, 4072, 33235, 47299, 227 };
    assert_memory_equal(order, head, sizeof head);
    assert_true(order[59998] == 13676 && order[59999] == 29224);
    free(order);
}

static void every_order_is_a_permutation(void **state)
{
    (void)state;
    enum { MAX = 2000 };
    static uint32_t order[MAX + 1];
    for (uint32_t n = 0; n <= MAX; n = n < 20 ? n + 1 : n * 3 / 2) {
        static bool seen[MAX];
        memset(seen, 0, sizeof seen);
        order[n] = 12345;
        vkt_shuffle(order, n, 99, n);
        assert_int_equal(order[n], 12345);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(order[i] < n && !seen[order[i]]);
            seen[order[i]] = true;
        }
        vkt_order_identity(order, n);
        for (uint32_t i = 0; i < n; i++) assert_int_equal(order[i], i);
    }
}

static void epochs_and_seeds_differ_and_repeat(void **state)
{
    (void)state;
    enum { N = 500 };
    uint32_t a[N], again[N], epoch[N], seed[N];
    vkt_shuffle(a, N, 5, 8);
    vkt_shuffle(epoch, N, 5, 9);
    vkt_shuffle(seed, N, 6, 8);
    vkt_shuffle(again, N, 5, 8);
    assert_memory_equal(a, again, sizeof a);
    int same_epoch = 0, same_seed = 0;
    for (int i = 0; i < N; i++) {
        same_epoch += a[i] == epoch[i];
        same_seed += a[i] == seed[i];
    }
    assert_true(same_epoch < 10 && same_seed < 10); /* about 1 is expected; Poisson: P(10 or more) = 1e-7 */
}

static void all_permutations_of_four_are_equally_likely(void **state)
{
    (void)state;
    enum { DRAWS = 24000, EACH = DRAWS / 24 };
    int counts[256] = { 0 };
    for (uint32_t epoch = 0; epoch < DRAWS; epoch++) {
        uint32_t o[4];
        vkt_shuffle(o, 4, 3, epoch);
        counts[o[0] | o[1] << 2 | o[2] << 4 | o[3] << 6]++;
    }
    double chi2 = 0;
    int found = 0;
    for (int i = 0; i < 256; i++) {
        if (counts[i] == 0) continue;
        found++;
        chi2 += (double)((counts[i] - EACH) * (counts[i] - EACH)) / EACH;
    }
    assert_int_equal(found, 24);
    assert_true(chi2 < 58.6); /* 23 degrees of freedom, p = 6e-5 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_pinned),
        cmocka_unit_test(every_order_is_a_permutation),
        cmocka_unit_test(epochs_and_seeds_differ_and_repeat),
        cmocka_unit_test(all_permutations_of_four_are_equally_likely),
    };
    return cmocka_run_group_tests_name("shuffle", tests, NULL, NULL);
}
