// gemm_tile.comp - C[m][n] (+)= sum_k A[k][m] B[k][n] (+ bias[n]): one subgroup computes a tile of MB rows by 4 SG columns
// A lane holds four neighbouring columns of every row. Per k it loads one vec4 of B and one of A; the elements of A go round by
// shuffles: two loads for 4 MB multiply-adds a lane. Four k a turn, accumulator by accumulator, so that the turn's
// cost of keeping accumulators (masking on llvmpipe) is shared.
// A by rows (A_ROWS): the loads bring four k of rows lane, SG + lane, ..; as many loads, other shuffles.
// No load needs a bound (gemm_tile.abi.h). k runs in ascending order in every element: deterministic, whatever the grid.
// grid: x one per tile of columns, y one per tile of rows, z one per batch.
// source: Goto & van de Geijn, ACM TOMS 34(3), 2008 (packing); the shuffle in place of shared memory is our own measurement.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/gemm_tile.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint SG = 8;
layout(constant_id = GEMM_SPEC_MB) const uint MB = 32;
layout(constant_id = GEMM_SPEC_VECTORS) const uint VECTORS = 1;
layout(constant_id = GEMM_SPEC_ACCUMULATE) const uint ACCUMULATE = 0;
layout(constant_id = GEMM_SPEC_BIAS) const uint BIAS = 0;
layout(constant_id = GEMM_SPEC_A_ROWS) const uint A_ROWS = 0;
VKT_IN4(GEMM_A, a4);
VKT_IN4(GEMM_B, b4);
layout(binding = GEMM_C, std430) buffer C4 { vec4 c4[]; };
layout(binding = GEMM_C, std430) buffer C { float c[]; };
layout(binding = GEMM_BIAS, std430) readonly buffer Bias { float bias[]; };

void store(uint at, uint columns, vec4 v)
{
    if (VECTORS != 0u) {
        c4[at / 4u] = ACCUMULATE != 0u ? c4[at / 4u] + v : v;
    } else {
        [[unroll]] for (uint i = 0; i < 4; i++)
            if (i < columns) c[at + i] = ACCUMULATE != 0u ? c[at + i] + v[i] : v[i];
    }
}

void main()
{
    const uint lane = gl_SubgroupInvocationID;
    const uint row = gl_WorkGroupID.y * MB, a_base = pc.a_base + gl_WorkGroupID.z * pc.a_batch;
    uint ia = a_base + min(gl_WorkGroupID.y * pc.a_panel + min(lane, MB / 4u - 1u), pc.a_last);
    uint ib = pc.b_base + gl_WorkGroupID.z * pc.b_batch + min(gl_WorkGroupID.x * pc.b_panel + lane, pc.b_last);
    uint a_row[4];
    [[unroll]] for (uint j = 0; j < 4; j++) a_row[j] = a_base + min(row + j * SG + lane, pc.a_last) * pc.a_step;
    vec4 sum[MB];
    [[unroll]] for (uint m = 0; m < MB; m++) sum[m] = vec4(0.0);
    [[dont_unroll]] for (uint k = 0; k < pc.k4; k++) {
        vec4 a[4], b[4];
        [[unroll]] for (uint j = 0; j < 4; j++) {
            if (A_ROWS == 0u) a[j] = LOAD4(a4, ia);
            else if (j * SG < MB) a[j] = LOAD4(a4, a_row[j] + k);
            b[j] = LOAD4(b4, ib);
            ia += pc.a_step;
            ib += pc.b_step;
        }
        [[unroll]] for (uint m = 0; m < MB; m++) {
            vec4 s = sum[m];
            [[unroll]] for (uint j = 0; j < 4; j++)
                s += (A_ROWS != 0u ? subgroupShuffle(a[m / SG][j], m % SG + pc.zero)
                                   : subgroupShuffle(a[j][m & 3u], (m >> 2u) + pc.zero)) * b[j];
            sum[m] = s;
        }
    }
    const uint n = (gl_WorkGroupID.x * SG + lane) * 4u;
    if (n >= pc.N) return;
    const uint columns = min(pc.N - n, 4u);
    vec4 add = vec4(0.0);
    if (BIAS != 0u) {
        [[unroll]] for (uint i = 0; i < 4; i++)
            if (i < columns) add[i] = bias[n + i];
    }
    const uint at = pc.c_base + gl_WorkGroupID.z * pc.c_batch + row * pc.ldc + n;
    [[unroll]] for (uint m = 0; m < MB; m++)
        if (row + m < pc.M) store(at + m * pc.ldc, columns, sum[m] + add);
}
