// conv2d_pack.comp - weights (O,C/G,R,S) in the order in which conv2d_tile.comp reads them:
//   A[group][tile][tap][k][i] = m < rows ? w[group w_group + m w_row + k w_depth + tap] : 0,  m = tile MB + i
// grid: x over the vec4s of a panel (stride loop), y panels.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/conv2d_pack.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = PACK_W, std430) readonly buffer W { float w[]; };
layout(binding = PACK_A, std430) writeonly buffer A { vec4 a[]; };

float weight(uint start, uint m)
{
    return m < pc.rows ? w[start + m * pc.w_row] : 0.0;
}

void main()
{
    const uint group = gl_WorkGroupID.y / pc.tiles, tile = gl_WorkGroupID.y - group * pc.tiles;
    for (uint i = gl_GlobalInvocationID.x; i < pc.vec4s; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint row = i / pc.mb4, tap = row / pc.depth, k = row - tap * pc.depth;
        const uint m = 4 * (tile * pc.mb4 + i - row * pc.mb4), start = pc.w_base + group * pc.w_group + k * pc.w_depth + tap;
        a[gl_WorkGroupID.y * pc.vec4s + i] =
            vec4(weight(start, m), weight(start, m + 1), weight(start, m + 2), weight(start, m + 3));
    }
}
