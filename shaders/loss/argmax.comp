// argmax.comp - out[b] = the first k with the largest z[b,k]; NaN counts as largest.
//   COUNT: out[j] = how many samples b of block j have the label t[b] = k. It is a float, exact below 2^24. Samples behind
//   the batch (b >= STEP_ROWS) do not count. A block is a range of samples (argmax.abi.h).
//   z: batch last, four samples per lane. ROWS: row-major, one row per lane (BY_LANE) or per work group.
// grid: x over blocks with a stride, one work group per block.
// Deterministic: the kernel only compares numbers and adds integers.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/argmax.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
#ifdef COUNT
layout(binding = ARGMAX_T, std430) readonly buffer T { uint t[]; };
layout(binding = ARGMAX_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = ARGMAX_OUT, std430) writeonly buffer Out { float part[]; };
#else
layout(binding = ARGMAX_OUT, std430) writeonly buffer Out { uint index[]; };
#endif

// Maps floats to integers that compare in the same way. -0 equals 0, and every NaN is above infinity.
uint key(float v)
{
    const uint u = floatBitsToUint(v), magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0xffffffffu;
    return u == magnitude ? 0x80000000u + magnitude : 0x80000000u - magnitude;
}

// Processes the result for sample b: class k has the largest z. Without COUNT, writes k if b is inside the batch, and
// returns 0. With COUNT, only returns a number: 1 if b is real and k is the label of b, else 0.
float state(uint b, uint k, uint rows)
{
#ifdef COUNT
    return b < rows && t[b] == k ? 1.0 : 0.0;
#else
    if (b < pc.batch) index[b] = k;
    return 0.0;
#endif
}

#ifdef ROWS
layout(constant_id = ARGMAX_SPEC_BY_LANE) const uint BY_LANE = 0;
layout(binding = ARGMAX_Z, std430) readonly buffer Z { float z[]; };

float samples(uint vector, uint rows)
{
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
    const uint b = pc.first + (BY_LANE != 0 ? vector * lanes + lane : vector), base = (b - pc.first) * pc.classes;
    const uint begin = BY_LANE != 0 ? 0 : lane, hop = BY_LANE != 0 ? 1 : lanes;
    if (b >= pc.end) return 0.0;
    uint best = 0, at = 0xffffffffu; // `best` is below every key, so a lane without a class never wins
    for (uint k = begin; k < pc.classes; k += hop) {
        const uint v = key(z[base + k]);
        if (v > best) {
            best = v;
            at = k;
        }
    }
    if (BY_LANE == 0) at = best_of_lanes(uvec2(best, at)).y;
    return begin == 0 ? state(b, at, rows) : 0.0;
}
#else
VKT_IN4(ARGMAX_Z, z4);

float samples(uint vector, uint rows)
{
    const uint column = vector * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (column >= pc.pitch4) return 0.0;
    uvec4 best = uvec4(0), at = uvec4(0);
    for (uint k = 0; k < pc.classes; k += 4)
        [[unroll]] for (uint j = 0; j < 4; j++) {
            const vec4 z = LOAD4(z4, min(k + j, pc.classes - 1) * pc.pitch4 + column);
            const uvec4 v = uvec4(key(z.x), key(z.y), key(z.z), key(z.w));
            const bvec4 better = greaterThan(v, best);
            best = mix(best, v, better);
            at = mix(at, uvec4(k + j), better);
        }
    float n = 0.0;
    for (uint j = 0; j < 4; j++) n += state(4 * column + j, at[j], rows);
    return n;
}
#endif

void main()
{
#ifdef COUNT
    const uint rows = min(step[STEP_ROWS], pc.batch);
#else
    const uint rows = pc.batch;
#endif
    for (uint j = gl_WorkGroupID.x; j < pc.blocks; j += gl_NumWorkGroups.x) {
        const uint first = j * pc.per_block, end = min(first + pc.per_block, pc.vectors);
        float n = 0.0;
        for (uint i = first; i < end; i++) n += samples(i, rows);
#ifdef COUNT
        n = sum_of_lanes(n);
        if (gl_LocalInvocationID.x == 0) part[pc.part + j] = n;
#endif
    }
}
