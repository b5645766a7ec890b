// latent_grid.glsl - the cells around the texels of a tile: for latent_grid.comp and its gradient.
//   Along one axis, the centre of texel x is at (x + 1/2) / SCALE - 1/2 cells, where cell c has its centre at c. `first` is
//   the cell at or before this point, `second` the one after it, `fraction` the distance from `first`. Cells outside the grid
//   become the nearest cell inside. A texel outside counts as the last one inside.
layout(constant_id = LATENT_GRID_SPEC_SCALE) const uint SCALE = 4;
layout(constant_id = LATENT_GRID_SPEC_CORNERS) const uint CORNERS = 0;
layout(binding = LATENT_ORIGIN, std430) readonly buffer Origin { uint origin[2]; };

struct Cells {
    uvec4 first, second;
    vec4 fraction;
};

// Returns the cells of four texels, which are numbered from the first one of the image, in a grid of `cells` cells.
Cells cells_of(uvec4 texel, uint cells)
{
    const uvec4 x = min(texel, uvec4(cells * SCALE - 1));
    const uvec4 at = 2 * x + 1 + SCALE, next = at / (2 * SCALE); // the point, times 2 SCALE, plus one cell
    Cells c;
    c.first = max(next, uvec4(1)) - 1;
    c.second = min(next, uvec4(cells - 1));
    c.fraction = vec4(at - next * (2 * SCALE)) / float(2 * SCALE);
    return c;
}

// Returns texel `offset` of the tile, which starts at texel `start` of the image. The sum does not wrap around.
uvec4 texels(uint start, uvec4 offset)
{
    return min(start, 0x01000000u) + offset;
}
