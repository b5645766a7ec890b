/* Tests base/fixed.h: beta^t and NAdam's product of momenta as fixed-point numbers with 64 fraction bits. Also tests
 * 1 - beta^t as a correctly rounded float. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fixed.h"
#include "base/philox.h"

__extension__ typedef unsigned __int128 u128;

static uint64_t random_u64(vkt_rng *r)
{
    const uint64_t high = vkt_rng_u32(r);
    return high << 32 | vkt_rng_u32(r);
}

static void doubles_convert_exactly(void **state)
{
    (void)state;
    static const double betas[] = { 0.5, 0.9, 0.99, 0.999, 0.9999, 1 - 0x1p-53, 0x1p-11 * (1 + 0x1p-52) };
    for (size_t i = 0; i < VKT_COUNT(betas); i++)
        assert_true(ldexpl((long double)vkt_fixed_from_double(betas[i]), -64) == (long double)betas[i]);
    assert_int_equal(vkt_fixed_from_double(0x1p-64), 1);
    assert_int_equal(vkt_fixed_from_double(0x1.8p-64), 1);
    assert_int_equal(vkt_fixed_from_double(0), 0);
    assert_int_equal(vkt_fixed_from_double(-1), 0);
    assert_int_equal(vkt_fixed_from_double((double)NAN), 0);
    assert_true(vkt_fixed_from_double(1) == VKT_FIXED_ONE);
    assert_true(vkt_fixed_from_double(2) == VKT_FIXED_ONE);
}

static void products_are_the_high_word(void **state)
{
    (void)state;
    vkt_rng r = vkt_rng_make(7, VKT_STREAM_TEST, 0, 0);
    for (int i = 0; i < 20000; i++) {
        /* Long sequences of ones or zeros reveal a multiplication that loses carries. */
        uint64_t a = random_u64(&r), b = random_u64(&r);
        if (i % 4 == 1) a |= 0xffffffffull;
        if (i % 4 == 2) a |= 0xffffffff00000000ull, b |= 0xffffffff00000000ull;
        if (i % 4 == 3) a = (UINT64_MAX - 1) << vkt_rng_range(&r, 0, 60), b |= 0xffffull << vkt_rng_range(&r, 0, 48);
        if (a == VKT_FIXED_ONE) continue;
        assert_true(vkt_fixed_mul(a, b) == (uint64_t)((u128)a * b >> 64));
    }
    assert_true(vkt_fixed_mul(UINT64_MAX - 1, UINT64_MAX) == UINT64_MAX - 2);
    assert_true(vkt_fixed_mul(VKT_FIXED_ONE, 12345) == 12345); /* 1 times b is b, to the bit */
}

static void powers_are_steps_and_close_to_the_truth(void **state)
{
    (void)state;
    static const double betas[] = { 0.9, 0.99, 0.999, 0.9999 };
    for (size_t i = 0; i < VKT_COUNT(betas); i++) {
        const uint64_t b = vkt_fixed_from_double(betas[i]);
        /* Each multiplication adds an error of at most 2^-64. Each later multiplication multiplies this error by beta.
         * So the errors of q add up to at most 2^-64 / (1 - beta). The factor 2 also allows for the error of powl. */
        const long double bound = 2 * ldexpl(1 / (1 - (long double)betas[i]), -64);
        uint64_t q = VKT_FIXED_ONE;
        for (uint64_t t = 0; t <= 3000; t++) {
            assert_true(vkt_fixed_pow(b, t) == q);
            if (t > 0)
                assert_true(fabsl(ldexpl((long double)q, -64) - powl((long double)betas[i], (long double)t)) <= bound);
            q = vkt_fixed_mul(q, b);
        }
        assert_int_equal(vkt_fixed_pow(b, 100000000), 0);
    }
    assert_true(vkt_fixed_pow(VKT_FIXED_ONE, 5) == VKT_FIXED_ONE);
    assert_int_equal(vkt_fixed_pow(0, 1), 0);
}

static void complements_round_to_nearest(void **state)
{
    (void)state;
    assert_true(vkt_fixed_complement_f32(VKT_FIXED_ONE) == 0);
    assert_true(vkt_fixed_complement_f32(0) == 1);
    assert_true(vkt_fixed_complement_f32(1) == 1); /* 1 - 2^-64 rounds to 1 */
    assert_true(vkt_fixed_complement_f32(UINT64_MAX - 1) == 0x1p-63f);
    const uint64_t half = 1ull << 63, ulp = 1ull << 40;                  /* ulp: one unit in the last place of 0.5f */
    assert_true(vkt_fixed_complement_f32(0 - (half + ulp / 2)) == 0.5f); /* tie: rounded down to even */
    assert_true(vkt_fixed_complement_f32(0 - (half + ulp / 2 + 1)) == 0.5f + 0x1p-24f);
    assert_true(vkt_fixed_complement_f32(0 - (half + ulp + ulp / 2)) == 0.5f + 0x1p-23f); /* tie: rounded up to even */
    vkt_rng r = vkt_rng_make(8, VKT_STREAM_TEST, 0, 0);
    for (int i = 0; i < 20000; i++) {
        const uint64_t q = 0 - (random_u64(&r) >> vkt_rng_range(&r, 0, 60)) - 2;
        assert_true(vkt_fixed_complement_f32(q) == (float)(ldexpl((long double)(0 - q), -64)));
    }
    /* In its first step, Adam divides by 1 - beta. torch computes 1 - beta in float64, and this library in fixed point.
     * Both must give the same float. */
    assert_true(vkt_fixed_complement_f32(vkt_fixed_from_double(0.999)) == (float)(1 - 0.999));
    assert_true(vkt_fixed_complement_f32(vkt_fixed_from_double(0.9)) == (float)(1 - 0.9));
}

static void nadams_product_is_close_to_the_truth(void **state)
{
    (void)state;
    static const double decays[] = { 0.004, 0.02, 1 };
    for (size_t i = 0; i < VKT_COUNT(decays); i++) {
        const uint64_t b = vkt_fixed_from_double(0.9), r = vkt_fixed_from_double(pow(0.96, decays[i]));
        long double product = 1;
        for (uint64_t t = 1; t <= 300; t++) {
            product *= 0.9L * (1 - 0.5L * powl(0.96L, (long double)decays[i] * (long double)t));
            const long double got = ldexpl((long double)vkt_fixed_momentum_product(b, r, t), -64);
            /* The tolerance is far above 2^-64, because r and 0.9 are rounded to float64. */
            assert_true(fabsl(got - product) <= 1e-14L);
        }
        assert_true(vkt_fixed_momentum_product(b, r, 4000000000u) == 0);
    }
    assert_true(vkt_fixed_momentum_product(vkt_fixed_from_double(0.9), 1, 0) == VKT_FIXED_ONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_convert_exactly),
        cmocka_unit_test(products_are_the_high_word),
        cmocka_unit_test(powers_are_steps_and_close_to_the_truth),
        cmocka_unit_test(complements_round_to_nearest),
        cmocka_unit_test(nadams_product_is_close_to_the_truth),
    };
    return cmocka_run_group_tests_name("fixed", tests, NULL, NULL);
}
