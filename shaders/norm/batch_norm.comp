// batch_norm.comp - normalises channels, or computes the gradient; xhat = (x - mean) / sqrt(var + eps)
//   y = gamma * xhat + beta in the real rows, else 0. PLUS: a tensor of y's shape is added to this result. GIVEN: mean
//   and variance are constants, and all rows are real.
//   DX  dx = gamma / sqrt(var + eps) * (dy - m0 - xhat * m1) in the real rows, else 0. m0 is the mean of dy, and m1 is
//       the mean of dy * xhat. With GIVEN, m0 and m1 are 0.
//   JOINED  each work group finds the statistics (DX: the sums) of its channel itself. ALONE: a channel is one block, so its
//       work group computes the statistics or sums. Without ALONE, each work group combines the results of all blocks of
//       the channel. batch_norm_stats.comp has stored these results. The work group of the channel's first block stores the
//       combined result. RUNNING: this work group also updates the running statistics as running_stats.comp does.
// grid: x over the blocks of all channels with a stride, one work group per block; any group count is right.
// source: Ioffe & Szegedy, Batch Normalization, 2015
// Deterministic: elementwise; JOINED: see lib/channel_sums.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/batch_norm.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#include "lib/channels.glsl"
layout(constant_id = BATCH_NORM_SPEC_GAMMA) const uint GAMMA = 1;
layout(constant_id = BATCH_NORM_SPEC_GIVEN) const uint GIVEN = 0;
layout(binding = BATCH_NORM_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = BATCH_NORM_GAMMA, std430) readonly buffer Gamma { float gamma[]; };
VKT_IN4(BATCH_NORM_X, x4);
VKT_OUT4(BATCH_NORM_Y, y4);
#if defined(JOINED) && !defined(DX)
#define STATISTICS writeonly
#else
#define STATISTICS readonly
#endif
layout(binding = BATCH_NORM_MEAN, std430) STATISTICS buffer Mean { float mean_of[]; };
layout(binding = BATCH_NORM_VAR, std430) STATISTICS buffer Var { float var_of[]; };
#ifdef DX
#include "lib/channel_gradient.glsl"
#ifdef JOINED
#define SUMS_ACCESS writeonly
#else
#define SUMS_ACCESS readonly
#endif
layout(binding = BATCH_NORM_DGAMMA, std430) SUMS_ACCESS buffer Dgamma { float dgamma[]; };
layout(binding = BATCH_NORM_DBETA, std430) SUMS_ACCESS buffer Dbeta { float dbeta[]; };
#else
layout(constant_id = BATCH_NORM_SPEC_BETA) const uint BETA = 1;
layout(constant_id = BATCH_NORM_SPEC_PLUS) const uint PLUS = 0;
layout(binding = BATCH_NORM_BETA, std430) readonly buffer Beta { float beta[]; };
VKT_IN4(BATCH_NORM_PLUS, plus4);
#endif

#ifdef JOINED
#include "lib/lanes.glsl"
#include "lib/channel_sums.glsl"
#include "lib/channel_blocks.glsl"
layout(constant_id = BATCH_NORM_SPEC_ALONE) const uint ALONE = 0;
layout(constant_id = BATCH_NORM_SPEC_RUNNING) const uint RUNNING = 0;
VKT_IN4(BATCH_NORM_PART, part);
#ifndef DX
layout(binding = BATCH_NORM_RUNNING_MEAN, std430) buffer RunningMean { float running_mean[]; };
layout(binding = BATCH_NORM_RUNNING_VAR, std430) buffer RunningVar { float running_var[]; };

void update_running(uint k, uint rows, vec4 all)
{
    const float n = float(rows) * float(pc.channel4 / pc.period4);
    if (n == 0.0) return;
    const float factor = pc.unbiased != 0 ? n / max(n - 1.0, 1.0) : 1.0;
    running_mean[k] += pc.momentum * (all.y - running_mean[k]);
    running_var[k] += pc.momentum * (factor * variance_of(all) - running_var[k]);
}
#endif

// Returns the combined result of all blocks of channel k of the tensor.
vec4 blocks_of(uint k)
{
    vec4 all = LOAD4(part, k);
    for (uint block = 1; block < pc.blocks; block++) all = with_block(all, LOAD4(part, block * pc.all_channels + k));
    return all;
}
#endif

void main()
{
    const uint rows = GIVEN != 0 ? pc.batch : min(step[STEP_ROWS], pc.batch);
    for (uint u = gl_WorkGroupID.x; u < pc.channels * pc.blocks; u += gl_NumWorkGroups.x) {
        const uint c = u / pc.blocks, k = pc.first + c, block = u % pc.blocks, first = block * pc.per_block;
        const uint end = min(first + pc.per_block, pc.channel4);
        const uint x_at = pc.x4 + c * pc.channel4, y_at = pc.y4 + c * pc.channel4;
        uint column = column_of(first + gl_LocalInvocationID.x);
#if defined(JOINED) && !defined(DX)
        const vec4 all = ALONE != 0 ? block_statistics(x_at, first, end, rows) : blocks_of(k);
        const float mean = all.y, var = variance_of(all);
        if (block == 0 && gl_LocalInvocationID.x == 0) {
            mean_of[k] = mean;
            var_of[k] = var;
            if (RUNNING != 0) update_running(k, rows, all);
        }
#else
        const float mean = mean_of[k], var = var_of[k];
#endif
        const float scale = 1.0 / sqrt(var + pc.eps);
        const float slope = GAMMA != 0 ? scale * gamma[k] : scale;
#ifdef DX
#ifdef JOINED
        const vec4 sums = ALONE != 0 ? block_sums(c, first, end, rows, mean, scale) : blocks_of(k);
        const float sum0 = sums.x, sum1 = sums.y;
        if (block == 0 && gl_LocalInvocationID.x == 0) {
            dbeta[k] = sum0;
            dgamma[k] = sum1;
        }
#else
        const float sum0 = dbeta[k], sum1 = dgamma[k];
#endif
        const float n = float(real_before(pc.channel4, rows));
        const float m0 = GIVEN != 0 ? 0.0 : sum0 / n, m1 = GIVEN != 0 ? 0.0 : sum1 / n * scale;
        for (uint i = first + gl_LocalInvocationID.x; i < end; i += gl_WorkGroupSize.x, column = next_column(column)) {
            const vec4 d = gradient_at(c, i) - m0 - (LOAD4(x4, x_at + i) - mean) * m1;
            STORE4(y4, y_at + i, mix(vec4(0.0), slope * d, is_real(column, rows)));
        }
#else
        const float shift = BETA != 0 ? beta[k] : 0.0;
        const uint plus_at = pc.plus4 + c * pc.channel4;
        for (uint i = first + gl_LocalInvocationID.x; i < end; i += gl_WorkGroupSize.x, column = next_column(column)) {
            const vec4 y = mix(vec4(0.0), (LOAD4(x4, x_at + i) - mean) * slope + shift, is_real(column, rows));
            STORE4(y4, y_at + i, PLUS != 0 ? y + LOAD4(plus4, plus_at + i) : y);
        }
#endif
    }
}
