/* nrc/learn.h - trains a network that computes the light on a surface from the surface's position and normal. One pixel
 * of a frame is one sample of the data. The target of the sample is the light of one random path. This light is noisy.
 * The network learns the mean of this light over many paths. */
#ifndef NRC_LEARN_H
#define NRC_LEARN_H

#include "nrc/gbuffer.h"
#include "nrc/render.h"
#include "vktrain/nn.h"
#include "vktrain/optim.h"

enum {
    LEARN_STEPS = 8
}; /* steps of a round. A round trains on the images of one frame, and each step on a
    * different eighth of the frame's pixels (rounded down) */

typedef struct learn_params {
    uint64_t seed;
    float lr;
} learn_params;

/* A graph, with its builder and its external values. The graph must outlive the programs made from it. */
typedef struct learn_graph {
    vkt_graph *g;
    vkt_builder *b;
    vkt_tensor position, normal, light, order;
} learn_graph;

/* The columns of the data. Each column is an array (pixels, 3) of the library. The first three are copied from images.
 * LEARN_INFERRED is copied to an image. */
typedef enum learn_column { LEARN_POSITION, LEARN_NORMAL, LEARN_LIGHT, LEARN_INFERRED, LEARN_COLUMNS } learn_column;

typedef struct learner {
    learn_params p;
    uint32_t pixels;
    vkt_ctx *ctx;
    vkt_array *column[LEARN_COLUMNS], *order; /* order: the indices of all pixels, shuffled */
    vkt_texture *image[LEARN_COLUMNS];
    learn_graph train, infer;
    vkt_store *store;
    vkt_program *step, *answer;
    uint64_t steps;           /* number of steps that were submitted completely */
    uint32_t in_round;        /* number of steps of the round in progress that were submitted completely */
    bool has_images;          /* for learn_slices: the images of the round in progress are in the arrays */
    uint64_t measured_frames; /* vkt_step_progress.measured_frames after the last call of vkt_step_budget */
} learner;

/* Creates all objects of a learner. Destroy it before the context, also after an error. */
vkt_result learn_create(vkt_ctx *ctx, const gbuffer *from, const learn_params *p, learner *l);
void learn_destroy(learner *l);
/* Returns the data for the shader: the grid's levels, the buffer of all published parameters, and the index at which
 * each parameter begins in this buffer. The published parameters are a moving average of the trained ones. */
vkt_result learn_shown(const learner *l, vkt_hash_grid_level levels[NRC_LEVELS], vkt_vk_buffer *parameters,
                       network_at *at);

/* Submits a whole round: copies the images, then trains LEARN_STEPS steps on them. */
vkt_result learn_round(learner *l);
/* Submits slices, which are parts of steps, until the budget is used up or the round is complete. The next call
 * continues with the next slice. *measured_ns becomes the measured time of the slices of an earlier frame; 0: no new
 * measured time has arrived. */
vkt_result learn_slices(learner *l, uint64_t budget_ns, uint64_t *measured_ns);
/* Computes the light of all pixels with the published parameters, and writes it to the image NRC_INFERRED. */
vkt_result learn_infer(learner *l);

#endif
