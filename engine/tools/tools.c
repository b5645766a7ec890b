/* tools/tools.c - see tools.h. */
#include "tools/tools.h"

#include "tools_modules.h" /* generated: vkt_spv_<ID> and vkt_spv_<ID>_texel */

_Static_assert(VKT_K_COUNT + VKT_TOOL_COUNT <= VKT_K_END, "VKT_K_END has no room for the kernels of tools.def");

void vkt_tools_begin(void)
{
    static const vkt_kernel_entry rows[] = {
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) VKT_KERNEL_ROW(id, reads, writes, texels, flags),
#include "tools.def"
#undef VKT_KERNEL
    };
    vkt_kernel_add(rows, VKT_COUNT(rows));
}
