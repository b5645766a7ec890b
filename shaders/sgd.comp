// sgd.comp - stochastic gradient descent over a window of the parameter arena, in place:
//   g += wd p;  buf = t == 1 ? g : momentum buf + (1 - dampening) g;  g = nesterov ? g + momentum buf : buf;  p -= lr g
// Without MOMENTUM there is no buf. lr and t come from the step state.
// grid: each group takes one contiguous range; any group count is right. Deterministic: elementwise.
// source: PyTorch documentation of torch.optim.SGD; Sutskever et al., ICML 2013 (momentum).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/sgd.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = SGD_SPEC_SCALED) const bool SCALED = false;
VKT_IN4(SGD_PARAM, param);
VKT_IN4(SGD_GRAD, grad);
layout(binding = SGD_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = SGD_PARAM_OUT, std430) writeonly buffer ParamOut { vec4 param_out[]; };
#ifdef MOMENTUM
VKT_IN4(SGD_BUF, moment);
layout(binding = SGD_BUF_OUT, std430) writeonly buffer BufOut { vec4 buf_out[]; };
#endif

void main()
{
    if (SCALED && step[STEP_FOUND] != 0u) return;
    const float unscale = SCALED ? uintBitsToFloat(0x7f000000u - step[STEP_SCALE]) : 1.0; // the inverse of a power of two
    const float lr = uintBitsToFloat(step[STEP_LR]);
#ifdef MOMENTUM
    const bool first = step[STEP_T] <= 1u, nesterov = pc.nesterov != 0u;
#endif
    const uint lanes = gl_WorkGroupSize.x, groups = gl_NumWorkGroups.x;
    const uint chunk = (pc.n4 + lanes * groups - 1u) / (lanes * groups) * lanes;
    const uint begin = gl_WorkGroupID.x * chunk, end = min(begin + chunk, pc.n4);
    for (uint i = begin + gl_LocalInvocationID.x; i < end; i += lanes) {
        const vec4 p = LOAD4(param, i);
        vec4 g = unscale * LOAD4(grad, i) + pc.weight_decay * p;
#ifdef MOMENTUM
        const vec4 b = first ? g : pc.momentum * LOAD4(moment, i) + pc.keep * g;
        buf_out[i] = b;
        g = nesterov ? g + pc.momentum * b : b;
#endif
        param_out[i] = p - lr * g;
    }
}
