/* train/steps.h - training steps: submits them, and collects their results some steps later.
 *
 * A step is one run of the training program. With shards (vkt_trainer_params.dist), it consists of several runs of a
 * program of shards, the exchange of gradients with the other ranks, and one run of the update.
 *
 * The batch of a step has V times `parts` times `rows` samples (fewer at the end of an epoch). Shard s has the `parts`
 * times `rows` samples from s `parts` `rows` on, `rows` for each of its runs. A rank has the shards from `first` on. So
 * its samples of a step are neighbours in the order of the epoch. */
#ifndef VKT_STEPS_H
#define VKT_STEPS_H

#include "dist/exchange.h"
#include "ops/ops.h"
#include "train/feed.h"
#include "vktrain/train.h"

/* The result of one step, over all ranks. */
typedef struct vkt_step_result {
    double loss, correct; /* sums over samples; loss times rows */
    uint64_t rows;
    uint32_t t;  /* the optimizer's completed steps */
    bool finite; /* the loss */
} vkt_step_result;

/* The result of one run of a program of shards. */
typedef struct vkt_shard_result {
    float loss, correct;
    uint32_t rows, unused;
} vkt_shard_result;

/* A step that is submitted. */
typedef struct vkt_pending_step {
    uint64_t run, update; /* first run of the program of shards, run of the update */
    uint32_t collected;   /* results of runs that this rank has */
} vkt_pending_step;
enum { VKT_STEPS_PENDING = 4 }; /* at most */

typedef struct vkt_shards {
    uint32_t count;       /* V; 0: a step is one run, and nothing below is used */
    uint32_t own, parts;  /* shards of this rank; runs of each */
    uint32_t rows, first; /* samples of a run; number of this rank's first shard */
    uint32_t rank, ranks;
    vkt_graph *g; /* of the update */
    vkt_program *update;
    vkt_array *planes, *saved; /* NULL: not needed */
    vkt_exchange x;
    vkt_pending_step pending[VKT_STEPS_PENDING]; /* a ring, by number of the step */
    vkt_shard_result *results; /* VKT_STEPS_PENDING times the results of all ranks and a header each */
    bool wants_stop, all_stop; /* the caller of this rank wants to stop; all ranks know that some rank wants to */
    bool torn;                 /* some shards of a step are submitted, and its update is not: states are a shard's */
    bool broken;               /* the exchange has failed: weights may be those of no step */
} vkt_shards;

typedef struct vkt_steps {
    uint64_t run;                /* without shards: newest run of the program */
    uint64_t submitted, arrived; /* steps of this fit */
    uint32_t batch;              /* next batch of the epoch */
} vkt_steps;

/* Returns the samples of a whole step, and the steps of an epoch. */
uint32_t vkt_steps_rows(const vkt_trainer *t);
uint32_t vkt_steps_of_epoch(const vkt_trainer *t);
/* Returns the most samples of an epoch on this rank, if it has a part of them; 0: it has all. Before the feed exists.
 */
uint32_t vkt_steps_most_rows(const vkt_trainer *t);
/* Begins an epoch at batch `skip` of its order. */
vkt_result vkt_steps_begin(vkt_trainer *t, uint32_t epoch, uint32_t skip);
/* Submits the next step. *submitted is false after the last one of the epoch. */
vkt_result vkt_steps_submit(vkt_trainer *t, double lr, bool *submitted);
/* Waits for the oldest submitted step whose result was not taken. */
vkt_result vkt_steps_take(vkt_trainer *t, vkt_step_result *out);
/* Exchanges the gradients of all submitted steps. Until then the host may not wait for the newest one: the device waits
 * for the host. */
vkt_result vkt_steps_exchange(vkt_trainer *t);
/* Returns the number of steps that are submitted and not taken. */
uint32_t vkt_steps_open(const vkt_trainer *t);
/* Returns whether the fit shall stop. `wish`: this rank's caller wants to. The ranks stop together, so with several of
 * them it takes some steps. */
bool vkt_steps_stop(vkt_trainer *t, bool wish);
/* After a failure: lets the device finish, and tells the other ranks unless they have failed first. */
void vkt_steps_fail(vkt_trainer *t, vkt_result r);

/* shards.c: checks a number of ranks: VKT_E_ARG. */
vkt_result vkt_shards_check_ranks(const vkt_host *h, uint32_t ranks);
/* Gives the states (running statistics) the values from before the step whose shards were submitted last. */
vkt_result vkt_shards_restore_states(vkt_trainer *t);
/* Checks vkt_trainer_params.dist and sets the numbers of t->shards. VKT_E_ARG. */
vkt_result vkt_shards_resolve(vkt_trainer *t);
/* Appends the sums to the graph of shards `g`, and builds the graph of the update. The caller destroys *update, also
 * after a failure. */
vkt_result vkt_shards_graph(const vkt_trainer *t, vkt_graph *g, vkt_shard_values *v, vkt_graph **update);
/* Makes arrays (their bindings are appended to *arrays) and, later, the program of the update and its connection. */
vkt_result vkt_shards_arrays(vkt_trainer *t, const vkt_shard_values *v, vkt_binding *arrays, uint32_t *n);
vkt_result vkt_shards_programs(vkt_trainer *t, const vkt_shard_values *v);
void vkt_shards_destroy(vkt_trainer *t);
/* alike.c: compares this run with that of rank 0, at the start of a fit. VKT_E_STATE on all ranks if they differ; the
 * message names rank and difference. */
vkt_result vkt_ranks_compare(vkt_trainer *t, const vkt_fit_params *p);
/* Compares a hash of all parameters after step `step`. VKT_E_PEER names the ranks that differ from most of them. */
vkt_result vkt_ranks_compare_weights(vkt_trainer *t, uint64_t step);
/* Replaces `data` by that of rank 0. All ranks call it. */
vkt_result vkt_ranks_share(vkt_trainer *t, void *data, size_t bytes);
/* Returns whether any rank says true. All ranks call it. */
vkt_result vkt_ranks_any(vkt_trainer *t, bool mine, bool *any);

#endif
