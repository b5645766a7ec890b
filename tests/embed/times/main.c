/* times - compiles the networks of times.def for the device that VK_DRIVER_FILES gives, and runs them. Prints a line of
 * a Markdown table for each network. tests/embed/times.sh calls this program.
 *
 *     embed_times [NETWORK]  prints the number of SPIR-V words, CPU seconds to compile, CPU nanoseconds per point
 *     embed_times --compile  prints the number of SPIR-V words, and statistics of the driver's compiler. Runs nothing,
 *                            so it needs no GPU
 *
 * Drivers may compile in vkCreateComputePipelines or in the first dispatch. So the time to compile is the time of
 * vkCreateComputePipelines, plus the time by which the first dispatch is slower than the fastest. If the device lacks
 * shaderFloat16, the networks with arithmetic of 16 bits are left out. If a Vulkan call fails, the program ends. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan.h>

#include "embed/shaders/network.h"
#include "times.spv.h"

#define VK(call) ((call) < 0 ? (fprintf(stderr, "failed: %s\n", #call), exit(1)) : (void)0)
#define TYPE(name) .sType = VK_STRUCTURE_TYPE_##name
enum { BINDINGS = 4, RUNS = 5, MAX_STATISTICS = 64, STORED_BYTES = 1 << 16 };
#define FLOAT NETWORK_FLOAT
#define VEC4 NETWORK_VEC4
#define HALF NETWORK_HALF
#define TEXEL NETWORK_TEXEL

typedef struct network {
    const char *name;
    const uint32_t *words;
    size_t bytes;
    int stored, bits;
} network;
#define NETWORK(name, language, stored, bits, unroll, hidden, last, ...) \
    { #name, name##_spv, sizeof name##_spv, stored, bits },
static const network networks[] = {
#include "embed/times/times.def"
};
#undef NETWORK

static VkInstance instance;
static VkPhysicalDevice phys;
static VkDevice device;
static VkQueue queue;
static VkCommandPool commands;
static bool compile_only, has_half;
static VkBuffer buffers[BINDINGS];

/* Returns the processor time of all threads. Other processes have less effect on it than on the elapsed time. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the device ---- */

