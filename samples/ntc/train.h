/* ntc/train.h - trains the latents and the network of a set with the library. A step reads one tile of the textures. A
 * training has three parts, the phases:
 *   NTC_NOISE     random noise is added to the latents; the noise is as large as a rounding error
 *   NTC_ROUNDED   the latents are rounded, and gradients pass through the rounding unchanged
 *   NTC_FROZEN    (the last 5 % of the steps) the latents do not change any more, and only the network is trained
 * Latents of BC4 blocks (grids with bits = 0) are never rounded: they have noise in the second part, too. At the
 * beginning of the third part, the trainer encodes them as blocks, and replaces them by the decoded blocks. */
#ifndef NTC_TRAIN_H
#define NTC_TRAIN_H

#include "ntc/set.h"
#include "vktrain/nn.h"
#include "vktrain/optim.h"
#include "vktrain/vulkan.h"

/* The parts of a training, in this order. */
enum { NTC_NOISE, NTC_ROUNDED, NTC_FROZEN, NTC_PHASES };
enum { NTC_BC4_NOISE = 4 }; /* latents of BC4 blocks get the same noise as latents with this number of bits */

typedef struct ntc_params {
    uint64_t seed;
    uint64_t steps;   /* number of steps of the whole training */
    double rounded;   /* share of the steps, at the end, with rounded latents; a share below 0.05 counts as 0.05 */
    uint32_t tile[2]; /* rows and columns of blocks in a tile; the number of columns is a multiple of 4 */
    float lr;         /* learning rate of the latents at the first step */
} ntc_params;

/* A graph, with its builder and its external values. The graph must outlive the program made from it. */
typedef struct ntc_graph {
    vkt_graph *g;
    vkt_builder *b;
    vkt_tensor texels, position, origin;
} ntc_graph;

typedef struct ntc_trainer {
    ntc_params p;
    const ntc_set *set; /* its latents and weights are not read */
    vkt_ctx *ctx;
    vkt_array *texels, *position, *origin;
    ntc_graph graphs[NTC_PHASES];
    vkt_store *store;
    vkt_program *programs[NTC_PHASES];
    uint32_t *order; /* the tiles, shuffled */
    uint32_t tiles, columns;
    uint64_t pass;  /* `order` belongs to this pass over all tiles. The first pass is 1. 0: `order` is not filled yet */
    uint64_t step;  /* number of submitted steps */
    uint64_t run;   /* index of the last step's run (vkt_program_run). Each program counts only its own runs */
    bool under_way; /* a part of the next step was submitted */
    bool has_run;   /* a step was submitted since ntc_trainer_create */
} ntc_trainer;

/* Creates all objects. Channel c of texel (x,y) is texels[(y * width + x) * channels + c]. `set` must outlive the
 * trainer. Destroy the trainer before the context, also after an error. */
vkt_result ntc_trainer_create(vkt_ctx *ctx, const ntc_set *set, const uint8_t *texels, const ntc_params *p,
                              ntc_trainer *t);
void ntc_trainer_destroy(ntc_trainer *t);

/* Submits one step. After the last step the function does nothing. */
vkt_result ntc_trainer_step(ntc_trainer *t);
/* Sets *loss to the mean squared error of the last submitted step, for texels from 0 to 1. NaN: no step was
 * submitted since ntc_trainer_create. Waits for the step. */
vkt_result ntc_trainer_loss(ntc_trainer *t, double *loss);
/* Submits slices, which are parts of steps, until the budget of a frame is used up or the training is complete. */
vkt_result ntc_trainer_slices(ntc_trainer *t, uint64_t budget_ns);
/* Computes all texels on the device from the latents and weights in the store. Uses the network of the phase
 * NTC_FROZEN: this network rounds the latents of grids with bits > 0. Writes the texels to `out` in the order of
 * ntc_decode. */
vkt_result ntc_trainer_infer(ntc_trainer *t, uint8_t *out);
/* Save and load the whole state. A training that continues from a saved state gives the same bits as an uninterrupted
 * one. */
vkt_result ntc_trainer_save(ntc_trainer *t, const char *path);
vkt_result ntc_trainer_load(ntc_trainer *t, const char *path);
/* Writes the rounded latents and the rounded weights to `to`, a set with the sizes of the trainer's `set`. Latents of
 * BC4 blocks are first encoded and decoded. The store gets the rounded weights and the decoded latents, too. Waits for
 * all steps. VKT_E_DIVERGED, with a message: a weight is not finite. */
vkt_result ntc_trainer_result(ntc_trainer *t, ntc_set *to);

/* Set `name` to the store's name of a parameter. The parameter is the latents of grid i (ntc_grid_name), or the weight
 * or bias of layer i (ntc_weight_name). */
void ntc_grid_name(uint32_t i, char name[24]);
void ntc_weight_name(uint32_t i, bool bias, char name[24]);

#endif
