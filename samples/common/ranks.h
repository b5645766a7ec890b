/* common/ranks.h - the ranks of data parallel training, for --devices, --mpi and --shards. Only rank 0 writes files.
 * The other ranks print only errors of their own. */
#ifndef SAMPLE_RANKS_H
#define SAMPLE_RANKS_H

#include "common/options.h"

/* A timeout in seconds, for the parts of a program in which ranks wait for one rank that works alone. */
enum { RANKS_LONGEST_WAIT = 3600 };

/* The ranks of a run. With --devices they are contexts of this process, with --mpi they are processes. A zeroed struct
 * means one rank. */
typedef struct ranks {
    vkt_ctx *more[VKT_MAX_SHARDS]; /* contexts of --devices, from the second device on */
    uint32_t n_more;
    double timeout_seconds; /* with --mpi: if a rank waits for another rank for longer than this, the other rank has
                             * failed; 0: the default of vkt_mpi_open. The sample program sets this member before
                             * session_begin */
    struct vkt_mpi *mpi;    /* NULL: no --mpi */
    vkt_transport transport;
} ranks;

/* Connects to the other processes of --mpi. After this call, a rank above 0 prints only errors of its own. On a rank
 * above 0, also changes *o so that the rank prints and writes no results. If it fails, prints a message and returns
 * false. Without --mpi, does nothing and returns true. */
bool ranks_connect(ranks *r, train_options *o);
/* Returns the device for the context of this process: the value of --device, or the first device of --devices. With
 * --mpi and n devices in --devices, each rank gets the device at index rank % n of this list. `room` is memory for the
 * result. */
const char *ranks_device(const ranks *r, const train_options *o, char room[256]);
/* Without --mpi, creates the contexts of --devices from the second device on. VKT_E_ARG: there are too many devices.
 * Other errors are those of vkt_ctx_create_wide. Call ranks_close also after an error. */
vkt_result ranks_open(ranks *r, const train_options *o, const vkt_host *host);
/* Sets dist, more_devices and n_more_devices of *p. *r must outlive the trainer. */
void ranks_set(const ranks *r, const train_options *o, vkt_trainer_params *p);
/* Returns the number of ranks, 1 or more. */
uint32_t ranks_count(const ranks *r);
/* Returns the number of shards of a batch; 1: a step is not split. */
uint32_t ranks_shards(const ranks *r, const train_options *o);
/* Returns the batch of a trainer whose training set has `rows` samples. This is the smaller of two numbers: the value
 * of --batch, and `rows` rounded down to a multiple of the number of shards. 0: there are fewer samples than shards. */
uint32_t ranks_batch(const ranks *r, const train_options *o, uint32_t rows);
/* Returns how many samples all ranks together process in what the progress bar counts as one batch, at least 1. With 2
 * shards or more, this is a whole step: ranks_batch times --micro-batches. With 1 shard, it is ranks_batch. */
uint32_t ranks_step_rows(const ranks *r, const train_options *o, uint32_t rows);
/* Returns how many steps (updates of the parameters) all epochs together have, at least 1. */
uint64_t ranks_steps(const ranks *r, const train_options *o, uint32_t rows);
/* Returns whether this process prints and writes the results: it is rank 0, or there is no --mpi. */
bool ranks_is_first(const ranks *r);
/* Waits until all processes have called this function. Returns VKT_E_PEER if a rank has failed. */
vkt_result ranks_meet(const ranks *r);
/* Changes timeout_seconds; 0: the default of vkt_mpi_open. With --mpi, all ranks must call this function at the same
 * point of the program. */
void ranks_wait(ranks *r, double timeout_seconds);
/* With --mpi, reports to the other ranks that this rank has failed, so that no rank waits for it. A second call does
 * nothing. */
void ranks_fail(const ranks *r, vkt_result why);
/* Does the same as ranks_fail, for a signal that came before the first step. `why` is the name of the signal. */
void ranks_stop(const ranks *r, const char *why);
/* Destroys the contexts of ranks_open. */
void ranks_close(ranks *r);
/* Disconnects from the other processes of --mpi. If no rank has failed, first waits for these processes, at most
 * RANKS_LONGEST_WAIT seconds, because rank 0 may still measure and write results. If a rank has failed or does not
 * answer, ends all processes with `status`, or with 1 if `status` is 0. A second call does nothing. */
void ranks_leave(ranks *r, int status);

#endif
