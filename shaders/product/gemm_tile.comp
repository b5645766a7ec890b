// gemm_tile.comp - C[m][n] (+)= sum_k A[m][k] B[k][n] (+ bias[n]): one subgroup computes a tile of 4 R rows x 4 SG columns
// SG is the subgroup size, and R is a power of two up to SG. A lane holds four neighbouring columns of B and four
// neighbouring rows of A. It gets the other rows of the tile by shuffles with lane ^ r, r < R. So the row of sum[m]
// depends on the lane. The compiler knows each r. On llvmpipe, a shuffle with r < 4 stays inside 128 bits, and costs
// half as much as a broadcast of one element to all lanes.
// An iteration adds the products of four k to the first accumulator, then to the second one, and so on. On llvmpipe, an
// accumulator that is kept from one iteration to the next costs a mask operation. The four k share this cost.
// grid: x over tiles of columns, y over tiles of rows, z over the matrices of the batch. ROWS_FIRST: x and y are exchanged.
// CPU drivers run work groups in the order of x. With ROWS_FIRST, all tiles that read a panel of B run one after the other.
// source: Goto & van de Geijn, ACM TOMS 34(3), 2008 (packing). Shuffles instead of shared memory are a result of our own
//         measurements.
// Deterministic: k ascends in every element, with any grid.
// No load of A or B needs a bounds check (gemm_tile.abi.h).
// Tiles of twice the width need a quarter fewer loads and take 5 % less time on an idle machine. But one iteration of such a
// tile is 30 KB of code, and uses 30 KB of stack. If other programs use the first-level caches, such tiles take up to three
// times as long.
// Sums start with the bias. If the bias is added after the loop, llvmpipe spills registers in each iteration (a product
// took 100 ms instead of 42 ms). llvmpipe also spills if C is stored by 64-bit words (lib/load.glsl) and not by vec4s
// (28 ms instead of 20 ms).
// Push constants are read before the loop, and the loop is do .. while: see conv/tile.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/gemm_tile.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint SG = 8;
layout(constant_id = GEMM_SPEC_R) const uint R = 8;
layout(constant_id = GEMM_SPEC_VECTORS) const uint VECTORS = 1;
layout(constant_id = GEMM_SPEC_ACCUMULATE) const uint ACCUMULATE = 0;
layout(constant_id = GEMM_SPEC_BIAS) const uint BIAS = 0;
layout(constant_id = GEMM_SPEC_A_ROWS) const bool A_ROWS = false;
layout(constant_id = GEMM_SPEC_B_ROWS) const bool B_ROWS = false;
layout(constant_id = GEMM_SPEC_ROWS_FIRST) const bool ROWS_FIRST = false;
VKT_IN4(GEMM_A, a4);
VKT_IN4(GEMM_B, b4);
layout(binding = GEMM_C, std430) buffer C4 { vec4 c4[]; };
layout(binding = GEMM_C, std430) buffer C { float c[]; };
layout(binding = GEMM_C, std430) writeonly buffer C2 { uvec2 c_half[]; };
layout(binding = GEMM_BIAS, std430) readonly buffer Bias { float bias[]; };

void store(uint at, uint columns, vec4 v)
{
    if (STORED_AS(GEMM_C) != STORAGE_F32) {
        c_half[at / 4u] = narrow(v, STORED_AS(GEMM_C));
    } else if (VECTORS != 0u) {
        c4[at / 4u] = ACCUMULATE != 0u ? c4[at / 4u] + v : v;
    } else {
        [[unroll]] for (uint i = 0; i < 4; i++)
            if (i < columns) c[at + i] = ACCUMULATE != 0u ? c[at + i] + v[i] : v[i];
    }
}

vec4 from_bias(uint n)
{
    const uint columns = min(pc.N - min(n, pc.N), 4u);
    vec4 add = vec4(0.0);
    if (BIAS != 0u)
        [[unroll]] for (uint i = 0; i < 4; i++)
            if (i < columns) add[i] = bias[n + i];
    return add;
}

void main()
{
    const uvec2 tile = ROWS_FIRST ? gl_WorkGroupID.yx : gl_WorkGroupID.xy;
    const uint lane = gl_SubgroupInvocationID, group = lane & (R - 1u), row = tile.y * 4u * R;
    const uint column = tile.x * SG, n = (column + lane) * 4u; // column: tile's first column / 4; n: lane's first column
    uint a_at[4], b_at[4]; // indices of this lane's vec4s in the first iteration
    [[unroll]] for (uint i = 0; i < 4; i++)
        a_at[i] = pc.a_base + gl_WorkGroupID.z * pc.a_batch + tile.y * pc.a_panel +
                  (A_ROWS ? min(4u * group + i, pc.a_last - row) * pc.a_step
                          : min(group, pc.a_last - row / 4u) + i * pc.a_step);
    [[unroll]] for (uint i = 0; i < 4; i++)
        b_at[i] = pc.b_base + gl_WorkGroupID.z * pc.b_batch + tile.x * pc.b_panel +
                  (B_ROWS ? min(4u * lane + i, pc.b_last - 4u * column) * pc.b_step
                          : min(lane, pc.b_last - column) + i * pc.b_step);
    const uint a_k_step = pc.a_k_step, b_k_step = pc.b_k_step;
    const vec4 first = from_bias(n);
    vec4 sum[R * 4];
    [[unroll]] for (uint m = 0; m < R * 4; m++) sum[m] = first;
    uint iterations = pc.k4, ia = 0, ib = 0;
    do {
        vec4 a[4], b[4];
        [[unroll]] for (uint i = 0; i < 4; i++) a[i] = LOAD4(a4, a_at[i] + ia);
        [[unroll]] for (uint i = 0; i < 4; i++) b[i] = LOAD4(b4, b_at[i] + ib);
        [[unroll]] for (uint m = 0; m < R * 4; m++) {
            vec4 s = sum[m];
            [[unroll]] for (uint k = 0; k < 4; k++) {
                const float from = A_ROWS ? a[m % 4][k] : a[k][m % 4];
                const vec4 to = B_ROWS ? vec4(b[0][k], b[1][k], b[2][k], b[3][k]) : b[k];
                s += (m < 4 ? from : subgroupShuffleXor(from, m / 4)) * to;
            }
            sum[m] = s;
        }
        ia += a_k_step;
        ib += b_k_step;
    } while (--iterations != 0u);
    const uint columns = min(pc.N - min(n, pc.N), 4u);
    [[unroll]] for (uint i = 0; i < R * 4; i++) {
        const uint m = row + 4u * (group ^ i / 4u) + i % 4u;
        if (m < pc.M && columns > 0u)
            store(pc.c_base + gl_WorkGroupID.z * pc.c_batch + tile.x * pc.c_panel + m * pc.ldc + 4u * lane, columns,
                  sum[i]);
    }
}
