// relayout.comp - TO: y[f][n] = x[n][f], 0 for batch <= n < 4 * pitch4. Without TO, the reverse: y[n][f] = x[f][n]
//   A dispatch converts one tile: a range of samples and of features (relayout.abi.h).
//   A lane moves blocks of 4 samples x 4 features and loops over the features. So it finishes each cache line of the row-major
//   side before it leaves the line. WIDE: the number of features is a multiple of 4, so rows are whole vec4s.
//   WORDS: the elements are integers, whose bits a load as a float could change.
// grid: x over columns of 4 samples, y over chunks of features, both with a stride.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/relayout.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#ifdef WORDS
#define NUMBER uint
#define NUMBERS uvec4
#define LOAD(name, i) name[i]
#define STORE(name, i, v) name[i] = v
#else
#define NUMBER float
#define NUMBERS vec4
#define LOAD LOAD4
#define STORE STORE4
#endif
#if defined(TO) && !defined(WIDE)
layout(binding = RELAYOUT_X, std430) readonly buffer X { NUMBER x[]; };
#elif defined(WORDS)
layout(binding = RELAYOUT_X, std430) readonly buffer X { uvec4 x4[]; };
#else
VKT_IN4(RELAYOUT_X, x4);
#endif
#if !defined(TO) && !defined(WIDE)
layout(binding = RELAYOUT_Y, std430) writeonly buffer Y { NUMBER y[]; };
#elif defined(WORDS)
layout(binding = RELAYOUT_Y, std430) writeonly buffer Y { uvec4 y4[]; };
#else
VKT_OUT4(RELAYOUT_Y, y4);
#endif

// Returns the index of feature f of the tile's sample n in the binding of the row-major tensor.
uint row_at(uint n, uint f)
{
    return pc.rows_base + n * pc.stride + f;
}

// TO: returns four features of sample n, from feature f on; 0 past the batch and past the tile's features. n and f
// count from the tile's first sample and feature.
NUMBERS sample_at(uint n, uint f)
{
    NUMBERS v = NUMBERS(0);
#ifdef TO
    const uint rows = pc.batch - 4 * pc.column;
#ifdef WIDE
    v = mix(v, LOAD(x4, row_at(min(n, rows - 1), f) / 4), bvec4(n < rows));
#else
    if (n < rows)
        for (uint j = 0; j < min(4, pc.features - f); j++) v[j] = x[row_at(n, f + j)];
#endif
#endif
    return v;
}

// Moves samples 4 * column .. 4 * column + 3, features 4 * block .. 4 * block + 3 of the tile.
void move(uint column, uint block)
{
    NUMBERS v[4];
    const uint f = 4 * block, n = 4 * column, at = pc.last_base + f * pc.pitch4 + column;
    [[unroll]] for (uint k = 0; k < 4; k++)
#ifdef TO
        v[k] = sample_at(n + k, f);
#else
        v[k] = LOAD(x4, at + min(k, pc.features - 1 - f) * pc.pitch4);
#endif
    [[unroll]] for (uint k = 0; k < 4; k++) {
        const NUMBERS w = NUMBERS(v[0][k], v[1][k], v[2][k], v[3][k]);
#ifdef TO
        if (f + k < pc.features) STORE(y4, at + k * pc.pitch4, w);
#else
        if (4 * pc.column + n + k < pc.batch) {
#ifdef WIDE
            STORE(y4, row_at(n + k, f) / 4, w);
#else
            for (uint j = 0; j < min(4, pc.features - f); j++) y[row_at(n + k, f + j)] = w[j];
#endif
        }
#endif
    }
}

void main()
{
    const uint blocks = (pc.features + 3) / 4;
    for (uint column = gl_GlobalInvocationID.x; column < pc.columns; column += gl_NumWorkGroups.x * gl_WorkGroupSize.x)
        for (uint c = gl_WorkGroupID.y * RELAYOUT_CHUNK; c < blocks; c += gl_NumWorkGroups.y * RELAYOUT_CHUNK)
            for (uint block = c; block < min(c + RELAYOUT_CHUNK, blocks); block++) move(column, block);
}
