// unary.glsl - y = f(x) and dx = f'(x) dy. FUNCTION (abi/functions.abi.h) selects f. unary_dx computes f'(x) from v. v is y for
// the functions that functions.abi.h marks with "y", and x for the others. pc.p and pc.q are the parameters of f.
// The direction of each comparison is chosen so that NaN gives the same result as in PyTorch.
// Sources of the less usual functions: D.-A. Clevert et al. (ELU), arXiv 1511.07289; D. Hendrycks & K. Gimpel (GELU, and its
// form by tanh), arXiv 1606.08415; A. Howard et al. (hardswish), arXiv 1905.02244.
#include "lib/special.glsl"
const bool QUICK = FUNCTION < UNARY_QUICK;
const float GELU_SCALE = 0.797884560802865356; // sqrt(2 / pi)
const float GELU_CUBE = 0.044715;

// Returns min(|x|, 20); NaN stays NaN. At 20 the tail terms of f and f' are already 0. For a larger x, one factor of a tail
// term could be infinite and another one 0, and their product would be NaN.
vec4 at_most_20(vec4 x) { return mix(abs(x), vec4(20.0), greaterThan(abs(x), vec4(20.0))); }

vec4 gelu(vec4 x)
{
    vec4 density;
    const vec4 above = normal_above(at_most_20(x), density);
    return x * mix(1.0 - above, above, lessThan(x, vec4(0.0)));
}

vec4 gelu_dx(vec4 x)
{
    vec4 density;
    const vec4 t = at_most_20(x), above = normal_above(t, density);
    return mix(1.0 - above + t * density, above - t * density, lessThan(x, vec4(0.0)));
}

// Computes the form of GELU with tanh. With u = sqrt(2 / pi) (x + 0.044715 x^3), this is x * 0.5 (1 + tanh u), which is
// equal to x * sigmoid(2 u).
vec4 gelu_tanh(vec4 x)
{
    return x * sigmoid(2.0 * GELU_SCALE * (x + GELU_CUBE * x * x * x));
}

vec4 gelu_tanh_dx(vec4 x)
{
    const vec4 t = at_most_20(x), u = GELU_SCALE * (t + GELU_CUBE * t * t * t);
    const vec4 du = GELU_SCALE * (1.0 + 3.0 * GELU_CUBE * t * t);
    const vec4 upper = sigmoid(2.0 * u), lower = sigmoid(-2.0 * u), bend = 2.0 * t * upper * lower * du;
    return mix(upper + bend, lower - bend, lessThan(x, vec4(0.0)));
}

vec4 silu_dx(vec4 x)
{
    return sigmoid(x) * (1.0 + x * sigmoid(-x));
}

vec4 softplus(vec4 x)
{
    const vec4 z = pc.p * x;
    return mix(log1p_1ulp(exp_any(z)) / pc.p, x, greaterThan(z, vec4(pc.q)));
}

vec4 quick_unary(vec4 x)
{
    const vec4 zero = vec4(0.0);
    switch (FUNCTION) {
    case UNARY_RELU: return mix(x, zero, lessThan(x, zero));
    case UNARY_LEAKY_RELU: return mix(pc.p * x, x, greaterThan(x, zero));
    case UNARY_ABS: return abs(x);
    case UNARY_CLAMP:
        x = mix(x, vec4(pc.p), lessThan(x, vec4(pc.p)));
        return mix(x, vec4(pc.q), greaterThan(x, vec4(pc.q)));
    case UNARY_SCALE: return pc.p * x + pc.q;
    case UNARY_HARDSWISH: return x * (clamp(x + 3.0, zero, vec4(6.0)) * (1.0 / 6.0));
    case UNARY_SQRT: return mix(sqrt(x), NAN4, lessThan(x, zero));
    default: return NAN4; // no such function
    }
}

vec4 unary(vec4 x)
{
    if (QUICK) return quick_unary(x);
    switch (FUNCTION) {
    case UNARY_EXP: return exp_any(x);
    case UNARY_LOG: return log_any(x);
    case UNARY_SIGMOID: return sigmoid(x);
    case UNARY_TANH: return tanh_any(x);
    case UNARY_SILU: return x * sigmoid(x);
    case UNARY_ELU: return mix(pc.p * expm1_negative(x), x, greaterThan(x, vec4(0.0)));
    case UNARY_SOFTPLUS: return softplus(x);
    case UNARY_GELU: return gelu(x);
    case UNARY_GELU_TANH: return gelu_tanh(x);
    default: return NAN4; // no such function
    }
}

vec4 quick_unary_dx(vec4 v, vec4 dy)
{
    const vec4 zero = vec4(0.0);
    switch (FUNCTION) {
    case UNARY_RELU: return mix(dy, zero, lessThanEqual(v, zero));
    case UNARY_LEAKY_RELU: return mix(pc.p * dy, dy, greaterThan(v, zero));
    case UNARY_ABS: return mix(mix(zero, dy, greaterThan(v, zero)), -dy, lessThan(v, zero));
    case UNARY_CLAMP:
        return mix(zero, dy, both(greaterThan(v, vec4(pc.p)), lessThan(v, vec4(pc.q))));
    case UNARY_HARDSWISH:
        return mix(mix(dy, dy * (v * (1.0 / 3.0) + 0.5), lessThan(v, vec4(3.0))), zero, lessThanEqual(v, vec4(-3.0)));
    case UNARY_SQRT: return dy / (2.0 * v);
    default: return NAN4; // no such gradient
    }
}

vec4 unary_dx(vec4 v, vec4 dy)
{
    if (QUICK) return quick_unary_dx(v, dy);
    switch (FUNCTION) {
    case UNARY_EXP: return dy * v;
    case UNARY_LOG: return dy / v;
    case UNARY_SIGMOID: return dy * v * (1.0 - v);
    case UNARY_TANH: return dy * ((1.0 - v) * (1.0 + v));
    case UNARY_SILU: return dy * silu_dx(v);
    case UNARY_ELU: return mix(dy, dy * (pc.p * exp_any(v)), lessThanEqual(v, vec4(0.0)));
    case UNARY_SOFTPLUS: return mix(dy * sigmoid(pc.p * v), dy, greaterThan(pc.p * v, vec4(pc.q)));
    case UNARY_GELU: return dy * gelu_dx(v);
    case UNARY_GELU_TANH: return dy * gelu_tanh_dx(v);
    default: return NAN4; // no such gradient
    }
}
