// conv/fused_max_pool.comp - conv/direct.comp with a fused max pooling. The windows R x S do not overlap, and are inside the
// images of z, the result of the convolution:
//   y[o][p][q][n] = max over i < R, j < S of e(z[o][p * R + i][q * S + j][n])
//   e(z) is z, or with RELU max(z, 0).
// The kernel also writes the index of each maximum. Maximum and index equal the results of pool2d.comp bit for bit, with one
// exception: if z would be stored in 16 bits, this kernel chooses the winner before rounding. z is at least R * S times
// as large as y. z is never stored, because stores are the most expensive part on CPU drivers. The kernel loads the
// taps from x again for each element of a window.
// grid: x over strips of columns (stride loop), y over tiles of output channels, z over groups of channels. A column is
//       one vec4 of a pixel of y, and a strip is pc.strip neighbouring columns.
// Deterministic, as conv/direct.comp is.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/conv2d_max_pool.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = CONV_POOL_SPEC_LANES) in;
layout(constant_id = CONV_POOL_SPEC_LANES) const uint LANES = 8;
layout(constant_id = CONV_POOL_SPEC_ROWS) const uint ROWS = 8;
layout(constant_id = CONV_POOL_SPEC_CHANNELS) const uint CHANNELS = 1;
layout(constant_id = CONV_POOL_SPEC_KERNEL_H) const uint KERNEL_H = 3;
layout(constant_id = CONV_POOL_SPEC_KERNEL_W) const uint KERNEL_W = 3;
layout(constant_id = CONV_POOL_SPEC_PAD) const bool PAD = true;
layout(constant_id = CONV_POOL_SPEC_BIAS) const bool BIAS = true;
layout(constant_id = CONV_POOL_SPEC_R) const uint R = 2;
layout(constant_id = CONV_POOL_SPEC_S) const uint S = 2;
layout(constant_id = CONV_POOL_SPEC_RELU) const bool RELU = true;
layout(constant_id = CONV_POOL_SPEC_UNROLL) const uint UNROLL = 4;

layout(binding = CONV_POOL_W, std430) readonly buffer W { float w_in[]; };
VKT_IN4(CONV_POOL_X, x_in);
layout(binding = CONV_POOL_BIAS, std430) readonly buffer Bias { float bias_in[]; };
VKT_OUT4(CONV_POOL_Y, y);
VKT_F32_OUT4(CONV_POOL_INDEX, index);
#include "lib/strip.glsl"
#include "lib/direct.glsl"
#include "lib/window_max.glsl"

void main()
{
    const uint group = gl_WorkGroupID.z, row = gl_WorkGroupID.y * ROWS;
    const uint zero = LANES == 8 ? pc.zero : 0, columns = pc.columns, z_width = pc.z_width;
    const uint next_h = pc.next_h, next_w = pc.next_w;
    const uint first_channel = group * pc.dst_group + row;
    const uint y_first = pc.y_base + first_channel * columns, index_first = pc.index_base + first_channel * columns;
    load_weights(group, row);
    init_taps(pc.src_base + group * CHANNELS * pc.src_height * pc.src_width * pc.n4);

    uint first = gl_WorkGroupID.x * pc.strip;
    do {
        const uint end = min(first + pc.strip, columns);
        start_strip(first);
        do {
            const bool on = column < end;
            const uint corner = POOL_INDEX_BIAS + p * R * z_width + q * S;
            vec4 best[ROWS];
            uvec4 winner[ROWS];
            [[unroll]] for (uint m = 0; m < ROWS; m++) {
                best[m] = NO_MAXIMUM;
                winner[m] = uvec4(corner);
            }
            uint i = 0, j = 0;
            do {
                [[unroll]] for (uint iteration = 0; iteration < UNROLL; iteration++) {
                    load_taps(on, i * next_h, j * next_w);
                    [[unroll]] for (uint m = 0; m < ROWS; m++)
                        challenge(best[m], winner[m], product(m, zero), uvec4(corner + i * z_width + j));
                    j++;
                    i += j == S ? 1 : 0;
                    j = j == S ? 0 : j;
                }
            } while (i < R);
            [[unroll]] for (uint m = 0; m < ROWS; m++)
                if (on && row + m < pc.rows) {
                    STORE4(y, y_first + m * columns + column, best[m]);
                    STORE4(index, index_first + m * columns + column, index_of(winner[m], best[m]));
                }
            next_columns();
        } while (column - gl_SubgroupInvocationID < end);
        first += gl_NumWorkGroups.x * pc.strip;
    } while (first < columns);
}
