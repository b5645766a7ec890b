// conv/shared.comp - convolution for GPUs, and its gradient with respect to the input (TRANSPOSED). It is one implicit matrix
// product in shared memory (lib/blocks.glsl):
//   dst[m][p][q][n] = bias[m] + sum_{k,r,s} w(m,k,r,s) * src[k][row(p,r)][col(q,s)][n]
// forward:    m = output channel, k = input channel,  row(p,r) = p * stride - pad + r * dilation
// TRANSPOSED: m = input channel,  k = output channel, row(p,r) = (p + pad - r * dilation) / stride, if that is an integer
// col(q,s) is computed in the same way. A tap outside src adds nothing.
// A is w, read where it is stored. B is gathered from the image: its rows are (k,r,s), its columns (p,q,n), four
// samples at a time. Divisors are specialisation constants, so that drivers replace divisions by multiplications.
// grid: x over tiles (stride loop), z groups.
// source: implicit GEMM: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning (2014), section 3.
// Deterministic: see lib/blocks.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/blocks.abi.h"
#include "abi/conv2d_shared.abi.h"
#include "lib/load.glsl"
layout(constant_id = CONV2D_SHARED_SPEC_TAPS) const uint TAPS = 9;
layout(constant_id = CONV2D_SHARED_SPEC_KERNEL_W) const uint KERNEL_W = 3;
layout(constant_id = CONV2D_SHARED_SPEC_N4) const uint N4 = 8;
layout(constant_id = CONV2D_SHARED_SPEC_WIDTH) const uint WIDTH = 28;
layout(constant_id = CONV2D_SHARED_SPEC_STRIDE_H) const uint STRIDE_H = 1;
layout(constant_id = CONV2D_SHARED_SPEC_STRIDE_W) const uint STRIDE_W = 1;
layout(constant_id = CONV2D_SHARED_SPEC_VECTORS) const bool VECTORS = false;
layout(binding = CONV2D_SHARED_W, std430) readonly buffer W { float w[]; };
layout(binding = CONV2D_SHARED_W, std430) readonly buffer W4 { vec4 w4[]; };
VKT_IN4(CONV2D_SHARED_SRC, src);
layout(binding = CONV2D_SHARED_BIAS, std430) readonly buffer Bias { float bias[]; };
VKT_OUT4(CONV2D_SHARED_DST, dst);

#ifdef TRANSPOSED
const bool A_BY_K = !VECTORS;
#else
const bool A_BY_K = true;
#endif
const bool B_BY_K = false, ROUNDS_A = true, ROUNDS_B = STORED_AS(CONV2D_SHARED_SRC) != STORAGE_F16;
#include "lib/blocks.glsl"

LINE line_a(uint m, uint k, uint j)
{
    const uint group = gl_WorkGroupID.z * pc.w_group;
    if (!A_BY_K) // w is (K,M)
        return k + j < pc.K && m < pc.rows ? LINE_OF(w4[(group + (k + j) * pc.w_depth + m) / 4]) : LINE(0);
    if (m + j >= pc.rows || k >= pc.K) return LINE(0);
    if (VECTORS) return LINE_OF(w4[(group + (m + j) * pc.w_row + k) / 4]); // w is (M,K)
    vec4 v = vec4(0.0);
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (k + i < pc.K) v[i] = w[group + (m + j) * pc.w_row + (k + i) / TAPS * pc.w_depth + (k + i) % TAPS];
    return LINE_OF(v);
}

// Returns the source index that tap r of destination i reads along one axis. If the tap reads no source, the index is
// at least the image's size.
uint source(uint i, uint r, uint stride, uint pad, uint dilation)
{
#ifdef TRANSPOSED
    const int at = int(i + pad) - int(r * dilation);
    return at >= 0 && uint(at) % stride == 0 ? uint(at) / stride : 0xffffffffu;
#else
    return i * stride + r * dilation - pad;
#endif
}

LINE line_b(uint n, uint k, uint j)
{
    const uint pixel = n / 4 / N4, p = pixel / WIDTH, q = pixel % WIDTH, c = (k + j) / TAPS, tap = (k + j) % TAPS;
    const uint h = source(p, tap / KERNEL_W, STRIDE_H, pc.pad_h, pc.dilation_h);
    const uint x = source(q, tap % KERNEL_W, STRIDE_W, pc.pad_w, pc.dilation_w);
    if (n >= pc.columns || k + j >= pc.K || h >= pc.src_height || x >= pc.src_width) return LINE(0);
    return LOAD_LINE(CONV2D_SHARED_SRC, src,
                     (((gl_WorkGroupID.z * pc.depth + c) * pc.src_height + h) * pc.src_width + x) * N4 + n / 4 % N4);
}

void main()
{
    for (uint id = gl_WorkGroupID.x; id < tile_count(pc.rows, pc.columns); id += gl_NumWorkGroups.x) {
        const uvec2 at = tile_at(id, pc.rows, pc.columns);
        multiply(at.x, at.y, 0, pc.K);
        [[unroll]] for (uint i = 0; i < TM; i++) {
            const uint m = at.x + tile_row(i), row = gl_WorkGroupID.z * pc.rows + m;
            if (m >= pc.rows) continue;
            const vec4 add = vec4(pc.bias != 0 ? bias[row] : 0.0);
            [[unroll]] for (uint j = 0; j < TN / 4; j++) {
                const uint n = at.y + tile_column(4 * j);
                if (n < pc.columns) STORE4(dst, (row * pc.columns + n) / 4, acc[i * TN / 4 + j] + add);
            }
        }
    }
}
