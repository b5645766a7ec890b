/* base/built.c - see built.h. */
#include "base/built.h"

#include "base/base.h"

/* The names, each with its NUL, without gaps. A table of pointers would need a relocation for each name. */
static const struct {
    char NONE[sizeof "NONE"];
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) char id[sizeof #id];
#include "kernels.def"
#undef VKT_KERNEL
} names = {
    "NONE",
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) #id,
#include "kernels.def"
#undef VKT_KERNEL
};

static const bool built[] = {
    true,
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) VKT_BUILT_##id,
#include "kernels.def"
#undef VKT_KERNEL
};

bool vkt_kernel_is_built(uint32_t id)
{
    return id >= VKT_COUNT(built) || built[id];
}

const char *vkt_kernel_name(uint32_t id)
{
    const char *name = (const char *)&names;
    if (id >= VKT_COUNT(built)) return "?";
    for (; id > 0; id--) name += strlen(name) + 1;
    return name;
}

const char *vkt_build_text(void)
{
    return VKT_BUILD_TEXT;
}
