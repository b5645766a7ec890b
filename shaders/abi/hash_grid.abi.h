/* hash_grid.abi.h - see hash_grid.comp, hash_grid_dx.comp, hash_grid_dw.comp and hash_grid_fixed.comp. A dispatch
 * computes the levels from `level` to level + levels - 1. table_base: index of the dispatch's first float of the table,
 * in the table's binding. y_base: index of the dispatch's first vec4 of y, in y's binding. */
VKT_PUSH(vkt_hash_grid_push,
         VKT_U32(n4)            /* vec4s of a row of x, y, dx */
         VKT_U32(level) VKT_U32(levels) VKT_U32(first) /* first entry of `level` in the whole table */
         VKT_U32(table_base) VKT_U32(y_base)
         VKT_U32(slices)        /* dw: slices of the batch; each has `share` vec4s and its own table */
         VKT_U32(share)
         VKT_U32(floats)        /* dw: floats of a slice's table; fixed: floats of the table */
         VKT_U32(flags)         /* fixed: index of the first word of flags in SUMS, a multiple of 4 */
         VKT_U32(addends))      /* fixed: an element is the sum of at most 2^addends products; at most 27 */
#define HASH_GRID_SPEC_DIMS     1 /* 2 or 3 */
#define HASH_GRID_SPEC_FEATURES 2 /* 1, 2, 4 or 8 */
#define HASH_GRID_SPEC_KEEP     3 /* 1: hash_grid_dx adds to the values in DX */
#define HASH_GRID_X     0 /* f32 (dims, 4 * n4) */
#define HASH_GRID_TABLE 1 /* f32 (entries, features); dw: written */
#define HASH_GRID_Y     2 /* (levels * features, 4 * n4); dw, dx: its gradient */
#define HASH_GRID_LEVEL 3 /* uvec4 (levels): vkt_hash_grid_level */
#define HASH_GRID_DX    4 /* f32 (dims, 4 * n4) */
#define HASH_GRID_SUMS  5 /* fixed: words; hash_grid_fixed.comp has the layout */
#define HASH_GRID_BINDINGS 6
#define HASH_GRID_MAXIMA 256 /* fixed: maximum number of work groups of BEGIN */
