// winograd_input.comp - V = B^T d B. d has the 4 x 4 source pixels that one tile of 2 x 2 destination pixels reads (0 outside
// the image). A column is one vec4 of samples of one tile: column tile * n4 + n. A panel is LANES consecutive columns.
//   dst[i * pc.point + p * pc.panel + channel * pc.pitch + lane], i < 16: element (i / 4, i % 4) of V for column
//   pc.first + p * LANES + lane, where p is the index of a panel in this dispatch
// pc.panel and pc.pitch give one of two layouts (ops/conv/winograd.c). For gemm_tile.comp, all channels of a panel are
// contiguous. For gemm_shared.comp, all columns of a channel are contiguous. Lanes past the last column compute the last column
// again.
// grid: x over panels (one work group each), y over groups of `depth` channels.
// source: Lavin & Gray, Fast Algorithms for Convolutional Neural Networks (2015), section 4.1: F(2x2,3x3).
// Deterministic: one lane computes a transform.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/winograd.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = WINOGRAD_SPEC_LANES) in;
layout(constant_id = WINOGRAD_SPEC_LANES) const uint LANES = 8;

VKT_IN4(WINOGRAD_IN, image);
VKT_F32_OUT4(WINOGRAD_OUT, dst);

void main()
{
    const uint lane = gl_LocalInvocationID.x, column = min(pc.first + gl_WorkGroupID.x * LANES + lane, pc.columns - 1);
    const uint tile = column / pc.n4, n = column - tile * pc.n4;
    const uint tile_h = tile / pc.tiles_w, tile_w = tile - tile_h * pc.tiles_w;
    const uint channel = gl_WorkGroupID.y * pc.depth, plane = pc.height * pc.width * pc.n4, point = pc.point;
    uint row[4], col[4]; // row[i] + col[j]: index of pixel (i, j) of d in a channel of the image, in vec4s
    bool has_row[4], has_col[4];
    [[unroll]] for (int i = 0; i < 4; i++) {
        const int h = int(2 * tile_h) + pc.origin_h + i, w = int(2 * tile_w) + pc.origin_w + i;
        has_row[i] = uint(h) < pc.height, has_col[i] = uint(w) < pc.width;
        row[i] = has_row[i] ? uint(h) * pc.width * pc.n4 : 0;
        col[i] = n + (has_col[i] ? uint(w) * pc.n4 : 0);
    }
    uint from = channel * plane, to = gl_WorkGroupID.x * pc.panel + channel * pc.pitch + lane;
    uint left = min(pc.depth, pc.channels - channel);
    do {
        vec4 v[4][4];
        [[unroll]] for (uint j = 0; j < 4; j++) {
            vec4 d[4];
            [[unroll]] for (uint i = 0; i < 4; i++) {
                d[i] = LOAD4(image, from + row[i] + col[j]);
                d[i] = has_row[i] && has_col[j] ? d[i] : vec4(0);
            }
            v[0][j] = d[0] - d[2], v[1][j] = d[1] + d[2], v[2][j] = d[2] - d[1], v[3][j] = d[1] - d[3];
        }
        uint at = to;
        [[unroll]] for (uint i = 0; i < 4; i++) {
            STORE4(dst, at, v[i][0] - v[i][2]), at += point;
            STORE4(dst, at, v[i][1] + v[i][2]), at += point;
            STORE4(dst, at, v[i][2] - v[i][1]), at += point;
            STORE4(dst, at, v[i][1] - v[i][3]), at += point;
        }
        from += plane, to += pc.pitch;
    } while (--left != 0);
}
