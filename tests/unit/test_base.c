/* Tests engine/base: results, text, and random numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "base/base.h"
#include "base/philox.h"

static void every_result_has_a_name_and_a_text(void **state)
{
    (void)state;
    for (int r = 0; r < VKT_RESULT_COUNT; r++) {
        assert_true(strncmp(vkt_result_name((vkt_result)r), "VKT_", 4) == 0);
        assert_true(strlen(vkt_result_text((vkt_result)r)) > 3);
    }
    assert_string_equal(vkt_result_name((vkt_result)999), "VKT_E_?");
}

static void philox_equals_the_published_vectors(void **state)
{
    (void)state;
    /* These are known-answer tests of Random123, the library of Philox's authors (kat_vectors: philox4x32 10). */
    const vkt_philox zero = vkt_philox4x32((vkt_philox){ { 0, 0, 0, 0 } }, 0);
    const uint32_t want_zero[4] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 };
    assert_memory_equal(zero.w, want_zero, sizeof want_zero);
    const vkt_philox ones = vkt_philox4x32((vkt_philox){ { ~0u, ~0u, ~0u, ~0u } }, ~0ull);
    const uint32_t want_ones[4] = { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd };
    assert_memory_equal(ones.w, want_ones, sizeof want_ones);
    const vkt_philox pi =
        vkt_philox4x32((vkt_philox){ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 } }, 0x299f31d0a4093822ull);
    const uint32_t want_pi[4] = { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 };
    assert_memory_equal(pi.w, want_pi, sizeof want_pi);
}

static void random_streams_have_the_stated_moments(void **state)
{
    (void)state;
    vkt_rng r = vkt_rng_make(7, VKT_STREAM_TEST, 0, 0);
    enum { N = 200000 };
    double sum = 0, sum2 = 0, unit = 0;
    uint32_t counts[7] = { 0 };
    for (int i = 0; i < N; i++) {
        const double x = vkt_rng_normal(&r);
        sum += x;
        sum2 += x * x;
        unit += (double)vkt_rng_unit(&r);
        counts[vkt_rng_range(&r, 3, 9) - 3]++;
    }
    assert_true(fabs(sum / N) < 5.0 / sqrt(N)); /* five standard errors */
    assert_true(fabs(sum2 / N - 1) < 5.0 * sqrt(2.0 / N));
    assert_true(fabs(unit / N - 0.5) < 5.0 * sqrt(1.0 / 12 / N));
    for (int i = 0; i < 7; i++) assert_true(fabs(counts[i] - N / 7.0) < 5.0 * sqrt(N / 7.0));
}

static void text_grows_and_bytes_read_well(void **state)
{
    (void)state;
    const vkt_host h = vkt_host_resolve(NULL);
    vkt_text t = { .h = &h };
    for (int i = 0; i < 1000; i++) vkt_text_add(&t, "%d,", i);
    assert_false(t.failed);
    assert_int_equal(t.len, 10 * 2 + 90 * 3 + 900 * 4);
    vkt_text_free(&t);
    char b[24];
    assert_string_equal(vkt_bytes_text(312, b), "312 B");
    assert_string_equal(vkt_bytes_text(1024 * 1024 + 1024 * 215, b), "1.21 MiB");
}

/* The result is the same in every locale: in Turkish, strcasecmp takes "id" and "ID" as different. */
static void names_are_compared_without_case(void **state)
{
    (void)state;
    assert_int_equal(vkt_compare_names("id", "ID"), 0);
    assert_int_equal(vkt_compare_names("", ""), 0);
    assert_true(vkt_compare_names("id", "IDs") < 0 && vkt_compare_names("IDs", "id") > 0);
    assert_true(vkt_compare_names("a", "B") < 0 && vkt_compare_names("B", "a") > 0);
    assert_true(vkt_compare_names("@", "`") != 0 && vkt_compare_names("[", "{") != 0);
    assert_true(vkt_compare_names("z", "\xc4\xb0") < 0 && vkt_compare_names("\xe4", "\xc4") != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_result_has_a_name_and_a_text),     cmocka_unit_test(philox_equals_the_published_vectors),
        cmocka_unit_test(random_streams_have_the_stated_moments), cmocka_unit_test(text_grows_and_bytes_read_well),
        cmocka_unit_test(names_are_compared_without_case),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
