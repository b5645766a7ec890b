// conv/tile.comp - convolution, and its gradient with respect to the input, as one implicit matrix product:
//   dst[m][p][q][n] = bias[m] + sum_{r,s,k} A[r,s][k][m] * src[k][row(p,r)][col(q,s)][n]
// forward:  m = output channel, k = input channel,  row(p,r) = p * stride - pad + r * dilation
// dx:       m = input channel,  k = output channel, row(p,r) = (p + pad - r * dilation) / stride, if that is an integer
// The table TAPS holds row and col, or -1 if a tap is outside the image. The pixels of dx that are `stride` apart use the same
// taps. These pixels are one phase, and one dispatch computes one phase. ADD: the dispatch adds the products of further source
// channels to dst.
//
// A block of ACROSS lanes computes MB channels x ACROSS vec4s of samples. For each k, a lane loads its own vec4 of src and
// its share of the MB weights; subgroupShuffle passes the weights to the other lanes. So for one k, a lane's 4 * MB products
// need two loads. M_MAJOR: A is stored as [m][k]. A lane loads vec4s of four k from SHARES rows of A, so its products
// for four k need SHARES + 4 loads. If ACROSS < LANES, the subgroup has several blocks, which compute different
// channels of the same pixels.
// grid: x over tiles, of which a work group may compute several; z over groups of channels. A tile is ACROSS vec4s of a
//       plane of dst, in LANES / ACROSS * MB channels. Tiles of the same vec4s are consecutive, because they read the
//       same src.
// source: implicit GEMM: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning (2014), section 3.
// Deterministic: one lane computes an element, and adds the products in the order of (r,s,k).
// `zero` is 0. The lane index of a shuffle is a constant plus zero. With 8 lanes, lavapipe compiles a shuffle from a constant
// lane to two permutes, and a shuffle from an unknown lane to one permute. So with 8 lanes, zero is a push constant: the
// compiler does not know its value. With any other number of lanes, lavapipe compiles a shuffle from an unknown lane to a loop
// over lanes. So with these numbers of lanes, zero is a constant.
// Loops are do .. while loops, because lavapipe executes the body of a for loop once more than needed, with all lanes
// off.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/conv2d_tile.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = TILE_SPEC_LANES) in;
layout(constant_id = TILE_SPEC_LANES) const uint LANES = 8;
layout(constant_id = TILE_SPEC_MB) const uint MB = 32;
layout(constant_id = TILE_SPEC_UNROLL) const uint UNROLL = 4;
layout(constant_id = TILE_SPEC_UNIFORM) const bool UNIFORM = true;
layout(constant_id = TILE_SPEC_BIAS) const bool BIAS = true;
layout(constant_id = TILE_SPEC_M_MAJOR) const bool M_MAJOR = false;
layout(constant_id = TILE_SPEC_ACROSS) const uint ACROSS = 8;

VKT_IN4(TILE_A, a_in);
VKT_IN4(TILE_SRC, src_in);
layout(binding = TILE_TAPS, std430) readonly buffer Taps { int taps[]; };
layout(binding = TILE_BIAS, std430) readonly buffer Bias { float bias_in[]; };
#ifdef ADD
VKT_INOUT4(TILE_DST, dst);
#else
VKT_OUT4(TILE_DST, dst);
#endif

const uint SHARES = (MB + ACROSS - 1) / ACROSS; // M_MAJOR: rows of A that a lane holds
vec4 acc[MB];
uint block; // first lane of this lane's block
uint a_pitch, src_plane, zero; // push constants, read before the loops: lavapipe compiles each read to a loop over the lanes
uint a_row[SHARES];   // M_MAJOR: start of this lane's rows of A, in vec4s

// Returns true if weights are passed by shuffles with lane ^ constant. With such shuffles, the channel of acc[m]
// depends on the lane (row_of), as in gemm_tile.comp. With 8 lanes, such shuffles are not faster than other shuffles.
bool shuffles_by_xor()
{
    return LANES != 8 && (M_MAJOR ? MB % ACROSS == 0 : (MB & MB - 1) == 0);
}

// Returns the weight of row row_of(m), from the lane that holds it. `own` is the weight that this lane passes to another lane.
float weight(float own, uint m)
{
    const uint r = M_MAJOR ? m % ACROSS : m >> 2;
    return shuffles_by_xor() ? subgroupShuffleXor(own, r) : subgroupShuffle(own, block + r + zero);
}

// Returns the row of A (0 to MB - 1 in this lane's block) to which acc[m] of this lane belongs.
uint row_of(uint m)
{
    const uint lane = gl_SubgroupInvocationID;
    if (!shuffles_by_xor()) return m;
    return M_MAJOR ? m ^ lane % ACROSS : m ^ lane % (MB / 4) * 4;
}

#ifdef ADD
void start(uint to, uint rows)
{
    [[unroll]] for (uint m = 0; m < MB; m++) acc[m] = LOAD4(dst, to + min(row_of(m), rows - 1) * pc.dst_plane);
}
#else
void start(uint first_bias, uint rows)
{
    const uint per_lane = M_MAJOR ? SHARES : 4, in_block = gl_SubgroupInvocationID % ACROSS;
    const uint lane = M_MAJOR ? in_block : in_block % (MB / 4);
    float share[per_lane];
    if (BIAS)
        [[unroll]] for (uint i = 0; i < per_lane; i++)
            share[i] = bias_in[first_bias + min(M_MAJOR ? i * ACROSS + lane : 4 * lane + i, rows - 1)];
    [[unroll]] for (uint m = 0; m < MB; m++)
        acc[m] = vec4(BIAS ? weight(share[M_MAJOR ? m / ACROSS : m & 3u], m) : 0.0);
}
#endif

