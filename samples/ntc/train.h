/* ntc/train.h - trains the latents and the network of a set with the library. A step reads one tile of the textures. In
 * the first part of a training, noise stands for the rounding of the latents. In the second part they are rounded, and
 * gradients pass straight through. In the last 5 % of the steps they are frozen, and only the network is trained.
 * Latents of BC4 blocks (grids with bits = 0) have noise in the second part, too. When they are frozen, they are
 * encoded to blocks and decoded again. */
#ifndef NTC_TRAIN_H
#define NTC_TRAIN_H

#include "ntc/set.h"
#include "vktrain/nn.h"
#include "vktrain/optim.h"
#include "vktrain/vulkan.h"

/* The parts of a training: latents with noise, latents rounded, latents rounded and frozen. */
enum { NTC_NOISE, NTC_ROUNDED, NTC_FROZEN, NTC_PHASES };
enum { NTC_BC4_NOISE = 4 }; /* latents of BC4 blocks get the noise that latents of this number of bits get */

typedef struct ntc_params {
    uint64_t seed;
    uint64_t steps;   /* number of steps of the whole training */
    double rounded;   /* share of the steps with rounded latents, frozen ones included */
    uint32_t tile[2]; /* rows and columns of blocks in a tile; the columns are a multiple of 4 */
    float lr;         /* learning rate of the latents at the first step */
} ntc_params;

/* A graph, with its builder and its external values. It must outlive the program made from it. */
typedef struct ntc_graph {
    vkt_graph *g;
    vkt_builder *b;
    vkt_tensor texels, position, origin;
} ntc_graph;

typedef struct ntc_trainer {
    ntc_params p;
    const ntc_set *set; /* only the sizes are read */
    vkt_ctx *ctx;
    vkt_array *texels, *position, *origin;
    ntc_graph graphs[NTC_PHASES];
    vkt_store *store;
    vkt_program *programs[NTC_PHASES];
    uint32_t *order; /* the tiles, shuffled */
    uint32_t tiles, columns;
    uint64_t pass;  /* 1 + number of the pass over all tiles that `order` is for; 0: no pass yet */
    uint64_t step;  /* number of submitted steps */
    uint64_t run;   /* number of the last run, counted within its program */
    bool under_way; /* a part of a step was submitted */
    bool has_run;   /* there was a run since the creation */
} ntc_trainer;

/* Creates all objects. Channel c of texel (x,y) is texels[(y * width + x) * channels + c]. `set` must outlive the
 * trainer. Destroy the trainer before the context, also after an error. */
vkt_result ntc_trainer_create(vkt_ctx *ctx, const ntc_set *set, const uint8_t *texels, const ntc_params *p,
                              ntc_trainer *t);
void ntc_trainer_destroy(ntc_trainer *t);

/* Submits one step. It does nothing after the last one. */
vkt_result ntc_trainer_step(ntc_trainer *t);
/* Sets *loss to the mean squared error of the last submitted step, for texels from 0 to 1. NaN: there was no step.
 * Waits for the step. */
vkt_result ntc_trainer_loss(ntc_trainer *t, double *loss);
/* Submits as many slices of steps as fit into the budget of a frame. */
vkt_result ntc_trainer_slices(ntc_trainer *t, uint64_t budget_ns);
/* Computes all texels on the device with the parameters in the store and rounded latents, as ntc_decode does. */
vkt_result ntc_trainer_infer(ntc_trainer *t, uint8_t *out);
/* Save and load the whole state. A training that continues from a saved state gives the same bits. */
vkt_result ntc_trainer_save(ntc_trainer *t, const char *path);
vkt_result ntc_trainer_load(ntc_trainer *t, const char *path);
/* Writes the rounded latents (those of BC4 blocks: encoded and decoded) and the rounded weights to `to`, a set of the
 * same sizes. Also writes the rounded weights to the store. Waits for all steps. */
vkt_result ntc_trainer_result(ntc_trainer *t, ntc_set *to);

/* Write the name of a parameter in the store to `name`: the latents of grid i, and the weight or bias of layer i. */
void ntc_grid_name(uint32_t i, char name[24]);
void ntc_weight_name(uint32_t i, bool bias, char name[24]);

#endif
