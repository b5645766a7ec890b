/* base/built.c - see built.h. */
#include "base/built.h"

#include <stddef.h>

#include "base/base.h"

static const struct {
    const char *name;
    bool built;
} kernels[] = {
    { "NONE", true },
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) { #id, VKT_BUILT_##id },
#include "kernels.def"
#undef VKT_KERNEL
};

bool vkt_kernel_is_built(uint32_t id)
{
    return id >= VKT_COUNT(kernels) || kernels[id].built;
}

const char *vkt_kernel_name(uint32_t id)
{
    return id < VKT_COUNT(kernels) ? kernels[id].name : "?";
}
