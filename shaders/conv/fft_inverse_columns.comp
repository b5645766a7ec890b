// fft_inverse_columns.comp - T times the inverse of fft_columns.comp. The input is a result of fft_product.comp, where
// the frequency is before the channel:
//   src[f][c][re, im][column] -> dst[c][row][slot][column]   f: see fft_columns.comp; slots: see lib/fft.glsl
// The kernel stores COUNT of the T rows: FIRST, FIRST + STEP, and so on.
// grid: x over (c, u < FFT_LINES, column) in contiguous shares. Neighbouring lanes have neighbouring columns.
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
#include "lib/fft.glsl"

VKT_IN4(FFT_IN, spectrum);
VKT_F32_OUT4(FFT_OUT, dst);

void main()
{
    const uvec2 share = share_of(pc.items);
    const uint columns = pc.columns, pitch = pc.pitch, plane = pc.plane;
    uint item = share.x + gl_LocalInvocationID.x;
    while (item < share.y) {
        const uint line = item / columns, column = item - line * columns;
        const uint channel = line / FFT_LINES, u = line - channel * FFT_LINES;
        vec4 re[T], im[T];
        const bool pair = u == 0; // true: the input is A + i B. A: frequencies (v, 0); B: (v, T/2), only for even T
        const uint from = channel * pitch + column + (pair ? 0 : (FFT_REALS + (u - 1) * T) * plane);
        const uint MOST = T + 2 - 2 * FFT_ODD;
        vec4 in_re[MOST], in_im[MOST];
        [[unroll]] for (uint i = 0; i < MOST; i++) {
            const uint at = from + (i < T || pair ? i * plane : 0);
            in_re[i] = LOAD4(spectrum, at), in_im[i] = LOAD4(spectrum, at + columns);
        }
        [[unroll]] for (uint v = 0; v < T; v++) {
            const uint a = v <= FFT_HALF ? v : T - v, b = FFT_ODD == 1 ? a : a + FFT_HALF + 1;
            const float back = v <= FFT_HALF ? 1 : -1;    // past T/2: A(v) = conj(A(T - v)) and B(v) = conj(B(T - v))
            const bool is_real = v == 0 || 2 * v == T;    // the imaginary parts of A and B are only rounding errors
            const vec4 ai = is_real ? vec4(0) : back * in_im[a], bi = is_real ? vec4(0) : back * in_im[b];
            re[v] = !pair ? in_re[v] : FFT_ODD == 1 ? in_re[a] : in_re[a] - bi;
            im[v] = !pair ? in_im[v] : FFT_ODD == 1 ? ai : in_re[b] + ai;
        }
        fft(im, re);
        uint to = (channel * COUNT * T + fft_slot(u)) * columns + column;
        [[unroll]] for (uint i = 0; i < COUNT; i++, to += T * columns) {
            STORE4(dst, to, re[FIRST + i * STEP]);
            if (FFT_ODD == 0 || !pair) STORE4(dst, to + columns, im[FIRST + i * STEP]);
        }
        item += gl_WorkGroupSize.x;
    }
}
