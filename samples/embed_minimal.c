/* embed_minimal.c - uses vktrain/vulkan.h: a network learns a curve in the frame loop of an application. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

#include "vktrain/vktrain.h"
#include "vktrain/vulkan.h"

#define VK(call) ((call) < 0 ? fprintf(stderr, "failed: %s\n", #call), exit(1) : (void)0)
#define VKT(call) ((call) != VKT_OK ? exit(1) : (void)0) /* the library has printed the reason on stderr */
#define TYPE(name) .sType = VK_STRUCTURE_TYPE_##name
#define USAGE VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
enum { POINTS = 512, BYTES = POINTS * 4, STEPS = 500, X = 0, TARGET, LEARNED, COLUMNS };

static VkInstance instance;
static VkPhysicalDevice gpu;
static VkDevice device;
static VkQueue queue;
static VkCommandBuffer frame;
static VkBuffer buffer; /* three columns of floats: x, target, what the network predicts */
static float (*column)[POINTS];

/* Makes a device with all that the library needs. If you have your own feature chain, call vkt_vk_add_features. */
static void make_device(void)
{
    const vkt_vk_needs *needs = vkt_vk_get_needs();
    const VkApplicationInfo about = { TYPE(APPLICATION_INFO), .apiVersion = needs->api_version };
    const VkInstanceCreateInfo i = { TYPE(INSTANCE_CREATE_INFO), .pApplicationInfo = &about };
    VkDeviceQueueCreateInfo q = { TYPE(DEVICE_QUEUE_CREATE_INFO), .queueCount = 1, .pQueuePriorities = &(float){ 1 } };
    VkDeviceCreateInfo d = { TYPE(DEVICE_CREATE_INFO), needs->features, 0, 1, &q };
    VkCommandPoolCreateInfo pool = { TYPE(COMMAND_POOL_CREATE_INFO) };
    VkCommandBufferAllocateInfo c = { TYPE(COMMAND_BUFFER_ALLOCATE_INFO), .commandBufferCount = 1 };
    VK(vkCreateInstance(&i, NULL, &instance));
    VK(vkEnumeratePhysicalDevices(instance, &(uint32_t){ 1 }, &gpu));
    VK(vkCreateDevice(gpu, &d, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue); /* here family 0; choose one with VK_QUEUE_COMPUTE_BIT */
    VK(vkCreateCommandPool(device, &pool, NULL, &c.commandPool));
    VK(vkAllocateCommandBuffers(device, &c, &frame));
}

static void make_buffer(void)
{
    VkBufferCreateInfo b = { TYPE(BUFFER_CREATE_INFO), NULL, 0, COLUMNS * BYTES, USAGE };
    VkMemoryAllocateInfo m = { TYPE(MEMORY_ALLOCATE_INFO), .allocationSize = COLUMNS * BYTES };
    VkPhysicalDeviceMemoryProperties memory;
    VkDeviceMemory bytes;
    vkGetPhysicalDeviceMemoryProperties(gpu, &memory);
    while (~memory.memoryTypes[m.memoryTypeIndex].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
        m.memoryTypeIndex++;
    VK(vkCreateBuffer(device, &b, NULL, &buffer));
    VK(vkAllocateMemory(device, &m, NULL, &bytes));
    VK(vkBindBufferMemory(device, buffer, bytes, 0));
    VK(vkMapMemory(device, bytes, 0, VK_WHOLE_SIZE, 0, (void **)&column));
}

/* Makes the store and the training program or, if not `training`, the program that computes the output for x. */
static vkt_program *make_program(vkt_ctx *ctx, vkt_store **store, bool training)
{
    vkt_graph *g;
    vkt_builder *b;
    vkt_program *p;
    vkt_array_adopt_params of = { { buffer, 0, BYTES }, USAGE, .shape = { 2, { POINTS, 1 } } };
    vkt_binding bound[2] = { { .array = NULL } };
    VKT(vkt_graph_create(NULL, &g));
    VKT(vkt_builder_create(g, training, &b));
    for (int i = 0; i < 2; i++) {
        bound[i].tensor = vkt_external(g, i ? "other" : "x", VKT_F32, of.shape);
        of.at.offset_bytes = BYTES * (uint64_t)(i == 0 ? X : training ? TARGET : LEARNED);
        VKT(vkt_array_adopt(ctx, &of, &bound[i].array));
    }
    vkt_tensor h = vkt_nn_linear(b, "first", bound[0].tensor, &(vkt_nn_linear_params){ .out_features = 64 });
    vkt_tensor y = vkt_nn_linear(b, "second", vkt_nn_relu(b, h), &(vkt_nn_linear_params){ .out_features = 1 });
    if (!training) vkt_write(g, y, bound[1].tensor);
    if (training) {
        VKT(vkt_backward(g, vkt_mse(g, y, bound[1].tensor)));
        VKT(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }));
        VKT(vkt_store_create(ctx, g, store));
        VKT(vkt_nn_init(b, *store, 1));
    }
    VKT(vkt_program_create(ctx, g, *store, &(vkt_program_params){ .arrays = bound, .n_arrays = 2 }, &p));
    return p; /* graph and arrays must exist as long as the program */
}

int main(void)
{
    vkt_ctx *ctx;
    vkt_store *store;
    make_device();
    make_buffer();
    for (int i = 0; i < POINTS; i++) column[TARGET][i] = sinf(4 * (column[X][i] = (float)i / POINTS));
    vkt_adopt_params ours = { instance, gpu, device, vkt_vk_get_needs()->features, .queue = queue };
    VKT(vkt_ctx_adopt(&ours, NULL, NULL, &ctx));
    vkt_program *train = make_program(ctx, &store, true), *ask = make_program(ctx, &store, false);
    /* Records the commands of a frame once. A real frame draws; this one only computes the network's output. */
    VkMemoryBarrier2 before, after;
    vkt_program_barriers(ask, &before, &after);
    after.dstStageMask = before.dstStageMask | VK_PIPELINE_STAGE_2_HOST_BIT; /* the next step waits for the frame */
    after.dstAccessMask = VK_ACCESS_2_HOST_READ_BIT;                         /* the host reads the frame's output */
    VK(vkBeginCommandBuffer(frame, &(VkCommandBufferBeginInfo){ TYPE(COMMAND_BUFFER_BEGIN_INFO) }));
    VKT(vkt_program_record(ask, frame, NULL));
    vkCmdPipelineBarrier2(frame, &(VkDependencyInfo){ TYPE(DEPENDENCY_INFO), NULL, 0, 1, &after });
    VK(vkEndCommandBuffer(frame));
    for (int steps = 0; steps < STEPS;) { /* submits 2 ms of training, then a frame */
        uint64_t left_ns = 2000000;
        vkt_step_progress progress;
        do VKT(vkt_step_budget(train, &(vkt_run){ .lr = 0.01f }, NULL, &left_ns, &progress));
        while (progress.completed && ++steps < STEPS);
        VkSubmitInfo submit = { TYPE(SUBMIT_INFO), .commandBufferCount = 1, .pCommandBuffers = &frame };
        VK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
        VK(vkQueueWaitIdle(queue)); /* an application uses fences instead */
    }
    const int last = POINTS - 1;
    printf("the curve ends at %.3f, the network predicts %.3f\n", column[TARGET][last], column[LEARNED][last]);
    vkt_program_destroy(&train);
    vkt_program_destroy(&ask);
    vkt_store_destroy(&store);
    vkt_ctx_destroy(&ctx); /* does not destroy the device, which you own */
}
