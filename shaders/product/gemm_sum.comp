// gemm_sum.comp - adds arrays of n floats. The arrays are stored one after the other, and are added in this order. For
// instance, they are sums over slices of k from gemm_shared.comp or conv/shared.comp, or tables from hash_grid_dw.comp.
//   C[i] (+)= sum_s part[s][i] (+ bias[i % N]),  N = columns of C
//   WIDE: by vec4s; n, N and c_base are multiples of 4. If C is stored in 16 bits, WIDE is required.
// grid: x over the elements; WIDE: over vec4s (stride loop).
// Deterministic: one lane computes an element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/gemm_sum.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = GEMM_SUM_SPEC_ACCUMULATE) const bool ACCUMULATE = false;
layout(constant_id = GEMM_SUM_SPEC_BIAS) const bool BIAS = false;

#ifdef WIDE
VKT_IN4(GEMM_SUM_PART, part);
VKT_INOUT4(GEMM_SUM_C, c);
VKT_IN4(GEMM_SUM_BIAS, bias);

void main()
{
    const uint n4 = pc.n / 4, columns4 = pc.columns / 4, base4 = pc.c_base / 4, slices = pc.slices;
    for (uint i = gl_GlobalInvocationID.x; i < n4; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        vec4 sum = vec4(0.0);
        for (uint s = 0, at = i; s < slices; s++, at += n4) sum += LOAD4(part, at);
        if (BIAS) sum += LOAD4(bias, i % columns4);
        if (ACCUMULATE) sum += LOAD4(c, base4 + i);
        STORE4(c, base4 + i, sum);
    }
}
#else
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
#endif
