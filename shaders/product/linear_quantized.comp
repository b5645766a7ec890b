// linear_quantized.comp - y[b][o] = bias[o] + sum_i x[b][i] w[o][i] for 1 to 8 rows of x. The quantized weights are read once,
// and are never stored as f32 (lib/quantized.glsl has the formats).
// A chunk is 32 numbers of a row of the weights. A lane reads a chunk and multiplies it by the matching numbers of each x row.
// The scale d and the offset m of a chunk are applied once: sum of (d q + m) x = d * (sum of q x) + m * (sum of x).
// ACROSS 1: a lane has a row of the weights, and its neighbours have the next rows. So all lanes need the same numbers of x:
//   each lane loads some of them, and shuffles pass them to the other lanes. This variant is for CPUs, where it costs
//   nothing if lanes read distant words.
// ACROSS SG (subgroup size): the lanes have neighbouring chunks of one row, so they read neighbouring words. At the end the
//   sums of the lanes are added.
// grid: x over rows of the weights, SG / ACROSS at a time, in contiguous shares; any group count is right.
// Deterministic: the order of additions depends only on the subgroup size and on ACROSS.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/linear_quantized.abi.h"
#include "abi/quant.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint SG = 8;
layout(constant_id = LINEAR_QUANTIZED_SPEC_FORMAT) const uint FORMAT = 0;
layout(constant_id = LINEAR_QUANTIZED_SPEC_BATCH) const uint BATCH = 1;
layout(constant_id = LINEAR_QUANTIZED_SPEC_ACROSS) const uint ACROSS = 1;
layout(constant_id = LINEAR_QUANTIZED_SPEC_BIAS) const uint BIAS = 0;
VKT_WORDS(LINEAR_QUANTIZED_WORDS, words);
VKT_IN4(LINEAR_QUANTIZED_X, x4);
layout(binding = LINEAR_QUANTIZED_BIAS, std430) readonly buffer Bias { float bias[]; };
layout(binding = LINEAR_QUANTIZED_Y, std430) writeonly buffer Y { float y[]; };
#include "lib/quantized.glsl"
#include "lib/quantized_chunk.glsl"
const uint MAX_BATCH = LINEAR_QUANTIZED_BATCH;
const uint MAX_STEPS = 7; // steps of a sum over lanes, enough for 128 lanes. With a constant bound, drivers unroll the loops
const bool WITH_SUM = FORMAT == QUANT_Q4_0 || FORMAT == QUANT_Q4_1; // true: the offset m is not 0
// LOADS: vec4s of x that a lane loads for a chunk with ACROSS 1: two in a subgroup of 4 lanes, else one.
const uint LOADS = SG < CHUNK ? CHUNK / SG : 1, MAX_LOADS = 2;

// Returns vec4 number i of row b of x, or 0 behind the row's end.
vec4 x_of(uint b, uint i, uint width4)
{
    const vec4 four = LOAD4(x4, b * width4 + min(i, width4 - 1));
    return i < width4 ? four : vec4(0.0);
}

float across(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

// Adds to `part` the products of the weights q and chunk c of row b of x. With ACROSS 1, c is the same in all lanes. Returns
// the sum of x over the chunk if WITH_SUM.
float add_chunk(uint b, uint c, uint width4, vec4 q[CHUNK], inout vec4 part)
{
    vec4 all = vec4(0.0);
    if (ACROSS != 1) {
        [[unroll]] for (uint k = 0; k < CHUNK; k++) {
            const vec4 x = x_of(b, CHUNK * c + k, width4);
            part += q[k] * x;
            all += x;
        }
        return across(all);
    }
    vec4 v[MAX_LOADS];
    [[unroll]] for (uint j = 0; j < LOADS; j++)
        all += v[j] = x_of(b, CHUNK * c + j * SG + gl_SubgroupInvocationID % CHUNK, width4);
    [[unroll]] for (uint k = 0; k < CHUNK; k++) part += q[k] * subgroupShuffle(v[k / SG], k % SG);
    float sum = WITH_SUM ? across(all) : 0.0;
    [[unroll]] for (uint i = 0; i < 3; i++)
        if (1u << i < SG && WITH_SUM) sum += subgroupShuffleXor(sum, 1u << i);
    return sum;
}

void main()
{
    const uint width4 = pc.width4, chunks = pc.chunks, rows = pc.rows, row_bytes = pc.row_bytes, base = pc.base;
    const uint each = SG / ACROSS, lane = gl_SubgroupInvocationID, n = (rows + each - 1) / each;
    const uint per_group = (n + gl_NumWorkGroups.x - 1) / gl_NumWorkGroups.x;
    const uint end = min((gl_WorkGroupID.x + 1) * per_group, n);
    for (uint u = gl_WorkGroupID.x * per_group; u < end; u++) {
        const uint r = u * each + (ACROSS == 1 ? lane : 0), row = base + min(r, rows - 1) * row_bytes;
        vec4 sum[MAX_BATCH], q[CHUNK];
        [[unroll]] for (uint b = 0; b < BATCH; b++) sum[b] = vec4(0.0);
        for (uint c = ACROSS == 1 ? 0 : lane; c < chunks; c += ACROSS) {
            const vec2 d = numbers_of(row, c, width4, q);
            [[unroll]] for (uint b = 0; b < BATCH; b++) {
                vec4 part = vec4(0.0);
                const float all = add_chunk(b, c, width4, q, part);
                sum[b] += d.x * part;
                if (WITH_SUM) sum[b].x += d.y * all;
            }
        }
        [[unroll]] for (uint b = 0; b < BATCH; b++) {
            float all = across(sum[b]);
            [[unroll]] for (uint i = 0; i < MAX_STEPS; i++)
                if (1u << i < ACROSS) all += subgroupShuffleXor(all, 1u << i);
            if (r < rows && (ACROSS == 1 || lane == 0))
                y[b * pc.outputs + pc.first + r] = all + (BIAS != 0 ? bias[pc.first + r] : 0.0);
        }
    }
}
