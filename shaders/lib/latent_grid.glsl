// latent_grid.glsl - the cells around the texels of a tile: for latent_grid.comp and its gradient.
//   Positions along an axis are in cells, and the centre of cell c is at c. A cell has SCALE texels along an axis. So the
//   centre of texel x is at (x + 1/2) / SCALE - 1/2. `first` is the last cell whose centre is at or before this point, and
//   `second` is the next cell. `fraction` is the distance of the point from the centre of `first`. Cells outside the grid
//   become the nearest cell inside.
layout(constant_id = LATENT_GRID_SPEC_SCALE) const uint SCALE = 4;
layout(constant_id = LATENT_GRID_SPEC_CORNERS) const uint CORNERS = 0;
layout(binding = LATENT_ORIGIN, std430) readonly buffer Origin { uint origin[2]; };

struct Cells {
    uvec4 first, second;
    vec4 fraction;
};

// Returns the cells around four texels along one axis. The grid has `cells` cells along this axis.
Cells cells_of(uvec4 texel, uint cells)
{
    const uvec4 at = 2 * texel + 1 + SCALE, next = at / (2 * SCALE); // at = 2 SCALE * (centre of the texel + 1)
    Cells c;
    c.first = max(next, uvec4(1)) - 1;
    c.second = min(next, uvec4(cells - 1));
    c.fraction = vec4(at - next * (2 * SCALE)) / float(2 * SCALE);
    return c;
}

// Returns the first texel of the tile along `axis` (0: rows). A tile of `size` texels that would reach beyond the image is
// moved inside.
uint start_of(uint axis, uint size, uint cells)
{
    return min(origin[axis], cells * SCALE - size);
}
