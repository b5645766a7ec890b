/* vktrain/mpi.h - the transport between processes, over MPI. A library of its own, libvktrain_mpi: libvktrain does not
 * link MPI.
 *
 *     mpirun -n 4 ./program
 *
 *     vkt_mpi *mpi;
 *     vkt_mpi_open(NULL, 0, &mpi);                 // calls MPI_Init_thread, unless MPI runs already
 *     vkt_transport t = vkt_mpi_transport(mpi);    // vkt_dist_params.transport = &t
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
/* Connects all processes of MPI_COMM_WORLD; all call it. timeout_seconds: a rank that keeps another one waiting for
 * longer has failed; 0: 60. A rank that waits sleeps in between, so that it leaves its core to the device. A rank whose
 * wait has lasted for the timeout asks all ranks for whom they wait; a rank at the end of the chain that does not
 * answer for a quarter of the timeout (half a second to five) is named in one message on all ranks. VKT_E_ARG if the
 * number of ranks is not a power of two, or more than VKT_MAX_SHARDS (the message says what would work); VKT_E_STATE if
 * MPI was initialized without thread support (at least MPI_THREAD_SERIALIZED) or is finalized; VKT_E_NOMEM; VKT_E_PEER
 * if not all processes call it in time. Owner: the caller. */
VKT_API vkt_result vkt_mpi_open(const vkt_host *host, double timeout_seconds, vkt_mpi **out);
/* Disconnects. Waits for all ranks. After a failure of any rank it waits for no rank, for one second at most until its
 * messages have left, and does not finalize MPI: the program should then end by vkt_mpi_abort. The memory of messages
 * that MPI may still use is not freed then. */
VKT_API void vkt_mpi_close(vkt_mpi **m);
/* Returns the transport of this process: valid until vkt_mpi_close. All zeros for NULL. */
VKT_API vkt_transport vkt_mpi_transport(vkt_mpi *m);
/* Returns whether a rank has failed. */
VKT_API bool vkt_mpi_failed(const vkt_mpi *m);
/* Ends all processes of the run by MPI_Abort (this one by _Exit if MPI does not run): for a program whose ranks cannot
 * end together any more. Does not return.
 */
VKT_API void vkt_mpi_abort(int exit_code);

#ifdef __cplusplus
}
#endif
#endif
