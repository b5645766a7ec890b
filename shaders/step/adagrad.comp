// adagrad.comp - Adagrad over a range of the parameter arena, in place. g: see lib/update.glsl.
//   s += g * g;  rate = lr / (1 + (t - 1) * lr_decay)
//   torch:  p -= rate * g / (sqrt(s) + eps)        keras:  p -= rate * g / sqrt(s + eps)
// grid: each work group processes one contiguous range; any group count is right.
// source: Duchi, Hazan & Singer, JMLR 12 (2011). PyTorch documentation of torch.optim.Adagrad, Keras documentation of Adagrad.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/adagrad.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#include "lib/update.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(UPDATE_MOMENT1, square);
VKT_F32_OUT4(UPDATE_MOMENT1_OUT, square_out);

void main()
{
    if (update_waits()) return;
    const float lr = step_float(STEP_LR) / (1.0 + float(step[STEP_T] - 1u) * pc.lr_decay);
    const float eps = pc.eps;
    const bool keras = pc.keras != 0u;
    const uvec2 share = share_of(pc.n4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const Rule rule = rule_of(i);
        if (rule.frozen) continue;
        const vec4 p = LOAD4(param, i), g = gradient(i, p, rule.decay);
        const vec4 s = LOAD4(square, i) + g * g;
        STORE4(square_out, i, s);
        STORE4(param_out, i, decayed(p, rule) - lr * rule.factor * g / (keras ? sqrt(s + eps) : sqrt(s) + eps));
    }
}
