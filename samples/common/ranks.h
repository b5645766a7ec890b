/* common/ranks.h - the ranks of data parallel training, for --devices, --mpi and --shards. Only rank 0 writes files.
 * The other ranks print only errors of their own. */
#ifndef SAMPLE_RANKS_H
#define SAMPLE_RANKS_H

#include "common/options.h"

/* The ranks of a run. With --devices they are contexts of this process, with --mpi they are processes. A zeroed struct
 * means one rank. */
typedef struct ranks {
    vkt_ctx *more[VKT_MAX_SHARDS]; /* contexts of --devices, from the second device on */
    uint32_t n_more;
    double timeout_seconds; /* set by the sample before session_begin: with --mpi, a rank that keeps another one waiting
                             * for longer has failed; 0: that of vkt_mpi_open */
    struct vkt_mpi *mpi;    /* NULL: no --mpi */
    vkt_transport transport;
} ranks;

/* Connects to the other processes of --mpi. A rank above 0 then prints only errors of its own, and *o keeps no option
 * that prints or writes results. Returns false after a message. Without --mpi it does nothing and returns true. */
bool ranks_connect(ranks *r, train_options *o);
/* Returns the device of this process's context: that of --device, or the first one of --devices. With --mpi, the ranks
 * use the devices of --devices in turn. `room` is memory for the result. */
const char *ranks_device(const ranks *r, const train_options *o, char room[256]);
/* Creates the other contexts of --devices, if there is no --mpi. VKT_E_ARG: there are too many devices. Other errors
 * are those of vkt_ctx_create_wide. Call ranks_close also after an error. */
vkt_result ranks_open(ranks *r, const train_options *o, const vkt_host *host);
/* Sets dist, more_devices and n_more_devices of *p. *r must outlive the trainer. */
void ranks_set(const ranks *r, const train_options *o, vkt_trainer_params *p);
/* Returns the number of ranks, 1 or more. */
uint32_t ranks_count(const ranks *r);
/* Returns the number of shards of a batch; 1: a step is not split. */
uint32_t ranks_shards(const ranks *r, const train_options *o);
/* Returns the batch of a trainer whose training set has `rows` samples: that of --batch, or less if there are fewer
 * samples. With shards it is a multiple of them; 0: there are fewer samples than shards. */
uint32_t ranks_batch(const ranks *r, const train_options *o, uint32_t rows);
/* Returns the number of samples of a step of this trainer on all ranks together, at least 1. With shards, this is the
 * batch times --micro-batches; without shards, it is the batch. */
uint32_t ranks_step_rows(const ranks *r, const train_options *o, uint32_t rows);
/* Returns whether this process prints and writes the results: it is rank 0, or there is no --mpi. */
bool ranks_is_first(const ranks *r);
/* Waits until all processes have called it. Returns VKT_E_PEER if a rank has failed. */
vkt_result ranks_meet(const ranks *r);
/* With --mpi, changes timeout_seconds; 0: that of vkt_mpi_open. All ranks call it at the same point. */
void ranks_wait(ranks *r, double timeout_seconds);
/* With --mpi, tells the other ranks that this one has failed, so that they do not wait for it. A second call does
 * nothing. */
void ranks_fail(const ranks *r, vkt_result why);
/* As ranks_fail, for a signal; `why` is its name. */
void ranks_stop(const ranks *r, const char *why);
/* Destroys the contexts of ranks_open. */
void ranks_close(ranks *r);
/* Waits for the other processes and disconnects from them. If a rank has failed, ends all processes with `status`, or
 * with 1 if `status` is 0. A second call does nothing. */
void ranks_leave(ranks *r, int status);

#endif
