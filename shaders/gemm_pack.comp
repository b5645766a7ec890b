// gemm_pack.comp - dst[panel][k][x] = src(x, k), zero past xn and kn; x runs over a panel's width, k over 4 k4 steps
// A lane moves a block of 4 x by 4 k: a transposition in registers where the source has x along its slow dimension.
// grid: x over k4 * WIDTH4 with a stride, y one per panel, z one per batch. Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/gemm_pack.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = PACK_SPEC_WIDTH4) const uint WIDTH4 = 8;
layout(constant_id = PACK_SPEC_X_OUTER) const uint X_OUTER = 0;
layout(constant_id = PACK_SPEC_VECTORS) const uint VECTORS = 1;
VKT_IN4(PACK_SRC4, src4);
layout(binding = PACK_SRC, std430) readonly buffer Src { float src[]; };
layout(binding = PACK_DST, std430) writeonly buffer Dst { vec4 dst[]; };

// Elements inner .. inner + 3 of source row `outer`; zero outside the block.
vec4 load(uint base, uint outer, uint outer_n, uint inner, uint inner_n)
{
    const uvec4 at = uvec4(inner) + uvec4(0u, 1u, 2u, 3u);
    const uint first = base + outer * pc.ld + inner;
    vec4 v = vec4(0.0);
    if (outer >= outer_n || inner >= inner_n) return v;
    if (VECTORS != 0u) return mix(v, LOAD4(src4, first / 4u), lessThan(at, uvec4(inner_n)));
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (at[i] < inner_n) v[i] = src[first + i];
    return v;
}

void main()
{
    const uint panel = gl_WorkGroupID.y, n = pc.k4 * WIDTH4, base = pc.src_base + gl_WorkGroupID.z * pc.src_batch;
    const uint out_base = pc.dst_base + gl_WorkGroupID.z * pc.dst_batch + panel * pc.dst_panel;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint lane = i % WIDTH4, k = i / WIDTH4 * 4u, x = (panel * WIDTH4 + lane) * 4u;
        vec4 v[4];
        [[unroll]] for (uint j = 0; j < 4; j++)
            v[j] = X_OUTER != 0u ? load(base, x + j, pc.xn, k, pc.kn) : load(base, k + j, pc.kn, x, pc.xn);
        [[unroll]] for (uint j = 0; j < 4; j++)
            dst[out_base + (k + j) * WIDTH4 + lane] = X_OUTER != 0u ? vec4(v[0][j], v[1][j], v[2][j], v[3][j]) : v[j];
    }
}
