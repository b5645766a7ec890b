/* renderer.c - a renderer draws noisy frames on its own device. After each frame, a network trains for some
 * milliseconds. At the end, the network computes an image with less noise. Host memory and device memory have limits: a
 * limit that is too low gives an error status. Written from docs/embedding.md and the public headers alone. */
#include <math.h>

#include "counter.h"
#include "device.h"
#include "scene.spv.h" /* const uint32_t scene[]: scene.comp, compiled */

enum { SIDE = 64, PIXELS = SIDE * SIDE, STEPS = 200, IN_FLIGHT = 2 };
static const float noise = 0.4f; /* range of the uniform noise of a colour; the variance is noise^2 / 12 */

/* ---- the renderer ------------------------------------------------------------------------------------------------ */

typedef struct renderer {
    gpu gpu;
    VkCommandBuffer commands[IN_FLIGHT];
    VkFence fences[IN_FLIGHT];
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool pool;
    VkDescriptorSet set;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    image drawn, predicted; /* drawn: by the renderer; predicted: by the network */
    host_buffer copy;       /* of `predicted` */
} renderer;

static void open_renderer(renderer *r, const VkAllocationCallbacks *callbacks)
{
    gpu *g = &r->gpu;
    gpu_open(g, callbacks);
    r->drawn = gpu_image(g, VK_FORMAT_R16G16B16A16_SFLOAT, SIDE);
    r->predicted = gpu_image(g, VK_FORMAT_R8G8B8A8_UNORM, SIDE);
    r->copy = gpu_buffer(g, 4 * PIXELS, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    const VkCommandBufferAllocateInfo c = { TYPE(COMMAND_BUFFER_ALLOCATE_INFO), NULL, g->pool, 0, IN_FLIGHT };
    const VkFenceCreateInfo f = { TYPE(FENCE_CREATE_INFO), NULL, VK_FENCE_CREATE_SIGNALED_BIT };
    VK(vkAllocateCommandBuffers(g->device, &c, r->commands));
    for (int i = 0; i < IN_FLIGHT; i++) VK(vkCreateFence(g->device, &f, callbacks, &r->fences[i]));
    const VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
    const VkDescriptorSetLayoutBinding b = { 0, type, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL };
    const VkDescriptorSetLayoutCreateInfo s = { TYPE(DESCRIPTOR_SET_LAYOUT_CREATE_INFO), NULL, 0, 1, &b };
    VK(vkCreateDescriptorSetLayout(g->device, &s, callbacks, &r->set_layout));
    const VkDescriptorPoolCreateInfo p = { TYPE(DESCRIPTOR_POOL_CREATE_INFO), NULL, 0, 1, 1,
                                           &(VkDescriptorPoolSize){ type, 1 } };
    VK(vkCreateDescriptorPool(g->device, &p, callbacks, &r->pool));
    const VkDescriptorSetAllocateInfo a = { TYPE(DESCRIPTOR_SET_ALLOCATE_INFO), NULL, r->pool, 1, &r->set_layout };
    VK(vkAllocateDescriptorSets(g->device, &a, &r->set));
    const VkDescriptorImageInfo at = { VK_NULL_HANDLE, r->drawn.view, VK_IMAGE_LAYOUT_GENERAL };
    const VkWriteDescriptorSet w = { TYPE(WRITE_DESCRIPTOR_SET), NULL, r->set, 0, 0, 1, type, &at };
    vkUpdateDescriptorSets(g->device, 1, &w, 0, NULL);
    const VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, 8 };
    const VkPipelineLayoutCreateInfo l = { TYPE(PIPELINE_LAYOUT_CREATE_INFO), NULL, 0, 1, &r->set_layout, 1, &push };
    VK(vkCreatePipelineLayout(g->device, &l, callbacks, &r->layout));
    const VkShaderModuleCreateInfo m = { TYPE(SHADER_MODULE_CREATE_INFO), NULL, 0, sizeof scene, scene };
    VkComputePipelineCreateInfo k = { TYPE(COMPUTE_PIPELINE_CREATE_INFO), .layout = r->layout };
    k.stage = (VkPipelineShaderStageCreateInfo){ TYPE(PIPELINE_SHADER_STAGE_CREATE_INFO),
                                                 .stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main" };
    VK(vkCreateShaderModule(g->device, &m, callbacks, &k.stage.module));
    VK(vkCreateComputePipelines(g->device, VK_NULL_HANDLE, 1, &k, callbacks, &r->pipeline));
    vkDestroyShaderModule(g->device, k.stage.module, callbacks);
}

static void close_renderer(renderer *r)
{
    gpu *g = &r->gpu;
    VK(vkDeviceWaitIdle(g->device));
    vkDestroyPipeline(g->device, r->pipeline, g->callbacks);
    vkDestroyPipelineLayout(g->device, r->layout, g->callbacks);
    vkDestroyDescriptorPool(g->device, r->pool, g->callbacks);
    vkDestroyDescriptorSetLayout(g->device, r->set_layout, g->callbacks);
    for (int i = 0; i < IN_FLIGHT; i++) vkDestroyFence(g->device, r->fences[i], g->callbacks);
    gpu_free_image(g, &r->drawn);
    gpu_free_image(g, &r->predicted);
    gpu_free(g, &r->copy);
    gpu_close(g);
}

/* Waits until the frame before the previous one is done, and begins the commands of this frame. */
static VkCommandBuffer begin(renderer *r, uint32_t frame)
{
    const uint32_t i = frame % IN_FLIGHT;
    VK(vkWaitForFences(r->gpu.device, 1, &r->fences[i], VK_TRUE, UINT64_MAX));
    VK(vkResetFences(r->gpu.device, 1, &r->fences[i]));
    VK(vkBeginCommandBuffer(r->commands[i], &(VkCommandBufferBeginInfo){ TYPE(COMMAND_BUFFER_BEGIN_INFO) }));
    return r->commands[i];
}

static void submit(renderer *r, uint32_t frame)
{
    const uint32_t i = frame % IN_FLIGHT;
    const VkSubmitInfo s = { TYPE(SUBMIT_INFO), .commandBufferCount = 1, .pCommandBuffers = &r->commands[i] };
    VK(vkEndCommandBuffer(r->commands[i]));
    VK(vkQueueSubmit(r->gpu.queue, 1, &s, r->fences[i]));
}

/* Records a change of the image's layout to GENERAL, after all earlier commands. */
static void from_undefined(VkCommandBuffer cmd, const image *i)
{
    const VkImageMemoryBarrier2 b = { TYPE(IMAGE_MEMORY_BARRIER_2),
                                      .image = i->handle,
                                      .srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                      .srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT,
                                      .dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                                      .dstAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                                      .newLayout = VK_IMAGE_LAYOUT_GENERAL,
                                      .subresourceRange = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 } };
    vkCmdPipelineBarrier2(
        cmd, &(VkDependencyInfo){ TYPE(DEPENDENCY_INFO), .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &b });
}

