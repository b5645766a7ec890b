// batch_norm.comp - normalises channels, or computes the gradient; xhat = (x - mean) / sqrt(var + eps)
//   y = gamma xhat + beta in the real rows, else 0. PLUS: adds a tensor of y's shape. GIVEN: mean and variance are constants,
//   and all rows are real.
//   DX  dx = gamma / sqrt(var + eps) (dy - mean of dy - xhat mean of (dy xhat)) in the real rows, else 0.
//       With GIVEN, the two means are left out.
// grid: x over blocks of channels with a stride, one work group per block; any group count is right.
// source: Ioffe & Szegedy, Batch Normalization, 2015
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/batch_norm.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#include "lib/channels.glsl"
layout(constant_id = BATCH_NORM_SPEC_GAMMA) const uint GAMMA = 1;
layout(constant_id = BATCH_NORM_SPEC_GIVEN) const uint GIVEN = 0;
layout(binding = BATCH_NORM_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = BATCH_NORM_MEAN, std430) readonly buffer Mean { float mean_of[]; };
layout(binding = BATCH_NORM_VAR, std430) readonly buffer Var { float var_of[]; };
layout(binding = BATCH_NORM_GAMMA, std430) readonly buffer Gamma { float gamma[]; };
VKT_IN4(BATCH_NORM_X, x4);
VKT_OUT4(BATCH_NORM_Y, y4);
#ifdef DX
VKT_IN4(BATCH_NORM_DY, dy4);
layout(binding = BATCH_NORM_DGAMMA, std430) readonly buffer Dgamma { float dgamma[]; };
layout(binding = BATCH_NORM_DBETA, std430) readonly buffer Dbeta { float dbeta[]; };
#else
layout(constant_id = BATCH_NORM_SPEC_BETA) const uint BETA = 1;
layout(constant_id = BATCH_NORM_SPEC_PLUS) const uint PLUS = 0;
layout(binding = BATCH_NORM_BETA, std430) readonly buffer Beta { float beta[]; };
VKT_IN4(BATCH_NORM_PLUS, plus4);
#endif

void main()
{
    const uint rows = GIVEN != 0 ? pc.batch : min(step[STEP_ROWS], pc.batch);
    for (uint u = gl_WorkGroupID.x; u < pc.channels * pc.blocks; u += gl_NumWorkGroups.x) {
        const uint c = u / pc.blocks, k = pc.first + c, first = u % pc.blocks * pc.per_block;
        const uint end = min(first + pc.per_block, pc.channel4);
        const uint x_at = pc.x4 + c * pc.channel4, y_at = pc.y4 + c * pc.channel4;
        uint column = column_of(first + gl_LocalInvocationID.x);
        const float mean = mean_of[k], scale = 1.0 / sqrt(var_of[k] + pc.eps);
        const float slope = GAMMA != 0 ? scale * gamma[k] : scale;
#ifdef DX
        const uint dy_at = pc.dy4 + c * pc.channel4;
        const float n = float(real_before(pc.channel4, rows));
        const float m0 = GIVEN != 0 ? 0.0 : dbeta[k] / n, m1 = GIVEN != 0 ? 0.0 : dgamma[k] / n * scale;
        for (uint i = first + gl_LocalInvocationID.x; i < end; i += gl_WorkGroupSize.x, column = next_column(column)) {
            const vec4 d = LOAD4(dy4, dy_at + i) - m0 - (LOAD4(x4, x_at + i) - mean) * m1;
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
