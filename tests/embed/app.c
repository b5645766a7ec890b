/* embed/app.c - see app.h. */
#include "embed/app.h"

#include <dlfcn.h>
#include <string.h>

#define DO(call) assert_int_equal((call), VK_SUCCESS)

/* ---- instance and device ---- */

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    (void)severity;
    (void)types;
    const vkt_host *host = user;
    char line[1000];
    if (data->pMessageIdName && strcmp(data->pMessageIdName, "Loader Message") == 0) return VK_FALSE;
    snprintf(line, sizeof line, "validation: %s", data->pMessage);
    host->log(host->log_user, VKT_LOG_ERROR, line);
    return VK_FALSE;
}

/* Makes the instance and its messenger. Returns false if vkCreateInstance fails, for example without a driver. */
static bool make_instance(app *a)
{
    const VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = &a->host,
    };
    const char *const extensions[] = { VK_EXT_DEBUG_UTILS_EXTENSION_NAME };
    const VkApplicationInfo about = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                      .apiVersion = vkt_vk_get_needs()->api_version };
    const VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                        .pNext = &messenger,
                                        .pApplicationInfo = &about,
                                        .enabledExtensionCount = 1,
                                        .ppEnabledExtensionNames = extensions };
    const PFN_vkCreateInstance create = (PFN_vkCreateInstance)a->get_proc(NULL, "vkCreateInstance");
    if (create(&info, NULL, &a->instance) != VK_SUCCESS) return false;
#define FIND(name)                                                \
    a->name = (PFN_vk##name)a->get_proc(a->instance, "vk" #name); \
    assert_non_null(a->name);
    APP_FUNCTIONS(FIND)
#undef FIND
    DO(a->CreateDebugUtilsMessengerEXT(a->instance, &messenger, NULL, &a->messenger));
    return true;
}

static void switch_off(app *a, const char *name)
{
    if (strcmp(name, "timelineSemaphore") == 0) a->v12.timelineSemaphore = VK_FALSE;
    if (strcmp(name, "synchronization2") == 0) a->v13.synchronization2 = VK_FALSE;
    if (strcmp(name, "maintenance4") == 0) a->v13.maintenance4 = VK_FALSE;
}

static void make_device(app *a, const char *without)
{
    static const float priority = 1;
    a->v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    a->v12 = (VkPhysicalDeviceVulkan12Features){ .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                 .pNext = &a->v13 };
    a->features =
        (VkPhysicalDeviceFeatures2){ .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &a->v12 };
    VkPhysicalDeviceFeatures offered;
    a->GetPhysicalDeviceFeatures(a->phys, &offered);
    a->features.features.shaderInt64 = offered.shaderInt64;
    a->features.features.shaderFloat64 =
        offered.shaderFloat64; /* for shaders of the application: custom/test_adopted.c */
    VkPhysicalDeviceVulkan12Features offered12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES };
    VkPhysicalDeviceFeatures2 both = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &offered12 };
    a->GetPhysicalDeviceFeatures2(a->phys, &both);
    a->v12.shaderFloat16 = offered12.shaderFloat16;
    assert_int_equal(vkt_vk_add_features(&a->host, &a->features), VKT_OK);
    if (without) switch_off(a, without);
    const VkDeviceQueueCreateInfo queue = { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                            .queueFamilyIndex = a->family,
                                            .queueCount = 1,
                                            .pQueuePriorities = &priority };
    const VkDeviceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                      .pNext = &a->features,
                                      .queueCreateInfoCount = 1,
                                      .pQueueCreateInfos = &queue };
    DO(a->CreateDevice(a->phys, &info, NULL, &a->device));
    a->GetDeviceQueue(a->device, a->family, 0, &a->queue);
}

static void pick_family(app *a)
{
    VkQueueFamilyProperties families[16];
    uint32_t n = 16;
    a->GetPhysicalDeviceQueueFamilyProperties(a->phys, &n, families);
    while (a->family < n && (~families[a->family].queueFlags & vkt_vk_get_needs()->queue_flags)) a->family++;
    assert_true(a->family < n);
}

