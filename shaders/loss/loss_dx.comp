// loss_dx.comp - dy = dloss / divisor * slope in the real rows, else 0. The slope is the derivative of term(y, target)
// with respect to y. The divisor is `elements`, times the number of real rows if `by_rows` is 1.
//   EACH: dloss is a tensor like y, and there is no divisor.
//   TERM: the kernel writes term(y, target) instead, for a loss without reduction.
//   A dispatch processes a range of n elements, from vec4 begin4 of each tensor on. The tensors have the same layout.
// grid: x over vec4s in contiguous shares; any group count is right.
// Deterministic: elementwise.
// The last n % 4 elements are stored one by one, because the memory behind the tensor may belong to another tensor.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/loss.abi.h"
#include "lib/explog.glsl"
#include "lib/load.glsl"
#include "lib/loss.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = LOSS_SPEC_EACH) const bool EACH = false;
layout(constant_id = LOSS_SPEC_TERM) const bool TERM = false;
VKT_IN4(LOSS_Y, y4);
VKT_IN4(LOSS_TARGET, target4);
VKT_OUT4(LOSS_DY, dy4);
layout(binding = LOSS_STEP, std430) readonly buffer Step { uint step[]; };
VKT_IN4(LOSS_DLOSS, dloss4);
layout(binding = LOSS_DY, std430) writeonly buffer Dy1 { float dy[]; };

vec4 element(uint i, uint column, float scale, uint limit)
{
    const bvec4 real = lessThan(4 * column + uvec4(0, 1, 2, 3), uvec4(limit));
    const vec4 y = LOAD4(y4, i), t = LOAD4(target4, i), w = weights_at(pc.begin4 + i);
    if (TERM) return mix(vec4(0.0), term_of(y, t, w), real);
    return mix(vec4(0.0), (EACH ? LOAD4(dloss4, i) : vec4(scale)) * slope_of(y, t, w), real);
}

void main()
{
    const uint rows = min(step[STEP_ROWS], pc.batch), limit = rows * pc.per_row;
    const uint whole = pc.n / 4, hop = gl_WorkGroupSize.x % pc.period4;
    const uvec2 share = share_of(whole);
    const float n = (pc.by_rows != 0 ? float(rows) : 1.0) * float(pc.elements);
    const float scale = EACH || TERM ? 1.0 : LOAD4(dloss4, 0).x / n;
    uint column = (pc.begin4 + share.x + gl_LocalInvocationID.x) % pc.period4;
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        STORE4(dy4, i, element(i, column, scale, limit));
        column += hop;
        column -= column >= pc.period4 ? pc.period4 : 0u;
    }
    if (gl_GlobalInvocationID.x == 0 && pc.n % 4 != 0) {
        const vec4 tail = element(whole, (pc.begin4 + whole) % pc.period4, scale, limit);
        for (uint k = 0; k < pc.n % 4; k++) dy[4 * whole + k] = tail[k];
    }
}
