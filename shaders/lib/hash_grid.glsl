// hash_grid.glsl - shared by the hash-grid kernels: the grid cells of four points at one level. The points are the four samples
// of a vec4.
#define VKT_KERNEL
#include "vktrain/vktrain.glsl"
layout(constant_id = HASH_GRID_SPEC_DIMS) const uint DIMS = 2;
layout(constant_id = HASH_GRID_SPEC_FEATURES) const uint FEATURES = 2;
const uint CORNERS = 1u << DIMS, QUADS = (FEATURES + 3) / 4, MAX_QUADS = 2;
VKT_IN4(HASH_GRID_X, x4);
layout(binding = HASH_GRID_LEVEL, std430) readonly buffer Levels { uvec4 level_of[]; };

// The cells of four points, for each dimension (up to three).
struct Cells {
    uvec4 corner[3];  // lower corner of the cell
    vec4 fraction[3]; // position of the point in the cell, from 0 to 1
    bvec4 inside[3];  // true if this coordinate of the point is inside the grid, or is NaN
};

Cells cells_of(uint i, uint resolution)
{
    Cells c;
    [[unroll]] for (uint d = 0; d < 3; d++) {
        c.corner[d] = uvec4(0);
        c.fraction[d] = vec4(0.0);
        c.inside[d] = bvec4(true);
        if (d >= DIMS) continue;
        const vec4 x = LOAD4(x4, d * pc.n4 + i);
        const bvec4 below = lessThan(x, vec4(0.0)), above = greaterThan(x, vec4(1.0));
        vkt_hash_grid_cell(x, resolution, c.corner[d], c.fraction[d]);
        c.inside[d] = not(bvec4(uvec4(below) | uvec4(above)));
    }
    return c;
}

// Returns the index, in the table's binding, of the first feature of corner k of point j. level.z is the level's first entry.
// pc.first is the first entry of the dispatch's first level. The features of entry pc.first begin at index pc.table_base.
uint index_of(Cells c, uint j, uint k, uvec4 level)
{
    const uvec3 corner = uvec3(c.corner[0][j] + (k & 1u), c.corner[1][j] + (k >> 1 & 1u), c.corner[2][j] + (k >> 2));
    return pc.table_base + (level.z - pc.first + vkt_hash_grid_entry(corner, level)) * FEATURES;
}

// Returns the interpolation weight of corner k of point j along dimension d.
float share_along(Cells c, uint j, uint k, uint d)
{
    return (k >> d & 1u) != 0 ? c.fraction[d][j] : 1.0 - c.fraction[d][j];
}

float weight_of(Cells c, uint j, uint k)
{
    float w = share_along(c, j, k, 0) * share_along(c, j, k, 1);
    if (DIMS == 3) w *= share_along(c, j, k, 2);
    return w;
}
