// broadcast.comp - y = f(a, b) with NumPy's broadcasting over strided operands: ADD, MUL, or COPY (y = a).
//   A row is a run of y's fastest dimension: its number is taken apart once, then lanes walk along it. Lanes past the batch
//   (run <= i < pitch) are zero.
// grid: x over rows with a stride, one work group a row at a time; any group count is right. Deterministic.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/broadcast.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = BROADCAST_A, std430) readonly buffer A { float a[]; };
#ifndef COPY
layout(binding = BROADCAST_B, std430) readonly buffer B { float b[]; };
#endif
layout(binding = BROADCAST_Y, std430) writeonly buffer Y { float y[]; };

void main()
{
    for (uint row = gl_WorkGroupID.x; row < pc.rows; row += gl_NumWorkGroups.x) {
        uint r = row;
        const uint i4 = r % pc.d4; r /= pc.d4;
        const uint i3 = r % pc.d3; r /= pc.d3;
        const uint i2 = r % pc.d2; r /= pc.d2;
        const uint i1 = r % pc.d1;
        const uint i0 = r / pc.d1;
        const uint at = i0 * pc.a0 + i1 * pc.a1 + i2 * pc.a2 + i3 * pc.a3 + i4 * pc.a4;
#ifndef COPY
        const uint bt = i0 * pc.b0 + i1 * pc.b1 + i2 * pc.b2 + i3 * pc.b3 + i4 * pc.b4;
#endif
        for (uint i = gl_LocalInvocationID.x; i < pc.pitch; i += gl_WorkGroupSize.x) {
            const uint k = min(i, pc.run - 1);
            float v = a[at + k * pc.a5];
#if defined(ADD)
            v += b[bt + k * pc.b5];
#elif defined(MUL)
            v *= b[bt + k * pc.b5];
#endif
            y[row * pc.pitch + i] = i < pc.run ? v : 0.0;
        }
    }
}
