/* graphics/device.c - see device.h. */
#include "graphics/device.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"

enum { MAX_DEVICES = 32, MAX_FAMILIES = 32, MAX_INSTANCE_EXTENSIONS = 16 };

/* ---- the instance ---- */

/* Prints a message of a validation layer, with "validation: " in front, as the library does for its own devices. Skips
 * messages of the loader. */
static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    (void)severity, (void)types, (void)user;
    if (!data->pMessageIdName || strcmp(data->pMessageIdName, "Loader Message") != 0)
        complain("validation: %s", data->pMessage);
    return VK_FALSE;
}

static const VkDebugUtilsMessengerCreateInfoEXT messenger_info = {
    .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
    .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
    .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
    .pfnUserCallback = on_message,
};

static vkt_result has_debug_utils(const device *d, bool *has)
{
    uint32_t n = 0;
    *has = false;
    TRY_VK(&d->vk, EnumerateInstanceExtensionProperties, NULL, &n, NULL);
    VkExtensionProperties *list = calloc(n ? n : 1, sizeof *list);
    if (!list) return VKT_E_NOMEM;
    const VkResult r = d->vk.EnumerateInstanceExtensionProperties(NULL, &n, list);
    for (uint32_t i = 0; r >= 0 && i < n; i++)
        *has |= strcmp(list[i].extensionName, VK_EXT_DEBUG_UTILS_EXTENSION_NAME) == 0;
    free(list);
    return vk_check(r, "vkEnumerateInstanceExtensionProperties");
}

static vkt_result make_instance(const device_params *p, device *d)
{
    const char *extensions[MAX_INSTANCE_EXTENSIONS];
    uint32_t n = 0;
    bool debug_utils;
    TRY(has_debug_utils(d, &debug_utils));
    if (debug_utils) extensions[n++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    for (uint32_t i = 0; i < p->n_surface_extensions && n < MAX_INSTANCE_EXTENSIONS; i++)
        extensions[n++] = p->surface_extensions[i];
    const VkApplicationInfo app = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                    .pApplicationName = p->program,
                                    .apiVersion = vkt_vk_get_needs()->api_version };
    const VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                        .pNext = debug_utils ? &messenger_info : NULL,
                                        .pApplicationInfo = &app,
                                        .enabledExtensionCount = n,
                                        .ppEnabledExtensionNames = extensions };
    TRY_VK(&d->vk, CreateInstance, &info, NULL, &d->instance);
    if (!vk_load_instance(&d->vk, d->instance)) return VKT_E_DRIVER;
    if (debug_utils) TRY_VK(&d->vk, CreateDebugUtilsMessengerEXT, d->instance, &messenger_info, NULL, &d->messenger);
    return VKT_OK;
}

/* ---- the choice of device and queue ---- */

/* Returns the index of the first queue family that can draw, compute and, for a window, present. UINT32_MAX: none. */
static uint32_t find_family(const device *d, const device_params *p, VkPhysicalDevice physical)
{
    VkQueueFamilyProperties families[MAX_FAMILIES];
    uint32_t n = MAX_FAMILIES;
    const VkQueueFlags want = VK_QUEUE_GRAPHICS_BIT | vkt_vk_get_needs()->queue_flags;
    d->vk.GetPhysicalDeviceQueueFamilyProperties(physical, &n, families);
    for (uint32_t i = 0; i < n; i++)
        if ((families[i].queueFlags & want) == want && (!p->can_present || p->can_present(d->instance, physical, i)))
            return i;
    return UINT32_MAX;
}

static bool is_part(const char *part, const char *name)
{
    for (; *name; name++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)part[i]) == tolower((unsigned char)name[i])) i++;
        if (!part[i]) return true;
    }
    return false;
}

/* Returns whether `want`, the value of --device, selects the device: by its number in --list-devices, or by a part of
 * its name. NULL and "" select every device. */
static bool is_wanted(const char *want, const vkt_device_info *info, uint32_t index)
{
    char *end;
    if (!want || !*want) return true;
    const unsigned long number = strtoul(want, &end, 10);
    return *end ? is_part(want, info->name) : number == index;
}

/* Returns the rank of a kind of device. Higher is better. */
static int rank(vkt_device_kind kind)
{
    static const int ranks[] = { [VKT_DEVICE_OTHER] = 0,
                                 [VKT_DEVICE_CPU] = 1,
                                 [VKT_DEVICE_VIRTUAL] = 2,
                                 [VKT_DEVICE_INTEGRATED] = 3,
                                 [VKT_DEVICE_DISCRETE] = 4 };
    return ranks[kind];
}

static vkt_result choose(const vkt_host *host, const device_params *p, device *d)
{
    VkPhysicalDevice list[MAX_DEVICES];
    uint32_t n = MAX_DEVICES;
    TRY_VK(&d->vk, EnumeratePhysicalDevices, d->instance, &n, list);
    for (uint32_t i = 0; i < n; i++) {
        vkt_device_info info;
        TRY(vkt_vk_examine(host, d->vk.GetInstanceProcAddr, d->instance, list[i], &info));
        const uint32_t family = find_family(d, p, list[i]);
        if (!is_wanted(p->name, &info, i) || !info.usable || family == UINT32_MAX) continue;
        if (d->physical && rank(info.kind) <= rank(d->info.kind)) continue;
        d->physical = list[i];
        d->family = family;
        d->info = info;
        d->info.index = i;
    }
    if (d->physical) return VKT_OK;
    complain("no Vulkan device%s%s that the library can use and that draws%s", p->name ? " " : "",
             p->name ? p->name : "", p->can_present ? " into a window" : "");
    return VKT_E_NO_DEVICE;
}

