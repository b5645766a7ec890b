/* Tests the conversions between f32 and f16 (half) or bfloat16: every f16 number and every bfloat16 number, in both
 * directions, and every boundary where the rounding changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/half.h"

/* Returns the value of an f16 number, computed in float64 from its bit fields (IEEE 754-2008, section 3.4). */
static double half_by_definition(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double sign = h & 0x8000 ? -1 : 1;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static void every_half_has_its_value_and_comes_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t h = (uint16_t)i;
        const float f = vkt_f32_from_half(h);
        const double want = half_by_definition(h);
        if (isnan(want))
            assert_true(isnan(f));
        else
            assert_true((double)f == want && !signbit(f) == !(h & 0x8000));
        assert_int_equal(vkt_half_from_f32(f), h); /* also for a NaN with any payload */
    }
}

/* A number between two neighbouring f16 numbers is rounded to the nearer one. The middle is rounded to the one whose
 * last bit is 0. */
static void every_half_boundary_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x7c00; i++) { /* 0x7c00 is infinity, which counts as 2^16 in rounding */
        const double lo = half_by_definition((uint16_t)i),
                     hi = i == 0x7bff ? 65536 : half_by_definition((uint16_t)(i + 1));
        const float middle = (float)((lo + hi) / 2); /* exact: at most 12 significant bits */
        const uint16_t even = (uint16_t)(i + (i & 1));
        assert_int_equal(vkt_half_from_f32(middle), even);
        assert_int_equal(vkt_half_from_f32(-middle), even | 0x8000);
        assert_int_equal(vkt_half_from_f32(nextafterf(middle, 0)), i);
        assert_int_equal(vkt_half_from_f32(nextafterf(middle, INFINITY)), i + 1);
    }
    assert_int_equal(vkt_half_from_f32(1e-40f), 0); /* a subnormal float */
    assert_int_equal(vkt_half_from_f32(3.4e38f), 0x7c00);
    assert_int_equal(vkt_half_from_f32(-INFINITY), 0xfc00);
}

static void every_bf16_comes_back_and_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t b = (uint16_t)i;
        assert_int_equal(vkt_bf16_from_f32(vkt_f32_from_bf16(b)), b);
        if ((b & 0x7fff) >= 0x7f80) continue;
        const struct {
            uint32_t low;
            uint32_t up;
        } cases[] = { { 0x0001, 0 }, { 0x7fff, 0 }, { 0x8000, b & 1 }, { 0x8001, 1 }, { 0xffff, 1 } };
        for (size_t k = 0; k < VKT_COUNT(cases); k++) {
            const uint32_t bits = i << 16 | cases[k].low;
            float f;
            memcpy(&f, &bits, sizeof f);
            assert_int_equal(vkt_bf16_from_f32(f), b + cases[k].up);
        }
    }
    assert_true(vkt_f32_from_bf16(0x3fc0) == 1.5f);
}

/* A NaN whose payload is only in the discarded bits must not become infinity. */
static void a_nan_stays_a_nan(void **state)
{
    (void)state;
    const uint32_t bits = 0xff800001;
    float f;
    memcpy(&f, &bits, sizeof f);
    assert_int_equal(vkt_half_from_f32(f), 0xfe00);
    assert_int_equal(vkt_bf16_from_f32(f), 0xffc0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_has_its_value_and_comes_back),
        cmocka_unit_test(every_half_boundary_rounds_to_nearest_even),
        cmocka_unit_test(every_bf16_comes_back_and_rounds_to_nearest_even),
        cmocka_unit_test(a_nan_stays_a_nan),
    };
    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
