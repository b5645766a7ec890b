/* positions.abi.h - for kernels that loop over the positions of a box with lib/positions.glsl. */
#define POSITIONS_SPEC_FIRST 1 /* index of the first coordinate that the box has, 0 to 5 */
