// move.comp - copies a strided box of x to a strided box of y: permutations, slices, parts of a concatenation.
//   WIDTH 4: copies vec4s, which are contiguous in x and in y. WIDTH 1: copies single 32-bit words of any type.
// grid: x over the positions of the box in contiguous shares; any group count is right.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/move.abi.h"
#include "lib/positions.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
#if WIDTH == 4
#include "lib/load.glsl"
VKT_IN4(MOVE_X, x4);
VKT_OUT4(MOVE_Y, y4);
#define MOVE(to, from) STORE4(y4, to, LOAD4(x4, from))
#else
layout(binding = MOVE_X, std430) readonly buffer X { uint x[]; };
layout(binding = MOVE_Y, std430) writeonly buffer Y { uint y[]; };
#define MOVE(to, from) y[to] = x[from]
#endif

void main()
{
    const uint d[6] = uint[](0, pc.d1, pc.d2, pc.d3, pc.d4, pc.d5);
    const uint s[6] = uint[](pc.s0, pc.s1, pc.s2, pc.s3, pc.s4, pc.s5);
    const uint xs[6] = uint[](pc.x0, pc.x1, pc.x2, pc.x3, pc.x4, pc.x5);
    const uint ys[6] = uint[](pc.y0, pc.y1, pc.y2, pc.y3, pc.y4, pc.y5);
    const uint x_first = pc.x, y_first = pc.y; // inside a loop, lavapipe reads a push constant once for each lane
    const uvec2 share = share_of(pc.n);
    uint u = share.x + gl_LocalInvocationID.x;
    for (uint c[6] = position_of(u, d); u < share.y; u += gl_WorkGroupSize.x) {
        uint from = x_first, to = y_first;
        [[unroll]] for (uint k = FIRST; k < 6; k++) {
            from += c[k] * xs[k];
            to += c[k] * ys[k];
        }
        MOVE(to, from);
        next_position(c, d, s);
    }
}
