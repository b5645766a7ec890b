// hash_grid_dw.comp - dtable[e][f] = the sum of weight * dy[l * F + f][n] over the points n and corners whose entry is
// e. Entry e belongs to level l. An entry has F features.
//   A slice of the batch has its own table. One lane computes one level of one slice, point by point, and no other lane writes
//   this level's entries in this table. So sums follow the order of points, and the kernel needs no atomics, no sorted ids and
//   no search for lanes with the same entry. On a CPU, a kernel whose neighbouring lanes compute neighbouring points would not
//   be faster: a CPU driver accesses the table in a loop over the lanes in both cases. If there are several slices,
//   gemm_sum.comp adds their tables.
// ZERO: clears the tables.
// grid: x over levels * slices with a stride. ZERO: x over vec4s in contiguous shares. Any group count is right.
// Deterministic: each sum adds its products in the order of the points.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/hash_grid.abi.h"
layout(local_size_x_id = 0) in;
#ifdef ZERO
#include "lib/share.glsl"
layout(binding = HASH_GRID_TABLE, std430) writeonly buffer Table { vec4 table[]; };

void main()
{
    const uvec2 share = share_of(pc.floats / 4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x)
        table[pc.table_base / 4 + i] = vec4(0.0);
}
#else
#include "lib/load.glsl"
#include "lib/hash_grid.glsl"
VKT_IN4(HASH_GRID_Y, dy4);
layout(binding = HASH_GRID_TABLE, std430) buffer Table { float table[]; };
layout(binding = HASH_GRID_TABLE, std430) buffer Table2 { vec2 table2[]; };
layout(binding = HASH_GRID_TABLE, std430) buffer Table4 { vec4 table4[]; };

void add(uint at, uint q, vec4 v)
{
    if (FEATURES == 1) table[at] += v.x;
    else if (FEATURES == 2) table2[at / 2] += v.xy;
    else table4[at / 4 + q] += v;
}

void main()
{
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint t = gl_GlobalInvocationID.x; t < pc.levels * pc.slices; t += stride) {
        const uint slice = t / pc.levels, l = t % pc.levels, end = min((slice + 1) * pc.share, pc.n4);
        const uvec4 level = level_of[pc.level + l];
        for (uint i = slice * pc.share; i < end; i++) {
            const Cells c = cells_of(i, level.x);
            vec4 dy[4][MAX_QUADS];
            [[unroll]] for (uint f = 0; f < FEATURES; f++) {
                const vec4 v = LOAD4(dy4, pc.y_base + (l * FEATURES + f) * pc.n4 + i);
                [[unroll]] for (uint j = 0; j < 4; j++) dy[j][f / 4][f % 4] = v[j];
            }
            [[unroll]] for (uint j = 0; j < 4; j++)
                [[unroll]] for (uint k = 0; k < CORNERS; k++)
                    [[unroll]] for (uint q = 0; q < QUADS; q++)
                        add(slice * pc.floats + index_of(c, j, k, level), q, weight_of(c, j, k) * dy[j][q]);
        }
    }
}
#endif
