/* Proves that the validation settings of tests/run.sh have an effect. Programs with a planted fault must be reported.
 * The same programs without the fault must not be reported. If a setting were misspelt, all other tests would still
 * pass.
 *
 * This file calls Vulkan directly: no engine code is between the fault and the validation layer. The environment
 * switches on synchronization validation, as for every other test. This file switches on GPU-assisted validation,
 * which is slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "shift.spv.h"
#include "support/host.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ELEMENTS 64 /* lanes of one work group of shift.comp */
#define BUFFERS 3

/* clang-format off */
#define FUNCTIONS(X) \
    X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties2) \
    X(GetPhysicalDeviceMemoryProperties) X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT) \
    X(CreateDevice) X(DestroyDevice) X(GetDeviceQueue) X(CreateBuffer) X(DestroyBuffer) \
    X(GetBufferMemoryRequirements) X(AllocateMemory) X(FreeMemory) X(BindBufferMemory) X(CreateShaderModule) \
    X(DestroyShaderModule) X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout) X(CreatePipelineLayout) \
    X(DestroyPipelineLayout) X(CreateComputePipelines) X(DestroyPipeline) X(CreateDescriptorPool) \
    X(DestroyDescriptorPool) X(AllocateDescriptorSets) X(UpdateDescriptorSets) X(CreateCommandPool) \
    X(DestroyCommandPool) X(AllocateCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdBindPipeline) \
    X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch) X(CmdPipelineBarrier) X(QueueSubmit) X(QueueWaitIdle)
/* clang-format on */

typedef struct rig {
    void *loader;
#define DECLARE(name) PFN_vk##name name;
    FUNCTIONS(DECLARE)
#undef DECLARE
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice phys;
    VkDevice device;
    VkQueue queue;
    VkBuffer buffer[BUFFERS];
    VkDeviceMemory memory[BUFFERS];
    VkShaderModule module;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool pool;
    VkDescriptorSet set[2]; /* set i reads buffer i and writes buffer i + 1 */
    VkCommandPool commands;
    VkCommandBuffer cmd[2];
    unsigned messages;
    char text[2048]; /* the last message */
} rig;

#define MUST(call) assert_int_equal(call, VK_SUCCESS)

static VKAPI_ATTR VkBool32 VKAPI_CALL count_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                    VkDebugUtilsMessageTypeFlagsEXT type,
                                                    const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    (void)severity, (void)type;
    rig *r = user;
    r->messages++;
    snprintf(r->text, sizeof r->text, "%s: %s", data->pMessageIdName ? data->pMessageIdName : "", data->pMessage);
    return VK_FALSE;
}

static void open_instance(rig *r, bool gpu_assisted)
{
    r->loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(r->loader);
    PFN_vkGetInstanceProcAddr get;
    *(void **)&get = dlsym(r->loader, "vkGetInstanceProcAddr");
    assert_non_null(get);
    const VkValidationFeatureEnableEXT enable[] = { VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT };
    const VkValidationFeaturesEXT features = { .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                               .enabledValidationFeatureCount = COUNT(enable),
                                               .pEnabledValidationFeatures = enable };
    const char *extensions[] = { VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME };
    const VkApplicationInfo app = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3 };
    const VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                        .pNext = gpu_assisted ? &features : NULL,
                                        .pApplicationInfo = &app,
                                        .enabledExtensionCount = gpu_assisted ? 2 : 1,
                                        .ppEnabledExtensionNames = extensions };
    MUST(((PFN_vkCreateInstance)get(NULL, "vkCreateInstance"))(&info, NULL, &r->instance));
#define LOAD(name)                                        \
    r->name = (PFN_vk##name)get(r->instance, "vk" #name); \
    assert_non_null(r->name);
    FUNCTIONS(LOAD)
#undef LOAD
    const VkDebugUtilsMessengerCreateInfoEXT listen = { .sType =
                                                            VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                                                        .messageSeverity =
                                                            VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                                                        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
                                                        .pfnUserCallback = count_message,
                                                        .pUserData = r };
    MUST(r->CreateDebugUtilsMessengerEXT(r->instance, &listen, NULL, &r->messenger));
}

static void open_device(rig *r)
{
    uint32_t one = 1;
    const VkResult found = r->EnumeratePhysicalDevices(r->instance, &one, &r->phys);
    assert_true((found == VK_SUCCESS || found == VK_INCOMPLETE) && one == 1);
    VkPhysicalDeviceDriverProperties driver = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES };
    VkPhysicalDeviceProperties2 device = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver };
    r->GetPhysicalDeviceProperties2(r->phys, &device);
    vkt_test_ran_on(device.properties.deviceName, driver.driverInfo);
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                            /* The queue family is 0, which can compute in all known drivers. */
                                            .queueCount = 1,
                                            .pQueuePriorities = &priority };
    const VkDeviceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                      .queueCreateInfoCount = 1,
                                      .pQueueCreateInfos = &queue };
    MUST(r->CreateDevice(r->phys, &info, NULL, &r->device));
    r->GetDeviceQueue(r->device, 0, 0, &r->queue);
}

