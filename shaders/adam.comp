// adam.comp - Adam over a window of the parameter arena, in place; c1 = 1 - b1^t and c2 = 1 - b2^t come from the step state:
//   g += wd p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g g
//   torch:  p -= lr / c1 * m / (sqrt(v) / sqrt(c2) + eps)        keras:  p -= lr sqrt(c2) / c1 * m / (sqrt(v) + eps)
// The order of operations is PyTorch's single-tensor form. A gradient of 0 with v = 0 and eps = 0 gives NaN, as there.
// grid: each group takes one contiguous range; any group count is right. Deterministic: elementwise.
// source: Kingma & Ba, ICLR 2015, algorithm 1; the keras form is the paragraph after it. PyTorch and Keras documentation.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/adam.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = ADAM_SPEC_SCALED) const bool SCALED = false;
VKT_IN4(ADAM_PARAM, param);
VKT_IN4(ADAM_GRAD, grad);
VKT_IN4(ADAM_MOMENT1, moment1);
VKT_IN4(ADAM_MOMENT2, moment2);
layout(binding = ADAM_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = ADAM_PARAM_OUT, std430) writeonly buffer ParamOut { vec4 param_out[]; };
layout(binding = ADAM_MOMENT1_OUT, std430) writeonly buffer Moment1Out { vec4 moment1_out[]; };
layout(binding = ADAM_MOMENT2_OUT, std430) writeonly buffer Moment2Out { vec4 moment2_out[]; };

void main()
{
    if (SCALED && step[STEP_FOUND] != 0u) return;
    const float unscale = SCALED ? uintBitsToFloat(0x7f000000u - step[STEP_SCALE]) : 1.0; // the inverse of a power of two
    const float lr = uintBitsToFloat(step[STEP_LR]), c1 = uintBitsToFloat(step[STEP_C1]);
    const float root = sqrt(uintBitsToFloat(step[STEP_C2]));
    const float scale = pc.keras != 0u ? 1.0 : root; // of sqrt(v); dividing by 1 changes no bit
    const float size = pc.keras != 0u ? lr * root / c1 : lr / c1;
    const uint lanes = gl_WorkGroupSize.x, groups = gl_NumWorkGroups.x;
    const uint chunk = (pc.n4 + lanes * groups - 1u) / (lanes * groups) * lanes;
    const uint begin = gl_WorkGroupID.x * chunk, end = min(begin + chunk, pc.n4);
    for (uint i = begin + gl_LocalInvocationID.x; i < end; i += lanes) {
        const vec4 p = LOAD4(param, i), g = unscale * LOAD4(grad, i) + pc.weight_decay * p;
        const vec4 m = pc.beta1 * LOAD4(moment1, i) + pc.one_minus_beta1 * g;
        const vec4 v = pc.beta2 * LOAD4(moment2, i) + pc.one_minus_beta2 * g * g;
        moment1_out[i] = m;
        moment2_out[i] = v;
        param_out[i] = p - size * m / (sqrt(v) / scale + pc.eps);
    }
}
