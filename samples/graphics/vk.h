/* graphics/vk.h - a table of the Vulkan functions that vkt-view, vkt-nrc and vkt-ntc call. These programs do not link
 * libvulkan. Members are named without the prefix "vk", for instance vk->CmdDraw(cmd, 3, 1, 0, 0). */
#ifndef GRAPHICS_VK_H
#define GRAPHICS_VK_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include "vktrain/core.h"

/* clang-format off */
#define GRAPHICS_VK_GLOBAL(X) X(CreateInstance) X(EnumerateInstanceExtensionProperties)
#define GRAPHICS_VK_INSTANCE(X)                                                                                            \
    X(DestroyInstance) X(EnumeratePhysicalDevices) X(EnumerateDeviceExtensionProperties)                               \
    X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceFeatures) X(GetPhysicalDeviceQueueFamilyProperties)        \
    X(CreateDevice) X(GetDeviceProcAddr)
/* These functions are NULL if the instance does not have their extensions. */
#define GRAPHICS_VK_INSTANCE_EXTENSIONS(X)                                                                                 \
    X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT)                                                   \
    X(DestroySurfaceKHR) X(GetPhysicalDeviceSurfaceCapabilitiesKHR) X(GetPhysicalDeviceSurfaceFormatsKHR)
#define GRAPHICS_VK_DEVICE(X)                                                                                              \
    X(DestroyDevice) X(DeviceWaitIdle) X(GetDeviceQueue) X(QueueSubmit2)                                               \
    X(CreateSemaphore) X(DestroySemaphore) X(CreateFence) X(DestroyFence) X(WaitForFences) X(ResetFences)              \
    X(AllocateMemory) X(FreeMemory) X(MapMemory)                                                                       \
    X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(BindBufferMemory)                                \
    X(CreateImage) X(DestroyImage) X(GetImageMemoryRequirements) X(BindImageMemory)                                    \
    X(CreateImageView) X(DestroyImageView) X(CreateSampler) X(DestroySampler)                                          \
    X(CreateShaderModule) X(DestroyShaderModule) X(CreateGraphicsPipelines) X(CreateComputePipelines) X(DestroyPipeline) \
    X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout)        \
    X(CreateDescriptorPool) X(DestroyDescriptorPool) X(AllocateDescriptorSets) X(UpdateDescriptorSets)                 \
    X(CreateCommandPool) X(DestroyCommandPool) X(ResetCommandPool) X(AllocateCommandBuffers)                           \
    X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdPipelineBarrier2) X(CmdCopyBufferToImage) X(CmdCopyImageToBuffer)   \
    X(CmdBeginRendering) X(CmdEndRendering) X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants)            \
    X(CmdSetViewport) X(CmdSetScissor) X(CmdDraw) X(CmdDispatch)
/* These functions are NULL if the device does not have their extension. */
#define GRAPHICS_VK_DEVICE_EXTENSIONS(X)                                                                                   \
    X(CreateSwapchainKHR) X(DestroySwapchainKHR) X(GetSwapchainImagesKHR) X(AcquireNextImageKHR) X(QueuePresentKHR)
/* clang-format on */

typedef struct vk_table {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define GRAPHICS_VK_MEMBER(name) PFN_vk##name name;
    GRAPHICS_VK_GLOBAL(GRAPHICS_VK_MEMBER)
    GRAPHICS_VK_INSTANCE(GRAPHICS_VK_MEMBER)
    GRAPHICS_VK_INSTANCE_EXTENSIONS(GRAPHICS_VK_MEMBER)
    GRAPHICS_VK_DEVICE(GRAPHICS_VK_MEMBER)
    GRAPHICS_VK_DEVICE_EXTENSIONS(GRAPHICS_VK_MEMBER)
#undef GRAPHICS_VK_MEMBER
} vk_table;

/* Load functions into the table: the global ones, those of an instance, or those of a device. Return false, with a
 * message on stderr, if the driver lacks one of these functions. Functions of extensions may be missing. */
bool vk_load_global(vk_table *vk, PFN_vkGetInstanceProcAddr get);
bool vk_load_instance(vk_table *vk, VkInstance instance);
bool vk_load_device(vk_table *vk, VkDevice device);

/* Returns VKT_OK if r is not an error. Otherwise prints `call` and the number r on stderr, and returns
 * VKT_E_DEVICE_LOST or VKT_E_DRIVER. */
vkt_result vk_check(VkResult r, const char *call);

#define TRY(call)                                                                                     \
    do {                                                                                              \
        const vkt_result try_r = (call);                                                              \
        if (try_r != VKT_OK) return try_r; /* session_end prints the error if there was no message */ \
    } while (0)
/* Calls a function of the table. If its VkResult is an error, returns from the calling function. */
#define TRY_VK(vk, name, ...) TRY(vk_check((vk)->name(__VA_ARGS__), "vk" #name))

#endif
