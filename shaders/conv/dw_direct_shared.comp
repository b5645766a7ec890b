// conv/dw_direct_shared.comp - gradient with respect to weights and bias, for few output channels per group, for GPUs:
//   dw[o][c,r,s] = sum_{p,q,n} dy[o][p][q][n] * x[c][row(p,r)][col(q,s)][n],   db[o] = sum_{p,q,n} dy[o][p][q][n]
//   row(p,r) = p * stride - pad + r * dilation, and col(q,s) in the same way
// The lanes process neighbouring vec4s of a plane (one channel) of dy. A work group computes a tile of ROWS output
// channels x COLS weights. Each lane has its own sums for the whole tile. It loads ROWS vec4s of dy, and then one vec4
// of x at a time. At the end the lanes' sums are added in shared memory.
// UNPOOL: a max pooling over disjoint windows follows the convolution. The kernel computes dy from dpool, the gradient of the
// pooling's output, as conv/dw_tile.comp does. The sums have the same terms in the same order as if pool2d_dx.comp
// stored dy first.
// grid: x over slices of a plane, y over tiles, z over groups of channels. If there are several slices,
//       conv/dw_sum.comp adds their sums.
// Deterministic: a lane adds in the order of (p,q,n). The lanes' sums are added in a fixed order.
// Whole vec4s can be summed: samples past the batch are zero in dy and finite in x.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/conv2d_dw_direct_shared.abi.h"
#include "abi/pool_index.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = DW_DIRECT_SHARED_SPEC_LANES) in;
layout(constant_id = DW_DIRECT_SHARED_SPEC_LANES) const uint LANES = 128;
layout(constant_id = DW_DIRECT_SHARED_SPEC_ROWS) const uint ROWS = 4;
layout(constant_id = DW_DIRECT_SHARED_SPEC_COLS) const uint COLS = 9;
layout(constant_id = DW_DIRECT_SHARED_SPEC_PAD) const bool PAD = true;
layout(constant_id = DW_DIRECT_SHARED_SPEC_BIAS) const bool BIAS = true;
layout(constant_id = DW_DIRECT_SHARED_SPEC_N4) const uint N4 = 1;
layout(constant_id = DW_DIRECT_SHARED_SPEC_WIDTH) const uint WIDTH = 1;

VKT_IN4(DW_DIRECT_SHARED_DY, dy_in);
VKT_IN4(DW_DIRECT_SHARED_X, x_in);
#ifdef UNPOOL
VKT_IN4(DW_DIRECT_SHARED_INDEX, index_in);
layout(constant_id = DW_DIRECT_SHARED_SPEC_WINDOW_H) const uint WINDOW_H = 2;
layout(constant_id = DW_DIRECT_SHARED_SPEC_WINDOW_W) const uint WINDOW_W = 2;
#endif
layout(binding = DW_DIRECT_SHARED_W, std430) writeonly buffer Dw { float dw[]; };
layout(binding = DW_DIRECT_SHARED_B, std430) writeonly buffer Db { float db[]; };

const uint SUMS = ROWS * COLS + (BIAS ? ROWS : 0); // sums of a lane: ROWS x COLS of dw, then ROWS of db
const uint TOGETHER = DW_DIRECT_SHARED_TOGETHER;
const uint ADDERS = LANES / TOGETHER; // lanes that add up one sum; each of them reads the parts of TOGETHER lanes
const uint PITCH = LANES + ADDERS;    // floats in part[] for one sum: LANES parts, and padding against bank conflicts
shared ivec4 tap_at[COLS];            // position of a tap for pixel 0: index in x (in vec4s), row, column
shared float part[TOGETHER * PITCH];

// Prepares the taps of weights first .. first + COLS - 1. Weights past the last one repeat the last one.
void load_taps(uint first, uint src_first)
{
    for (uint i = gl_LocalInvocationID.x; i < COLS; i += LANES) {
        const uint k = min(first + i, pc.K - 1), c = k / pc.taps, tap = k - c * pc.taps;
        const uint r = tap / pc.kernel_w, s = tap - r * pc.kernel_w;
        const int h = pc.offset_h + int(r) * pc.reach_h, v = pc.offset_w + int(s) * pc.reach_w;
        tap_at[i] = ivec4(int(src_first) + ((int(c * pc.src_height) + h) * int(pc.src_width) + v) * int(N4), h, v, 0);
    }
    barrier();
}

// Returns the index of the gradient of pixel (p,q) in a plane of dy, in vec4s. UNPOOL: a pixel that is in no pooling window
// gets the index of the nearest window. The pixel is not the winner of that window, so the gradient of the pixel is 0.
uint index_in_dy(uint pixel, uint p, uint q)
{
#ifdef UNPOOL
    pixel = min(p / WINDOW_H, pc.dy_height - 1) * pc.dy_width + min(q / WINDOW_W, pc.dy_width - 1);
#endif
    return pixel * N4;
}

