// dropout.comp - y = keep ? x * scale : 0. The random numbers depend only on (seed, draw, salt, element), so the
// gradient is the same kernel on dy. draw is the word STEP_DRAW of the step state (abi/step.abi.h). The salt is a
// number that each dropout of a graph has of its own. The gradient of a dropout has the same salt.
//   Element e uses word e % 4 of philox((e / 4, draw, salt, 3), seed). The element is kept if the word is >= threshold.
//   AFTER: y = dropout(f(x)), where f is a function of lib/unary.glsl.
//   BEFORE: y = dropout(x) + b, or y = dropout(x) * f'. The second form is the gradient of AFTER, with dy as x. The slope
//   f' is computed from b, which is the input or the output of f (unary_dx in lib/unary.glsl).
//   PLANES: a plane (n,c) is channel c of sample n. It has one random number: the word of element e = c * N' + n. N' is
//   N rounded up to a multiple of 4. x is batch last: a row is a channel, and `columns` is N'. A lane processes the
//   planes of four samples. One call of philox gives the four random numbers of these planes.
//   PLANES_ROWS: the same random numbers for a row-major x. Row n * C + c is plane (n,c). `columns` is N', as for
//   PLANES.
// grid: x over vec4s in contiguous shares.
//       PLANES: x over rows * columns / 4, y over chunks of the plane, both with a stride.
//       PLANES_ROWS: x over rows, y over chunks of the plane, both with a stride.
// source: Srivastava et al., JMLR 15 (2014), in the inverted form.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/dropout.abi.h"
#include "lib/dropout.glsl"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
#if defined(AFTER) || defined(BEFORE)
layout(constant_id = DROPOUT_SPEC_FUNCTION) const uint FUNCTION = 0;
#include "abi/functions.abi.h"
#include "lib/unary.glsl"
#endif
layout(binding = DROPOUT_Y, std430) writeonly buffer Y1 { float y[]; };

#ifdef PLANES_ROWS
layout(binding = DROPOUT_X, std430) readonly buffer X { float x[]; };

void main()
{
    read_once();
    const uint end = pc.begin + pc.n, first_row = pc.begin / pc.plane, rows = (end - 1) / pc.plane + 1;
    for (uint row = first_row + gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        const uint e = row % pc.channels * pc.columns + row / pc.channels;
        const bool keep = words(e / 4)[e % 4] >= threshold;
        for (uint q = gl_WorkGroupID.y * DROPOUT_CHUNK; q < pc.plane; q += gl_NumWorkGroups.y * DROPOUT_CHUNK)
            for (uint k = q + gl_LocalInvocationID.x; k < min(q + DROPOUT_CHUNK, pc.plane); k += gl_WorkGroupSize.x) {
                const uint i = row * pc.plane + k;
                if (i >= pc.begin && i < end) y[i - pc.begin] = keep ? x[i - pc.begin] * scale : 0.0;
            }
    }
}
#else
VKT_IN4(DROPOUT_X, x4);
VKT_OUT4(DROPOUT_Y, y4);
#ifdef BEFORE
VKT_IN4(DROPOUT_B, b4);
#endif

vec4 operand(uint i)
{
#ifdef AFTER
    return unary(LOAD4(x4, i));
#else
    return LOAD4(x4, i);
#endif
}

vec4 masked(uint i, uvec4 w)
{
    const vec4 v = dropped(operand(i), w);
#ifdef BEFORE
    return FUNCTION == DROPOUT_SUM ? v + LOAD4(b4, i) : unary_dx(LOAD4(b4, i), v);
#else
    return v;
#endif
}

#ifdef PLANES
void main()
{
    read_once();
    const uint begin = pc.begin / 4, end = begin + pc.n / 4, columns = pc.columns / 4, row4 = pc.plane * columns;
    const uint first = begin / row4 * columns, units = ((end - 1) / row4 + 1) * columns;
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint e4 = first + gl_GlobalInvocationID.x; e4 < units; e4 += stride) {
        const uvec4 w = words(e4);
        const uint at = e4 / columns * row4 + e4 % columns;
        for (uint q = gl_WorkGroupID.y * DROPOUT_CHUNK; q < pc.plane; q += gl_NumWorkGroups.y * DROPOUT_CHUNK)
            for (uint k = q; k < min(q + DROPOUT_CHUNK, pc.plane); k++) {
                const uint i = at + k * columns;
                if (i >= begin && i < end) STORE4(y4, i - begin, masked(i - begin, w));
            }
    }
}
#else
void main()
{
    read_once();
    const uint whole = pc.n / 4, begin4 = pc.begin / 4;
    const uvec2 share = share_of(whole);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x)
        STORE4(y4, i, masked(i, words(begin4 + i)));
    if (gl_GlobalInvocationID.x == 0 && pc.n % 4 != 0) {
        const vec4 tail = masked(whole, words(begin4 + whole));
        for (uint k = 0; k < pc.n % 4; k++) y[4 * whole + k] = tail[k];
    }
}
#endif
#endif
