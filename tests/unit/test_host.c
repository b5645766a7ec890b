/* Tests support/host.h, the vkt_host of the tests. This host counts blocks of memory and messages, makes
 * a selected allocation fail, and finds leaks and writes past the end of a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/base.h"
#include "support/host.h"

static void live_blocks_follow_every_resize(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    char *p = vkt_alloc(&h, 10);
    p = vkt_realloc(&h, p, 100);
    assert_int_equal(vkt_test_live_blocks(), 1);
    assert_int_equal(vkt_test_live_bytes(), 100);
    assert_int_equal(p[9], 0);
    vkt_free(&h, p);
    assert_int_equal(vkt_test_live_blocks(), 0);
    assert_int_equal(vkt_test_allocations(), 2);
}

static void exactly_the_nth_allocation_fails(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    for (unsigned n = 1; n <= 4; n++) {
        void *p[3];
        vkt_test_fail_allocation(n);
        for (unsigned i = 0; i < 3; i++) p[i] = vkt_alloc(&h, 8);
        assert_int_equal(vkt_test_allocation_failed(), n <= 3);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(p[i] == NULL, i + 1 == n);
            vkt_free(&h, p[i]);
        }
    }
}

static void validation_lines_are_distinguished_from_other_errors(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_test_expect_errors(true);
    vkt_fail(&h, VKT_E_ARG, "batch: want 1 or more, got %d", 0);
    vkt_log_line(&h, VKT_LOG_WARN, "validation: only a warning");
    assert_int_equal(vkt_test_errors(), 1);
    assert_int_equal(vkt_test_messages(), 0);
    vkt_test_error_contains("got 0");
    vkt_log_line(&h, VKT_LOG_ERROR, "validation: planted by this test");
    assert_int_equal(vkt_test_messages(), 1);
    assert_false(vkt_test_is_clean());
    assert_true(vkt_test_is_clean()); /* a fault is reported only once */
}

static void leaks_and_overruns_are_not_clean(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    void *leak = vkt_alloc(&h, 8);
    assert_false(vkt_test_is_clean());
    vkt_free(&h, leak);
    char *p = vkt_alloc(&h, 8);
    volatile size_t end = 8;
    const char kept = p[end];
    /* p[end] is the first guard byte that the host writes behind the block. The host does not free a block with a
     * changed guard byte, and vkt_test_is_clean reports the block. */
    p[end] = 1;
    vkt_free(&h, p);
    assert_false(vkt_test_is_clean());
    p[end] = kept;
    vkt_free(&h, p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(live_blocks_follow_every_resize, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(exactly_the_nth_allocation_fails, vkt_test_setup, vkt_test_teardown),
        cmocka_unit_test_setup_teardown(validation_lines_are_distinguished_from_other_errors, vkt_test_setup,
                                        vkt_test_teardown),
        cmocka_unit_test_setup_teardown(leaks_and_overruns_are_not_clean, vkt_test_setup, vkt_test_teardown),
    };
    return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
