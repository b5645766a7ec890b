// softmax_xent_dx.comp - dz[b,k] = dloss / rows * (p[b,k] - hit) for b < rows, else 0
//   p[b,k] = exp_1ulp(z[b,k] - m[b]) * inv[b];  hit is 1 if k = t[b], else 0;  stat[b] = (m, inv)
//   OPTIONS: dz[b,k] = dloss / norm * (factor[b] * p[b,k] - hard * w[k] * hit - soft * w[k]), and 0 if the label is
//   ignored; stat[b] = (m, inv, factor). For w, hard and soft see softmax_xent.comp. EACH: dloss[b] instead of dloss / norm.
//   z, stat, dz: batch last, four samples per lane. ROWS: row-major, one row per lane (BY_LANE) or per work group.
// grid: x over vec4s of samples, or over rows; y over chunks of classes; both with a stride.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/softmax_xent_dx.abi.h"
#include "lib/explog.glsl"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(binding = XENT_DX_T, std430) readonly buffer T { uint t[]; };
layout(binding = XENT_DX_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = XENT_DX_DLOSS, std430) readonly buffer Dloss { float dloss[]; };
#ifdef OPTIONS
layout(constant_id = XENT_DX_SPEC_WEIGHTED) const uint WEIGHTED = 0;
layout(constant_id = XENT_DX_SPEC_SMOOTH) const uint SMOOTH = 0;
layout(constant_id = XENT_DX_SPEC_EACH) const bool EACH = false;
layout(binding = XENT_DX_WEIGHT, std430) readonly buffer Weight { float weight[]; };
layout(binding = XENT_DX_NORM, std430) readonly buffer Norm { float norm[]; };
#define FIELDS 3 /* numbers per row in stat */
float weight_of(uint k) { return WEIGHTED != 0 ? weight[min(k, pc.classes - 1)] : 1.0; }
float hit_of(uint label) { return pc.hard * weight_of(label); }
float rest_of(uint k) { return SMOOTH != 0 ? pc.soft * weight_of(k) : 0.0; }
bool counts(uint label) { return label != pc.ignore; }
float divisor(uint rows) { return norm[0]; }
#else
#define FIELDS 2
const bool EACH = false;
float hit_of(uint label) { return 1.0; }
float rest_of(uint k) { return 0.0; }
bool counts(uint label) { return true; }
float divisor(uint rows) { return float(rows); }
#endif

#ifdef ROWS
layout(constant_id = XENT_DX_SPEC_BY_LANE) const uint BY_LANE = 0;
layout(binding = XENT_DX_Z, std430) readonly buffer Z { float z[]; };
layout(binding = XENT_DX_STAT, std430) readonly buffer Stat { float stat[]; };
layout(binding = XENT_DX_DZ, std430) writeonly buffer Dz { float dz[]; };

void gradients(uint rows, float scale, uint first, uint end)
{
    const uint begin = BY_LANE != 0 ? 0 : gl_LocalInvocationID.x, hop = BY_LANE != 0 ? 1 : gl_WorkGroupSize.x;
    const uint stride = gl_NumWorkGroups.x * (BY_LANE != 0 ? gl_WorkGroupSize.x : 1);
    for (uint b = pc.first + (BY_LANE != 0 ? gl_GlobalInvocationID.x : gl_WorkGroupID.x); b < pc.end; b += stride) {
        const uint base = (b - pc.first) * pc.classes, label = t[b];
        const float m = stat[FIELDS * b], inv = stat[FIELDS * b + 1], hit = hit_of(label);
        const float factor = FIELDS == 3 ? stat[FIELDS * b + 2] : 1.0;
        const bool real = b < rows && counts(label);
        const float by = EACH ? dloss[b] : scale;
        for (uint k = first + begin; k < end; k += hop) {
            const float p = exp_1ulp(z[base + k] - m) * inv;
            dz[base + k] = real ? by * (factor * p - (k == label ? hit : 0.0) - rest_of(k)) : 0.0;
        }
    }
}
#else
VKT_IN4(XENT_DX_Z, z4);
layout(binding = XENT_DX_STAT, std430) readonly buffer Stat { vec4 stat4[]; };
VKT_F32_OUT4(XENT_DX_DZ, dz4);

void gradients(uint rows, float scale, uint first, uint end)
{
    for (uint column = gl_GlobalInvocationID.x; column < pc.pitch4; column += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        uvec4 label;
        vec4 hit;
        bvec4 real;
        vec4 by = vec4(scale);
        for (uint j = 0; j < 4; j++) {
            label[j] = 4 * column + j < pc.batch ? t[4 * column + j] : 0u;
            hit[j] = hit_of(label[j]);
            real[j] = 4 * column + j < rows && counts(label[j]);
            if (EACH) by[j] = dloss[min(4 * column + j, pc.batch - 1)];
        }
        const vec4 m = stat4[column], inv = stat4[pc.pitch4 + column];
        const vec4 factor = FIELDS == 3 ? stat4[2 * pc.pitch4 + column] : vec4(1.0);
        for (uint k = first; k < end; k++) {
            const uint i = k * pc.pitch4 + column;
            const vec4 onehot = mix(vec4(0.0), hit, equal(label, uvec4(k))), p = exp_1ulp(LOAD4(z4, i) - m) * inv;
            STORE4(dz4, i, mix(vec4(0.0), by * (factor * p - onehot - rest_of(k)), real));
        }
    }
}
#endif

void main()
{
    const uint rows = min(step[STEP_ROWS], pc.batch / pc.group) * pc.group;
    const float scale = dloss[0] / divisor(rows);
    for (uint c = gl_WorkGroupID.y * XENT_DX_CHUNK; c < pc.classes; c += gl_NumWorkGroups.y * XENT_DX_CHUNK)
        gradients(rows, scale, c, min(c + XENT_DX_CHUNK, pc.classes));
}
