/* fft_product.abi.h - see fft_product.comp. An operand's spectrum is [row][f][re, im][column]. A product is
 * [f][row][re, im][column]. f is the frequency. A column is a vec4 here. */
VKT_PUSH(vkt_fft_product_push,
         VKT_U32(rows) VKT_U32(columns)     /* rows (m) and columns (n / 4) of dst */
         VKT_U32(row_tiles) VKT_U32(tiles)  /* row_tiles: row tiles of a frequency. tiles: all tiles of all frequencies */
         VKT_U32(a_columns) VKT_U32(b_columns)
         VKT_U32(plane)                     /* vec4s of the product from one f to the next */
         VKT_U32(a_pitch) VKT_U32(b_pitch)  /* vec4s from row to row */
         VKT_U32(steps)                     /* number of iterations. Each iteration adds the products of four k */
         VKT_U32(zero))                     /* always 0: see conv/tile.comp */
#define PRODUCT_A   0
#define PRODUCT_B   1
#define PRODUCT_DST 2

#define PRODUCT_SPEC_LANES   0
#define PRODUCT_SPEC_MB      1 /* rows per lane: a multiple of 4, at most 2 * ACROSS */
#define PRODUCT_SPEC_M_MAJOR 2 /* 1: A's rows are m and its columns k; 0: rows are k and columns m */
#define PRODUCT_SPEC_N_MAJOR 3 /* 1: B's rows are n and its columns k; 0: rows are k and columns n */
#define PRODUCT_SPEC_CONJ    4 /* 1: A is conjugated */
#define PRODUCT_SPEC_ACROSS  5 /* lanes of a block: a power of two up to LANES. A block computes MB rows */
#define PRODUCT_SPECS        6
