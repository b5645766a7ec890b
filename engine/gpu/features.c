/* gpu/features.c - lists of the device features that the engine needs. An application can create its device with the
 * structs that vkt_vk_get_needs returns. Or it calls vkt_vk_add_features, which sets the features in the application's
 * own chain. When the engine adopts the device, it looks for the features in the chain that the application used. */
#include "gpu/internal.h"

#include <stddef.h>

/* X(member, struct of the extension that introduced the feature, type of this struct). The member has the same name in
 * the struct of the Vulkan version. Vulkan 1.3 requires these features of each driver, but a broken driver may lack
 * them. Each device must be created with these features enabled. */
#define VULKAN12_FEATURES(X) X(timelineSemaphore, TimelineSemaphore, TIMELINE_SEMAPHORE)
#define VULKAN13_FEATURES(X)                                           \
    X(synchronization2, Synchronization2, SYNCHRONIZATION_2)           \
    X(maintenance4, Maintenance4, MAINTENANCE_4)                       \
    X(subgroupSizeControl, SubgroupSizeControl, SUBGROUP_SIZE_CONTROL) \
    X(computeFullSubgroups, SubgroupSizeControl, SUBGROUP_SIZE_CONTROL)

#define SET(member, single, type) .member = VK_TRUE,
static const VkPhysicalDeviceVulkan13Features needs13 = { .sType =
                                                              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                                          VULKAN13_FEATURES(SET) };
static const VkPhysicalDeviceVulkan12Features needs12 = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = (void *)&needs13, VULKAN12_FEATURES(SET)
};
#undef SET

const vkt_vk_needs *vkt_vk_get_needs(void)
{
    static const char *const extensions[] = { VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
                                              VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME };
    static const vkt_vk_needs needs = { .api_version = VK_API_VERSION_1_3,
                                        .queue_flags = VK_QUEUE_COMPUTE_BIT,
                                        .features = &needs12,
                                        .extensions = extensions,
                                        .n_extensions = VKT_COUNT(extensions) };
    return &needs;
}

/* A feature, and where it is in a chain. Two structs can contain a feature: the struct of a Vulkan version, and the
 * struct of the extension that introduced the feature. A chain has at most one of them. `offset`: bytes from the start
 * of the struct to the feature's member. If only one struct can contain the feature, both elements of `in` are equal.
 */
typedef struct feature {
    const char *name;
    struct {
        VkStructureType type;
        size_t offset;
    } in[2];
} feature;