// Computes acc += A[.., k .. k+UNROLL-1] * src[k .. k+UNROLL-1, ..]. ia, ib: indices of this lane's vec4s of A and src
// at k.
void add_k_major(uint ia, uint ib, bool inside)
{
    vec4 a[UNROLL], b[UNROLL];
    [[unroll]] for (uint u = 0; u < UNROLL; u++) {
        a[u] = LOAD4(a_in, ia + u * a_pitch);
        b[u] = LOAD4(src_in, ib + u * src_plane);
        if (!UNIFORM) b[u] = inside ? b[u] : vec4(0);
    }
    [[unroll]] for (uint m = 0; m < MB; m++) {
        vec4 sum = acc[m];
        [[unroll]] for (uint u = 0; u < UNROLL; u++) sum += weight(a[u][m & 3u], m) * b[u];
        acc[m] = sum;
    }
}

void add_m_major(uint ia, uint ib, bool inside)
{
    vec4 a[SHARES], b[4];
    [[unroll]] for (uint i = 0; i < SHARES; i++) a[i] = LOAD4(a_in, ia + a_row[i]);
    [[unroll]] for (uint u = 0; u < 4; u++) {
        b[u] = LOAD4(src_in, ib + u * src_plane);
        if (!UNIFORM) b[u] = inside ? b[u] : vec4(0);
    }
    [[unroll]] for (uint m = 0; m < MB; m++) {
        vec4 sum = acc[m];
        [[unroll]] for (uint u = 0; u < 4; u++) sum += weight(a[m / ACROSS][u], m) * b[u];
        acc[m] = sum;
    }
}

void main()
{
    const uint lane = gl_SubgroupInvocationID % ACROSS, col_tiles = (pc.columns + ACROSS - 1) / ACROSS;
    uint tile = gl_WorkGroupID.x;
    a_pitch = pc.a_pitch, src_plane = pc.src_plane, zero = LANES == 8 ? pc.zero : 0;
    block = ACROSS < LANES ? gl_SubgroupInvocationID & ~(ACROSS - 1) : 0;
    const uint group = gl_WorkGroupID.z, a_group = pc.a_base + group * pc.a_group;
    const uint src_group = pc.src_base + group * pc.src_group * src_plane, dst_group = group * pc.dst_group;
    do {
        const uint col_tile = tile / pc.row_tiles, row_tile = tile - col_tile * pc.row_tiles;
        const uint wanted = row_tile * (LANES / ACROSS) + block / ACROSS, row_block = min(wanted, (pc.rows - 1) / MB);
        const uint row = row_block * MB, rows = min(MB, pc.rows - row);
        const uint column = min(col_tile * ACROSS + lane, pc.columns - 1), pixel = column / pc.n4;
        const uint p = pixel / pc.width, q = pixel - p * pc.width, n = column - pixel * pc.n4;
        const uint src_start = src_group + n;
        uint a_start = a_group + row_block * pc.a_tile;
        uint to = pc.dst_base + (dst_group + row) * pc.dst_plane + p * pc.dst_row + q * pc.dst_col + n;
        if (M_MAJOR)
            [[unroll]] for (uint i = 0; i < SHARES; i++) a_row[i] = min(i * ACROSS + lane, rows - 1) * a_pitch;
        else a_start += min(lane % (MB / 4), (rows + 3) / 4 - 1);
        int r = 0, r_end = int(pc.kernel_h), s_start = 0, s_end = int(pc.kernel_w);
        if (UNIFORM) {
            r = taps[pc.row_ranges + 2 * p], r_end = taps[pc.row_ranges + 2 * p + 1];
            s_start = taps[pc.col_ranges + 2 * q], s_end = taps[pc.col_ranges + 2 * q + 1];
        }
#ifdef ADD
        start(to, rows);
#else
        start(pc.bias_base + dst_group + row, rows);
#endif
        if (r < r_end && s_start < s_end)
            do {
                const int src_row = taps[pc.row_sources + p * pc.kernel_h + r];
                int s = s_start;
                do {
                    const int src_col = taps[pc.col_sources + q * pc.kernel_w + s];
                    const bool inside = src_row >= 0 && src_col >= 0;
                    uint ib = src_start + (inside ? (src_row * pc.src_width + src_col) * pc.n4 : 0);
                    uint ia = a_start + r * pc.a_tap_h + s * pc.a_tap_w, k = pc.depth;
                    do {
                        if (M_MAJOR) add_m_major(ia, ib, inside);
                        else add_k_major(ia, ib, inside);
                        ia += M_MAJOR ? 1 : UNROLL * a_pitch;
                        ib += UNROLL * src_plane;
                        k -= UNROLL;
                    } while (k != 0);
                    s++;
                } while (s < s_end);
                r++;
            } while (r < r_end);
        if (col_tile * ACROSS + lane < pc.columns && row_block == wanted)
            [[unroll]] for (uint m = 0; m < MB; m++) {
                if (row_of(m) < rows) STORE4(dst, to + row_of(m) * pc.dst_plane, acc[m]);
            }
        tile += gl_NumWorkGroups.x;
    } while (tile < col_tiles * pc.row_tiles);
}
