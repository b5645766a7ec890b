// gemm_pack.comp - packs an operand of gemm_tile into tiles, as gemm_tile.abi.h describes. Here, x is the index m of
// operand A, or the index n of operand B. A block of the source is packed: xn elements along x and kn along k. Elements
// of the tiles outside this block are zero. Four neighbours in the source, along x or along k, become one vec4 of a
// tile. So nothing is transposed.
// A lane copies four vec4s that are consecutive in k. With X_OUTER, a row of the source has all k of one x, so these
// vec4s are neighbours in the row.
// grid: x over the vec4s of a tile with a stride, y over tiles, z over the matrices of the batch.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/gemm_pack.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = PACK_SPEC_WIDTH) const uint WIDTH = 32;
layout(constant_id = PACK_SPEC_X_OUTER) const bool X_OUTER = false;
layout(constant_id = PACK_SPEC_VECTORS) const bool VECTORS = true;
VKT_IN4(PACK_SRC4, src4);
layout(binding = PACK_SRC, std430) readonly buffer Src { float src[]; };
VKT_F32_OUT4(PACK_DST, dst);

const uint ACROSS = X_OUTER ? WIDTH : WIDTH / 4u; // vec4s of a tile per k; X_OUTER: per four k

// Returns the elements `inner` .. `inner` + 3 of source row `outer`. Elements outside the block are zero.
vec4 load(uint base, uint outer, uint outer_n, uint inner, uint inner_n)
{
    const uvec4 at = uvec4(inner) + uvec4(0u, 1u, 2u, 3u);
    const uint first = base + outer * pc.ld + inner;
    vec4 v = vec4(0.0);
    if (outer >= outer_n || inner >= inner_n) return v;
    if (VECTORS) return mix(v, LOAD4(src4, first / 4u), lessThan(at, uvec4(inner_n)));
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (at[i] < inner_n) v[i] = src[first + i];
    return v;
}

void main()
{
    const uint tile = gl_WorkGroupID.y, base = pc.src_base + gl_WorkGroupID.z * pc.src_batch;
    const uint out_base = pc.dst_base + gl_WorkGroupID.z * pc.dst_batch + tile * pc.dst_panel;
    // The unit of `end` and of the loop's variable k is one element along k. With X_OUTER, it is four elements.
    const uint end = X_OUTER ? pc.k4 : pc.k4 * 4u, n = (end + 3u) / 4u * ACROSS;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint x = i % ACROSS, k = i / ACROSS * 4u;
        vec4 v[4];
        [[unroll]] for (uint j = 0; j < 4; j++)
            v[j] = X_OUTER ? load(base, tile * WIDTH + x, pc.xn, (k + j) * 4u, pc.kn)
                           : load(base, k + j, pc.kn, tile * WIDTH + 4u * x, pc.xn);
        [[unroll]] for (uint j = 0; j < 4; j++)
            if (k + j < end) STORE4(dst, out_base + (k + j) * ACROSS + x, v[j]);
    }
}
