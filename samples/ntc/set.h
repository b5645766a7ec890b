/* ntc/set.h - a compressed set of textures: grids of latents, a small network, and the file that has both. */
#ifndef NTC_SET_H
#define NTC_SET_H

#include "ntc/shaders/ntc.h"
#include "vktrain/core.h"

enum {
    NTC_MAX_TEXTURES = 8,
    NTC_MAX_GRIDS = 3,
    NTC_MAX_INPUTS = 128, /* inputs of the network; equal to VKT_MLP_MAX_WIDTH */
    NTC_POSITION = 3,     /* inputs x, y and x * y: (x,y) is the position of a block between cells (ntc_place_scale) */
    NTC_LAYERS = 3,
    NTC_MAX_SIDE = 8192,
    NTC_NAME = 28
};

/* A grid of latents. One cell covers scale x scale texels; `scale` is a multiple of NTC_BLOCK. A latent is a number in
 * [0,1] with 2^bits levels. If `bits` is 0, the grid's latents are decoded from BC4 blocks (bc4.h). */
typedef struct ntc_grid {
    uint32_t scale, features, bits;
    bool corners;           /* the network gets the four cells around a block; false: it gets their weighted mean */
    uint32_t height, width; /* in cells */
    uint16_t *levels;       /* (features, height, width): the latents, from 0 to ntc_steps() */
} ntc_grid;

typedef struct ntc_texture {
    char name[NTC_NAME]; /* the file's name without folder and extension */
    uint32_t channels;   /* 1 or 3 */
} ntc_texture;

typedef struct ntc_set {
    uint32_t width, height, channels; /* channels of all textures together */
    uint32_t n_textures, n_grids, hidden;
    ntc_texture textures[NTC_MAX_TEXTURES];
    ntc_grid grids[NTC_MAX_GRIDS];
    float *weights; /* for each layer: weight (outputs, inputs), then bias. A 16-bit float can store each number */
} ntc_set;

/* A layer of the network. `weight` and `bias` are the indices of its first weight and bias in ntc_set.weights. */
typedef struct ntc_layer {
    uint32_t in, out;
    size_t weight, bias;
} ntc_layer;

uint32_t ntc_inputs(const ntc_set *s);  /* returns the number of inputs of the network */
uint32_t ntc_outputs(const ntc_set *s); /* returns the number of outputs of the network. Channel c of texel (x,y) of a
                                         * block is output (y * NTC_BLOCK + x) * channels + c */
uint32_t ntc_blocks(uint32_t texels);   /* returns the number of blocks along a side; the last block may reach beyond
                                         * the side */
/* The network gets the position of a block between the centres of the cells of one grid. Returns `scale` of this grid.
 * This grid is the coarsest one with `corners`, or grid 0 if no grid has `corners`. */
uint32_t ntc_place_scale(const ntc_set *s);
ntc_layer ntc_layer_of(const ntc_set *s, uint32_t i);
size_t ntc_weights(const ntc_set *s); /* returns the number of weights and biases */
size_t ntc_latents(const ntc_grid *g);
uint32_t ntc_steps(const ntc_grid *g); /* returns the largest possible number in g->levels. Level k is the latent value
                                        * k / ntc_steps(g) */
uint64_t ntc_bytes(const ntc_set *s);  /* returns the size of the file in bytes */

/* Sets height and width of all grids and allocates weights and latents, all zero. VKT_E_ARG, with a message, if a
 * member is out of range; VKT_E_NOMEM. Free the set also after an error. */
vkt_result ntc_allocate(ntc_set *s);
void ntc_free(ntc_set *s);

/* Returns x rounded to the nearest number that 16 bits can store (IEEE 754 binary16), at most 65504 in magnitude. NaN
 * stays NaN. */
float ntc_half(float x);

vkt_result ntc_write(const ntc_set *s, const char *path);
/* Reads a file. VKT_E_FORMAT: the file has another format, or is damaged. VKT_E_NOT_FOUND, VKT_E_IO, VKT_E_NOMEM.
 * Errors other than VKT_E_NOMEM have a message. Free the set also after an error. */
vkt_result ntc_read(const char *path, ntc_set *s);

/* Writes the texels of block (x,y) to `out`, as bytes. `block` has the outputs of the network. Channel c of the texel
 * in row i and column j of the images is out[(i * width + j) * channels + c]. Texels outside the images are left
 * out. */
void ntc_put_block(const ntc_set *s, const float *block, uint32_t x, uint32_t y, uint8_t *out);

/* Decodes all texels to `out`, in the order of ntc_put_block. VKT_E_NOMEM. */
vkt_result ntc_decode(const ntc_set *s, uint8_t *out);

#endif
