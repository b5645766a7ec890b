// conv/pack_rows.comp - copies weights to the order in which conv/shared.comp reads them, with the channels innermost:
//   A[group][m][tap][k] = k < depth ? w[group * w_group + m * w_row + k * w_depth + tap] : 0,   k < 4 * depth_vec4s
// m is a destination channel of the group, and k is a source channel. If A is stored in 16 bits, the weights are rounded.
// grid: x over the vec4s of a group of channels (stride loop), y over groups of channels.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/conv2d_pack_rows.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(binding = PACK_ROWS_W, std430) readonly buffer W { float w[]; };
VKT_OUT4(PACK_ROWS_A, a);

void main()
{
    for (uint i = gl_GlobalInvocationID.x; i < pc.vec4s; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint line = i / pc.depth_vec4s, m = line / pc.taps, tap = line - m * pc.taps, k = 4 * (i - line * pc.depth_vec4s);
        const uint from = gl_WorkGroupID.y * pc.w_group + m * pc.w_row + k * pc.w_depth + tap;
        vec4 v = vec4(0.0);
        [[unroll]] for (uint j = 0; j < 4; j++)
            if (k + j < pc.depth) v[j] = w[from + j * pc.w_depth];
        STORE4(a, gl_WorkGroupID.y * pc.vec4s + i, v);
    }
}
