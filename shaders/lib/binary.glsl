// binary.glsl - functions of two operands and of three operands. FUNCTION (abi/functions.abi.h) selects a function.
// The functions of three operands are `where`, and gradients that are computed from dy, a and b.
// NaN is handled as in PyTorch: if either operand is NaN, minimum and maximum return NaN, and both operands get dy as
// their gradient.
#include "lib/special.glsl"
#if OPERANDS == 3
const bool QUICK = FUNCTION < TERNARY_QUICK;
#else
const bool QUICK = FUNCTION < BINARY_QUICK;
#endif

vec4 quick_binary(vec4 a, vec4 b)
{
    switch (FUNCTION) {
    case BINARY_ADD: return a + b;
    case BINARY_SUB: return a - b;
    case BINARY_MUL: return a * b;
    case BINARY_DIV: return a / b;
    case BINARY_MINIMUM: return mix(mix(b, a, lessThan(a, b)), a, notEqual(a, a));
    case BINARY_MAXIMUM: return mix(mix(b, a, greaterThan(a, b)), a, notEqual(a, a));
    default: return mix(a * b, a, greaterThan(a, vec4(0.0)));
    }
}

vec4 binary(vec4 a, vec4 b)
{
    return QUICK ? quick_binary(a, b) : pow_any(a, b);
}

// Returns x where b is true, else 0 * x. The function multiplies and does not select, because 0 * x must be NaN if x is
// infinite or NaN.
vec4 times_truth(vec4 x, bvec4 b)
{
    precise const vec4 y = x * vec4(b);
    return y;
}

vec4 quick_ternary(vec4 dy, vec4 a, vec4 b)
{
    const vec4 zero = vec4(0.0);
    switch (FUNCTION) {
    case TERNARY_WHERE: return mix(b, a, notEqual(floatBitsToUint(dy), uvec4(0)));
    case TERNARY_DIV_DB: return -dy * (a / b / b);
    case TERNARY_MINIMUM_DA: return mix(mix(dy, 0.5 * dy, equal(a, b)), zero, greaterThan(a, b));
    case TERNARY_MAXIMUM_DA: return mix(mix(dy, 0.5 * dy, equal(a, b)), zero, lessThan(a, b));
    case TERNARY_PRELU_DX: return mix(dy * b, dy, greaterThan(a, zero));
    case TERNARY_PRELU_DW: return mix(dy * a, zero, greaterThan(a, zero));
    case TERNARY_EQUAL: return times_truth(dy, equal(a, b));
    default: return mix(dy + a, zero, lessThanEqual(b, zero)); // TERNARY_RELU_DX; a NaN in b gives dy + a (unary.glsl)
    }
}

vec4 ternary(vec4 dy, vec4 a, vec4 b)
{
    const vec4 zero = vec4(0.0);
    if (QUICK) return quick_ternary(dy, a, b);
    switch (FUNCTION) {
    case TERNARY_POW_DA: return mix(dy * (b * pow_any(a, b - 1.0)), zero, equal(b, zero));
    default: return mix(dy * (pow_any(a, b) * log_any(a)), zero, both(equal(a, zero), greaterThanEqual(b, zero)));
    }
}
