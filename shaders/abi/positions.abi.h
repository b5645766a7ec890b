/* positions.abi.h - for kernels that loop over the positions of a box with lib/positions.glsl. */
#define POSITIONS_SPEC_FIRST 1 /* first coordinate of the box, 0 to 5 */
