// mlp.comp - a fully connected network of L = 1 to 4 layers, forward and backward, in one dispatch:
//   h[0] = x,  h[l] = max(w[l] h[l-1] + b[l], 0),  y = w[L] h[L-1] + b[L]
//   FORWARD computes y. MSE computes the loss and all gradients from y - target. GRAD computes all gradients from dy.
//   dy[L] is dy, or with MSE the gradient of the loss. dy[l-1] = w[l]^T dy[l] where h[l-1] > 0, else 0.
//   dw[l] = sum of dy[l] h[l-1]^T over samples,  db[l] = sum of dy[l],  dx = w[1]^T dy[1] (only with DX)
// A work group computes all layers for one block of samples before the next block. So the activations of a block stay in the
// cache. A block has TILES tiles. GRAD computes h[l] again, so FORWARD saves no activations for GRAD.
// Products: a lane holds some samples of a tile. It loads all inputs of these samples into registers. Then it computes two
// outputs per iteration, or one if there are more than 64 inputs. So no accumulator is needed longer than an iteration.
// On llvmpipe, a longer use costs a masked copy. Outputs other than y and dx are stored in ACT and loaded again later.
// Weight gradients: a lane holds rows of one factor, and shuffles pass the rows of the other factor. The sum over a block is
// added to the PART of the work group (abi/mlp_layout.abi.h).
// NARROW (GPUs): a lane holds one sample, and all lanes share each load of weights. Without NARROW (CPUs), a lane holds two
// vec4s of samples. Each lane loads some of the weights, and subgroupShuffle passes these weights to the other lanes.
// The lane numbers of shuffles are written k + zero: conv/tile.comp explains why.
// grid: x over blocks; one work group processes per_group neighbouring blocks. mlp_sum.comp adds the PARTs of the work groups.
// Deterministic: the order of additions depends only on the shape, the subgroup size, TILES and per_group.
// A loop that must be unrolled contains only loops that are unrolled too. Otherwise Mesa does not unroll the outer loop.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/mlp_layout.abi.h"
#include "abi/mlp.abi.h"
#include "lib/load.glsl"
#include "lib/mlp_vec.glsl"
layout(local_size_x_id = MLP_SPEC_LANES) in;
layout(constant_id = MLP_SPEC_LANES) const uint LANES = 8;
layout(constant_id = MLP_SPEC_LAYERS) const uint LAYERS = 1;
layout(constant_id = MLP_SPEC_WIDTH + 0) const uint W0 = 1;
layout(constant_id = MLP_SPEC_WIDTH + 1) const uint W1 = 1;
layout(constant_id = MLP_SPEC_WIDTH + 2) const uint W2 = 0;
layout(constant_id = MLP_SPEC_WIDTH + 3) const uint W3 = 0;
layout(constant_id = MLP_SPEC_WIDTH + 4) const uint W4 = 0;
layout(constant_id = MLP_SPEC_WIDEST) const uint WIDEST = 1;
layout(constant_id = MLP_SPEC_TILES) const uint TILES = 2;
layout(constant_id = MLP_SPEC_DX) const bool DX = false;
VEC_IN(MLP_X, x_in);
VKT_IN4(MLP_PACKED, packed_in);
VEC_SCRATCH(MLP_ACT, act)
#ifndef FORWARD
VEC_IN(MLP_T, t_in);
SCRATCH(MLP_PART, part)
#endif
#ifdef MSE
layout(binding = MLP_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = MLP_DLOSS, std430) readonly buffer Dloss { float dloss[]; };
#endif
VEC_OUT(MLP_OUT, writeonly, result)

const uint ROW = UNITS * LANES;                             // VECs per row of a tile
const uint SHARES = (WIDEST + 4 * LANES - 1) / (4 * LANES); // vec4s per lane, when all lanes together hold a row of weights
uint zero, lane, block, wanted; // wanted: index of the lane's first VEC in the row of a feature; may be >= pc.pitch
uint column[UNITS];             // the indices wanted, wanted + 1, .. of the lane's VECs, but at most pc.pitch - 1
BELOW real[UNITS];
float scale;
VEC loss, inputs[UNITS * WIDEST], sums[2 * UNITS];

uint width(uint l) { return l == 0 ? W0 : l == 1 ? W1 : l == 2 ? W2 : l == 3 ? W3 : W4; }
uint rows_at(uint l) { return l == 1 ? pc.rows1 : l == 2 ? pc.rows2 : l == 3 ? pc.rows3 : pc.rows4; }
uint cols_at(uint l) { return l == 1 ? pc.cols1 : l == 2 ? pc.cols2 : l == 3 ? pc.cols3 : pc.cols4; }
uint bias_at(uint l) { return l == 1 ? pc.bias1 : l == 2 ? pc.bias2 : l == 3 ? pc.bias3 : pc.bias4; }
uint part_at(uint l) { return l == 1 ? pc.part1 : l == 2 ? pc.part2 : l == 3 ? pc.part3 : pc.part4; }
// A tile in ACT has the rows of h[1] .. h[L-1], then the rows of dy[1] .. dy[L] (FORWARD does not use the rows of dy).
// h_row(l) returns the first row of h[l], and dy_row(l) returns the first row of dy[l].
uint widths(uint l) { return (l > 0 ? W1 : 0) + (l > 1 ? W2 : 0) + (l > 2 ? W3 : 0) + (l > 3 ? W4 : 0); }
uint h_row(uint l) { return widths(l - 1); }
uint dy_row(uint l) { return widths(LAYERS - 1) + widths(l - 1); }
uint tile_at(uint tile) { return (gl_WorkGroupID.x * TILES + tile) * (dy_row(LAYERS) + width(LAYERS)) * ROW; }

