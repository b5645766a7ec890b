// conv2d_direct.comp - convolution with few products an element (K = C/G R S: a first layer, a depthwise one):
//   y[o][p][q][n] = bias[o] + sum_{c,r,s} w(o,c,r,s) x[c][p stride - pad + r dil][q stride - pad + s dil][n]
// It is also dx where the stride is 1: then x and y are dy and dx, o and c trade places in w, and FLIP turns the kernel round.
// What conv2d_tile.comp does anew for each tile is done once for a strip of pixels here: the ROWS K weights are loaded into the
// lanes' registers (subgroupShuffle hands them round) and the K taps' places worked out. Then only x is read and y written.
// grid: x strips of columns (stride loop), y row tiles, z groups.  Deterministic: one lane makes an element, in the order of (c,r,s).
// `zero` and loops that end with their test: see conv2d_tile.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/conv2d_direct.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = DIRECT_SPEC_LANES) in;
layout(constant_id = DIRECT_SPEC_LANES) const uint LANES = 8;
layout(constant_id = DIRECT_SPEC_ROWS) const uint ROWS = 32;
layout(constant_id = DIRECT_SPEC_CHANNELS) const uint CHANNELS = 1;
layout(constant_id = DIRECT_SPEC_KERNEL_H) const uint KERNEL_H = 3;
layout(constant_id = DIRECT_SPEC_KERNEL_W) const uint KERNEL_W = 3;
layout(constant_id = DIRECT_SPEC_PAD) const bool PAD = true;
layout(constant_id = DIRECT_SPEC_BIAS) const bool BIAS = true;
layout(constant_id = DIRECT_SPEC_FLIP) const bool FLIP = false;

layout(binding = DIRECT_W, std430) readonly buffer W { float w_in[]; };
VKT_IN4(DIRECT_X, x_in);
layout(binding = DIRECT_BIAS, std430) readonly buffer Bias { float bias_in[]; };
VKT_OUT4(DIRECT_Y, y);

const uint TAPS = KERNEL_H * KERNEL_W, K = CHANNELS * TAPS;
const uint SHARES = (ROWS * K + LANES - 1) / LANES, BIASES = (ROWS + LANES - 1) / LANES;

void main()
{
    const uint lane = gl_SubgroupInvocationID, group = gl_WorkGroupID.z, row = gl_WorkGroupID.y * ROWS;
    const uint zero = pc.zero, columns = pc.columns, n4 = pc.n4, width = pc.width, height_in = pc.src_height, width_in = pc.src_width;
    const uint step_n = pc.step_n, step_q = pc.step_q, step_p = pc.step_p, stride_h = pc.stride_h, stride_w = pc.stride_w;
    float w[SHARES], bias[BIASES];
    [[unroll]] for (uint i = 0; i < SHARES; i++) {
        const uint mk = i * LANES + lane, m = mk / K, k = mk - m * K, tap = k % TAPS;
        w[i] = w_in[pc.w_base + group * pc.w_group + min(row + m, pc.rows - 1) * pc.w_row + k / TAPS * pc.w_depth +
                    (FLIP ? TAPS - 1 - tap : tap)];
    }
    [[unroll]] for (uint i = 0; i < BIASES; i++)
        bias[i] = BIAS ? bias_in[pc.bias_base + group * pc.dst_group + min(row + i * LANES + lane, pc.rows - 1)] : 0.0;
    int row_at[KERNEL_H], col_at[KERNEL_W], tap_at[K]; // r dil - pad, s dil - pad, and x at p = q = n = 0 in vec4s
    [[unroll]] for (uint r = 0; r < KERNEL_H; r++) row_at[r] = int(r * pc.dilation_h) - int(pc.pad_h);
    [[unroll]] for (uint s = 0; s < KERNEL_W; s++) col_at[s] = int(s * pc.dilation_w) - int(pc.pad_w);
    [[unroll]] for (uint k = 0; k < K; k++)
        tap_at[k] = int(pc.src_base) + col_at[k % KERNEL_W] * int(n4) +
                    (int((group * CHANNELS + k / TAPS) * height_in) + row_at[k % TAPS / KERNEL_W]) * int(width_in * n4);
    const uint dst_first = pc.dst_base + (group * pc.dst_group + row) * columns;

    uint first = gl_WorkGroupID.x * pc.strip;
    do {
        const uint end = min(first + pc.strip, columns);
        uint column = first + lane, p = column / n4, n = column - p * n4, q = p;
        p = q / width;
        q -= p * width;
        do {
            const bool on = column < end;
            const int h = int(on ? p * stride_h : 0), v = int(on ? q * stride_w : 0);
            const int at = (h * int(width_in) + v) * int(n4) + int(on ? n : 0);
            bool row_on[KERNEL_H], col_on[KERNEL_W];
            [[unroll]] for (uint r = 0; r < KERNEL_H; r++) row_on[r] = !PAD || uint(h + row_at[r]) < height_in;
            [[unroll]] for (uint s = 0; s < KERNEL_W; s++) col_on[s] = !PAD || uint(v + col_at[s]) < width_in;
            vec4 x[K];
            [[unroll]] for (uint k = 0; k < K; k++) {
                const bool inside = row_on[k % TAPS / KERNEL_W] && col_on[k % KERNEL_W];
                x[k] = LOAD4(x_in, uint(inside ? at + tap_at[k] : 0));
                if (PAD) x[k] = inside ? x[k] : vec4(0);
            }
            uint to = dst_first + column;
            [[unroll]] for (uint m = 0; m < ROWS; m++) {
                vec4 sum = vec4(BIAS ? subgroupShuffle(bias[m / LANES], m % LANES + zero) : 0.0);
                [[unroll]] for (uint k = 0; k < K; k++)
                    sum += subgroupShuffle(w[(m * K + k) / LANES], (m * K + k) % LANES + zero) * x[k];
                if (on && row + m < pc.rows) STORE4(y, to, sum);
                to += columns;
            }
            column += LANES;
            n += step_n;
            const bool carry_n = n >= n4;
            n -= carry_n ? n4 : 0;
            q += step_q + (carry_n ? 1 : 0);
            const bool carry_q = q >= width;
            q -= carry_q ? width : 0;
            p += step_p + (carry_q ? 1 : 0);
        } while (column - lane < end);
        first += gl_NumWorkGroups.x * pc.strip;
    } while (first < columns);
}