void app_open(app *a, const char *without)
{
    uint32_t n = 1;
    *a = (app){ .host = vkt_test_host() };
    a->loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (a->loader) *(void **)&a->get_proc = dlsym(a->loader, "vkGetInstanceProcAddr");
    if (!a->get_proc || !make_instance(a)) {
#ifdef VKT_REQUIRE_DEVICE
        fail_msg("no Vulkan device, and this build requires one");
#endif
        if (a->loader) dlclose(a->loader);
        skip();
    }
    assert_true(a->EnumeratePhysicalDevices(a->instance, &n, &a->phys) >= 0 && n == 1);
    vkt_device_info info;
    assert_int_equal(vkt_vk_examine(&a->host, a->get_proc, a->instance, a->phys, &info), VKT_OK);
    assert_true(info.usable);
    vkt_test_ran_on(info.name, info.driver);
    pick_family(a);
    make_device(a, without);
    a->timeline = app_timeline_make(a);
    const VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                           .queueFamilyIndex = a->family };
    DO(a->CreateCommandPool(a->device, &pool, NULL, &a->pool));
}

void app_close(app *a)
{
    DO(a->DeviceWaitIdle(a->device));
    a->DestroyCommandPool(a->device, a->pool, NULL);
    a->DestroySemaphore(a->device, a->timeline, NULL);
    a->DestroyDevice(a->device, NULL);
    a->DestroyDebugUtilsMessengerEXT(a->instance, a->messenger, NULL);
    a->DestroyInstance(a->instance, NULL);
    dlclose(a->loader);
}

vkt_adopt_params app_offer(const app *a)
{
    return (vkt_adopt_params){ .instance = a->instance,
                               .physical_device = a->phys,
                               .device = a->device,
                               .features = &a->features,
                               .queue = a->queue,
                               .queue_family = a->family,
                               .get_proc_addr = a->get_proc };
}

vkt_ctx *app_adopt(app *a)
{
    const vkt_adopt_params offer = app_offer(a);
    const vkt_ctx_params params = { .no_pipeline_cache = true };
    vkt_ctx *ctx = NULL;
    assert_int_equal(vkt_ctx_adopt(&offer, &params, &a->host, &ctx), VKT_OK);
    return ctx;
}

/* ---- memory ---- */

/* Allocates memory with all properties of `want`. Lavapipe and real devices have such memory. */
static VkDeviceMemory allocate(app *a, const VkMemoryRequirements *need, VkMemoryPropertyFlags want)
{
    VkPhysicalDeviceMemoryProperties m;
    VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = need->size };
    VkDeviceMemory memory;
    a->GetPhysicalDeviceMemoryProperties(a->phys, &m);
    while (!(need->memoryTypeBits >> info.memoryTypeIndex & 1) ||
           (~m.memoryTypes[info.memoryTypeIndex].propertyFlags & want))
        assert_true(++info.memoryTypeIndex < m.memoryTypeCount);
    DO(a->AllocateMemory(a->device, &info, NULL, &memory));
    return memory;
}

