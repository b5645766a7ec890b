// network.frag - evaluates the network at a point of the image. It reads the parameters in the training's own buffers.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "vktrain/vktrain.glsl"
#include "network.h"
#include "screen.glsl"
layout(binding = VIEW_LEVEL_TABLE, std140) uniform Levels { uvec4 level_of[VIEW_LEVELS]; };
layout(binding = VIEW_PARAMETERS, std430) readonly buffer Table { vec2 table[]; };
layout(binding = VIEW_PARAMETERS + 1, std430) readonly buffer W0 { vec4 w0[]; };
layout(binding = VIEW_PARAMETERS + 2, std430) readonly buffer B0 { float b0[]; };
layout(binding = VIEW_PARAMETERS + 3, std430) readonly buffer W1 { vec4 w1[]; };
layout(binding = VIEW_PARAMETERS + 4, std430) readonly buffer B1 { float b1[]; };
layout(binding = VIEW_PARAMETERS + 5, std430) readonly buffer W2 { vec4 w2[]; };
layout(binding = VIEW_PARAMETERS + 6, std430) readonly buffer B2 { float b2[]; };
layout(location = 0) in vec2 at;
layout(location = 0) out vec4 colour;

const uint IN4 = VIEW_LEVELS * VIEW_FEATURES / 4, HIDDEN4 = VIEW_HIDDEN / 4;

vec2 features_of(uvec4 level)
{
    const vec2 p = float(level.x) * clamp(at, 0.0, 1.0);
    const uvec2 c = min(uvec2(p), uvec2(level.x - 1));
    const vec2 way = p - vec2(c);
    vec2 sum = vec2(0);
    [[unroll]] for (uint k = 0; k < 4; k++) {
        const uvec2 corner = uvec2(k & 1u, k >> 1);
        const vec2 share = mix(1 - way, way, vec2(corner));
        sum += share.x * share.y * table[level.z + vkt_hash_grid_entry(uvec3(c + corner, 0), level)];
    }
    return sum;
}

void main()
{
    vec4 x[IN4], h[HIDDEN4], k[HIDDEN4];
    [[unroll]] for (uint i = 0; i < IN4; i++) x[i] = vec4(features_of(level_of[2 * i]), features_of(level_of[2 * i + 1]));
    [[unroll]] for (uint o = 0; o < VIEW_HIDDEN; o++) {
        float sum = b0[o];
        [[unroll]] for (uint i = 0; i < IN4; i++) sum += dot(x[i], w0[o * IN4 + i]);
        h[o / 4][o % 4] = max(sum, 0.0);
    }
    [[unroll]] for (uint o = 0; o < VIEW_HIDDEN; o++) {
        float sum = b1[o];
        [[unroll]] for (uint i = 0; i < HIDDEN4; i++) sum += dot(h[i], w1[o * HIDDEN4 + i]);
        k[o / 4][o % 4] = max(sum, 0.0);
    }
    vec3 y;
    [[unroll]] for (uint o = 0; o < 3; o++) {
        y[o] = b2[o];
        [[unroll]] for (uint i = 0; i < HIDDEN4; i++) y[o] += dot(k[i], w2[o * HIDDEN4 + i]);
    }
    colour = to_screen(clamp(y, 0.0, 1.0));
}
