/* ops/subgroup.c - the size of a kernel's subgroups, from its flags in shaders/kernels.def. */
#include "ops/ops.h"

uint32_t vkt_subgroup(const vkt_limits *lim, uint16_t kernel)
{
    static const uint32_t flags[] = {
        [VKT_K_NONE] = 0,
#define VKT_KERNEL(id, file, defines, reads, writes, texels, kf) [VKT_K_##id] = (kf),
#include "kernels.def"
#undef VKT_KERNEL
    };
    return vkt_subgroup_of_flags(lim, flags[kernel]);
}
