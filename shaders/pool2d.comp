// pool2d.comp - y[c][p][q][n] = max (or mean, with AVERAGE) of x[c][h][w][n] over window (p, q), four samples a lane
//   window p: rows p stride - pad .. + R - 1, clipped to the picture; adaptive (R = 0): floor(p H/P) .. ceil((p+1) H/P) - 1
//   with dilation (max): rows p stride - pad + r dilation, r < R; -inf and no winner where none is inside the picture
//   max: lib/window_max.glsl, of max(x, 0) with RELU; index = h W + w of the winner, biased
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
layout(constant_id = POOL_SPEC_RELU) const bool RELU = false;
layout(constant_id = POOL_SPEC_DILATION_H) const uint DILATION_H = 1;
layout(constant_id = POOL_SPEC_DILATION_W) const uint DILATION_W = 1;
const bool DILATED = DILATION_H != 1 || DILATION_W != 1;
VKT_IN4(POOL_X, x);
VKT_OUT4(POOL_Y, y);
#ifndef AVERAGE
VKT_F32_OUT4(POOL_INDEX, index);
#include "lib/window_max.glsl"
#endif
#include "lib/pool.glsl"

void main()
{
    const uint lanes = gl_WorkGroupSize.x, row_items = Q * N4;
    for (uint row = gl_WorkGroupID.x; row < channels * P; row += gl_NumWorkGroups.x) {
        const uint c = row / P;
        const Window v =
            DILATED ? dilated_window(row % P, stride_h, pad_h, R, H, DILATION_H) : window(row % P, stride_h, pad_h, R, H, P);
        for (uint i = gl_WorkGroupID.y * lanes + gl_LocalInvocationID.x; i < row_items; i += lanes * gl_NumWorkGroups.y) {
            const uint n = i % N4;
            const Window u =
                DILATED ? dilated_window(i / N4, stride_w, pad_w, S, W, DILATION_W) : window(i / N4, stride_w, pad_w, S, W, Q);
            const uint corner = ((c * H + v.begin) * W + u.begin) * N4 + n;
#ifdef AVERAGE
            vec4 sum = vec4(0.0);
            for (uint r = 0; r < v.count; r++)
                for (uint s = 0; s < u.count; s++) sum += LOAD4(x, corner + (r * W + s) * N4);
            STORE4(y, row * row_items + i, sum / divisor(v, u));
#else
            const uint at = POOL_INDEX_BIAS + v.begin * W + u.begin;
            vec4 best = NO_MAXIMUM;
            uvec4 winner = uvec4(DILATED && (v.count == 0u || u.count == 0u) ? 0u : at);
            for (uint r = 0; r < v.count; r++)
                for (uint s = 0; s < u.count; s++) {
                    const uint step = r * DILATION_H * W + s * DILATION_W;
                    challenge(best, winner, LOAD4(x, corner + step * N4), at + step);
                }
            STORE4(y, row * row_items + i, best);
            STORE4(index, row * row_items + i, index_of(winner, best));
#endif
        }
    }
}
