// conv/dw_shared.comp - gradient of a convolution with respect to weights and bias, for GPUs. The kernel computes one
// implicit matrix product in shared memory (lib/blocks.glsl):
//   dw[o][c,r,s] = sum_{p,q,n} dy[o][p][q][n] * x[c][row(p,r)][col(q,s)][n],   db[o] = sum_{p,q,n} dy[o][p][q][n]
//   row(p,r) = p * stride - pad + r * dilation, and col(q,s) in the same way
// A is dy in its own layout. B is gathered from x. The columns of B are (c,r,s). If db is computed, an additional
// column, which is all 1, gives db. The product sums over k = (p,q,n). A load reads four samples of a pixel, that is
// four neighbouring k.
// grid: x over tiles (stride loop), y over slices of (p,q,n), z over groups of channels. If there are several slices,
//       conv/dw_sum.comp adds their sums.
// source: see conv/shared.comp
// Deterministic: see lib/blocks.glsl.
// Whole vec4s can be multiplied: samples past the batch are zero in dy and finite in x.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/blocks.abi.h"
#include "abi/conv2d_dw_shared.abi.h"
#include "lib/load.glsl"
layout(constant_id = CONV2D_DW_SHARED_SPEC_TAPS) const uint TAPS = 9;
layout(constant_id = CONV2D_DW_SHARED_SPEC_KERNEL_W) const uint KERNEL_W = 3;
layout(constant_id = CONV2D_DW_SHARED_SPEC_N4) const uint N4 = 8;
layout(constant_id = CONV2D_DW_SHARED_SPEC_WIDTH) const uint WIDTH = 28;
layout(constant_id = CONV2D_DW_SHARED_SPEC_INSIDE) const bool INSIDE = false;
VKT_IN4(CONV2D_DW_SHARED_DY, dy);
VKT_IN4(CONV2D_DW_SHARED_X, x);
layout(binding = CONV2D_DW_SHARED_DW, std430) writeonly buffer Dw { float dw[]; };
layout(binding = CONV2D_DW_SHARED_DB, std430) writeonly buffer Db { float db[]; };

const bool A_BY_K = true, B_BY_K = true;
const bool ROUNDS_A = STORED_AS(CONV2D_DW_SHARED_DY) != MATRIX_STORAGE;
const bool ROUNDS_B = STORED_AS(CONV2D_DW_SHARED_X) != MATRIX_STORAGE;
#include "lib/blocks.glsl"

bool is_row(uint m) { return WHOLE_M || m < pc.rows; }
bool is_column(uint n) { return WHOLE_N || n < pc.columns; }
bool is_k(uint k) { return WHOLE_K || k < pc.plane; }

LINE line_a(uint m, uint k, uint j)
{
    if (!is_row(m + j) || !is_k(k)) return LINE(0);
    return LOAD_LINE(CONV2D_DW_SHARED_DY, dy, ((gl_WorkGroupID.z * pc.rows + m + j) * pc.plane + k) / 4);
}

LINE line_b(uint n, uint k, uint j)
{
    const uint pixel = k / 4 / N4, p = pixel / WIDTH * pc.stride_h - pc.pad_h, q = pixel % WIDTH * pc.stride_w - pc.pad_w;
    const uint c = (n + j) / TAPS, tap = (n + j) % TAPS;
    // If a tap is before the image, h or w wraps around to a large number.
    const uint h = p + tap / KERNEL_W * pc.dilation_h, w = q + tap % KERNEL_W * pc.dilation_w;
    // WHOLE_N is not set if there is a column of ones.
    if (!WHOLE_N && n + j >= pc.columns) return n + j == pc.columns ? ONES(CONV2D_DW_SHARED_X) : LINE(0);
    if (!is_k(k) || (!INSIDE && (h >= pc.src_height || w >= pc.src_width))) return LINE(0);
    return LOAD_LINE(CONV2D_DW_SHARED_X, x,
                     (((gl_WorkGroupID.z * pc.depth + c) * pc.src_height + h) * pc.src_width + w) * N4 + k / 4 % N4);
}

void main()
{
    const uint k = gl_WorkGroupID.y * pc.slice, base = gl_WorkGroupID.y * pc.part, columns = pc.columns + pc.bias;
    for (uint id = gl_WorkGroupID.x; id < tile_count(pc.rows, columns); id += gl_NumWorkGroups.x) {
        const uvec2 at = tile_at(id, pc.rows, columns);
        multiply(at.x, at.y, k, min(k + pc.slice, pc.plane));
        [[unroll]] for (uint i = 0; i < TM; i++)
            [[unroll]] for (uint j = 0; j < TN; j++) {
                const uint m = at.x + tile_row(i), n = at.y + tile_column(j), row = gl_WorkGroupID.z * pc.rows + m;
                if (is_row(m) && is_column(n)) dw[base + row * pc.columns + n] = acc[i * TN / 4 + j / 4][j % 4];
                if (!WHOLE_N && is_row(m) && n == pc.columns && pc.bias != 0) db[base + row] = acc[i * TN / 4 + j / 4][j % 4];
            }
    }
}
