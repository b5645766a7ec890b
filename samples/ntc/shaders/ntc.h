/* ntc.h - numbers that C and GLSL share. The buffer of NTC_SET_FACTS has 32-bit words: first those of the set, then
 * those of each grid, then those of each layer. */
#define NTC_SET_PARAMETERS 0 /* floats: latents and weights */
#define NTC_SET_TEXELS 1     /* bytes of the original; index: (y * width + x) * channels + c */
#define NTC_SET_FACTS 2

/* The network computes NTC_BLOCK x NTC_BLOCK texels together: a block. */
#define NTC_BLOCK 2u

#define NTC_FACT_WIDTH 0
#define NTC_FACT_HEIGHT 1
#define NTC_FACT_GRIDS 2
#define NTC_FACT_PLACE 3 /* ntc_place_scale, in blocks */
/* For each grid: scale in blocks, rows, columns, features, bits (0: latents as they are), corners, first float, 0. */
#define NTC_FACT_GRID 4
#define NTC_FACT_LAYER 28 /* for each layer: first float of the weight, of the bias */
#define NTC_FACTS 34

#define NTC_VIEW_ORIGINAL 0
#define NTC_VIEW_DECODED 1
#define NTC_VIEW_ERROR 2 /* eight times the difference */
