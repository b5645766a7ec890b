// running_stats.comp - mean += momentum * (new_mean - mean) and var += momentum * (new_var - var). If `unbiased`, new_var
// is first multiplied by n / max(n - 1, 1).
//   n = real rows * positions: the number of real elements of a channel. A batch without real rows changes nothing.
// grid: x over channels with a stride.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/running_stats.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = RUNNING_STATS_MEAN, std430) buffer Mean { float mean[]; };
layout(binding = RUNNING_STATS_VAR, std430) buffer Var { float var[]; };
layout(binding = RUNNING_STATS_NEW_MEAN, std430) readonly buffer NewMean { float new_mean[]; };
layout(binding = RUNNING_STATS_NEW_VAR, std430) readonly buffer NewVar { float new_var[]; };
layout(binding = RUNNING_STATS_STEP, std430) readonly buffer Step { uint step[]; };

void main()
{
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    const float n = float(min(step[STEP_ROWS], pc.batch)) * float(pc.positions);
    if (n == 0.0) return;
    const float factor = pc.unbiased != 0 ? n / max(n - 1.0, 1.0) : 1.0;
    for (uint c = gl_GlobalInvocationID.x; c < pc.channels; c += stride) {
        mean[c] += pc.momentum * (new_mean[c] - mean[c]);
        var[c] += pc.momentum * (factor * new_var[c] - var[c]);
    }
}