app_buffer app_buffer_make(app *a, uint64_t bytes, VkBufferUsageFlags usage)
{
    app_buffer b = { .bytes = bytes };
    VkMemoryRequirements need;
    const VkBufferCreateInfo info = { .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage };
    DO(a->CreateBuffer(a->device, &info, NULL, &b.handle));
    a->GetBufferMemoryRequirements(a->device, b.handle, &need);
    b.memory = allocate(a, &need, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    DO(a->BindBufferMemory(a->device, b.handle, b.memory, 0));
    DO(a->MapMemory(a->device, b.memory, 0, VK_WHOLE_SIZE, 0, &b.mapped));
    memset(b.mapped, 0xff, bytes); /* NaNs in f32, f16 and bf16 until the first write */
    return b;
}

void app_buffer_free(app *a, app_buffer *b)
{
    a->DestroyBuffer(a->device, b->handle, NULL);
    a->FreeMemory(a->device, b->memory, NULL);
    *b = (app_buffer){ 0 };
}

app_image app_image_make(app *a, VkFormat format, uint32_t width, uint32_t height, VkImageUsageFlags usage)
{
    app_image i = { .format = format, .width = width, .height = height, .usage = usage };
    VkMemoryRequirements need;
    const VkImageCreateInfo info = { .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                     .imageType = VK_IMAGE_TYPE_2D,
                                     .format = format,
                                     .extent = { width, height, 1 },
                                     .mipLevels = 1,
                                     .arrayLayers = 1,
                                     .samples = VK_SAMPLE_COUNT_1_BIT,
                                     .usage = usage };
    DO(a->CreateImage(a->device, &info, NULL, &i.handle));
    a->GetImageMemoryRequirements(a->device, i.handle, &need);
    i.memory = allocate(a, &need, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    DO(a->BindImageMemory(a->device, i.handle, i.memory, 0));
    return i;
}

void app_image_free(app *a, app_image *i)
{
    a->DestroyImage(a->device, i->handle, NULL);
    a->FreeMemory(a->device, i->memory, NULL);
    *i = (app_image){ 0 };
}

/* ---- commands ---- */

VkCommandBuffer app_begin(app *a, bool reusable)
{
    VkCommandBuffer cmd;
    const VkCommandBufferAllocateInfo one = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = a->pool,
                                              .commandBufferCount = 1 };
    const VkCommandBufferBeginInfo begin = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                             .flags = reusable ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT : 0 };
    DO(a->AllocateCommandBuffers(a->device, &one, &cmd));
    DO(a->BeginCommandBuffer(cmd, &begin));
    return cmd;
}

void app_end(app *a, VkCommandBuffer cmd)
{
    DO(a->EndCommandBuffer(cmd));
}

VkSemaphoreSubmitInfo app_semaphore(VkSemaphore s, uint64_t value)
{
    return (VkSemaphoreSubmitInfo){ .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                    .semaphore = s,
                                    .value = value,
                                    .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT };
}

VkSemaphore app_timeline_make(app *a)
{
    const VkSemaphoreTypeCreateInfo type = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                             .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE };
    const VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type };
    VkSemaphore s;
    DO(a->CreateSemaphore(a->device, &info, NULL, &s));
    return s;
}

void app_timeline_free(app *a, VkSemaphore s)
{
    DO(a->DeviceWaitIdle(a->device));
    a->DestroySemaphore(a->device, s, NULL);
}

void app_submit(app *a, VkCommandBuffer cmd, const VkSemaphoreSubmitInfo *waits, uint32_t n_waits)
{
    const VkCommandBufferSubmitInfo c = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = cmd };
    const VkSemaphoreSubmitInfo done = app_semaphore(a->timeline, ++a->submitted);
    const VkSubmitInfo2 info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                                 .waitSemaphoreInfoCount = n_waits,
                                 .pWaitSemaphoreInfos = waits,
                                 .commandBufferInfoCount = cmd != NULL,
                                 .pCommandBufferInfos = &c,
                                 .signalSemaphoreInfoCount = 1,
                                 .pSignalSemaphoreInfos = &done };
    DO(a->QueueSubmit2(a->queue, 1, &info, VK_NULL_HANDLE));
}

void app_wait(app *a)
{
    const VkSemaphoreWaitInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                       .semaphoreCount = 1,
                                       .pSemaphores = &a->timeline,
                                       .pValues = &a->submitted };
    DO(a->WaitSemaphores(a->device, &info, UINT64_MAX));
}

void app_barrier(app *a, VkCommandBuffer cmd)
{
    const VkMemoryBarrier2 all = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                   .srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                   .srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT,
                                   .dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_2_HOST_BIT,
                                   .dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT |
                                                    VK_ACCESS_2_HOST_READ_BIT };
    a->CmdPipelineBarrier2(cmd, &(VkDependencyInfo){ .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                                     .memoryBarrierCount = 1,
                                                     .pMemoryBarriers = &all });
}

