/* device.h - makes a device for the C programs of this folder, in the way of docs/embedding.md. Also has macros that
 * check results. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

#include <vktrain/vktrain.h>
#include <vktrain/vulkan.h>

#define WANT(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: want %s\n", __FILE__, __LINE__, #condition), exit(1)))
#define TRY(call)                            \
    do {                                     \
        const vkt_result status = (call);    \
        if (status != VKT_OK) return status; \
    } while (0)
#define VK(call) WANT((call) == VK_SUCCESS)
#define VKT(call) WANT((call) == VKT_OK)
#define TYPE(name) .sType = VK_STRUCTURE_TYPE_##name

typedef struct gpu {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    uint32_t family;
    VkQueue queue;
    VkCommandPool pool;
    VkPhysicalDeviceVulkan13Features v13;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceFeatures2 features; /* head of the pNext chain */
    const VkAllocationCallbacks *callbacks;
} gpu;

/* Opens the first device that vktrain can use, with one queue. *g must not be copied or moved afterwards, because the
 * pNext chain of its features has pointers into *g. */
static inline void gpu_open(gpu *g, const VkAllocationCallbacks *callbacks)
{
    const vkt_vk_needs *needs = vkt_vk_get_needs();
    const VkApplicationInfo about = { TYPE(APPLICATION_INFO), .apiVersion = needs->api_version };
    const VkInstanceCreateInfo i = { TYPE(INSTANCE_CREATE_INFO), .pApplicationInfo = &about };
    VkPhysicalDevice all[8];
    VkQueueFamilyProperties families[16];
    VkPhysicalDeviceFeatures has;
    vkt_device_info info = { 0 };
    uint32_t n = 8, n_families = 16;
    *g = (gpu){ .callbacks = callbacks };
    g->v13 = (VkPhysicalDeviceVulkan13Features){ TYPE(PHYSICAL_DEVICE_VULKAN_1_3_FEATURES) };
    g->v12 = (VkPhysicalDeviceVulkan12Features){ TYPE(PHYSICAL_DEVICE_VULKAN_1_2_FEATURES), .pNext = &g->v13 };
    g->features = (VkPhysicalDeviceFeatures2){ TYPE(PHYSICAL_DEVICE_FEATURES_2), .pNext = &g->v12 };
    VK(vkCreateInstance(&i, callbacks, &g->instance));
    WANT(vkEnumeratePhysicalDevices(g->instance, &n, all) >= 0);
    for (uint32_t k = 0; k < n && !info.usable; k++)
        VKT(vkt_vk_examine(NULL, NULL, g->instance, g->physical = all[k], &info));
    WANT(info.usable);
    vkGetPhysicalDeviceQueueFamilyProperties(g->physical, &n_families, families);
    while (~families[g->family].queueFlags & needs->queue_flags) WANT(++g->family < n_families);
    vkGetPhysicalDeviceFeatures(g->physical, &has);
    g->features.features.shaderInt64 = has.shaderInt64; /* makes training on CPU devices faster */
    VKT(vkt_vk_add_features(NULL, &g->features));
    const VkDeviceQueueCreateInfo q = { TYPE(DEVICE_QUEUE_CREATE_INFO), NULL, 0, g->family, 1, &(float){ 1 } };
    const VkDeviceCreateInfo d = { TYPE(DEVICE_CREATE_INFO), &g->features, 0, 1, &q };
    VK(vkCreateDevice(g->physical, &d, callbacks, &g->device));
    vkGetDeviceQueue(g->device, g->family, 0, &g->queue);
    const VkCommandPoolCreateInfo p = { TYPE(COMMAND_POOL_CREATE_INFO), NULL,
                                        VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, g->family };
    VK(vkCreateCommandPool(g->device, &p, callbacks, &g->pool));
}

static inline void gpu_close(gpu *g)
{
    vkDestroyCommandPool(g->device, g->pool, g->callbacks);
    vkDestroyDevice(g->device, g->callbacks);
    vkDestroyInstance(g->instance, g->callbacks);
}

