/* graphics/vk.c - see vk.h. */
#include "graphics/vk.h"

#include <stdio.h>

#include "common/message.h"

static bool found(PFN_vkVoidFunction f, const char *name)
{
    if (!f) complain("the Vulkan driver has no %s", name);
    return f != NULL;
}

#define GET(name, from, handle) (vk->name = (PFN_vk##name)vk->from(handle, "vk" #name))

bool vk_load_global(vk_table *vk, PFN_vkGetInstanceProcAddr get)
{
    bool all = true;
    vk->GetInstanceProcAddr = get;
#define LOAD(name) all &= found((PFN_vkVoidFunction)GET(name, GetInstanceProcAddr, NULL), "vk" #name);
    GRAPHICS_VK_GLOBAL(LOAD)
#undef LOAD
    return all;
}

bool vk_load_instance(vk_table *vk, VkInstance instance)
{
    bool all = true;
#define LOAD(name) all &= found((PFN_vkVoidFunction)GET(name, GetInstanceProcAddr, instance), "vk" #name);
    GRAPHICS_VK_INSTANCE(LOAD)
#undef LOAD
#define LOAD(name) GET(name, GetInstanceProcAddr, instance);
    GRAPHICS_VK_INSTANCE_EXTENSIONS(LOAD)
#undef LOAD
    return all;
}

bool vk_load_device(vk_table *vk, VkDevice device)
{
    bool all = true;
#define LOAD(name) all &= found((PFN_vkVoidFunction)GET(name, GetDeviceProcAddr, device), "vk" #name);
    GRAPHICS_VK_DEVICE(LOAD)
#undef LOAD
#define LOAD(name) GET(name, GetDeviceProcAddr, device);
    GRAPHICS_VK_DEVICE_EXTENSIONS(LOAD)
#undef LOAD
    return all;
}

vkt_result vk_check(VkResult r, const char *call)
{
    if (r >= 0) return VKT_OK;
    complain("%s: error %d", call, (int)r);
    return r == VK_ERROR_DEVICE_LOST ? VKT_E_DEVICE_LOST : VKT_E_DRIVER;
}
