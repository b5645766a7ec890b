// nll_dx.comp - dz[b,k] = -dloss / norm * w[k] if b < rows, k = t[b] and the label is not ignored. Else dz[b,k] = 0.
//   EACH: dloss[b] instead of dloss / norm.
//   dz: batch last, four samples per lane. ROWS: row-major, four elements per lane.
// grid: x over dz in contiguous shares; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/nll_dx.abi.h"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = NLL_DX_SPEC_WEIGHTED) const uint WEIGHTED = 0;
layout(constant_id = NLL_DX_SPEC_EACH) const bool EACH = false;
layout(binding = NLL_DX_T, std430) readonly buffer T { uint t[]; };
layout(binding = NLL_DX_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = NLL_DX_DLOSS, std430) readonly buffer Dloss { float dloss[]; };
layout(binding = NLL_DX_NORM, std430) readonly buffer Norm { float norm[]; };
layout(binding = NLL_DX_WEIGHT, std430) readonly buffer Weight { float weight[]; };
layout(binding = NLL_DX_DZ, std430) writeonly buffer Dz4 { vec4 dz4[]; };
layout(binding = NLL_DX_DZ, std430) writeonly buffer Dz1 { float dz[]; };

float gradient(uint b, uint k, uint rows, float scale)
{
    const bool hit = b < rows && t[b] == k && k != pc.ignore;
    return hit ? -(EACH ? dloss[b] : scale) * (WEIGHTED != 0 ? weight[k] : 1.0) : 0.0;
}

// Returns elements 4i .. 4i+3 of the dispatch's part of dz.
vec4 gradients(uint i, uint rows, float scale)
{
    vec4 g;
    for (uint j = 0; j < 4; j++)
#ifdef ROWS
        g[j] = gradient(pc.first + (4 * i + j) / pc.classes, (4 * i + j) % pc.classes, rows, scale);
#else
        g[j] = gradient(4 * (i % pc.pitch4) + j, i / pc.pitch4, rows, scale);
#endif
    return g;
}

void main()
{
    const uint rows = min(step[STEP_ROWS], pc.batch / pc.group) * pc.group, whole = pc.n / 4;
    const float scale = dloss[0] / norm[0];
    const uvec2 share = share_of(whole);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) dz4[i] = gradients(i, rows, scale);
    if (gl_GlobalInvocationID.x == 0 && pc.n % 4 != 0) {
        const vec4 tail = gradients(whole, rows, scale);
        for (uint k = 0; k < pc.n % 4; k++) dz[4 * whole + k] = tail[k];
    }
}