static void make_device(void)
{
    const VkApplicationInfo about = { TYPE(APPLICATION_INFO), .apiVersion = VK_API_VERSION_1_3 };
    const VkInstanceCreateInfo i = { TYPE(INSTANCE_CREATE_INFO), .pApplicationInfo = &about };
    VK(vkCreateInstance(&i, NULL, &instance));
    VK(vkEnumeratePhysicalDevices(instance, &(uint32_t){ 1 }, &phys));
    VkPhysicalDeviceVulkan12Features v12 = { TYPE(PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) };
    VkPhysicalDeviceFeatures2 all = { TYPE(PHYSICAL_DEVICE_FEATURES_2), &v12 };
    vkGetPhysicalDeviceFeatures2(phys, &all);
    has_half = v12.shaderFloat16;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics = {
        TYPE(PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR), .pipelineExecutableInfo = VK_TRUE
    };
    v12 = (VkPhysicalDeviceVulkan12Features){ TYPE(PHYSICAL_DEVICE_VULKAN_1_2_FEATURES), .shaderFloat16 = has_half };
    if (compile_only) v12.pNext = &statistics;
    const char *const extension = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
    const VkDeviceQueueCreateInfo q = { TYPE(DEVICE_QUEUE_CREATE_INFO), .queueCount = 1,
                                        .pQueuePriorities = &(float){ 1 } };
    const VkDeviceCreateInfo d = { TYPE(DEVICE_CREATE_INFO),
                                   .pNext = &v12,
                                   .queueCreateInfoCount = 1,
                                   .pQueueCreateInfos = &q,
                                   .enabledExtensionCount = compile_only,
                                   .ppEnabledExtensionNames = &extension };
    VK(vkCreateDevice(phys, &d, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
    const VkCommandPoolCreateInfo pool = { TYPE(COMMAND_POOL_CREATE_INFO) };
    VK(vkCreateCommandPool(device, &pool, NULL, &commands));
}

/* Makes a buffer of zeros. */
static VkBuffer make_buffer(VkDeviceSize bytes)
{
    VkBuffer b;
    VkDeviceMemory memory;
    void *mapped;
    VkPhysicalDeviceMemoryProperties types;
    VkMemoryRequirements needs;
    const VkBufferCreateInfo info = { TYPE(BUFFER_CREATE_INFO), .size = bytes,
                                      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                               VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT };
    VK(vkCreateBuffer(device, &info, NULL, &b));
    vkGetBufferMemoryRequirements(device, b, &needs);
    vkGetPhysicalDeviceMemoryProperties(phys, &types);
    VkMemoryAllocateInfo m = { TYPE(MEMORY_ALLOCATE_INFO), .allocationSize = needs.size };
    while (~types.memoryTypes[m.memoryTypeIndex].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
        m.memoryTypeIndex++;
    VK(vkAllocateMemory(device, &m, NULL, &memory));
    VK(vkBindBufferMemory(device, b, memory, 0));
    VK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    memset(mapped, 0, bytes);
    return b;
}

/* ---- one network ---- */

typedef struct pipeline {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline handle;
} pipeline;

static VkDescriptorType type_of(const network *n, uint32_t binding)
{
    return n->stored == TEXEL && binding == NETWORK_PARAMETERS ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                                                               : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

static pipeline make_pipeline(const network *n)
{
    pipeline p;
    VkShaderModule module;
    VkDescriptorSetLayoutBinding bindings[BINDINGS];
    for (uint32_t i = 0; i < BINDINGS; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){ i, type_of(n, i), 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL };
    const VkDescriptorSetLayoutCreateInfo set = { TYPE(DESCRIPTOR_SET_LAYOUT_CREATE_INFO), .bindingCount = BINDINGS,
                                                  .pBindings = bindings };
    VK(vkCreateDescriptorSetLayout(device, &set, NULL, &p.set_layout));
    const VkPipelineLayoutCreateInfo layout = { TYPE(PIPELINE_LAYOUT_CREATE_INFO), .setLayoutCount = 1,
                                                .pSetLayouts = &p.set_layout };
    VK(vkCreatePipelineLayout(device, &layout, NULL, &p.layout));
    const VkShaderModuleCreateInfo m = { TYPE(SHADER_MODULE_CREATE_INFO), .codeSize = n->bytes, .pCode = n->words };
    VK(vkCreateShaderModule(device, &m, NULL, &module));
    const VkComputePipelineCreateInfo info = {
        TYPE(COMPUTE_PIPELINE_CREATE_INFO),
        .flags = compile_only ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0,
        .stage = { TYPE(PIPELINE_SHADER_STAGE_CREATE_INFO), .stage = VK_SHADER_STAGE_COMPUTE_BIT, .module = module,
                   .pName = "main" },
        .layout = p.layout,
    };
    VK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &p.handle));
    return p;
}

static VkDescriptorSet make_set(const network *n, const pipeline *p)
{
    VkDescriptorPool pool;
    VkDescriptorSet set;
    VkBufferView view = VK_NULL_HANDLE;
    const VkDescriptorPoolSize sizes[] = { { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, BINDINGS },
                                           { VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, 1 } };
    const VkDescriptorPoolCreateInfo info = { TYPE(DESCRIPTOR_POOL_CREATE_INFO), .maxSets = 1, .poolSizeCount = 2,
                                              .pPoolSizes = sizes };
    VK(vkCreateDescriptorPool(device, &info, NULL, &pool));
    const VkDescriptorSetAllocateInfo one = { TYPE(DESCRIPTOR_SET_ALLOCATE_INFO), .descriptorPool = pool,
                                              .descriptorSetCount = 1, .pSetLayouts = &p->set_layout };
    VK(vkAllocateDescriptorSets(device, &one, &set));
    const VkBufferViewCreateInfo texels = { TYPE(BUFFER_VIEW_CREATE_INFO), .buffer = buffers[NETWORK_PARAMETERS],
                                            .format = VK_FORMAT_R32G32B32A32_SFLOAT, .range = VK_WHOLE_SIZE };
    VK(vkCreateBufferView(device, &texels, NULL, &view));
    for (uint32_t i = 0; i < BINDINGS; i++) {
        const VkDescriptorBufferInfo whole = { buffers[i], 0, VK_WHOLE_SIZE };
        const VkWriteDescriptorSet write = {
            TYPE(WRITE_DESCRIPTOR_SET),      .dstSet = set,         .dstBinding = i,          .descriptorCount = 1,
            .descriptorType = type_of(n, i), .pBufferInfo = &whole, .pTexelBufferView = &view
        };
        vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    }
    return set;
}

/* Runs the network on all points several times. Returns the seconds of the fastest run. *first gets the seconds of the
 * first run. */
static double run(const pipeline *p, VkDescriptorSet set, double *first)
{
    VkCommandBuffer cmd;
    double best = 1e9;
    const VkCommandBufferAllocateInfo one = { TYPE(COMMAND_BUFFER_ALLOCATE_INFO), .commandPool = commands,
                                              .commandBufferCount = 1 };
    const VkCommandBufferBeginInfo begin = { TYPE(COMMAND_BUFFER_BEGIN_INFO) };
    VK(vkAllocateCommandBuffers(device, &one, &cmd));
    VK(vkBeginCommandBuffer(cmd, &begin));
    vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, p->handle);
    vkCmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &set, 0, NULL);
    vkCmdDispatch(cmd, NETWORK_POINTS / NETWORK_LANES, 1, 1);
    VK(vkEndCommandBuffer(cmd));
    const VkSubmitInfo submit = { TYPE(SUBMIT_INFO), .commandBufferCount = 1, .pCommandBuffers = &cmd };
    for (int i = 0; i < RUNS; i++) {
        const double start = seconds();
        VK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
        VK(vkQueueWaitIdle(queue));
        const double taken = seconds() - start;
        if (i == 0) *first = taken;
        if (taken < best) best = taken;
    }
    return best;
}

