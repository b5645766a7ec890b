/* gpu/capabilities.c - the SPIR-V capabilities that shaders of applications may declare on a device. Source: Vulkan 1.3
 * specification, appendix A, "Capabilities". */
#include "base/spirv.h"
#include "gpu/internal.h"

#include <stddef.h>

/* The location of a feature in a chain of structs: the type of a struct, and the offset of the feature's member in this
 * struct, in bytes. */
typedef struct location {
    VkStructureType type;
    size_t offset;
} location;

/* A capability, and the feature that allows it. Two structs can contain a feature: the struct of a Vulkan version, and
 * the struct of the extension that introduced the feature. `in` has the location in each of these structs. If only one
 * struct can contain the feature, both elements of `in` are equal. */
typedef struct allowed {
    vkt_capability capability;
    location in[2];
} allowed;

#define AT(Struct, TYPE, member)                                                             \
    {                                                                                        \
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE, offsetof(VkPhysicalDevice##Struct, member) \
    }
#define CORE(member) AT(Features2, FEATURES_2, features.member)
#define OF11(member) AT(Vulkan11Features, VULKAN_1_1_FEATURES, member)
#define OF12(member) AT(Vulkan12Features, VULKAN_1_2_FEATURES, member)

static const allowed list[] = {
    { VKT_CAPABILITY_FLOAT64, { CORE(shaderFloat64), CORE(shaderFloat64) } },
    { VKT_CAPABILITY_INT64, { CORE(shaderInt64), CORE(shaderInt64) } },
    { VKT_CAPABILITY_INT16, { CORE(shaderInt16), CORE(shaderInt16) } },
    { VKT_CAPABILITY_FLOAT16,
      { OF12(shaderFloat16), AT(ShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES, shaderFloat16) } },
    { VKT_CAPABILITY_INT8,
      { OF12(shaderInt8), AT(ShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES, shaderInt8) } },
    { VKT_CAPABILITY_INT64_ATOMICS,
      { OF12(shaderBufferInt64Atomics),
        AT(ShaderAtomicInt64Features, SHADER_ATOMIC_INT64_FEATURES, shaderBufferInt64Atomics) } },
    { VKT_CAPABILITY_STORAGE_16_BIT,
      { OF11(storageBuffer16BitAccess), AT(16BitStorageFeatures, 16BIT_STORAGE_FEATURES, storageBuffer16BitAccess) } },
    { VKT_CAPABILITY_STORAGE_8_BIT,
      { OF12(storageBuffer8BitAccess), AT(8BitStorageFeatures, 8BIT_STORAGE_FEATURES, storageBuffer8BitAccess) } },
    { VKT_CAPABILITY_MEMORY_MODEL,
      { OF12(vulkanMemoryModel), AT(VulkanMemoryModelFeatures, VULKAN_MEMORY_MODEL_FEATURES, vulkanMemoryModel) } },
    { VKT_CAPABILITY_MEMORY_MODEL_DEVICE_SCOPE,
      { OF12(vulkanMemoryModelDeviceScope),
        AT(VulkanMemoryModelFeatures, VULKAN_MEMORY_MODEL_FEATURES, vulkanMemoryModelDeviceScope) } },
    { VKT_CAPABILITY_ATOMIC_FLOAT32_ADD,
      { AT(ShaderAtomicFloatFeaturesEXT, SHADER_ATOMIC_FLOAT_FEATURES_EXT, shaderBufferFloat32AtomicAdd),
        AT(ShaderAtomicFloatFeaturesEXT, SHADER_ATOMIC_FLOAT_FEATURES_EXT, shaderBufferFloat32AtomicAdd) } },
};

static bool is_on(const VkBaseInStructure *s, const location *at)
{
    VkBool32 value = VK_FALSE;
    if (s->sType == at->type) memcpy(&value, (const char *)s + at->offset, sizeof value);
    return value;
}

uint32_t vkt_capabilities_of(const void *chain)
{
    uint32_t bits = VKT_CAPABILITY_BIT(MATRIX) | VKT_CAPABILITY_BIT(SHADER);
    for (const VkBaseInStructure *s = chain; s; s = s->pNext)
        for (size_t i = 0; i < VKT_COUNT(list); i++)
            if (is_on(s, &list[i].in[0]) || is_on(s, &list[i].in[1])) bits |= 1u << list[i].capability;
    return bits;
}

uint32_t vkt_capabilities_of_subgroups(VkSubgroupFeatureFlags operations)
{
    static const struct {
        VkSubgroupFeatureFlagBits operation;
        uint32_t bit;
    } all[] = {
        { VK_SUBGROUP_FEATURE_BASIC_BIT, VKT_CAPABILITY_BIT(GROUP) },
        { VK_SUBGROUP_FEATURE_VOTE_BIT, VKT_CAPABILITY_BIT(GROUP_VOTE) },
        { VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, VKT_CAPABILITY_BIT(GROUP_ARITHMETIC) },
        { VK_SUBGROUP_FEATURE_BALLOT_BIT, VKT_CAPABILITY_BIT(GROUP_BALLOT) },
        { VK_SUBGROUP_FEATURE_SHUFFLE_BIT, VKT_CAPABILITY_BIT(GROUP_SHUFFLE) },
        { VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT, VKT_CAPABILITY_BIT(GROUP_SHUFFLE_RELATIVE) },
        { VK_SUBGROUP_FEATURE_CLUSTERED_BIT, VKT_CAPABILITY_BIT(GROUP_CLUSTERED) },
        { VK_SUBGROUP_FEATURE_QUAD_BIT, VKT_CAPABILITY_BIT(GROUP_QUAD) },
    };
    uint32_t bits = 0;
    for (size_t i = 0; i < VKT_COUNT(all); i++)
        if (operations & all[i].operation) bits |= all[i].bit;
    return bits;
}
