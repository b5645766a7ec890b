// adam.comp - Adam and its variants over a range of the parameter arena, in place. g: see lib/update.glsl.
//   m = b1 * m + (1 - b1) * g;  v = b2 * v + (1 - b2) * g * g
//   torch:  p -= lr / c1 * m / (sqrt(v) / sqrt(c2) + eps)        keras:  p -= lr * sqrt(c2) / c1 * m / (sqrt(v) + eps)
//   AMSGRAD: w = max(w, v) replaces v in the formula of p
//   NADAM:  p -= lr * (u' * m / (1 - P * u') + (1 - u) * g / (1 - P)) / (sqrt(v) / sqrt(c2) + eps)
// c1 = 1 - b1^t and c2 = 1 - b2^t come from the step state. NADAM: u is the momentum of step t, u' is the
// momentum of step t + 1, and P is the product of the momenta of steps 1 to t. The step state has 1 - P instead of c1, and
// also 1 - u, u' and 1 - P * u'.
// grid: each work group processes one contiguous range; any group count is right.
// source: Kingma & Ba, ICLR 2015, algorithm 1; the keras form is in the paragraph after algorithm 1. Loshchilov & Hutter, ICLR
//         2019 (decoupled weight decay). Reddi, Kale & Kumar, ICLR 2018 (AMSGRAD). Dozat, ICLR 2016 workshop (NADAM).
//         PyTorch and Keras documentation.
// Deterministic: elementwise.
// As in PyTorch, p becomes NaN where its update is 0 / 0: m = 0, v = 0 (AMSGRAD: w = 0) and eps = 0.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/adam.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#include "lib/update.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = ADAM_SPEC_NADAM) const bool NADAM = false;
VKT_IN4(UPDATE_MOMENT1, moment1);
VKT_IN4(UPDATE_MOMENT2, moment2);
VKT_F32_OUT4(UPDATE_MOMENT1_OUT, moment1_out);
VKT_F32_OUT4(UPDATE_MOMENT2_OUT, moment2_out);
#ifdef AMSGRAD
VKT_IN4(UPDATE_MOMENT3, most);
VKT_F32_OUT4(UPDATE_MOMENT3_OUT, most_out);
#endif

void main()
{
    if (update_waits()) return;
    const float lr = step_float(STEP_LR), c1 = step_float(STEP_C1), root = sqrt(step_float(STEP_C2));
    const float scale = pc.keras != 0u ? 1.0 : root; // divisor of sqrt(v); division by 1 changes no bit
    const float size = NADAM            ? lr * step_float(STEP_U_NEXT) / step_float(STEP_C_NEXT)
                       : pc.keras != 0u ? lr * root / c1
                                        : lr / c1;
    const float ahead = NADAM ? lr * step_float(STEP_U_REST) / c1 : 0.0;
    const float beta1 = pc.beta1, beta2 = pc.beta2, one_minus_beta1 = pc.one_minus_beta1, one_minus_beta2 = pc.one_minus_beta2;
    const float eps = pc.eps;
    const uvec2 share = share_of(pc.n4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const Rule rule = rule_of(i);
        if (rule.frozen) continue;
        const vec4 p = LOAD4(param, i), g = gradient(i, p, rule.decay);
        const vec4 m = beta1 * LOAD4(moment1, i) + one_minus_beta1 * g;
        vec4 v = beta2 * LOAD4(moment2, i) + one_minus_beta2 * g * g;
        STORE4(moment1_out, i, m);
        STORE4(moment2_out, i, v);
#ifdef AMSGRAD
        v = mix(v, LOAD4(most, i), lessThan(v, LOAD4(most, i))); // a NaN in v stays NaN
        STORE4(most_out, i, v);
#endif
        vec4 update = rule.factor * size * m;
        if (NADAM) update += rule.factor * ahead * g;
        STORE4(param_out, i, decayed(p, rule) - update / (sqrt(v) / scale + eps));
    }
}
