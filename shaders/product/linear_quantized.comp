// linear_quantized.comp - y[b][o] = bias[o] + sum_i x[b][i] w[o][i] for 1 to 8 rows of x. The quantized weights are read once,
// and are never stored as f32 (lib/quantized.glsl has the formats).
// A chunk is 32 numbers of a row of the weights. A lane reads a chunk and multiplies it by the same numbers of each row of x.
// The scale d and the offset m of a chunk are applied once: sum of (d q + m) x = d sum of q x + m sum of x.
// ACROSS 1: a lane has a row of the weights, and its neighbours have the next rows. So all lanes need the same numbers of x:
//   each lane loads some of them, and shuffles pass them on. For CPUs, whose loads have no need of neighbouring words.
// ACROSS SG: the lanes have neighbouring chunks of one row, so they read neighbouring words. At the end the sums of the lanes
//   are added.
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
const uint CHUNK = LINEAR_QUANTIZED_CHUNK; // vec4s
const uint MAX_BATCH = LINEAR_QUANTIZED_BATCH;
const uint MAX_STEPS = 7; // enough for 128 lanes. With this constant bound, drivers unroll the loops
const uint MOST_WORDS = 9; // of a block of 32 numbers
const bool WITH_SUM = FORMAT == QUANT_Q4_0 || FORMAT == QUANT_Q4_1; // the numbers have an offset
// Vec4s of x that a lane loads for a chunk, if all lanes need the same ones: with 4 lanes two, else one.
const uint LOADS = SG < CHUNK ? CHUNK / SG : 1, MAX_LOADS = 2;

// Sets s to n <= 9 words from an even byte on. After the last word that has bytes of the weights, s has any words.
void stream_of(uint at, uint n, out uint s[MOST_WORDS])
{
#ifdef VKT_TEXEL
    // The words begin anywhere in a texel: they are moved by two words, and by one.
    const uint texel = at >> 4;
    uint t[12];
    [[unroll]] for (uint i = 0; i < 3; i++) {
        uvec4 four = uvec4(0u);
        if (4 * i < n + 3) four = imageLoad(words, int(min(texel + i, pc.last >> 2)));
        [[unroll]] for (uint j = 0; j < 4; j++) t[4 * i + j] = four[j];
    }
    const bool two = (at & 8u) != 0u, one = (at & 4u) != 0u;
    [[unroll]] for (uint i = 0; i < 10; i++) t[i] = two ? t[i + 2] : t[i];
    [[unroll]] for (uint i = 0; i < 9; i++) s[i] = one ? t[i + 1] : t[i];
#else
    [[unroll]] for (uint i = 0; i < MOST_WORDS; i++) s[i] = i < n ? LOAD1(words, min((at >> 2) + i, pc.last)) : 0u;
#endif
    const bool half_word = (at & 2u) != 0u;
    [[unroll]] for (uint i = 0; i < 8; i++) s[i] = half_word ? s[i] >> 16 | s[i + 1] << 16 : s[i];
    s[8] = half_word ? s[8] >> 16 : s[8];
}

// Returns d and m of chunk c of the row that begins at byte `row`, and sets q: the 32 numbers of the chunk are d q + m. In
// formats other than Q4_0, Q4_1 and Q8_0, d is 1 and m is 0. Numbers behind the row's end are 0.
vec2 numbers_of(uint row, uint c, uint width4, out vec4 q[CHUNK])
{
    uint s[MOST_WORDS];
    if (FORMAT == QUANT_Q8_0) {
        stream_of(row + c * 34, 9, s);
        [[unroll]] for (uint k = 0; k < 8; k++) q[k] = vec4(signed_of(s[k] >> 16 | s[k + 1] << 16));
        return vec2(exact_half(s[0] & 0xffffu), 0.0);
    }
    if (FORMAT == QUANT_Q4_0 || FORMAT == QUANT_Q4_1) {
        const bool offset = FORMAT == QUANT_Q4_1;
        stream_of(row + c * (offset ? 20 : 18), 5, s);
        [[unroll]] for (uint k = 0; k < 4; k++) {
            const uint four = offset ? s[k + 1] : s[k] >> 16 | s[k + 1] << 16;
            q[k] = vec4(split_of(four, 15u));
            q[k + 4] = vec4(split_of(four >> 4, 15u));
        }
        const vec2 d = halves_of(s[0]);
        return vec2(d.x, offset ? d.y : -8.0 * d.x);
    }
    [[unroll]] for (uint k = 0; k < CHUNK; k++) {
        const uint i = CHUNK * c + k;
        const vec4 v = quantized4(FORMAT, row, 4 * min(i, width4 - 1));
        q[k] = i < width4 ? v : vec4(0.0);
    }
    return vec2(1.0, 0.0);
}

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

// Adds the products of chunk c of row b of x to `part`. With ACROSS 1, all lanes have the same chunk. Returns the sum of x over
// the chunk if WITH_SUM.
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
