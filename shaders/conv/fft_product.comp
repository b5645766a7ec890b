// fft_product.comp - a complex matrix product for each frequency:  dst[f][m][n] = sum_k A[f](k,m) * B[f](k,n). With
// CONJ, A is conjugated.
// A block of ACROSS lanes computes MB rows x ACROSS vec4s of columns. If ACROSS < LANES, the subgroup has several
// blocks, which compute different rows of the same columns. An iteration processes four k: a lane loads its vec4s of B
// and its share of the block's A. subgroupShuffle passes A to the other lanes. With M_MAJOR, a vec4 of A has four k of
// one m. With N_MAJOR, a vec4 of B has four k of one n, and the lane transposes its vec4s of B. This costs nothing,
// because a CPU driver keeps a vec4 as four registers.
// The kernel computes each vec4 of sums element by element, because the real and imaginary sum of one element and the factors
// fit in the 16 registers of a CPU with AVX2. The results of a frequency are contiguous, because stores that miss the cache
// wait for each other unless they are close together.
// grid: x over tiles (stride loop). All tiles of a frequency are consecutive.
// source: Mathieu, Henaff & LeCun, Fast Training of Convolutional Networks through FFTs (2013), section 2.2.
// Deterministic: one lane computes an element, and adds the products in the order of k.
// `zero` and do .. while loops: see conv/tile.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/fft_product.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = PRODUCT_SPEC_LANES) in;
layout(constant_id = PRODUCT_SPEC_LANES) const uint LANES = 8;
layout(constant_id = PRODUCT_SPEC_MB) const uint MB = 16;
layout(constant_id = PRODUCT_SPEC_M_MAJOR) const bool M_MAJOR = false;
layout(constant_id = PRODUCT_SPEC_N_MAJOR) const bool N_MAJOR = false;
layout(constant_id = PRODUCT_SPEC_CONJ) const bool CONJ = true;
layout(constant_id = PRODUCT_SPEC_ACROSS) const uint ACROSS = 8;

VKT_IN4(PRODUCT_A, a_in);
VKT_IN4(PRODUCT_B, b_in);
VKT_F32_OUT4(PRODUCT_DST, dst);

const uint SHARES = (2 * MB + ACROSS - 1) / ACROSS; // M_MAJOR: vec4s of A that a lane loads, real parts first
vec4 acc_re[MB], acc_im[MB];
// Without M_MAJOR: a[k] is a vec4 of A for one of the four k of an iteration. In the first MB/4 lanes of a block, a[k]
// has real parts. In the next MB/4 lanes, a[k] has imaginary parts.
vec4 a[4];
vec4 share[SHARES];
vec4 b_re[4], b_im[4]; // b_re[k], b_im[k]: this lane's vec4 of B for one of the four k of an iteration
uint a_at[SHARES], b_at[4];
uint a_pitch, b_pitch, b_columns; // push constants, read before the loops: lavapipe compiles each read to a loop over the lanes

// Returns the value `own` of lane i of this lane's block.
float from(float own, uint i, uint zero)
{
    const uint block = ACROSS < LANES ? gl_SubgroupInvocationID & ~(ACROSS - 1) : 0;
    return subgroupShuffle(own, block + i + zero);
}

float a_part(uint i, uint k, uint zero) // returns the real part of A for row i; if i >= MB, the imaginary part for row i - MB
{
    return M_MAJOR ? from(share[i / ACROSS][k], i % ACROSS, zero) : from(a[k][i & 3u], i >> 2, zero);
}

