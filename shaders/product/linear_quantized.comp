// linear_quantized.comp - y[b][o] = bias[o] + sum_i x[b][i] w[o][i] for 1 to 8 rows of x. The quantized weights are read once,
// and are never stored as f32 (lib/quantized.glsl has the formats).
// A chunk is 32 numbers of a row of the weights. A lane reads a chunk and multiplies it by the same numbers of each row of x.
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

// Sets w to the 32 numbers of chunk c of the row that begins at byte `row`. Numbers behind the row's end are 0.
void numbers_of(uint row, uint c, uint width4, out vec4 w[CHUNK])
{
    uint s[MOST_WORDS];
    if (FORMAT == QUANT_Q8_0) {
        stream_of(row + c * 34, 9, s);
        const float d = exact_half(s[0] & 0xffffu);
        [[unroll]] for (uint k = 0; k < 8; k++) w[k] = d * vec4(signed_of(s[k] >> 16 | s[k + 1] << 16));
    } else if (FORMAT == QUANT_Q4_0) {
        stream_of(row + c * 18, 5, s);
        const float d = exact_half(s[0] & 0xffffu);
        [[unroll]] for (uint k = 0; k < 4; k++) {
            const uint q = s[k] >> 16 | s[k + 1] << 16;
            w[k] = d * (vec4(split_of(q, 15u)) - 8.0);
            w[k + 4] = d * (vec4(split_of(q >> 4, 15u)) - 8.0);
        }
    } else if (FORMAT == QUANT_Q4_1) {
        stream_of(row + c * 20, 5, s);
        const vec2 d = halves_of(s[0]);
        [[unroll]] for (uint k = 0; k < 4; k++) {
            w[k] = d.x * vec4(split_of(s[k + 1], 15u)) + d.y;
            w[k + 4] = d.x * vec4(split_of(s[k + 1] >> 4, 15u)) + d.y;
        }
    } else {
        [[unroll]] for (uint k = 0; k < CHUNK; k++) {
            const uint i = CHUNK * c + k;
            const vec4 v = quantized4(FORMAT, row, 4 * min(i, width4 - 1));
            w[k] = i < width4 ? v : vec4(0.0);
        }
    }
}

// Adds the products of a chunk to sum[b]. All lanes have the same chunk.
void add_shared(uint c, uint width4, vec4 w[CHUNK], inout vec4 sum[MAX_BATCH])
{
    const uint lane = gl_SubgroupInvocationID % CHUNK;
    [[unroll]] for (uint b = 0; b < BATCH; b++) {
        vec4 v[MAX_LOADS];
        [[unroll]] for (uint j = 0; j < LOADS; j++) {
            const uint i = CHUNK * c + j * SG + lane;
            const vec4 four = LOAD4(x4, b * width4 + min(i, width4 - 1));
            v[j] = i < width4 ? four : vec4(0.0);
        }
        [[unroll]] for (uint k = 0; k < CHUNK; k++) sum[b] += w[k] * subgroupShuffle(v[k / SG], k % SG);
    }
}

// Adds the products of a chunk to sum[b].
void add_own(uint c, uint width4, vec4 w[CHUNK], inout vec4 sum[MAX_BATCH])
{
    [[unroll]] for (uint b = 0; b < BATCH; b++)
        [[unroll]] for (uint k = 0; k < CHUNK; k++) {
            const uint i = CHUNK * c + k;
            const vec4 four = LOAD4(x4, b * width4 + min(i, width4 - 1));
            sum[b] += w[k] * (i < width4 ? four : vec4(0.0));
        }
}

void main()
{
    const uint width4 = pc.width4, chunks = pc.chunks, rows = pc.rows, row_bytes = pc.row_bytes, base = pc.base;
    const uint each = SG / ACROSS, lane = gl_SubgroupInvocationID, n = (rows + each - 1) / each;
    const uint per_group = (n + gl_NumWorkGroups.x - 1) / gl_NumWorkGroups.x;
    const uint end = min((gl_WorkGroupID.x + 1) * per_group, n);
    for (uint u = gl_WorkGroupID.x * per_group; u < end; u++) {
        const uint r = u * each + (ACROSS == 1 ? lane : 0), row = base + min(r, rows - 1) * row_bytes;
        vec4 sum[MAX_BATCH], w[CHUNK];
        [[unroll]] for (uint b = 0; b < BATCH; b++) sum[b] = vec4(0.0);
        for (uint c = ACROSS == 1 ? 0 : lane; c < chunks; c += ACROSS) {
            numbers_of(row, c, width4, w);
            if (ACROSS == 1) add_shared(c, width4, w, sum);
            else add_own(c, width4, w, sum);
        }
        [[unroll]] for (uint b = 0; b < BATCH; b++) {
            float all = (sum[b].x + sum[b].y) + (sum[b].z + sum[b].w);
            [[unroll]] for (uint i = 0; i < MAX_STEPS; i++)
                if (1u << i < ACROSS) all += subgroupShuffleXor(all, 1u << i);
            if (r < rows && (ACROSS == 1 || lane == 0))
                y[b * pc.outputs + pc.first + r] = all + (BIAS != 0 ? bias[pc.first + r] : 0.0);
        }
    }
}
