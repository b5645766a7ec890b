/* gpu/vk_table.c - see vk_table.h. */
#include "gpu/vk_table.h"

#include "base/system.h"

static vkt_result missing(const vkt_host *h, const char *name)
{
    return vkt_fail(
        h, VKT_E_DRIVER,
        "Vulkan: function vk%s is missing: loader, driver or instance (VkApplicationInfo.apiVersion) are older than "
        "Vulkan 1.3",
        name);
}

vkt_result vkt_vk_open(const vkt_host *h, const vkt_loader *loader, vkt_vk *vk, void **library)
{
    *library = NULL;
    vk->GetInstanceProcAddr = loader ? loader->get_proc : NULL;
    if (!vk->GetInstanceProcAddr) {
        const char *const *names = loader && loader->names ? loader->names : vkt_loader_names();
        for (const char *const *n = names; *n && !*library; n++) *library = vkt_library_open(*n);
        if (!*library)
            return vkt_fail(h, VKT_E_NO_LOADER, "no Vulkan loader (%s) was found; %s",
                            names[0] ? names[0] : vkt_loader_names()[0], vkt_loader_hint());
        /* POSIX allows the conversion of an object pointer to a function pointer; ISO C does not. A copy avoids a
         * warning of -Wpedantic. */
        void *symbol = vkt_library_symbol(*library, "vkGetInstanceProcAddr");
        memcpy(&vk->GetInstanceProcAddr, &symbol, sizeof symbol);
        if (!symbol) {
            vkt_vk_close(*library);
            *library = NULL;
            return missing(h, "GetInstanceProcAddr");
        }
    }
    const char *lost = NULL;
#define LOAD(name)                                                      \
    vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(NULL, "vk" #name); \
    if (!vk->name) lost = #name;
    VKT_VK_GLOBAL(LOAD)
#undef LOAD
    if (!lost) return VKT_OK;
    vkt_vk_close(*library);
    *library = NULL;
    return missing(h, lost);
}

void vkt_vk_close(void *library)
{
    vkt_library_close(library);
}

vkt_result vkt_vk_load_instance(const vkt_host *h, vkt_vk *vk, VkInstance instance, bool debug_utils)
{
#define LOAD(name)                                                          \
    vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(instance, "vk" #name); \
    if (!vk->name) return missing(h, #name);
    VKT_VK_INSTANCE(LOAD)
    if (debug_utils) {
        VKT_VK_DEBUG_UTILS(LOAD)
    }
#undef LOAD
    return VKT_OK;
}

vkt_result vkt_vk_load_device(const vkt_host *h, vkt_vk *vk, VkDevice device)
{
#define LOAD(name)                                                      \
    vk->name = (PFN_vk##name)vk->GetDeviceProcAddr(device, "vk" #name); \
    if (!vk->name) return missing(h, #name);
    VKT_VK_DEVICE(LOAD)
#undef LOAD
#define LOAD_OPTIONAL(name) vk->name = (PFN_vk##name)vk->GetDeviceProcAddr(device, "vk" #name);
    VKT_VK_HOST_IMPORT(LOAD_OPTIONAL)
#undef LOAD_OPTIONAL
    return VKT_OK;
}

const char *vkt_vk_result_name(VkResult r)
{
    switch (r) {
#define NAME(name) \
    case name: return #name;
        NAME(VK_SUCCESS)
        NAME(VK_NOT_READY)
        NAME(VK_TIMEOUT)
        NAME(VK_INCOMPLETE)
        NAME(VK_PIPELINE_COMPILE_REQUIRED)
        NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
        NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        NAME(VK_ERROR_INITIALIZATION_FAILED)
        NAME(VK_ERROR_DEVICE_LOST)
        NAME(VK_ERROR_MEMORY_MAP_FAILED)
        NAME(VK_ERROR_LAYER_NOT_PRESENT)
        NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
        NAME(VK_ERROR_FEATURE_NOT_PRESENT)
        NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
        NAME(VK_ERROR_TOO_MANY_OBJECTS)
        NAME(VK_ERROR_FRAGMENTED_POOL)
        NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
        NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE)
        NAME(VK_ERROR_INVALID_SHADER_NV)
        NAME(VK_ERROR_UNKNOWN)
#undef NAME
    default: return "VkResult ?";
    }
}
