// conv/dw_direct.comp - gradient with respect to weights and bias, for convolutions with few products per element (as in
// conv/direct.comp) and few output channels per group of channels. conv/dw_tile.comp gives each lane its own output
// channels. With few output channels, most lanes of conv/dw_tile.comp would be idle.
//   dw[o][c,r,s] = sum_{p,q,n} dy[o][p][q][n] * x[c][row(p,r)][col(q,s)][n],   db[o] = sum_{p,q,n} dy[o][p][q][n]
//   row(p,r) = p * stride - pad + r * dilation, and col(q,s) in the same way
// The lanes process neighbouring vec4s of a plane (one channel) of dy. Each lane has ROWS * K sums of its own. At the
// end the sums of all lanes are added.
// grid: x over slices of a plane, y over tiles of output channels, z over groups of channels. If there are several
//       slices, conv/dw_sum.comp adds their sums.
// Deterministic: a lane adds in the order of (p,q,n). The lanes' sums are added by shuffles in a fixed order.
// Whole vec4s can be summed: samples past the batch are zero in dy and finite in x.
// do .. while loops: see conv/tile.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/conv2d_dw_direct.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = DW_DIRECT_SPEC_LANES) in;
layout(constant_id = DW_DIRECT_SPEC_LANES) const uint LANES = 8;
layout(constant_id = DW_DIRECT_SPEC_ROWS) const uint ROWS = 1;
layout(constant_id = DW_DIRECT_SPEC_CHANNELS) const uint CHANNELS = 1;
layout(constant_id = DW_DIRECT_SPEC_KERNEL_H) const uint KERNEL_H = 3;
layout(constant_id = DW_DIRECT_SPEC_KERNEL_W) const uint KERNEL_W = 3;
layout(constant_id = DW_DIRECT_SPEC_PAD) const bool PAD = true;
layout(constant_id = DW_DIRECT_SPEC_BIAS) const bool BIAS = true;

VKT_IN4(DW_DIRECT_DY, dy_in);
VKT_IN4(DW_DIRECT_X, x_in);
layout(binding = DW_DIRECT_W, std430) writeonly buffer Dw { float dw[]; };
layout(binding = DW_DIRECT_B, std430) writeonly buffer Db { float db[]; };
#include "lib/strip.glsl"

float sum_of_subgroup(float v)
{
    for (uint k = LANES / 2; k > 0; k /= 2) v += subgroupShuffleXor(v, k);
    return v;
}

void main()
{
    const uint group = gl_WorkGroupID.z, row = gl_WorkGroupID.y * ROWS, slice = gl_WorkGroupID.x * pc.part;
    const uint plane = pc.plane, end = min((gl_WorkGroupID.x + 1) * pc.strip, plane), rows = min(pc.rows - row, ROWS);
    const uint o = group * pc.rows + row, dy_first = pc.dy_base + o * plane;
    float sum[ROWS * K], bias[ROWS];
    [[unroll]] for (uint i = 0; i < ROWS * K; i++) sum[i] = 0.0;
    [[unroll]] for (uint m = 0; m < ROWS; m++) bias[m] = 0.0;
    init_taps(pc.x_base + group * CHANNELS * pc.src_height * pc.src_width * pc.n4);
    start_strip(gl_WorkGroupID.x * pc.strip);
    do {
        const bool on = column < end;
        load_taps(on, 0, 0);
        [[unroll]] for (uint m = 0; m < ROWS; m++) {
            vec4 dy = LOAD4(dy_in, dy_first + min(m, rows - 1) * plane + min(column, plane - 1));
            dy = on ? dy : vec4(0);
            if (BIAS) bias[m] += (dy.x + dy.y) + (dy.z + dy.w);
            [[unroll]] for (uint k = 0; k < K; k++) sum[m * K + k] += dot(dy, x[k]);
        }
        next_columns();
    } while (column - gl_SubgroupInvocationID < end);
    [[unroll]] for (uint m = 0; m < ROWS; m++) {
        const bool writes = gl_SubgroupInvocationID == 0 && m < rows;
        [[unroll]] for (uint k = 0; k < K; k++) {
            const float all = sum_of_subgroup(sum[m * K + k]);
            if (writes) dw[pc.w_base + slice + (o + m) * K + k] = all;
        }
        const float all = BIAS ? sum_of_subgroup(bias[m]) : 0.0;
        if (BIAS && writes) db[pc.b_base + slice + o + m] = all;
    }
}
