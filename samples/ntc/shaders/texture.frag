// texture.frag - shows one texture of a set: the original, the decoded texture, or the error (NTC_VIEW_ERROR). The shader
// decodes a texel with the network, from the latents around the texel. Latents and weights are in the library's buffer of
// parameters, or in a buffer with the contents of a file.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "ntc.h"
#include "screen.glsl"
layout(constant_id = 1) const uint INPUTS = 64;
layout(constant_id = 2) const uint HIDDEN = 32;
layout(constant_id = 3) const uint CHANNELS = 7;
layout(binding = NTC_SET_PARAMETERS, std430) readonly buffer Store { float store[]; };
layout(binding = NTC_SET_TEXELS, std430) readonly buffer Texels { uint texels[]; };
layout(binding = NTC_SET_FACTS, std430) readonly buffer Facts { uint facts[]; };
layout(push_constant) uniform Show { uint view, first, channels; } show; // shows `channels` channels, from `first` on
layout(location = 0) in vec2 at;
layout(location = 0) out vec4 colour;
#define FLOAT(i) store[i]
#include "latents.glsl"
LATENTS(read_latents, INPUTS)
LAYER(first_layer, INPUTS, HIDDEN, RELU)
LAYER(second_layer, HIDDEN, HIDDEN, RELU)
LAYER(last_layer, HIDDEN, CHANNELS, IDENTITY) // computes only one texel of a block

void decode(uvec2 texel, out float y[CHANNELS])
{
    const uvec2 block = texel / NTC_BLOCK;
    const uint output_of = (texel.y % NTC_BLOCK * NTC_BLOCK + texel.x % NTC_BLOCK) * CHANNELS;
    float x[INPUTS], h[HIDDEN], k[HIDDEN];
    uint n = 0;
    for (uint i = 0; i < facts[NTC_FACT_GRIDS]; i++) {
        const uint g = NTC_FACT_GRID + 8 * i;
        const uvec3 size = uvec3(facts[g], facts[g + 1], facts[g + 2]);
        n = read_latents(facts[g + 6], facts[g + 3], size, facts[g + 4], facts[g + 5] != 0, block, n, x);
    }
    uvec2 cell;
    float u, v;
    latent_cells(block.x, facts[NTC_FACT_PLACE], facts[NTC_FACT_WIDTH], cell, u); // only u and v are used, not `cell`
    latent_cells(block.y, facts[NTC_FACT_PLACE], facts[NTC_FACT_HEIGHT], cell, v);
    x[n] = 2.0 * u - 1.0;
    x[n + 1] = 2.0 * v - 1.0;
    x[n + 2] = x[n] * x[n + 1];
    first_layer(facts[NTC_FACT_LAYER], facts[NTC_FACT_LAYER + 1], x, h);
    second_layer(facts[NTC_FACT_LAYER + 2], facts[NTC_FACT_LAYER + 3], h, k);
    last_layer(facts[NTC_FACT_LAYER + 4] + output_of * HIDDEN, facts[NTC_FACT_LAYER + 5] + output_of, k, y);
}

float original(uvec2 texel, uint c)
{
    const uint i = (texel.y * facts[NTC_FACT_WIDTH] + texel.x) * CHANNELS + c;
    return float(texels[i / 4] >> 8 * (i % 4) & 255) / 255.0;
}

void main()
{
    const uvec2 size = uvec2(facts[NTC_FACT_WIDTH], facts[NTC_FACT_HEIGHT]), texel = min(uvec2(at * vec2(size)), size - 1);
    float y[CHANNELS];
    vec3 c;
    if (show.view != NTC_VIEW_ORIGINAL) decode(texel, y);
    for (uint i = 0; i < 3; i++) {
        const uint k = show.first + min(i, show.channels - 1);
        const float now = show.view == NTC_VIEW_ORIGINAL ? original(texel, k) : clamp(y[k], 0.0, 1.0);
        c[i] = show.view == NTC_VIEW_ERROR ? min(8.0 * abs(now - original(texel, k)), 1.0) : now;
    }
    colour = to_screen(c);
}
