// fft_rows.comp - real Fourier transforms of the rows of image tiles, or of weights (WEIGHTS):
//   dst[c][row][slot][column]   column = (tile, n), where n is a vec4 of samples; WEIGHTS: column = four channels
//   slots: see lib/fft.glsl
// One complex transform computes two rows. The first row is the real part of the transform's input, and the second row is the
// imaginary part. The transform of a real row is symmetric, so the two results can be separated.
// grid: x over (c, pair of rows, column) in contiguous shares. Neighbouring lanes have neighbouring columns.
// source: Sorensen, Jones, Heideman & Burrus, Real-Valued Fast Fourier Transform Algorithms (1987), section II.
// Deterministic: one lane computes a transform.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/fft.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = FFT_SPEC_LANES) in;
layout(constant_id = FFT_SPEC_T) const uint T = 16;
layout(constant_id = FFT_SPEC_FIRST) const uint FIRST = 0;
layout(constant_id = FFT_SPEC_STEP) const uint STEP = 1;
layout(constant_id = FFT_SPEC_COUNT) const uint COUNT = 16;
layout(constant_id = FFT_SPEC_CLIP) const bool CLIP = true;
#include "lib/fft.glsl"

#ifdef WEIGHTS
layout(binding = FFT_IN, std430) readonly buffer In { float w[]; };
#else
VKT_IN4(FFT_IN, image);
#endif
VKT_F32_OUT4(FFT_OUT, dst);

// Loads row `row` of a tile. WEIGHTS: loads row `row` of four R x S kernels of w (o, c, R, S), one in each element of a
// vec4. The four kernels have the same channel, which is o or c. They are neighbours along the other dimension.
void load_row(uint channel, uint row, uint column, out vec4 line[T])
{
    [[unroll]] for (uint i = 0; i < T; i++) line[i] = vec4(0);
#ifdef WEIGHTS
    uint at = channel * pc.w_channel + 4 * column * pc.w_lane + row * pc.width;
    [[unroll]] for (uint i = 0; i < COUNT; i++, at++)
        line[FIRST + i * STEP] = vec4(w[at], w[at + pc.w_lane], w[at + 2 * pc.w_lane], w[at + 3 * pc.w_lane]);
#else
    const uint tile = column / pc.n4, tile_h = tile / pc.tiles_w, tile_w = tile - tile_h * pc.tiles_w;
    const int h = int(tile_h * pc.step_h + row) + pc.origin_h, first = int(tile_w * pc.step_w) + pc.origin_w;
    const bool inside = !CLIP || uint(h) < pc.height;
    const uint n4 = pc.n4, n = column - tile * n4;
    const int at = int((channel * pc.height + (inside ? uint(h) : 0)) * pc.width * n4 + n);
    [[unroll]] for (int i = 0; i < COUNT; i++) {
        const bool is_pixel = inside && (!CLIP || uint(first + i) < pc.width);
        const vec4 v = LOAD4(image, at + (is_pixel ? (first + i) * int(n4) : 0));
        line[FIRST + i * STEP] = is_pixel ? v : vec4(0);
    }
#endif
}

void main()
{
    const uvec2 share = share_of(pc.items);
    const uint pairs = (pc.rows + 1) / 2, columns = pc.columns;
    uint item = share.x + gl_LocalInvocationID.x;
    while (item < share.y) {
        const uint line = item / columns, column = item - line * columns;
        const uint channel = line / pairs, row = 2 * (line - channel * pairs);
        vec4 re[T], im[T];
        load_row(channel, row, column, re);
        [[unroll]] for (uint i = 0; i < T; i++) im[i] = vec4(0);
        if (row + 1 < pc.rows) load_row(channel, row + 1, column, im);
        fft(re, im);
        uint to = (channel * pc.rows + row) * T * columns + column;
        STORE4(dst, to, re[0]);
        if (FFT_ODD == 0) STORE4(dst, to + columns, re[FFT_HALF]);
        [[unroll]] for (uint u = 1; u <= FFT_LAST; u++) {
            STORE4(dst, to + fft_slot(u) * columns, 0.5 * (re[u] + re[T - u]));
            STORE4(dst, to + (fft_slot(u) + 1) * columns, 0.5 * (im[u] - im[T - u]));
        }
        to += T * columns;
        if (row + 1 < pc.rows) {
            STORE4(dst, to, im[0]);
            if (FFT_ODD == 0) STORE4(dst, to + columns, im[FFT_HALF]);
            [[unroll]] for (uint u = 1; u <= FFT_LAST; u++) {
                STORE4(dst, to + fft_slot(u) * columns, 0.5 * (im[u] + im[T - u]));
                STORE4(dst, to + (fft_slot(u) + 1) * columns, 0.5 * (re[T - u] - re[u]));
            }
        }
        item += gl_WorkGroupSize.x;
    }
}