/* Draws a frame to `drawn`. The library's next submission may read `drawn` and write `predicted`. */
static void draw(renderer *r, uint32_t frame)
{
    const struct {
        uint32_t frame;
        float noise;
    } push = { frame, noise };
    const VkMemoryBarrier2 visible = { TYPE(MEMORY_BARRIER_2),
                                       NULL,
                                       VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                                       VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                                       VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                                       VK_ACCESS_2_SHADER_STORAGE_READ_BIT };
    VkCommandBuffer cmd = begin(r, frame);
    from_undefined(cmd, &r->drawn);
    if (frame == 0) from_undefined(cmd, &r->predicted);
    vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, r->pipeline);
    vkCmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, r->layout, 0, 1, &r->set, 0, NULL);
    vkCmdPushConstants(cmd, r->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    vkCmdDispatch(cmd, SIDE / 8, SIDE / 8, 1);
    vkCmdPipelineBarrier2(
        cmd, &(VkDependencyInfo){ TYPE(DEPENDENCY_INFO), .memoryBarrierCount = 1, .pMemoryBarriers = &visible });
    submit(r, frame);
}

/* Returns the mean squared error of the network's image. The library has written the image on the same queue. */
static double error_of_image(renderer *r, uint32_t frame)
{
    const VkBufferImageCopy all = { .imageSubresource = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 },
                                    .imageExtent = { SIDE, SIDE, 1 } };
    const VkMemoryBarrier2 visible = { TYPE(MEMORY_BARRIER_2),       NULL,
                                       VK_PIPELINE_STAGE_2_COPY_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                                       VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT };
    VkCommandBuffer cmd = begin(r, frame);
    vkCmdCopyImageToBuffer(cmd, r->predicted.handle, VK_IMAGE_LAYOUT_GENERAL, r->copy.handle, 1, &all);
    vkCmdPipelineBarrier2(
        cmd, &(VkDependencyInfo){ TYPE(DEPENDENCY_INFO), .memoryBarrierCount = 1, .pMemoryBarriers = &visible });
    submit(r, frame);
    VK(vkWaitForFences(r->gpu.device, 1, &r->fences[frame % IN_FLIGHT], VK_TRUE, UINT64_MAX));
    double sum = 0;
    const uint8_t(*got)[4] = r->copy.bytes;
    for (int i = 0; i < PIXELS; i++) {
        const double x = (i % SIDE + 0.5) / SIDE, y = (i / SIDE + 0.5) / SIDE, angle[3] = { 6 * x, 5 * y, 4 * (x + y) };
        for (int c = 0; c < 3; c++) sum += pow(got[i][c] / 255.0 - (0.5 + 0.4 * sin(angle[c])), 2);
    }
    return sum / (3 * PIXELS);
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

