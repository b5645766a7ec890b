/* embed/app.h - an application that owns a Vulkan device, as the library's users write one: it opens the loader, makes
 * instance and device, has buffers, pictures and command buffers of its own, and has vktrain adopt what it owns.
 *
 * Whatever fails in it fails the test. Messages of the validation layer reach vkt_test_host(), as those of our own
 * instances do. */
#ifndef VKT_TEST_APP_H
#define VKT_TEST_APP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <vulkan/vulkan_core.h>

#include "support/host.h"
#include "vktrain/vktrain.h"
#include "vktrain/vulkan.h"

/* What the tests call of Vulkan. */
#define APP_FUNCTIONS(X)                      \
    X(DestroyInstance)                        \
    X(EnumeratePhysicalDevices)               \
    X(GetPhysicalDeviceProperties)            \
    X(GetPhysicalDeviceFeatures)              \
    X(GetPhysicalDeviceMemoryProperties)      \
    X(GetPhysicalDeviceQueueFamilyProperties) \
    X(CreateDevice)                           \
    X(DestroyDevice)                          \
    X(GetDeviceQueue)                         \
    X(DeviceWaitIdle)                         \
    X(CreateDebugUtilsMessengerEXT)           \
    X(DestroyDebugUtilsMessengerEXT)          \
    X(GetDeviceProcAddr)                      \
    X(QueueSubmit2)                           \
    X(CreateSemaphore)                        \
    X(DestroySemaphore)                       \
    X(WaitSemaphores)                         \
    X(SignalSemaphore)                        \
    X(GetSemaphoreCounterValue)               \
    X(CreateBuffer)                           \
    X(DestroyBuffer)                          \
    X(GetBufferMemoryRequirements)            \
    X(BindBufferMemory)                       \
    X(AllocateMemory)                         \
    X(FreeMemory)                             \
    X(MapMemory)                              \
    X(CreateImage)                            \
    X(DestroyImage)                           \
    X(GetImageMemoryRequirements)             \
    X(BindImageMemory)                        \
    X(CreateCommandPool)                      \
    X(DestroyCommandPool)                     \
    X(AllocateCommandBuffers)                 \
    X(BeginCommandBuffer)                     \
    X(EndCommandBuffer)                       \
    X(CmdPipelineBarrier2)                    \
    X(CmdCopyBufferToImage)                   \
    X(CmdCopyImageToBuffer)                   \
    X(CmdCopyBuffer)

typedef struct app {
    void *loader;
    PFN_vkGetInstanceProcAddr get_proc;
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice phys;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    VkPhysicalDeviceVulkan13Features v13; /* the chain that the device was made with */
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceFeatures2 features;
    VkCommandPool pool;
    VkSemaphore timeline; /* app_submit counts it up */
    uint64_t submitted;
    vkt_host host; /* where messages go */
#define APP_MEMBER(name) PFN_vk##name name;
    APP_FUNCTIONS(APP_MEMBER)
#undef APP_MEMBER
} app;

/* `without`: a feature of the library's needs that the device is made without; NULL: it has all. Skips the test where
 * no Vulkan is installed, unless the build asks for a device. */
void app_open(app *a, const char *without);
void app_close(app *a);
/* What it hands to vkt_ctx_adopt; the caller may add to it. */
vkt_adopt_params app_offer(const app *a);
/* The context, adopted without a pipeline cache. */
vkt_ctx *app_adopt(app *a);

typedef struct app_buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    void *mapped;
    uint64_t bytes;
} app_buffer;
app_buffer app_buffer_make(app *a, uint64_t bytes, VkBufferUsageFlags usage);
void app_buffer_free(app *a, app_buffer *b);

typedef struct app_image {
    VkImage handle;
    VkDeviceMemory memory;
    VkFormat format;
    uint32_t width, height;
    VkImageUsageFlags usage;
} app_image;
app_image app_image_make(app *a, VkFormat format, uint32_t width, uint32_t height, VkImageUsageFlags usage);
void app_image_free(app *a, app_image *i);

VkCommandBuffer app_begin(app *a, bool reusable);
void app_end(app *a, VkCommandBuffer cmd);
/* Submits after `waits` (may be NULL), counts the timeline up when it is done. */
void app_submit(app *a, VkCommandBuffer cmd, const VkSemaphoreSubmitInfo *waits, uint32_t n_waits);
void app_wait(app *a); /* for its own submissions */
VkSemaphoreSubmitInfo app_semaphore(VkSemaphore s, uint64_t value);
VkSemaphore app_timeline_make(app *a);
/* When the device is idle: Mesa's submit thread (22.3) still uses a semaphore when those who waited for it go on. */
void app_timeline_free(app *a, VkSemaphore s);
/* A barrier of all that came before it to all that follows. */
void app_barrier(app *a, VkCommandBuffer cmd);

/* ---- a small network that learns ---- */

enum { NET_ROWS = 37, NET_IN = 5, NET_OUT = 3 };

/* y = linear(relu(linear(x))) to t by Adam; x and t are arrays. */
typedef struct net {
    vkt_ctx *ctx;
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    vkt_tensor x, t, y;
    vkt_array *x_array, *t_array; /* the net's own, unless they were given */
    bool lends;                   /* they were given */
} net;
/* NULL arrays: its own, filled. Weights are the same for every net. */
void net_make(net *n, vkt_ctx *ctx, vkt_array *x, vkt_array *t);
void net_free(net *n);
void net_data(float x[NET_ROWS * NET_IN], float t[NET_ROWS * NET_OUT]);
vkt_run net_run(uint32_t step); /* its learning rate varies */
/* All parameters after `steps` runs of an own net on this context, by vkt_program_run. */
enum { NET_PARAMS = 16 * NET_IN + 16 + NET_OUT * 16 + NET_OUT };
void net_params(net *n, float out[NET_PARAMS]);
void net_expected(vkt_ctx *ctx, uint32_t steps, float out[NET_PARAMS]);

#endif
