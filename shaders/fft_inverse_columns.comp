// fft_inverse_columns.comp - the way back of fft_columns.comp: src[c][f][re, im][column] -> dst[c][row][slot][column],
// for the COUNT rows that are wanted.
// grid: x over (c, u < T/2, column), lanes along columns (stride loop).  Deterministic.
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
#include "lib/fft.glsl"

VKT_IN4(FFT_IN, spectrum);
layout(binding = FFT_OUT, std430) writeonly buffer Out { vec4 dst[]; };

void main()
{
    const uvec2 share = share_of(pc.items);
    const uint columns = pc.columns, plane = 2 * columns;
    uint item = share.x + gl_LocalInvocationID.x;
    while (item < share.y) {
        const uint line = item / columns, column = item - line * columns;
        const uint channel = line / FFT_HALF, u = line - channel * FFT_HALF;
        vec4 re[T], im[T];
        uint from = channel * pc.pitch + column;
        if (u == 0) { // columns 0 and T/2 as one: Z = A + i B
            const uint other = (FFT_HALF + 1) * plane;
            [[unroll]] for (uint v = 0; v <= FFT_HALF; v++, from += plane) {
                const vec4 ar = LOAD4(spectrum, from), ai = LOAD4(spectrum, from + columns);
                const vec4 br = LOAD4(spectrum, from + other), bi = LOAD4(spectrum, from + other + columns);
                const bool is_real = v == 0 || v == FFT_HALF; // what stands in the imaginary part is rounding
                re[(T - v) % T] = ar + bi, im[(T - v) % T] = br - ai;
                re[v] = is_real ? ar : ar - bi, im[v] = is_real ? br : br + ai;
            }
        } else {
            from += (T + 2 + (u - 1) * T) * plane;
            [[unroll]] for (uint v = 0; v < T; v++, from += plane) {
                re[v] = LOAD4(spectrum, from);
                im[v] = LOAD4(spectrum, from + columns);
            }
        }
        fft(im, re);
        uint to = (channel * COUNT * T + 2 * u) * columns + column;
        [[unroll]] for (uint i = 0; i < COUNT; i++, to += T * columns)
            dst[to] = re[FIRST + i * STEP], dst[to + columns] = im[FIRST + i * STEP];
        item += gl_WorkGroupSize.x;
    }
}
