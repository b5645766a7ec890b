// pool2d.comp - y[c][p][q][n] = max (AVERAGE: mean) of x[c][h][w][n] over window (p, q), four samples n per lane
//   window p: rows p * stride - pad .. p * stride - pad + R - 1, clipped to the image
//   adaptive (R = 0): rows floor(p * H / P) .. ceil((p + 1) * H / P) - 1
//   with dilation (max): rows p * stride - pad + r * dilation, r < R. A window with no element in the image gives -inf
//   and no winner.
//   max: see lib/window_max.glsl. With RELU, y is the maximum of max(x, 0). index = h * W + w of the winner, plus a
//   bias (abi/pool_index.abi.h)
//   mean: sum over the window clipped to the image, divided by the area of the window clipped to the padded image. With
//   exclude_pad, the divisor is the area of the window clipped to the image.
//   PART: computes one part of a window that is too large for one invocation. A part has up to part_h x part_w elements. For a
//   mean, the result is the sum of the part. The results of part k (values and winners) are stored from vec4 k * part_pitch on.
//   JOIN: combines the results of all parts of each window, in the order of the elements of the window. PART and JOIN do not
//   support dilation.
//   DROPOUT: a dropout is applied to y before the store, with the random numbers of elementwise/dropout.comp. With
//   PLANES, channel c of sample n has one random number.
// grid: x over `rows` output rows of each channel, y over the vec4s of a row, both with a stride; any group count is right.
//       PART: z over the parts of a window.
// source: PyTorch documentation of MaxPool2d, AvgPool2d, AdaptiveMaxPool2d.
// Deterministic: one lane computes an element.
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
#ifdef DROPOUT
layout(constant_id = POOL_SPEC_PLANES) const bool PLANES = false;
#define DROPOUT_STEP POOL_STEP
#include "lib/dropout.glsl"
#endif
#ifndef AVERAGE
VKT_F32_OUT4(POOL_INDEX, index);
#include "lib/window_max.glsl"
#ifdef JOIN
VKT_IN4(POOL_WINNERS, winners);
#endif
#endif
#include "lib/pool.glsl"

// Stores vec4 i of row `row`, at index `to` of the binding.
void store(uint row, uint i, uint row_items, uint to, vec4 v)
{
#ifdef DROPOUT
    const uint at = pc.first_channel * P * row_items + (first_row + row) * row_items + i; // index in the tensor
    v = dropped(v, words(PLANES ? at / (P * row_items) * N4 + i % N4 : at));
#endif
    STORE4(y, to, v);
}

// Computes vec4 `i` of row `row` of this dispatch. v is the vec4's window along the height, u the window along the width.
// `corner` is the index in x of the element where both windows begin.
#ifdef JOIN
void pool(uint row, uint i, uint row_items, Window v, Window u, uint corner)
{
    const uint from = row * row_items + i, to = pq_base + (first_row + row) * row_items + i;
#ifdef AVERAGE
    vec4 sum = vec4(0.0);
    for (uint k = 0; k < parts; k++) sum += LOAD4(x, k * part_pitch + from);
    STORE4(y, to, sum / divisor(v, u));
#else
    vec4 best = NO_MAXIMUM;
    uvec4 winner = uvec4(POOL_INDEX_BIAS + v.begin * W + u.begin);
    for (uint k = 0; k < parts; k++) {
        const uint at = k * part_pitch + from;
        challenge(best, winner, LOAD4(x, at), floatBitsToUint(LOAD4(winners, at)));
    }
    STORE4(y, to, best);
    STORE4(index, index_base + (first_row + row) * row_items + i, index_of(winner, best));
#endif
}
#else
void pool(uint row, uint i, uint row_items, Window v, Window u, uint corner)
{
#ifdef PART
    const uint k = part + gl_WorkGroupID.z, r0 = k / parts_across * part_h, s0 = k % parts_across * part_w;
    const uint r1 = min(r0 + part_h, v.count), s1 = min(s0 + part_w, u.count);
    const uint to = k * part_pitch + row * row_items + i;
#else
    const uint r0 = 0, s0 = 0, r1 = v.count, s1 = u.count, to = pq_base + (first_row + row) * row_items + i;
#endif
#ifdef AVERAGE
    vec4 sum = vec4(0.0);
    for (uint r = r0; r < r1; r++)
        for (uint s = s0; s < s1; s++) sum += LOAD4(x, corner + (r * W + s) * N4);
#ifndef PART
    sum /= divisor(v, u);
#endif
    store(row, i, row_items, to, sum);
#else
    const uint at = POOL_INDEX_BIAS + v.begin * W + u.begin;
    vec4 best = NO_MAXIMUM;
    uvec4 winner = uvec4(at);
    if (DILATED && (r1 == 0u || s1 == 0u)) { // only padding: `best` is -inf, or 0 for samples past the batch
        best = mix(vec4(0.0), best, lessThan(4u * (i % N4) + uvec4(0u, 1u, 2u, 3u), uvec4(samples)));
        winner = uvec4(0u);
    }
    for (uint r = r0; r < r1; r++)
        for (uint s = s0; s < s1; s++) {
            const uint step = r * DILATION_H * W + s * DILATION_W;
            challenge(best, winner, LOAD4(x, corner + step * N4), uvec4(at + step));
        }
    store(row, i, row_items, to, best);
#ifdef PART
    STORE4(index, to, uintBitsToFloat(winner));
#else
    STORE4(index, to - pq_base + index_base, index_of(winner, best));
#endif
#endif
}
#endif

void main()
{
    const uint lanes = gl_WorkGroupSize.x, row_items = Q * N4;
#ifdef DROPOUT
    read_once();
#endif
    for (uint row = gl_WorkGroupID.x; row < channels * rows; row += gl_NumWorkGroups.x) {
        const uint c = row / rows, p = first_row + row % rows;
        const Window v =
            DILATED ? dilated_window(p, stride_h, pad_h, R, H, DILATION_H) : window(p, stride_h, pad_h, R, H, P);
        for (uint i = gl_WorkGroupID.y * lanes + gl_LocalInvocationID.x; i < row_items; i += lanes * gl_NumWorkGroups.y) {
            const Window u =
                DILATED ? dilated_window(i / N4, stride_w, pad_w, S, W, DILATION_W) : window(i / N4, stride_w, pad_w, S, W, Q);
            pool(row, i, row_items, v, u, hw_base + ((c * H + v.begin) * W + u.begin) * N4 + i % N4);
        }
    }
}
