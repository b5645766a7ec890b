// special.glsl - functions with an error of a few units in the last place, also in the tails. Unless a comment names a
// smaller range, the argument is any float. Infinities and NaN are handled as in C. A device may flush results below
// 2^-126 to 0.
#include "lib/explog.glsl"
#define INFINITY4 uintBitsToFloat(uvec4(0x7f800000u))
#define NAN4 uintBitsToFloat(uvec4(0x7fc00000u))

// Returns x with the upper 12 bits of its significand. A product of two such numbers is exact (T. J. Dekker, Numerische
// Mathematik 18, 1971).
vec4 upper_half(vec4 x) { return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u); }

// Returns y * 2^n. The function multiplies twice, because the range of n is too large for one factor.
vec4 times_power(vec4 y, ivec4 n)
{
    const ivec4 half_n = n >> 1;
    return y * uintBitsToFloat(uvec4(half_n + 127) << 23) * uintBitsToFloat(uvec4(n - half_n + 127) << 23);
}

// Returns e^r - 1 and n, with x = n ln 2 + r as in exp_1ulp.
vec4 expm1_reduced(vec4 x, out ivec4 n)
{
    const vec4 k = round(x * 1.44269504088896341), r = (x - k * LN2_HIGH) - k * LN2_LOW;
    n = ivec4(k);
    const vec4 y = 1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0));
    return r + r * r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * y)));
}

// Returns e^x. Below -104 the result is 0, and above 89 it is infinity. Comparisons replace clamp(), because they keep NaN.
vec4 exp_any(vec4 x)
{
    x = mix(mix(x, vec4(89.0), greaterThan(x, vec4(89.0))), vec4(-104.0), lessThan(x, vec4(-104.0)));
    ivec4 n;
    const vec4 y = expm1_reduced(x, n);
    return times_power(1.0 + y, n);
}

// Returns e^x - 1 for x <= 0. With x = n ln 2 + r, e^x - 1 is 2^n * (e^r - 1) + (2^n - 1). 2^n - 1 is exact for n >= -24; for
// smaller n the result is -1, except for rounding.
vec4 expm1_negative(vec4 x)
{
    x = mix(x, vec4(-104.0), lessThan(x, vec4(-104.0)));
    ivec4 n;
    const vec4 y = expm1_reduced(x, n), power = times_power(vec4(1.0), n);
    return power * y + (power - 1.0);
}

vec4 log_any(vec4 x)
{
    const bvec4 tiny = lessThan(x, vec4(1.17549435e-38));
    x = mix(x, x * 16777216.0, tiny);
    vec4 y = log_1ulp(x) - mix(vec4(0.0), vec4(24 * 0.69314718055994531), tiny);
    y = mix(y, -INFINITY4, equal(x, vec4(0.0)));
    return mix(y, NAN4, lessThan(x, vec4(0.0)));
}

// Returns 1 / (1 + e^-x), computed from e^-|x|, so that the result keeps full precision for both signs of x.
vec4 sigmoid(vec4 x)
{
    const vec4 e = exp_any(-abs(x)), r = 1.0 / (1.0 + e);
    return mix(r, e * r, lessThan(x, vec4(0.0)));
}

vec4 tanh_any(vec4 x)
{
    const vec4 t = expm1_negative(-2.0 * abs(x)), y = -t / (2.0 + t);
    return mix(y, -y, lessThan(x, vec4(0.0)));
}

// Returns the probability that a standard normal variable exceeds t. density: the density of the variable at t,
// e^(-t^2/2) / sqrt(2 pi). t is NaN or in [0, 20].
//   The probability is e^(-t^2/2) * R(t). The product (1 + t) * R(t) is smooth in v = (t - 2.5) / (t + 2.5) over all
//   t >= 0 (M. M. Shepherd & J. G. Laframboise, Mathematics of Computation 36, 1981, for erfc). Here a polynomial
//   of v replaces the product. It interpolates the product at Chebyshev nodes, with a relative error of 5.3e-9 for t up to
//   14.4. For larger t, e^(-t^2/2) is 0 or subnormal as a float.
//   erfc(x) = 2 * normal_above(sqrt(2) * x).
//   The rounding error of t * t is corrected. Otherwise the relative error of the result at t = 13 would be up to 4e-6.
vec4 normal_above(vec4 t, out vec4 density)
{
    const vec4 v = (t - 2.5) / (t + 2.5);
    vec4 r = -2.29972606e-4 + v * -6.52969578e-5;
    r = 1.28341394e-3 + v * (1.26736312e-3 + v * (2.67419945e-6 + v * r));
    r = 4.60631090e-2 + v * (-8.69975860e-3 + v * (-6.04897811e-3 + v * r));
    r = 4.94659661e-1 + v * (-9.15874893e-2 + v * (-3.77166617e-2 + v * r));
    precise const vec4 s = t * t, h = upper_half(t), l = t - h, lost = ((h * h - s) + 2.0 * h * l) + l * l;
    vec4 e = exp_any(-0.5 * s);
    e -= e * (0.5 * lost);
    density = e * 0.398942280401432678;
    return e * (r / (1.0 + t));
}

