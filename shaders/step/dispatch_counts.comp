// dispatch_counts.comp - writes the work group counts of indirect dispatches that run only if a counter is large enough:
//   out[i] = table[i].xyz if counter > table[i].w, else (0, 0, 0)
// grid: x over the dispatches with a stride; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/dispatch_counts.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = COUNTS_TABLE, std430) readonly buffer Table { uvec4 table[]; };
layout(binding = COUNTS_COUNTER, std430) readonly buffer Counter { uint counter[]; };
layout(binding = COUNTS_OUT, std430) writeonly buffer Out { uint groups[]; };

void main()
{
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x, n = counter[0];
    for (uint i = gl_GlobalInvocationID.x; i < pc.n; i += stride) {
        const uvec4 row = table[i];
        const uvec3 out3 = n > row.w ? row.xyz : uvec3(0);
        groups[3 * i] = out3.x;
        groups[3 * i + 1] = out3.y;
        groups[3 * i + 2] = out3.z;
    }
}