/* ---- copies ---- */

/* Returns the aspects of an image of this format. */
static VkImageAspectFlags aspects_of(VkFormat f)
{
    const bool stencil = f == VK_FORMAT_D24_UNORM_S8_UINT || f == VK_FORMAT_D32_SFLOAT_S8_UINT;
    const bool depth = f == VK_FORMAT_D16_UNORM || f == VK_FORMAT_X8_D24_UNORM_PACK32 || f == VK_FORMAT_D32_SFLOAT;
    return stencil ? VK_IMAGE_ASPECT_DEPTH_BIT | VK_IMAGE_ASPECT_STENCIL_BIT
           : depth ? VK_IMAGE_ASPECT_DEPTH_BIT
                   : VK_IMAGE_ASPECT_COLOR_BIT;
}

void app_image_copy(app *a, const app_image *i, VkBuffer b, bool up, VkImageLayout from, VkImageLayout layout)
{
    const VkImageLayout during = up ? VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL : VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
    const VkImageAspectFlags aspects = aspects_of(i->format);
    const VkBufferImageCopy region = { .imageSubresource = { aspects & ~(VkFlags)VK_IMAGE_ASPECT_STENCIL_BIT, 0, 0, 1 },
                                       .imageExtent = { i->width, i->height, 1 } };
    VkImageMemoryBarrier2 m = { .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2,
                                .srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                .srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT,
                                .dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                .dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT,
                                .oldLayout = from,
                                .newLayout = during,
                                .image = i->handle,
                                .subresourceRange = { aspects, 0, 1, 0, 1 } };
    const VkDependencyInfo info = { .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                    .imageMemoryBarrierCount = 1,
                                    .pImageMemoryBarriers = &m };
    VkCommandBuffer cmd = app_begin(a, false);
    a->CmdPipelineBarrier2(cmd, &info);
    if (up)
        a->CmdCopyBufferToImage(cmd, b, i->handle, during, 1, &region);
    else
        a->CmdCopyImageToBuffer(cmd, i->handle, during, b, 1, &region);
    m.oldLayout = during;
    m.newLayout = layout;
    a->CmdPipelineBarrier2(cmd, &info);
    app_barrier(a, cmd);
    app_end(a, cmd);
    app_submit(a, cmd, NULL, 0);
    app_wait(a);
}