static void make_buffer(rig *r, uint32_t i)
{
    const VkBufferCreateInfo info = { .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                      .size = ELEMENTS * sizeof(uint32_t),
                                      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT };
    MUST(r->CreateBuffer(r->device, &info, NULL, &r->buffer[i]));
    VkMemoryRequirements need;
    r->GetBufferMemoryRequirements(r->device, r->buffer[i], &need);
    VkMemoryAllocateInfo alloc = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = need.size };
    while (!(need.memoryTypeBits >> alloc.memoryTypeIndex & 1)) alloc.memoryTypeIndex++; /* any type is suitable */
    MUST(r->AllocateMemory(r->device, &alloc, NULL, &r->memory[i]));
    MUST(r->BindBufferMemory(r->device, r->buffer[i], r->memory[i], 0));
}

static void make_pipeline(rig *r)
{
    const VkShaderModuleCreateInfo code = { .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = sizeof shift_spv,
                                            .pCode = shift_spv };
    MUST(r->CreateShaderModule(r->device, &code, NULL, &r->module));
    VkDescriptorSetLayoutBinding binding[2];
    for (uint32_t i = 0; i < 2; i++)
        binding[i] = (VkDescriptorSetLayoutBinding){ .binding = i,
                                                     .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                     .descriptorCount = 1,
                                                     .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT };
    const VkDescriptorSetLayoutCreateInfo set = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                  .bindingCount = COUNT(binding),
                                                  .pBindings = binding };
    MUST(r->CreateDescriptorSetLayout(r->device, &set, NULL, &r->set_layout));
    const VkPushConstantRange push = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = sizeof(uint32_t) };
    const VkPipelineLayoutCreateInfo layout = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                                .setLayoutCount = 1,
                                                .pSetLayouts = &r->set_layout,
                                                .pushConstantRangeCount = 1,
                                                .pPushConstantRanges = &push };
    MUST(r->CreatePipelineLayout(r->device, &layout, NULL, &r->layout));
    const VkComputePipelineCreateInfo pipeline = { .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                                   .layout = r->layout,
                                                   .stage = { .sType =
                                                                  VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                              .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                              .module = r->module,
                                                              .pName = "main" } };
    MUST(r->CreateComputePipelines(r->device, VK_NULL_HANDLE, 1, &pipeline, NULL, &r->pipeline));
}

static void make_sets(rig *r)
{
    const VkDescriptorPoolSize size = { .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 4 };
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 2, .poolSizeCount = 1, .pPoolSizes = &size
    };
    MUST(r->CreateDescriptorPool(r->device, &pool, NULL, &r->pool));
    const VkDescriptorSetLayout layouts[2] = { r->set_layout, r->set_layout };
    const VkDescriptorSetAllocateInfo sets = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                               .descriptorPool = r->pool,
                                               .descriptorSetCount = 2,
                                               .pSetLayouts = layouts };
    MUST(r->AllocateDescriptorSets(r->device, &sets, r->set));
    for (uint32_t i = 0; i < 4; i++) {
        const VkDescriptorBufferInfo range = { .buffer = r->buffer[i / 2 + i % 2], .range = VK_WHOLE_SIZE };
        const VkWriteDescriptorSet write = { .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                             .dstSet = r->set[i / 2],
                                             .dstBinding = i % 2,
                                             .descriptorCount = 1,
                                             .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                             .pBufferInfo = &range };
        r->UpdateDescriptorSets(r->device, 1, &write, 0, NULL);
    }
    const VkCommandPoolCreateInfo commands = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO };
    MUST(r->CreateCommandPool(r->device, &commands, NULL, &r->commands));
    const VkCommandBufferAllocateInfo cmd = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = r->commands,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 2 };
    MUST(r->AllocateCommandBuffers(r->device, &cmd, r->cmd));
}

static void close_rig(rig *r)
{
    r->DestroyCommandPool(r->device, r->commands, NULL);
    r->DestroyDescriptorPool(r->device, r->pool, NULL);
    r->DestroyPipeline(r->device, r->pipeline, NULL);
    r->DestroyPipelineLayout(r->device, r->layout, NULL);
    r->DestroyDescriptorSetLayout(r->device, r->set_layout, NULL);
    r->DestroyShaderModule(r->device, r->module, NULL);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        r->DestroyBuffer(r->device, r->buffer[i], NULL);
        r->FreeMemory(r->device, r->memory[i], NULL);
    }
    r->DestroyDevice(r->device, NULL);
    r->DestroyDebugUtilsMessengerEXT(r->instance, r->messenger, NULL);
    r->DestroyInstance(r->instance, NULL);
    dlclose(r->loader);
}

