/* Links libvktrain_mpi. Does not start MPI, because MPI may need a launcher. */
#include <stdio.h>

#include "vktrain/mpi.h"
#include "vktrain/vktrain.h"

int main(void)
{
    vkt_mpi *none = NULL;
    const vkt_result r = vkt_mpi_open(NULL, -1, &none); /* refused before MPI starts */
    vkt_mpi_close(&none);
    printf("%s\n", vkt_result_name(r));
    return r == VKT_E_ARG && !none && !vkt_mpi_failed(none) ? 0 : 1;
}
