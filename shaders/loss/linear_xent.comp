// linear_xent.comp - cross-entropy of a slice of the rows whose labels count, and its gradient, which overwrites the logits
//   part[first + i] = log sum_k exp z[i,k] - z[i,t]        for the rows i of the slice with first + i < count
//   GRADIENT: z[i,k] = dloss / norm * (softmax(z[i])[k] - (k == t)), and 0 for the other rows; norm = count, or 1 for a sum
//   t is the row's label, and count is the number of all rows whose labels count.
//   The logarithm is computed as m + log(1 + x), as in softmax_xent.comp. m = max_k z[i,k], and x is the sum of all terms
//   exp(z[i,k] - m) except one that is 1. So a loss near 0 keeps its digits.
// grid: x over rows with a stride, one work group per row.
// source: the gradient that overwrites the logits: Hsu et al., Liger Kernel: Efficient Triton Kernels for LLM Training (2024),
//         section 3.2, FusedLinearCrossEntropy
// Deterministic: the order of additions depends only on the shape, the lanes and the subgroup size.
// A sum adds partial sums of SPAN terms, so the error grows with classes / SPAN + SPAN, not with the classes.
// z and dz are the same memory. Only the lane that writes an element of dz reads this element of z.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/label_found.abi.h"
#include "abi/linear_xent.abi.h"
#include "lib/explog.glsl"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
layout(constant_id = LINEAR_XENT_SPEC_GRADIENT) const bool GRADIENT = false;
VKT_IN4(LINEAR_XENT_Z, z4);
layout(binding = LINEAR_XENT_T, std430) readonly buffer T { uint t[]; };
layout(binding = LINEAR_XENT_ROWS, std430) readonly buffer Rows { uint rows[]; };
layout(binding = LINEAR_XENT_FOUND, std430) readonly buffer Found { uint found[]; };
layout(binding = LINEAR_XENT_DLOSS, std430) readonly buffer Dloss { float dloss[]; };
layout(binding = LINEAR_XENT_PART, std430) writeonly buffer Part { float part[]; };
VKT_F32_OUT4(LINEAR_XENT_DZ, dz4);
const uint SPAN = 64; // vec4s
const float LOWEST = -3.402823466e38;

// Returns vec4 k of the logits of a row, with LOWEST behind the last class.
vec4 logits(uint base, uint k, uint classes)
{
    const vec4 z = LOAD4(z4, base + k);
    return mix(z, vec4(LOWEST), greaterThanEqual(4 * k + uvec4(0, 1, 2, 3), uvec4(classes)));
}

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

void row_of(uint i, uint base, float by)
{
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x, classes = pc.classes, n = (classes + 3) / 4;
    const uint label = t[rows[pc.first + i]];
    float z_label = 0.0;
    if (label / 4 % lanes == lane) z_label = LOAD4(z4, base + label / 4)[label % 4];
    z_label = sum_of_lanes(z_label);
    vec4 most = vec4(LOWEST);
    for (uint k = lane; k < n; k += lanes) most = max(most, logits(base, k, classes));
    const float m = max_of_lanes(max(max(most.x, most.y), max(most.z, most.w)));
    vec4 rest4 = vec4(0.0), top4 = vec4(0.0); // rest: sum of exp(z - m) over z < m; top: how many z equal m
    for (uint c = 0; c < n; c += SPAN * lanes) {
        const uint end = min(c + SPAN * lanes, n);
        vec4 span = vec4(0.0);
        for (uint k = c + lane; k < end; k += lanes) {
            const vec4 z = logits(base, k, classes);
            const bvec4 at_top = equal(z, vec4(m));
            span += mix(exp_1ulp(z - m), z - m, at_top); // if z = m, the term is 0, or NaN for infinite z
            top4 += mix(vec4(0.0), vec4(1.0), at_top);
        }
        rest4 += span;
    }
    const float rest = sum_of_lanes(sum_of(rest4)), top = sum_of_lanes(sum_of(top4)), inv = 1.0 / (top + rest);
    if (lane == 0) part[pc.first + i] = log1p_1ulp(top - 1.0 + rest) + (m - z_label);
    if (!GRADIENT) return;
    for (uint k = lane; k < n; k += lanes) {
        const vec4 p = exp_1ulp(logits(base, k, classes) - m) * inv;
        const vec4 hit = mix(vec4(0.0), vec4(1.0), equal(4 * k + uvec4(0, 1, 2, 3), uvec4(label)));
        STORE4(dz4, base + k, by * (p - hit));
    }
}

void main()
{
    const uint count = found[FOUND_COUNT], first = pc.first, pitch4 = pc.pitch4, lanes = gl_WorkGroupSize.x;
    const float by = GRADIENT ? dloss[0] / (pc.mean != 0 ? float(count) : 1.0) : 0.0;
    for (uint i = gl_WorkGroupID.x; i < pc.rows; i += gl_NumWorkGroups.x) {
        const uint base = i * pitch4;
        if (first + i < count) row_of(i, base, by);
        else if (GRADIENT)
            for (uint k = gl_LocalInvocationID.x; k < pitch4; k += lanes) STORE4(dz4, base + k, vec4(0.0));
    }
}
