/* hash_grid.abi.h - see hash_grid.comp, hash_grid_dx.comp, hash_grid_dw.comp and hash_grid_fixed.comp. A dispatch
 * computes the levels from `level` to level + levels - 1. table_base is the index of the dispatch's first float in
 * HASH_GRID_TABLE. y_base is the index of the dispatch's first vec4 in HASH_GRID_Y. In the comments below, "dw" is
 * hash_grid_dw.comp, ZERO is its variant that clears tables, and "fixed" is hash_grid_fixed.comp. */
VKT_PUSH(vkt_hash_grid_push,
         VKT_U32(n4)            /* vec4s of a row of x, y, dx */
         VKT_U32(level) VKT_U32(levels) VKT_U32(first) /* first: index of `level`'s first entry in the whole table */
         VKT_U32(table_base) VKT_U32(y_base)
         VKT_U32(slices)        /* dw: number of slices of the batch. Each slice has a table of its own */
         VKT_U32(share)         /* dw: vec4s of a row of y in a slice; the last slice may have fewer */
         VKT_U32(floats)        /* number of floats. dw: in the table of one slice. ZERO: in the tables of all slices.
                                 * fixed: in the part of the table that has the dispatch's levels */
         VKT_U32(flags)         /* fixed: index of the first word of flags in SUMS, a multiple of 4 */
         VKT_U32(addends))      /* fixed: an element is the sum of at most 2^addends products. addends is at most 27 */
#define HASH_GRID_SPEC_DIMS     1 /* 2 or 3 */
#define HASH_GRID_SPEC_FEATURES 2 /* 1, 2, 4 or 8 */
#define HASH_GRID_SPEC_KEEP     3 /* 1: hash_grid_dx adds to the values in DX */
#define HASH_GRID_X     0 /* f32 (dims, 4 * n4) */
#define HASH_GRID_TABLE 1 /* f32 (entries, features). fixed: gradient of the table. dw: one gradient for each slice */
#define HASH_GRID_Y     2 /* (levels * features, 4 * n4); in the gradient kernels: the gradient of y */
#define HASH_GRID_LEVEL 3 /* uvec4 (levels of the grid): the members of vkt_hash_grid_level */
#define HASH_GRID_DX    4 /* f32 (dims, 4 * n4) */
#define HASH_GRID_SUMS  5 /* fixed: u32; hash_grid_fixed.comp has the layout */
#define HASH_GRID_BINDINGS 6
#define HASH_GRID_MAXIMA 256 /* fixed: maximum number of work groups of the kernel with BEGIN */
