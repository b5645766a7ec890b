// network.frag - evaluates the network at a point of the image. The parameters are in the library's buffer.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "network.h"
#include "screen.glsl"
layout(binding = VIEW_LEVEL_TABLE, std140) uniform Levels { uvec4 level_of[VIEW_LEVELS], first[2]; };
layout(binding = VIEW_PARAMETERS, std430) readonly buffer Floats { float floats[]; };
layout(binding = VIEW_PARAMETERS, std430) readonly buffer Pairs { vec2 pairs[]; };
layout(binding = VIEW_PARAMETERS, std430) readonly buffer Vectors { vec4 vectors[]; };
layout(location = 0) in vec2 at;
layout(location = 0) out vec4 colour;
#define VKT_UNROLL 2 // unrolls all loops, because the network is small: docs/embedding.md has the times
#define VKT_FLOAT(i) floats[i]
#define VKT_FLOAT2(i) pairs[(i) >> 1]
#define VKT_FLOAT4(i) vectors[(i) >> 2]
#define VKT_LEVEL(l) level_of[l]
#include "vktrain/vktrain.glsl"
VKT_HASH_GRID(encode, 2, VIEW_LEVELS, VIEW_FEATURES)
VKT_MLP3(colour_of, VKT_RELU, VKT_IDENTITY, VIEW_LEVELS * VIEW_FEATURES, VIEW_HIDDEN, VIEW_HIDDEN, 3)

void main()
{
    vec4 features[VKT_VEC4S(VIEW_LEVELS * VIEW_FEATURES)], y[1];
    encode(first[0].x, at, features);
    colour_of(uint[](first[0].y, first[0].z, first[0].w, first[1].x, first[1].y, first[1].z), features, y);
    colour = to_screen(clamp(y[0].xyz, 0.0, 1.0));
}