void app_array_read(app *a, const vkt_array *array, void *out)
{
    const vkt_vk_buffer at = vkt_array_buffer(array);
    app_buffer copy = app_buffer_make(a, at.bytes, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    VkCommandBuffer cmd = app_begin(a, false);
    app_barrier(a, cmd);
    a->CmdCopyBuffer(cmd, at.buffer, copy.handle, 1, &(VkBufferCopy){ at.offset_bytes, 0, at.bytes });
    app_barrier(a, cmd);
    app_end(a, cmd);
    app_submit(a, cmd, NULL, 0);
    app_wait(a);
    memcpy(out, copy.mapped, at.bytes);
    app_buffer_free(a, &copy);
}

/* ---- a small network that learns ---- */

void net_data(float x[NET_ROWS * NET_IN], float t[NET_ROWS * NET_OUT])
{
    for (int i = 0; i < NET_ROWS * NET_IN; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; i < NET_ROWS * NET_OUT; i++) t[i] = (float)(i * 53 % 97) / 48 - 1;
}

static vkt_array *table(vkt_ctx *ctx, const float *data, uint32_t columns)
{
    vkt_array *a;
    const vkt_array_params params = { .shape = vkt_shape2(NET_ROWS, columns), .data = data };
    assert_int_equal(vkt_array_create(ctx, &params, &a), VKT_OK);
    return a;
}

static void fill_params(net *n)
{
    for (uint32_t i = 0; i < vkt_store_count(n->store); i++) {
        float w[16 * 16];
        const vkt_shape s = vkt_store_shape(n->store, i);
        const uint32_t elements = s.dim[0] * (s.rank > 1 ? s.dim[1] : 1);
        for (uint32_t k = 0; k < elements; k++) w[k] = (float)((k + 7 * i) * 29 % 83) / 160 - 0.25f;
        assert_int_equal(vkt_store_write(n->store, i, VKT_PART_VALUE, w), VKT_OK);
    }
}

static vkt_tensor layer(vkt_graph *g, const char *weight, const char *bias, vkt_tensor x, uint32_t in, uint32_t out)
{
    const vkt_tensor w = vkt_param(g, weight, vkt_shape2(out, in)), b = vkt_param(g, bias, vkt_shape1(out));
    return vkt_linear(g, x, w, b);
}

/* The network has a dropout, so that the tests show whether all ways of submission use the same random numbers. */
void net_make(net *n, vkt_ctx *ctx, vkt_array *x, vkt_array *t)
{
    float xs[NET_ROWS * NET_IN], ts[NET_ROWS * NET_OUT];
    const vkt_host host = vkt_ctx_host(ctx);
    net_data(xs, ts);
    *n = (net){ .ctx = ctx, .lends = x != NULL };
    n->x_array = x ? x : table(ctx, xs, NET_IN);
    n->t_array = t ? t : table(ctx, ts, NET_OUT);
    assert_int_equal(vkt_graph_create(&host, &n->g), VKT_OK);
    n->x = vkt_external(n->g, "x", VKT_F32, vkt_shape2(NET_ROWS, NET_IN));
    n->t = vkt_external(n->g, "t", VKT_F32, vkt_shape2(NET_ROWS, NET_OUT));
    const vkt_tensor h = vkt_relu(n->g, layer(n->g, "w1", "b1", n->x, NET_IN, 16));
    n->y = layer(n->g, "w2", "b2", vkt_dropout(n->g, h, 0.25f), 16, NET_OUT);
    vkt_keep(n->g, n->y);
    const vkt_tensor loss = vkt_mse(n->g, n->y, n->t);
    assert_int_equal(vkt_backward(n->g, loss), VKT_OK);
    assert_int_equal(vkt_update(n->g, &(vkt_optimizer){ .kind = VKT_ADAM }), VKT_OK);
    vkt_report(n->g, loss, (vkt_tensor){ 0 });
    assert_int_equal(vkt_store_create(ctx, n->g, &n->store), VKT_OK);
    fill_params(n);
    const vkt_binding arrays[] = { { n->x, n->x_array }, { n->t, n->t_array } };
    const vkt_program_params params = { .name = "net", .arrays = arrays, .n_arrays = 2 };
    assert_int_equal(vkt_program_create(ctx, n->g, n->store, &params, &n->p), VKT_OK);
}

void net_free(net *n)
{
    vkt_program_destroy(&n->p);
    vkt_store_destroy(&n->store);
    vkt_graph_destroy(&n->g);
    if (!n->lends) vkt_array_destroy(&n->x_array);
    if (!n->lends) vkt_array_destroy(&n->t_array);
}

vkt_run net_run(uint32_t step)
{
    return (vkt_run){ .lr = 0.01f / (float)(1 + step) };
}

void net_params(net *n, float out[NET_PARAMS])
{
    uint64_t at = 0;
    assert_int_equal(vkt_store_elements(n->store), NET_PARAMS);
    for (uint32_t i = 0; i < vkt_store_count(n->store); i++) {
        const vkt_shape s = vkt_store_shape(n->store, i);
        assert_int_equal(vkt_store_read(n->store, i, VKT_PART_VALUE, out + at), VKT_OK);
        at += s.dim[0] * (s.rank > 1 ? s.dim[1] : 1);
    }
}

void net_expected(vkt_ctx *ctx, uint32_t steps, float out[NET_PARAMS])
{
    net n;
    net_make(&n, ctx, NULL, NULL);
    for (uint32_t s = 0; s < steps; s++) {
        const vkt_run run = net_run(s);
        assert_int_equal(vkt_program_run(n.p, &run, NULL), VKT_OK);
    }
    net_params(&n, out);
    net_free(&n);
}
