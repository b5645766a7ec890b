// hash_grid.comp - y[l * F + f][n] = the sum of weight * feature f over the corners of a cell. The cell is the one in the grid
// of level l that contains point x[n], with coordinates clamped to [0, 1]. Each corner has an entry in the table, with
// F features. The weights are those of linear interpolation.
// grid: x over vec4s of the batch in contiguous shares, y over levels with a stride; any group count is right.
// source: Mueller, Evans, Schied & Keller, Instant Neural Graphics Primitives with a Multiresolution Hash Encoding (2022),
//         section 3
// Deterministic: one lane computes an element.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/hash_grid.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#include "lib/hash_grid.glsl"
#include "lib/hash_grid_table.glsl"
layout(local_size_x_id = 0) in;
VKT_OUT4(HASH_GRID_Y, y4);

void main()
{
    const uvec2 share = share_of(pc.n4);
    for (uint l = gl_WorkGroupID.y; l < pc.levels; l += gl_NumWorkGroups.y) {
        const uvec4 level = level_of[pc.level + l];
        for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
            const Cells c = cells_of(i, level.x);
            vec4 sum[4][MAX_QUADS];
            [[unroll]] for (uint j = 0; j < 4; j++)
                [[unroll]] for (uint q = 0; q < QUADS; q++) {
                    sum[j][q] = vec4(0.0);
                    [[unroll]] for (uint k = 0; k < CORNERS; k++)
                        sum[j][q] += weight_of(c, j, k) * features_at(index_of(c, j, k, level), q);
                }
            [[unroll]] for (uint f = 0; f < FEATURES; f++)
                STORE4(y4, pc.y_base + (l * FEATURES + f) * pc.n4 + i,
                       vec4(sum[0][f / 4][f % 4], sum[1][f / 4][f % 4], sum[2][f / 4][f % 4], sum[3][f / 4][f % 4]));
        }
    }
}
