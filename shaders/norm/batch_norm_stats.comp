// batch_norm_stats.comp - computes the statistics of each block of a channel, over real rows only
//   part = (count, mean, sum of squares about that mean)      SUMS: part = (sum of dy, sum of dy xhat)
//   xhat = (x - mean) / sqrt(var + eps)
// grid: x over blocks of channels with a stride, one work group per block.
// source: Chan, Golub & LeVeque, Algorithms for Computing the Sample Variance, 1983, "corrected two-pass"
// Deterministic: the order of additions depends only on the shape, the lanes and the subgroup size.
// The kernel computes the mean first and then the squares about it, while the block is still in the cache. So nothing cancels.
// The rounding error of the mean is removed from both results.
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
layout(constant_id = BATCH_NORM_SPEC_GIVEN) const uint GIVEN = 0; // 1, only with SUMS: all rows are real
VKT_IN4(BATCH_NORM_X, x4);
layout(binding = BATCH_NORM_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = BATCH_NORM_PART, std430) writeonly buffer Part { vec4 part[]; };
#ifdef SUMS
VKT_IN4(BATCH_NORM_DY, dy4);
layout(binding = BATCH_NORM_MEAN, std430) readonly buffer Mean { float mean_of[]; };
layout(binding = BATCH_NORM_VAR, std430) readonly buffer Var { float var_of[]; };
#endif

float sum4(vec4 v)
{
    return sum_of_lanes((v.x + v.y) + (v.z + v.w));
}

void main()
{
    const uint rows = GIVEN != 0 ? pc.batch : min(step[STEP_ROWS], pc.batch);
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
    for (uint u = gl_WorkGroupID.x; u < pc.channels * pc.blocks; u += gl_NumWorkGroups.x) {
        const uint block = u / pc.channels, c = u % pc.channels;
        const uint first = block * pc.per_block, end = min(first + pc.per_block, pc.channel4);
        const uint x_at = pc.x4 + c * pc.channel4, column = column_of(first + lane);
        const float n = float(real_before(end, rows) - real_before(first, rows));
        vec4 a = vec4(0.0), b = vec4(0.0), result;
#ifdef SUMS
        const uint dy_at = pc.dy4 + c * pc.channel4;
        const float mean = mean_of[pc.first + c], scale = 1.0 / sqrt(var_of[pc.first + c] + pc.eps);
        for (uint i = first + lane, k = column; i < end; i += lanes, k = next_column(k)) {
            const vec4 dy = mix(vec4(0.0), LOAD4(dy4, dy_at + i), is_real(k, rows));
            a += dy;
            b += dy * (LOAD4(x4, x_at + i) - mean);
        }
        result = vec4(sum4(a), sum4(b) * scale, 0.0, 0.0);
#else
        for (uint i = first + lane, k = column; i < end; i += lanes, k = next_column(k))
            a += mix(vec4(0.0), LOAD4(x4, x_at + i), is_real(k, rows));
        const float mean = n == 0.0 ? 0.0 : sum4(a) / n;
        a = vec4(0.0);
        for (uint i = first + lane, k = column; i < end; i += lanes, k = next_column(k)) {
            const vec4 d = mix(vec4(0.0), LOAD4(x4, x_at + i) - mean, is_real(k, rows));
            a += d;
            b += d * d;
        }
        const float left = n == 0.0 ? 0.0 : sum4(a) / n;
        result = vec4(n, mean + left, sum4(b) - n * left * left, 0.0);
#endif
        if (lane == 0) part[block * pc.all_channels + pc.first + c] = result;
    }
}
