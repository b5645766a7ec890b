// softmax_xent_dx.comp - dz[b,k] = dloss/rows (exp_1ulp(z[b,k] - m[b]) inv[b] - (k == t[b])) for b < rows, else 0; stat[b] = (m, inv)
//   z, stat, dz: batch last, four samples a lane; ROWS: row-major, a row a lane (BY_LANE) or a work group.
// grid: x over what lanes or work groups take, y over chunks of classes, both with a stride. Deterministic: elementwise.
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
        const float m = stat[2 * b], inv = stat[2 * b + 1];
        for (uint k = first + begin; k < end; k += hop)
            dz[base + k] = b < rows ? scale * (exp_1ulp(z[base + k] - m) * inv - (k == label ? 1.0 : 0.0)) : 0.0;
    }
}
#else
VKT_IN4(XENT_DX_Z, z4);
layout(binding = XENT_DX_STAT, std430) readonly buffer Stat { vec4 stat4[]; };
layout(binding = XENT_DX_DZ, std430) writeonly buffer Dz { vec4 dz4[]; };

void gradients(uint rows, float scale, uint first, uint end)
{
    for (uint column = gl_GlobalInvocationID.x; column < pc.pitch4; column += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        uvec4 label;
        for (uint j = 0; j < 4; j++) label[j] = 4 * column + j < pc.batch ? t[4 * column + j] : 0u;
        const bvec4 real = lessThan(4 * column + uvec4(0, 1, 2, 3), uvec4(rows));
        const vec4 m = stat4[column], inv = stat4[pc.pitch4 + column];
        for (uint k = first; k < end; k++) {
            const uint i = k * pc.pitch4 + column;
            const vec4 onehot = mix(vec4(0.0), vec4(1.0), equal(label, uvec4(k)));
            dz4[i] = mix(vec4(0.0), scale * (exp_1ulp(LOAD4(z4, i) - m) * inv - onehot), real);
        }
    }
}
#endif

void main()
{
    const uint rows = min(step[STEP_ROWS], pc.batch);
    const float scale = dloss[0] / float(rows);
    for (uint c = gl_WorkGroupID.y * XENT_DX_CHUNK; c < pc.classes; c += gl_NumWorkGroups.y * XENT_DX_CHUNK)
        gradients(rows, scale, c, min(c + XENT_DX_CHUNK, pc.classes));
}
