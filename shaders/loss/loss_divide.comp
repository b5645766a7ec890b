// loss_divide.comp - norm = sum_j weight[j], or 1 if the reduction is "sum";  loss = (sum_j part[j]) / norm
//   part[j] is the sum of block j of the loss, and weight[j] is its weight (norm[j] in softmax_xent.comp).
// grid: one work group.
// Deterministic: the order of additions depends only on `blocks`, the lanes and the subgroup size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/loss_divide.abi.h"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
layout(binding = DIVIDE_PART, std430) readonly buffer Part { float part[]; };
layout(binding = DIVIDE_WEIGHT, std430) readonly buffer Weight { float weight[]; };
layout(binding = DIVIDE_LOSS, std430) writeonly buffer Loss { float loss[]; };
layout(binding = DIVIDE_NORM, std430) writeonly buffer Norm { float norm[]; };

void main()
{
    float v = 0.0, w = 0.0;
    for (uint j = gl_LocalInvocationID.x; j < pc.blocks; j += gl_WorkGroupSize.x) {
        v += part[j];
        w += weight[j];
    }
    v = sum_of_lanes(v);
    w = pc.sum != 0 ? 1.0 : sum_of_lanes(w);
    if (gl_LocalInvocationID.x == 0) {
        loss[0] = v / w;
        norm[0] = w;
    }
}
