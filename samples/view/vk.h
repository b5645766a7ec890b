/* view/vk.h - a table of the Vulkan functions that the sample calls. It does not link libvulkan. Members are named
 * without the prefix: vk->CmdDraw(cmd, 3, 1, 0, 0). */
#ifndef VIEW_VK_H
#define VIEW_VK_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include "vktrain/core.h"

/* clang-format off */
#define VIEW_VK_GLOBAL(X) X(CreateInstance) X(EnumerateInstanceExtensionProperties)
#define VIEW_VK_INSTANCE(X)                                                                                            \
    X(DestroyInstance) X(EnumeratePhysicalDevices) X(EnumerateDeviceExtensionProperties)                               \
    X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceFeatures) X(GetPhysicalDeviceQueueFamilyProperties)        \
    X(CreateDevice) X(GetDeviceProcAddr)
/* These functions are NULL if the instance does not have their extensions. */
#define VIEW_VK_INSTANCE_EXTENSIONS(X)                                                                                 \
    X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT)                                                   \
    X(DestroySurfaceKHR) X(GetPhysicalDeviceSurfaceCapabilitiesKHR) X(GetPhysicalDeviceSurfaceFormatsKHR)
#define VIEW_VK_DEVICE(X)                                                                                              \
    X(DestroyDevice) X(DeviceWaitIdle) X(GetDeviceQueue) X(QueueSubmit2)                                               \
    X(CreateSemaphore) X(DestroySemaphore) X(CreateFence) X(DestroyFence) X(WaitForFences) X(ResetFences)              \
    X(AllocateMemory) X(FreeMemory) X(MapMemory)                                                                       \
    X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(BindBufferMemory)                                \
    X(CreateImage) X(DestroyImage) X(GetImageMemoryRequirements) X(BindImageMemory)                                    \
    X(CreateImageView) X(DestroyImageView) X(CreateSampler) X(DestroySampler)                                          \
    X(CreateShaderModule) X(DestroyShaderModule) X(CreateGraphicsPipelines) X(DestroyPipeline)                         \
    X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout)        \
    X(CreateDescriptorPool) X(DestroyDescriptorPool) X(AllocateDescriptorSets) X(UpdateDescriptorSets)                 \
    X(CreateCommandPool) X(DestroyCommandPool) X(ResetCommandPool) X(AllocateCommandBuffers)                           \
    X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdPipelineBarrier2) X(CmdCopyBufferToImage) X(CmdCopyImageToBuffer)   \
    X(CmdBeginRendering) X(CmdEndRendering) X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants)            \
    X(CmdSetViewport) X(CmdSetScissor) X(CmdDraw)
/* These functions are NULL if the device does not have their extension. */
#define VIEW_VK_DEVICE_EXTENSIONS(X)                                                                                   \
    X(CreateSwapchainKHR) X(DestroySwapchainKHR) X(GetSwapchainImagesKHR) X(AcquireNextImageKHR) X(QueuePresentKHR)
/* clang-format on */

typedef struct vk_table {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define VIEW_VK_MEMBER(name) PFN_vk##name name;
    VIEW_VK_GLOBAL(VIEW_VK_MEMBER)
    VIEW_VK_INSTANCE(VIEW_VK_MEMBER)
    VIEW_VK_INSTANCE_EXTENSIONS(VIEW_VK_MEMBER)
    VIEW_VK_DEVICE(VIEW_VK_MEMBER)
    VIEW_VK_DEVICE_EXTENSIONS(VIEW_VK_MEMBER)
#undef VIEW_VK_MEMBER
} vk_table;

/* Fill a part of the table each. Return false, with a message on stderr, if the driver lacks a function. */
bool vk_load_global(vk_table *vk, PFN_vkGetInstanceProcAddr get);
bool vk_load_instance(vk_table *vk, VkInstance instance);
bool vk_load_device(vk_table *vk, VkDevice device);

/* Returns VKT_OK if r is not an error. Otherwise prints `call` and the number on stderr, and returns VKT_E_DRIVER or
 * VKT_E_DEVICE_LOST. */
vkt_result vk_check(VkResult r, const char *call);

#define TRY(call)                                                                                     \
    do {                                                                                              \
        const vkt_result try_r = (call);                                                              \
        if (try_r != VKT_OK) return try_r; /* session_end prints the error if there was no message */ \
    } while (0)
/* Calls a function of the table that returns a VkResult. */
#define TRY_VK(vk, name, ...) TRY(vk_check((vk)->name(__VA_ARGS__), "vk" #name))

#endif
