// network.frag - evaluates the network for the surface that a pixel shows. It reads the published parameters in the
// library's buffer.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "show.glsl"
layout(binding = NRC_NORMAL, rgba32f) uniform readonly image2D normal_image;
layout(binding = NRC_LEVEL_TABLE, std140) uniform Levels { uvec4 levels[NRC_LEVELS]; };
layout(binding = NRC_PARAMETERS, std430) readonly buffer Store { float store[]; };
layout(push_constant) uniform Where { uint table, weight[3], bias[3]; } where; // first floats of the parameters
#define VKT_FLOAT(i) store[i]
#define VKT_LEVEL(l) levels[l]
#include "vktrain/vktrain.glsl"
VKT_HASH_GRID(encode, 3, 8, 2)
VKT_LAYER(first, 19, 32, VKT_RELU)
VKT_LAYER(second, 32, 32, VKT_RELU)
VKT_LAYER(last, 32, 3, VKT_IDENTITY)

void main()
{
    const ivec2 pixel = shown_pixel();
    const vec3 normal = imageLoad(normal_image, pixel).xyz;
    float features[16], x[19], h[32], k[32], y[3];
    encode(where.table, imageLoad(position_image, pixel).xyz, features);
    for (uint i = 0; i < 16; i++) x[i] = features[i];
    for (uint i = 0; i < 3; i++) x[16 + i] = normal[i];
    first(where.weight[0], where.bias[0], x, h);
    second(where.weight[1], where.bias[1], h, k);
    last(where.weight[2], where.bias[2], k, y);
    show(pixel, vec3(y[0], y[1], y[2]));
}
