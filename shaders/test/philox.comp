// test/philox.comp - computes out[i] = philox4x32((i, a, b, stream), key). A test compares out
// with the numbers that the host computes.
// grid: x over n with a grid stride; any group count is right.
// out: n uvec4
// Deterministic: integers.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/philox_test.abi.h"
#include "lib/philox.glsl"
layout(local_size_x_id = 0) in;
layout(binding = PHILOX_OUT, std430) writeonly buffer Out { uvec4 words[]; };

void main()
{
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < pc.n; i += stride)
        words[i] = philox4x32(uvec4(i, pc.a, pc.b, pc.stream), uvec2(pc.key_lo, pc.key_hi));
}
