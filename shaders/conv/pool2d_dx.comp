// pool2d_dx.comp - gradient of pool2d by gathering: dx[c][h][w][n] is the sum of a term over the windows (p, q) that contain
// (h, w), in ascending order. For a maximum, the term is dy if the window's winner is (h, w), else 0. For a mean (AVERAGE), the
// term is dy / divisor(p, q).
//   p contains h if p * stride - pad <= h < p * stride - pad + R
//   adaptive: p contains h if floor(h * P / H) <= p <= ceil((h + 1) * P / H) - 1
//   with dilation (max): p contains h if h = p * stride - pad + r * dilation for some r < R. A lane loops over r from R - 1
//   down to 0, so that p ascends.
// DISJOINT: stride = kernel and no padding, so windows are disjoint. A lane reads dy (for a maximum also the index) of
// one window, and writes the R x S elements of this window. Elements at the far edges that are in no window become 0.
// DROPOUT, only with DISJOINT: a dropout is applied to dx before the store, in the same way as pool2d.comp applies it to y.
// grid: x over `rows` rows of dx of each channel (DISJOINT: rows of windows), y over the vec4s (DISJOINT: windows) of a row,
//       both with a stride; any group count is right.
// Deterministic: one lane computes an element.
// Elements past the batch become 0, because they are 0 in dy.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/pool2d.abi.h"
#include "abi/pool_index.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = POOL_SPEC_R) const uint R = 2;
layout(constant_id = POOL_SPEC_S) const uint S = 2;
layout(constant_id = POOL_SPEC_N4) const uint N4 = 32;
layout(constant_id = POOL_SPEC_INSIDE) const uint INSIDE = 0;
layout(constant_id = POOL_SPEC_DILATION_H) const uint DILATION_H = 1;
layout(constant_id = POOL_SPEC_DILATION_W) const uint DILATION_W = 1;
const bool DILATED = DILATION_H != 1 || DILATION_W != 1;
VKT_IN4(POOL_DY, dy);
VKT_OUT4(POOL_DX, dx);
#ifdef DROPOUT
layout(constant_id = POOL_SPEC_PLANES) const bool PLANES = false;
#define DROPOUT_STEP POOL_STEP
#include "lib/dropout.glsl"
#endif
#ifndef AVERAGE
VKT_IN4(POOL_INDEX, index);
vec4 where(uvec4 winner, uint at, vec4 g) { return mix(vec4(0.0), g, equal(winner, uvec4(POOL_INDEX_BIAS + at))); }
#endif
#include "lib/pool.glsl"

#ifdef DISJOINT
void write_window(uint c, uint p, uint q, uint n)
{
    const uint i = pq_base + ((c * P + p) * Q + q) * N4 + n;
    const bool real = INSIDE != 0u || (p < P && q < Q);
    vec4 g = real ? LOAD4(dy, i) : vec4(0.0);
#ifdef AVERAGE
    g /= divisor(window(p, R, 0u, R, H, P), window(q, S, 0u, S, W, Q));
#else
    const uvec4 winner = real ? floatBitsToUint(LOAD4(index, i - pq_base + index_base)) : uvec4(0u);
#endif
#ifdef DROPOUT
    const uvec4 of_plane = PLANES ? words((pc.first_channel + c) * N4 + n) : uvec4(0u);
#endif
    for (uint r = 0; r < R; r++)
        for (uint s = 0; s < S; s++) {
            const uint h = p * R + r, w = q * S + s;
            if (INSIDE == 0u && (h >= H || w >= W)) continue;
#ifdef AVERAGE
            vec4 e = g;
#else
            vec4 e = where(winner, h * W + w, g);
#endif
#ifdef DROPOUT
            e = dropped(e, PLANES ? of_plane : words((((pc.first_channel + c) * H + h) * W + w) * N4 + n));
#endif
            STORE4(dx, hw_base + ((c * H + h) * W + w) * N4 + n, e);
        }
}
#else
// Returns the first and the last window along one axis that contain element `at`. If last < first, no window contains it.
ivec2 holders(uint at, uint stride, uint pad, uint kernel, uint size, uint P)
{
    if (kernel == 0u) return ivec2(at * P / size, ((at + 1u) * P + size - 1u) / size - 1u);
    const uint shifted = at + pad;
    const uint first = shifted < kernel ? 0u : (shifted - kernel) / stride + 1u;
    return ivec2(first, min(shifted / stride, P - 1u));
}

#ifndef AVERAGE
// Returns the gradient that window (p, q) passes to (h, w).
vec4 share(uint c, uint p, uint q, uint h, uint w, uint n)
{
    const uint i = pq_base + ((c * P + p) * Q + q) * N4 + n;
    return where(floatBitsToUint(LOAD4(index, i - pq_base + index_base)), h * W + w, LOAD4(dy, i));
}

// Returns the window along one axis whose element `tap` is at index `at`, or -1 if there is none.
int window_of(uint at, uint tap, uint dilation, uint stride, uint pad, uint P)
{
    const int from = int(at + pad) - int(tap * dilation), p = from / int(stride);
    return from < 0 || p * int(stride) != from || p >= int(P) ? -1 : p;
}

vec4 gather_taps(uint c, uint h, uint w, uint n)
{
    vec4 sum = vec4(0.0);
    for (uint r = R; r-- > 0u;) {
        const int p = window_of(h, r, DILATION_H, stride_h, pad_h, P);
        if (p < 0) continue;
        for (uint s = S; s-- > 0u;) {
            const int q = window_of(w, s, DILATION_W, stride_w, pad_w, Q);
            if (q >= 0) sum += share(c, uint(p), uint(q), h, w, n);
        }
    }
    return sum;
}
#endif

vec4 gather(uint c, uint h, uint w, uint n)
{
#ifndef AVERAGE
    if (DILATED) return gather_taps(c, h, w, n);
#endif
    const ivec2 ps = holders(h, stride_h, pad_h, R, H, P), qs = holders(w, stride_w, pad_w, S, W, Q);
    vec4 sum = vec4(0.0);
    for (int p = ps.x; p <= ps.y; p++)
        for (int q = qs.x; q <= qs.y; q++) {
#ifdef AVERAGE
            sum += LOAD4(dy, pq_base + ((c * P + uint(p)) * Q + uint(q)) * N4 + n) /
                   divisor(window(uint(p), stride_h, pad_h, R, H, P),
                               window(uint(q), stride_w, pad_w, S, W, Q));
#else
            sum += share(c, uint(p), uint(q), h, w, n);
#endif
        }
    return sum;
}
#endif

void main()
{
#ifdef DISJOINT
    const uint columns = (W + S - 1u) / S;
#else
    const uint columns = W;
#endif
    const uint lanes = gl_WorkGroupSize.x, row_items = columns * N4;
#ifdef DROPOUT
    read_once();
#endif
    for (uint row = gl_WorkGroupID.x; row < channels * rows; row += gl_NumWorkGroups.x) {
        const uint c = row / rows, h = first_row + row % rows;
        for (uint i = gl_WorkGroupID.y * lanes + gl_LocalInvocationID.x; i < row_items; i += lanes * gl_NumWorkGroups.y) {
#ifdef DISJOINT
            write_window(c, h, i / N4, i % N4);
#else
            STORE4(dx, hw_base + (first_row + row) * row_items + i, gather(c, h, i / N4, i % N4));
#endif
        }
    }
}
