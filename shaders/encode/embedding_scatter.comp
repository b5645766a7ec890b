// embedding_scatter.comp - for each counted position p (abi/embedding_dw.abi.h): sorted[start[id] + rank[p]] = (id, index of
//   the first float of the gradient of position p), where id is ids[p]
//   COPY: rows of dy are not whole vec4s, or dy is batch last (CHANNELS). So each gradient is copied, in the order
//   of `sorted`, and padded to vec4s.
//   The kernel also clears a range of dtable, because embedding_sum writes only rows that have entries in `sorted`.
// grid: x over positions, and over vec4s of the range, each in contiguous shares. CHANNELS: instead of positions, x over
//       (index of an id in its sample, four samples). y over chunks of vec4s of the copied rows. Only work groups of the first
//       chunk write `sorted` and clear the range.
// Deterministic: every element is written once.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/embedding_dw.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_WORDS(EMBEDDING_DW_IDS, ids);
VKT_WORDS(EMBEDDING_DW_START, start);
VKT_WORDS(EMBEDDING_DW_RANK, rank);
layout(binding = EMBEDDING_DW_SORTED, std430) writeonly buffer Sorted { uvec2 sorted[]; };
#ifdef CHANNELS
VKT_IN4(EMBEDDING_DW_DY, dy4);
#elif defined(COPY)
VKT_IN1(EMBEDDING_DW_DY, dy);
#endif
#ifdef COPY
VKT_STORED(EMBEDDING_DW_COPY, writeonly, rows)
#endif
VKT_STORED(EMBEDDING_DW_OUT, writeonly, y)
layout(binding = EMBEDDING_DW_OUT, std430) writeonly buffer Out { float y1[]; };
const uint NONE = 0xffffffffu;

// Writes the entry of position p to `sorted`. Returns the index of the entry, or NONE if p is not counted. `at`: index of the
// gradient's first float in dy. With COPY, `at` is not used: the entry gets the index in the copy.
uint position_of(uint p, uint at)
{
    const uint id = p < pc.end ? LOAD1(ids, p) : NONE;
    const bool counts = id != pc.padding && id < pc.rows;
    const uint position = LOAD1(start, counts ? id : 0) + LOAD1(rank, counts ? p : 0);
#ifdef COPY
    at = position * ((pc.width + 3) / 4 * 4);
#endif
    if (counts && gl_WorkGroupID.y == 0) sorted[position] = uvec2(id, at);
    return counts ? position : NONE;
}

void clear()
{
    if (gl_WorkGroupID.y > 0) return;
    const uvec2 share = share_of(pc.zeros / 4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) y_put(i, vec4(0.0));
    if (gl_GlobalInvocationID.x < pc.zeros % 4) y1[pc.zeros / 4 * 4 + gl_GlobalInvocationID.x] = 0.0;
}

uint first_of_chunk() { return gl_WorkGroupID.y * EMBEDDING_DW_CHUNK; }
uint end_of_chunk(uint width4) { return min(first_of_chunk() + EMBEDDING_DW_CHUNK, width4); }

#ifdef CHANNELS
void main()
{
    clear();
    const uint columns = pc.per_sample * pc.pitch4, width4 = (pc.width + 3) / 4, batch = pc.end / pc.per_sample;
    const uvec2 share = share_of(pc.end == 0 ? 0 : columns);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint l = i / pc.pitch4, b = 4 * (i - l * pc.pitch4);
        uint position[4];
        [[unroll]] for (uint k = 0; k < 4; k++)
            position[k] = position_of(b + k < batch ? (b + k) * pc.per_sample + l : NONE, 0);
        for (uint q = first_of_chunk(); q < end_of_chunk(width4); q++) {
            vec4 v[4];
            [[unroll]] for (uint j = 0; j < 4; j++) v[j] = LOAD4(dy4, min(4 * q + j, pc.width - 1) * columns + i);
            [[unroll]] for (uint k = 0; k < 4; k++)
                if (position[k] != NONE) rows_put(position[k] * width4 + q, vec4(v[0][k], v[1][k], v[2][k], v[3][k]));
        }
    }
}
#else
void main()
{
    clear();
    const uvec2 share = share_of(pc.end);
    for (uint p = share.x + gl_LocalInvocationID.x; p < share.y; p += gl_WorkGroupSize.x) {
        const uint position = position_of(p, p * pc.width);
#ifdef COPY
        const uint width4 = (pc.width + 3) / 4;
        for (uint q = first_of_chunk(); q < end_of_chunk(width4); q++) {
            vec4 v;
            [[unroll]] for (uint j = 0; j < 4; j++) v[j] = LOAD1(dy, p * pc.width + min(4 * q + j, pc.width - 1));
            if (position != NONE) rows_put(position * width4 + q, v);
        }
#endif
    }
}
#endif
