// label_move.comp - copies rows between a tensor with all rows and a slice of the rows whose labels count. rows[0 .. count - 1]
// are the indices of the rows whose labels count. Row i of the slice is the row with index rows[first + i].
//   to[i] = from[rows[first + i]] for first + i < count. For the other i, to[i] = 0 if `fill` is 1.
//   SCATTER: to[rows[first + i]] = from[i] for first + i < count
// A tensor that is larger than a binding has one dispatch for each range of its rows.
// grid: x over vec4s of the slice in contiguous shares; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/label_found.abi.h"
#include "abi/label_move.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(LABEL_MOVE_FROM, from4);
layout(binding = LABEL_MOVE_ROWS, std430) readonly buffer Rows { uint rows[]; };
layout(binding = LABEL_MOVE_FOUND, std430) readonly buffer Found { uint found[]; };
VKT_OUT4(LABEL_MOVE_TO, to4)

void main()
{
    const uint width4 = pc.width4, first = pc.first, base = pc.base, begin = pc.row_begin, end = pc.row_end, fill = pc.fill;
    const uint count = found[FOUND_COUNT];
    const uvec2 share = share_of(pc.rows * width4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint k = i / width4;
        const bool counts = first + k < count;
        const uint row = counts ? rows[first + k] : begin;
        const uint at = base + (row - begin) * width4 + (i - k * width4);
        if (row < begin || row >= end) continue;
#ifdef SCATTER
        if (counts) STORE4(to4, at, LOAD4(from4, i));
#else
        if (counts) STORE4(to4, i, LOAD4(from4, at));
        else if (fill != 0) STORE4(to4, i, vec4(0.0));
#endif
    }
}
