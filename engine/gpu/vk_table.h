/* gpu/vk_table.h - the Vulkan functions that the engine calls, as a table per context.
 *
 * No part of the library links libvulkan: the functions are found at run time. The lists below have all functions in
 * use but three: GetInstanceProcAddr, which vkt_vk_open sets, and two functions for cooperative matrices, which coop.c
 * finds. All functions in the lists are core Vulkan 1.3, except those of VKT_VK_DEBUG_UTILS and VKT_VK_HOST_IMPORT.
 * The members of vkt_vk have no prefix "vk":
 *
 *     ctx->vk.CmdDispatch(cmd, x, 1, 1); */
#ifndef VKT_VK_TABLE_H
#define VKT_VK_TABLE_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include "base/base.h"

/* Functions that are found without an instance. */
#define VKT_VK_GLOBAL(X)                \
    X(CreateInstance)                   \
    X(EnumerateInstanceVersion)         \
    X(EnumerateInstanceLayerProperties) \
    X(EnumerateInstanceExtensionProperties)

/* Functions that are found with an instance. */
#define VKT_VK_INSTANCE(X)                       \
    X(DestroyInstance)                           \
    X(EnumeratePhysicalDevices)                  \
    X(EnumerateDeviceExtensionProperties)        \
    X(GetPhysicalDeviceProperties)               \
    X(GetPhysicalDeviceProperties2)              \
    X(GetPhysicalDeviceFeatures2)                \
    X(GetPhysicalDeviceFormatProperties2)        \
    X(GetPhysicalDeviceMemoryProperties)         \
    X(GetPhysicalDeviceMemoryProperties2)        \
    X(GetPhysicalDeviceQueueFamilyProperties)    \
    X(GetPhysicalDeviceExternalBufferProperties) \
    X(CreateDevice)                              \
    X(GetDeviceProcAddr)

/* Functions of VK_EXT_debug_utils: NULL unless the extension is enabled (ctx->has_debug_utils). */
#define VKT_VK_DEBUG_UTILS(X)        \
    X(CreateDebugUtilsMessengerEXT)  \
    X(DestroyDebugUtilsMessengerEXT) \
    X(SetDebugUtilsObjectNameEXT)    \
    X(CmdBeginDebugUtilsLabelEXT)    \
    X(CmdEndDebugUtilsLabelEXT)

/* Functions of VK_EXT_external_memory_host: NULL unless the extension is enabled. */
#define VKT_VK_HOST_IMPORT(X) X(GetMemoryHostPointerPropertiesEXT)

/* Functions that are found with a device. */
#define VKT_VK_DEVICE(X)           \
    X(DestroyDevice)               \
    X(DeviceWaitIdle)              \
    X(GetDeviceQueue)              \
    X(QueueSubmit2)                \
    X(CreateSemaphore)             \
    X(DestroySemaphore)            \
    X(WaitSemaphores)              \
    X(GetSemaphoreCounterValue)    \
    X(SignalSemaphore)             \
    X(AllocateMemory)              \
    X(FreeMemory)                  \
    X(MapMemory)                   \
    X(CreateBuffer)                \
    X(DestroyBuffer)               \
    X(GetBufferMemoryRequirements) \
    X(BindBufferMemory)            \
    X(CreateBufferView)            \
    X(DestroyBufferView)           \
    X(CreateImageView)             \
    X(DestroyImageView)            \
    X(CreateShaderModule)          \
    X(DestroyShaderModule)         \
    X(CreateDescriptorSetLayout)   \
    X(DestroyDescriptorSetLayout)  \
    X(CreatePipelineLayout)        \
    X(DestroyPipelineLayout)       \
    X(CreateComputePipelines)      \
    X(DestroyPipeline)             \
    X(CreatePipelineCache)         \
    X(DestroyPipelineCache)        \
    X(GetPipelineCacheData)        \
    X(CreateDescriptorPool)        \
    X(DestroyDescriptorPool)       \
    X(AllocateDescriptorSets)      \
    X(UpdateDescriptorSets)        \
    X(CreateCommandPool)           \
    X(DestroyCommandPool)          \
    X(ResetCommandPool)            \
    X(AllocateCommandBuffers)      \
    X(BeginCommandBuffer)          \
    X(EndCommandBuffer)            \
    X(CmdBindPipeline)             \
    X(CmdBindDescriptorSets)       \
    X(CmdPushConstants)            \
    X(CmdDispatch)                 \
    X(CmdDispatchIndirect)         \
    X(CmdPipelineBarrier2)         \
    X(CmdCopyBuffer)               \
    X(CmdFillBuffer)               \
    X(CmdUpdateBuffer)             \
    X(CreateQueryPool)             \
    X(DestroyQueryPool)            \
    X(GetQueryPoolResults)         \
    X(CmdResetQueryPool)           \
    X(CmdCopyQueryPoolResults)     \
    X(CmdWriteTimestamp2)

typedef struct vkt_vk {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define VKT_VK_MEMBER(name) PFN_vk##name name;
    VKT_VK_GLOBAL(VKT_VK_MEMBER)
    VKT_VK_INSTANCE(VKT_VK_MEMBER)
    VKT_VK_DEBUG_UTILS(VKT_VK_MEMBER)
    VKT_VK_DEVICE(VKT_VK_MEMBER)
    VKT_VK_HOST_IMPORT(VKT_VK_MEMBER)
#undef VKT_VK_MEMBER
} vkt_vk;

/* The source of the Vulkan functions. All zero: the installed loader. */
typedef struct vkt_loader {
    const char *const *names;           /* libraries to try, NULL-terminated; NULL: those of vkt_loader_names */
    PFN_vkGetInstanceProcAddr get_proc; /* not NULL: used instead of a library */
} vkt_loader;

/* Opens the loader and fills the global functions. *library is the library, or NULL if `loader` has get_proc.
 * VKT_E_NO_LOADER (the message says what to install), or VKT_E_DRIVER if the loader lacks a function. */
vkt_result vkt_vk_open(const vkt_host *h, const vkt_loader *loader, vkt_vk *vk, void **library);
void vkt_vk_close(void *library);
/* Fills the functions of an instance. `debug_utils`: VK_EXT_debug_utils is enabled. VKT_E_DRIVER if a function is
 * missing; its name is logged. */
vkt_result vkt_vk_load_instance(const vkt_host *h, vkt_vk *vk, VkInstance instance, bool debug_utils);
/* Fills the functions of a device. VKT_E_DRIVER if a function of Vulkan 1.3 is missing; its name is logged. If a
 * function of a device extension is missing, its member is NULL. */
vkt_result vkt_vk_load_device(const vkt_host *h, vkt_vk *vk, VkDevice device);

/* Returns the name, for instance "VK_ERROR_DEVICE_LOST"; "VkResult ?" for a result that the engine does not expect. */
const char *vkt_vk_result_name(VkResult r);

#endif
