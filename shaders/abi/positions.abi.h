/* positions.abi.h - for kernels with lib/positions.glsl, a loop over the positions of a box. A position has up to six
 * coordinates c[i]. */
#define POSITIONS_SPEC_FIRST 1 /* the first i for which c[i] exists: 0 (six coordinates) to 5 (one coordinate) */
