/* kernel/ids.h - one id for each entry of shaders/kernels.def. Ops can include this file: it does not use Vulkan. */
#ifndef VKT_KERNEL_IDS_H
#define VKT_KERNEL_IDS_H

#include "base/limits.h"

typedef enum vkt_kernel_id {
    VKT_K_NONE = 0,
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) VKT_K_##id,
#include "kernels.def"
#undef VKT_KERNEL
    VKT_K_COUNT,
    /* The ids from VKT_K_COUNT to VKT_K_END - 1 are for kernels that vkt_kernel_add adds. */
    VKT_K_END = VKT_K_COUNT + 8
} vkt_kernel_id;

/* VKT_KF_*: the flags of an entry. SUBGROUP: a work group is one full subgroup. Specialization constant 0 is the number
 * of lanes of a work group, and so the size of a subgroup. */
#define VKT_KF_SUBGROUP 1u
/* A work group is one full subgroup or several. Specialization constant 0 is a multiple of the subgroup size, and the
 * constant SUBGROUPS_SPEC (abi/lanes.abi.h) is the number of subgroups. */
#define VKT_KF_SUBGROUPS 2u
/* The kernel uses cooperative matrices. Only a device with such matrices can run it (vkt_limits.coop). */
#define VKT_KF_COOP 16u
/* In addition to COOP: the matrices are flexible (VK_NV_cooperative_matrix2, vkt_limits.coop2). */
#define VKT_KF_COOP2 256u
/* In addition to COOP: the elements of the matrices are bfloat16 (vkt_limits.coop_bf16, not vkt_limits.coop). */
#define VKT_KF_BFLOAT 512u
/* With one of these flags, binding 0 is not a storage buffer. SAMPLED: it is a sampled image. IMAGE: it is a storage
 * image. FETCHED: it is a uniform texel buffer. */
#define VKT_KF_SAMPLED 4u
#define VKT_KF_IMAGE 8u
#define VKT_KF_FETCHED 32u
/* These flags select the subgroup size: SHORT selects vkt_limits.subgroup_short, and SHUFFLES selects
 * vkt_limits.subgroup_shuffles. SHORT: the kernel needs many registers, and a lane of a short subgroup gets more
 * registers. SHUFFLES: each lane reads the values of all other lanes, so the work of a lane grows with the size of the
 * subgroup. */
#define VKT_KF_SHORT 64u
#define VKT_KF_SHUFFLES 128u

/* Returns the number of lanes of a subgroup of a kernel with these flags. If the flags select a member of vkt_limits
 * that is 0, as in some tests, the result is subgroup_size. */
static inline uint32_t vkt_subgroup_of_flags(const vkt_limits *lim, uint32_t flags)
{
    const uint32_t wish = flags & VKT_KF_SHORT      ? lim->subgroup_short
                          : flags & VKT_KF_SHUFFLES ? lim->subgroup_shuffles
                                                    : 0;
    return wish ? wish : lim->subgroup_size;
}

#endif