// Computes log(a) as a sum of two floats, for 0 < a < infinity. Returns the larger float, and sets low to the smaller one. The
// method is that of log_1ulp, but the quotient s = f / (2 + f) and the result have two floats each. The terms of the series
// after 2 s are small, so one float is enough for them (method: e_pow.c, fdlibm 5.3, Sun Microsystems 1993). Relative error:
// 2^-28.
vec4 log_twice(vec4 a, out vec4 low)
{
    const bvec4 tiny = lessThan(a, vec4(1.17549435e-38));
    const uvec4 bits = floatBitsToUint(mix(a, a * 16777216.0, tiny)) - 0x3f3504f3u;
    const vec4 e = vec4(ivec4(bits) >> 23) - mix(vec4(0.0), vec4(24.0), tiny);
    const vec4 f = uintBitsToFloat((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0, s = f / (2.0 + f), q = s * s;
    precise const vec4 s_high = upper_half(s), d_high = upper_half(2.0 + f), d_low = f - (d_high - 2.0);
    precise const vec4 s_low = ((f - s_high * d_high) - s_high * d_low) / (2.0 + f);
    const vec4 t = q * (2.0 / 3.0 + q * (0.4 + q * (2.0 / 7.0 + q * (2.0 / 9.0 + q * (2.0 / 11.0)))));
    precise const vec4 first = e * LN2_HIGH, second = 2.0 * s_high, sum = first + second;
    precise const vec4 rest = (second - (sum - first)) + (2.0 * s_low + s * t + e * LN2_LOW), high = sum + rest;
    low = rest - (high - sum);
    return high;
}

bvec4 both(bvec4 a, bvec4 b) { return mix(bvec4(false), b, a); }

// Computes a^b with the special cases of pow() of C: e^(b * log |a|), with a sign. The exponent b * log |a| is a sum of two
// floats, so the result keeps its digits if the exponent is large.
vec4 pow_any(vec4 a, vec4 b)
{
    const vec4 x = abs(a);
    vec4 low, high = log_twice(x, low);
    high = mix(mix(high, -INFINITY4, equal(x, vec4(0.0))), x, greaterThan(x, vec4(3.402823466e38)));
    high = mix(x, high, greaterThanEqual(x, vec4(0.0))); // NaN stays NaN
    precise const vec4 p = b * high, bh = upper_half(b), bl = b - bh, hh = upper_half(high), hl = high - hh;
    precise const vec4 lost = ((bh * hh - p) + (bh * hl + bl * hh)) + bl * hl;
    vec4 y = exp_any(p);
    y = mix(y, y + y * (lost + b * low), both(lessThan(abs(p), vec4(104.0)), lessThan(y, INFINITY4)));
    const bvec4 whole = equal(floor(b), b), odd = both(notEqual(2.0 * floor(0.5 * b), b), lessThan(abs(b), vec4(16777216.0)));
    const bvec4 minus = notEqual(floatBitsToUint(a) >> 31, uvec4(0)), finite = lessThan(x, INFINITY4);
    y = mix(y, -y, both(minus, both(whole, odd)));
    y = mix(y, NAN4, both(both(lessThan(a, vec4(0.0)), finite), not(whole)));
    y = mix(y, vec4(1.0), both(equal(x, vec4(1.0)), equal(abs(b), INFINITY4)));
    y = mix(y, vec4(1.0), equal(a, vec4(1.0)));
    return mix(y, vec4(1.0), equal(b, vec4(0.0)));
}
