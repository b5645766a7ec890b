// quantize.comp - y = round(steps * t) / steps, where t is x clamped to [0, 1]. A number n + 1/2 is rounded up to n + 1.
//   With noise: y = t + (r - 1/2) / steps, where r is a random number in [0, 1). r depends only on (seed, draw, salt, element).
//   For element e, r is the upper 24 bits of word e % 4 of philox((e / 4, draw, salt, 8), seed), divided by 2^24. draw is the
//   word STEP_DRAW of the step state (abi/step.abi.h). Each node has its own salt.
// DX: dx is 0 where x is outside [0, 1] and a step against the gradient would move x further outside. Elsewhere dx is dy.
// grid: x over vec4s in contiguous shares; any group count is right.
// source: Bengio, Leonard & Courville, Estimating or Propagating Gradients Through Stochastic Neurons (2013): the
//         straight-through estimator; Balle, Laparra & Simoncelli, End-to-end Optimized Image Compression (2017): the noise
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/quantize.abi.h"
#include "abi/step.abi.h"
#include "lib/load.glsl"
#include "lib/philox.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(QUANTIZE_X, x4);
layout(binding = QUANTIZE_Y, std430) writeonly buffer Y1 { float y[]; };
VKT_OUT4(QUANTIZE_Y, y4);
#ifdef DX
VKT_IN4(QUANTIZE_DY, dy4);

vec4 result(uint i)
{
    const vec4 x = LOAD4(x4, i), dy = LOAD4(dy4, i);
    const bvec4 below = bvec4(uvec4(lessThan(x, vec4(0.0))) & uvec4(greaterThan(dy, vec4(0.0))));
    const bvec4 above = bvec4(uvec4(greaterThan(x, vec4(1.0))) & uvec4(lessThan(dy, vec4(0.0))));
    return mix(mix(dy, vec4(0.0), below), vec4(0.0), above);
}
#else
layout(binding = QUANTIZE_STEP, std430) readonly buffer Step { uint step[]; };
uvec2 key; // main sets `key` and the variables down to `noise` once, because they do not depend on the element
uint draw, salt, begin4;
float steps;
bool noise;

vec4 result(uint i)
{
    const vec4 x = LOAD4(x4, i), t = mix(clamp(x, 0.0, 1.0), x, isnan(x)); // clamp(NaN) may be a number
    if (!noise) {
        // Two roundings, as in reference/latents.c. So `precise` forbids a fused multiply-add.
        precise const vec4 scaled = steps * t, up = scaled + 0.5;
        return floor(up) / steps;
    }
    const uvec4 w = philox4x32(uvec4(begin4 + i, draw, salt, 8u), key);
    return t + (vec4(w >> 8) / 16777216.0 - 0.5) / steps;
}
#endif

void main()
{
#ifndef DX
    key = uvec2(step[STEP_KEY0], step[STEP_KEY1]);
    draw = step[STEP_DRAW], salt = pc.salt, begin4 = pc.begin / 4, steps = float(pc.steps), noise = pc.noise != 0;
#endif
    const uint whole = pc.n / 4;
    const uvec2 share = share_of(whole);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) STORE4(y4, i, result(i));
    if (gl_GlobalInvocationID.x == 0 && pc.n % 4 != 0) {
        const vec4 tail = result(whole);
        for (uint k = 0; k < pc.n % 4; k++) y[4 * whole + k] = tail[k];
    }
}
