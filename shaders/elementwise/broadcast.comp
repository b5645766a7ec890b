// broadcast.comp - y = f(a, b, c) with NumPy's broadcasting over strided operands. OPERANDS 2 and 3: the functions of
// lib/binary.glsl. OPERANDS 1: a copy (y = a).
//   A row runs along y's fastest dimension. The index of a row is converted to coordinates by divisions. For long rows,
//   a lane divides once per piece of ITERATIONS iterations. For short rows (ITERATIONS is 0), a lane divides in each
//   iteration.
//   WIDTH 4: four elements per lane and iteration. Along a row, an operand either repeats one element, or has stride 1. With
//   stride 1, all other strides of the operand are multiples of 4.
// grid: x over pieces with a stride, or over elements in contiguous shares; any group count is right.
// Deterministic: elementwise.
// Elements past the batch (run <= i < pitch) become zero.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/broadcast.abi.h"
#include "abi/functions.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = BROADCAST_SPEC_DIMS) const uint DIMS = 5;
layout(constant_id = BROADCAST_SPEC_ITERATIONS) const uint ITERATIONS = 0;
layout(constant_id = BROADCAST_SPEC_A_STEP) const uint A_STEP = 1;
layout(constant_id = BROADCAST_SPEC_B_STEP) const uint B_STEP = 1;
layout(constant_id = BROADCAST_SPEC_C_STEP) const uint C_STEP = 1;
layout(constant_id = BROADCAST_SPEC_FUNCTION) const uint FUNCTION = 0;
#if WIDTH == 4
#define NUMBER vec4
VKT_IN4(BROADCAST_A, a4);
#if OPERANDS > 1
VKT_IN4(BROADCAST_B, b4);
#endif
#if OPERANDS > 2
VKT_IN4(BROADCAST_C, c4);
#endif
VKT_OUT4(BROADCAST_Y, y);
#define STORE(i, v) STORE4(y, i, v)
#define A(at, i) (A_STEP == 0 ? vec4(LOAD4(a4, (at) / 4)[(at) % 4]) : LOAD4(a4, ((at) + (i)) / 4))
#define B(at, i) (B_STEP == 0 ? vec4(LOAD4(b4, (at) / 4)[(at) % 4]) : LOAD4(b4, ((at) + (i)) / 4))
#define C(at, i) (C_STEP == 0 ? vec4(LOAD4(c4, (at) / 4)[(at) % 4]) : LOAD4(c4, ((at) + (i)) / 4))
#else
#define NUMBER float
layout(binding = BROADCAST_A, std430) readonly buffer BlockA { float a[]; };
#if OPERANDS > 1
layout(binding = BROADCAST_B, std430) readonly buffer BlockB { float b[]; };
#endif
#if OPERANDS > 2
layout(binding = BROADCAST_C, std430) readonly buffer BlockC { float c[]; };
#endif
layout(binding = BROADCAST_Y, std430) writeonly buffer Y { float y[]; };
#define STORE(i, v) y[i] = v
#define A(at, i) vec4(a[(at) + (i) * hop5.x])
#define B(at, i) vec4(b[(at) + (i) * hop5.y])
#define C(at, i) vec4(c[(at) + (i) * hop5.z])
#endif
#if OPERANDS > 1
#include "lib/binary.glsl"
#endif

// Push constants, read before the loops: lavapipe compiles each read in a loop to a loop over the lanes.
uint d1 = pc.d1, d2 = pc.d2, d3 = pc.d3, d4 = pc.d4, run = pc.run, pitch = pc.pitch, rows = pc.rows;
uvec3 hop0 = uvec3(pc.a0, pc.b0, pc.c0), hop1 = uvec3(pc.a1, pc.b1, pc.c1), hop2 = uvec3(pc.a2, pc.b2, pc.c2);
uvec3 hop3 = uvec3(pc.a3, pc.b3, pc.c3), hop4 = uvec3(pc.a4, pc.b4, pc.c4), hop5 = uvec3(pc.a5, pc.b5, pc.c5);

// Returns the start of row r in a, b and c.
uvec3 row_of(uint r)
{
    uvec3 at = uvec3(0);
    if (DIMS > 4) {
        at += r % d4 * hop4;
        r /= d4;
    }
    if (DIMS > 3) {
        at += r % d3 * hop3;
        r /= d3;
    }
    if (DIMS > 2) {
        at += r % d2 * hop2;
        r /= d2;
    }
    if (DIMS > 1) {
        at += r % d1 * hop1;
        r /= d1;
    }
    return DIMS > 0 ? at + r * hop0 : at;
}

// Returns elements i .. i + WIDTH - 1 of a row of y; 0 from element `run` on. With WIDTH 1, v has four equal elements, and the
// compiler keeps one of them.
NUMBER f(uvec3 at, uint i)
{
#if WIDTH == 4
    const uint k = i;
#else
    const uint k = min(i, run - 1);
#endif
#if OPERANDS == 1
    const vec4 v = A(at.x, k);
#elif OPERANDS == 2
    const vec4 v = binary(A(at.x, k), B(at.y, k));
#else
    const vec4 v = ternary(A(at.x, k), B(at.y, k), C(at.z, k));
#endif
#if WIDTH == 4
    return mix(vec4(0.0), v, lessThan(i + uvec4(0, 1, 2, 3), uvec4(run)));
#else
    return i < run ? v.x : 0.0;
#endif
}

void main()
{
    if (ITERATIONS != 0) {
        const uint piece = ITERATIONS * WIDTH * gl_WorkGroupSize.x, pieces = (pitch + piece - 1) / piece;
        for (uint u = gl_WorkGroupID.x; u < rows * pieces; u += gl_NumWorkGroups.x) {
            const uint row = u / pieces, first = u % pieces * piece, end = min(first + piece, pitch);
            const uvec3 at = row_of(row);
            for (uint i = first + WIDTH * gl_LocalInvocationID.x; i < end; i += WIDTH * gl_WorkGroupSize.x)
                STORE((row * pitch + i) / WIDTH, f(at, i));
        }
    } else {
        const uint units = pitch / WIDTH;
        const uvec2 share = share_of(rows * units);
        for (uint u = share.x + gl_LocalInvocationID.x; u < share.y; u += gl_WorkGroupSize.x)
            STORE(u, f(row_of(u / units), WIDTH * (u % units)));
    }
}
