/* view/learn.h - the network that learns a picture: from a place in it to a colour, one pixel of many a time. */
#ifndef VIEW_LEARN_H
#define VIEW_LEARN_H

#include "view/frames.h"
#include "view/record.h"
#include "view/shaders/network.h"
#include "vktrain/nn.h"
#include "vktrain/optim.h"

enum { LEARN_RECENT = 16 };

typedef struct learn_params {
    uint32_t width, height;
    VkImage image; /* what is learned, as upload_picture leaves it */
    uint64_t seed;
    uint32_t batch; /* pixels of a step */
    float lr;
    bool recorded; /* steps are recorded into the frames' command buffers */
} learn_params;

/* What a program is made of: it lives as long as its programs. */
typedef struct learn_graph {
    vkt_graph *g;
    vkt_builder *b;
    vkt_tensor places, colours, order; /* vkt_external */
} learn_graph;

typedef struct learner {
    learn_params p;
    uint32_t pixels, walks; /* walks: through all pixels, in the order */
    vkt_ctx *ctx;
    vkt_array *places, *colours, *order, *all; /* (pixels,2) and (pixels,3) f32; row numbers, shuffled and not */
    learn_graph train, measure;
    vkt_store *store;
    vkt_program *step[FRAMES_IN_FLIGHT]; /* recorded: one for each frame in flight; else only the first */
    vkt_program *check;
    uint64_t began;    /* steps before the last reset */
    uint64_t steps;    /* begun */
    uint64_t reported; /* of which the loss is known, or was lost */
    bool under_way;    /* a step was submitted in part */
    bool has_metrics[FRAMES_IN_FLIGHT];
    float recent[LEARN_RECENT]; /* the last losses, a ring */
    uint64_t n_recent;
    curve loss;
} learner;

/* What draws the network: the grid's levels, and table, weights and biases in the order of network.frag. */
vkt_result learn_shown(const learner *l, vkt_hash_grid_level levels[VIEW_LEVELS],
                       vkt_vk_buffer parameters[VIEW_N_PARAMETERS]);

/* Everything of it; destroy it in any case, before the context. */
vkt_result learn_create(vkt_ctx *ctx, const learn_params *p, learner *l);
void learn_destroy(learner *l);

/* A step, submitted whole; waits for that of a few steps before. */
vkt_result learn_step(learner *l);
/* As many slices of steps as fit into the budget; *used_ns: what they will take. `finish`: no step begins, only one
 * that is under way goes on. */
vkt_result learn_slices(learner *l, uint64_t budget_ns, bool finish, uint64_t *used_ns);
/* A step in a frame's command buffer; frames of one slot follow each other. */
vkt_result learn_record(learner *l, const frame *f);
/* What a frame's last commands and the next one's first have to do with each other: see vkt_program_barriers. */
void learn_barriers(const learner *l, VkMemoryBarrier2 *before, VkMemoryBarrier2 *after);
/* Takes over the losses of steps that are done, without waiting; of recorded ones those of `slot`, whose frame is done.
 */
vkt_result learn_collect(learner *l, uint32_t slot);

uint64_t learn_steps(const learner *l);     /* since the parameters were new */
double learn_recent_psnr(const learner *l); /* in dB, of the last steps' pixels */
/* Over every pixel, of the parameters as they are now; waits. */
vkt_result learn_psnr(learner *l, double *psnr);

/* The parameters as they were at first; a step that is under way is to be finished before. */
vkt_result learn_reset(learner *l);
vkt_result learn_save(learner *l, const char *path);
vkt_result learn_load(learner *l, const char *path);

#endif
