// conv2d_dw.comp - gradient of a convolution with respect to weights and bias:
//   dw[o][c,r,s] = sum_{p,q,n} dy[o][p][q][n] x[c][p stride - pad + r dil][q stride - pad + s dil][n]     db[o] = sum dy[o]
// A subgroup makes ROWS output channels x COLS columns (c,r,s). Lanes and vec4 components are slices of the sum, kept apart until
// the end: ROWS + COLS loads for ROWS COLS vec4 products, no shuffles in the loop.
// grid: x tiles (columns fastest), y slices of the plane (summed by conv2d_dw_sum where there are several), z groups.
// Deterministic: the order of the sum depends on the device's subgroup size and the number of slices alone.
// Padding lanes of dy are zero, those of x are finite: they add nothing.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/conv2d_dw.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = DW_SPEC_LANES) in;
layout(constant_id = DW_SPEC_LANES) const uint LANES = 8;
layout(constant_id = DW_SPEC_ROWS) const uint ROWS = 8;
layout(constant_id = DW_SPEC_COLS) const uint COLS = 8;
layout(constant_id = DW_SPEC_UNROLL) const uint UNROLL = 2;
layout(constant_id = DW_SPEC_PAD) const bool PAD = true;
layout(constant_id = DW_SPEC_TAIL) const bool TAIL = true;
layout(constant_id = DW_SPEC_BIAS) const bool BIAS = true;

VKT_IN4(DW_DY, dy_in);
VKT_IN4(DW_X, x_in);
layout(binding = DW_W, std430) writeonly buffer Dw { float dw[]; };
layout(binding = DW_B, std430) writeonly buffer Db { float db[]; };

vec4 acc[ROWS * COLS];
uint row_start[ROWS];             // dy of row o, in vec4s
int col_start[COLS];              // x of column (c,r,s) at p = q = n = 0, in vec4s; negative inside the padding
int col_h[COLS], col_w[COLS];     // r dil - pad, s dil - pad

float sum_lanes(vec4 v)
{
    float sum = (v.x + v.y) + (v.z + v.w);
    [[unroll]] for (uint i = 0; i < 7; i++)
        if (1u << i < LANES) sum += subgroupShuffleXor(sum, 1u << i);
    return sum;
}

// db of the tile's rows, in a loop of its own: only tiles of the first column take it.
void write_bias(uint row, uint end)
{
    const uint lane = gl_SubgroupInvocationID;
    vec4 sum[ROWS];
    [[unroll]] for (uint i = 0; i < ROWS; i++) sum[i] = vec4(0);
    uint k = gl_WorkGroupID.y * pc.slice + lane;
    do {
        const bool on = k < end;
        [[unroll]] for (uint i = 0; i < ROWS; i++) {
            const vec4 v = LOAD4(dy_in, row_start[i] + (on ? k : 0));
            sum[i] += on ? v : vec4(0);
        }
        k += LANES;
    } while (k - lane < end);
    [[unroll]] for (uint i = 0; i < ROWS; i++) {
        const float total = sum_lanes(sum[i]);
        if (lane == 0 && row + i < pc.rows)
            db[gl_WorkGroupID.y * pc.part + gl_WorkGroupID.z * pc.rows + row + i] = total;
    }
}

void main()
{
    const uint lane = gl_SubgroupInvocationID, slice = gl_WorkGroupID.y, group = gl_WorkGroupID.z;
    const uint taps = pc.kernel_h * pc.kernel_w, cols = pc.src_group * taps;
    const uint end = min((slice + 1) * pc.slice, pc.plane);
    uint tile = gl_WorkGroupID.x;
    do {
        const uint row = tile / pc.col_tiles * ROWS, col = (tile % pc.col_tiles) * COLS;
        [[unroll]] for (uint i = 0; i < ROWS; i++) row_start[i] = (group * pc.rows + min(row + i, pc.rows - 1)) * pc.plane;
        [[unroll]] for (uint j = 0; j < COLS; j++) {
            const uint crs = min(col + j, cols - 1), c = crs / taps, rs = crs - c * taps, r = rs / pc.kernel_w;
            col_h[j] = int(r * pc.dilation_h) - int(pc.pad_h);
            col_w[j] = int((rs - r * pc.kernel_w) * pc.dilation_w) - int(pc.pad_w);
            col_start[j] = int((group * pc.src_group + c) * pc.src_height * pc.src_width * pc.n4) +
                           (col_h[j] * int(pc.src_width) + col_w[j]) * int(pc.n4);
        }
        [[unroll]] for (uint i = 0; i < ROWS * COLS; i++) acc[i] = vec4(0);

        uint k = slice * pc.slice + lane, p = k / pc.n4, n = k - p * pc.n4, q = p;
        p = q / pc.width;
        q -= p * pc.width;
        do {
            vec4 a[UNROLL * ROWS], b[UNROLL * COLS];
            [[unroll]] for (uint u = 0; u < UNROLL; u++) {
                const bool on = !TAIL || k < end;
                const uint kk = on ? k : 0;
                const int h = int(on ? p * pc.stride_h : 0), w = int(on ? q * pc.stride_w : 0);
                const int at = (h * int(pc.src_width) + w) * int(pc.n4) + int(on ? n : 0);
                [[unroll]] for (uint i = 0; i < ROWS; i++) {
                    a[u * ROWS + i] = LOAD4(dy_in, row_start[i] + kk);
                    if (TAIL) a[u * ROWS + i] = on ? a[u * ROWS + i] : vec4(0);
                }
                [[unroll]] for (uint j = 0; j < COLS; j++) {
                    const bool inside =
                        !PAD || (uint(h + col_h[j]) < pc.src_height && uint(w + col_w[j]) < pc.src_width);
                    b[u * COLS + j] = LOAD4(x_in, uint(inside ? at + col_start[j] : 0));
                    if (PAD) b[u * COLS + j] = inside ? b[u * COLS + j] : vec4(0);
                }
                k += LANES;
                n += pc.step_n;
                const bool carry_n = n >= pc.n4;
                n -= carry_n ? pc.n4 : 0;
                q += pc.step_q + (carry_n ? 1 : 0);
                const bool carry_q = q >= pc.width;
                q -= carry_q ? pc.width : 0;
                p += pc.step_p + (carry_q ? 1 : 0);
            }
            [[unroll]] for (uint i = 0; i < ROWS; i++)
                [[unroll]] for (uint j = 0; j < COLS; j++) {
                    vec4 sum = acc[i * COLS + j];
                    [[unroll]] for (uint u = 0; u < UNROLL; u++) sum += a[u * ROWS + i] * b[u * COLS + j];
                    acc[i * COLS + j] = sum;
                }
        } while (k - lane < end);

        [[unroll]] for (uint i = 0; i < ROWS; i++) {
            float mine = 0;
            [[unroll]] for (uint j = 0; j < COLS; j++) {
                const float sum = sum_lanes(acc[i * COLS + j]);
                mine = lane == j % LANES ? sum : mine;
                const uint column = col + j / LANES * LANES + lane;
                const bool full = j % LANES == LANES - 1 || j == COLS - 1;
                if (full && row + i < pc.rows && column < min(col + COLS, cols))
                    dw[slice * pc.part + (group * pc.rows + row + i) * cols + column] = mine;
            }
        }
        if (BIAS && col == 0) write_bias(row, end);
        tile += gl_NumWorkGroups.x;
    } while (tile < pc.row_tiles * pc.col_tiles);
}
