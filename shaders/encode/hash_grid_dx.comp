// hash_grid_dx.comp - the gradient with respect to the points:
//   dx[d][n] = sum over levels l of N(l) * (sum over features f of dy[l * F + f][n] * slope(l,f,d,n))
//   N(l) is the resolution of level l. slope(l,f,d,n) is the derivative of the interpolated feature f along dimension d at
//   x[n], if a cell has length 1. dx[d][n] is 0 if the point is outside the grid along d.
// A lane computes the levels one after the other. It stores the first level's sum in dx, and adds each further level's sum to
// dx. KEEP: it adds the first level's sum to dx, too, because dx has the sum of an earlier dispatch.
// grid: x over vec4s of the batch in contiguous shares; any group count is right.
// Deterministic: one lane computes an element.
// Elements past the batch become 0, because they are 0 in dy.
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
layout(constant_id = HASH_GRID_SPEC_KEEP) const uint KEEP = 0;
VKT_IN4(HASH_GRID_Y, dy4);
VKT_INOUT4(HASH_GRID_DX, dx4);

// Computes gain[d][j]: the derivative of the loss with respect to coordinate d of point j, but only the part of this
// level. The unit of the coordinate is the length of a cell.
void rise(Cells c, uvec4 level, vec4 dy[4][MAX_QUADS], out vec4 gain[3])
{
    [[unroll]] for (uint d = 0; d < 3; d++) gain[d] = vec4(0.0);
    [[unroll]] for (uint j = 0; j < 4; j++)
        [[unroll]] for (uint k = 0; k < CORNERS; k++) {
            const uint at = index_of(c, j, k, level);
            float v = 0.0;
            [[unroll]] for (uint q = 0; q < QUADS; q++) v += dot(dy[j][q], features_at(at, q));
            [[unroll]] for (uint d = 0; d < DIMS; d++) {
                float w = (k >> d & 1u) != 0 ? v : -v;
                [[unroll]] for (uint e = 0; e < DIMS; e++)
                    if (e != d) w *= share_along(c, j, k, e);
                gain[d][j] += w;
            }
        }
}

void main()
{
    const uvec2 share = share_of(pc.n4);
    for (uint l = 0; l < pc.levels; l++) { // level by level, so that one level's table stays in the cache
        const uvec4 level = level_of[pc.level + l];
        for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
            const Cells c = cells_of(i, level.x);
            vec4 dy[4][MAX_QUADS], gain[3];
            [[unroll]] for (uint j = 0; j < 4; j++)
                [[unroll]] for (uint q = 0; q < QUADS; q++) dy[j][q] = vec4(0.0);
            [[unroll]] for (uint f = 0; f < FEATURES; f++) {
                const vec4 v = LOAD4(dy4, pc.y_base + (l * FEATURES + f) * pc.n4 + i);
                [[unroll]] for (uint j = 0; j < 4; j++) dy[j][f / 4][f % 4] = v[j];
            }
            rise(c, level, dy, gain);
            [[unroll]] for (uint d = 0; d < DIMS; d++) {
                vec4 sum = mix(vec4(0.0), float(level.x) * gain[d], c.inside[d]);
                if (l > 0 || KEEP != 0) sum += LOAD4(dx4, d * pc.n4 + i);
                STORE4(dx4, d * pc.n4 + i, sum);
            }
        }
    }
}
