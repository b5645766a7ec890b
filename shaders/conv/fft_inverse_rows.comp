// fft_inverse_rows.comp - inverse of fft_rows.comp. r is T times the inverse transform of src[c][row][slot][column].
// src already has another factor T (fft_inverse_columns.comp), so scale is 1 / (T * T):
//   image = scale * r + bias
//   WEIGHTS: dw = scale * r. With BIAS, the kernel also writes db: frequency 0 of dy, summed over all tiles and samples.
// grid: x over (c, pair of rows, column) in contiguous shares. Neighbouring lanes have neighbouring columns.
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
layout(constant_id = FFT_SPEC_BIAS) const bool BIAS = true;
#include "lib/fft.glsl"

VKT_IN4(FFT_IN, lines);
#ifdef WEIGHTS
layout(binding = FFT_OUT, std430) writeonly buffer Out { float dw[]; };
layout(binding = FFT_BIAS, std430) writeonly buffer Bias { float db[]; };
VKT_IN4(FFT_SUM, dy_spectrum);
#else
VKT_OUT4(FFT_OUT, image);
layout(binding = FFT_BIAS, std430) readonly buffer Bias { float bias[]; };
#endif

void store_row(uint channel, uint row, uint column, vec4 line[T])
{
#ifdef WEIGHTS
    uint at = channel * pc.w_channel + 4 * column * pc.w_lane + row * pc.width;
    [[unroll]] for (uint i = 0; i < COUNT; i++, at++) {
        const vec4 v = line[FIRST + i * STEP] * pc.scale;
        dw[at] = v.x, dw[at + pc.w_lane] = v.y, dw[at + 2 * pc.w_lane] = v.z, dw[at + 3 * pc.w_lane] = v.w;
    }
#else
    const uint tile = column / pc.n4, tile_h = tile / pc.tiles_w, tile_w = tile - tile_h * pc.tiles_w;
    const uint h = tile_h * pc.step_h + row, first = tile_w * pc.step_w;
    if (CLIP && h >= pc.height) return;
    const float scale = pc.scale, offset = BIAS ? bias[channel] : 0;
    uint at = ((channel * pc.height + h) * pc.width + first) * pc.n4 + column - tile * pc.n4;
    [[unroll]] for (uint i = 0; i < COUNT; i++, at += pc.n4)
        if (!CLIP || first + i < pc.width) STORE4(image, at, line[FIRST + i * STEP] * scale + offset);
#endif
}

#ifdef WEIGHTS
// Stores the gradient of the bias, the sum of dy. Frequency 0 of a tile is the sum of dy over the tile, so this function adds
// up frequency 0 of all tiles and samples.
void store_bias(uint channel)
{
    uint at = channel * pc.sum_pitch;
    const uint end = at + pc.sum_columns;
    vec4 sum = vec4(0);
    do sum += LOAD4(dy_spectrum, at);
    while (++at < end);
    db[channel] = (sum.x + sum.y) + (sum.z + sum.w);
}
#endif

void main()
{
    const uvec2 share = share_of(pc.items);
    const uint pairs = (pc.rows + 1) / 2, columns = pc.columns;
    uint item = share.x + gl_LocalInvocationID.x;
    while (item < share.y) {
        const uint line = item / columns, column = item - line * columns;
        const uint channel = line / pairs, row = 2 * (line - channel * pairs);
        const bool has_other = row + 1 < pc.rows;
        const uint a = (channel * pc.rows + row) * T * columns + column, b = has_other ? a + T * columns : a;
        vec4 re[T], im[T]; // A + i B, for the spectra A and B of two rows: one transform computes both rows
        re[0] = LOAD4(lines, a), im[0] = LOAD4(lines, b);
        if (FFT_ODD == 0) re[FFT_HALF] = LOAD4(lines, a + columns), im[FFT_HALF] = LOAD4(lines, b + columns);
        [[unroll]] for (uint u = 1; u <= FFT_LAST; u++) {
            const uint slot = fft_slot(u) * columns;
            const vec4 ar = LOAD4(lines, a + slot), ai = LOAD4(lines, a + slot + columns);
            const vec4 br = LOAD4(lines, b + slot), bi = LOAD4(lines, b + slot + columns);
            re[u] = ar - bi, im[u] = br + ai;
            re[T - u] = ar + bi, im[T - u] = br - ai;
        }
        fft(im, re);
        store_row(channel, row, column, re);
        if (has_other) store_row(channel, row + 1, column, im);
#ifdef WEIGHTS
        if (BIAS && row == 0 && column == 0) store_bias(channel);
#endif
        item += gl_WorkGroupSize.x;
    }
}
