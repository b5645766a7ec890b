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

/* Most bindings of a kernel. A device is used only if it can bind this many storage buffers in a compute shader. Vulkan
 * guarantees 4; all known devices of version 1.3 have 16 or more. VKT_MAX_SPECS: most specialisation constants. */
#define VKT_MAX_BINDINGS 12u
#define VKT_MAX_SPECS 14u

/* The cooperative matrices that products use: a subgroup multiplies f16 or bf16 (m,k) by (k,n) and adds to f32 (m,n).
 * m, n and k are 8 or 16. For flexible matrices they are the steps between allowed sizes: powers of two from 1 to 32.
 */
typedef struct vkt_coop {
    uint32_t m, n, k;
} vkt_coop;

typedef struct vkt_limits {
    /* Lanes of a subgroup: powers of two, at most 128. Kernels with the flag SHORT or SHUFFLES (kernels.def) have
     * subgroup_short or subgroup_shuffles lanes; if that number is 0, they have subgroup_size lanes, as all other
     * kernels have. */
    uint32_t subgroup_size, subgroup_short, subgroup_shuffles;
    uint32_t cores;                   /* number of cores, reported or estimated; 0 (in tests): see the trait `cores` */
    uint32_t max_workgroup_lanes;     /* most lanes of a work group, all along x; >= 128 */
    uint32_t max_groups;              /* the smallest maxComputeWorkGroupCount of the three axes, >= 65535 */
    uint32_t max_push_bytes;          /* most bytes of push constants, >= 128 */
    uint32_t shared_bytes;            /* maxComputeSharedMemorySize, >= 16384 */
    uint64_t max_storage_range_bytes; /* most bytes of one storage-buffer binding, >= 128 MiB */
    uint64_t max_texel_elements;      /* most elements of one texel-buffer view; 0: there are no texel loads */
    uint64_t max_allocation_bytes;    /* most bytes of one buffer or one allocation */
    /* For shaders of applications: the largest size of a work group along each axis, the most lanes of a work group,
     * and the capabilities that SPIR-V modules may declare, as bits of vkt_capability (base/spirv.h). */
    uint32_t max_local[3], max_local_lanes, capabilities;
    vkt_coop coop;            /* cooperative matrices of f16; all 0: there are none */
    vkt_coop coop2;           /* flexible matrices of f16: the steps between their sizes; all 0: none */
    vkt_coop coop_bf16;       /* cooperative matrices of bf16; all 0: there are none */
    const vkt_traits *traits; /* what the device does fast; borrowed, never NULL */
    vkt_choices choices;      /* choices of variants by the user, and by tuning */
    const bool *built;        /* for tests, [kernel id]: whether the library has the kernel; NULL: see built.h */
} vkt_limits;

#endif
