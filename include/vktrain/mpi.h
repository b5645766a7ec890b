/* vktrain/mpi.h - the transport between processes, over MPI. This transport is in a library of its own,
 * libvktrain_mpi, because libvktrain does not link MPI.
 *
 *     mpirun -n 4 ./program
 *
 *     vkt_mpi *mpi;
 *     vkt_mpi_open(NULL, 0, &mpi);                 // calls MPI_Init_thread, unless MPI runs already
 *     vkt_transport t = vkt_mpi_transport(mpi);    // vkt_dist_params.transport = &t
 *     ...
 *     vkt_mpi_close(&mpi);                         // may call MPI_Finalize: see vkt_mpi_close
 *
 * Ranks exchange data by point-to-point calls only, on a communicator of their own. Threads: one at a time. */
#ifndef VKTRAIN_MPI_H
#define VKTRAIN_MPI_H

#include "vktrain/dist.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This process as a rank of MPI_COMM_WORLD. */
typedef struct vkt_mpi vkt_mpi;
/* Connects all processes of MPI_COMM_WORLD. Each of them calls this function. timeout_seconds: after waiting this long
 * for another rank, a rank searches for a failed rank, as described below; 0 means 60 seconds. If another rank does not
 * make the matching call within some microseconds, the waiting rank sleeps between two checks for messages, because a
 * device that is a CPU may compute on the same core.
 *
 * A rank that has waited for the timeout asks each of the other ranks: "for which rank do you wait?" The answers form a
 * chain of ranks: each rank waits for the next one. The search finds two kinds of failure:
 *   - The rank at the end of the chain does not answer, and the rank before it has waited for the timeout, too. The
 *     time for an answer is a quarter of the timeout, but at least 2 and at most 5 seconds. A message on all
 *     other ranks names the rank that did not answer.
 *   - The chain ends in a circle, no rank of the chain transfers data, and a rank of the circle has waited for the
 *     timeout, too: the calls of the ranks do not match.
 *
 * VKT_E_ARG: `out` is NULL; the timeout is negative or above 1e9 seconds; or the number of ranks is not a power of two,
 * or is above VKT_MAX_SHARDS (the message says which numbers would work). VKT_E_STATE: MPI supports less than
 * MPI_THREAD_SERIALIZED, cannot be initialized or is finalized. VKT_E_PEER: not all processes call this function in
 * time, or MPI does not connect them. VKT_E_NOMEM. After VKT_E_PEER and VKT_E_NOMEM, MPI stays initialized, because
 * MPI_Finalize might wait for the other ranks. Owner: the caller. */
VKT_API vkt_result vkt_mpi_open(const vkt_host *host, double timeout_seconds, vkt_mpi **out);
/* Changes the timeout of this rank's later calls, for instance before a part of the program in which the ranks take
 * more time than usual. All ranks call this function at the same point of the program. 0 means 60 seconds. VKT_E_ARG:
 * NULL, or the timeout is negative or above 1e9 seconds. */
VKT_API vkt_result vkt_mpi_set_timeout(vkt_mpi *m, double timeout_seconds);
/* Waits for all ranks, and disconnects. Finalizes MPI if vkt_mpi_open has started it. If vkt_mpi_failed returns
 * true, this function does not wait for the other ranks: it waits until the messages of this rank have left, but at
 * most one second. In this case it does not finalize MPI, and does not free memory of messages that MPI may still use.
 * The program should then end by vkt_mpi_abort. */
VKT_API void vkt_mpi_close(vkt_mpi **m);
/* Returns the transport of this process. It is valid until vkt_mpi_close. All zeros for NULL. */
VKT_API vkt_transport vkt_mpi_transport(vkt_mpi *m);
/* Returns whether this rank has failed, has found a failure of another rank, or has got a message about a failure. */
VKT_API bool vkt_mpi_failed(const vkt_mpi *m);
/* Ends all processes of the run by MPI_Abort. If MPI does not run, ends this process by _Exit. Call vkt_mpi_abort
 * if the ranks cannot end together any more, for instance after a failure. Does not return. */
VKT_API void vkt_mpi_abort(int exit_code);

#ifdef __cplusplus
}
#endif
#endif
