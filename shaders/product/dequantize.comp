// dequantize.comp - y[r][i] = element i of row r of quantized weights, as a float (lib/quantized.glsl has the formats).
// IDS: y[p] = row ids[p], or 0 if there is no such row. Weights that are larger than a binding are split into ranges of rows,
// one dispatch per range. KEEP: y[p] does not change if row ids[p] is outside the range.
// CHUNKS: a lane writes 32 numbers at a time, so that it can load a whole quantized block at once
// (lib/quantized_chunk.glsl). Without CHUNKS, a lane writes one vec4 at a time, and neighbouring lanes write
// neighbouring vec4s. On GPUs, this is faster.
// PANEL: with CHUNKS, y is operand B of gemm_tile in panels (gemm_tile.abi.h). Row k of B is row k of the weights. The last
// panel may reach beyond the last column of the weights. The columns beyond are not written, because gemm_tile stores no sums
// of them.
// grid: x over vec4s or chunks of y in contiguous shares; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/dequantize.abi.h"
#include "abi/quant.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = DEQUANTIZE_SPEC_FORMAT) const uint FORMAT = 0;
layout(constant_id = DEQUANTIZE_SPEC_KEEP) const uint KEEP = 0;
VKT_WORDS(DEQUANTIZE_WORDS, words);
VKT_OUT4(DEQUANTIZE_Y, y4)
#include "lib/quantized.glsl"
#ifndef IDS
layout(constant_id = DEQUANTIZE_SPEC_CHUNKS) const uint CHUNKS = 0;
layout(constant_id = DEQUANTIZE_SPEC_PANEL) const uint PANEL = 0;
#include "lib/quantized_chunk.glsl"
#endif
#ifdef IDS
layout(binding = DEQUANTIZE_IDS, std430) readonly buffer Ids { uint ids[]; };
#endif

#ifndef IDS
// Returns the index in y of vec4 i of row r.
uint index_of(uint r, uint i)
{
    const uint across = max(PANEL / 4, 1); // vec4s of a row of a panel
    return PANEL == 0 ? r * pc.width4 + i : i / across * pc.panel + r * across + i % across;
}

// Writes this lane's chunks. A chunk has 32 numbers, or what is left of a row. With PANEL, the rows of y behind the last row of
// the weights are 0.
void write_chunks()
{
    const uint width4 = pc.width4, row_bytes = pc.row_bytes, base = pc.base, chunks = (width4 + CHUNK - 1) / CHUNK;
    const uint rows = pc.row_end - pc.row_begin;
    const uvec2 share = share_of(pc.rows * chunks);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint r = i / chunks, c = i - r * chunks;
        const bool inside = PANEL == 0 || r < rows;
        vec4 q[CHUNK];
        const vec2 d = numbers_of(base + (inside ? r : 0) * row_bytes, c, width4, q);
        [[unroll]] for (uint k = 0; k < CHUNK; k++)
            if (CHUNK * c + k < width4) STORE4(y4, index_of(r, CHUNK * c + k), inside ? d.x * q[k] + d.y : vec4(0.0));
    }
}
#endif

void main()
{
#ifndef IDS
    if (CHUNKS != 0) {
        write_chunks();
        return;
    }
#endif
    const uint width4 = pc.width4, row_bytes = pc.row_bytes, base = pc.base, begin = pc.row_begin, end = pc.row_end;
    const uvec2 share = share_of(pc.rows * width4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint r = i / width4;
#ifdef IDS
        const uint id = ids[pc.first + r];
        const bool here = id >= begin && id < end;
        if (!here && KEEP != 0) continue;
        const vec4 v = here ? quantized4(FORMAT, base + (id - begin) * row_bytes, 4 * (i - r * width4)) : vec4(0.0);
#else
        const vec4 v = quantized4(FORMAT, base + r * row_bytes, 4 * (i - r * width4));
#endif
        STORE4(y4, i, v);
    }
}
