/* blocks.abi.h - specialisation ids of all kernels that compute a tile of a matrix product in shared memory by
 * lib/blocks.glsl. */
#define BLOCKS_K 16u /* length of a tile along k without COOP. A slice of a sum starts at a multiple of this length */
#define BLOCKS_COOP_K 32u /* length of a tile along k with COOP, but without SPLIT */
#define BLOCKS_COOP2_K 16u /* with COOP2: length of a cooperative matrix along k. A tile has the length BLOCKS_COOP_K */
#define BLOCKS_SPLIT_K 16u /* length of a tile along k with COOP and SPLIT. SPLIT stores an element as two f16 */
#define BLOCKS_SPEC_LANES 0 /* lanes of a work group: (BM / TM) * (BN / TN) */
#define BLOCKS_SPEC_BM    1 /* rows and columns of a work group's tile: powers of two, 16 or more */
#define BLOCKS_SPEC_BN    2
#define BLOCKS_SPEC_TM    3 /* rows and columns per lane: multiples of 4 */
#define BLOCKS_SPEC_TN    4
#define BLOCKS_SPEC_WHOLE 5 /* bits. BLOCKS_WHOLE_M, _N or _K: the product has only whole tiles along this axis, so
                             the kernel checks no bounds along it. BLOCKS_UNROLLED: see below */
#define BLOCKS_SPECS      6 /* the kernel's own ids start here */
#define BLOCKS_WHOLE_M 1u
#define BLOCKS_WHOLE_N 2u
#define BLOCKS_WHOLE_K 4u
#define BLOCKS_UNROLLED 8u /* without COOP: the loop over the tile's k is unrolled */
