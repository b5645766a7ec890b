// bench/copy.comp - copies x to y. vkt-bench measures the memory bandwidth of a device with this kernel, and compares other
// kernels with the result.
// grid: x over vec4s in contiguous shares; any group count is right
// in: x (n) vec4    out: y (n) vec4
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/bench.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(BENCH_X, x);
layout(binding = BENCH_Y) writeonly buffer Y { vec4 y[]; };

void main()
{
    const uvec2 share = share_of(pc.n);
    const uint lanes = gl_WorkGroupSize.x;
    uint i = share.x + gl_LocalInvocationID.x;
    for (; i + 3 * lanes < share.y; i += 4 * lanes)
        [[unroll]] for (uint k = 0; k < 4; k++) y[i + k * lanes] = LOAD4(x, i + k * lanes);
    for (; i < share.y; i += lanes) y[i] = LOAD4(x, i);
}
