/* kernel/ids.h - one number per entry of shaders/kernels.def. It uses no Vulkan, so ops can name kernels as data. */
#ifndef VKT_KERNEL_IDS_H
#define VKT_KERNEL_IDS_H

typedef enum vkt_kernel_id {
    VKT_K_NONE = 0,
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) VKT_K_##id,
#include "kernels.def"
#undef VKT_KERNEL
    VKT_K_COUNT,
    /* Ids from VKT_K_COUNT on, below VKT_K_END, are for kernels that a program adds: vkt_kernel_add. */
    VKT_K_END = VKT_K_COUNT + 8
} vkt_kernel_id;

/* Flags of an entry. SUBGROUP: a work group is one full subgroup, so specialization constant 0, its number of lanes, is
 * the device's subgroup size. */
#define VKT_KF_SUBGROUP 1u
/* A work group is one full subgroup or several. Specialization constant 0 is a multiple of the subgroup size, and the
 * constant SUBGROUPS_SPEC (abi/lanes.abi.h) is the number of subgroups. */
#define VKT_KF_SUBGROUPS 2u
/* The kernel uses cooperative matrices: only for devices that have some (vkt_limits.coop). */
#define VKT_KF_COOP 16u
/* Binding 0 is no storage buffer. SAMPLED: a sampled image. IMAGE: a storage image. FETCHED: a uniform texel buffer. */
#define VKT_KF_SAMPLED 4u
#define VKT_KF_IMAGE 8u
#define VKT_KF_FETCHED 32u

#endif
