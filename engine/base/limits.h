/* base/limits.h - the limits of a device, as plain numbers for the planner and the ops. gpu/ fills them in; folders
 * that do not include Vulkan use them; tests set their own. Traits (traits.h) say what the device does fast. */
#ifndef VKT_LIMITS_H
#define VKT_LIMITS_H

#include "base/traits.h"
#include "base/variant.h"
#include "vktrain/core.h"

/* The alignment of every tensor, and of every range that is bound, in bytes. It is the largest value that Vulkan allows
 * for minStorageBufferOffsetAlignment and minTexelBufferOffsetAlignment. */
#define VKT_ALIGN_BYTES 256u

/* The largest number of bindings that a kernel may have. A device is used only if a compute shader can have this many
 * storage buffers. Vulkan guarantees 4; all known devices of version 1.3 have 16 or more. */
#define VKT_MAX_BINDINGS 12u
#define VKT_MAX_SPECS 14u /* the largest number of specialisation constants that a kernel may have */

/* The sizes of the cooperative matrices with which kernels multiply. A subgroup multiplies a matrix of m x k elements
 * of f16 or bf16 by a matrix of k x n elements, and adds the product to a matrix of m x n elements of f32. m, n and k
 * are 8 or 16. For flexible matrices (VK_NV_cooperative_matrix2), m, n and k are powers of two from 1 to 32, and a
 * matrix may have any multiples of m, n and k as sizes. */
typedef struct vkt_coop {
    uint32_t m, n, k;
} vkt_coop;

typedef struct vkt_limits {
    /* Lanes of a subgroup: powers of two, at most 128. Kernels with the flag VKT_KF_SHORT (kernels.def) have
     * subgroup_short lanes. Kernels with VKT_KF_SHUFFLES have subgroup_shuffles lanes. All other kernels
     * that exchange data between lanes have subgroup_size lanes. In subgroup_short and
     * subgroup_shuffles, 0 stands for subgroup_size. */
    uint32_t subgroup_size, subgroup_short, subgroup_shuffles;
    uint32_t cores;                   /* number of cores, reported or estimated; 0 (in tests): use the trait `cores` */
    uint32_t max_workgroup_lanes;     /* most lanes of a work group that is 1 along y and z; >= 128 */
    uint32_t max_groups;              /* the smallest maxComputeWorkGroupCount of the three axes, >= 65535 */
    uint32_t max_push_bytes;          /* largest size of the push constants, >= 128 */
    uint32_t shared_bytes;            /* maxComputeSharedMemorySize, >= 16384 */
    uint64_t max_storage_range_bytes; /* largest size of one storage-buffer binding, >= 128 MiB */
    uint64_t max_texel_elements;      /* largest size of one texel-buffer view, in elements; 0: no texel loads */
    uint64_t max_allocation_bytes;    /* largest size of one buffer or one allocation */
    /* A device's max_storage_range_bytes and max_allocation_bytes are rounded down to multiples of VKT_ALIGN_BYTES. */
    /* For shaders of applications. max_local: most lanes of a work group along each axis. max_local_lanes: most lanes
     * of a work group. capabilities: the capabilities that SPIR-V modules may declare, as bits of vkt_capability
     * (base/spirv.h). */
    uint32_t max_local[3], max_local_lanes, capabilities;
    vkt_coop coop;            /* cooperative matrices of f16; all 0: there are none */
    vkt_coop coop2;           /* flexible cooperative matrices of f16; all 0: there are none */
    vkt_coop coop_bf16;       /* cooperative matrices of bf16; all 0: there are none */
    const vkt_traits *traits; /* what the device does fast; borrowed, never NULL */
    vkt_choices choices;      /* choices of variants by the user, and by tuning */
    const bool *built;        /* for tests, [kernel id]: whether the library has the kernel; NULL: see built.h */
} vkt_limits;

#endif
