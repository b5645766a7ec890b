// softmax_xent_spread.comp - the loss of softmax_xent.comp for few samples or many classes, and its gradient: the lanes of a
// work group share the classes of four samples. Each lane keeps its logits in registers, so the sums and the gradient
// do not read z again.
//   part[c] = 1 / rows * sum of (lse[b] - z[b,t[b]]) over the real rows b among the four samples of vec4 c
//   stat[b] = (m, 1 / sum_k exp(z[b,k] - m)), m = max_k z[b,k]; see softmax_xent.comp for lse, and for labels that are no class
//   DX: dz[b,k] = dloss / rows * (p[b,k] - hit) for b < rows, else 0. p is the softmax of z.
//   hit is 1 if k = t[b], else 0. From the same stat, softmax_xent_dx.comp computes the same bits.
// grid: x over vec4s of samples with a stride, one work group per vec4.
// source: Goodfellow, Bengio & Courville, Deep Learning (2016), sections 4.1 and 6.2.2.3
// Deterministic: the order of additions depends only on the shape, the lanes and the subgroup size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/softmax_xent.abi.h"
#include "lib/explog.glsl"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
layout(constant_id = XENT_SPEC_HELD) const uint HELD = 1;
layout(constant_id = XENT_SPEC_DX) const uint DX = 0;
VKT_IN4(XENT_Z, z4);
layout(binding = XENT_T, std430) readonly buffer T { uint t[]; };
layout(binding = XENT_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = XENT_STAT, std430) writeonly buffer Stat { vec4 stat4[]; };
layout(binding = XENT_PART, std430) writeonly buffer Part { float part[]; };
layout(binding = XENT_DLOSS, std430) readonly buffer Dloss { float dloss[]; };
VKT_F32_OUT4(XENT_DZ, dz4);
const float LOWEST = -3.402823466e38;
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)

vec4 sum4_of_lanes(vec4 v)
{
    return vec4(sum_of_lanes(v.x), sum_of_lanes(v.y), sum_of_lanes(v.z), sum_of_lanes(v.w));
}

// Returns the sum of the four losses, without the losses of samples past the real rows.
float sum_of_real(uint column, uint rows, vec4 loss)
{
    float v = 0.0;
    for (uint j = 0; j < 4; j++)
        if (4 * column + j < rows) v += loss[j];
    return v;
}

void gradients(uint column, uint rows, uvec4 label, vec4 m, vec4 inv, vec4 z[HELD])
{
    const bvec4 real = lessThan(4 * column + uvec4(0, 1, 2, 3), uvec4(rows));
    const float by = dloss[0] / float(rows);
    for (uint i = 0; i < HELD; i++) {
        const uint k = i * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (k >= pc.classes) return;
        const vec4 p = exp_1ulp(z[i] - m) * inv, hit = mix(vec4(0.0), vec4(1.0), equal(label, uvec4(k)));
        STORE4(dz4, k * pc.pitch4 + column, mix(vec4(0.0), by * (p - hit), real));
    }
}

void main()
{
    const uint rows = min(step[STEP_ROWS], pc.batch), lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
    for (uint column = gl_WorkGroupID.x; column < pc.pitch4; column += gl_NumWorkGroups.x) {
        vec4 z[HELD], m = vec4(LOWEST), rest = vec4(0.0), top = vec4(0.0), hit = vec4(NOT_A_NUMBER);
        uvec4 label;
        for (uint j = 0; j < 4; j++) label[j] = 4 * column + j < pc.batch ? t[4 * column + j] : 0u;
        for (uint i = 0; i < HELD; i++) {
            const uint k = i * lanes + lane;
            z[i] = LOAD4(z4, min(k, pc.classes - 1) * pc.pitch4 + column);
            m = max(m, z[i]);
        }
        m = vec4(max_of_lanes(m.x), max_of_lanes(m.y), max_of_lanes(m.z), max_of_lanes(m.w));
        for (uint i = 0; i < HELD; i++) {
            const bool is_class = i * lanes + lane < pc.classes;
            const vec4 e = mix(exp_1ulp(z[i] - m), z[i] - m, equal(z[i], m)); // if z = m, e is 0, or NaN for infinite z
            if (is_class) rest += e;
            if (is_class) top += mix(vec4(0.0), vec4(1.0), equal(z[i], m));
        }
        rest = sum4_of_lanes(rest);
        top = sum4_of_lanes(top);
        const vec4 inv = 1.0 / (top + rest);
        if (lane == 0) {
            for (uint j = 0; j < 4; j++)
                if (label[j] < pc.classes) hit[j] = LOAD4(z4, label[j] * pc.pitch4 + column)[j];
            stat4[column] = m;
            stat4[pc.pitch4 + column] = inv;
            part[column] = sum_of_real(column, rows, log1p_1ulp(top - 1.0 + rest) + (m - hit)) / float(rows);
        }
        if (DX != 0) gradients(column, rows, label, m, inv, z);
    }
}