/* Two dispatches of shift.comp. */
typedef struct program {
    bool gpu_assisted;
    bool two_submits; /* each dispatch has its own command buffer and submission */
    bool barrier;     /* there is a barrier between the dispatches */
    uint32_t set[2];
    uint32_t shift;
} program;

static void record(rig *r, const program *p, VkCommandBuffer cmd, uint32_t dispatch)
{
    const VkMemoryBarrier barrier = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                      .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                      .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT };
    if (p->barrier && dispatch == 1)
        r->CmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                              &barrier, 0, NULL, 0, NULL);
    r->CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, r->pipeline);
    r->CmdPushConstants(cmd, r->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof p->shift, &p->shift);
    r->CmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, r->layout, 0, 1, &r->set[p->set[dispatch]], 0, NULL);
    r->CmdDispatch(cmd, 1, 1, 1);
}

/* Runs the program on a new device. Returns the number of validation errors, and copies the last error to `text`. */
static unsigned run(const program *p, char text[2048])
{
    rig r = { 0 };
    open_instance(&r, p->gpu_assisted);
    open_device(&r);
    for (uint32_t i = 0; i < BUFFERS; i++) make_buffer(&r, i);
    make_pipeline(&r);
    make_sets(&r);
    const uint32_t submits = p->two_submits ? 2 : 1;
    for (uint32_t i = 0; i < submits; i++) {
        const VkCommandBufferBeginInfo begin = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };
        const VkSubmitInfo submit = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                      .commandBufferCount = 1,
                                      .pCommandBuffers = &r.cmd[i] };
        MUST(r.BeginCommandBuffer(r.cmd[i], &begin));
        record(&r, p, r.cmd[i], i);
        if (!p->two_submits) record(&r, p, r.cmd[i], 1);
        MUST(r.EndCommandBuffer(r.cmd[i]));
        MUST(r.QueueSubmit(r.queue, 1, &submit, VK_NULL_HANDLE));
    }
    MUST(r.QueueWaitIdle(r.queue));
    close_rig(&r);
    memcpy(text, r.text, sizeof r.text);
    return r.messages;
}

/* ---- the faults ---- */

static bool environment_names(const char *variable, const char *value)
{
    const char *text = getenv(variable);
    return text && strstr(text, value);
}

static void need_layer(void)
{
    if (environment_names("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")) return;
    print_message("SKIPPED: VK_INSTANCE_LAYERS does not name VK_LAYER_KHRONOS_validation (tests/run.sh sets it)\n");
    skip();
}

static void must_report(const program *p, const char *part)
{
    char text[2048] = "";
    const unsigned messages = run(p, text);
    if (messages == 0) fail_msg("the planted fault was not reported: the validation settings are not live");
    if (!strstr(text, part)) fail_msg("want a message that says \"%s\", got: %s", part, text);
}

static void must_not_report(const program *p)
{
    char text[2048] = "";
    const unsigned messages = run(p, text);
    if (messages) fail_msg("%u messages for a correct program, the last: %s", messages, text);
}

static void a_read_without_a_barrier_is_reported(void **state)
{
    (void)state;
    need_layer();
    must_report(&(program){ .set = { 0, 1 } }, "READ-AFTER-WRITE");
    must_not_report(&(program){ .set = { 0, 1 }, .barrier = true });
}

/* Without a barrier, two dispatches may write different bytes of a buffer, but not the same bytes. The layer of Debian
 * 12 (1.3.239) does not see which bytes a shader writes, so it never reports the second write. Newer layers always
 * report it if VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC is 1. */
static void a_second_write_without_a_barrier_is_reported(void **state)
{
    (void)state;
    need_layer();
    if (!environment_names("VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC", "1")) {
        print_message("SKIPPED: only a current layer with its shader-access heuristic sees write after write\n");
        skip();
    }
    must_report(&(program){ .set = { 0, 0 } }, "WRITE-AFTER-WRITE");
    must_not_report(&(program){ .set = { 0, 0 }, .barrier = true });
}

static void a_hazard_between_two_submissions_is_reported(void **state)
{
    (void)state;
    need_layer();
    must_report(&(program){ .set = { 1, 0 }, .two_submits = true }, "WRITE-AFTER-READ");
    must_not_report(&(program){ .set = { 1, 0 }, .two_submits = true, .barrier = true });
}

static void a_write_out_of_bounds_is_reported(void **state)
{
    (void)state;
    need_layer();
    must_report(&(program){ .set = { 0, 1 }, .gpu_assisted = true, .barrier = true, .shift = ELEMENTS },
                "out of bounds");
    must_not_report(&(program){ .set = { 0, 1 }, .gpu_assisted = true, .barrier = true });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_without_a_barrier_is_reported),
        cmocka_unit_test(a_second_write_without_a_barrier_is_reported),
        cmocka_unit_test(a_hazard_between_two_submissions_is_reported),
        cmocka_unit_test(a_write_out_of_bounds_is_reported),
    };
    return cmocka_run_group_tests_name("planted_faults", tests, NULL, NULL);
}