void keep(uint tile, uint row, uint g)
{
    const uint at = tile_at(tile) + row * ROW + UNITS * lane;
    [[unroll]] for (uint u = 0; u < UNITS; u++) act_put(at + u, sums[UNITS * g + u]);
}

// For each g < G: adds the product of inputs[] and row o + g of a matrix (M, K) to sums[UNITS * g ..]. The matrix starts at
// index `at` of PACKED.
void multiply(const uint K, const uint M, const uint G, uint at, uint o)
{
    const uint KQ = (K + 3) / 4, V = (KQ + LANES - 1) / LANES;
#ifdef NARROW
    [[unroll]] for (uint q = 0; q < KQ; q++)
        [[unroll]] for (uint g = 0; g < G; g++) {
            const vec4 w = LOAD4(packed_in, at + min(o + g, M - 1) * KQ + q);
            [[unroll]] for (uint c = 0; c < 4; c++)
                if (4 * q + c < K) sums[g] += w[c] * inputs[4 * q + c];
        }
#else
    vec4 w[2 * SHARES];
    [[unroll]] for (uint g = 0; g < G; g++)
        [[unroll]] for (uint v = 0; v < V; v++)
            w[g * V + v] = LOAD4(packed_in, at + min(o + g, M - 1) * KQ + min(v * LANES + lane, KQ - 1));
    [[unroll]] for (uint k = 0; k < K; k++)
        [[unroll]] for (uint g = 0; g < G; g++) {
            const float s = subgroupShuffle(w[g * V + k / 4 / LANES][k % 4], k / 4 % LANES + zero);
            [[unroll]] for (uint u = 0; u < UNITS; u++) sums[UNITS * g + u] += s * inputs[UNITS * k + u];
        }
#endif
}

// Finishes output o of the last layer. The output is in sums[UNITS * g ..]. Without MSE: writes it to MLP_OUT. With MSE: adds
// its squared errors to `loss`, and writes its dy to ACT.
void finish(uint o, uint g, uint tile)
{
    [[unroll]] for (uint u = 0; u < UNITS; u++) {
#ifdef MSE
        const VEC d = mix(VEC(0), sums[UNITS * g + u] - LOAD_VEC(t_in, o * pc.pitch + column[u]), real[u]);
        loss += d * d;
        sums[UNITS * g + u] = scale * d;
#else
        if (wanted + u < pc.pitch) result_put(o * pc.pitch + wanted + u, sums[UNITS * g + u]);
#endif
    }
#ifdef MSE
    keep(tile, dy_row(LAYERS) + o, g);
#endif
}

void forward(const uint l, uint tile)
{
    const uint K = width(l - 1), M = width(l), G = K > 64 ? 1 : 2;
    const uint from = tile_at(tile) + (l > 1 ? h_row(l - 1) * ROW : 0) + UNITS * lane;
    [[unroll]] for (uint k = 0; k < K; k++)
        [[unroll]] for (uint u = 0; u < UNITS; u++)
            inputs[UNITS * k + u] = l == 1 ? LOAD_VEC(x_in, k * pc.pitch + column[u]) : AGAIN(act, from + k * ROW + u);
    uint o = 0;
    do {
        const vec4 b = LOAD4(packed_in, bias_at(l) + o);
        [[unroll]] for (uint i = 0; i < UNITS * G; i++) sums[i] = VEC(b[i / UNITS]);
        multiply(K, M, G, rows_at(l), o);
        [[unroll]] for (uint g = 0; g < G; g++)
            if (o + g < M) {
                if (l < LAYERS) {
                    [[unroll]] for (uint u = 0; u < UNITS; u++) sums[UNITS * g + u] = relu(sums[UNITS * g + u]);
                    keep(tile, h_row(l) + o + g, g);
                } else finish(o + g, g, tile);
            }
        o += G;
    } while (o < M);
    subgroupBarrier();
}
#ifndef FORWARD
#include "lib/mlp_back.glsl"
#endif

void main()
{
    zero = LANES == 8 ? pc.zero : 0, lane = gl_SubgroupInvocationID;
    block = gl_WorkGroupID.x * pc.per_group;
    const uint end = min(block + pc.per_group, pc.blocks);
    uint rows = pc.batch;
#ifdef MSE
    rows = min(step[STEP_ROWS], pc.batch);
    const float n = float(rows) * float(width(LAYERS));
    scale = rows == 0 ? 0.0 : 2.0 * dloss[0] / n; // without rows, gradients are 0
    loss = VEC(0);
#endif
    bool first = true;
    do {
        uint tile = 0;
        do {
            wanted = (block * TILES + tile) * ROW + UNITS * lane;
            [[unroll]] for (uint u = 0; u < UNITS; u++) {
                column[u] = min(wanted + u, pc.pitch - 1);
                real[u] = below(wanted + u, rows);
            }
            if (LAYERS > 1) forward(1, tile);
            if (LAYERS > 2) forward(2, tile);
            if (LAYERS > 3) forward(3, tile);
#ifdef GRAD
            take_dy(tile);
#else
            forward(LAYERS, tile);
#endif
#ifndef FORWARD
            if (LAYERS > 3) back(4, tile);
            if (LAYERS > 2) back(3, tile);
            if (LAYERS > 1) back(2, tile);
            if (DX) back(1, tile);
#endif
            tile++;
        } while (tile < TILES);
#ifndef FORWARD
        weights(1, first);
        if (LAYERS > 1) weights(2, first);
        if (LAYERS > 2) weights(3, first);
        if (LAYERS > 3) weights(4, first);
        subgroupBarrier();
#endif
        first = false;
        block++;
    } while (block < end);
#ifdef MSE
    part_put(gl_WorkGroupID.x * pc.part + pc.part - LANES + lane, vec4_of(loss) / n);
#endif
}