// Returns the vec4 of dy for a pixel. `pixel`: index of the pixel in a plane of dy. `at`: index of this vec4 in dy_in.
// UNPOOL: dy_in is dpool, and `at` is the index of the vec4 of the pooling window that index_in_dy chose.
vec4 load_dy(uint at, uint pixel)
{
    const vec4 dy = LOAD4(dy_in, at);
#ifdef UNPOOL
    const uvec4 winner = floatBitsToUint(LOAD4(index_in, at + uint(pc.to_index)));
    return mix(vec4(0.0), dy, equal(winner, uvec4(POOL_INDEX_BIAS + pixel)));
#else
    return dy;
#endif
}

// Returns sum + dot(a, b), as four multiply-adds.
float plus_dot(float sum, vec4 a, vec4 b)
{
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    return sum + a.w * b.w;
}

// Computes TOGETHER sums over all lanes. own[i] is what this lane adds to sum i. Returns the sum with index
// lane / ADDERS: ADDERS neighbouring lanes return the same sum.
float add_lanes(float own[TOGETHER])
{
    const uint lane = gl_LocalInvocationID.x, of = lane / ADDERS, first = lane % ADDERS;
    float all = 0.0;
    barrier(); // all lanes have read the parts of the previous sums
    [[unroll]] for (uint i = 0; i < TOGETHER; i++) part[i * PITCH + lane] = own[i];
    barrier();
    [[unroll]] for (uint i = 0; i < TOGETHER; i++) all += part[of * PITCH + first + i * ADDERS];
    barrier();
    part[lane] = all;
    barrier();
    all = 0.0;
    for (uint i = 0; i < ADDERS; i++) all += part[of * ADDERS + i];
    return all;
}

void main()
{
    const uint lane = gl_LocalInvocationID.x, group = gl_WorkGroupID.z, slice = gl_WorkGroupID.x * pc.part;
    const uint row_tile = gl_WorkGroupID.y / pc.col_tiles, col_tile = gl_WorkGroupID.y - row_tile * pc.col_tiles;
    const uint row = row_tile * ROWS, col = col_tile * COLS, o = group * pc.rows + row, depth = pc.K / pc.taps;
    const uint dy_plane = pc.dy_height * pc.dy_width * N4, dy_first = pc.dy_base + o * dy_plane;
    const uint end = min((gl_WorkGroupID.x + 1) * pc.slice, pc.plane);
    float sum[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; i++) sum[i] = 0.0;
    load_taps(col, pc.x_base + group * depth * pc.src_height * pc.src_width * N4);
    for (uint column = gl_WorkGroupID.x * pc.slice + lane; column < end; column += LANES) {
        const uint pixel = column / N4, n = column % N4, p = pixel / WIDTH, q = pixel % WIDTH;
        const int h = int(p * pc.stride_h), v = int(q * pc.stride_w), at = (h * int(pc.src_width) + v) * int(N4) + int(n);
        const uint in_dy = index_in_dy(pixel, p, q);
        vec4 dy[ROWS];
        [[unroll]] for (uint m = 0; m < ROWS; m++) {
            dy[m] = load_dy(dy_first + min(m, pc.rows - 1 - row) * dy_plane + in_dy + n, pixel);
            if (BIAS) sum[ROWS * COLS + m] += (dy[m].x + dy[m].y) + (dy[m].z + dy[m].w);
        }
        [[unroll]] for (uint k = 0; k < COLS; k++) {
            const ivec4 tap = tap_at[k];
            const bool inside = !PAD || uint(h + tap.y) < pc.src_height && uint(v + tap.z) < pc.src_width;
            const vec4 loaded = LOAD4(x_in, uint(inside ? at + tap.x : 0)), x = inside ? loaded : vec4(0.0);
            [[unroll]] for (uint m = 0; m < ROWS; m++) sum[m * COLS + k] = plus_dot(sum[m * COLS + k], dy[m], x);
        }
    }
    [[unroll]] for (uint i = 0; i < SUMS; i += TOGETHER) {
        float own[TOGETHER];
        [[unroll]] for (uint j = 0; j < TOGETHER; j++) own[j] = i + j < SUMS ? sum[min(i + j, SUMS - 1)] : 0.0;
        const float all = add_lanes(own);
        const uint of = i + lane / ADDERS, m = of < ROWS * COLS ? of / COLS : of - ROWS * COLS, k = of % COLS;
        const bool writes = lane % ADDERS == 0 && of < SUMS && row + m < pc.rows;
        if (writes && of < ROWS * COLS && col + k < pc.K) dw[pc.w_base + slice + (o + m) * pc.K + col + k] = all;
        if (writes && of >= ROWS * COLS && col == 0) db[pc.b_base + slice + o + m] = all;
    }
}
