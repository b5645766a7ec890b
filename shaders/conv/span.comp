// conv/span.comp - convolution, and its gradient with respect to the input, if neighbouring pixels of an image row read
// neighbouring pixels of the source:
//   dst[m][p][q][n] = bias[m] + sum_{r,k,s} A[r][k][s][m] * src[k][row(p,r)][q + offset_w + s][n]
//   row(p,r) = p * stride_h + offset_h + r * reach_h
// The kernel works like conv/tile.comp, but a lane computes MB channels of SPAN neighbouring pixels. In one row of one source
// channel, the taps of these pixels overlap: they read only SPAN + TAPS - 1 vec4s. A lane loads each of these vec4s once. From
// all these vec4s, the lane computes SPAN * TAPS * MB products of a weight and a vec4. Each shuffled weight serves SPAN
// products. The kernel is good for convolutions with few destination channels. conv/tile.comp would need one shuffle
// for each product of such a convolution, and two loads for MB products.
// grid: x over tiles (stride loop), z over groups of channels. All row tiles of a column tile are consecutive, because
//       they read the same src.
// Deterministic: one lane computes an element, and adds the products in the order of (r,k,s).
// `zero` and do .. while loops: see conv/tile.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/conv2d_span.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = SPAN_SPEC_LANES) in;
layout(constant_id = SPAN_SPEC_LANES) const uint LANES = 8;
layout(constant_id = SPAN_SPEC_MB) const uint MB = 8;
layout(constant_id = SPAN_SPEC_SPAN) const uint SPAN = 4;
layout(constant_id = SPAN_SPEC_TAPS) const uint TAPS = 3;
layout(constant_id = SPAN_SPEC_UNROLL) const uint UNROLL = 1;
layout(constant_id = SPAN_SPEC_PAD) const bool PAD = true;
layout(constant_id = SPAN_SPEC_BIAS) const bool BIAS = true;

VKT_IN4(SPAN_A, a_in);
VKT_IN4(SPAN_SRC, src_in);
layout(binding = SPAN_BIAS, std430) readonly buffer Bias { float bias_in[]; };
VKT_OUT4(SPAN_DST, dst);

const uint REACH = SPAN + TAPS - 1;                 // pixels that a lane reads in one image row of a source channel
const uint A_STEP = UNROLL * TAPS * MB / 4;       // vec4s of A per iteration
const uint SHARES = (A_STEP + LANES - 1) / LANES; // vec4s of A per iteration and lane
const uint BIASES = (MB + LANES - 1) / LANES;
vec4 acc[MB * SPAN];
uint at[REACH]; // indices of the REACH pixels in a row of src, in vec4s
bool col_on[REACH], on[REACH]; // col_on: the pixel's column is inside src. on: row and column are inside

void start(uint first_bias, uint rows, uint zero)
{
    float share[BIASES];
    if (BIAS)
        [[unroll]] for (uint i = 0; i < BIASES; i++)
            share[i] = bias_in[first_bias + min(i * LANES + gl_SubgroupInvocationID, rows - 1)];
    [[unroll]] for (uint m = 0; m < MB; m++) {
        const float bias = BIAS ? subgroupShuffle(share[m / LANES], m % LANES + zero) : 0.0;
        [[unroll]] for (uint j = 0; j < SPAN; j++) acc[m * SPAN + j] = vec4(bias);
    }
}

// Computes acc += A[k .. k+UNROLL-1] * src[k .. k+UNROLL-1]. ia: index in A of the weights for k. ib: index in src of the row
// of source channel k. ia and ib count vec4s.
void add(uint ia, uint ib, uint src_plane, uint zero)
{
    vec4 a[SHARES], b[UNROLL * REACH];
    [[unroll]] for (uint i = 0; i < SHARES; i++) a[i] = LOAD4(a_in, ia + min(i * LANES + gl_SubgroupInvocationID, A_STEP - 1));
    [[unroll]] for (uint u = 0; u < UNROLL; u++)
        [[unroll]] for (uint j = 0; j < REACH; j++) {
            const vec4 v = LOAD4(src_in, ib + u * src_plane + at[j]);
            b[u * REACH + j] = PAD && !on[j] ? vec4(0.0) : v;
        }
    [[unroll]] for (uint m = 0; m < MB; m++) {
        float w[UNROLL * TAPS];
        [[unroll]] for (uint t = 0; t < UNROLL * TAPS; t++) {
            const uint number = t * MB + m;
            w[t] = subgroupShuffle(a[number / 4 / LANES][number % 4], number / 4 % LANES + zero);
        }
        [[unroll]] for (uint j = 0; j < SPAN; j++) {
            vec4 sum = acc[m * SPAN + j];
            [[unroll]] for (uint t = 0; t < UNROLL * TAPS; t++) sum += w[t] * b[t / TAPS * REACH + j + t % TAPS];
            acc[m * SPAN + j] = sum;
        }
    }
}

void main()
{
    const uint src_plane = pc.src_plane, src_row = pc.src_row, depth = pc.depth, kernel_h = pc.kernel_h;
    const uint n4 = pc.n4, dst_plane = pc.dst_plane, zero = LANES == 8 ? pc.zero : 0;
    const int src_height = pc.src_height, src_width = pc.src_width, offset_w = pc.offset_w, reach_h = pc.reach_h;
    const uint group = gl_WorkGroupID.z, col_tiles = (pc.columns + LANES - 1) / LANES;
    uint tile = gl_WorkGroupID.x;
    do {
        const uint col_tile = tile / pc.row_tiles, row_tile = tile - col_tile * pc.row_tiles;
        const uint row = row_tile * MB, rows = min(MB, pc.rows - row);
        const uint lane = col_tile * LANES + gl_SubgroupInvocationID, column = min(lane, pc.columns - 1);
        const uint run = column / n4, n = column - run * n4, p = run / pc.runs, q = (run - p * pc.runs) * SPAN;
        [[unroll]] for (uint j = 0; j < REACH; j++) {
            const int col = int(q + j) + offset_w;
            col_on[j] = col >= 0 && col < src_width;
            at[j] = uint(clamp(col, 0, src_width - 1)) * n4 + n;
        }
        start(pc.bias_base + group * pc.dst_group + row, rows, zero);
        uint ia = group * pc.a_group + row_tile * pc.a_tile;
        uint ib = pc.src_base + group * depth * src_plane;
        int from = int(p * pc.stride_h) + pc.offset_h;
        uint r = kernel_h;
        do {
            const bool row_on = from >= 0 && from < src_height;
            [[unroll]] for (uint j = 0; j < REACH; j++) on[j] = row_on && col_on[j];
            uint to_b = ib + (row_on ? uint(from) * src_row : 0), k = depth;
            do {
                add(ia, to_b, src_plane, zero);
                ia += A_STEP;
                to_b += UNROLL * src_plane;
                k -= UNROLL;
            } while (k != 0);
            from += reach_h;
            r--;
        } while (r != 0);
        const uint width = lane < pc.columns ? pc.width : 0;
        uint to = pc.dst_base + (group * pc.dst_group + row) * dst_plane + (p * pc.width + q) * n4 + n;
        [[unroll]] for (uint m = 0; m < MB; m++) {
            if (m < rows) {
                [[unroll]] for (uint j = 0; j < SPAN; j++)
                    if (q + j < width) STORE4(dst, to + j * n4, acc[m * SPAN + j]);
            }
            to += dst_plane;
        }
        tile += gl_NumWorkGroups.x;
    } while (tile < col_tiles * pc.row_tiles);
}
