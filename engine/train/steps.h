/* train/steps.h - training steps: submits them, and collects their results some steps later.
 *
 * Without shards, a step is one run of the training program; a micro-batch counts as a step. With shards
 * (vkt_trainer_params.dist), a step consists of one or more runs of the program of shards, the exchange of gradients
 * with the other ranks (if there are any), and one run of the update program. The program of shards computes gradients
 * and their sums, and does not update the parameters.
 *
 * Members of vkt_shards give the sizes of a step with shards. The batch of a step has `count` shards. `parts` runs
 * compute one shard, and a run has `rows` samples (fewer at the end of an epoch). So shard s begins at sample
 * s * parts * rows of the batch. A rank computes `own` shards, from shard `first` on. So the samples of a rank in a
 * batch are neighbours in the order of the epoch. */
#ifndef VKT_STEPS_H
#define VKT_STEPS_H

#include "dist/exchange.h"
#include "ops/ops.h"
#include "train/feed.h"
#include "vktrain/train.h"

/* The result of one step, over all ranks. */
typedef struct vkt_step_result {
    double loss, correct; /* loss: a sum over the runs of the step: the run's mean loss times the run's number of terms.
                           * correct: number of correct predictions */
    uint64_t rows, terms; /* terms: see vkt_sums in trainer.h */
    uint32_t t;           /* the optimizer's completed steps */
    bool finite;          /* the loss is finite */
} vkt_step_result;

/* The result of one run of a program of shards. `loss` is the mean over the terms of the run (vkt_dataset_terms), or
 * over its samples if the data set has no terms. */
typedef struct vkt_shard_result {
    float loss, correct;
    uint32_t rows, terms;
} vkt_shard_result;

/* A step that is submitted. */
typedef struct vkt_pending_step {
    uint64_t run, update; /* run: index of the step's first run of the program of shards. update: index of the step's
                           * run of the update program */
    uint32_t collected;   /* number of this rank's runs whose results were read */
} vkt_pending_step;
enum { VKT_STEPS_PENDING = 4 }; /* largest number of pending steps */

typedef struct vkt_shards {
    uint32_t count;       /* number of shards of a batch; 0: a step is one run, and there is only this rank */
    uint32_t own, parts;  /* own: number of shards of this rank; parts: number of runs that compute one shard */
    uint32_t rows, first; /* rows: number of samples of a run; first: index of this rank's first shard */
    uint32_t rank, ranks;
    vkt_graph *g; /* graph of the update */
    vkt_program *update;
    vkt_array *planes, *saved; /* see vkt_shard_values in ops/ops.h; NULL: not needed */
    vkt_exchange x;
    vkt_pending_step pending[VKT_STEPS_PENDING]; /* a ring: step i is at index i % VKT_STEPS_PENDING */
    uint32_t *terms;           /* terms of each step of the epoch, of all ranks together; NULL: the data set has none */
    vkt_shard_result *results; /* for each pending step, a block of results of each rank: see block_of in steps.c */
    bool wants_stop, all_stop; /* wants_stop: this rank's caller wants to stop. all_stop: the caller of some rank wants
                                * to stop, and all ranks have received this wish */
    bool torn;   /* some shards of a step are submitted, but the update of this step is not. So the states (running
                  * statistics) are not those of a complete step */
    bool broken; /* a fit has failed, and the weights or the states may be wrong: see vkt_steps_fail */
} vkt_shards;

typedef struct vkt_steps {
    uint64_t run;                /* without shards: index of the newest run of the program */
    uint64_t submitted, arrived; /* submitted: steps that this fit has submitted; arrived: steps whose results were
                                  * taken */
    uint32_t batch;              /* index of the next step in the epoch */
} vkt_steps;

/* Returns the number of samples of a whole step, of all ranks together. */
uint32_t vkt_steps_rows(const vkt_trainer *t);
/* Returns the number of steps of an epoch. */
uint32_t vkt_steps_of_epoch(const vkt_trainer *t);
/* Returns an upper bound of the number of samples that this rank has in an epoch; 0: it has all samples. May be called
 * before t->feed is created. */
