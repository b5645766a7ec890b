// mlp_sum.comp - adds the PARTs of the work groups of mlp.comp or mlp_line.comp, in the order of the groups. The sums are the
// loss, dw and db of all layers (abi/mlp_layout.abi.h).
// ROWS: adds the PARTs of mlp_shared.comp. A work group is divided into quarters. All quarters have the same
//   elements, one for each lane of a quarter. Each quarter adds the PARTs of every fourth work group of
//   mlp_shared.comp. Then the four sums of an element are added.
// grid: x over the vec4s of a layer's PART, one vec4 per lane (stride loop); y over layers.
//   ROWS: x over the elements of a layer, four lanes per element (stride loop); y over layers.
// Deterministic: the order of additions depends only on the shape, the number of work groups and the number of lanes.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/mlp_layout.abi.h"
#include "abi/mlp_sum.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(binding = MLP_SUM_LOSS, std430) writeonly buffer Loss { float loss[]; };
layout(binding = MLP_SUM_W + 0, std430) writeonly buffer Weights1 { float w1[]; };
layout(binding = MLP_SUM_W + 1, std430) writeonly buffer Weights2 { float w2[]; };
layout(binding = MLP_SUM_W + 2, std430) writeonly buffer Weights3 { float w3[]; };
layout(binding = MLP_SUM_W + 3, std430) writeonly buffer Weights4 { float w4[]; };
layout(binding = MLP_SUM_B + 0, std430) writeonly buffer Bias1 { float b1[]; };
layout(binding = MLP_SUM_B + 1, std430) writeonly buffer Bias2 { float b2[]; };
layout(binding = MLP_SUM_B + 2, std430) writeonly buffer Bias3 { float b3[]; };
layout(binding = MLP_SUM_B + 3, std430) writeonly buffer Bias4 { float b4[]; };

uint of_layer(uint a, uint b, uint c, uint d)
{
    const uint l = gl_WorkGroupID.y;
    return l == 0 ? a : l == 1 ? b : l == 2 ? c : d;
}

void put_weight(uint i, float v)
{
    const uint l = gl_WorkGroupID.y;
    if ((pc.outputs >> (2 * l + 1) & 1) == 0) return;
    if (l == 0) w1[i] = v;
    else if (l == 1) w2[i] = v;
    else if (l == 2) w3[i] = v;
    else w4[i] = v;
}

void put_bias(uint i, float v)
{
    const uint l = gl_WorkGroupID.y;
    if ((pc.outputs >> (2 * l + 2) & 1) == 0) return;
    if (l == 0) b1[i] = v;
    else if (l == 1) b2[i] = v;
    else if (l == 2) b3[i] = v;
    else b4[i] = v;
}

#ifdef ROWS
layout(binding = MLP_SUM_PART, std430) readonly buffer Part { float part[]; };
shared float quarter[256];

// Returns the sum of element `at` over the PARTs of the work groups with the indices `group`, `group` + 4, `group` + 8, ..
float over_groups(uint at, uint group)
{
    float sum = 0.0;
    for (uint g = group; g < pc.groups; g += 4) sum += part[g * pc.part + at];
    return sum;
}

void main()
{
    const uint lanes = gl_WorkGroupSize.x / 4, lane = gl_LocalInvocationID.x % lanes, mine = gl_LocalInvocationID.x / lanes;
    const uint K = of_layer(pc.width0, pc.width1, pc.width2, pc.width3);
    const uint M = of_layer(pc.width1, pc.width2, pc.width3, pc.width4);
    const uint from = of_layer(pc.part1, pc.part2, pc.part3, pc.part4), n = M * (K + 1);
    const bool has_loss = (pc.outputs & 1) != 0 && gl_WorkGroupID.y == 0; // the loop treats the loss as element n of layer 1
    for (uint base = gl_WorkGroupID.x * lanes; base <= n; base += gl_NumWorkGroups.x * lanes) {
        const uint j = base + lane;
        const bool is_loss = has_loss && j == n;
        barrier();
        quarter[gl_LocalInvocationID.x] =
            j < n || is_loss ? over_groups(is_loss ? pc.part - 1 : from + j, mine) : 0.0;
        barrier();
        if (mine == 0) {
            const float low = quarter[lane] + quarter[lane + lanes];
            const float sum = low + (quarter[lane + 2 * lanes] + quarter[lane + 3 * lanes]);
            const uint o = j / (K + 1), k = j - o * (K + 1);
            if (is_loss) loss[0] = sum;
            else if (j < n && k < K) put_weight(o * K + k, sum);
            else if (j < n) put_bias(o, sum);
        }
    }
}
#else
VKT_IN4(MLP_SUM_PART, part4);

vec4 over_groups(uint at)
{
    vec4 sum = vec4(0);
    for (uint g = 0; g < pc.groups; g++, at += pc.part) sum += LOAD4(part4, at);
    return sum;
}

void main()
{
    const uint lanes = gl_WorkGroupSize.x, lane = gl_LocalInvocationID.x;
    const uint K = of_layer(pc.width0, pc.width1, pc.width2, pc.width3);
    const uint M = of_layer(pc.width1, pc.width2, pc.width3, pc.width4);
    const uint from = of_layer(pc.part1, pc.part2, pc.part3, pc.part4) + lane;
    const bool b_is_output = MLP_B_IS_OUTPUT(K, M, lanes);
    const uint A = b_is_output ? K + 1 : M, B = b_is_output ? M : K + 1, n = A * MLP_DIV_UP(B, 4 * lanes);
    for (uint j = gl_WorkGroupID.x; j < n; j += gl_NumWorkGroups.x) {
        const uint v = j / A, a = j - v * A;
        const vec4 sum = over_groups(from + j * lanes);
        [[unroll]] for (uint c = 0; c < 4; c++) {
            const uint b = (4 * v + c) * lanes + lane, o = b_is_output ? b : a, k = b_is_output ? a : b;
            if (b < B && k < K) put_weight(o * K + k, sum[c]);
            if (b < B && k == K) put_bias(o, sum[c]);
        }
    }
    if ((pc.outputs & 1) != 0 && gl_WorkGroupID.x + gl_WorkGroupID.y == 0) {
        const vec4 s = over_groups(pc.part - lanes + lane);
        float v = (s.x + s.y) + (s.z + s.w);
        for (uint k = lanes / 2; k > 0; k /= 2) v += subgroupShuffleXor(v, k);
        if (lane == 0) loss[0] = v;
    }
}
#endif
