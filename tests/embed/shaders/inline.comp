// inline.comp - evaluates a network of three layers. Each lane has one point. The input of the network is the hash-grid
// encoding of the point, followed by the frequency encoding of the point. The build defines the sizes: DIMS, LEVELS, FEATURES,
// FREQUENCIES and HIDDEN.
#version 460
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 16) in;
layout(push_constant) uniform Push { uint points, table, w1, b1, w2, b2, w3, unused; };
layout(std430, binding = 0) readonly buffer Store { float store[]; };
layout(std430, binding = 1) readonly buffer Grid { uvec4 grid[]; };
layout(std430, binding = 2) readonly buffer Points { float x[]; };
layout(std430, binding = 3) writeonly buffer Result { float y[]; };
#define VKT_FLOAT(i) store[i]
#define VKT_LEVEL(l) grid[l]
#include "vktrain/vktrain.glsl"

const uint N_FEATURES = LEVELS * FEATURES, N_WAVES = 2 * DIMS * FREQUENCIES, N = N_FEATURES + N_WAVES;
VKT_HASH_GRID(hash_grid, DIMS, LEVELS, FEATURES)
VKT_FREQUENCY(frequency, DIMS, FREQUENCIES)
VKT_MLP3(network, VKT_RELU, VKT_IDENTITY, N, HIDDEN, HIDDEN, 3)
#if DIMS == 3
#define POINT(n) vec3(x[3 * n], x[3 * n + 1], x[3 * n + 2])
#else
#define POINT(n) vec2(x[2 * n], x[2 * n + 1])
#endif

void main()
{
    const uint n = gl_GlobalInvocationID.x;
    if (n >= points) return;
    vec4 features[VKT_VEC4S(N_FEATURES)], waves[VKT_VEC4S(N_WAVES)], e[VKT_VEC4S(N)], rgb[1];
    hash_grid(table, POINT(n), features);
    frequency(POINT(n), waves);
    e[VKT_VEC4S(N) - 1] = vec4(0); // N need not be a multiple of 4
    for (uint i = 0; i < N_FEATURES; i++) e[i / 4][i % 4] = features[i / 4][i % 4];
    for (uint i = 0; i < N_WAVES; i++) e[(N_FEATURES + i) / 4][(N_FEATURES + i) % 4] = waves[i / 4][i % 4];
    network(uint[](w1, b1, w2, b2, w3, VKT_NO_BIAS), e, rgb);
    for (uint i = 0; i < 3; i++) y[3 * n + i] = rgb[0][i];
}
