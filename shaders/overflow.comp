// overflow.comp - sets STEP_FOUND if a number of the window is infinite or NaN.
// grid: each group takes one contiguous range; any group count is right. Deterministic: the order of an atomic or is no matter.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/overflow.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(OVERFLOW_GRAD, grad);
layout(binding = OVERFLOW_STEP, std430) buffer Step { uint step[]; };

void main()
{
    const uvec2 share = share_of(pc.n4);
    uvec4 found = uvec4(0);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x)
        found |= uvec4(equal(floatBitsToUint(LOAD4(grad, i)) & 0x7f800000u, uvec4(0x7f800000u))); // isinf() may be folded away
    if (found != uvec4(0)) atomicOr(step[STEP_FOUND], 1u);
}
