// embedding_scatter.comp - sorted[start[id] + rank[p]] = (id, where the gradient of position p starts), id = ids[p]; and zeros for a
// window of the table, of whose rows embedding_sum writes only those that have an id
// grid: x over positions and over vec4s of the window, both in contiguous shares. Deterministic: every place is written once.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/embedding_dw.abi.h"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(binding = EMBEDDING_DW_IDS, std430) readonly buffer Ids { uint ids[]; };
layout(binding = EMBEDDING_DW_START, std430) readonly buffer Start { uint start[]; };
layout(binding = EMBEDDING_DW_RANK, std430) readonly buffer Rank { uint rank[]; };
layout(binding = EMBEDDING_DW_SORTED, std430) writeonly buffer Sorted { uvec2 sorted[]; };
layout(binding = EMBEDDING_DW_OUT, std430) writeonly buffer Out4 { vec4 y4[]; };
layout(binding = EMBEDDING_DW_OUT, std430) writeonly buffer Out { float y[]; };

void main()
{
    const uvec2 places = share_of(pc.end);
    for (uint p = places.x + gl_LocalInvocationID.x; p < places.y; p += gl_WorkGroupSize.x) {
        const uint id = ids[p];
        if (id != pc.padding && id < pc.rows)
            sorted[start[id] + rank[p]] = uvec2(id, p / pc.per_sample * pc.outer + p % pc.per_sample * pc.inner);
    }
    const uvec2 zeros = share_of(pc.zeros / 4);
    for (uint i = zeros.x + gl_LocalInvocationID.x; i < zeros.y; i += gl_WorkGroupSize.x) y4[i] = vec4(0.0);
    if (gl_GlobalInvocationID.x < pc.zeros % 4) y[pc.zeros / 4 * 4 + gl_GlobalInvocationID.x] = 0.0;
}