// Sets the indices of this lane's operands at k = 0, and sets the sums to 0.
void start(uint f, uint row, uint column)
{
    const uint lane = gl_SubgroupInvocationID % ACROSS;
    const uint a_first = 2 * f * pc.a_columns, b_first = 2 * f * pc.b_columns;
    if (M_MAJOR)
        [[unroll]] for (uint i = 0; i < SHARES; i++) {
            const uint at = i * ACROSS + lane, part = at < MB ? 0 : 1, m = min(row + at - part * MB, pc.rows - 1);
            a_at[i] = a_first + m * a_pitch + part * pc.a_columns;
        }
    else {
        const uint part = lane < MB / 4 ? 0 : 1;
        a_at[0] = a_first + part * pc.a_columns + min(row / 4 + lane - part * (MB / 4), pc.a_columns - 1);
    }
    if (N_MAJOR) [[unroll]] for (uint j = 0; j < 4; j++) b_at[j] = b_first + (4 * column + j) * b_pitch;
    else b_at[0] = b_first + column;
    [[unroll]] for (uint m = 0; m < MB; m++) acc_re[m] = acc_im[m] = vec4(0);
}

void load()
{
    if (M_MAJOR)
        [[unroll]] for (uint i = 0; i < SHARES; i++) share[i] = LOAD4(a_in, a_at[i]++);
    else {
        [[unroll]] for (uint k = 0; k < 4; k++) a[k] = LOAD4(a_in, a_at[0] + k * a_pitch);
        a_at[0] += 4 * a_pitch;
    }
    if (N_MAJOR)
        [[unroll]] for (uint j = 0; j < 4; j++) {
            const vec4 re = LOAD4(b_in, b_at[j]), im = LOAD4(b_in, b_at[j] + b_columns);
            [[unroll]] for (uint k = 0; k < 4; k++) b_re[k][j] = re[k], b_im[k][j] = im[k];
            b_at[j]++;
        }
    else {
        [[unroll]] for (uint k = 0; k < 4; k++) {
            b_re[k] = LOAD4(b_in, b_at[0] + k * b_pitch);
            b_im[k] = LOAD4(b_in, b_at[0] + k * b_pitch + b_columns);
        }
        b_at[0] += 4 * b_pitch;
    }
}

void multiply(uint zero)
{
    float sign = CONJ ? 1 : -1; // no branch: a branch in three unrolled loops took all memory of SwiftShader's compiler
    [[unroll]] for (uint m = 0; m < MB; m++) {
        float ar[4], ai[4];
        [[unroll]] for (uint k = 0; k < 4; k++) ar[k] = a_part(m, k, zero), ai[k] = sign * a_part(MB + m, k, zero);
        [[unroll]] for (uint c = 0; c < 4; c++) {
            float re = acc_re[m][c], im = acc_im[m][c];
            [[unroll]] for (uint k = 0; k < 4; k++) {
                re += ar[k] * b_re[k][c];
                im += ar[k] * b_im[k][c];
                re += ai[k] * b_im[k][c];
                im -= ai[k] * b_re[k][c];
            }
            acc_re[m][c] = re, acc_im[m][c] = im;
        }
    }
}

void main()
{
    const uint col_tiles = (pc.columns + ACROSS - 1) / ACROSS, per_f = col_tiles * pc.row_tiles;
    const uint zero = LANES == 8 ? pc.zero : 0;
    a_pitch = pc.a_pitch, b_pitch = pc.b_pitch, b_columns = pc.b_columns;
    uint tile = gl_WorkGroupID.x;
    do {
        const uint f = tile / per_f, in_f = tile - f * per_f, row_tile = in_f / col_tiles;
        const uint lane = gl_SubgroupInvocationID, row = (row_tile * (LANES / ACROSS) + lane / ACROSS) * MB;
        const uint column = (in_f - row_tile * col_tiles) * ACROSS + lane % ACROSS;
        start(f, row, min(column, pc.columns - 1));
        uint step = pc.steps;
        do {
            load();
            multiply(zero);
        } while (--step != 0);
        if (column < pc.columns) {
            const uint columns = pc.columns;
            uint to = f * pc.plane + 2 * row * columns + column;
            [[unroll]] for (uint m = 0; m < MB; m++, to += 2 * columns)
                if (row + m < pc.rows) STORE4(dst, to, acc_re[m]), STORE4(dst, to + columns, acc_im[m]);
        }
        tile += gl_NumWorkGroups.x;
    } while (tile < pc.tiles);
}
