// latent_grid_dw.comp - gradient of latent_grid.comp by gathering: dgrid[f][v][u] = the sum of weight * dy over the texels
// of the tile that read cell (v, u). A cell that no texel reads becomes 0.
//   A lane owns a cell of a feature. It visits the texels that read the cell, four neighbours at once. A texel among the four
//   that does not read the cell has weight 0.
// grid: x over cells in contiguous shares, y over features with a stride; any group count is right.
// Deterministic: one lane sums in a fixed order.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/latent_grid.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#include "lib/latent_grid.glsl"
layout(local_size_x_id = 0) in;
layout(binding = LATENT_GRID, std430) writeonly buffer Grid { float grid[]; };
VKT_IN4(LATENT_GRID_Y, dy4);

const uvec4 FOUR = uvec4(0, 1, 2, 3);

// Returns (low, high) for one axis: texels low .. high - 1 of a tile of `size` texels read cell c. The tile starts at texel
// `start` of the image. A texel that needs a cell outside the grid reads the nearest cell at the edge instead.
//   CORNERS: the range has only texels whose cell `first` (side 0) or `second` (side 1) is c (lib/latent_grid.glsl).
//   Without CORNERS: the range has the texels of both sides, and `side` is not used.
uvec2 readers(uint c, uint side, uint cells, uint start, uint size)
{
    const int begin = int(c * SCALE + SCALE / 2), width = int(SCALE), from = int(start);
    int low = begin, high = begin + width;
    if (CORNERS == 0 || side == 1) low -= width;
    if (CORNERS == 1 && side == 1) high -= width;
    if (c == 0) low = from;
    if (c == cells - 1) high = from + int(size);
    return uvec2(clamp(ivec2(low, high) - from, ivec2(0), ivec2(size)));
}

// Returns true if some texel of the tile reads cell c, as `first` or as `second`.
bool is_read(uint c, uint cells, uint start, uint size)
{
    const uvec2 first = readers(c, 0, cells, start, size), second = readers(c, 1, cells, start, size);
    return first.x < first.y || second.x < second.y;
}

// Without CORNERS: returns the weights that four texels of the image give to cell c. A weight is 1 minus the distance between
// texel and centre of the cell, in cells, or 0 if the distance is above 1. Texels between the centre of an edge cell and the
// edge of the grid have weight 1.
vec4 weights(uvec4 texel, uint c, uint cells)
{
    ivec4 at = ivec4(2 * texel + 1) - int((2 * c + 1) * SCALE);
    if (c == 0) at = max(at, ivec4(0));
    if (c == cells - 1) at = min(at, ivec4(0));
    return max(1.0 - abs(vec4(at)) / float(2 * SCALE), vec4(0.0));
}

// Returns 1 for each of the four texels that is in the range, else 0: the weights with CORNERS.
vec4 inside(uvec4 texel, uvec2 range)
{
    return vec4(greaterThanEqual(texel, uvec4(range.x))) * vec4(lessThan(texel, uvec4(range.y)));
}

void main()
{
    const uint row4 = pc.row4, n4 = pc.rows * row4, width = pc.width, height = pc.height, plane = height * width;
    const uint y0 = start_of(0, pc.rows, height), x0 = start_of(1, 4 * row4, width);
    const uint features = pc.features, base = pc.grid_base, y_base = pc.y_base;
    const uint sides = CORNERS == 1 ? 2 : 1;
    const uvec2 share = share_of(plane);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint cv = i / width, cu = i % width;
        if (!is_read(cv, height, y0, pc.rows) || !is_read(cu, width, x0, 4 * row4)) { // most cells if the tile is small
            for (uint f = gl_WorkGroupID.y; f < features; f += gl_NumWorkGroups.y) grid[base + f * plane + i] = 0.0;
            continue;
        }
        for (uint f = gl_WorkGroupID.y; f < features; f += gl_NumWorkGroups.y) {
            float sum = 0.0;
            for (uint k = 0; k < sides * sides; k++) {
                const uvec2 row = readers(cv, k / 2, height, y0, pc.rows), column = readers(cu, k % 2, width, x0, 4 * row4);
                const uint at = y_base + (f * sides * sides + k) * n4;
                for (uint q = row.x < row.y ? column.x / 4 : row4; 4 * q < column.y; q++) {
                    const vec4 wu = CORNERS == 1 ? inside(4 * q + FOUR, column) : weights(x0 + 4 * q + FOUR, cu, width);
                    vec4 line = vec4(0.0);
                    for (uint r = row.x; r < row.y; r++) {
                        const vec4 dy = LOAD4(dy4, at + r * row4 + q);
                        line += CORNERS == 1 ? dy : weights(uvec4(y0 + r), cv, height).x * dy;
                    }
                    sum += dot(wu, line);
                }
            }
            grid[base + f * plane + i] = sum;
        }
    }
}
