/* common/ranks.h - --devices, --mpi and --shards: the ranks of data parallel training. Rank 0 alone prints and writes.
 */
#ifndef SAMPLE_RANKS_H
#define SAMPLE_RANKS_H

#include "common/options.h"

/* The other ranks of this process, or this process as one rank. Zeroed: there is one rank. */
typedef struct ranks {
    vkt_ctx *more[VKT_MAX_SHARDS]; /* contexts of --devices, behind the first one */
    uint32_t n_more;
    struct vkt_mpi *mpi; /* NULL: no --mpi */
    vkt_transport transport;
} ranks;

/* Connects to the other processes of --mpi. A rank above 0 then prints only errors of its own, and *o has none of the
 * options that print or write. Returns false after a message. */
bool ranks_connect(ranks *r, train_options *o);
/* Returns the device of this process's context: that of --device, or the first one of --devices for this rank. */
const char *ranks_device(const ranks *r, const train_options *o, char room[256]);
/* Creates the other contexts of --devices. */
vkt_result ranks_open(ranks *r, const train_options *o, const vkt_host *host);
/* Sets the fields of data parallel training. */
void ranks_set(const ranks *r, const train_options *o, vkt_trainer_params *p);
/* Returns whether this process is the one that prints and writes. */
bool ranks_is_first(const ranks *r);
/* Waits for all processes. */
vkt_result ranks_meet(const ranks *r);
/* Destroys the contexts. */
void ranks_close(ranks *r);
/* Leaves the other processes: ends the program with `status`, if they cannot end together with this one. */
void ranks_leave(ranks *r, int status);

#endif
