/* readiness/compile_only.c - see compile_only.h. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "compile_only.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static vkt_vk real; /* functions of the installed Vulkan; NULL unless FOUND or compile_only_loader stores them */
static bool has_statistics;

/* ---- objects ---- */

/* The object behind each handle that this file makes. */
typedef struct object {
    uint64_t value; /* of a timeline semaphore */
    uint64_t bytes; /* of a buffer or of memory */
    void *pages;    /* of memory */
} object;

static object *make(uint64_t bytes)
{
    object *o = calloc(1, sizeof *o);
    if (o) o->bytes = bytes;
    return o;
}

/* Lists, as X(type), the types whose objects can be created and destroyed without reading the create info. */
#define PLAIN_OBJECTS(X) \
    X(Semaphore)         \
    X(CommandPool)       \
    X(QueryPool)         \
    X(DescriptorPool)    \
    X(BufferView)

#define DEFINE_PLAIN(type)                                                                                  \
    static VKAPI_ATTR VkResult VKAPI_CALL Create##type(VkDevice d, const Vk##type##CreateInfo *info,        \
                                                       const VkAllocationCallbacks *a, Vk##type *out)       \
    {                                                                                                       \
        (void)d, (void)info, (void)a;                                                                       \
        *out = (Vk##type)make(0);                                                                           \
        return *out ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;                                             \
    }                                                                                                       \
    static VKAPI_ATTR void VKAPI_CALL Destroy##type(VkDevice d, Vk##type o, const VkAllocationCallbacks *a) \
    {                                                                                                       \
        (void)d, (void)a;                                                                                   \
        free(o);                                                                                            \
    }
PLAIN_OBJECTS(DEFINE_PLAIN)

static VKAPI_ATTR VkResult VKAPI_CALL CreateBuffer(VkDevice d, const VkBufferCreateInfo *info,
                                                   const VkAllocationCallbacks *a, VkBuffer *out)
{
    (void)d, (void)a;
    *out = (VkBuffer)make(info->size);
    return *out ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
}

static VKAPI_ATTR void VKAPI_CALL DestroyBuffer(VkDevice d, VkBuffer b, const VkAllocationCallbacks *a)
{
    (void)d, (void)a;
    free(b);
}

/* ---- memory: heaps like those of a discrete GPU ---- */

#define GIB ((VkDeviceSize)1 << 30)
#define ALIGNMENT 256u

static void describe_heaps(VkPhysicalDeviceMemoryProperties *p)
{
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    *p = (VkPhysicalDeviceMemoryProperties){
        .memoryTypeCount = 4,
        .memoryTypes = { { local, 0 },
                         { host, 1 },
                         { host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1 },
                         { local | host, 2 } },
        .memoryHeapCount = 3,
        .memoryHeaps = { { 16 * GIB, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT },
                         { 16 * GIB, 0 },
                         { GIB / 4, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT } },
    };
}

static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties(VkPhysicalDevice phys,
                                                                    VkPhysicalDeviceMemoryProperties *p)
{
    (void)phys;
    describe_heaps(p);
}

static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties2(VkPhysicalDevice phys,
                                                                     VkPhysicalDeviceMemoryProperties2 *p)
{
    (void)phys;
    describe_heaps(&p->memoryProperties);
}

static VKAPI_ATTR void VKAPI_CALL GetBufferMemoryRequirements(VkDevice d, VkBuffer b, VkMemoryRequirements *out)
{
    (void)d;
    const object *o = (const object *)b;
    *out = (VkMemoryRequirements){ vkt_round_up(o->bytes, ALIGNMENT), ALIGNMENT, 0xf };
}

/* Programs may allocate more memory than the machine has: a page gets physical memory only when it is first touched. */
static VKAPI_ATTR VkResult VKAPI_CALL AllocateMemory(VkDevice d, const VkMemoryAllocateInfo *info,
                                                     const VkAllocationCallbacks *a, VkDeviceMemory *out)
{
    (void)d, (void)a;
    object *o = make(info->allocationSize);
    if (!o) return VK_ERROR_OUT_OF_HOST_MEMORY;
    o->pages = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *out = (VkDeviceMemory)o;
    if (o->pages != MAP_FAILED) return VK_SUCCESS;
    free(o);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static VKAPI_ATTR void VKAPI_CALL FreeMemory(VkDevice d, VkDeviceMemory m, const VkAllocationCallbacks *a)
{
    (void)d, (void)a;
    object *o = (object *)m;
    if (o) munmap(o->pages, o->bytes);
    free(o);
}

static VKAPI_ATTR VkResult VKAPI_CALL MapMemory(VkDevice d, VkDeviceMemory m, VkDeviceSize offset, VkDeviceSize n,
                                                VkMemoryMapFlags flags, void **out)
{
    (void)d, (void)n, (void)flags;
    *out = (char *)((object *)m)->pages + offset;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL BindBufferMemory(VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize offset)
{
    (void)d, (void)b, (void)m, (void)offset;
    return VK_SUCCESS;
}

/* ---- submissions and descriptors ---- */

static VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit2(VkQueue q, uint32_t n, const VkSubmitInfo2 *info, VkFence fence)
{
    (void)q, (void)fence;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < info[i].signalSemaphoreInfoCount; k++) {
            const VkSemaphoreSubmitInfo *s = &info[i].pSignalSemaphoreInfos[k];
            ((object *)s->semaphore)->value = s->value;
        }
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL SignalSemaphore(VkDevice d, const VkSemaphoreSignalInfo *info)
{
    (void)d;
    ((object *)info->semaphore)->value = info->value;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL GetSemaphoreCounterValue(VkDevice d, VkSemaphore s, uint64_t *out)
{
    (void)d;
    *out = ((object *)s)->value;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL WaitSemaphores(VkDevice d, const VkSemaphoreWaitInfo *info, uint64_t ns)
{
    (void)d, (void)info, (void)ns;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL DeviceWaitIdle(VkDevice d)
{
    (void)d;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL AllocateDescriptorSets(VkDevice d, const VkDescriptorSetAllocateInfo *info,
                                                             VkDescriptorSet *out)
{
    static object any;
    (void)d;
    for (uint32_t i = 0; i < info->descriptorSetCount; i++) out[i] = (VkDescriptorSet)&any;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL UpdateDescriptorSets(VkDevice d, uint32_t n, const VkWriteDescriptorSet *w,
                                                       uint32_t m, const VkCopyDescriptorSet *c)
{
    (void)d, (void)n, (void)w, (void)m, (void)c;
}

static VKAPI_ATTR VkResult VKAPI_CALL GetQueryPoolResults(VkDevice d, VkQueryPool p, uint32_t first, uint32_t n,
                                                          size_t bytes, void *out, VkDeviceSize stride,
                                                          VkQueryResultFlags flags)
{
    (void)d, (void)p, (void)first, (void)n, (void)stride, (void)flags;
    memset(out, 0, bytes);
    return VK_SUCCESS;
}

/* ---- command buffers ---- */

static VKAPI_ATTR VkResult VKAPI_CALL AllocateCommandBuffers(VkDevice d, const VkCommandBufferAllocateInfo *info,
                                                             VkCommandBuffer *out)
{
    static object any;
    (void)d;
    for (uint32_t i = 0; i < info->commandBufferCount; i++) out[i] = (VkCommandBuffer)&any;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL ResetCommandPool(VkDevice d, VkCommandPool p, VkCommandPoolResetFlags flags)
{
    (void)d, (void)p, (void)flags;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL BeginCommandBuffer(VkCommandBuffer c, const VkCommandBufferBeginInfo *info)
{
    (void)c, (void)info;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL EndCommandBuffer(VkCommandBuffer c)
{
    (void)c;
    return VK_SUCCESS;
}

/* Lists functions that record commands, as X(function, parameters). Here they record nothing. For a function that is
 * not in the list, for instance CmdDispatchIndirect, the engine gets the driver's function. */
#define COMMANDS(X)                                                                                                 \
    X(CmdBindPipeline, (VkCommandBuffer c, VkPipelineBindPoint p, VkPipeline x))                                    \
    X(CmdBindDescriptorSets, (VkCommandBuffer c, VkPipelineBindPoint p, VkPipelineLayout l, uint32_t f, uint32_t n, \
                              const VkDescriptorSet *s, uint32_t m, const uint32_t *o))                             \
    X(CmdPushConstants,                                                                                             \
      (VkCommandBuffer c, VkPipelineLayout l, VkShaderStageFlags s, uint32_t o, uint32_t n, const void *v))         \
    X(CmdDispatch, (VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z))                                         \
    X(CmdPipelineBarrier2, (VkCommandBuffer c, const VkDependencyInfo *d))                                          \
    X(CmdCopyBuffer, (VkCommandBuffer c, VkBuffer s, VkBuffer d, uint32_t n, const VkBufferCopy *r))                \
    X(CmdFillBuffer, (VkCommandBuffer c, VkBuffer b, VkDeviceSize o, VkDeviceSize n, uint32_t v))                   \
    X(CmdUpdateBuffer, (VkCommandBuffer c, VkBuffer b, VkDeviceSize o, VkDeviceSize n, const void *v))              \
    X(CmdResetQueryPool, (VkCommandBuffer c, VkQueryPool p, uint32_t f, uint32_t n))                                \
    X(CmdWriteTimestamp2, (VkCommandBuffer c, VkPipelineStageFlags2 s, VkQueryPool p, uint32_t q))

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter" /* the commands do nothing, so their parameters are unused */
#define DEFINE_COMMAND(name, params) \
    static VKAPI_ATTR void VKAPI_CALL name params {}
COMMANDS(DEFINE_COMMAND)
#pragma GCC diagnostic pop

/* ---- the device, and the statistics of its pipelines ---- */

/* Hides two extensions, because the memory that this file implements does not support them. */
static VKAPI_ATTR VkResult VKAPI_CALL EnumerateDeviceExtensionProperties(VkPhysicalDevice phys, const char *layer,
                                                                         uint32_t *n, VkExtensionProperties *out)
{
    const VkResult r = real.EnumerateDeviceExtensionProperties(phys, layer, n, out);
    for (uint32_t i = 0; out && i < *n;)
        if (strcmp(out[i].extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0 ||
            strcmp(out[i].extensionName, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) == 0)
            out[i] = out[--*n];
        else
            i++;
    return r;
}

static bool offers(VkPhysicalDevice phys, const char *extension)
{
    uint32_t n = 0;
    bool found = false;
    real.EnumerateDeviceExtensionProperties(phys, NULL, &n, NULL);
    VkExtensionProperties *list = calloc(n + 1, sizeof *list);
    if (list) real.EnumerateDeviceExtensionProperties(phys, NULL, &n, list);
    for (uint32_t i = 0; list && i < n; i++) found = found || strcmp(list[i].extensionName, extension) == 0;
    free(list);
    return found;
}

static VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice phys, const VkDeviceCreateInfo *info,
                                                   const VkAllocationCallbacks *a, VkDevice *out)
{
    enum { MOST = 15 };
    const char *names[MOST + 1];
    const VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR feature = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .pNext = (void *)(uintptr_t)info->pNext,
        .pipelineExecutableInfo = VK_TRUE
    };
    VkDeviceCreateInfo more = *info;
    has_statistics =
        info->enabledExtensionCount <= MOST && offers(phys, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    if (has_statistics) {
        for (uint32_t i = 0; i < info->enabledExtensionCount; i++) names[i] = info->ppEnabledExtensionNames[i];
        names[more.enabledExtensionCount++] = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
        more.ppEnabledExtensionNames = names;
        more.pNext = &feature;
    }
    return real.CreateDevice(phys, &more, a, out);
}

/* Ignores n: the engine creates one pipeline per call. */
static VKAPI_ATTR VkResult VKAPI_CALL CreateComputePipelines(VkDevice d, VkPipelineCache cache, uint32_t n,
                                                             const VkComputePipelineCreateInfo *info,
                                                             const VkAllocationCallbacks *a, VkPipeline *out)
{
    (void)n;
    VkComputePipelineCreateInfo one = *info;
    if (has_statistics)
        one.flags |=
            VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR | VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
    return real.CreateComputePipelines(d, cache, 1, &one, a, out);
}

static json_t *number_of(const VkPipelineExecutableStatisticKHR *s)
{
    switch (s->format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return json_boolean(s->value.b32);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return json_integer((json_int_t)s->value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR: return json_integer((json_int_t)s->value.u64);
    default: return json_real(s->value.f64);
    }
}

static json_t *statistics_of(VkDevice device, const VkPipelineExecutableInfoKHR *which)
{
    const PFN_vkGetPipelineExecutableStatisticsKHR get =
        (PFN_vkGetPipelineExecutableStatisticsKHR)real.GetDeviceProcAddr(device,
                                                                         "vkGetPipelineExecutableStatisticsKHR");
    json_t *all = json_object();
    uint32_t n = 0;
    get(device, which, &n, NULL);
    VkPipelineExecutableStatisticKHR *list = calloc(n + 1, sizeof *list);
    for (uint32_t i = 0; list && i < n; i++) list[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    if (list) get(device, which, &n, list);
    for (uint32_t i = 0; list && i < n; i++) json_object_set_new(all, list[i].name, number_of(&list[i]));
    free(list);
    return all;
}

/* Returns the assembly of an executable, or "" if the driver has no representation of the executable. In all drivers
 * that we know, the last representation is the assembly. */
static json_t *assembly_of(VkDevice device, const VkPipelineExecutableInfoKHR *which)
{
    const PFN_vkGetPipelineExecutableInternalRepresentationsKHR get =
        (PFN_vkGetPipelineExecutableInternalRepresentationsKHR)real.GetDeviceProcAddr(
            device, "vkGetPipelineExecutableInternalRepresentationsKHR");
    json_t *text = NULL;
    uint32_t n = 0;
    get(device, which, &n, NULL);
    VkPipelineExecutableInternalRepresentationKHR *list = calloc(n + 1, sizeof *list);
    for (uint32_t i = 0; list && i < n; i++)
        list[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR;
    if (list && n) get(device, which, &n, list); /* pData is NULL, so this call writes dataSize, but no data */
    char *bytes = list && n ? calloc(1, list[n - 1].dataSize + 1) : NULL;
    for (uint32_t i = 0; list && i + 1 < n; i++) list[i].dataSize = 0;
    if (bytes) {
        list[n - 1].pData = bytes;
        get(device, which, &n, list);
        text = json_string_nocheck(bytes);
    }
    free(bytes);
    free(list);
    return text ? text : json_string("");
}

json_t *compile_only_describe(VkDevice device, VkPipeline pipeline)
{
    const PFN_vkGetPipelineExecutablePropertiesKHR get =
        (PFN_vkGetPipelineExecutablePropertiesKHR)real.GetDeviceProcAddr(device,
                                                                         "vkGetPipelineExecutablePropertiesKHR");
    const VkPipelineInfoKHR info = { .sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline };
    VkPipelineExecutablePropertiesKHR p = { .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR };
    uint32_t n = 1; /* the first executable: ANV has one per subgroup size, smallest first; other drivers have one */
    if (!has_statistics || get(device, &info, &n, &p) < 0 || n == 0) return NULL;
    const VkPipelineExecutableInfoKHR which = { .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
                                                .pipeline = pipeline };
    return json_pack("{s:i, s:o, s:o}", "subgroup", (int)p.subgroupSize, "statistics", statistics_of(device, &which),
                     "assembly", assembly_of(device, &which));
}

/* ---- lookup of functions ---- */

#define ANSWER(fn) \
    if (strcmp(name, "vk" #fn) == 0) return (PFN_vkVoidFunction)fn;
#define ANSWER_PLAIN(type) ANSWER(Create##type) ANSWER(Destroy##type)
#define ANSWER_COMMAND(fn, params) ANSWER(fn)
#define FOUND(fn)                       \
    if (strcmp(name, "vk" #fn) == 0) {  \
        real.fn = (PFN_vk##fn)function; \
        return (PFN_vkVoidFunction)fn;  \
    }

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device, const char *name)
{
    const PFN_vkVoidFunction function = real.GetDeviceProcAddr(device, name);
    if (!function) return NULL; /* the function belongs to an extension that is not enabled */
    FOUND(CreateComputePipelines)
    PLAIN_OBJECTS(ANSWER_PLAIN)
    COMMANDS(ANSWER_COMMAND)
    ANSWER(CreateBuffer)
    ANSWER(DestroyBuffer)
    ANSWER(GetBufferMemoryRequirements)
    ANSWER(AllocateMemory)
    ANSWER(FreeMemory)
    ANSWER(MapMemory)
    ANSWER(BindBufferMemory)
    ANSWER(QueueSubmit2)
    ANSWER(SignalSemaphore)
    ANSWER(GetSemaphoreCounterValue)
    ANSWER(WaitSemaphores)
    ANSWER(DeviceWaitIdle)
    ANSWER(AllocateDescriptorSets)
    ANSWER(UpdateDescriptorSets)
    ANSWER(GetQueryPoolResults)
    ANSWER(AllocateCommandBuffers)
    ANSWER(ResetCommandPool)
    ANSWER(BeginCommandBuffer)
    ANSWER(EndCommandBuffer)
    return function;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc(VkInstance instance, const char *name)
{
    const PFN_vkVoidFunction function = real.GetInstanceProcAddr(instance, name);
    FOUND(EnumerateDeviceExtensionProperties)
    FOUND(CreateDevice)
    FOUND(GetDeviceProcAddr)
    ANSWER(GetPhysicalDeviceMemoryProperties)
    ANSWER(GetPhysicalDeviceMemoryProperties2)
    return function;
}

const vkt_loader *compile_only_loader(void)
{
    static const vkt_loader loader = { .get_proc = get_proc };
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL); /* stays loaded until the program ends */
    void *symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
    memcpy(&real.GetInstanceProcAddr, &symbol, sizeof symbol);
    return symbol ? &loader : NULL;
}
