// network.frag - evaluates the network for the surface that a pixel shows. The shader reads the published parameters, a
// moving average of the trained ones, directly from the library's buffer.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "show.glsl"
layout(binding = NRC_NORMAL, rgba32f) uniform readonly image2D normal_image;
layout(binding = NRC_LEVEL_TABLE, std140) uniform Levels { uvec4 levels[NRC_LEVELS]; };
layout(binding = NRC_PARAMETERS, std430) readonly buffer Floats { float floats[]; };
layout(binding = NRC_PARAMETERS, std430) readonly buffer Pairs { vec2 pairs[]; };
layout(binding = NRC_PARAMETERS, std430) readonly buffer Vectors { vec4 vectors[]; };
layout(push_constant) uniform Where { uint table, parameter[6]; } where; // index of the first float of each parameter
#define VKT_FLOAT(i) floats[i]
#define VKT_FLOAT2(i) pairs[(i) >> 1]
#define VKT_FLOAT4(i) vectors[(i) >> 2]
#define VKT_LEVEL(l) levels[l]
#include "vktrain/vktrain.glsl"
const uint GRID = NRC_LEVELS * NRC_FEATURES;
VKT_HASH_GRID(encode, 3, NRC_LEVELS, NRC_FEATURES)
VKT_MLP3(light_of, VKT_RELU, VKT_IDENTITY, NRC_INPUTS, NRC_HIDDEN, NRC_HIDDEN, 3)

void main()
{
    const ivec2 pixel = shown_pixel();
    vec4 features[VKT_VEC4S(GRID)], x[VKT_VEC4S(NRC_INPUTS)], light[1];
    encode(where.table, imageLoad(position_image, pixel).xyz, features);
    for (uint i = 0; i < GRID / 4; i++) x[i] = features[i];
    x[GRID / 4] = vec4(imageLoad(normal_image, pixel).xyz, 0.0);
    light_of(where.parameter, x, light);
    show(pixel, light[0].rgb);
}
