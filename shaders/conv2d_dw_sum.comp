// conv2d_dw_sum.comp - adds the slices that conv2d_dw.comp made, first to last:  dw[i] = sum_k part[k][i], db the same.
// grid: x over the elements of dw and db (stride loop).  Deterministic.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/conv2d_dw_sum.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = DW_SUM_PART, std430) readonly buffer Part { float part_in[]; };
layout(binding = DW_SUM_W, std430) writeonly buffer Dw { float dw[]; };
layout(binding = DW_SUM_B, std430) writeonly buffer Db { float db[]; };

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
