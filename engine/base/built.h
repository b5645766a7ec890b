/* base/built.h - which kernels this build has (VKT_KERNELS, cmake/KernelSets.cmake). */
#ifndef VKT_BUILT_H
#define VKT_BUILT_H

#include <stdbool.h>
#include <stdint.h>

#include "built_kernels.h" /* generated: VKT_BUILT_<ID> is 1 or 0 for each entry of shaders/kernels.def */

/* Returns whether the library has the kernel `id` (vkt_kernel_id). Returns true for an id that is not in kernels.def,
 * because vkt_kernel_add adds the kernels of such ids. */
bool vkt_kernel_is_built(uint32_t id);
/* Returns the name of a kernel of kernels.def, "GEMM_TILE" for instance; "NONE" for VKT_K_NONE; "?" for any other
 * id. A static string. */
const char *vkt_kernel_name(uint32_t id);

#endif
