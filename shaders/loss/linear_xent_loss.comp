// linear_xent_loss.comp - loss = sum of part[i] over the labels that count. part[i] is the loss of the i-th of these
//   labels (linear_xent.comp). A mean is this sum, divided by the number of labels that count.
//   The loss is NaN if a label of a real row is neither a class nor ignored. A mean is also NaN if no label counts.
// grid: one work group.
// Deterministic: the order of additions depends only on the number of labels that count, the lanes and the subgroup size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/label_found.abi.h"
#include "abi/linear_xent_loss.abi.h"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
layout(binding = LINEAR_XENT_LOSS_PART, std430) readonly buffer Part { float part[]; };
layout(binding = LINEAR_XENT_LOSS_FOUND, std430) readonly buffer Found { uint found[]; };
layout(binding = LINEAR_XENT_LOSS_OUT, std430) writeonly buffer Loss { float loss[]; };
const uint SPAN = 64;
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)

void main()
{
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x, count = found[FOUND_COUNT];
    float sum = 0.0;
    for (uint c = 0; c < count; c += SPAN * lanes) {
        const uint end = min(c + SPAN * lanes, count);
        float span = 0.0;
        for (uint i = c + lane; i < end; i += lanes) span += part[i];
        sum += span;
    }
    sum = sum_of_lanes(sum);
    if (lane != 0) return;
    if (found[FOUND_WRONG] != 0 || (pc.mean != 0 && count == 0)) loss[0] = NOT_A_NUMBER;
    else loss[0] = pc.mean != 0 ? sum / float(count) : sum;
}
