/* tools/tools.h - kernels that only tests and vkt-bench run. They are not in libvktrain. A program that needs these
 * kernels links the library vkt_tools in addition to libvktrain, and calls vkt_tools_begin. */
#ifndef VKT_TOOLS_H
#define VKT_TOOLS_H

#include "kernel/kernel.h"

enum {
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) VKT_TOOL_##id,
#include "tools.def"
#undef VKT_KERNEL
    VKT_TOOL_COUNT
};

/* The ids of these kernels, VKT_K_<ID>, for vkt_pipeline_get and vkt_dispatch_add. */
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) \
    static const vkt_kernel_id VKT_K_##id = (vkt_kernel_id)(VKT_K_COUNT + VKT_TOOL_##id);
#include "tools.def"
#undef VKT_KERNEL

/* Adds the kernels to those that vkt_kernel_get finds. Call this function before other threads use engine/kernel. A
 * second call changes nothing. */
void vkt_tools_begin(void);

#endif
