// latent_grid.comp - computes the features of a tile's texels from a grid of latents. y[f][n] = feature f at texel n,
// interpolated bilinearly from the four cells around the texel. CORNERS: y[4 f + k][n] = feature f of cell k of these
// four cells. The order of the cells is upper left, upper right, lower left, lower right.
// grid: x over vec4s of the tile in contiguous shares, y over features with a stride; any group count is right.
// source: Vaidyanathan et al., Random-Access Neural Compression of Material Textures (2023), section 4
// Deterministic: one lane computes an element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/latent_grid.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#include "lib/latent_grid.glsl"
layout(local_size_x_id = 0) in;
VKT_IN1(LATENT_GRID, grid);
VKT_OUT4(LATENT_GRID_Y, y4);

vec4 four(uint at, uvec4 column)
{
    return vec4(LOAD1(grid, at + column.x), LOAD1(grid, at + column.y), LOAD1(grid, at + column.z),
                LOAD1(grid, at + column.w));
}

void main()
{
    const uint row4 = pc.row4, n4 = pc.rows * row4, width = pc.width, plane = pc.height * width, size = 4 * row4;
    const uint y0 = start_of(0, pc.rows, pc.height), x0 = start_of(1, size, width);
    const uvec2 share = share_of(n4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const Cells v = cells_of(uvec4(y0 + i / row4), pc.height);
        const Cells u = cells_of(x0 + 4 * (i % row4) + uvec4(0, 1, 2, 3), width);
        for (uint f = gl_WorkGroupID.y; f < pc.features; f += gl_NumWorkGroups.y) {
            const uint top = pc.grid_base + f * plane + v.first.x * width, bottom = top + (v.second.x - v.first.x) * width;
            const vec4 a = four(top, u.first);
            if (SCALE == 1 && CORNERS == 0) STORE4(y4, pc.y_base + f * n4 + i, a);
            else {
                const vec4 b = four(top, u.second), c = four(bottom, u.first), d = four(bottom, u.second);
                if (CORNERS == 1) {
                    const uint at = pc.y_base + 4 * f * n4 + i;
                    STORE4(y4, at, a);
                    STORE4(y4, at + n4, b);
                    STORE4(y4, at + 2 * n4, c);
                    STORE4(y4, at + 3 * n4, d);
                } else {
                    const vec4 above = (1.0 - u.fraction) * a + u.fraction * b, under = (1.0 - u.fraction) * c + u.fraction * d;
                    STORE4(y4, pc.y_base + f * n4 + i, (1.0 - v.fraction.x) * above + v.fraction.x * under);
                }
            }
        }
    }
}
