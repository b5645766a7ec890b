// conv/pool_shared.comp - conv/fused_max_pool.comp for GPUs: a convolution with few products per element, and a max
// pooling over windows R x S that do not overlap and stay inside the image:
//   y[o][p][q][n] = max over i < R, j < S of e(z[o][p * R + i][q * S + j][n])
//   z is the result of the convolution. e(z) is z, or with RELU max(z, 0).
// The kernel also writes the index of each maximum. Maximum and index equal the results of pool2d.comp, with the exception
// that conv/fused_max_pool.comp names. z is never stored. Shared memory has all weights of the work group's channels
// (lib/direct_shared.glsl), so an element of z has at most CHUNK products.
// grid: x over tiles of ACROSS columns (stride loop), y over tiles of output channels, z over groups of
//       channels. A column is one vec4 of a pixel of y.
// Deterministic, as conv/direct_shared.comp is.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/conv2d_pool_shared.abi.h"
#include "abi/direct_tiles.abi.h"
#include "lib/load.glsl"
layout(constant_id = POOL_SHARED_SPEC_R) const uint R = 2;
layout(constant_id = POOL_SHARED_SPEC_S) const uint S = 2;
layout(constant_id = POOL_SHARED_SPEC_RELU) const bool RELU = true;

layout(binding = POOL_SHARED_W, std430) readonly buffer W { float w_in[]; };
VKT_IN4(POOL_SHARED_X, x_in);
layout(binding = POOL_SHARED_BIAS, std430) readonly buffer Bias { float bias_in[]; };
VKT_OUT4(POOL_SHARED_Y, y);
VKT_F32_OUT4(POOL_SHARED_INDEX, index);
#include "lib/direct_shared.glsl"
#include "lib/window_max.glsl"

void main()
{
    const uint group = gl_WorkGroupID.z, row = first_channel(block_of_lane()), depth = pc.K / pc.taps;
    const uint src_first = pc.src_base + group * depth * pc.src_height * pc.src_width * N4;
    const uint plane = (group * pc.dst_group + row) * pc.columns; // vec4s from y_base to this lane's first channel
    load_biases();
    load_chunk(0);
    for (uint first = gl_WorkGroupID.x * ACROSS; first < pc.columns; first += gl_NumWorkGroups.x * ACROSS) {
        const uint wanted = first + gl_LocalInvocationID.x % ACROSS, column = min(wanted, pc.columns - 1);
        const uint pixel = column / N4, n = column % N4, p = pixel / WIDTH, q = pixel % WIDTH;
        const uint corner = POOL_INDEX_BIAS + p * R * pc.z_width + q * S;
        vec4 best[ROWS];
        uvec4 winner[ROWS];
        [[unroll]] for (uint m = 0; m < ROWS; m++) {
            best[m] = NO_MAXIMUM;
            winner[m] = uvec4(corner);
        }
        [[dont_unroll]] for (uint e = 0; e < R * S; e++) {
            const uint i = e / S, j = e % S;
            const int h = int(p * pc.stride_h + i * pc.next_h), v = int(q * pc.stride_w + j * pc.next_w);
            start_sums();
            add_taps(pc.K, int(src_first + n) + (h * int(pc.src_width) + v) * int(N4), h, v);
            [[unroll]] for (uint m = 0; m < ROWS; m++)
                challenge(best[m], winner[m], sum[m], uvec4(corner + i * pc.z_width + j));
        }
        [[unroll]] for (uint m = 0; m < ROWS; m++)
            if (wanted < pc.columns && row + m < pc.rows) {
                STORE4(y, pc.y_base + plane + m * pc.columns + column, best[m]);
                STORE4(index, pc.index_base + plane + m * pc.columns + column, index_of(winner[m], best[m]));
            }
    }
}
