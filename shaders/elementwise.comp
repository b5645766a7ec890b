// elementwise.comp - y[i] = f(a[i], b[i]) for i < n, operands of one shape and layout
//   RELU     y = a < 0 ? 0 : a            (NaN goes through)
//   RELU_DX  y = a <= 0 ? 0 : b           a: relu's output, b: dy; a gradient at NaN goes through, as in torch
//   ADD, MUL
// grid: x over n / 4 in contiguous shares; any group count is right. Deterministic: elementwise. The last 1 to 3 elements are stored
// one by one: what lies behind the tensor is somebody else's.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/elementwise.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(ELEMENTWISE_A, a4);
#if defined(RELU_DX) || defined(ADD) || defined(MUL)
VKT_IN4(ELEMENTWISE_B, b4);
#endif
VKT_OUT4(ELEMENTWISE_Y, y4);
layout(binding = ELEMENTWISE_Y, std430) writeonly buffer Y1 { float y[]; };

vec4 f(uint i)
{
    const vec4 a = LOAD4(a4, i);
#if defined(RELU)
    return mix(a, vec4(0.0), lessThan(a, vec4(0.0)));
#elif defined(RELU_DX)
    return mix(LOAD4(b4, i), vec4(0.0), lessThanEqual(a, vec4(0.0)));
#elif defined(ADD)
    return a + LOAD4(b4, i);
#elif defined(MUL)
    return a * LOAD4(b4, i);
#endif
}

void main()
{
    const uint whole = pc.n / 4;
    const uvec2 share = share_of(whole);
    const uint lanes = gl_WorkGroupSize.x;
    uint i = share.x + gl_LocalInvocationID.x;
    for (; i + 3 * lanes < share.y; i += 4 * lanes)
        [[unroll]] for (uint k = 0; k < 4; k++) STORE4(y4, i + k * lanes, f(i + k * lanes));
    for (; i < share.y; i += lanes) STORE4(y4, i, f(i));
    if (gl_GlobalInvocationID.x == 0 && pc.n % 4 != 0) {
        const vec4 tail = f(whole);
        for (uint k = 0; k < pc.n % 4; k++) y[4 * whole + k] = tail[k];
    }
}
