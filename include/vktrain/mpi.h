/* vktrain/mpi.h - the transport between processes, over MPI. A library of its own, libvktrain_mpi: libvktrain does not
 * link MPI.
 *
 *     mpirun -n 4 ./program
 *
 *     vkt_mpi *mpi;
 *     vkt_mpi_open(NULL, 0, &mpi);                 // calls MPI_Init_thread, unless MPI runs already
 *     vkt_transport t = vkt_mpi_transport(mpi);    // vkt_trainer_params.dist.transport = &t
 *     ...
 *     vkt_mpi_close(&mpi);                         // calls MPI_Finalize, if vkt_mpi_open has called MPI_Init_thread
 *
 * It uses point-to-point calls only, on a communicator of its own. Threads: one at a time. */
#ifndef VKTRAIN_MPI_H
#define VKTRAIN_MPI_H

#include "vktrain/dist.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This process as a rank of MPI_COMM_WORLD. */
typedef struct vkt_mpi vkt_mpi;
/* Connects. timeout_seconds: a rank that keeps another one waiting for longer has failed; 0: 60. VKT_E_ARG if the
 * number of ranks is not a power of two, or more than VKT_MAX_SHARDS (the message says what would work); VKT_E_STATE if
 * MPI was initialized without thread support (at least MPI_THREAD_SERIALIZED) or is finalized; VKT_E_NOMEM; VKT_E_PEER.
 */
VKT_API vkt_result vkt_mpi_open(const vkt_host *host, double timeout_seconds, vkt_mpi **out);
/* Disconnects. After a failure of any rank it does not wait for the other ranks, and does not finalize MPI: the program
 * should then end by vkt_mpi_abort. */
VKT_API void vkt_mpi_close(vkt_mpi **m);
VKT_API vkt_transport vkt_mpi_transport(vkt_mpi *m);
/* Returns whether a rank has failed. */
VKT_API bool vkt_mpi_failed(const vkt_mpi *m);
/* Ends all processes of the run by MPI_Abort: for a program whose ranks cannot end together any more. Does not return.
 */
VKT_API void vkt_mpi_abort(int exit_code);

#ifdef __cplusplus
}
#endif
#endif
