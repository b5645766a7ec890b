/* graphics/device.h - creates a sample program's own instance, device and queue, and the library's context on them.
 * Creates memory, buffers and images. */
#ifndef GRAPHICS_DEVICE_H
#define GRAPHICS_DEVICE_H

#include "graphics/vk.h"
#include "vktrain/vulkan.h"

enum { DEVICE_MAX_EXTENSIONS = 8 };

typedef struct device_params {
    const char *program;                   /* name of the program, for the driver */
    const char *name;                      /* the value of --device; NULL: the best device */
    const char *const *surface_extensions; /* instance extensions for a window; NULL: no window */
    uint32_t n_surface_extensions;
    /* Returns whether queues of this family can present images to a window. NULL: no window. */
    bool (*can_present)(VkInstance instance, VkPhysicalDevice physical, uint32_t family);
} device_params;

typedef struct device {
    void *loader; /* libvulkan.so.1 */
    vk_table vk;
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger; /* null without VK_EXT_debug_utils */
    VkPhysicalDevice physical;
    vkt_device_info info;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t family;
    VkQueue queue;
    VkDevice handle;
    /* The features with which the device was created. */
    VkPhysicalDeviceFeatures2 features;
    VkPhysicalDeviceVulkan11Features features11;
    VkPhysicalDeviceVulkan12Features features12;
    VkPhysicalDeviceVulkan13Features features13;
    const char *extensions[DEVICE_MAX_EXTENSIONS];
    uint32_t n_extensions;
} device;

/* Opens *d. Never copy *d: the chain of d->features points to members of *d. Close *d also after an error.
 * VKT_E_NO_LOADER, VKT_E_NO_DEVICE, VKT_E_DRIVER and VKT_E_DEVICE_LOST have a message on stderr, VKT_E_NOMEM may have
 * none. Other errors are those of vkt_vk_examine and vkt_vk_add_features. */
vkt_result device_open(const vkt_host *host, const device_params *p, device *d);
void device_close(device *d); /* call it after all objects of the device are destroyed */
/* Creates the library's context on this device and queue. */
vkt_result device_adopt(const device *d, const vkt_host *host, uint64_t max_bytes, vkt_ctx **ctx);

typedef struct buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    void *map; /* the buffer's memory, mapped for the host */
} buffer;
/* Creates a host-visible and coherent buffer, and maps it. *out must be zeroed before the call. Destroy *out also after
 * an error. */
vkt_result buffer_create(const device *d, VkDeviceSize bytes, VkBufferUsageFlags usage, buffer *out);
void buffer_destroy(const device *d, buffer *b);

typedef struct gpu_image {
    VkImage handle;
    VkDeviceMemory memory;
    VkImageView view;
    VkExtent2D extent;
} gpu_image;
/* Creates a 2D colour image in the device's memory, and its view. *out must be zeroed before the call. Destroy *out
 * also after an error. */
vkt_result image_create(const device *d, VkExtent2D extent, VkFormat format, VkImageUsageFlags usage, gpu_image *out);
vkt_result view_create(const device *d, VkImage image, VkFormat format, VkImageView *out);
void image_destroy(const device *d, gpu_image *i);

/* The stage mask, access mask and layout for a whole image, before or after an image barrier (as in
 * VkImageMemoryBarrier2). */
typedef struct stage_access {
    VkPipelineStageFlags2 stage;
    VkAccessFlags2 access;
    VkImageLayout layout;
} stage_access;
void image_barrier(const device *d, VkCommandBuffer cmd, VkImage image, stage_access from, stage_access to);
VkBufferImageCopy whole_image(VkExtent2D extent); /* returns the region of a copy of a whole image; the rows in the
                                                   * buffer have no gaps */
void memory_barrier(const device *d, VkCommandBuffer cmd, const VkMemoryBarrier2 *barrier);

#endif
