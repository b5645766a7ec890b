// mlp_shared.comp - the network of mlp.comp (FORWARD, MSE or GRAD) for GPUs. Activations and weights are in shared memory.
//   A block of 32 samples goes through the whole network. A row of act[] has one feature of the block. dy[l] replaces h[l],
//   as soon as the weight gradient of layer l + 1 has read h[l].
//   A product is out[o][n] = sum over k of w[k][o] in[k][n]. A work group copies the weights to shared memory, in slices of
//   rows if they do not fit. A lane computes two or four outputs of 4 samples, so a weight from shared memory serves 4 samples.
//   Weight gradients are tiles of 4 x 4 elements per lane. They are added to the group's PART by the lane that computes them.
// source: Mueller, Rousselle, Novak & Keller, Real-time Neural Radiance Caching for Path Tracing (2021), section 3.4
// grid: x over blocks; one group processes per_group neighbouring blocks. MLP_SUM_ROWS adds the groups' parts.
// Deterministic: the order of additions depends only on the shape.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/mlp_layout.abi.h"
#include "abi/mlp.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = MLP_SPEC_LANES) in;
layout(constant_id = MLP_SPEC_LAYERS) const uint LAYERS = 1;
layout(constant_id = MLP_SPEC_WIDTH + 0) const uint W0 = 1;
layout(constant_id = MLP_SPEC_WIDTH + 1) const uint W1 = 1;
layout(constant_id = MLP_SPEC_WIDTH + 2) const uint W2 = 0;
layout(constant_id = MLP_SPEC_WIDTH + 3) const uint W3 = 0;
layout(constant_id = MLP_SPEC_WIDTH + 4) const uint W4 = 0;
layout(constant_id = MLP_SPEC_STAGE) const uint STAGE = 64;
layout(constant_id = MLP_SPEC_DX) const bool DX = false;
VKT_IN4(MLP_X, x_in);
VKT_IN4(MLP_PACKED, packed_in);
#ifndef FORWARD
VKT_IN4(MLP_T, t_in);
layout(binding = MLP_PART_OUT, std430) buffer Part { float part[]; };
#endif
#ifdef MSE
layout(binding = MLP_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = MLP_DLOSS, std430) readonly buffer Dloss { float dloss[]; };
#endif
VKT_STORED(MLP_OUT, writeonly, result)

const uint COLUMNS = MLP_SHARED_SAMPLES / 4, ROW = MLP_SHARED_ROW; // vec4s of a row that are used; of a row
const uint MAX_OUTPUTS = 4, UNROLL = 4;
shared vec4 act[(W0 + W1 + W2 + W3 + W4) * ROW];
shared vec2 stage[2 * STAGE]; // rows of a matrix of PACKED; at the end the losses of the lanes
uint lane, first_column, rows; // first_column: the block's first vec4 of samples
float scale;
vec4 loss, sums[MAX_OUTPUTS];

uint width(uint l) { return l == 0 ? W0 : l == 1 ? W1 : l == 2 ? W2 : l == 3 ? W3 : W4; }
uint rows_at(uint l) { return l == 1 ? pc.rows1 : l == 2 ? pc.rows2 : l == 3 ? pc.rows3 : pc.rows4; }
uint cols_at(uint l) { return l == 1 ? pc.cols1 : l == 2 ? pc.cols2 : l == 3 ? pc.cols3 : pc.cols4; }
uint bias_at(uint l) { return l == 1 ? pc.bias1 : l == 2 ? pc.bias2 : l == 3 ? pc.bias3 : pc.bias4; }
uint part_at(uint l) { return l == 1 ? pc.part1 : l == 2 ? pc.part2 : l == 3 ? pc.part3 : pc.part4; }
// Returns the index in act[] of the first row of h[l] or dy[l].
uint act_at(uint l) { return ((l > 0 ? W0 : 0) + (l > 1 ? W1 : 0) + (l > 2 ? W2 : 0) + (l > 3 ? W3 : 0)) * ROW; }

// A lane computes outputs first_output(M) .. + outputs(M) - 1 of the samples of vec4 lane % COLUMNS.
uint outputs(uint M) { return M > MLP_SHARED_LANES / COLUMNS * 2 ? 4 : 2; }
uint first_output(uint M) { return lane / COLUMNS * outputs(M); }

bvec4 is_real(uint column) { return lessThan(4 * (first_column + column) + uvec4(0, 1, 2, 3), uvec4(rows)); }
uint loaded(uint column) { return min(first_column + column, pc.pitch - 1); }

