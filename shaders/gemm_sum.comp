// gemm_sum.comp - adds the slices of k that gemm_shared.comp made, first to last:  C[i] (+)= sum_s part[s][i] (+ bias[i % N])
// A C that is stored in 16 bits is whole vec4s.
// grid: x over the elements, or vec4s (stride loop). Deterministic.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/gemm_sum.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = GEMM_SUM_SPEC_ACCUMULATE) const bool ACCUMULATE = false;
layout(constant_id = GEMM_SUM_SPEC_BIAS) const bool BIAS = false;
layout(binding = GEMM_SUM_PART, std430) readonly buffer Part { float part[]; };
layout(binding = GEMM_SUM_C, std430) buffer C { float c[]; };
layout(binding = GEMM_SUM_C, std430) writeonly buffer C2 { uvec2 c_half[]; };
layout(binding = GEMM_SUM_BIAS, std430) readonly buffer Bias { float bias[]; };

float sum_of(uint i)
{
    float sum = 0.0;
    for (uint s = 0; s < pc.slices; s++) sum += part[s * pc.n + i];
    if (BIAS) sum += bias[i % pc.columns];
    return sum;
}

void main()
{
    const uint first = gl_GlobalInvocationID.x, stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    if (STORED_AS(GEMM_SUM_C) == STORAGE_F32) {
        for (uint i = first; i < pc.n; i += stride) {
            const float sum = sum_of(i);
            c[pc.c_base + i] = ACCUMULATE ? c[pc.c_base + i] + sum : sum;
        }
    } else {
        for (uint i = first; i < pc.n / 4; i += stride) {
            const vec4 sum = vec4(sum_of(4 * i), sum_of(4 * i + 1), sum_of(4 * i + 2), sum_of(4 * i + 3));
            c_half[pc.c_base / 4 + i] = narrow(sum, STORED_AS(GEMM_SUM_C));
        }
    }
}
