// mlp_shared.comp - the network of mlp.comp (FORWARD, MSE or GRAD) for GPUs, with activations and weights in shared memory.
//   A work group computes all layers for one block of 32 samples before the next block. After the weight gradient of layer
//   l + 1 is computed, dy[l] replaces h[l] in shared memory.
// Without COOP (lib/mlp_lanes.glsl), a row of act[] has one feature of the block.
//   A product is out[o][n] = sum over k of w[k][o] in[k][n]. A work group copies the weights to shared memory. If the weights
//   do not fit, the work group copies slices of rows, one after the other. A lane computes two or four outputs of 4 samples, so
//   each weight that a lane reads serves 4 samples.
//   A lane computes weight gradients in tiles of 4 x 4 elements and adds them to the PART of the work group
//   (abi/mlp_layout.abi.h).
// COOP computes the products with cooperative matrices of f16 (lib/mlp_coop.glsl).
// source: Mueller, Rousselle, Novak & Keller, Real-time Neural Radiance Caching for Path Tracing (2021), section 3.4
// grid: x over blocks; one work group processes per_group neighbouring blocks. mlp_sum.comp with ROWS adds the PARTs of
// the work groups.
// Deterministic: the order of additions depends only on the shape and per_group. COOP: also on the size of the matrices.
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

const uint COLUMNS = MLP_SHARED_SAMPLES / 4; // vec4s of samples per block
uint lane, first_column, rows; // first_column: index of the block's first vec4 of samples
#ifdef MSE
float scale; // dy = scale * (y - t)
vec4 loss;
#endif

uint width(uint l) { return l == 0 ? W0 : l == 1 ? W1 : l == 2 ? W2 : l == 3 ? W3 : W4; }
uint rows_at(uint l) { return l == 1 ? pc.rows1 : l == 2 ? pc.rows2 : l == 3 ? pc.rows3 : pc.rows4; }
uint cols_at(uint l) { return l == 1 ? pc.cols1 : l == 2 ? pc.cols2 : l == 3 ? pc.cols3 : pc.cols4; }
uint bias_at(uint l) { return l == 1 ? pc.bias1 : l == 2 ? pc.bias2 : l == 3 ? pc.bias3 : pc.bias4; }
uint part_at(uint l) { return l == 1 ? pc.part1 : l == 2 ? pc.part2 : l == 3 ? pc.part3 : pc.part4; }

bvec4 is_real(uint column) { return lessThan(4 * (first_column + column) + uvec4(0, 1, 2, 3), uvec4(rows)); }
uint loaded(uint column) { return min(first_column + column, pc.pitch - 1); }

#ifdef COOP
#include "lib/mlp_coop.glsl"
#else
#include "lib/mlp_lanes.glsl"
#endif

void pass(bool first)
{
    load_x();
    if (LAYERS > 1) forward(1);
    if (LAYERS > 2) forward(2);
    if (LAYERS > 3) forward(3);
#ifdef GRAD
    load_dy();
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
    scale = rows == 0 ? 0.0 : 2.0 * dloss[0] / n; // without rows, gradients are 0
    loss = vec4(0);
#endif
    for (uint block = first; block < end; block++) {
        first_column = block * COLUMNS;
        barrier(); // all lanes have finished the previous block
        pass(block == first);
    }
#ifdef MSE
    put_loss(n);
#endif
}
