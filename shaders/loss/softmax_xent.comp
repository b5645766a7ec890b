// softmax_xent.comp - part[j] = 1 / rows * sum over the real rows b of block j of  (lse[b] - z[b,t[b]])
//   lse[b] = log sum_k exp z[b,k]
//   With m = max_k z[b,k], lse is computed as m + log(1 + x). x is the sum of all terms exp(z[b,k] - m) except one that is 1.
//   So a loss near 0 keeps its digits.
//   stat[b] = (m, 1 / sum_k exp(z[b,k] - m)). The kernel of the gradient computes the exponentials from z
//   again, so this kernel has no (B,K) output. The loss is NaN if the label of a real row is not a class, unless it is the
//   ignored label. z and stat are batch last. With ROWS they are row-major.
// OPTIONS: class weights w, an ignored label, label smoothing s.
//   hard = 1 - s, soft = s / K. inv is the second number of stat. In the sums below, lse, z and t are lse[b], z[b] and t[b].
//   A row counts if it is real, and its label is a class and not ignored. sum_b is the sum over the rows of block j that count.
//   norm[j] = sum_b w[t], block j's part of the divisor of the loss. With XENT_DIVIDE_NOT, norm[j] = 1.
//   part[j] = sum_b (hard * w[t] * (lse - z[t]) + soft * sum_k w[k] * (lse - z[k])). With XENT_DIVIDE_MEAN, this sum is divided
//   by norm[j].
//   stat[b] = (m, inv, hard * w[t] + soft * sum_k w[k]). The third number is 0 if row b does not count.
//   EACH: part[b] is the loss of row b, or 0 if the row is not real or its label is ignored. norm[0] = 1
//   NLL: z holds log-probabilities, in either layout. The sum in part[j] is sum_b -w[t] * z[t]. There is no stat.
// grid: x over blocks with a stride, one work group per block.
// source: Goodfellow, Bengio & Courville, Deep Learning (2016), sections 4.1 and 6.2.2.3
// Deterministic: the order of additions depends only on the shape, the split into blocks, the lanes and the subgroup
// size.
// The sum of a row's exponentials adds partial sums of SPAN terms, so its error grows with K / SPAN + SPAN, not with K.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/softmax_xent.abi.h"
#include "lib/explog.glsl"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
layout(binding = XENT_T, std430) readonly buffer T { uint t[]; };
layout(binding = XENT_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = XENT_PART, std430) writeonly buffer Part { float part[]; };

const uint SPAN = 64;
const float LOWEST = -3.402823466e38;
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)

#include "lib/cross_entropy.glsl"

#if defined NLL
// losses() is in lib/cross_entropy.glsl
#elif defined ROWS
layout(constant_id = XENT_SPEC_BY_LANE) const uint BY_LANE = 0;
layout(binding = XENT_Z, std430) readonly buffer Z { float z[]; };
layout(binding = XENT_STAT, std430) writeonly buffer Stat { float stat[]; };

// Returns the loss of this lane's row. If the work group shares one row, lane 0 returns the loss of this row, and the other
// lanes return 0. Past the real rows the result is 0.
float losses(uint vector, uint rows)
{
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
    const uint b = pc.first + (BY_LANE != 0 ? vector * lanes + lane : vector), base = (b - pc.first) * pc.classes;
    const uint begin = BY_LANE != 0 ? 0 : lane, hop = BY_LANE != 0 ? 1 : lanes;
    if (b >= pc.end) return 0.0;
    float m = LOWEST, rest = 0.0, top = 0.0; // rest: sum of exp(z - m) over z < m; top: how many z equal m
    float slack = 0.0, all = 0.0;            // for smoothing. slack: sum of w (m - z); all: sum of w
    for (uint k = begin; k < pc.classes; k += hop) m = max(m, z[base + k]);
    if (BY_LANE == 0) m = max_of_lanes(m);
    for (uint c = 0; c < pc.classes; c += SPAN * hop) {
        const uint end = min(c + SPAN * hop, pc.classes);
        float span = 0.0;
        for (uint k = c + begin; k < end; k += hop) {
            const float v = z[base + k];
            span += v == m ? v - m : exp_1ulp(v - m); // if v = m, the term is 0, or NaN for infinite v
            top += v == m ? 1.0 : 0.0;
            if (SMOOTH != 0) {
                slack += weight_of(k) * (m - v);
                all += weight_of(k);
            }
        }
        rest += span;
    }
    if (BY_LANE == 0) {
        rest = sum_of_lanes(rest);
        top = sum_of_lanes(top);
    }
    if (BY_LANE == 0 && SMOOTH != 0) {
        slack = sum_of_lanes(slack);
        all = sum_of_lanes(all);
    }
#ifdef OPTIONS
    if (begin != 0) return 0.0;
    const uint label = t[b], before = 3 * b;
    const float miss = label < pc.classes ? m - z[base + label] : 0.0;
    float factor = 0.0;
    const float loss = b < rows ? loss_of(label, log1p_1ulp(top - 1.0 + rest), miss, slack, all, factor) : 0.0;
    stat[before] = m;
    stat[before + 1] = 1.0 / (top + rest);
    stat[before + 2] = factor;
    return keep(b, loss);
#else
    if (begin != 0) return 0.0;
    stat[2 * b] = m;
    stat[2 * b + 1] = 1.0 / (top + rest);
    if (b >= rows) return 0.0;
    const uint label = t[b];
    return label < pc.classes ? log1p_1ulp(top - 1.0 + rest) + (m - z[base + label]) : NOT_A_NUMBER;
#endif
}
#else
VKT_IN4(XENT_Z, z4);
layout(binding = XENT_STAT, std430) writeonly buffer Stat { vec4 stat4[]; };

