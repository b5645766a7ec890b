/* Calls vkt_vk_get_needs and vkt_vk_add_features, as an application does before it creates its own device. */
#include <vktrain/vulkan.h>

#include <stdio.h>

int main(void)
{
    const vkt_vk_needs *needs = vkt_vk_get_needs();
    VkPhysicalDeviceVulkan13Features v13 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES };
    VkPhysicalDeviceVulkan12Features v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                             .pNext = &v13 };
    const vkt_result r = vkt_vk_add_features(NULL, &v12);
    printf("Vulkan %u.%u, timelines %u\n", VK_API_VERSION_MAJOR(needs->api_version),
           VK_API_VERSION_MINOR(needs->api_version), v12.timelineSemaphore);
    return r == VKT_OK && needs->api_version >= VK_API_VERSION_1_3 && needs->queue_flags & VK_QUEUE_COMPUTE_BIT &&
                   v12.timelineSemaphore && v13.synchronization2
               ? 0
               : 1;
}
