/* latent_grid.abi.h - see latent_grid.comp and latent_grid_dw.comp (dw). A dispatch computes `features` features.
 * grid_base is the index of the dispatch's first float in LATENT_GRID. y_base is the index of the dispatch's first vec4
 * in LATENT_GRID_Y. */
VKT_PUSH(vkt_latent_grid_push,
         VKT_U32(features)
         VKT_U32(height) VKT_U32(width) /* cells of the grid */
         VKT_U32(rows) VKT_U32(row4)    /* rows of the tile; vec4s of a row */
         VKT_U32(grid_base) VKT_U32(y_base))
#define LATENT_GRID_SPEC_SCALE   1 /* texels of a cell along an axis */
#define LATENT_GRID_SPEC_CORNERS 2 /* 1: y has the features of the four cells around a texel; 0: y has their weighted mean */
#define LATENT_GRID    0 /* f32 (features, height, width); dw: written */
#define LATENT_ORIGIN  1 /* u32 (2): row and column of the tile's first texel */
#define LATENT_GRID_Y  2 /* (features, corners ? 4 : 1, rows, 4 * row4); dw: the gradient of y */
#define LATENT_GRID_BINDINGS 3
