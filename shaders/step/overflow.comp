// overflow.comp - sets HOLD_FOUND in STEP_HOLD (abi/step.abi.h) if a gradient is infinite or NaN. A dispatch checks one
// range of the gradients. Frozen parameters are ignored. With micro-batches, only the complete sum of gradients is
// checked. The sum is not finite if one summand is not finite.
// grid: each work group checks one contiguous part of the range; any group count is right.
// Deterministic: the order of an atomic OR does not matter.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/update.abi.h"
#include "abi/overflow.abi.h"
#include "lib/load.glsl"
#include "lib/groups.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(UPDATE_GRAD, grad);
layout(binding = UPDATE_STEP, std430) buffer Step { uint step[]; };

void main()
{
    if ((step[STEP_HOLD] & HOLD_MICRO) != 0u) return;
    const uvec2 share = share_of(pc.n4);
    uvec4 found = uvec4(0);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x)
        if (!is_frozen(i)) // the next line tests bits, because a compiler may remove isinf()
            found |= uvec4(equal(floatBitsToUint(LOAD4(grad, i)) & 0x7f800000u, uvec4(0x7f800000u)));
    if (found != uvec4(0)) atomicOr(step[STEP_HOLD], HOLD_FOUND);
}
