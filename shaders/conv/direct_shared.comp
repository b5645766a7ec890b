// conv/direct_shared.comp - convolution with few output channels or few products per element, for GPUs:
//   y[o][p][q][n] = bias[o] + sum_{c,r,s} w(o,c,r,s) * x[c][row(p,r)][col(q,s)][n]
//   row(p,r) = p * stride - pad + r * dilation, and col(q,s) in the same way
// The kernel also computes dx, as conv/direct.comp does. In conv/direct.comp the lanes of a subgroup exchange weights by
// shuffles, and the vec4s of all taps are in registers. Here the weights are in shared memory (lib/direct_shared.glsl), and a
// lane has only its sums and the vec4s of UNROLL taps in registers. So an element may have any number of products (K).
// SLOPE: the kernel also computes the gradient of a relu whose result is v. The kernel stores 0 where v is at most 0,
// and the result of the convolution elsewhere.
// grid: x over tiles of ACROSS columns (stride loop), y over tiles of output channels, z over groups of
//       channels. A column is one vec4 of a pixel of y.
// Deterministic: one lane computes an element, and adds the products in the order of (c,r,s).
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/conv2d_direct_shared.abi.h"
#include "abi/direct_tiles.abi.h"
#include "lib/load.glsl"

layout(binding = DIRECT_SHARED_W, std430) readonly buffer W { float w_in[]; };
VKT_IN4(DIRECT_SHARED_X, x_in);
layout(binding = DIRECT_SHARED_BIAS, std430) readonly buffer Bias { float bias_in[]; };
VKT_OUT4(DIRECT_SHARED_Y, y);
#ifdef SLOPE
VKT_IN4(DIRECT_SHARED_V, v_in);
#endif
#include "lib/direct_shared.glsl"

// Stores a vec4 at index `to` of y: `value`, or with SLOPE the gradient of the relu.
void store(uint to, vec4 value)
{
#ifdef SLOPE
    // The same formula as for the gradient of UNARY_RELU in lib/unary.glsl.
    value = mix(value, vec4(0.0), lessThanEqual(LOAD4(v_in, to + uint(pc.to_slope)), vec4(0.0)));
#endif
    STORE4(y, to, value);
}

void main()
{
    const uint group = gl_WorkGroupID.z, row = first_channel(block_of_lane()), depth = pc.K / max(pc.taps, 1);
    const uint src_first = pc.src_base + group * depth * pc.src_height * pc.src_width * N4;
    bool loaded = false;
    load_biases();
    barrier();
    for (uint first = gl_WorkGroupID.x * ACROSS; first < pc.columns; first += gl_NumWorkGroups.x * ACROSS) {
        const uint wanted = first + gl_LocalInvocationID.x % ACROSS, column = min(wanted, pc.columns - 1);
        const uint pixel = column / N4, n = column % N4, p = pixel / WIDTH, q = pixel % WIDTH;
        const int h = int(p * pc.stride_h), v = int(q * pc.stride_w);
        const int at = int(src_first + n) + (h * int(pc.src_width) + v) * int(N4);
        start_sums();
        for (uint k = 0; k < pc.K; k += CHUNK) {
            if (!loaded || pc.K > CHUNK) load_chunk(k);
            loaded = true;
            add_taps(min(CHUNK, pc.K - k), at, h, v);
        }
        uint to = pc.dst_base + (group * pc.dst_group + row) * pc.dst_plane + p * pc.dst_row + q * pc.dst_col + n;
        [[unroll]] for (uint m = 0; m < ROWS; m++) {
            if (wanted < pc.columns && row + m < pc.rows) store(to, sum[m]);
            to += pc.dst_plane;
        }
    }
}
