// loss.glsl - the loss term of a pair (y, target) and its derivative with respect to y, for four pairs at once.
// A specialisation constant selects the kind, so the compiler keeps one path. Formulas: engine/ops/loss/pair_loss.c.
// For LOSS_BCE, term and derivative are NaN if y is outside [0,1]. For LOSS_KL, the term is NaN if the target is
// negative.
// The includer provides lib/explog.glsl and the push block of abi/loss.abi.h.
layout(constant_id = LOSS_SPEC_KIND) const uint KIND = 0;

vec4 sign_of(vec4 d) // 0 for 0, NaN for NaN
{
    return mix(mix(d, vec4(-1.0), lessThan(d, vec4(0.0))), vec4(1.0), greaterThan(d, vec4(0.0)));
}

// Returns log p, at least -100, as in torch's binary_cross_entropy. A subnormal p counts as 0, because a device may flush it.
vec4 log_of_probability(vec4 p)
{
    return mix(log_1ulp(p), vec4(-100.0), lessThan(p, vec4(1.17549435e-38)));
}

// Returns log(1 - p), at least -100. 1 - p is rounded, and the result is corrected by the rounding error, as in log1p_1ulp
// (lib/explog.glsl names the source).
vec4 log_of_complement(vec4 p)
{
    precise const vec4 rest = 1.0 - p, lost = (1.0 - rest) - p;
    return mix(log_1ulp(rest) + lost / rest, vec4(-100.0), equal(rest, vec4(0.0)));
}

vec4 only_probabilities(vec4 p, vec4 v)
{
    return mix(v, vec4(uintBitsToFloat(0x7fc00000u)), notEqual(p, clamp(p, 0.0, 1.0)));
}

vec4 softplus(vec4 x)
{
    return max(x, 0.0) + log1p_1ulp(exp_1ulp(-abs(x)));
}

vec4 sigmoid(vec4 x)
{
    const vec4 e = exp_1ulp(-abs(x));
    return mix(e, vec4(1.0), greaterThanEqual(x, vec4(0.0))) / (1.0 + e);
}

// Returns e^x for a log-probability x. For x >= 88.4 the result is infinity, but no log-probability is so large.
vec4 exp_of_log(vec4 x)
{
    return exp_1ulp(mix(x, vec4(89.0), greaterThan(x, vec4(89.0))));
}

vec4 term_of(vec4 y, vec4 t, vec4 weight)
{
    const vec4 d = y - t, a = abs(d);
    if (KIND == LOSS_MSE) return d * d;
    if (KIND == LOSS_L1) return a;
    if (KIND == LOSS_SMOOTH_L1) return mix(a - 0.5 * pc.beta, 0.5 * d * d / pc.beta, lessThan(a, vec4(pc.beta)));
    if (KIND == LOSS_HUBER) return mix(pc.beta * (a - 0.5 * pc.beta), 0.5 * d * d, lessThan(a, vec4(pc.beta)));
    if (KIND == LOSS_RELATIVE) return d * d / (y * y + pc.beta);
    if (KIND == LOSS_BCE)
        return only_probabilities(y, (t - 1.0) * log_of_complement(y) - t * log_of_probability(y));
    if (KIND == LOSS_LOGITS) return weight * t * softplus(-y) + (1.0 - t) * softplus(y);
    if (KIND == LOSS_KL_LOG) return exp_of_log(t) * (t - y);
    const bvec4 some = greaterThanEqual(t, vec4(1.17549435e-38)), negative = lessThan(t, vec4(0.0));
    return mix(t * (mix(vec4(0.0), log_1ulp(t), some) - y), vec4(uintBitsToFloat(0x7fc00000u)), negative);
}

vec4 slope_of(vec4 y, vec4 t, vec4 weight)
{
    const vec4 d = y - t;
    if (KIND == LOSS_MSE) return 2.0 * d;
    if (KIND == LOSS_L1) return sign_of(d);
    if (KIND == LOSS_SMOOTH_L1) return mix(sign_of(d), d / pc.beta, lessThan(abs(d), vec4(pc.beta)));
    if (KIND == LOSS_HUBER) return mix(pc.beta * sign_of(d), d, lessThan(abs(d), vec4(pc.beta)));
    if (KIND == LOSS_RELATIVE) return 2.0 * d / (y * y + pc.beta); // by definition, the divisor counts as a constant
    if (KIND == LOSS_BCE) return only_probabilities(y, d / max(y * (1.0 - y), 1e-12));
    if (KIND == LOSS_LOGITS) return (1.0 - t) * sigmoid(y) - weight * t * sigmoid(-y);
    return KIND == LOSS_KL_LOG ? -exp_of_log(t) : -t;
}

#ifdef WEIGHTED
layout(binding = LOSS_WEIGHT, std430) readonly buffer Weight { float weight[]; };
// Returns the weights of the four elements of vec4 i. Each feature has one weight. In a batch-last tensor, the four elements
// belong to one feature. In a row-major tensor they belong to consecutive features, and may continue in the next row.
vec4 weights_at(uint i)
{
    if (pc.per_row == 1) return vec4(weight[i / pc.period4]);
    vec4 w;
    for (uint j = 0; j < 4; j++) w[j] = weight[(4 * i + j) % pc.per_row];
    return w;
}
#else
#define weights_at(i) vec4(1.0)
#endif