#define FEATURE(version, TYPE, member, single, SINGLE)             \
    { "feature " #member,                                          \
      { { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE##_FEATURES,     \
          offsetof(VkPhysicalDevice##version##Features, member) }, \
        { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##SINGLE##_FEATURES,   \
          offsetof(VkPhysicalDevice##single##Features, member) } } },
#define OF12(...) FEATURE(Vulkan12, VULKAN_1_2, __VA_ARGS__)
#define OF13(...) FEATURE(Vulkan13, VULKAN_1_3, __VA_ARGS__)
static const feature features[] = { VULKAN12_FEATURES(OF12) VULKAN13_FEATURES(OF13) };
/* The features that our shaders with cooperative matrices need, and vulkanMemoryModelDeviceScope. If vulkanMemoryModel
 * is enabled, all shaders whose atomic operations have the scope of the device need vulkanMemoryModelDeviceScope, for
 * instance overflow.comp. */
#define COOP12_FEATURES(X)                                       \
    X(shaderFloat16, ShaderFloat16Int8, SHADER_FLOAT16_INT8)     \
    X(vulkanMemoryModel, VulkanMemoryModel, VULKAN_MEMORY_MODEL) \
    X(vulkanMemoryModelDeviceScope, VulkanMemoryModel, VULKAN_MEMORY_MODEL)
#define COOP                                                                          \
    {                                                                                 \
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,            \
            offsetof(VkPhysicalDeviceCooperativeMatrixFeaturesKHR, cooperativeMatrix) \
    }
static const feature coop_features[] = { COOP12_FEATURES(OF12){ "feature cooperativeMatrix", { COOP, COOP } } };
#undef COOP
/* The further features that our shaders with flexible matrices need. storageBuffer16BitAccess is needed because these
 * shaders store single f16 elements. */
#define COOP2(member)                                                       \
    {                                                                       \
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV, \
            offsetof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, member)  \
    }
static const feature coop2_features[] = {
    FEATURE(Vulkan11, VULKAN_1_1, storageBuffer16BitAccess, 16BitStorage, 16BIT_STORAGE){
        "feature cooperativeMatrixFlexibleDimensions",
        { COOP2(cooperativeMatrixFlexibleDimensions), COOP2(cooperativeMatrixFlexibleDimensions) } },
    { "feature cooperativeMatrixPerElementOperations",
      { COOP2(cooperativeMatrixPerElementOperations), COOP2(cooperativeMatrixPerElementOperations) } },
};
#undef COOP2
/* The further features that our shaders with elements of bfloat16 need. */
#define BFLOAT(member)                                                                \
    {                                                                                 \
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,               \
            offsetof(VkPhysicalDeviceShaderBfloat16FeaturesKHR, shaderBFloat##member) \
    }
static const feature bfloat_features[] = {
    { "feature shaderBFloat16Type", { BFLOAT(16Type), BFLOAT(16Type) } },
    { "feature shaderBFloat16CooperativeMatrix", { BFLOAT(16CooperativeMatrix), BFLOAT(16CooperativeMatrix) } },
};
#undef BFLOAT
/* The feature that kernels with texel buffers need. */
#define CORE                                                                                                    \
    {                                                                                                           \
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, offsetof(VkPhysicalDeviceFeatures2, features.shaderInt64) \
    }
static const feature int64_feature = { "feature shaderInt64", { CORE, CORE } };
#undef CORE
#undef OF12
#undef OF13

/* Returns a pointer to the member of a feature; NULL: no struct of the chain has this member. */
static VkBool32 *find(const void *chain, const feature *f)
{
    for (const VkBaseInStructure *s = chain; s; s = s->pNext)
        for (int i = 0; i < 2; i++)
            if (s->sType == f->in[i].type) return (VkBool32 *)((uintptr_t)s + f->in[i].offset);
    return NULL;
}

uint32_t vkt_feature_count(void)
{
    return VKT_COUNT(features);
}

const char *vkt_feature_name(uint32_t i)
{
    return features[i].name;
}

bool vkt_feature_is_on(const void *chain, uint32_t i)
{
    const VkBool32 *is_on = find(chain, &features[i]);
    return is_on && *is_on;
}

const void *vkt_features_with_coop(vkt_coop_features *own, bool flexible, bool bfloat)
{
    own->v12 = needs12;
    own->v12.pNext = &own->coop;
    own->v12.shaderFloat16 = own->v12.vulkanMemoryModel = own->v12.vulkanMemoryModelDeviceScope = VK_TRUE;
    own->coop = (VkPhysicalDeviceCooperativeMatrixFeaturesKHR){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        .pNext = (void *)&needs13,
        .cooperativeMatrix = VK_TRUE,
    };
    own->coop2 = (VkPhysicalDeviceCooperativeMatrix2FeaturesNV){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
        .pNext = &own->storage,
        .cooperativeMatrixFlexibleDimensions = VK_TRUE,
        .cooperativeMatrixPerElementOperations = VK_TRUE,
    };
    own->storage = (VkPhysicalDevice16BitStorageFeatures){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
        .pNext = own->coop.pNext,
        .storageBuffer16BitAccess = VK_TRUE,
    };
    if (flexible) own->coop.pNext = &own->coop2;
    own->bfloat = (VkPhysicalDeviceShaderBfloat16FeaturesKHR){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
        .pNext = own->coop.pNext,
        .shaderBFloat16Type = VK_TRUE,
        .shaderBFloat16CooperativeMatrix = VK_TRUE,
    };
    if (bfloat) own->coop.pNext = &own->bfloat;
    return &own->v12;
}

/* Returns whether the chain has the n features of the list. */
static bool have_all(const void *chain, const feature *list, size_t n)
{
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        const VkBool32 *is_on = find(chain, &list[i]);
        all = all && is_on && *is_on;
    }
    return all;
}

bool vkt_features_have_coop(const void *chain)
{
    return have_all(chain, coop_features, VKT_COUNT(coop_features));
}

bool vkt_features_have_coop2(const void *chain)
{
    return have_all(chain, coop2_features, VKT_COUNT(coop2_features));
}

bool vkt_features_have_bfloat(const void *chain)
{
    return have_all(chain, bfloat_features, VKT_COUNT(bfloat_features));
}

bool vkt_features_have_int64(const void *chain)
{
    const VkBool32 *is_on = find(chain, &int64_feature);
    return is_on && *is_on;
}

vkt_result vkt_vk_add_features(const vkt_host *host, void *chain)
{
    const vkt_host h = vkt_host_resolve(host);
    vkt_text missing = { .h = &h };
    for (size_t i = 0; i < VKT_COUNT(features); i++) {
        VkBool32 *at = find(chain, &features[i]);
        if (at)
            *at = VK_TRUE;
        else
            vkt_text_add(&missing, "%s%s", missing.len ? ", " : "", features[i].name);
    }
    vkt_result r = VKT_OK;
    if (missing.failed)
        r = vkt_fail_nomem(&h, "a message", 0);
    else if (missing.len)
        r = vkt_fail(&h, VKT_E_ARG,
                     "features: no struct of the chain has %s; want VkPhysicalDeviceVulkan12Features and "
                     "VkPhysicalDeviceVulkan13Features in it",
                     missing.s);
    vkt_text_free(&missing);
    return r;
}
