// conv/dw_tile.comp - gradient of a convolution with respect to weights and bias:
//   dw[o][c,r,s] = sum_{p,q,n} dy[o][p][q][n] * x[c][row(p,r)][col(q,s)][n],   db[o] = sum_{p,q,n} dy[o][p][q][n]
//   row(p,r) = p * stride - pad + r * dilation, and col(q,s) in the same way
// A subgroup computes ROWS * LANES output channels x COLS columns (c,r,s). A lane has ROWS output channels and a share of the
// columns. Per iteration the lane loads four samples of the batch: for each of its channels from dy, and for each of
// its columns from x. Shuffles with lane ^ j pass the columns to the other lanes. So a sum in acc belongs to a
// different column in each lane, as in gemm_tile.comp. The last COLS % LANES columns of a tile are broadcast instead.
// With 8 lanes, shuffles with lane ^ j are not faster than broadcasts, so all columns are broadcast.
// UNPOOL: a max pooling over disjoint windows follows the convolution. The kernel computes dy from dpool, the gradient of the
// pooling's output. dy has the values that pool2d_dx.comp would write:
//   dy[o][p][q][n] = dpool[o][p / WINDOW_H][q / WINDOW_W][n] if (p,q) is the winner of this window, else 0
// grid: x over tiles of each slice of a plane (stride loop), z over groups of channels. A plane is one channel of dy.
//       If there are several slices, conv/dw_sum.comp adds their sums.
// Deterministic: one lane computes an element of a slice, and adds the products in the order of (p,q,n).
// Whole vec4s can be summed: samples past the batch are zero in dy and finite in x.
// `zero` and do .. while loops: see conv/tile.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/conv2d_dw.abi.h"
#include "abi/pool_index.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = DW_SPEC_LANES) in;
layout(constant_id = DW_SPEC_LANES) const uint LANES = 8;
layout(constant_id = DW_SPEC_COLS) const uint COLS = 32;
layout(constant_id = DW_SPEC_ROWS) const uint ROWS = 4;
layout(constant_id = DW_SPEC_PAD) const bool PAD = true;
layout(constant_id = DW_SPEC_BIAS) const bool BIAS = true;
layout(constant_id = DW_SPEC_QUADS) const bool QUADS = true;

VKT_IN4(DW_DY, dy_in);
VKT_IN4(DW_X, x_in);
#ifdef UNPOOL
VKT_IN4(DW_INDEX, index_in);
layout(constant_id = DW_SPEC_WINDOW_H) const uint WINDOW_H = 2;
layout(constant_id = DW_SPEC_WINDOW_W) const uint WINDOW_W = 2;
#endif
layout(binding = DW_W, std430) writeonly buffer Dw { float dw[]; };
VKT_F32_OUT4(DW_W, dw_quads);
layout(binding = DW_B, std430) writeonly buffer Db { float db[]; };

const uint SHARES = (COLS + LANES - 1) / LANES; // columns of a tile that a lane loads
float acc[COLS * ROWS];
vec4 bias_acc[ROWS];
uint dy_at[ROWS];                 // this lane's channels: index in dy of the first vec4
int x_at[SHARES];                 // this lane's columns: index in x for pixel (0,0), in vec4s; can be < 0 in padding
int x_row[SHARES], x_col[SHARES]; // this lane's columns: row and column in x for pixel (0,0); negative in the padding
// push constants, read before the loops: see conv/tile.comp
uint zero, n4, width, stride_h, stride_w, src_height, src_width, dy_height, dy_width, to_index;

void start(uint row, uint col)
{
    const uint lane = gl_SubgroupInvocationID, taps = pc.kernel_h * pc.kernel_w;
    const uint dy_plane = dy_height * dy_width * n4;
    [[unroll]] for (uint i = 0; i < COLS * ROWS; i++) acc[i] = 0;
    [[unroll]] for (uint t = 0; t < ROWS; t++) {
        bias_acc[t] = vec4(0);
        dy_at[t] = pc.dy_base + (gl_WorkGroupID.z * pc.dy_group + min(row + t * LANES + lane, pc.rows - 1)) * dy_plane;
    }
    [[unroll]] for (uint i = 0; i < SHARES; i++) {
        const uint crs = min(col + i * LANES + lane, pc.channels * taps - 1), c = crs / taps, rs = crs - c * taps;
        const uint r = rs / pc.kernel_w, s = rs - r * pc.kernel_w;
        x_row[i] = int(r * pc.dilation_h) - int(pc.pad_h);
        x_col[i] = int(s * pc.dilation_w) - int(pc.pad_w);
        x_at[i] = (int((gl_WorkGroupID.z * pc.x_group + c) * src_height) + x_row[i]) * int(src_width) + x_col[i];
        x_at[i] = int(pc.x_base) + x_at[i] * int(n4);
    }
}

// Returns true if shuffles with lane ^ j pass column j to the other lanes. Otherwise column j is broadcast.
bool shuffles_by_xor(uint j)
{
    return LANES != 8 && j / LANES < COLS / LANES;
}

// Returns the index of the gradient of pixel (p,q) in a plane of dy, in vec4s. UNPOOL: a pixel that is in no pooling window
// gets the index of the nearest window. The pixel is not the winner of that window, so the gradient of the pixel is 0.
uint index_in_dy(uint pixel, uint p, uint q)
{
#ifdef UNPOOL
    pixel = min(p / WINDOW_H, dy_height - 1) * dy_width + min(q / WINDOW_W, dy_width - 1);
#endif
    return pixel * n4;
}

