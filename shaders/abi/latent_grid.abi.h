/* latent_grid.abi.h - see latent_grid.comp and latent_grid_dw.comp. A dispatch computes `features` features. grid_base:
 * index of their first float in GRID. y_base: index of their first vec4 in Y. */
VKT_PUSH(vkt_latent_grid_push,
         VKT_U32(features)
         VKT_U32(height) VKT_U32(width) /* cells of the grid */
         VKT_U32(rows) VKT_U32(row4)    /* rows of the tile; vec4s of a row */
         VKT_U32(grid_base) VKT_U32(y_base))
#define LATENT_GRID_SPEC_SCALE   1 /* texels of a cell along an axis */
#define LATENT_GRID_SPEC_CORNERS 2 /* 1: y has the four cells; 0: y has their weighted mean */
#define LATENT_GRID    0 /* f32 (features, height, width); dw: written */
#define LATENT_ORIGIN  1 /* u32 (2): row and column of the tile's first texel */
#define LATENT_GRID_Y  2 /* (features, corners ? 4 : 1, rows, 4 * row4); dw: its gradient */
#define LATENT_GRID_BINDINGS 3
