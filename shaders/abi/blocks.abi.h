/* blocks.abi.h - specialisation ids of all kernels that compute a tile of a matrix product in shared memory by
 * lib/blocks.glsl. */
#define BLOCKS_K 16u /* length of a tile along k without COOP. If a sum over k is divided into slices, each slice
                      * starts at a multiple of this length */
#define BLOCKS_COOP_K 32u /* length of a tile along k with COOP, but without SPLIT */
#define BLOCKS_COOP2_K 16u /* with COOP2: length of a cooperative matrix along k. A tile has the length BLOCKS_COOP_K */
#define BLOCKS_SPLIT_K 16u /* length of a tile along k with COOP and SPLIT. SPLIT stores an element as two f16 */
#define BLOCKS_SPEC_LANES 0 /* lanes of a work group: (BM / TM) * (BN / TN) */
#define BLOCKS_SPEC_BM    1 /* rows of a work group's tile: a power of two, 16 or more */
#define BLOCKS_SPEC_BN    2 /* columns of this tile: a power of two, 16 or more */
#define BLOCKS_SPEC_TM    3 /* rows of the tile per lane: a multiple of 4 */
#define BLOCKS_SPEC_TN    4 /* columns of the tile per lane: a multiple of 4 */
#define BLOCKS_SPEC_WHOLE 5 /* mask of BLOCKS_WHOLE_M, BLOCKS_WHOLE_N, BLOCKS_WHOLE_K and BLOCKS_UNROLLED */
#define BLOCKS_SPECS      6 /* the kernel's own ids start here */
#define BLOCKS_WHOLE_M 1u /* all tiles of the product are whole along m, so the kernel checks no bounds along m */
#define BLOCKS_WHOLE_N 2u /* all tiles are whole along n */
#define BLOCKS_WHOLE_K 4u /* all tiles are whole along k */
#define BLOCKS_UNROLLED 8u /* without COOP: the loop over the tile's k is unrolled */