/* ---- the device ---- */

static bool has_extension(const VkExtensionProperties *list, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].extensionName, name) == 0) return true;
    return false;
}

/* Selects the library's recommended extensions that the device has. For a window, adds the swapchain's extension. */
static vkt_result pick_extensions(const device_params *p, device *d)
{
    const vkt_vk_needs *needs = vkt_vk_get_needs();
    uint32_t n = 0;
    TRY_VK(&d->vk, EnumerateDeviceExtensionProperties, d->physical, NULL, &n, NULL);
    VkExtensionProperties *list = calloc(n ? n : 1, sizeof *list);
    if (!list) return VKT_E_NOMEM;
    const VkResult r = d->vk.EnumerateDeviceExtensionProperties(d->physical, NULL, &n, list);
    if (p->can_present) d->extensions[d->n_extensions++] = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
    for (uint32_t i = 0; r >= 0 && i < needs->n_extensions && d->n_extensions < DEVICE_MAX_EXTENSIONS; i++)
        if (has_extension(list, n, needs->extensions[i])) d->extensions[d->n_extensions++] = needs->extensions[i];
    free(list);
    return vk_check(r, "vkEnumerateDeviceExtensionProperties");
}

static vkt_result make_device(const vkt_host *host, device *d)
{
    d->features13 = (VkPhysicalDeviceVulkan13Features){ .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                                        .synchronization2 = VK_TRUE,
                                                        .dynamicRendering = VK_TRUE };
    d->features12 = (VkPhysicalDeviceVulkan12Features){ .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                        .pNext = &d->features13 };
    d->features11 = (VkPhysicalDeviceVulkan11Features){ .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                                        .pNext = &d->features12 };
    d->features =
        (VkPhysicalDeviceFeatures2){ .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &d->features11 };
    VkPhysicalDeviceFeatures offered;
    d->vk.GetPhysicalDeviceFeatures(d->physical, &offered);
    d->features.features.shaderInt64 = offered.shaderInt64; /* the library's kernels need it for speed on CPU devices */
    TRY(vkt_vk_add_features(host, &d->features));
    const VkDeviceQueueCreateInfo queue = { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                            .queueFamilyIndex = d->family,
                                            .queueCount = 1,
                                            .pQueuePriorities = &(const float){ 1 } };
    const VkDeviceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                      .pNext = &d->features,
                                      .queueCreateInfoCount = 1,
                                      .pQueueCreateInfos = &queue,
                                      .enabledExtensionCount = d->n_extensions,
                                      .ppEnabledExtensionNames = d->extensions };
    TRY_VK(&d->vk, CreateDevice, d->physical, &info, NULL, &d->handle);
    if (!vk_load_device(&d->vk, d->handle)) return VKT_E_DRIVER;
    d->vk.GetDeviceQueue(d->handle, d->family, 0, &d->queue);
    d->vk.GetPhysicalDeviceMemoryProperties(d->physical, &d->memory);
    return VKT_OK;
}

vkt_result device_open(const vkt_host *host, const device_params *p, device *d)
{
    memset(d, 0, sizeof *d);
    d->loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    PFN_vkGetInstanceProcAddr get = NULL;
    if (d->loader)
        *(void **)&get = dlsym(d->loader, "vkGetInstanceProcAddr"); /* ISO C cannot cast void * to a function pointer */
    if (!get) {
        complain("no Vulkan loader: %s", dlerror());
        return VKT_E_NO_LOADER;
    }
    if (!vk_load_global(&d->vk, get)) return VKT_E_NO_LOADER;
    TRY(make_instance(p, d));
    TRY(choose(host, p, d));
    TRY(pick_extensions(p, d));
    return make_device(host, d);
}

void device_close(device *d)
{
    if (d->handle) d->vk.DestroyDevice(d->handle, NULL);
    if (d->messenger) d->vk.DestroyDebugUtilsMessengerEXT(d->instance, d->messenger, NULL);
    if (d->instance) d->vk.DestroyInstance(d->instance, NULL);
    if (d->loader) dlclose(d->loader);
}

vkt_result device_adopt(const device *d, const vkt_host *host, uint64_t max_bytes, vkt_ctx **ctx)
{
    const vkt_adopt_params adopt = { .instance = d->instance,
                                     .physical_device = d->physical,
                                     .device = d->handle,
                                     .features = &d->features,
                                     .extensions = d->extensions,
                                     .n_extensions = d->n_extensions,
                                     .queue = d->queue,
                                     .queue_family = d->family,
                                     .get_proc_addr = d->vk.GetInstanceProcAddr,
                                     .debug_utils = d->messenger != VK_NULL_HANDLE };
    return vkt_ctx_adopt(&adopt, &(vkt_ctx_params){ .max_device_bytes = max_bytes }, host, ctx);
}
