// explog.glsl - exp and log with an error of about one unit in the last place. A driver's own exp(x) may err by
// 3 + 2|x| units (Vulkan 1.3, "Precision of individual operations"). In a loss, such an error would be a bias and not noise.
//   exp_1ulp(x)     for x <= 88 or NaN; the result is 0 if x < -87
//   log_1ulp(x)     for x >= 2^-126 or NaN
//   log1p_1ulp(x)   for x >= 0 or NaN
// exp: x = n ln 2 + r, |r| <= ln 2 / 2, then the series of e^r. n ln 2 is computed as a sum of two parts, and the first
// part is exact (W. J. Cody & W. Waite, Software Manual for the Elementary Functions, 1980, chapter 6).
// log: x = 2^e * m, sqrt(1/2) <= m < sqrt 2, then the series of 2 artanh((m-1) / (m+1)) = log m.
// log1p: 1 + x is rounded, and the logarithm of the rounded sum is corrected by the rounding error (W. Kahan, in HP-15C
// Advanced Functions Handbook, 1982, appendix).
const float LN2_HIGH = 0.693359375, LN2_LOW = -2.12194440054690583e-4;
#define INFINITE uintBitsToFloat(0x7f800000u)

#define VKT_EXP_LOG(F, I, U)                                                                                        \
    F exp_1ulp(F x)                                                                                                 \
    {                                                                                                               \
        const F n = round(x * 1.44269504088896341), r = (x - n * LN2_HIGH) - n * LN2_LOW;                           \
        F y = 1.0 / 720.0 + r * (1.0 / 5040.0);                                                                     \
        y = 1.0 + (r + r * r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * y)))));             \
        y *= uintBitsToFloat(U(I(n) + 127) << 23);                                                                  \
        return mix(y, F(0), is_less(x, F(-87.0)));                                                              \
    }                                                                                                               \
    F log_1ulp(F x)                                                                                                 \
    {                                                                                                               \
        const U bits = floatBitsToUint(x) - 0x3f3504f3u; /* 0x3f3504f3: bits of sqrt(1/2), the smallest m */        \
        const F e = F(I(bits) >> 23), f = uintBitsToFloat((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0, s = f / (2.0 + f); \
        const F q = s * s;                                                                                          \
        const F t = q * (1.0 / 3.0 + q * (0.2 + q * (1.0 / 7.0 + q * (1.0 / 9.0 + q * (1.0 / 11.0)))));             \
        /* 2 s (1 + t) = f - s (f - 2 t): this form is less sensitive to the rounding of s */                       \
        const F y = e * LN2_HIGH + (f - (s * (f - 2.0 * t) - e * LN2_LOW));                                         \
        return mix(x, y, is_less(x, F(INFINITE)));                                                              \
    }                                                                                                               \
    F log1p_1ulp(F x)                                                                                               \
    {                                                                                                               \
        precise const F sum = 1.0 + x, lost = x - (sum - 1.0);                                                      \
        return mix(x, log_1ulp(sum) + lost / sum, is_less(x, F(INFINITE)));                                     \
    }
bool is_less(float a, float b) { return a < b; }
bvec4 is_less(vec4 a, vec4 b) { return lessThan(a, b); }
VKT_EXP_LOG(float, int, uint)
VKT_EXP_LOG(vec4, ivec4, uvec4)
