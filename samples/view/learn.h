/* view/learn.h - trains a network that computes the colour at a position of an image. One pixel is one sample of
 * the data. */
#ifndef VIEW_LEARN_H
#define VIEW_LEARN_H

#include "graphics/frames.h"
#include "graphics/record.h"
#include "view/shaders/network.h"
#include "vktrain/nn.h"
#include "vktrain/optim.h"

enum { LEARN_RECENT = 16 };

typedef struct learn_params {
    uint32_t width, height;
    VkImage image; /* the target, with the layout that upload_image gives it */
    uint64_t seed;
    uint32_t batch; /* pixels of a step. If the image has fewer pixels, each step uses all of them */
    float lr;
    bool recorded; /* steps are recorded into the frames' command buffers */
} learn_params;

/* A graph, with its builder and its external values. The graph must outlive its programs. */
typedef struct learn_graph {
    vkt_graph *g;
    vkt_builder *b;
    vkt_tensor positions, colours, order; /* vkt_external values */
} learn_graph;

typedef struct learner {
    learn_params p;
    uint32_t pixels, passes; /* passes: how many passes over all pixels are stored in `order` */
    vkt_ctx *ctx;
    /* positions (pixels,2) and colours (pixels,3) are f32. For each pass, `order` has the indices of all pixels,
     * shuffled anew. `all` has the indices of all pixels in ascending order */
    vkt_array *positions, *colours, *order, *all;
    learn_graph train, measure;
    vkt_store *store;
    vkt_program *step[FRAMES_IN_FLIGHT]; /* one program for each frame.slot if p.recorded, otherwise only step[0] */
    vkt_program *check;
    uint64_t began;           /* value of `steps` at the last learn_reset or learn_load */
    uint64_t steps;           /* number of whole steps that were submitted or recorded */
    uint64_t reported;        /* number of steps whose loss was read, or is no longer available. 0 if p.recorded */
    bool under_way;           /* a step is submitted in part */
    uint64_t measured_frames; /* vkt_step_progress.measured_frames of the last vkt_step_budget */
    bool has_metrics[FRAMES_IN_FLIGHT];
    float recent[LEARN_RECENT]; /* the last losses, in a ring buffer */
    uint64_t n_recent;
    curve loss;
} learner;

/* Returns the data for the shader. `levels` gets the levels of the grid. `parameters` gets the buffer ranges of the
 * published parameters (vkt_publish): the grid's table, then weight and bias of each layer. */
vkt_result learn_shown(const learner *l, vkt_hash_grid_level levels[VIEW_LEVELS],
                       vkt_vk_buffer parameters[VIEW_N_PARAMETERS]);

/* Creates all objects of a learner. Destroy the learner before the context, also after an error. */
vkt_result learn_create(vkt_ctx *ctx, const learn_params *p, learner *l);
void learn_destroy(learner *l);

/* Submits a whole step. If more than AHEAD (learn.c) losses are unknown, waits for the oldest of them. */
vkt_result learn_step(learner *l);
/* Submits as many slices of steps as fit into the budget. *used_ns is the expected time of these slices. *measured_ns
 * is the measured time of the slices of an earlier frame, or 0 if no new measurement has arrived. If `finish`, begins
 * no new step, and only continues a step that is partly done. */
vkt_result learn_slices(learner *l, uint64_t budget_ns, bool finish, uint64_t *used_ns, uint64_t *measured_ns);
/* Records a step into a frame's command buffer. Two frames with the same frame.slot must not run at the same time,
 * because both run the same program. */
vkt_result learn_record(learner *l, const frame *f);
/* Returns the barriers before and after a recorded step: see vkt_program_barriers. */
void learn_barriers(const learner *l, VkMemoryBarrier2 *before, VkMemoryBarrier2 *after);
/* Reads the losses of steps that are done, without waiting. If p.recorded, it reads only the loss of the step in the
 * last frame of `slot`. This frame must be done. */
vkt_result learn_collect(learner *l, uint32_t slot);

uint64_t learn_steps(const learner *l);     /* steps since the last learn_reset or learn_load */
double learn_recent_psnr(const learner *l); /* in dB, of the last losses that were read, at most
                                             * LEARN_RECENT of them. 0: no loss is known */
/* Computes the PSNR in dB over all pixels, with the present parameters. Waits for the device. */
vkt_result learn_psnr(learner *l, double *psnr);

/* Sets the parameters to their initial values, and begins a new training. A step that is partly done must be finished
 * before learn_reset and before learn_load. */
vkt_result learn_reset(learner *l);
vkt_result learn_save(learner *l, const char *path);
vkt_result learn_load(learner *l, const char *path);

#endif
