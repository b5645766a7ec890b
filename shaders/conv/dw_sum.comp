// conv/dw_sum.comp - adds the sums of all slices, first to last:
//   dw[i] = sum_k part[k][i], and db in the same way
//   Another kernel divided the addends of its sums into slices. For slice k, it stored a dw and a db in
//   part[k]. The other kernel is dw_tile, dw_direct, dw_direct_shared, dw_shared or norm/row_norm_dw. For row_norm_dw,
//   dw is dgamma and db is dbeta.
//   WIDE: adds vec4s. The last vec4 of dw and of db may be partial. In each slice, dw and db start at multiples of 4 floats.
// grid: x over the elements of dw and db; WIDE: over their vec4s (stride loop).
// Deterministic: one lane computes an element.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/conv2d_dw_sum.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(binding = DW_SUM_W, std430) writeonly buffer Dw { float dw[]; };
layout(binding = DW_SUM_B, std430) writeonly buffer Db { float db[]; };

#ifdef WIDE
VKT_IN4(DW_SUM_PART, part_in);
VKT_STORED(DW_SUM_W, writeonly, dw4)

void main()
{
    const uint weights = pc.weights, biases = pc.biases, weights4 = (weights + 3) / 4, n4 = weights4 + (biases + 3) / 4;
    const uint part4 = pc.part / 4, bias_start4 = pc.bias_start / 4, slices = pc.slices;
    for (uint i = gl_GlobalInvocationID.x; i < n4; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const bool is_weight = i < weights4;
        uint at = is_weight ? i : bias_start4 + i - weights4;
        vec4 sum = vec4(0.0);
        for (uint k = 0; k < slices; k++, at += part4) sum += LOAD4(part_in, at);
        if (is_weight && 4 * i + 4 <= weights) dw4_put(i, sum);
        else
            [[unroll]] for (uint j = 0; j < 4; j++) {
                const uint b = 4 * (i - weights4) + j;
                if (is_weight && 4 * i + j < weights) dw[4 * i + j] = sum[j];
                if (!is_weight && b < biases) db[b] = sum[j];
            }
    }
}
#else
layout(binding = DW_SUM_PART, std430) readonly buffer Part { float part_in[]; };

void main()
{
    const uint n = pc.weights + pc.biases;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        uint at = i < pc.weights ? i : pc.bias_start + i - pc.weights;
        float sum = 0;
        for (uint k = 0; k < pc.slices; k++, at += pc.part) sum += part_in[at];
        if (i < pc.weights) dw[i] = sum;
        else db[i - pc.weights] = sum;
    }
}
#endif
