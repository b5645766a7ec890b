// elementwise.comp - y[i] = f(a[i], b[i], c[i]) for i < n. The operands have one shape and layout. f is a function of
// lib/unary.glsl (UNARY: one operand; UNARY_DX: its gradient, two operands) or of lib/binary.glsl (OPERANDS 2 or 3). A
// specialisation constant selects f.
// grid: x over the n / 4 vec4s in contiguous shares; any group count is right.
// Deterministic: elementwise.
// The last n % 4 elements are stored one by one, because the memory behind the tensor may belong to another tensor.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/elementwise.abi.h"
#include "abi/functions.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = ELEMENTWISE_SPEC_FUNCTION) const uint FUNCTION = 0;
layout(constant_id = ELEMENTWISE_SPEC_PADDED) const uint PADDED = 0;
VKT_IN4(ELEMENTWISE_A, a4);
#ifndef UNARY
VKT_IN4(ELEMENTWISE_B, b4);
#endif
#if OPERANDS == 3
VKT_IN4(ELEMENTWISE_C, c4);
#endif
VKT_OUT4(ELEMENTWISE_Y, y4);
layout(binding = ELEMENTWISE_Y, std430) writeonly buffer Y1 { float y[]; };
#ifdef OPERANDS
#include "lib/binary.glsl"
#else
#include "lib/unary.glsl"
#endif

// f(i) returns vec4 i of y. quick_f(i) returns the same, but only for QUICK functions, which are short (abi/functions.abi.h).
// The unrolled loop calls only quick_f. Some drivers (SwiftShader) unroll a loop before they fold constants. f contains all
// functions, so these drivers would need seconds to compile an unrolled loop with f.
#if defined(UNARY)
vec4 f(uint i) { return unary(LOAD4(a4, i)); }
vec4 quick_f(uint i) { return quick_unary(LOAD4(a4, i)); }
#elif defined(UNARY_DX)
vec4 f(uint i) { return unary_dx(LOAD4(a4, i), LOAD4(b4, i)); }
vec4 quick_f(uint i) { return quick_unary_dx(LOAD4(a4, i), LOAD4(b4, i)); }
#elif OPERANDS == 2
vec4 f(uint i) { return binary(LOAD4(a4, i), LOAD4(b4, i)); }
vec4 quick_f(uint i) { return quick_binary(LOAD4(a4, i), LOAD4(b4, i)); }
#else
vec4 f(uint i) { return ternary(LOAD4(a4, i), LOAD4(b4, i), LOAD4(c4, i)); }
vec4 quick_f(uint i) { return quick_ternary(LOAD4(a4, i), LOAD4(b4, i), LOAD4(c4, i)); }
#endif

void main()
{
    const uint whole = pc.n / 4, lanes = gl_WorkGroupSize.x;
    const uvec2 share = share_of(whole);
    uint i = share.x + gl_LocalInvocationID.x;
    if (PADDED != 0) {
        const uint hop = lanes % pc.row4;
        uint column = (pc.begin4 + i) % pc.row4;
        for (; i < share.y; i += lanes) {
            const uint samples = column + 1 == pc.row4 ? pc.last : 4;
            STORE4(y4, i, mix(vec4(0.0), f(i), lessThan(uvec4(0, 1, 2, 3), uvec4(samples))));
            column += hop;
            column -= column >= pc.row4 ? pc.row4 : 0;
        }
        return;
    }
    if (QUICK)
        for (; i + 3 * lanes < share.y; i += 4 * lanes)
            [[unroll]] for (uint k = 0; k < 4; k++) STORE4(y4, i + k * lanes, quick_f(i + k * lanes));
    for (; i < share.y; i += lanes) STORE4(y4, i, f(i));
    if (gl_GlobalInvocationID.x == 0 && pc.n % 4 != 0) {
        const vec4 tail = as_stored(f(whole));
        for (uint k = 0; k < pc.n % 4; k++) y[4 * whole + k] = tail[k];
    }
}
