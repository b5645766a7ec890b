// rmsprop.comp - RMSprop over a range of the parameter arena, in place. g: see lib/update.glsl.
//   v = alpha * v + (1 - alpha) * g * g;  CENTERED: a = alpha * a + (1 - alpha) * g, else a = 0
//   torch:  d = g / (sqrt(v - a * a) + eps);       MOMENTUM: buf = momentum * buf + d, p -= lr * buf, else p -= lr * d
//   keras:  d = lr * g / sqrt(v - a * a + eps);    MOMENTUM: buf = momentum * buf + d, p -= buf,      else p -= d
// grid: each work group processes one contiguous range; any group count is right.
// source: Tieleman & Hinton, lecture 6.5 of Neural Networks for Machine Learning (2012); Graves, arXiv 1308.0850, equations 38
//         to 45 (centered, with momentum). PyTorch documentation of torch.optim.RMSprop, Keras documentation of RMSprop.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/rmsprop.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#include "lib/update.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(UPDATE_MOMENT1, square);
VKT_F32_OUT4(UPDATE_MOMENT1_OUT, square_out);
#ifdef MOMENTUM
VKT_IN4(UPDATE_MOMENT2, moment);
VKT_F32_OUT4(UPDATE_MOMENT2_OUT, buf_out);
#endif
#ifdef CENTERED
VKT_IN4(UPDATE_MOMENT3, mean);
VKT_F32_OUT4(UPDATE_MOMENT3_OUT, mean_out);
#endif

void main()
{
    if (update_waits()) return;
    const float lr = step_float(STEP_LR);
    const float alpha = pc.alpha, one_minus_alpha = pc.one_minus_alpha, momentum = pc.momentum, eps = pc.eps;
    const bool keras = pc.keras != 0u;
    const uvec2 share = share_of(pc.n4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const Rule rule = rule_of(i);
        if (rule.frozen) continue;
        const float rate = lr * rule.factor, inside = keras ? rate : 1.0, outside = keras ? 1.0 : rate;
        const vec4 p = LOAD4(param, i), g = gradient(i, p, rule.decay);
        const vec4 v = alpha * LOAD4(square, i) + one_minus_alpha * g * g;
        vec4 spread = v;
        STORE4(square_out, i, v);
#ifdef CENTERED
        const vec4 a = alpha * LOAD4(mean, i) + one_minus_alpha * g;
        STORE4(mean_out, i, a);
        spread -= a * a;
#endif
        vec4 d = inside * g / (keras ? sqrt(spread + eps) : sqrt(spread) + eps);
#ifdef MOMENTUM
        d += momentum * LOAD4(moment, i);
        STORE4(buf_out, i, d);
#endif
        STORE4(param_out, i, decayed(p, rule) - outside * d);
    }
}
