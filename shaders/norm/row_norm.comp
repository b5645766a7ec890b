// row_norm.comp - normalises rows, or computes the gradient; xhat = (x - mean) * scale, scale = 1 / sqrt(var + eps)
//   y = gamma * xhat + beta. The kernel stores mean and scale for the gradient. RMS: mean is 0 and is not stored, and var is
//   the mean of squares of x.
//   DX  dx = scale * (gamma * dy - m0 - xhat * m1). m0 is the mean of gamma * dy, or 0 with RMS. m1 is the mean of
//       gamma * dy * xhat.
// grid: x over rows with a stride, one work group per row.
// source: Ba, Kiros & Hinton, Layer Normalization, 2016; Wu & He, Group Normalization, 2018; Zhang & Sennrich, RMSNorm, 2019;
//         Chan, Golub & LeVeque 1983, "corrected two-pass"
// Deterministic: the order of additions depends only on the shape, the lanes and the subgroup size.
// The kernel computes the mean first and then the sum of (x - mean)^2, while the row is still in the cache. The rounding error
// of the mean is removed from mean and variance.
// HELD: each lane keeps its part of the row in registers, so the row is read once. The results have the same bits as without
// HELD.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/row_norm.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
#ifdef DX
#define WITH_DY
#endif
#include "lib/row_norm.glsl"
layout(constant_id = ROW_NORM_SPEC_GAMMA) const uint GAMMA = 1;
layout(constant_id = ROW_NORM_SPEC_BETA) const uint BETA = 1;
#if WIDTH == 4
VKT_IN4(ROW_NORM_GAMMA, gamma4);
#define OF_CHANNELS(name, c) (SPLIT == 0 ? LOAD4(name##4, (c) / 4) : vec4(LOAD4(name##4, (c) / 4)[(c) % 4]))
VKT_OUT4(ROW_NORM_Y, y4);
#define PUT(i, v) STORE4(y4, (i) / 4, v)
#else
layout(binding = ROW_NORM_GAMMA, std430) readonly buffer BlockGamma { float gamma[]; };
#define OF_CHANNELS(name, c) name[c]
layout(binding = ROW_NORM_Y, std430) writeonly buffer BlockY { float y[]; };
#define PUT(i, v) y[i] = v
#endif
#ifdef DX
layout(binding = ROW_NORM_MEAN, std430) readonly buffer Mean { float mean_of[]; };
layout(binding = ROW_NORM_SCALE, std430) readonly buffer Scale { float scale_of[]; };
#else
layout(binding = ROW_NORM_MEAN, std430) writeonly buffer Mean { float mean_of[]; };
layout(binding = ROW_NORM_SCALE, std430) writeonly buffer Scale { float scale_of[]; };
#if WIDTH == 4
VKT_IN4(ROW_NORM_BETA, beta4);
#else
layout(binding = ROW_NORM_BETA, std430) readonly buffer BlockBeta { float beta[]; };
#endif
#endif
#define FIRST (WIDTH * gl_LocalInvocationID.x)
#define STEP (WIDTH * gl_WorkGroupSize.x)
layout(constant_id = ROW_NORM_SPEC_SPLIT) const uint SPLIT = 1;
// Executes `body` for the indices k = FIRST, FIRST + STEP, .. below n. As long as four indices are left, an iteration
// executes `body` for four indices, because each iteration costs as much as several loads.
const uint ITERATIONS = 4;
#define EACH(k, n, body)                                                        \
    {                                                                           \
        uint k##0 = FIRST;                                                      \
        for (; k##0 + (ITERATIONS - 1) * STEP < (n); k##0 += ITERATIONS * STEP) \
            [[unroll]] for (uint k##1 = 0; k##1 < ITERATIONS; k##1++) {         \
                const uint k = k##0 + k##1 * STEP;                              \
                body                                                            \
            }                                                                   \
        for (; k##0 < (n); k##0 += STEP) {                                      \
            const uint k = k##0;                                                \
            body                                                                \
        }                                                                       \
    }
// EACH_OF is for loops whose body needs the channel. With SPLIT, EACH_OF is one loop for each channel of the row.
// Without SPLIT, a channel is one element (inner == 1), and one loop covers the whole row.
#define EACH_OF(c, k, body) for (uint c = 0; c < (SPLIT != 0 ? pc.channels : 1u); c++) EACH(k, length(), body)

uint length()
{
    return SPLIT != 0 ? pc.inner : pc.run;
}

// Returns gamma of WIDTH neighbouring elements of a row. `channel` is the row's first channel. With SPLIT, the first of
// these elements is element k of the row's channel c. Without SPLIT, c is 0, and k is an index in the row.
NUMBER gamma_of(uint channel, uint c, uint k)
{
    return GAMMA != 0 ? OF_CHANNELS(gamma, channel + (SPLIT != 0 ? c : k)) : NUMBER(1.0);
}

#ifdef DX
void normalise(uint u)
{
    const uint row = pc.first + u, x_at = pc.x0 + u * pc.run, dy_at = pc.dy0 + u * pc.run, y_at = pc.y0 + u * pc.run;
    const uint channel = row % pc.groups * pc.channels;
    const float mean = RMS != 0 ? 0.0 : mean_of[row], scale = scale_of[row], n = float(pc.run);
    NUMBER a = NUMBER(0.0), b = NUMBER(0.0);
    EACH_OF(c, k, {
        const uint i = c * length() + k;
        const NUMBER d = DY(dy_at + i) * gamma_of(channel, c, k);
        a += d;
        b += d * (X(x_at + i) - mean);
    })
    const float m0 = RMS != 0 ? 0.0 : sum_of_lanes(across(a)) / n;
    const float m1 = sum_of_lanes(across(b)) / n * (scale * scale);
    EACH_OF(c, k, {
        const uint i = c * length() + k;
        PUT(y_at + i, scale * (DY(dy_at + i) * gamma_of(channel, c, k) - m0 - (X(x_at + i) - mean) * m1));
    })
}
#else
NUMBER beta_of(uint channel, uint c, uint k)
{
    return BETA != 0 ? OF_CHANNELS(beta, channel + (SPLIT != 0 ? c : k)) : NUMBER(0.0);
}

void normalise(uint u)
{
    const uint row = pc.first + u, x_at = pc.x0 + u * pc.run, y_at = pc.y0 + u * pc.run;
    const uint channel = row % pc.groups * pc.channels;
    const float n = float(pc.run);
    NUMBER a = NUMBER(0.0), b = NUMBER(0.0);
    float mean = 0.0;
    if (RMS == 0) {
        EACH(k, pc.run, a += X(x_at + k);)
        mean = sum_of_lanes(across(a)) / n;
        a = NUMBER(0.0);
    }
    EACH(k, pc.run, {
        const NUMBER d = X(x_at + k) - mean;
        a += d;
        b += d * d;
    })
    const float left = RMS != 0 ? 0.0 : sum_of_lanes(across(a)) / n;
    mean += left;
    const float scale = 1.0 / sqrt(max(sum_of_lanes(across(b)) / n - left * left, 0.0) + pc.eps);
    EACH_OF(c, k, {
        const uint i = c * length() + k;
        PUT(y_at + i, (X(x_at + i) - mean) * scale * gamma_of(channel, c, k) + beta_of(channel, c, k));
    })
    if (gl_LocalInvocationID.x == 0) {
        if (RMS == 0) mean_of[row] = mean;
        scale_of[row] = scale;
    }
}
#endif

#include "lib/row_norm_held.glsl"

void main()
{
    for (uint u = gl_WorkGroupID.x; u < pc.rows; u += gl_NumWorkGroups.x)
        if (HELD != 0)
            normalise_held(u);
        else
            normalise(u);
}
