// append.comp - copies the rows of x into a cache y: y[p][first + t] = x[p][t] for each plane p and each row t of a
// plane. A plane is a matrix of the last two dimensions. `first` is a number in device memory. A row that would be
// behind the end of a plane of y is not copied.
// grid: each work group copies one contiguous range of the vec4s of x; any group count is right.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/append.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(APPEND_X, x4);
layout(binding = APPEND_FIRST, std430) readonly buffer First { uint first[]; };
VKT_F32_OUT4(APPEND_Y, y4)

void main()
{
    const uint run = pc.run, plane = pc.rows * pc.row, x0 = pc.x0, y0 = pc.y0;
    const uint row = min(first[0], pc.rows), begin = row * pc.row;
    const uvec2 share = share_of(pc.n);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint p = i / run, at = begin + i - p * run;
        if (at < plane) STORE4(y4, y0 + p * plane + at, LOAD4(x4, x0 + i));
    }
}
