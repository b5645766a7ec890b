// conv/direct.comp - convolution with few products per element. An element of y has K = C/G * R * S products. For
// instance, K is small in a first layer and in a depthwise layer.
//   y[o][p][q][n] = bias[o] + sum_{c,r,s} w(o,c,r,s) * x[c][row(p,r)][col(q,s)][n]
//   row(p,r) = p * stride - pad + r * dilation, and col(q,s) in the same way
// The kernel also computes dx. For dx, x is dy, y is dx, o and c are swapped in w, and the taps are in reverse order.
// If a stride is above 1, a dispatch computes one phase: pixels of dx that are `stride` apart, which all use the same
// taps. A phase is a convolution of stride 1 with these taps.
// conv/tile.comp loads the weights and the positions of the taps again for each tile. Here, a work group loads the weights and
// computes the positions only once, before its loop. The lanes hold the ROWS * K weights in registers, and subgroupShuffle
// passes weights between lanes. In the loop, a work group only reads x and writes y.
// grid: x over strips of columns (stride loop), y over tiles of output channels, z over groups of channels. A column is
//       one vec4 of a pixel of y, and a strip is pc.strip neighbouring columns.
// Deterministic: one lane computes an element, and adds the products in the order of (c,r,s).
// `zero` and do .. while loops: see conv/tile.comp.
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

layout(binding = DIRECT_W, std430) readonly buffer W { float w_in[]; };
VKT_IN4(DIRECT_X, x_in);
layout(binding = DIRECT_BIAS, std430) readonly buffer Bias { float bias_in[]; };
VKT_OUT4(DIRECT_Y, y);

#include "lib/strip.glsl"
#include "lib/direct.glsl"

void main()
{
    const uint group = gl_WorkGroupID.z, row = gl_WorkGroupID.y * ROWS;
    const uint zero = LANES == 8 ? pc.zero : 0, columns = pc.columns;
    const uint dst_plane = pc.dst_plane, dst_row = pc.dst_row, dst_col = pc.dst_col;
    load_weights(group, row);
    init_taps(pc.src_base + group * CHANNELS * pc.src_height * pc.src_width * pc.n4);
    const uint dst_first = pc.dst_base + (group * pc.dst_group + row) * dst_plane;

    uint first = gl_WorkGroupID.x * pc.strip;
    do {
        const uint end = min(first + pc.strip, columns);
        start_strip(first);
        do {
            const bool on = column < end;
            load_taps(on, 0, 0);
            uint to = dst_first + p * dst_row + q * dst_col + n;
            [[unroll]] for (uint m = 0; m < ROWS; m++) {
                const vec4 sum = product(m, zero);
                if (on && row + m < pc.rows) STORE4(y, to, sum);
                to += dst_plane;
            }
            next_columns();
        } while (column - gl_SubgroupInvocationID < end);
        first += gl_NumWorkGroups.x * pc.strip;
    } while (first < columns);
}
