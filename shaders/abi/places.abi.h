/* places.abi.h - for kernels that walk over a box by lib/places.glsl. */
#define PLACES_SPEC_FIRST 1 /* the first coordinate that the box has, 0 to 5 */