uint32_t vkt_steps_most_rows(const vkt_trainer *t);
/* Begins epoch number `epoch` at step `skip` of this epoch. */
vkt_result vkt_steps_begin(vkt_trainer *t, uint32_t epoch, uint32_t skip);
/* Submits the next step. If the epoch has no further step, submits nothing, and *submitted is false. */
vkt_result vkt_steps_submit(vkt_trainer *t, double lr, bool *submitted);
/* Waits for the oldest submitted step whose result was not taken, and takes its result. After every check_every steps
 * (vkt_dist_params), also compares the weights of the ranks. */
vkt_result vkt_steps_take(vkt_trainer *t, vkt_step_result *out);
/* Exchanges the gradients of all submitted steps. The host must call this before it waits for the newest step, because
 * in this step the device waits for the exchange. */
vkt_result vkt_steps_exchange(vkt_trainer *t);
/* Returns the number of steps that are submitted and not taken. */
uint32_t vkt_steps_open(const vkt_trainer *t);
/* Returns whether the fit shall stop. `wish`: this rank's caller wants the fit to stop. Several ranks stop at the same
 * step, some steps after the first wish. */
bool vkt_steps_stop(vkt_trainer *t, bool wish);
/* Ends the steps of a fit that failed with `r`. Lets the device finish. If the weights may be wrong, sets
 * t->shards.broken. If the weights are right but shards have changed the states (running statistics), restores the
 * states of the last complete step; if that fails, sets `broken` too. Reports the failure to the other ranks, unless
 * `r` is VKT_E_PEER. Does nothing if `r` is VKT_OK, or without shards. */
void vkt_steps_fail(vkt_trainer *t, vkt_result r);

/* Checks the number of ranks. VKT_E_ARG: the number is no power of two, or is larger than VKT_MAX_SHARDS. */
vkt_result vkt_shards_check_ranks(const vkt_host *h, uint32_t ranks);
/* Sets the states (running statistics) back to their values before the newest step, which may be incomplete. The first
 * run of each step saves these values in t->shards.saved. */
vkt_result vkt_shards_restore_states(vkt_trainer *t);
/* Checks vkt_trainer_params.dist, and sets count, own, parts, rows, first, rank and ranks of t->shards. If the
 * training set has fewer samples than the batch, params.batch becomes the number of these samples, rounded down to a
 * multiple of the number of shards. VKT_E_ARG. */
vkt_result vkt_shards_resolve(vkt_trainer *t);
/* Appends the sums of the gradients to `g`, the graph of the program of shards, and builds the graph of the update. The
 * caller destroys *update, also after a failure. */
vkt_result vkt_shards_graph(const vkt_trainer *t, vkt_graph *g, vkt_shard_values *v, vkt_graph **update);
/* vkt_shards_arrays makes the arrays of a step of shards, and appends their bindings at arrays[*n]. vkt_shards_programs
 * makes the program of the update, and connects this program with t->program. So t->program must exist before. */
vkt_result vkt_shards_arrays(vkt_trainer *t, const vkt_shard_values *v, vkt_binding *arrays, uint32_t *n);
vkt_result vkt_shards_programs(vkt_trainer *t, const vkt_shard_values *v);
void vkt_shards_destroy(vkt_trainer *t);
/* Compares the facts of all ranks (settings, device, position, ...) at the start of a fit. If they differ, returns
 * VKT_E_STATE on all ranks, and rank 0 logs the first rank that differs, and the differences. */
vkt_result vkt_ranks_compare(vkt_trainer *t, const vkt_fit_params *p);
/* Compares a hash of all parameters after step `step`. If the hashes differ, returns VKT_E_PEER on all ranks, and rank
 * 0 logs the ranks whose hash is not the most common one. */
vkt_result vkt_ranks_compare_weights(vkt_trainer *t, uint64_t step);
/* Copies the bytes at `data` of rank 0 to `data` of all other ranks. All ranks must call this function. */
vkt_result vkt_ranks_share(vkt_trainer *t, void *data, size_t bytes);
/* Sets *any to whether `mine` is true on some rank. All ranks must call this function. */
vkt_result vkt_ranks_any(vkt_trainer *t, bool mine, bool *any);

#endif
