// embedding.comp - y[p][d] = table[ids[p]][d], or 0 if ids[p] is not a row of the table. An id that is not a row is
// never used as an index. A table that is larger than a binding is split into ranges of rows. A dispatch reads one
// range. KEEP: the range is not the first one, and y does not change for ids outside the range.
//   CHANNELS: y[d][l][b] = table[ids[b][l]][d], batch last, 0 past the batch. A lane processes four samples and transposes 4x4
//   numbers.
//   WIDE: rows are whole vec4s. CHANNELS without WIDE: a lane loads two vec4s and shifts them, because a row may start inside a
//   vec4. Neither CHANNELS nor WIDE: a lane copies four numbers one by one.
// grid: x over vec4s of y in contiguous shares. CHANNELS: x over (l, four samples), y over chunks of features, both with a
//       stride.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/embedding.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = EMBEDDING_SPEC_KEEP) const uint KEEP = 0;
#ifdef CHANNELS
VKT_WORDS(EMBEDDING_IDS, ids);
#else
layout(binding = EMBEDDING_IDS, std430) readonly buffer Ids { uint ids[]; };
#endif
#if defined(WIDE) || defined(CHANNELS)
VKT_IN4(EMBEDDING_TABLE, table4);
#else
layout(binding = EMBEDDING_TABLE, std430) readonly buffer Table { float table[]; };
#endif
#ifdef CHANNELS
VKT_STORED(EMBEDDING_Y, , y)
#elif defined(WIDE)
VKT_OUT4(EMBEDDING_Y, y4)
#else
layout(binding = EMBEDDING_Y, std430) writeonly buffer Y4 { vec4 y4[]; };
#endif

bool is_here(uint row) { return row >= pc.row_begin && row < pc.row_end; }

#ifdef CHANNELS
// Returns elements d .. d + 3 of a row of the range. Elements past the row's end are unspecified.
vec4 numbers(uint row, uint d)
{
    const uint at = row * pc.width + d;
    const vec4 v = LOAD4(table4, at / 4);
#ifdef WIDE
    return v;
#else
    const vec4 w = LOAD4(table4, min(at / 4 + 1, ((pc.row_end - pc.row_begin) * pc.width - 1) / 4));
    const bool two = (at & 2) != 0, one = (at & 1) != 0;
    const vec4 from = two ? vec4(v.zw, w.xy) : v;
    return one ? vec4(from.yzw, two ? w.z : w.x) : from;
#endif
}

void main()
{
    const uint columns = pc.per_sample * pc.pitch4, end = pc.feature + pc.features, chunk = 4 * EMBEDDING_CHUNK;
    for (uint i = gl_GlobalInvocationID.x; i < columns; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        uint row[4];
        bvec4 here;
        [[unroll]] for (uint k = 0; k < 4; k++) {
            const uint b = i % pc.pitch4 * 4 + k;
            row[k] = b < pc.batch ? LOAD1(ids, b * pc.per_sample + i / pc.pitch4) : 0xffffffffu;
            here[k] = is_here(row[k]);
            row[k] = here[k] ? row[k] - pc.row_begin : 0u;
        }
        for (uint c = pc.feature + gl_WorkGroupID.y * chunk; c < end; c += gl_NumWorkGroups.y * chunk)
            for (uint d = c; d < min(c + chunk, end); d += 4) {
                vec4 v[4];
                [[unroll]] for (uint k = 0; k < 4; k++) v[k] = numbers(row[k], d);
                [[unroll]] for (uint j = 0; j < 4; j++) {
                    const uint o = (d + j - pc.feature) * columns + i;
                    if (d + j < end)
                        y_put(o, mix(KEEP != 0 ? y_stored[o] : vec4(0.0), vec4(v[0][j], v[1][j], v[2][j], v[3][j]), here));
                }
            }
    }
}
#elif defined(WIDE)
void main()
{
    const uint width4 = pc.width / 4;
    const uvec2 share = share_of(pc.positions * width4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint row = ids[pc.first + i / width4];
        const bool here = is_here(row);
        const vec4 v = LOAD4(table4, here ? (row - pc.row_begin) * width4 + i % width4 : 0u);
        const vec4 to = mix(vec4(0.0), v, bvec4(here));
        if (here || KEEP == 0) {
            if (STORED_AS(EMBEDDING_Y) == STORAGE_F32) y4_stored[i] = to;
            else STORE4(y4, i, to);
        }
    }
}
#else
layout(binding = EMBEDDING_Y, std430) writeonly buffer Y1 { float y[]; };

void main()
{
    const uint n = pc.positions * pc.width;
    const uvec2 share = share_of((n + 3) / 4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        vec4 v = vec4(0.0);
        bvec4 here = bvec4(false);
        uint p = 4 * i / pc.width, d = 4 * i % pc.width;
        [[unroll]] for (uint j = 0; j < 4; j++)
            if (4 * i + j < n) {
                const uint row = ids[pc.first + p];
                here[j] = is_here(row);
                if (here[j]) v[j] = table[(row - pc.row_begin) * pc.width + d];
                d++;
                if (d == pc.width) {
                    d = 0;
                    p++;
                }
            }
        if (KEEP == 0 && 4 * i + 4 <= n) y4[i] = v;
        else
            [[unroll]] for (uint j = 0; j < 4; j++)
                if (4 * i + j < n && (here[j] || KEEP == 0)) y[4 * i + j] = v[j];
    }
}
#endif