/* Prints the compiler's statistics about registers, spills and code size. The names of statistics differ between
 * drivers; `wanted` has RADV's names. If a driver lacks a statistic, the column of this statistic is empty. */
static void print_statistics(const pipeline *p)
{
    static VkPipelineExecutableStatisticKHR s[MAX_STATISTICS];
    static const char *const wanted[] = { "VGPRs",     "Spilled VGPRs", "Scratch size",
                                          "Code size", "Instructions",  "Inverse Throughput" };
    uint32_t n = MAX_STATISTICS;
    const VkPipelineExecutableInfoKHR info = { TYPE(PIPELINE_EXECUTABLE_INFO_KHR), .pipeline = p->handle };
    const PFN_vkGetPipelineExecutableStatisticsKHR get =
        (PFN_vkGetPipelineExecutableStatisticsKHR)vkGetDeviceProcAddr(device, "vkGetPipelineExecutableStatisticsKHR");
    for (uint32_t i = 0; i < n; i++)
        s[i] = (VkPipelineExecutableStatisticKHR){ TYPE(PIPELINE_EXECUTABLE_STATISTIC_KHR) };
    VK(get(device, &info, &n, s));
    for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++) {
        for (uint32_t i = 0; i < n; i++)
            if (strcmp(s[i].name, wanted[w]) == 0) printf(" %llu", (unsigned long long)s[i].value.u64);
        printf(" |");
    }
}

static void measure(const network *n)
{
    const double start = seconds();
    const pipeline p = make_pipeline(n);
    const double created = seconds() - start;
    printf("| %s | %zu |", n->name, n->bytes / sizeof n->words[0]);
    if (compile_only) {
        print_statistics(&p);
    } else {
        double first;
        const double best = run(&p, make_set(n, &p), &first);
        printf(" %.2f | %.0f |", created + first - best, best * 1e9 / NETWORK_POINTS);
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    VkPhysicalDeviceProperties properties;
    compile_only = argc > 1 && strcmp(argv[1], "--compile") == 0;
    const char *only = argc > 1 && !compile_only ? argv[1] : NULL;
    make_device();
    vkGetPhysicalDeviceProperties(phys, &properties);
    printf("\n%s\n\n| network | words |%s\n", properties.deviceName,
           compile_only
               ? " VGPRs | spilled VGPRs | bytes of scratch | bytes of code | instructions | inverse throughput |"
               : " CPU s to compile | CPU ns a point |");
    for (uint32_t i = 0; i < BINDINGS && !compile_only; i++)
        buffers[i] = make_buffer(i == NETWORK_INPUTS || i == NETWORK_OUTPUTS ? NETWORK_POINTS * 64 * 4 : STORED_BYTES);
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if ((networks[i].bits == 32 || has_half) && (!only || strcmp(only, networks[i].name) == 0))
            measure(&networks[i]);
    return 0; /* the end of the process frees all objects */
}
