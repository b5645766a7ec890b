// pool2d.comp - y[c][p][q][n] = max (or mean, with AVERAGE) of x[c][h][w][n] over window (p, q), four samples a lane
//   window p: rows p stride - pad .. + R - 1, clipped to the picture; adaptive (R = 0): floor(p H/P) .. ceil((p+1) H/P) - 1
//   max: the first maximum wins, a NaN wins over any number (the last one: PyTorch); index = h W + w of the winner, biased
//        RELU: of max(x, 0), in which nobody wins where that is 0, as relu passes no gradient there; a NaN passes
//   mean: the sum over the clipped window, divided by its size before clipping to the picture, or after (exclude_pad)
// grid: x over channels * P output rows, y over parts of a row, both with a stride; any group count is right. Deterministic.
// source: PyTorch documentation of MaxPool2d, AvgPool2d, AdaptiveMaxPool2d.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/pool2d.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = POOL_SPEC_R) const uint R = 2;
layout(constant_id = POOL_SPEC_S) const uint S = 2;
layout(constant_id = POOL_SPEC_N4) const uint N4 = 32;
layout(constant_id = POOL_SPEC_INSIDE) const uint INSIDE = 0;
layout(constant_id = POOL_SPEC_RELU) const uint RELU = 0;
VKT_IN4(POOL_X, x);
VKT_OUT4(POOL_Y, y);
#ifndef AVERAGE
layout(binding = POOL_INDEX, std430) writeonly buffer Index { uvec4 index[]; };
#endif
#include "lib/pool.glsl"

void main()
{
    const uint lanes = gl_WorkGroupSize.x, row_items = Q * N4;
    for (uint row = gl_WorkGroupID.x; row < channels * P; row += gl_NumWorkGroups.x) {
        const uint c = row / P;
        const Window v = window(row % P, stride_h, pad_h, R, H, P);
        for (uint i = gl_WorkGroupID.y * lanes + gl_LocalInvocationID.x; i < row_items; i += lanes * gl_NumWorkGroups.y) {
            const uint n = i % N4;
            const Window u = window(i / N4, stride_w, pad_w, S, W, Q);
            const uint corner = ((c * H + v.begin) * W + u.begin) * N4 + n;
#ifdef AVERAGE
            vec4 sum = vec4(0.0);
            for (uint r = 0; r < v.count; r++)
                for (uint s = 0; s < u.count; s++) sum += LOAD4(x, corner + (r * W + s) * N4);
            STORE4(y, row * row_items + i, sum / divisor(v, u));
#else
            const uint at = POOL_INDEX_BIAS + v.begin * W + u.begin;
            vec4 best = vec4(uintBitsToFloat(0xff800000u)); // -inf: a window of nothing else names its first element
            uvec4 where = uvec4(at);
            for (uint r = 0; r < v.count; r++)
                for (uint s = 0; s < u.count; s++) {
                    vec4 e = LOAD4(x, corner + (r * W + s) * N4);
                    if (RELU != 0u) e = mix(e, vec4(0.0), lessThan(e, vec4(0.0))); // as lib/unary.glsl: -0 stays -0
                    const uvec4 magnitude = floatBitsToUint(e) & 0x7fffffffu; // isnan() may be folded away
                    const bvec4 win = bvec4(uvec4(greaterThan(e, best)) |
                                            uvec4(greaterThan(magnitude, uvec4(0x7f800000u))));
                    best = mix(best, e, win);
                    where = mix(where, uvec4(at + r * W + s), win);
                }
            if (RELU != 0u) where = mix(where, uvec4(0u), lessThanEqual(best, vec4(0.0)));
            STORE4(y, row * row_items + i, best);
            index[row * row_items + i] = where;
#endif
        }
    }
}