// Returns the sum of the losses of this lane's four samples, without samples past the real rows.
float losses(uint vector, uint rows)
{
    const uint column = vector * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (column >= pc.pitch4) return 0.0;
    uvec4 label;
    for (uint j = 0; j < 4; j++) label[j] = 4 * column + j < pc.batch ? t[4 * column + j] : 0u;

    vec4 m = vec4(LOWEST), rest = vec4(0.0), top = vec4(0.0), hit = vec4(NOT_A_NUMBER);
    vec4 slack = vec4(0.0);
    float all = 0.0;
    for (uint k = 0; k < pc.classes; k += 4)
        [[unroll]] for (uint j = 0; j < 4; j++) m = max(m, LOAD4(z4, min(k + j, pc.classes - 1) * pc.pitch4 + column));
    for (uint c = 0; c < pc.classes; c += SPAN) {
        const uint end = min(c + SPAN, pc.classes);
        vec4 span = vec4(0.0);
        for (uint k = c; k < end; k += 4)
            [[unroll]] for (uint j = 0; j < 4; j++)
                if (k + j < end) {
                    const vec4 z = LOAD4(z4, (k + j) * pc.pitch4 + column);
                    span += mix(exp_1ulp(z - m), z - m, equal(z, m));
                    top += mix(vec4(0.0), vec4(1.0), equal(z, m));
                    hit = mix(hit, z, equal(label, uvec4(k + j)));
                    if (SMOOTH != 0) {
                        slack += weight_of(k + j) * (m - z);
                        all += weight_of(k + j);
                    }
                }
        rest += span;
    }
    stat4[column] = m;
    stat4[pc.pitch4 + column] = 1.0 / (top + rest);
    float v = 0.0;
#ifdef OPTIONS
    const vec4 lse = log1p_1ulp(top - 1.0 + rest);
    vec4 factor = vec4(0.0);
    for (uint j = 0; j < 4; j++) {
        const uint b = 4 * column + j;
        if (b < rows)
            v += keep(b, loss_of(label[j], lse[j], m[j] - hit[j], slack[j], all, factor[j]));
        else if (b < pc.batch)
            keep(b, 0.0);
    }
    stat4[2 * pc.pitch4 + column] = factor;
#else
    const vec4 loss = log1p_1ulp(top - 1.0 + rest) + (m - hit);
    for (uint j = 0; j < 4; j++)
        if (4 * column + j < rows) v += loss[j];
#endif
    return v;
}
#endif

void main()
{
    const uint rows = min(step[STEP_ROWS], pc.batch / pc.group) * pc.group;
    for (uint j = gl_WorkGroupID.x; j < pc.blocks; j += gl_NumWorkGroups.x) {
        const uint first = j * pc.per_block, end = min(first + pc.per_block, pc.vectors);
        float v = 0.0;
        for (uint i = first; i < end; i++) v += losses(i, rows);
#ifdef OPTIONS
        if (EACH) {
            if (gl_LocalInvocationID.x == 0 && pc.part + j == 0) norm[0] = 1.0;
            continue;
        }
#endif
        v = sum_of_lanes(v);
#ifdef OPTIONS
        const float w = pc.divide == XENT_DIVIDE_NOT ? 1.0 : sum_of_lanes(counted);
        counted = 0.0;
        if (gl_LocalInvocationID.x == 0) {
            part[pc.part + j] = pc.divide == XENT_DIVIDE_MEAN ? v / w : v;
            norm[pc.part + j] = w;
        }
#else
        if (gl_LocalInvocationID.x == 0) part[pc.part + j] = v / float(rows);
#endif
    }
}
