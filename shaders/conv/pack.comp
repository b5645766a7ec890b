// conv/pack.comp - copies weights (O,C/G,R,S) to the order in which conv/tile.comp and conv/span.comp read them:
//   A[group][tile][r][k][s][i] = m < rows ? w[group * w_group + m * w_row + k * w_depth + r * w_outer + s * w_inner] : 0
// with m = tile * MB + i and s < inner. w[0] is the float at w_base. For conv/span.comp, r and s are the row and the
// column of a tap (for dx, the columns are in reverse order). For conv/tile.comp, r is the index of a tap, and s is 0.
// M_MAJOR: the order is A[group][tile][r][i][k].
// grid: x over the vec4s of a panel (stride loop), y over panels. A panel is A[group][tile].
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/conv2d_pack.abi.h"
layout(local_size_x_id = 0) in;
layout(constant_id = PACK_SPEC_M_MAJOR) const bool M_MAJOR = false;
layout(binding = PACK_W, std430) readonly buffer W { float w[]; };
layout(binding = PACK_A, std430) writeonly buffer A { vec4 a[]; };

void main()
{
    const uint group = gl_WorkGroupID.y / pc.tiles, tile = gl_WorkGroupID.y - group * pc.tiles;
    const uint inner4 = M_MAJOR ? pc.depth / 4 : pc.mb4, outer = M_MAJOR ? 4 * pc.mb4 : pc.depth * pc.inner;
    for (uint i = gl_GlobalInvocationID.x; i < pc.vec4s; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint line = i / inner4, r = line / outer, rest = line - r * outer, at = rest / pc.inner, s = rest - at * pc.inner;
        const uvec4 inner = 4 * (i - line * inner4) + uvec4(0, 1, 2, 3);
        const uvec4 m = 4 * tile * pc.mb4 + (M_MAJOR ? uvec4(at) : inner), k = M_MAJOR ? inner : uvec4(at);
        const uvec4 from = pc.w_base + group * pc.w_group + m * pc.w_row + k * pc.w_depth + r * pc.w_outer + s * pc.w_inner;
        vec4 v = vec4(0.0);
        [[unroll]] for (uint j = 0; j < 4; j++)
            if (m[j] < pc.rows) v[j] = w[from[j]];
        a[gl_WorkGroupID.y * pc.vec4s + i] = v;
    }
}
