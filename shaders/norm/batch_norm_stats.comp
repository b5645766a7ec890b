// batch_norm_stats.comp - computes the statistics of each block of a channel, over real rows only
//   part = (count, mean, sum of (x - mean)^2)      SUMS: part = (sum of dy, sum of dy * xhat)
//   xhat = (x - mean) / sqrt(var + eps)
// grid: x over the blocks of all channels with a stride, one work group per block.
// Deterministic: see lib/channel_sums.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/batch_norm.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
#include "lib/channels.glsl"
// 1: all rows of the batch count as real. Without SUMS, GIVEN is 0.
layout(constant_id = BATCH_NORM_SPEC_GIVEN) const uint GIVEN = 0;
VKT_IN4(BATCH_NORM_X, x4);
layout(binding = BATCH_NORM_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = BATCH_NORM_PART, std430) writeonly buffer Part { vec4 part[]; };
#ifdef SUMS
#include "lib/channel_gradient.glsl"
layout(binding = BATCH_NORM_MEAN, std430) readonly buffer Mean { float mean_of[]; };
layout(binding = BATCH_NORM_VAR, std430) readonly buffer Var { float var_of[]; };
#endif
#include "lib/channel_sums.glsl"

void main()
{
    const uint rows = GIVEN != 0 ? pc.batch : min(step[STEP_ROWS], pc.batch);
    for (uint u = gl_WorkGroupID.x; u < pc.channels * pc.blocks; u += gl_NumWorkGroups.x) {
        const uint block = u / pc.channels, c = u % pc.channels;
        const uint first = block * pc.per_block, end = min(first + pc.per_block, pc.channel4);
#ifdef SUMS
        const float mean = mean_of[pc.first + c], scale = 1.0 / sqrt(var_of[pc.first + c] + pc.eps);
        const vec4 result = block_sums(c, first, end, rows, mean, scale);
#else
        const vec4 result = block_statistics(pc.x4 + c * pc.channel4, first, end, rows);
#endif
        if (gl_LocalInvocationID.x == 0) part[block * pc.all_channels + pc.first + c] = result;
    }
}
