// sgd.comp - stochastic gradient descent over a range of the parameter arena, in place:
//   torch:  buf = t == 1 ? g : momentum * buf + (1 - dampening) * g;  p -= lr * (nesterov ? g + momentum * buf : buf)
//   keras:  buf = momentum * buf + lr * g;  p -= nesterov ? lr * g + momentum * buf : buf
// Without MOMENTUM there is no buf, and p -= lr * g. lr and t come from the step state. g: see lib/update.glsl.
// grid: each work group processes one contiguous range; any group count is right.
// source: PyTorch documentation of torch.optim.SGD, Keras documentation of SGD; Sutskever et al., ICML 2013 (momentum).
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/sgd.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#include "lib/update.glsl"
layout(local_size_x_id = 0) in;
#ifdef MOMENTUM
VKT_IN4(UPDATE_MOMENT1, moment);
VKT_F32_OUT4(UPDATE_MOMENT1_OUT, buf_out);
#endif

void main()
{
    if (update_waits()) return;
    const float lr = step_float(STEP_LR);
    const bool keras = pc.keras != 0u, first = !keras && step[STEP_T] <= 1u;
#ifdef MOMENTUM
    const float momentum = pc.momentum, keep = pc.keep;
    const bool nesterov = pc.nesterov != 0u;
#endif
    const uvec2 share = share_of(pc.n4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const Rule rule = rule_of(i);
        if (rule.frozen) continue;
        const float rate = lr * rule.factor, inside = keras ? rate : 1.0, outside = keras ? 1.0 : rate;
        const vec4 p = LOAD4(param, i);
        vec4 g = inside * gradient(i, p, rule.decay);
#ifdef MOMENTUM
        const vec4 b = first ? g : momentum * LOAD4(moment, i) + keep * g;
        STORE4(buf_out, i, b);
        g = nesterov ? g + momentum * b : b;
#endif
        STORE4(param_out, i, decayed(p, rule) - outside * g);
    }
}
