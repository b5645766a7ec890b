/* gpu/cores.c - finds the number of a device's cores. Vulkan does not report this number, but three extensions of
 * vendors do. The properties of such an extension can be read even if it is not enabled. */
#include "gpu/internal.h"

#include <string.h>

/* The properties struct of one of the three extensions. Each struct begins with sType and pNext, like `head`. */
typedef union report {
    VkBaseOutStructure head;
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia;
    VkPhysicalDeviceShaderCoreProperties2AMD amd;
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm;
} report;

typedef struct source {
    const char *extension;
    VkStructureType type;
    size_t at; /* offset of the number of cores in the struct, in bytes */
} source;
static const source sources[] = {
    { VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV,
      offsetof(VkPhysicalDeviceShaderSMBuiltinsPropertiesNV, shaderSMCount) },
    { VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD,
      offsetof(VkPhysicalDeviceShaderCoreProperties2AMD, activeComputeUnitCount) },
    { VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM,
      offsetof(VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM, shaderCoreCount) },
};

/* Sets *found to an entry of `sources` whose extension the device has; NULL: there is none. */
static vkt_result find(vkt_ctx *ctx, const source **found)
{
    static const char *const what = "vkEnumerateDeviceExtensionProperties";
    uint32_t n = 0;
    *found = NULL;
    VKT_TRY(vkt_vk_check(ctx, ctx->vk.EnumerateDeviceExtensionProperties(ctx->phys, NULL, &n, NULL), what));
    VkExtensionProperties *list = vkt_alloc_array(&ctx->host, n, sizeof *list);
    if (!list) return vkt_fail_nomem(&ctx->host, "the list of device extensions", n * sizeof *list);
    const VkResult r = ctx->vk.EnumerateDeviceExtensionProperties(ctx->phys, NULL, &n, list);
    for (uint32_t i = 0; i < n && r >= 0; i++)
        for (size_t k = 0; k < VKT_COUNT(sources); k++)
            if (strcmp(list[i].extensionName, sources[k].extension) == 0) *found = &sources[k];
    vkt_free(&ctx->host, list);
    return r < 0 ? vkt_vk_check(ctx, r, what) : VKT_OK;
}

vkt_result vkt_cores_fill(vkt_ctx *ctx)
{
    const source *s;
    uint32_t cores = 0;
    VKT_TRY(find(ctx, &s));
    if (s) {
        report r = { .head = { .sType = s->type } };
        VkPhysicalDeviceProperties2 core = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &r };
        ctx->vk.GetPhysicalDeviceProperties2(ctx->phys, &core);
        memcpy(&cores, (const char *)&r + s->at, sizeof cores);
    }
    if (cores == 0 || vkt_trait_is_set(&ctx->traits_set, VKT_T_cores)) cores = ctx->traits.cores;
    ctx->limits.cores = cores;
    return VKT_OK;
}
