/* base/built.h - which kernels this build has (VKT_KERNELS, cmake/KernelSets.cmake). */
#ifndef VKT_BUILT_H
#define VKT_BUILT_H

#include <stdbool.h>
#include <stdint.h>

#include "built_kernels.h" /* generated: VKT_BUILT_<ID> is 1 or 0 for each entry of shaders/kernels.def */

/* Returns whether the library has the kernel `id` (vkt_kernel_id). True for ids that are not in kernels.def: a program
 * adds such kernels itself. */
bool vkt_kernel_is_built(uint32_t id);
/* Returns the name of a kernel of kernels.def, "GEMM_TILE" for instance; "?" for another id. A static string. */
const char *vkt_kernel_name(uint32_t id);

#endif
