// inline.hlsl - the program of inline.comp, in HLSL.
// The build compiles this file with glslang, which accepts a cbuffer of push constants.
[[vk::push_constant]] cbuffer Push { uint points, table, w1, b1, w2, b2, w3, unused; };
StructuredBuffer<float> store : register(t0);
StructuredBuffer<uint4> grid : register(t1);
StructuredBuffer<float> x : register(t2);
RWStructuredBuffer<float> y : register(u3);
#define VKT_FLOAT(i) store[i]
#define VKT_LEVEL(l) grid[l]
#include "vktrain/vktrain.hlsl"

#define N_FEATURES (LEVELS * FEATURES)
#define N_WAVES (2 * DIMS * FREQUENCIES)
#define N (N_FEATURES + N_WAVES)
VKT_HASH_GRID(hash_grid, DIMS, LEVELS, FEATURES)
VKT_FREQUENCY(frequency, DIMS, FREQUENCIES)
VKT_MLP3(network, VKT_RELU, VKT_IDENTITY, N, HIDDEN, HIDDEN, 3)
#if DIMS == 3
#define POINT(n) float3(x[3 * n], x[3 * n + 1], x[3 * n + 2])
#else
#define POINT(n) float2(x[2 * n], x[2 * n + 1])
#endif

[numthreads(16, 1, 1)] void main(uint3 id : SV_DispatchThreadID)
{
    const uint n = id.x;
    if (n >= points) return;
    float4 features[VKT_VEC4S(N_FEATURES)], waves[VKT_VEC4S(N_WAVES)], e[VKT_VEC4S(N)], rgb[1];
    const uint at[6] = { w1, b1, w2, b2, w3, VKT_NO_BIAS };
    uint i;
    hash_grid(table, POINT(n), features);
    frequency(POINT(n), waves);
    e[VKT_VEC4S(N) - 1] = 0; // N need not be a multiple of 4
    for (i = 0; i < N_FEATURES; i++) e[i / 4][i % 4] = features[i / 4][i % 4];
    for (i = 0; i < N_WAVES; i++) e[(N_FEATURES + i) / 4][(N_FEATURES + i) % 4] = waves[i / 4][i % 4];
    network(at, e, rgb);
    for (i = 0; i < 3; i++) y[3 * n + i] = rgb[0][i];
}