typedef struct learner {
    vkt_ctx *ctx;
    vkt_array *points, *seen, *shown; /* points: coordinates; seen: drawn colours; shown: predicted colours */
    vkt_texture *drawn, *predicted;
    vkt_graph *graph[2];
    vkt_store *store;
    vkt_program *train, *ask;
} learner;

static void close_learner(learner *l)
{
    vkt_program_destroy(&l->train);
    vkt_program_destroy(&l->ask);
    vkt_store_destroy(&l->store);
    vkt_graph_destroy(&l->graph[0]);
    vkt_graph_destroy(&l->graph[1]);
    vkt_texture_destroy(&l->drawn);
    vkt_texture_destroy(&l->predicted);
    vkt_array_destroy(&l->points);
    vkt_array_destroy(&l->seen);
    vkt_array_destroy(&l->shown);
    vkt_ctx_destroy(&l->ctx);
}

/* Makes the store and the program that trains, or the program that computes the image. */
static vkt_result make_program(learner *l, const vkt_host *host, bool training)
{
    vkt_builder *b = NULL;
    TRY(vkt_graph_create(host, &l->graph[training]));
    TRY(vkt_builder_create(l->graph[training], training, &b));
    vkt_graph *g = l->graph[training];
    const vkt_tensor x = vkt_external(g, "points", VKT_F32, vkt_shape2(PIXELS, 2));
    const vkt_tensor colour = vkt_external(g, "colours", VKT_F32, vkt_shape2(PIXELS, 3));
    vkt_tensor y = vkt_nn_linear(b, "fc1", vkt_frequency(g, x, 2), &(vkt_nn_linear_params){ .out_features = 32 });
    y = vkt_nn_linear(b, "fc2", vkt_nn_relu(b, y), &(vkt_nn_linear_params){ .out_features = 3 });
    if (training) {
        const vkt_tensor loss = vkt_mse(g, y, colour);
        vkt_backward(g, loss);
        vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM });
        vkt_report(g, loss, (vkt_tensor){ 0 });
    } else {
        vkt_write(g, y, colour);
    }
    const vkt_binding arrays[] = { { x, l->points, NULL }, { colour, training ? l->seen : l->shown, NULL } };
    const vkt_program_params p = { .arrays = arrays, .n_arrays = 2 };
    vkt_result status = training ? vkt_store_create(l->ctx, g, &l->store) : VKT_OK;
    if (training && status == VKT_OK) status = vkt_nn_init(b, l->store, 1);
    if (status == VKT_OK) status = vkt_program_create(l->ctx, g, l->store, &p, training ? &l->train : &l->ask);
    vkt_builder_destroy(&b);
    return status;
}

