// pad.comp - y = x with a fill value around it and between its elements: constant padding, and the gradient of a slice with
// steps.
//   WIDTH 4: copies vec4s of f32. Along the fastest dimension, x and the padding are whole vec4s, and there is no fill between
//   the elements of x.
//   WIDTH 1: copies single 32-bit words of any type.
// grid: x over the positions of the tensor y in contiguous shares; any group count is right.
// Deterministic: a copy. For each position of y, a lane computes the position of x that it copies.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/pad.abi.h"
#include "lib/positions.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = PAD_SPEC_FILL) const uint FILL = 0;
layout(constant_id = PAD_SPEC_GAPS) const uint GAPS = 1;
#if WIDTH == 4
#include "lib/load.glsl"
VKT_IN4(PAD_X, x4);
VKT_OUT4(PAD_Y, y4);
#define COPY(to, from, inside) STORE4(y4, to, mix(uintBitsToFloat(uvec4(FILL)), LOAD4(x4, from), bvec4(inside)))
#else
layout(binding = PAD_X, std430) readonly buffer X { uint x[]; };
layout(binding = PAD_Y, std430) writeonly buffer Y { uint y[]; };
#define COPY(to, from, inside) y[to] = inside ? x[from] : FILL
#endif

void main()
{
    const uint d[6] = uint[](0, pc.d1, pc.d2, pc.d3, pc.d4, pc.d5);
    const uint s[6] = uint[](pc.s0, pc.s1, pc.s2, pc.s3, pc.s4, pc.s5);
    const uint before[6] = uint[](pc.b0, pc.b1, pc.b2, pc.b3, pc.b4, pc.b5);
    const uint n[6] = uint[](pc.n0, pc.n1, pc.n2, pc.n3, pc.n4, pc.n5);
    const uint gap[6] = uint[](pc.g0, pc.g1, pc.g2, pc.g3, pc.g4, pc.g5);
    const uint x_first = pc.x, y_first = pc.y; // in the loop, lavapipe would compile each read to a loop over the lanes
    const uvec2 share = share_of(pc.n);
    uint u = share.x + gl_LocalInvocationID.x;
    for (uint c[6] = position_of(u, d); u < share.y; u += gl_WorkGroupSize.x) {
        uint from = 0;
        bool inside = true;
        [[unroll]] for (uint k = FIRST; k < 6; k++) {
            // Before the first element of x, `away` wraps around to a large number.
            const uint away = c[k] - before[k], i = GAPS != 0 ? away / gap[k] : away;
            inside = inside && i < n[k] && (GAPS == 0 || i * gap[k] == away);
            from = from * n[k] + i;
        }
        COPY(y_first + u, inside ? x_first + from : 0, inside);
        next_position(c, d, s);
    }
}
