/* samples/mpi.h - the program that starts MPI's processes, and its environment, for tests of samples with --mpi. */
#ifndef VKT_TEST_SAMPLES_MPI_H
#define VKT_TEST_SAMPLES_MPI_H

#include <stddef.h>

/* The path of mpirun; NULL: this build has no MPI. */
#ifdef VKT_MPIRUN
static const char *const mpirun = VKT_MPIRUN;
#else
static const char *const mpirun = NULL;
#endif
/* Lets OpenMPI run as root and with more ranks than cores. LSAN_OPTIONS switches LeakSanitizer off, because OpenMPI
 * itself leaks memory. */
static const char *const mpi_env[] = { "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                       "OMPI_MCA_rmaps_base_oversubscribe=1", "LSAN_OPTIONS=detect_leaks=0", NULL };

#endif