/* Returns the description of the device for vkt_ctx_adopt. */
static inline vkt_adopt_params gpu_adopt(const gpu *g)
{
    return (vkt_adopt_params){ .instance = g->instance,
                               .physical_device = g->physical,
                               .device = g->device,
                               .features = &g->features,
                               .queue = g->queue,
                               .queue_family = g->family,
                               .allocation = g->callbacks };
}

/* Allocates memory of the first memory type that `needs` allows and that has all `properties`. */
static inline VkDeviceMemory gpu_memory(const gpu *g, VkMemoryRequirements needs, VkMemoryPropertyFlags properties)
{
    VkPhysicalDeviceMemoryProperties has;
    VkMemoryAllocateInfo m = { TYPE(MEMORY_ALLOCATE_INFO), .allocationSize = needs.size };
    VkDeviceMemory memory;
    vkGetPhysicalDeviceMemoryProperties(g->physical, &has);
    while (~needs.memoryTypeBits >> m.memoryTypeIndex & 1 ||
           ~has.memoryTypes[m.memoryTypeIndex].propertyFlags & properties)
        WANT(++m.memoryTypeIndex < has.memoryTypeCount);
    VK(vkAllocateMemory(g->device, &m, g->callbacks, &memory));
    return memory;
}

/* A buffer whose memory is mapped at `bytes`. */
typedef struct host_buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    void *bytes;
} host_buffer;

static inline host_buffer gpu_buffer(const gpu *g, uint64_t bytes, VkBufferUsageFlags usage)
{
    const VkBufferCreateInfo b = { TYPE(BUFFER_CREATE_INFO), .size = bytes, .usage = usage };
    VkMemoryRequirements needs;
    host_buffer out;
    VK(vkCreateBuffer(g->device, &b, g->callbacks, &out.handle));
    vkGetBufferMemoryRequirements(g->device, out.handle, &needs);
    out.memory = gpu_memory(g, needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    VK(vkBindBufferMemory(g->device, out.handle, out.memory, 0));
    VK(vkMapMemory(g->device, out.memory, 0, VK_WHOLE_SIZE, 0, &out.bytes));
    return out;
}

static inline void gpu_free(const gpu *g, host_buffer *b)
{
    vkDestroyBuffer(g->device, b->handle, g->callbacks);
    vkFreeMemory(g->device, b->memory, g->callbacks);
}

typedef struct image {
    VkImage handle;
    VkDeviceMemory memory;
    VkImageView view;
    VkFormat format;
} image;

/* Makes an image of side x side pixels. Compute shaders can access the image, and it can be copied to a buffer. */
static inline image gpu_image(const gpu *g, VkFormat format, uint32_t side)
{
    const VkImageCreateInfo i = { TYPE(IMAGE_CREATE_INFO),
                                  .imageType = VK_IMAGE_TYPE_2D,
                                  .format = format,
                                  .extent = { side, side, 1 },
                                  .mipLevels = 1,
                                  .arrayLayers = 1,
                                  .samples = 1,
                                  .usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT };
    VkImageViewCreateInfo v = { TYPE(IMAGE_VIEW_CREATE_INFO), .viewType = VK_IMAGE_VIEW_TYPE_2D, .format = format,
                                .subresourceRange = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 } };
    image out = { .format = format };
    VkMemoryRequirements needs;
    VK(vkCreateImage(g->device, &i, g->callbacks, &out.handle));
    vkGetImageMemoryRequirements(g->device, out.handle, &needs);
    out.memory = gpu_memory(g, needs, 0);
    VK(vkBindImageMemory(g->device, out.handle, out.memory, 0));
    v.image = out.handle;
    VK(vkCreateImageView(g->device, &v, g->callbacks, &out.view));
    return out;
}

static inline void gpu_free_image(const gpu *g, image *i)
{
    vkDestroyImageView(g->device, i->view, g->callbacks);
    vkDestroyImage(g->device, i->handle, g->callbacks);
    vkFreeMemory(g->device, i->memory, g->callbacks);
}
