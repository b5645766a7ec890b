// winograd_output.comp - the last transform of F(2x2,3x3): the 2 x 2 destination pixels of each tile are A^T m A, plus a bias
//   src[i * pc.point + p * pc.panel + channel * pc.pitch + lane], i < 16: element (i / 4, i % 4) of m
//   p, panels and columns: see winograd_input.comp
// grid: x over panels, y over groups of `depth` channels.
// source: Lavin & Gray, Fast Algorithms for Convolutional Neural Networks (2015), section 4.1: F(2x2,3x3).
// Deterministic: one lane computes a transform.
// If the image has an odd height or width, the last tiles reach outside the image. Pixels outside the image are
// not stored.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/winograd.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = WINOGRAD_SPEC_LANES) in;
layout(constant_id = WINOGRAD_SPEC_LANES) const uint LANES = 8;
layout(constant_id = WINOGRAD_SPEC_BIAS) const bool BIAS = true;

VKT_IN4(WINOGRAD_IN, product);
VKT_OUT4(WINOGRAD_OUT, image);
layout(binding = WINOGRAD_BIAS, std430) readonly buffer Bias { float bias[]; };

void main()
{
    const uint lane = gl_LocalInvocationID.x, column = pc.first + gl_WorkGroupID.x * LANES + lane;
    const uint n4 = pc.n4, tile = column / n4, tile_h = tile / pc.tiles_w, tile_w = tile - tile_h * pc.tiles_w;
    const uint h = 2 * tile_h, w = 2 * tile_w, plane = pc.height * pc.width * n4, below = pc.width * n4, point = pc.point;
    const bool is_tile = column < pc.columns, has_right = w + 1 < pc.width, has_below = h + 1 < pc.height;
    uint channel = gl_WorkGroupID.y * pc.depth;
    uint from = gl_WorkGroupID.x * pc.panel + channel * pc.pitch + lane;
    uint to = channel * plane + (h * pc.width + w) * n4 + column - tile * n4;
    const uint end = min(channel + pc.depth, pc.channels);
    do {
        vec4 above[4], under[4];
        const vec4 offset = vec4(BIAS ? bias[channel] : 0);
        [[unroll]] for (uint j = 0; j < 4; j++) {
            vec4 m[4];
            [[unroll]] for (uint i = 0; i < 4; i++) m[i] = LOAD4(product, from + (4 * i + j) * point);
            above[j] = m[0] + m[1] + m[2], under[j] = m[1] - m[2] - m[3];
        }
        if (is_tile) {
            STORE4(image, to, above[0] + above[1] + above[2] + offset);
            if (has_right) STORE4(image, to + n4, above[1] - above[2] - above[3] + offset);
            if (has_below) STORE4(image, to + below, under[0] + under[1] + under[2] + offset);
            if (has_right && has_below) STORE4(image, to + below + n4, under[1] - under[2] - under[3] + offset);
        }
        from += pc.pitch, to += plane;
    } while (++channel < end);
}
