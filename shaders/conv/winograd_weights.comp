// winograd_weights.comp - U = G w G^T for each 3 x 3 kernel of w (O,C,3,3). The results are 16 matrices, in tiles of MB rows.
// The matrices are the operands A of gemm_tile.comp or (on GPUs) gemm_shared.comp:
//   for y    rows o, summation over c:  dst[i][o / MB][c / 4][o % MB]
//   for dx   rows c, summation over o:  dst[i][c / MB][o][c % MB / 4]; w is rotated by 180 degrees
// Matrix i < 16 has element (i / 4, i % 4) of every U. A vec4 always has four c. The 36 weights of four c are contiguous in w,
// so a lane loads nine vec4s. The rotation of w only swaps rows 0 and 3 of U, and columns 0 and 3. The rows that
// pad the last tile repeat the last row (for dx: the last four rows).
// grid: x over the vec4s of one of the 16 operands, in contiguous shares.
// source: Lavin & Gray, Fast Algorithms for Convolutional Neural Networks (2015), section 4.1: F(2x2,3x3).
// Deterministic: one lane computes a transform.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/winograd_weights.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = WINOGRAD_WEIGHTS_SPEC_LANES) in;
layout(constant_id = WINOGRAD_WEIGHTS_SPEC_MB) const uint MB = 32;
layout(constant_id = WINOGRAD_WEIGHTS_SPEC_BACK) const bool BACK = false;

VKT_IN4(WINOGRAD_W, w4);
VKT_F32_OUT4(WINOGRAD_A, dst);

// Computes y = G x.
void spread(vec4 x[3], out vec4 y[4])
{
    const vec4 ends = 0.5 * (x[0] + x[2]), middle = 0.5 * x[1];
    y[0] = x[0], y[1] = ends + middle, y[2] = ends - middle, y[3] = x[2];
}

uint mirrored(uint i)
{
    return BACK && (i == 0 || i == 3) ? 3 - i : i;
}

void main()
{
    const uvec2 share = share_of(pc.point);
    const uint panel = pc.panel, point = pc.point, c4 = pc.c4, out_channels = pc.out_channels, across = BACK ? MB / 4 : MB;
    uint to = share.x + gl_LocalInvocationID.x;
    if (to >= share.y) return;
    do {
        const uint tile = to / panel, in_tile = to - tile * panel, row = tile * across + in_tile % across, k = in_tile / across;
        const uint o = min(BACK ? k : row, out_channels - 1), c = min(BACK ? row : k, c4 - 1);
        vec4 lying[9], w[9]; // lying: the vec4s as they are stored; w[tap]: one tap of four c
        [[unroll]] for (uint i = 0; i < 9; i++) lying[i] = LOAD4(w4, (o * c4 + c) * 9 + i);
        [[unroll]] for (uint i = 0; i < 36; i++) w[i % 9][i / 9] = lying[i / 4][i % 4];
        vec4 half_way[3][4], u[4];
        [[unroll]] for (uint s = 0; s < 3; s++) spread(vec4[](w[s], w[s + 3], w[s + 6]), half_way[s]);
        [[unroll]] for (uint i = 0; i < 4; i++) {
            spread(vec4[](half_way[0][i], half_way[1][i], half_way[2][i]), u);
            [[unroll]] for (uint j = 0; j < 4; j++) STORE4(dst, to + (4 * mirrored(i) + mirrored(j)) * point, u[j]);
        }
        to += gl_WorkGroupSize.x;
    } while (to < share.y);
}
