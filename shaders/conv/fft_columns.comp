// fft_columns.comp - Fourier transforms along the height, of the result of fft_rows.comp:
//   dst[c][f][re, im][column]   column: see fft_rows.comp
//   f is the index of a frequency (v, u), where v is along the height and u along the width. u is from 0 to T/2, because
//   symmetry gives the other frequencies.
//   If u = 0, f = v. If T is even and u = T/2, f = T/2+1 + v. For these u the input is real, so v is only from 0 to T/2. For
//   any other u, f = FFT_REALS + (u-1) * T + v.
// If T is even, one complex transform processes both real inputs. The real part of the transform's input is the input
// for u = 0, and the imaginary part is the input for u = T/2.
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

VKT_IN4(FFT_IN, lines);
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
        [[unroll]] for (uint i = 0; i < T; i++) re[i] = im[i] = vec4(0);
        const bool is_real = u == 0 && FFT_ODD == 1, pair = u == 0 && FFT_ODD == 0;
        uint from = (channel * COUNT * T + fft_slot(u)) * columns + column;
        [[unroll]] for (uint i = 0; i < COUNT; i++, from += T * columns) {
            re[FIRST + i * STEP] = LOAD4(lines, from);
            const vec4 imaginary = LOAD4(lines, from + columns);
            im[FIRST + i * STEP] = is_real ? vec4(0) : imaginary;
        }
        fft(re, im);
        uint to = channel * pitch + column + (u == 0 ? 0 : (FFT_REALS + (u - 1) * T) * plane);
        if (FFT_ODD == 1)
            [[unroll]] for (uint i = 0; i < T; i++, to += plane) {
                if (!is_real || i <= FFT_HALF) STORE4(dst, to, re[i]), STORE4(dst, to + columns, im[i]);
            }
        // T is even. A complex input gives T numbers, and the pair of real inputs gives 2 * (T/2 + 1) numbers. One loop
        // stores either result. With two loops in two branches, a CPU driver would run both loops.
        else [[unroll]] for (uint i = 0; i < T + 2; i++, to += plane) {
            const bool of_b = i > FFT_HALF;
            const uint v = of_b ? i - FFT_HALF - 1 : i, w = (T - v) % T;
            const vec4 real = 0.5 * (of_b ? im[v] + im[w] : re[v] + re[w]);
            const vec4 imaginary = 0.5 * (of_b ? re[w] - re[v] : im[v] - im[w]);
            if (i < T) {
                STORE4(dst, to, pair ? real : re[i % T]), STORE4(dst, to + columns, pair ? imaginary : im[i % T]);
            } else if (pair) {
                STORE4(dst, to, real), STORE4(dst, to + columns, imaginary);
            }
        }
        item += gl_WorkGroupSize.x;
    }
}