vec4 load_dy(uint at, uint index_at, uint pixel)
{
    const vec4 dy = LOAD4(dy_in, at);
#ifdef UNPOOL
    const uvec4 winner = floatBitsToUint(LOAD4(index_in, index_at));
    return mix(vec4(0), dy, equal(winner, uvec4(POOL_INDEX_BIAS + pixel)));
#else
    return dy;
#endif
}

// Adds the products of vec4s n .. n+count-1 of pixel (p,q). `pixel` is the pixel's index in the plane.
void add_samples(uint pixel, uint p, uint q, uint n, uint count)
{
    const int h = int(p * stride_h), w = int(q * stride_w), at = (h * int(src_width) + w) * int(n4) + int(n);
    const uint in_dy = index_in_dy(pixel, p, q);
    uint ia[SHARES], ib[ROWS];
    bool inside[SHARES];
    [[unroll]] for (uint i = 0; i < SHARES; i++) {
        inside[i] = !PAD || (uint(h + x_row[i]) < src_height && uint(w + x_col[i]) < src_width);
        ia[i] = inside[i] ? uint(at + x_at[i]) : n;
    }
    [[unroll]] for (uint t = 0; t < ROWS; t++) ib[t] = dy_at[t] + in_dy + n;
    uint i4 = 0;
    do {
        vec4 a[SHARES], b[ROWS];
        [[unroll]] for (uint i = 0; i < SHARES; i++) {
            a[i] = LOAD4(x_in, ia[i] + i4);
            if (PAD) a[i] = inside[i] ? a[i] : vec4(0);
        }
        [[unroll]] for (uint t = 0; t < ROWS; t++) {
            b[t] = load_dy(ib[t] + i4, ib[t] + i4 + to_index, pixel);
            if (BIAS) bias_acc[t] += b[t];
        }
        [[unroll]] for (uint j = 0; j < COLS; j++) {
            vec4 v;
            [[unroll]] for (uint k = 0; k < 4; k++) {
                const float x = a[j / LANES][k];
                v[k] = shuffles_by_xor(j) ? subgroupShuffleXor(x, j % LANES) : subgroupShuffle(x, j % LANES + zero);
            }
            [[unroll]] for (uint t = 0; t < ROWS; t++) {
                float sum = acc[j * ROWS + t];
                [[unroll]] for (uint k = 0; k < 4; k++) sum += v[k] * b[t][k];
                acc[j * ROWS + t] = sum;
            }
        }
        i4++;
    } while (i4 < count);
}

// Stores sums j .. j+3 of this lane's output channel t. The sums belong to four neighbouring columns. On a CPU driver
// one vec4 store takes half the time of four stores.
void store_quad(uint t, uint j, uint to, uint col, uint cols)
{
    const uint lane = gl_SubgroupInvocationID;
    vec4 v;
    [[unroll]] for (uint i = 0; i < 4; i++) v[i] = acc[min(j + i, COLS - 1) * ROWS + t];
    uint column = col + j;
    if (shuffles_by_xor(j)) {
        v = (lane & 1u) != 0u ? v.yxwz : v;
        v = (lane & 2u) != 0u ? v.zwxy : v;
        column = col + (j ^ lane & ~3u);
    }
    if (column < cols) STORE4(dw_quads, (to + column) / 4, v);
}

void main()
{
    const uint lane = gl_SubgroupInvocationID, tiles = pc.row_tiles * pc.col_tiles, works = tiles * pc.slices;
    const uint cols = pc.channels * pc.kernel_h * pc.kernel_w;
    zero = LANES == 8 ? pc.zero : 0, n4 = pc.n4, width = pc.width, stride_h = pc.stride_h, stride_w = pc.stride_w;
    src_height = pc.src_height, src_width = pc.src_width, dy_height = pc.dy_height, dy_width = pc.dy_width;
    to_index = uint(pc.to_index);
    uint work = gl_WorkGroupID.x;
    do {
        const uint slice = work / tiles, tile = work - slice * tiles, row_tile = tile / pc.col_tiles;
        const uint row = row_tile * ROWS * LANES, col = (tile - row_tile * pc.col_tiles) * COLS;
        const uint end = min((slice + 1) * pc.slice, pc.plane);
        start(row, col);
        uint k = slice * pc.slice, pixel = k / n4, n = k - pixel * n4, p = pixel / width, q = pixel - p * width;
        do { // one pixel per iteration; no divisions, because llvmpipe divides lane by lane
            const uint count = min(n4 - n, end - k);
            add_samples(pixel, p, q, n, count);
            k += count, n = 0, pixel++, q++;
            p += q == width ? 1 : 0, q = q == width ? 0 : q;
        } while (k < end);
        [[unroll]] for (uint t = 0; t < ROWS; t++) {
            const uint m = row + t * LANES + lane, o = gl_WorkGroupID.z * pc.dy_group + m;
            const uint to = pc.w_base + slice * pc.part + o * pc.pitch;
            const vec4 b = bias_acc[t];
            if (QUADS)
                [[unroll]] for (uint j = 0; j < COLS; j += 4) store_quad(t, j, to, col, m < pc.rows ? cols : 0);
            else [[unroll]] for (uint j = 0; j < COLS; j++) {
                const uint column = col + (shuffles_by_xor(j) ? j ^ lane : j);
                if (m < pc.rows && column < cols) dw[to + column] = acc[j * ROWS + t];
            }
            if (BIAS && m < pc.rows && col == 0) db[pc.b_base + slice * pc.part + o] = (b.x + b.y) + (b.z + b.w);
        }
        work += gl_NumWorkGroups.x;
    } while (work < works);
}
