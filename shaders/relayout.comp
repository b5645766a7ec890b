// relayout.comp - TO: y[f][n] = x[n][f], 0 for batch <= n < 4 pitch4;  else back: y[n][f] = x[f][n]. Words, whatever they mean.
//   A lane moves four samples of one feature.
// grid: x over features * pitch4 with a stride; any group count is right. Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/relayout.abi.h"
layout(local_size_x_id = 0) in;
#ifdef TO
layout(binding = RELAYOUT_X, std430) readonly buffer X { uint x[]; };
layout(binding = RELAYOUT_Y, std430) writeonly buffer Y { uvec4 y4[]; };
#else
layout(binding = RELAYOUT_X, std430) readonly buffer X { uvec4 x4[]; };
layout(binding = RELAYOUT_Y, std430) writeonly buffer Y { uint y[]; };
#endif

void main()
{
    const uint n = pc.features * pc.pitch4, stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += stride) {
        const uint f = i / pc.pitch4, b = 4 * (i % pc.pitch4);
#ifdef TO
        uvec4 v = uvec4(0u);
        for (uint k = 0; k < 4; k++)
            if (b + k < pc.batch) v[k] = x[(b + k) * pc.features + f];
        y4[i] = v;
#else
        const uvec4 v = x4[i];
        for (uint k = 0; k < 4; k++)
            if (b + k < pc.batch) y[(b + k) * pc.features + f] = v[k];
#endif
    }
}
