// network.comp - evaluates a network of LAYERS layers. W0 is the number of inputs, and W1, W2, .. are the widths of the
// layers. Each lane has one point. STORED says how the parameters are stored: it is one of the numbers NETWORK_FLOAT to
// NETWORK_TEXEL of network.h. The components of x behind the last input are NaN, so a network that uses them gives NaN.
// With VKT_ARITHMETIC16, layers compute in float16 (vktrain/vktrain.glsl). network.hlsl is the same program, without
// NETWORK_TEXEL and VKT_ARITHMETIC16.
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef VKT_ARITHMETIC16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "network.h"
layout(local_size_x = NETWORK_LANES) in;
#if STORED == NETWORK_VEC4
layout(std430, binding = NETWORK_PARAMETERS) readonly buffer Store4 { vec4 store4[]; };
#define VKT_FLOAT(i) store4[(i) >> 2][(i) & 3]
#define VKT_FLOAT4(i) store4[(i) >> 2]
#elif STORED == NETWORK_TEXEL
layout(binding = NETWORK_PARAMETERS) uniform samplerBuffer store4;
#define VKT_FLOAT(i) texelFetch(store4, int((i) >> 2))[(i) & 3]
#define VKT_FLOAT4(i) texelFetch(store4, int((i) >> 2))
#elif STORED == NETWORK_FLOAT
layout(std430, binding = NETWORK_PARAMETERS) readonly buffer Store { float store[]; };
#define VKT_FLOAT(i) store[i]
#else
layout(std430, binding = NETWORK_PARAMETERS) readonly buffer Store { uint words[]; };
#define VKT_WORD(i) words[i]
#if STORED == NETWORK_HALF
#define VKT_FLOAT(i) VKT_HALF(i)
#define VKT_FLOAT4(i) VKT_HALF4(i)
#else
#define VKT_FLOAT(i) VKT_BFLOAT(i)
#define VKT_FLOAT4(i) VKT_BFLOAT4(i)
#endif
#endif
layout(std430, binding = NETWORK_INPUTS) readonly buffer Inputs { float inputs[]; };
layout(std430, binding = NETWORK_OUTPUTS) writeonly buffer Outputs { float outputs[]; };
layout(std430, binding = NETWORK_AT) readonly buffer Starts { uint starts[]; };
#include "vktrain/vktrain.glsl"
NETWORK_FUNCTION

void main()
{
    const uint n = gl_GlobalInvocationID.x;
    if (n >= NETWORK_POINTS) return;
    uint at[2 * LAYERS];
    for (uint i = 0; i < 2 * LAYERS; i++) at[i] = starts[i];
    VKT_REAL4 x[VKT_VEC4S(W0)], y[VKT_VEC4S(LAST_WIDTH)];
    for (uint i = 0; i < 4 * VKT_VEC4S(W0); i++)
        x[i / 4][i % 4] = VKT_REAL4(i < W0 ? inputs[n * W0 + i] : uintBitsToFloat(0x7fc00000u)).x;
    network(at, x, y);
    for (uint i = 0; i < LAST_WIDTH; i++) outputs[n * LAST_WIDTH + i] = y[i / 4][i % 4];
}
