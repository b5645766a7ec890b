// latent_grid_dw.comp - gradient of latent_grid.comp by gathering: dgrid[f][v][u] = the sum of weight * dy over the texels
// of the tile that read cell (v, u). A cell that no texel reads becomes 0.
//   A lane owns a cell of a feature. It visits the texels that may read the cell, row by row, four at once. Texels that do
//   not read it have the weight 0.
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

// Returns (first, end): texels first .. end - 1 of a tile of `size` texels, which starts at texel `start` of the image, have
// cell c as `first` (side 0) or as `second` (side 1). Cells at the edge of the grid also stand for those outside.
uvec2 readers(uint c, uint side, uint cells, uint start, uint size)
{
    const int begin = int(c * SCALE + SCALE / 2) - int(side * SCALE), from = int(min(start, 0x01000000u));
    const bool at_left = c == 0, at_right = c == cells - 1;
    const int low = at_left ? from : begin;
    const int high = at_right ? from + int(size) : begin + int(SCALE);
    return uvec2(clamp(ivec2(low, high) - from, ivec2(0), ivec2(size)));
}

// Returns the weights along one axis of four texels for cell c as `first` (side 0) or as `second` (side 1).
vec4 weights(Cells t, uint c, uint side)
{
    const vec4 here = vec4(equal(side == 0 ? t.first : t.second, uvec4(c)));
    return CORNERS == 1 ? here : here * (side == 0 ? 1.0 - t.fraction : t.fraction);
}

// Returns the texels that read cell c in either way.
uvec2 all_readers(uint c, uint cells, uint start, uint size)
{
    const uvec2 first = readers(c, 0, cells, start, size), second = readers(c, 1, cells, start, size);
    return uvec2(min(first.x, second.x), max(first.y, second.y));
}

void main()
{
    const uint row4 = pc.row4, n4 = pc.rows * row4, width = pc.width, height = pc.height, plane = height * width;
    const uint y0 = origin[0], x0 = origin[1];
    const uvec2 share = share_of(plane);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint cv = i / width, cu = i % width;
        uvec2 rows[2], columns[2];
        if (CORNERS == 1) {
            for (uint side = 0; side < 2; side++) {
                rows[side] = readers(cv, side, height, y0, pc.rows);
                columns[side] = readers(cu, side, width, x0, 4 * row4);
            }
        } else {
            rows[0] = all_readers(cv, height, y0, pc.rows);
            columns[0] = all_readers(cu, width, x0, 4 * row4);
        }
        for (uint f = gl_WorkGroupID.y; f < pc.features; f += gl_NumWorkGroups.y) {
            float sum = 0.0;
            for (uint k = 0; k < (CORNERS == 1 ? 4 : 1); k++) {
                const uint side_v = k / 2, side_u = k % 2;
                const uvec2 column = columns[side_u], row = rows[side_v];
                const uint at = pc.y_base + (CORNERS == 1 ? 4 * f + k : f) * n4;
                for (uint q = column.x / 4; q < (column.y + 3) / 4; q++) {
                    const Cells u = cells_of(texels(x0, 4 * q + uvec4(0, 1, 2, 3)), width);
                    vec4 wu = weights(u, cu, side_u);
                    if (CORNERS == 0) wu += weights(u, cu, 1);
                    for (uint r = row.x; r < row.y; r++) {
                        const Cells v = cells_of(texels(y0, uvec4(r)), height);
                        float wv = weights(v, cv, side_v).x;
                        if (CORNERS == 0) wv += weights(v, cv, 1).x;
                        sum += wv * dot(wu, LOAD4(dy4, at + r * row4 + q));
                    }
                }
            }
            grid[pc.grid_base + f * plane + i] = sum;
        }
    }
}
