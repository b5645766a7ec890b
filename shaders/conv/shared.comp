// conv/shared.comp - convolution for GPUs, and its gradient with respect to the input (TRANSPOSED). The kernel computes
// one implicit matrix product in shared memory (lib/blocks.glsl):
//   dst[m][p][q][n] = bias[m] + sum_{r,s,k} w(m,k,r,s) * src[k][row(p,r)][col(q,s)][n]
// forward:    m = output channel, k = input channel,  row(p,r) = p * stride - pad + r * dilation
// TRANSPOSED: m = input channel,  k = output channel, row(p,r) = (p + pad - r * dilation) / stride, if that is an integer
// col(q,s) is computed in the same way. A tap outside src adds nothing.
// A is w: a row has the weights of all (r,s,k), with k padded to a multiple of four. conv/pack_rows.comp copies w to this order
// first. The product may read w itself if there is only one tap and k needs no padding. For TRANSPOSED, such a w is the
// transpose of A, so the product reads w along m (ALONG_M).
// B is gathered from src. Its rows are (r,s,k), and its columns are (p,q,n). A load reads four samples of a pixel. Four
// neighbouring rows of B belong to one tap, because k is padded. Divisors are specialisation constants, so that drivers replace
// divisions by multiplications.
// grid: x over tiles (stride loop), y over slices of the sum over (r,s,k), z over groups of channels. If there are
//       several slices, product/gemm_sum.comp adds their sums.
// source: implicit GEMM: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning (2014), section 3.
// Deterministic: see lib/blocks.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/blocks.abi.h"
#include "abi/conv2d_shared.abi.h"
#include "lib/load.glsl"
layout(constant_id = CONV2D_SHARED_SPEC_DEPTH) const uint DEPTH = 16;
layout(constant_id = CONV2D_SHARED_SPEC_KERNEL_W) const uint KERNEL_W = 3;
layout(constant_id = CONV2D_SHARED_SPEC_N4) const uint N4 = 8;
layout(constant_id = CONV2D_SHARED_SPEC_WIDTH) const uint WIDTH = 28;
layout(constant_id = CONV2D_SHARED_SPEC_STRIDE_H) const uint STRIDE_H = 1;
layout(constant_id = CONV2D_SHARED_SPEC_STRIDE_W) const uint STRIDE_W = 1;
layout(constant_id = CONV2D_SHARED_SPEC_ALONG_M) const bool ALONG_M = false;
layout(constant_id = CONV2D_SHARED_SPEC_INSIDE) const bool INSIDE = false;
VKT_IN4(CONV2D_SHARED_W, w);
VKT_IN4(CONV2D_SHARED_SRC, src);
layout(binding = CONV2D_SHARED_BIAS, std430) readonly buffer Bias { float bias[]; };
VKT_OUT4(CONV2D_SHARED_DST, dst);

const uint DEPTH4 = (DEPTH + 3) / 4 * 4; // rows of B for one tap: DEPTH, padded to a multiple of four
const bool A_BY_K = !ALONG_M, B_BY_K = false;
const bool ROUNDS_A = STORED_AS(CONV2D_SHARED_W) != MATRIX_STORAGE, ROUNDS_B = STORED_AS(CONV2D_SHARED_SRC) != MATRIX_STORAGE;
#include "lib/blocks.glsl"

// These functions return true if an index is inside the product.
bool is_row(uint m) { return WHOLE_M || m < pc.rows; }
bool is_column(uint n) { return WHOLE_N || n < pc.columns; }
bool is_k(uint k) { return WHOLE_K || k < pc.K; }

LINE line_a(uint m, uint k, uint j)
{
    const uint x = ALONG_M ? m : m + j, y = ALONG_M ? k + j : k;
    if (!is_row(x) || !is_k(y)) return LINE(0);
    return LOAD_LINE(CONV2D_SHARED_W, w, (gl_WorkGroupID.z * pc.w_group + (ALONG_M ? y * pc.rows + x : x * pc.K + y)) / 4);
}

// Returns the source index that tap r of destination i reads along one axis. If the tap reads no source, the index is
// at least the source's length along this axis.
uint source(uint i, uint r, uint stride, uint pad, uint dilation)
{
#ifdef TRANSPOSED
    if (INSIDE) return i;
    const int at = int(i + pad) - int(r * dilation);
    return at >= 0 && uint(at) % stride == 0 ? uint(at) / stride : 0xffffffffu;
#else
    return i * stride + r * dilation - pad;
#endif
}

LINE line_b(uint n, uint k, uint j)
{
    const uint pixel = n / 4 / N4, p = pixel / WIDTH, q = pixel % WIDTH, tap = k / DEPTH4, c = k % DEPTH4 + j;
    const uint h = source(p, tap / KERNEL_W, STRIDE_H, pc.pad_h, pc.dilation_h);
    const uint x = source(q, tap % KERNEL_W, STRIDE_W, pc.pad_w, pc.dilation_w);
    if (!is_column(n) || !is_k(k) || (DEPTH != DEPTH4 && c >= DEPTH)) return LINE(0);
    if (!INSIDE && (h >= pc.src_height || x >= pc.src_width)) return LINE(0);
    return LOAD_LINE(CONV2D_SHARED_SRC, src,
                     (((gl_WorkGroupID.z * DEPTH + c) * pc.src_height + h) * pc.src_width + x) * N4 + n / 4 % N4);
}

void main()
{
    const uint k = gl_WorkGroupID.y * pc.slice, base = gl_WorkGroupID.y * pc.part;
    for (uint id = gl_WorkGroupID.x; id < tile_count(pc.rows, pc.columns); id += gl_NumWorkGroups.x) {
        const uvec2 at = tile_at(id, pc.rows, pc.columns);
        multiply(at.x, at.y, k, min(k + pc.slice, pc.K));
        [[unroll]] for (uint i = 0; i < TM; i++) {
            const uint m = at.x + tile_row(i), row = gl_WorkGroupID.z * pc.rows + m;
            if (!is_row(m)) continue;
            const vec4 add = vec4(pc.bias != 0 && k == 0 ? bias[row] : 0.0);
            [[unroll]] for (uint j = 0; j < TN / 4; j++) {
                const uint n = at.y + tile_column(4 * j);
                if (is_column(n)) STORE4(dst, (base + row * pc.columns + n) / 4, acc[i * TN / 4 + j] + add);
            }
        }
    }
}
