/* Tests vkt_alphabet: the characters of a text and their ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "support/host.h"
#include "vktrain/text.h"

static void characters_are_numbered(void **state)
{
    static const char text[] = "b\xc3\xa4\xf0\x9f\x8d\xb5 a\xe2\x82\xac"
                               "ab";
    static const char *const sorted[] = { " ", "a", "b", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x8d\xb5" };
    static const uint32_t want[] = { 2, 3, 5, 0, 1, 4, 1, 2 };
    const vkt_host h = vkt_test_host();
    vkt_alphabet *a, *again;
    uint32_t ids[8], n;
    char all[32] = "";
    (void)state;
    assert_int_equal(vkt_alphabet_create(&h, text, strlen(text), &a), VKT_OK);
    assert_int_equal(vkt_alphabet_size(a), 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_string_equal(vkt_alphabet_character(a, i), sorted[i]);
        strcat(all, sorted[i]);
    }
    assert_null(vkt_alphabet_character(a, 6));
    assert_int_equal(vkt_alphabet_encode(a, text, strlen(text), ids, 8, &n), VKT_OK);
    assert_int_equal(n, 8);
    assert_memory_equal(ids, want, sizeof want);
    assert_int_equal(vkt_alphabet_encode(a, text, strlen(text), ids, 0, &n), VKT_OK);
    assert_int_equal(n, 8);
    /* The alphabet has no c. vkt_alphabet_encode returns an error and logs no message. */
    assert_int_equal(vkt_alphabet_encode(a, "abc", 3, ids, 8, &n), VKT_E_FORMAT);
    assert_int_equal(n, 2);
    assert_int_equal(vkt_alphabet_create(&h, all, strlen(all), &again), VKT_OK);
    assert_int_equal(vkt_alphabet_size(again), 6);
    vkt_alphabet_destroy(&a);
    vkt_alphabet_destroy(&again);
    assert_null(a);
    assert_int_equal(vkt_alphabet_create(&h, "a\0b", 3, &a), VKT_OK); /* NUL is a valid character */
    assert_int_equal(vkt_alphabet_size(a), 3);
    vkt_alphabet_destroy(&a);
}

static void what_is_not_utf8_is_refused(void **state)
{
    static const char *const wrong[] = { "ab\xff", "ab\xc3", "ab\xc0\x80", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80" };
    const vkt_host h = vkt_test_host();
    vkt_alphabet *a;
    (void)state;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(vkt_alphabet_create(&h, wrong[i], strlen(wrong[i]), &a), VKT_E_FORMAT);
        vkt_test_error_contains("byte 2 is not UTF-8");
        assert_null(a);
    }
    assert_int_equal(vkt_alphabet_create(&h, "", 0, &a), VKT_E_FORMAT);
    for (unsigned n = 1, failed = 1; failed; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result status = vkt_alphabet_create(&h, "tea", 3, &a);
        failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(status, failed ? VKT_E_NOMEM : VKT_OK);
        vkt_alphabet_destroy(&a);
    }
    vkt_test_expect_errors(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(characters_are_numbered),
                                        cmocka_unit_test(what_is_not_utf8_is_refused) };
    return cmocka_run_group_tests_name("alphabet", tests, NULL, NULL);
}
