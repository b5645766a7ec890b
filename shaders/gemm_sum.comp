// gemm_sum.comp - adds the slices of k that gemm_shared.comp made, first to last:  C[i] (+)= sum_s part[s][i] (+ bias[i % N])
// grid: x over the elements (stride loop). Deterministic.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/gemm_sum.abi.h"
layout(local_size_x_id = 0) in;
layout(constant_id = GEMM_SUM_SPEC_ACCUMULATE) const bool ACCUMULATE = false;
layout(constant_id = GEMM_SUM_SPEC_BIAS) const bool BIAS = false;
layout(binding = GEMM_SUM_PART, std430) readonly buffer Part { float part[]; };
layout(binding = GEMM_SUM_C, std430) buffer C { float c[]; };
layout(binding = GEMM_SUM_BIAS, std430) readonly buffer Bias { float bias[]; };

void main()
{
    for (uint i = gl_GlobalInvocationID.x; i < pc.n; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        float sum = 0.0;
        for (uint s = 0; s < pc.slices; s++) sum += part[s * pc.n + i];
        if (BIAS) sum += bias[i % pc.columns];
        c[pc.c_base + i] = ACCUMULATE ? c[pc.c_base + i] + sum : sum;
    }
}
