/* places.abi.h - for kernels that loop over the positions of a box with lib/places.glsl. */
#define PLACES_SPEC_FIRST 1 /* first coordinate of the box, 0 to 5 */
