/* direct_tiles.abi.h - the specialization constants of lib/direct_shared.glsl. In conv/direct_shared.comp and
 * conv/pool_shared.comp, these constants have the first ids. One vec4 has four neighbouring samples of the batch. In
 * this file, a tap is one weight (c,r,s) of an output channel, and an output channel has K taps. */
#define DIRECT_TILES_LANES  0
#define DIRECT_TILES_ACROSS 1 /* lanes that compute the same output channels; a divisor of LANES */
#define DIRECT_TILES_ROWS   2 /* output channels per lane */
#define DIRECT_TILES_CHUNK  3 /* taps that are in shared memory at a time; a multiple of UNROLL */
#define DIRECT_TILES_UNROLL 4 /* taps per iteration */
#define DIRECT_TILES_PAD    5 /* taps may be outside the image, or K is no multiple of UNROLL */
#define DIRECT_TILES_BIAS   6
#define DIRECT_TILES_N4     7 /* vec4s of one pixel: batch / 4, rounded up */
#define DIRECT_TILES_WIDTH  8 /* pixels to compute in an image row of y: all (Q), or those of one phase */
#define DIRECT_TILES_SPECS  9
