/* gpu/fake.c - see fake.h. */
#include "fake.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

fake_vulkan fake;
static vkt_vk real; /* the functions of the installed Vulkan; each one is stored here when it is looked up */

void fake_reset(void)
{
    fake = (fake_vulkan){ 0 };
}

/* ---- instance level ---- */

static bool lacks(const char *name)
{
    return fake.without && strcmp(fake.without, name) == 0;
}

static VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *a,
                                                     VkInstance *out)
{
    bool named = false;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        named = named || strcmp(info->ppEnabledExtensionNames[i], VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME) == 0;
    const bool flagged = info->flags & VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    /* The flag needs the extension (VUID-VkInstanceCreateInfo-flags-06559). The extension alone has no effect. */
    assert_true(named == flagged);
    fake.lists_portable = flagged;
    return fake.create_instance ? fake.create_instance : real.CreateInstance(info, a, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL EnumerateInstanceExtensionProperties(const char *layer, uint32_t *n,
                                                                           VkExtensionProperties *out)
{
    const VkResult r = real.EnumerateInstanceExtensionProperties(layer, n, out);
    for (uint32_t i = 0; out && i < *n; i++)
        if (lacks(out[i].extensionName)) out[i--] = out[--*n];
    return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL EnumeratePhysicalDevices(VkInstance instance, uint32_t *n, VkPhysicalDevice *out)
{
    if (!fake.no_devices) return real.EnumeratePhysicalDevices(instance, n, out);
    *n = 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL EnumerateDeviceExtensionProperties(VkPhysicalDevice phys, const char *layer,
                                                                         uint32_t *n, VkExtensionProperties *out)
{
    if (!fake.budget) {
        const uint32_t room = *n;
        const VkResult r = real.EnumerateDeviceExtensionProperties(phys, layer, n, out);
        for (uint32_t i = 0; out && i < *n; i++)
            if (lacks(out[i].extensionName)) out[i--] = out[--*n];
        if (fake.cores_extension && (!out || *n < room)) {
            if (out) snprintf(out[*n].extensionName, sizeof out->extensionName, "%s", fake.cores_extension);
            ++*n;
        }
        if (fake.portability && (!out || *n < room)) {
            if (out) snprintf(out[*n].extensionName, sizeof out->extensionName, VKT_PORTABILITY_SUBSET);
            ++*n;
        }
        return r;
    }
    if (out) *out = (VkExtensionProperties){ VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, 1 };
    *n = 1;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties(VkPhysicalDevice phys, VkPhysicalDeviceProperties *p)
{
    real.GetPhysicalDeviceProperties(phys, p);
    if (fake.api_version) p->apiVersion = fake.api_version;
    if (fake.vendor) p->vendorID = fake.vendor;
    if (fake.vendor) p->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

/* Returns the struct of this type in a chain; NULL: there is none. */
static void *find(void *chain, VkStructureType type)
{
    VkBaseOutStructure *s = chain;
    while (s && s->sType != type) s = s->pNext;
    return s;
}

static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties2(VkPhysicalDevice phys, VkPhysicalDeviceProperties2 *p)
{
    static const char *const ops[] = { "basic", "vote", "arithmetic", "ballot", "shuffle" }; /* bits 0 to 4 */
    void *first = p->pNext;
    if (fake.cores_extension && find(first, fake.cores_type) == first)
        p->pNext = NULL; /* the driver gets no chain, because it may not support the struct `first` */
    real.GetPhysicalDeviceProperties2(phys, p);
    if (!p->pNext && first) memcpy((char *)first + fake.cores_at, &fake.cores, sizeof fake.cores);
    p->pNext = first;
    VkPhysicalDeviceVulkan11Properties *v11 = find(p, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    VkPhysicalDeviceVulkan12Properties *v12 = find(p, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
    VkPhysicalDeviceVulkan13Properties *v13 = find(p, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
    for (uint32_t i = 0; v11 && i < VKT_COUNT(ops); i++)
        if (lacks(ops[i])) v11->subgroupSupportedOperations &= ~(VkSubgroupFeatureFlags)(1u << i);
    if (fake.vendor) {
        p->properties.vendorID = fake.vendor;
        p->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    }
    if (fake.vendor && v11 && v12 && v13) {
        v12->driverID = (VkDriverId)0;
        v11->subgroupSize = fake.subgroup_sizes[0];
        v13->minSubgroupSize = fake.subgroup_sizes[1];
        v13->maxSubgroupSize = fake.subgroup_sizes[2];
        v13->requiredSubgroupSizeStages =
            fake.subgroup_sizes[1] != fake.subgroup_sizes[2] ? VK_SHADER_STAGE_COMPUTE_BIT : 0;
    }
    if (fake.odd_limits) p->properties.limits.maxStorageBufferRange = UINT32_MAX;
    if (fake.odd_limits && v11 && v13) v11->maxMemoryAllocationSize = v13->maxBufferSize = UINT32_MAX;
    if (lacks("12 storage buffers")) p->properties.limits.maxPerStageDescriptorStorageBuffers = 11;
    if (v11 && lacks("subgroups in compute"))
        v11->subgroupSupportedStages &= ~(VkShaderStageFlags)VK_SHADER_STAGE_COMPUTE_BIT;
}

static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceFeatures2(VkPhysicalDevice phys, VkPhysicalDeviceFeatures2 *f)
{
    real.GetPhysicalDeviceFeatures2(phys, f);
    VkPhysicalDeviceVulkan12Features *v12 = f->pNext;
    VkPhysicalDeviceVulkan13Features *v13 = v12->pNext;
    if (lacks("timelineSemaphore")) v12->timelineSemaphore = VK_FALSE;
    if (lacks("synchronization2")) v13->synchronization2 = VK_FALSE;
    if (lacks("maintenance4")) v13->maintenance4 = VK_FALSE;
    if (lacks("subgroupSizeControl")) v13->subgroupSizeControl = VK_FALSE;
    if (lacks("computeFullSubgroups")) v13->computeFullSubgroups = VK_FALSE;
}

static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties2(VkPhysicalDevice phys,
                                                                     VkPhysicalDeviceMemoryProperties2 *p)
{
    if (!fake.budget) {
        real.GetPhysicalDeviceMemoryProperties2(phys, p);
        return;
    }
    VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = p->pNext;
    VkPhysicalDeviceMemoryProperties2 plain = { .sType = p->sType };
    real.GetPhysicalDeviceMemoryProperties2(phys, &plain);
    p->memoryProperties = plain.memoryProperties;
    for (uint32_t i = 0; budget && i < VK_MAX_MEMORY_HEAPS; i++) {
        budget->heapBudget[i] = fake.budget;
        budget->heapUsage[i] = fake.usage;
    }
}

static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice phys, uint32_t *n,
                                                                         VkQueueFamilyProperties *out)
{
    real.GetPhysicalDeviceQueueFamilyProperties(phys, n, out);
    for (uint32_t i = 0; out && i < *n; i++)
        if (lacks("compute queue")) out[i].queueFlags &= ~(VkQueueFlags)VK_QUEUE_COMPUTE_BIT;
    if (!fake.transfer_queue) return;
    /* Shows only family 0 of the real families; family 1 is fake. */
    if (out) out[1] = (VkQueueFamilyProperties){ .queueFlags = VK_QUEUE_TRANSFER_BIT, .queueCount = 1 };
    *n = 2;
}

/* ---- device level: the fake queue family for transfers, and calls that fail ---- */

static bool fails(const char *name)
{
    if (fake.fail_call == 0 || --fake.fail_call > 0) return false;
    fake.failed = name;
    fake.fail_call = fake.fail_for_good;
    return true;
}

static VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice phys, const VkDeviceCreateInfo *info,
                                                   const VkAllocationCallbacks *a, VkDevice *out)
{
    VkDeviceCreateInfo changed = *info;
    if (fake.transfer_queue) changed.queueCreateInfoCount = 1;
    const char *known[16]; /* the requested extensions except VK_KHR_portability_subset, which the real device lacks */
    uint32_t n = 0;
    fake.enables_subset = false;
    for (uint32_t i = 0; i < info->enabledExtensionCount && n < VKT_COUNT(known); i++)
        if (strcmp(info->ppEnabledExtensionNames[i], VKT_PORTABILITY_SUBSET) == 0)
            fake.enables_subset = true;
        else
            known[n++] = info->ppEnabledExtensionNames[i];
    changed.ppEnabledExtensionNames = known;
    changed.enabledExtensionCount = fake.budget ? 0 : n; /* the real device need not have VK_EXT_memory_budget */
    return fails("CreateDevice") ? VK_ERROR_INITIALIZATION_FAILED : real.CreateDevice(phys, &changed, a, out);
}

static VKAPI_ATTR void VKAPI_CALL GetDeviceQueue(VkDevice d, uint32_t family, uint32_t i, VkQueue *out)
{
    real.GetDeviceQueue(d, fake.transfer_queue ? 0 : family, i, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL CreateCommandPool(VkDevice d, const VkCommandPoolCreateInfo *info,
                                                        const VkAllocationCallbacks *a, VkCommandPool *out)
{
    VkCommandPoolCreateInfo changed = *info;
    if (fake.transfer_queue) changed.queueFamilyIndex = 0;
    return fails("CreateCommandPool") ? VK_ERROR_OUT_OF_DEVICE_MEMORY : real.CreateCommandPool(d, &changed, a, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL CreateBuffer(VkDevice d, const VkBufferCreateInfo *info,
                                                   const VkAllocationCallbacks *a, VkBuffer *out)
{
    VkBufferCreateInfo changed = *info;
    if (fake.transfer_queue) {
        changed.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
        changed.queueFamilyIndexCount = 0;
    }
    return fails("CreateBuffer") ? VK_ERROR_OUT_OF_DEVICE_MEMORY : real.CreateBuffer(d, &changed, a, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit2(VkQueue queue, uint32_t n, const VkSubmitInfo2 *info, VkFence fence)
{
    if (fails("QueueSubmit2")) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    const VkSemaphoreSubmitInfo *wait = info->waitSemaphoreInfoCount ? info->pWaitSemaphoreInfos : NULL;
    if (fake.n_submits < FAKE_SUBMITS)
        fake.submits[fake.n_submits] =
            (fake_submit){ queue, wait ? wait->semaphore : VK_NULL_HANDLE, wait ? wait->value : 0 };
    fake.n_submits++;
    return real.QueueSubmit2(queue, n, info, fence);
}

static VKAPI_ATTR void VKAPI_CALL CmdDispatch(VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z)
{
    if (fake.instead_of_dispatch)
        fake.instead_of_dispatch();
    else
        real.CmdDispatch(c, x, y, z);
}

/* Lists more functions that fake.fail_call can make fail, as X(function, parameters, arguments, out). DEFINE makes a
 * function that forwards its call. If the call has to fail, the function writes garbage to `out`, unless `out` is NULL.
 * (After an error, the outputs of most Vulkan functions are undefined.) */
#define FALLIBLE(X)                                                                                                    \
    X(CreateSemaphore, (VkDevice d, const VkSemaphoreCreateInfo *i, const VkAllocationCallbacks *a, VkSemaphore *o),   \
      (d, i, a, o), o)                                                                                                 \
    X(AllocateCommandBuffers, (VkDevice d, const VkCommandBufferAllocateInfo *i, VkCommandBuffer *o), (d, i, o), o)    \
    X(SignalSemaphore, (VkDevice d, const VkSemaphoreSignalInfo *i), (d, i), NULL)                                     \
    X(GetMemoryHostPointerPropertiesEXT,                                                                               \
      (VkDevice d, VkExternalMemoryHandleTypeFlagBits t, const void *p, VkMemoryHostPointerPropertiesEXT *o),          \
      (d, t, p, o), NULL)                                                                                              \
    X(ResetCommandPool, (VkDevice d, VkCommandPool p, VkCommandPoolResetFlags f), (d, p, f), NULL)                     \
    X(BeginCommandBuffer, (VkCommandBuffer c, const VkCommandBufferBeginInfo *i), (c, i), NULL)                        \
    X(EndCommandBuffer, (VkCommandBuffer c), (c), NULL)                                                                \
    X(AllocateMemory, (VkDevice d, const VkMemoryAllocateInfo *i, const VkAllocationCallbacks *a, VkDeviceMemory *o),  \
      (d, i, a, o), o)                                                                                                 \
    X(MapMemory, (VkDevice d, VkDeviceMemory m, VkDeviceSize b, VkDeviceSize n, VkMemoryMapFlags f, void **o),         \
      (d, m, b, n, f, o), o)                                                                                           \
    X(BindBufferMemory, (VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize o), (d, b, m, o), NULL)                \
    X(CreateBufferView,                                                                                                \
      (VkDevice d, const VkBufferViewCreateInfo *i, const VkAllocationCallbacks *a, VkBufferView *o), (d, i, a, o), o) \
    X(CreateDescriptorPool,                                                                                            \
      (VkDevice d, const VkDescriptorPoolCreateInfo *i, const VkAllocationCallbacks *a, VkDescriptorPool *o),          \
      (d, i, a, o), o)                                                                                                 \
    X(AllocateDescriptorSets, (VkDevice d, const VkDescriptorSetAllocateInfo *i, VkDescriptorSet *o), (d, i, o), o)    \
    X(CreatePipelineCache,                                                                                             \
      (VkDevice d, const VkPipelineCacheCreateInfo *i, const VkAllocationCallbacks *a, VkPipelineCache *o),            \
      (d, i, a, o), o)                                                                                                 \
    X(CreateShaderModule,                                                                                              \
      (VkDevice d, const VkShaderModuleCreateInfo *i, const VkAllocationCallbacks *a, VkShaderModule *o),              \
      (d, i, a, o), o)                                                                                                 \
    X(CreateDescriptorSetLayout,                                                                                       \
      (VkDevice d, const VkDescriptorSetLayoutCreateInfo *i, const VkAllocationCallbacks *a,                           \
       VkDescriptorSetLayout *o),                                                                                      \
      (d, i, a, o), o)                                                                                                 \
    X(CreatePipelineLayout,                                                                                            \
      (VkDevice d, const VkPipelineLayoutCreateInfo *i, const VkAllocationCallbacks *a, VkPipelineLayout *o),          \
      (d, i, a, o), o)                                                                                                 \
    X(CreateComputePipelines,                                                                                          \
      (VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo *i,                                \
       const VkAllocationCallbacks *a, VkPipeline *o),                                                                 \
      (d, c, n, i, a, o), o)

static VkResult spoil(void *out, size_t bytes)
{
    if (out) memset(out, 0xa5, bytes);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

#define DEFINE(name, params, args, out)                                      \
    static VKAPI_ATTR VkResult VKAPI_CALL name params                        \
    {                                                                        \
        return fails(#name) ? spoil((out), sizeof(void *)) : real.name args; \
    }
FALLIBLE(DEFINE)

/* ---- lookup of functions ---- */

#define FOUND(fn)                       \
    if (strcmp(name, "vk" #fn) == 0) {  \
        real.fn = (PFN_vk##fn)function; \
        return (PFN_vkVoidFunction)fn;  \
    }
#define FOUND_FALLIBLE(fn, params, args, out) FOUND(fn)

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device, const char *name)
{
    const PFN_vkVoidFunction function = real.GetDeviceProcAddr(device, name);
    if (!function) return NULL; /* the function belongs to an extension that is not enabled */
    FOUND(GetDeviceQueue)
    FOUND(CreateCommandPool)
    FOUND(CreateBuffer)
    FOUND(QueueSubmit2)
    FOUND(CmdDispatch)
    FALLIBLE(FOUND_FALLIBLE)
    return function;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkInstance instance, const char *name)
{
    const PFN_vkVoidFunction function = real.GetInstanceProcAddr(instance, name);
    FOUND(CreateInstance)
    FOUND(EnumerateInstanceExtensionProperties)
    FOUND(EnumeratePhysicalDevices)
    FOUND(EnumerateDeviceExtensionProperties)
    FOUND(GetPhysicalDeviceProperties)
    FOUND(GetPhysicalDeviceProperties2)
    FOUND(GetPhysicalDeviceFeatures2)
    FOUND(GetPhysicalDeviceMemoryProperties2)
    FOUND(GetPhysicalDeviceQueueFamilyProperties)
    FOUND(CreateDevice)
    FOUND(GetDeviceProcAddr)
    return function;
}

const vkt_loader *fake_loader(void)
{
    static const vkt_loader loader = { .get_proc = get_proc };
    if (!real.GetInstanceProcAddr) {
        void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL); /* stays loaded until the program ends */
        void *symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
        memcpy(&real.GetInstanceProcAddr, &symbol, sizeof symbol);
        if (!symbol) {
#ifdef VKT_REQUIRE_DEVICE
            fail_msg("no Vulkan loader");
#endif
            skip();
        }
    }
    return &loader;
}

/* ---- the context under test ---- */

vkt_ctx *rig_open(const vkt_ctx_params *params, const vkt_loader *loader)
{
    const vkt_ctx_params quiet = { .no_pipeline_cache = true };
    const vkt_host host = vkt_test_host();
    vkt_ctx *ctx = NULL;
    const vkt_result r = vkt_ctx_open(params ? params : &quiet, &host, loader, &ctx);
#ifndef VKT_REQUIRE_DEVICE
    if (r == VKT_E_NO_LOADER || r == VKT_E_NO_DEVICE) skip();
#endif
    assert_int_equal(r, VKT_OK);
    vkt_test_ran_on(vkt_ctx_device(ctx)->name, vkt_ctx_device(ctx)->driver);
    return ctx;
}
