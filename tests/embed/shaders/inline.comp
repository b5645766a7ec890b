// inline.comp - evaluates a network of three layers. Each lane has one point. The input of the network is the hash-grid
// encoding of the point, followed by its frequency encoding. The sizes of the network depend on DIMS. With DIMS 3 the
// loops are unrolled. With DIMS 2 the compiler decides whether to unroll them.
#version 460
#extension GL_GOOGLE_include_directive : require
#if DIMS == 3
#extension GL_EXT_control_flow_attributes : require
#define VKT_LOOP [[unroll]]
#endif
layout(local_size_x = 16) in;
layout(push_constant) uniform Push { uint points, table, w1, b1, w2, b2, w3; };
layout(std430, binding = 0) readonly buffer Store { float store[]; };
layout(std430, binding = 1) readonly buffer Grid { uvec4 grid[]; };
layout(std430, binding = 2) readonly buffer Points { float x[]; };
layout(std430, binding = 3) writeonly buffer Result { float y[]; };
#define VKT_FLOAT(i) store[i]
#define VKT_LEVEL(l) grid[l]
#include "vktrain/vktrain.glsl"

#define ENCODED (LEVELS * FEATURES + 2 * DIMS * FREQUENCIES)
#if DIMS == 3
VKT_HASH_GRID(hash_grid, 3, LEVELS, FEATURES)
VKT_FREQUENCY(frequency, 3, FREQUENCIES)
#define POINT(n) vec3(x[3 * n], x[3 * n + 1], x[3 * n + 2])
#else
VKT_HASH_GRID(hash_grid, 2, LEVELS, FEATURES)
VKT_FREQUENCY(frequency, 2, FREQUENCIES)
#define POINT(n) vec2(x[2 * n], x[2 * n + 1])
#endif
VKT_LAYER(first, ENCODED, HIDDEN, VKT_RELU)
VKT_LAYER(second, HIDDEN, HIDDEN, VKT_RELU)
VKT_LAYER(last, HIDDEN, 3, VKT_IDENTITY)

void main()
{
    const uint n = gl_GlobalInvocationID.x;
    if (n >= points) return;
    float features[LEVELS * FEATURES], waves[2 * DIMS * FREQUENCIES], e[ENCODED], h[HIDDEN], g[HIDDEN], rgb[3];
    hash_grid(table, POINT(n), features);
    frequency(POINT(n), waves);
    for (uint i = 0; i < LEVELS * FEATURES; i++) e[i] = features[i];
    for (uint i = 0; i < 2 * DIMS * FREQUENCIES; i++) e[LEVELS * FEATURES + i] = waves[i];
    first(w1, b1, e, h);
    second(w2, b2, h, g);
    last(w3, VKT_NO_BIAS, g, rgb);
    for (uint i = 0; i < 3; i++) y[3 * n + i] = rgb[i];
}
