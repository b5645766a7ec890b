// mlp_line.comp - one narrow layer with a mean squared error, forward and backward in one pass over the samples:
//   d = w x + b - t for the real samples of the batch, else 0; t is the target, and w has M rows of K weights
//   loss = (sum of d^2) / n,  n = number of real samples * M
//   dw = 2 / n * dloss * sum of d x^T,  db = 2 / n * dloss * sum of d
// A lane processes vec4s of four samples. Each sum of the lane is a vec4, with an element for each of the four samples. On
// llvmpipe, every sum that is needed longer than an iteration costs a masked copy per iteration. So a lane processes two vec4s
// of samples per iteration.
// grid: x: one work group for `per_group` vec4s of samples. mlp_sum.comp adds the PARTs of the work groups
//       (abi/mlp_layout.abi.h).
// Deterministic: the order of additions depends only on the shape, the subgroup size and per_group.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/mlp_layout.abi.h"
#include "abi/mlp_line.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = MLP_LINE_SPEC_LANES) in;
layout(constant_id = MLP_LINE_SPEC_LANES) const uint LANES = 8;
layout(constant_id = MLP_LINE_SPEC_K) const uint K = 1;
layout(constant_id = MLP_LINE_SPEC_M) const uint M = 1;
layout(constant_id = MLP_LINE_SPEC_BIAS) const bool BIAS = true;
VKT_IN4(MLP_LINE_X, x4);
VKT_IN4(MLP_LINE_T, t4);
layout(binding = MLP_LINE_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = MLP_LINE_W, std430) readonly buffer W { float w_in[]; };
layout(binding = MLP_LINE_B, std430) readonly buffer B { float b_in[]; };
layout(binding = MLP_LINE_DLOSS, std430) readonly buffer Dloss { float dloss[]; };
layout(binding = MLP_LINE_PART, std430) writeonly buffer Part { vec4 part[]; };

const uint ITERATIONS = 2, COLUMNS = K + 1;
float w[M * COLUMNS];   // (M, K+1): column K is the bias
vec4 sums[M * COLUMNS]; // sums of d x^T and of d
vec4 loss;

void add(uint i, uint end, uint rows)
{
    const uint column = min(i, pc.n4 - 1);
    const bvec4 real = lessThan(4 * i + uvec4(0, 1, 2, 3), uvec4(i < end ? rows : 0));
    vec4 x[K];
    [[unroll]] for (uint k = 0; k < K; k++) x[k] = LOAD4(x4, k * pc.n4 + column);
    [[unroll]] for (uint o = 0; o < M; o++) {
        vec4 d = vec4(w[o * COLUMNS + K]);
        [[unroll]] for (uint k = 0; k < K; k++) d += w[o * COLUMNS + k] * x[k];
        d = mix(vec4(0), d - LOAD4(t4, o * pc.n4 + column), real);
        loss += d * d;
        [[unroll]] for (uint k = 0; k < K; k++) sums[o * COLUMNS + k] += d * x[k];
        sums[o * COLUMNS + K] += d;
    }
}

// Returns the sum of v over all lanes. The function has no loop, because a loop that is not unrolled prevents the
// unrolling of the loops around it.
float over_lanes(vec4 v)
{
    float sum = (v.x + v.y) + (v.z + v.w);
    if (LANES > 1) sum += subgroupShuffleXor(sum, 1);
    if (LANES > 2) sum += subgroupShuffleXor(sum, 2);
    if (LANES > 4) sum += subgroupShuffleXor(sum, 4);
    if (LANES > 8) sum += subgroupShuffleXor(sum, 8);
    if (LANES > 16) sum += subgroupShuffleXor(sum, 16);
    if (LANES > 32) sum += subgroupShuffleXor(sum, 32);
    if (LANES > 64) sum += subgroupShuffleXor(sum, 64);
    return sum;
}

void main()
{
    const uint lane = gl_LocalInvocationID.x, rows = min(step[STEP_ROWS], pc.batch);
    const uint end = min((gl_WorkGroupID.x + 1) * pc.per_group, pc.n4);
    [[unroll]] for (uint i = 0; i < M * COLUMNS; i++) {
        const uint o = i / COLUMNS, k = i - o * COLUMNS;
        w[i] = k < K ? w_in[o * K + min(k, K - 1)] : BIAS ? b_in[o] : 0.0;
        sums[i] = vec4(0);
    }
    loss = vec4(0);
    uint i = gl_WorkGroupID.x * pc.per_group + lane;
    do {
        [[unroll]] for (uint t = 0; t < ITERATIONS; t++) add(i + t * LANES, end, rows);
        i += ITERATIONS * LANES;
    } while (i < end);

    const float n = float(rows) * float(M), scale = rows == 0 ? 0.0 : 2.0 * dloss[0] / n; // without rows, gradients are 0
    const bool b_is_output = MLP_B_IS_OUTPUT(K, M, LANES);
    const uint A = b_is_output ? COLUMNS : M, B = b_is_output ? M : COLUMNS; // B <= 4 * LANES
    const uint at = gl_WorkGroupID.x * pc.part + lane;
    [[unroll]] for (uint a = 0; a < A; a++) {
        vec4 c = vec4(0);
        [[unroll]] for (uint b = 0; b < B; b++) {
            const float total = over_lanes(sums[b_is_output ? b * COLUMNS + a : a * COLUMNS + b]);
            if (lane == b % LANES) c[b / LANES] = scale * total;
        }
        part[at + a * LANES] = c;
    }
    part[at + A * LANES] = loss / n;
}