/* Makes all objects of the network. After an error, close_learner frees those that were made. */
static vkt_result open_learner(learner *l, const renderer *r, const vkt_host *host, uint64_t device_bytes)
{
    static float points[PIXELS][2];
    const vkt_adopt_params adopt = gpu_adopt(&r->gpu);
    const vkt_ctx_params limit = { .max_device_bytes = device_bytes, .block_bytes = 1 << 20, .staging_bytes = 1 << 16 };
    vkt_array_params colours = { .shape = { 2, { PIXELS, 3 } } },
                     at = { .shape = { 2, { PIXELS, 2 } }, .data = points };
    for (int i = 0; i < PIXELS; i++)
        points[i][0] = ((float)(i % SIDE) + 0.5f) / SIDE, points[i][1] = ((float)(i / SIDE) + 0.5f) / SIDE;
    *l = (learner){ 0 };
    TRY(vkt_ctx_adopt(&adopt, &limit, host, &l->ctx));
    TRY(vkt_array_create(l->ctx, &at, &l->points));
    TRY(vkt_array_create(l->ctx, &colours, &l->seen));
    TRY(vkt_array_create(l->ctx, &colours, &l->shown));
    vkt_texture_params t = { .image = r->drawn.handle,
                             .format = r->drawn.format,
                             .usage = VK_IMAGE_USAGE_STORAGE_BIT,
                             .width = SIDE,
                             .height = SIDE,
                             .layout = VK_IMAGE_LAYOUT_GENERAL,
                             .array = l->seen };
    TRY(vkt_texture_adopt(l->ctx, &t, &l->drawn));
    t.image = r->predicted.handle, t.format = r->predicted.format, t.array = l->shown;
    TRY(vkt_texture_adopt(l->ctx, &t, &l->predicted));
    TRY(make_program(l, host, true));
    return make_program(l, host, false);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static char last_line[1000]; /* of the library's log */
static void log_line(void *user, vkt_log_level level, const char *line)
{
    (void)user, (void)level;
    snprintf(last_line, sizeof last_line, "%s", line);
}

/* Runs the frame loop. Each frame draws, and then trains for about 3 ms. At the end, the network computes its image. */
static void run(renderer *r, learner *l)
{
    vkt_step_progress progress = { 0 };
    vkt_metrics first, last;
    uint32_t frame = 0;
    for (int steps = 0; steps < STEPS; frame++) {
        uint64_t left_ns = 3000000;
        draw(r, frame);
        if (progress.slice == 0) VKT(vkt_texture_read(l->drawn, NULL)); /* not in the middle of a step */
        do {
            VKT(vkt_step_budget(l->train, &(vkt_run){ .lr = 0.01f }, NULL, &left_ns, &progress));
            if (!progress.completed) break;
            if (steps == 0 || steps == STEPS - 1)
                VKT(vkt_program_metrics(l->train, progress.run_index, steps == 0 ? &first : &last));
        } while (++steps < STEPS);
    }
    VKT(vkt_program_run(l->ask, NULL, NULL));
    VKT(vkt_texture_write(l->predicted, NULL));
    const double error = error_of_image(r, frame);
    printf("renderer: loss %.4f, after %d steps %.4f; error of a frame %.4f, of the network's image %.4f\n", first.loss,
           STEPS, last.loss, noise * noise / 12, error);
    WANT(last.loss < first.loss / 4);
    WANT(error < noise * noise / 12 / 2);
}

int main(void)
{
    counter of_host = { .limit_bytes = INT64_MAX }, of_vulkan = { .limit_bytes = INT64_MAX };
    const VkAllocationCallbacks callbacks = { &of_vulkan, allocate, resize, release, NULL, NULL };
    const vkt_host host = { { host_resize, &of_host }, log_line, NULL, VKT_LOG_WARN };
    vkt_result status;
    renderer r;
    learner l;
    int refused = 0;
    open_renderer(&r, &callbacks);
    /* Host memory: every limit that is too low gives VKT_E_NOMEM, and no memory stays allocated. */
    for (of_host.limit_bytes = 256;; of_host.limit_bytes *= 2) {
        status = open_learner(&l, &r, &host, 64 << 20);
        close_learner(&l);
        WANT(of_host.blocks == 0);
        if (status == VKT_OK) break;
        WANT(status == VKT_E_NOMEM && last_line[0]);
        refused++;
    }
    WANT(refused > 0);
    of_host.limit_bytes = INT64_MAX;
    of_vulkan.limit_bytes = of_vulkan.bytes; /* the driver gets no more memory */
    status = open_learner(&l, &r, &host, 64 << 20);
    close_learner(&l);
    WANT(status == VKT_E_NOMEM);
    of_vulkan.limit_bytes = INT64_MAX;
    /* Device memory: every limit that is too low gives VKT_E_MEMORY_CAP. */
    refused = 0;
    for (uint64_t limit = 64 << 10; (status = open_learner(&l, &r, &host, limit)) != VKT_OK; limit *= 2) {
        WANT(status == VKT_E_MEMORY_CAP && last_line[0]);
        close_learner(&l);
        refused++;
    }
    WANT(refused > 0);
    printf("renderer: the last refusal was: %s\n", last_line);
    run(&r, &l);
    close_learner(&l);
    close_renderer(&r);
    printf("renderer: in use at the end: %lld bytes of the host, %lld of Vulkan\n", (long long)of_host.bytes,
           (long long)of_vulkan.bytes);
    WANT(of_host.blocks == 0 && of_host.bytes == 0 && of_vulkan.blocks == 0 && of_vulkan.bytes == 0);
    return 0;
}