// Adds to sums[] the products with N rows of the matrix in stage[]. A row has Q vec4s. w_at: index of the lane's first weight.
// in_at: index of the lane's vec4 of the first row of the other factor.
void multiply(const uint N, const uint M, const uint Q, uint w_at, uint in_at)
{
    [[unroll]] for (uint k = 0; k < N; k++) {
        const vec4 v = act[in_at + k * ROW];
        [[unroll]] for (uint g = 0; g < outputs(M) / 2; g++) {
            const vec2 w = stage[w_at + 2 * k * Q + g];
            sums[2 * g] += w.x * v;
            sums[2 * g + 1] += w.y * v;
        }
    }
}

void multiply_slice(uint n, const uint M, const uint Q, uint in_at)
{
    uint w_at = first_output(M) / 2;
    for (uint i = 0; i < n / UNROLL; i++) {
        multiply(UNROLL, M, Q, w_at, in_at);
        w_at += 2 * UNROLL * Q;
        in_at += UNROLL * ROW;
    }
    for (uint i = 0; i < n % UNROLL; i++) multiply(1, M, Q, w_at + 2 * i * Q, in_at + i * ROW);
}

// Adds to sums[] the product of the matrix (K rows, M columns) at `at` with the rows of act[] from `from` on. Begins with a
// barrier.
void product(const uint K, const uint M, uint at, uint from)
{
    const uint Q = (M + 3) / 4, slice = min(STAGE / Q, K);
    for (uint k = 0; k < K; k += slice) {
        const uint n = min(slice, K - k);
        barrier();
        for (uint i = lane; i < n * Q; i += MLP_SHARED_LANES) {
            const vec4 w = LOAD4(packed_in, at + k * Q + i);
            stage[2 * i] = w.xy;
            stage[2 * i + 1] = w.zw;
        }
        barrier();
        if (first_output(M) < M) multiply_slice(n, M, Q, from + k * ROW + lane % COLUMNS);
    }
}

// Writes sums[i], output o of the last layer: y or, with MSE, dy.
void finish(uint o, uint i)
{
    const uint column = lane % COLUMNS;
#ifdef MSE
    const vec4 d = mix(vec4(0), sums[i] - LOAD4(t_in, o * pc.pitch + loaded(column)), is_real(column));
    loss += d * d;
    act[act_at(LAYERS) + o * ROW + column] = scale * d;
#else
    if (first_column + column < pc.pitch) result_put(o * pc.pitch + first_column + column, sums[i]);
#endif
}

void forward(const uint l)
{
    const uint M = width(l), o = first_output(M);
    [[unroll]] for (uint i = 0; i < outputs(M); i += 2) {
        const vec4 b = LOAD4(packed_in, bias_at(l) + min(o + i, M - 1));
        sums[i] = vec4(b.x);
        sums[i + 1] = vec4(b.y);
    }
    product(width(l - 1), M, cols_at(l), act_at(l - 1));
    [[unroll]] for (uint i = 0; i < outputs(M); i++)
        if (o + i < M) {
            if (l == LAYERS) finish(o + i, i);
            else act[act_at(l) + (o + i) * ROW + lane % COLUMNS] = mix(sums[i], vec4(0), lessThan(sums[i], vec4(0)));
        }
}

#ifndef FORWARD
#include "lib/mlp_shared_back.glsl"
#endif

void pass(bool first)
{
    for (uint i = lane; i < W0 * COLUMNS; i += MLP_SHARED_LANES)
        act[i / COLUMNS * ROW + i % COLUMNS] = LOAD4(x_in, i / COLUMNS * pc.pitch + loaded(i % COLUMNS));
    if (LAYERS > 1) forward(1);
    if (LAYERS > 2) forward(2);
    if (LAYERS > 3) forward(3);
#ifdef GRAD
    for (uint i = lane; i < width(LAYERS) * COLUMNS; i += MLP_SHARED_LANES)
        act[act_at(LAYERS) + i / COLUMNS * ROW + i % COLUMNS] =
            mix(vec4(0), LOAD4(t_in, i / COLUMNS * pc.pitch + loaded(i % COLUMNS)), is_real(i % COLUMNS));
#else
    forward(LAYERS);
#endif
#ifndef FORWARD
    if (LAYERS > 3) { weights(4, first); back(4); }
    if (LAYERS > 2) { weights(3, first); back(3); }
    if (LAYERS > 1) { weights(2, first); back(2); }
    weights(1, first);
    if (DX) back(1);
#endif
}

void main()
{
    const uint first = gl_WorkGroupID.x * pc.per_group, end = min(first + pc.per_group, pc.blocks);
    lane = gl_LocalInvocationID.x;
    rows = pc.batch;
#ifdef MSE
    rows = min(step[STEP_ROWS], pc.batch);
    const float n = float(rows) * float(width(LAYERS));
    scale = 2.0 * dloss[0] / n;
    loss = vec4(0);
#endif
    for (uint block = first; block < end; block++) {
        first_column = block * COLUMNS;
        barrier(); // the samples of the block before are not needed any more
        pass(block == first);
    }
#ifdef MSE
    put_loss(n);
#endif
}
