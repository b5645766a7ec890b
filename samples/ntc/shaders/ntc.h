/* ntc.h - numbers that C and GLSL share. */

/* Bindings of texture.frag. */
#define NTC_SET_PARAMETERS 0 /* floats: latents and weights */
#define NTC_SET_TEXELS 1     /* bytes of the original; index: (y * width + x) * channels + c */
#define NTC_SET_FACTS 2      /* 32-bit words: NTC_FACT_WIDTH and so on */

/* The network computes NTC_BLOCK x NTC_BLOCK texels together: a block. */
#define NTC_BLOCK 2u

/* Indices of the words of NTC_SET_FACTS. */
#define NTC_FACT_WIDTH 0
#define NTC_FACT_HEIGHT 1
#define NTC_FACT_GRIDS 2 /* number of grids */
#define NTC_FACT_PLACE 3 /* ntc_place_scale (set.h), in blocks */
/* Eight words for each grid: scale in blocks, rows, columns, features, bits (0: latents are not rounded), corners,
 * index of the grid's first float in the parameters, and a word that is not used. */
#define NTC_FACT_GRID 4
#define NTC_FACT_LAYER 28 /* two words for each layer: indices of the first float of its weight and of its bias */
#define NTC_FACTS 34      /* number of words */

#define NTC_VIEW_ORIGINAL 0
#define NTC_VIEW_DECODED 1
#define NTC_VIEW_ERROR 2 /* eight times the absolute difference between the original and the decoded texture */
