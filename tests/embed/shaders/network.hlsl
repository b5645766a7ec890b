// network.hlsl - the program of network.comp, in HLSL.
#include "network.h"
#if STORED == NETWORK_VEC4
StructuredBuffer<float4> store4 : register(t0);
#define VKT_FLOAT(i) store4[(i) >> 2][(i) & 3]
#define VKT_FLOAT4(i) store4[(i) >> 2]
#elif STORED == NETWORK_FLOAT
StructuredBuffer<float> store : register(t0);
#define VKT_FLOAT(i) store[i]
#else
StructuredBuffer<uint> words : register(t0);
#define VKT_WORD(i) words[i]
#if STORED == NETWORK_HALF
#define VKT_FLOAT(i) VKT_HALF(i)
#define VKT_FLOAT4(i) VKT_HALF4(i)
#else
#define VKT_FLOAT(i) VKT_BFLOAT(i)
#define VKT_FLOAT4(i) VKT_BFLOAT4(i)
#endif
#endif
StructuredBuffer<float> inputs : register(t1);
RWStructuredBuffer<float> outputs : register(u2);
StructuredBuffer<uint> starts : register(t3);
#include "vktrain/vktrain.hlsl"
NETWORK_FUNCTION

[numthreads(NETWORK_LANES, 1, 1)] void main(uint3 id : SV_DispatchThreadID)
{
    const uint n = id.x;
    if (n >= NETWORK_POINTS) return;
    uint at[2 * LAYERS], i;
    for (i = 0; i < 2 * LAYERS; i++) at[i] = starts[i];
    float4 x[VKT_VEC4S(W0)], y[VKT_VEC4S(LAST_WIDTH)];
    for (i = 0; i < 4 * VKT_VEC4S(W0); i++) x[i / 4][i % 4] = i < W0 ? inputs[n * W0 + i] : asfloat(0x7fc00000u);
    network(at, x, y);
    for (i = 0; i < LAST_WIDTH; i++) outputs[n * LAST_WIDTH + i] = y[i / 4][i % 4];
}
