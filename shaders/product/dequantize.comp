// dequantize.comp - y[r][i] = number i of row r of quantized weights, as f32 (lib/quantized.glsl has the formats).
// IDS: y[p] = row ids[p], or 0 if ids[p] is no row. Weights that are larger than a binding are split into ranges of rows, one
// dispatch per range. KEEP: y does not change for ids of other rows.
// grid: x over vec4s of y in contiguous shares; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
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
#ifdef IDS
layout(binding = DEQUANTIZE_IDS, std430) readonly buffer Ids { uint ids[]; };
#endif

void main()
{
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
