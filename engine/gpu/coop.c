/* gpu/coop.c - see coop.h. */
#include "gpu/internal.h"

bool vkt_coop_offered(vkt_ctx *ctx, VkPhysicalDevice phys)
{
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coop = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR
    };
    VkPhysicalDeviceVulkan12Features v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                             .pNext = &coop };
    VkPhysicalDeviceFeatures2 core = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v12 };
    ctx->vk.GetPhysicalDeviceFeatures2(phys, &core);
    return vkt_features_have_coop(&core);
}

bool vkt_coop2_offered(vkt_ctx *ctx, VkPhysicalDevice phys)
{
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV flexible = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV
    };
    VkPhysicalDeviceVulkan11Features v11 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                             .pNext = &flexible };
    VkPhysicalDeviceFeatures2 core = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v11 };
    ctx->vk.GetPhysicalDeviceFeatures2(phys, &core);
    return vkt_features_have_coop2(&core);
}

bool vkt_bfloat_offered(vkt_ctx *ctx, VkPhysicalDevice phys)
{
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR
    };
    VkPhysicalDeviceFeatures2 core = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &bfloat };
    ctx->vk.GetPhysicalDeviceFeatures2(phys, &core);
    return vkt_features_have_bfloat(&core);
}

/* Returns whether our shaders can use the cooperative matrices of the device. Three conditions must hold.
 * 1. The device allows the matrices in compute shaders.
 * 2. Shaders may ask for rounding to nearest even in conversions to f16, as ours do (shaders/lib/rounding.glsl).
 * 3. The matrices work with each subgroup size of the device. This is so if the device has only one subgroup
 *    size, or if all its subgroup sizes are 32 or more. Other devices are excluded: their matrices need a subgroup
 *    size that the driver does not report. On Intel, for instance, subgroups have 8 to 32 lanes, and matrices need 8
 *    or 16 lanes. */
static bool fits_subgroups(vkt_ctx *ctx)
{
    VkPhysicalDeviceCooperativeMatrixPropertiesKHR coop = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR
    };
    VkPhysicalDeviceVulkan12Properties v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES,
                                               .pNext = &coop };
    VkPhysicalDeviceVulkan13Properties v13 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES,
                                               .pNext = &v12 };
    VkPhysicalDeviceProperties2 core = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &v13 };
    ctx->vk.GetPhysicalDeviceProperties2(ctx->phys, &core);
    return (coop.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) && v12.shaderRoundingModeRTEFloat16 &&
           (v13.minSubgroupSize == v13.maxSubgroupSize || v13.minSubgroupSize >= 32);
}

static bool is_ours(const VkCooperativeMatrixPropertiesKHR *p, VkComponentTypeKHR type)
{
    const uint32_t sizes[] = { p->MSize, p->NSize, p->KSize };
    for (size_t i = 0; i < VKT_COUNT(sizes); i++)
        if (sizes[i] < 8 || sizes[i] > 16 || (sizes[i] & (sizes[i] - 1))) return false;
    return p->AType == type && p->BType == type && p->CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
           p->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR && !p->saturatingAccumulation &&
           p->scope == VK_SCOPE_SUBGROUP_KHR;
}

vkt_result vkt_coop_sizes(vkt_ctx *ctx, VkComponentTypeKHR type, vkt_coop *out)
{
    static const char *const what = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
    const PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR get =
        (PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)ctx->vk.GetInstanceProcAddr(ctx->instance, what);
    uint32_t n = 0;
    *out = (vkt_coop){ 0 };
    if (!get || !fits_subgroups(ctx)) return VKT_OK;
    VKT_TRY(vkt_vk_check(ctx, get(ctx->phys, &n, NULL), what));
    VkCooperativeMatrixPropertiesKHR *list = vkt_alloc_array(&ctx->host, n, sizeof *list);
    if (!list) return vkt_fail_nomem(&ctx->host, "the list of cooperative matrices", n * sizeof *list);
    for (uint32_t i = 0; i < n; i++) list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    const VkResult r = get(ctx->phys, &n, list);
    for (uint32_t i = 0; i < n && r >= 0; i++) { /* chooses the largest matrix: it needs the fewest loads per element */
        const VkCooperativeMatrixPropertiesKHR *p = &list[i];
        if (is_ours(p, type) && p->MSize * p->NSize * p->KSize > out->m * out->n * out->k)
            *out = (vkt_coop){ p->MSize, p->NSize, p->KSize };
    }
    vkt_free(&ctx->host, list);
    return r < 0 ? vkt_vk_check(ctx, r, what) : VKT_OK;
}

/* Returns whether our shaders can use flexible matrices of this kind: f16 operands, f32 sums without saturation,
 * subgroup scope, and granularities of M, N and K that are powers of two up to 32. divide_evenly in
 * ops/product/blocks.c checks that tiles are multiples of the granularities. */
static bool is_flexible(const VkCooperativeMatrixFlexibleDimensionsPropertiesNV *p)
{
    const uint32_t steps[] = { p->MGranularity, p->NGranularity, p->KGranularity };
    for (size_t i = 0; i < VKT_COUNT(steps); i++)
        if (steps[i] < 1 || steps[i] > 32 || (steps[i] & (steps[i] - 1))) return false;
    return p->AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p->BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
           p->CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
           !p->saturatingAccumulation && p->scope == VK_SCOPE_SUBGROUP_KHR;
}

/* Returns the largest number of rows or columns that a flexible matrix may have. */
static uint32_t largest_dimension(vkt_ctx *ctx)
{
    VkPhysicalDeviceCooperativeMatrix2PropertiesNV own = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV
    };
    VkPhysicalDeviceProperties2 core = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &own };
    ctx->vk.GetPhysicalDeviceProperties2(ctx->phys, &core);
    return own.cooperativeMatrixFlexibleDimensionsMaxDimension;
}

vkt_result vkt_coop2_steps(vkt_ctx *ctx, vkt_coop *out)
{
    static const char *const what = "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV";
    const PFN_vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV get =
        (PFN_vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV)ctx->vk.GetInstanceProcAddr(
            ctx->instance, what);
    uint32_t n = 0;
    *out = (vkt_coop){ 0 };
    /* 128: a matrix has at most as many rows and columns as the largest tile (ops/product/blocks.c). */
    if (!get || !ctx->limits.coop.m || largest_dimension(ctx) < 128) return VKT_OK;
    VKT_TRY(vkt_vk_check(ctx, get(ctx->phys, &n, NULL), what));
    VkCooperativeMatrixFlexibleDimensionsPropertiesNV *list = vkt_alloc_array(&ctx->host, n, sizeof *list);
    if (!list) return vkt_fail_nomem(&ctx->host, "the list of flexible matrices", n * sizeof *list);
    for (uint32_t i = 0; i < n; i++)
        list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV;
    const VkResult r = get(ctx->phys, &n, list);
    for (uint32_t i = 0; i < n && r >= 0; i++) {
        const VkCooperativeMatrixFlexibleDimensionsPropertiesNV *p = &list[i];
        const vkt_coop steps = { p->MGranularity, p->NGranularity, p->KGranularity };
        if (is_flexible(p) && (!out->m || steps.m * steps.n * steps.k < out->m * out->n * out->k)) *out = steps;
    }
    vkt_free(&ctx->host, list);
    return r < 0 ? vkt_vk_check(ctx, r, what) : VKT_OK;
}
