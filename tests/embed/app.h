/* embed/app.h - an application that owns a Vulkan device, as a user of the library may write it. The application opens
 * the Vulkan loader, and makes the instance and the device. It has its own buffers, images and command buffers. vktrain
 * adopts the application's device.
 *
 * A failure in the application fails the test. Messages of the validation layer reach vkt_test_host(), as they do for
 * the library's own instances. */
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

/* The Vulkan functions that an application loads. */
#define APP_FUNCTIONS(X)                      \
    X(DestroyInstance)                        \
    X(EnumeratePhysicalDevices)               \
    X(GetPhysicalDeviceProperties)            \
    X(GetPhysicalDeviceFeatures)              \
    X(GetPhysicalDeviceFormatProperties2)     \
    X(GetPhysicalDeviceFeatures2)             \
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
    VkPhysicalDeviceVulkan13Features v13; /* features.pNext is v12, v12.pNext is v13: the features of the device */
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceFeatures2 features;
    VkCommandPool pool;
    VkSemaphore timeline; /* app_submit increments it */
    uint64_t submitted;
    vkt_host host; /* the receiver of messages */
#define APP_MEMBER(name) PFN_vk##name name;
    APP_FUNCTIONS(APP_MEMBER)
#undef APP_MEMBER
} app;

/* Opens the application. The device gets the features that the library needs. `without` names a feature that the device
 * does not get: timelineSemaphore, synchronization2 or maintenance4 (NULL: none). The device also gets shaderFloat16,
 * shaderInt64 and shaderFloat64 if they are offered. Without a Vulkan driver, skips the test; a build that requires a
 * device fails the test instead. */
void app_open(app *a, const char *without);
void app_close(app *a);
/* Returns an argument for vkt_ctx_adopt. The caller may change it. */
vkt_adopt_params app_offer(const app *a);
/* Makes a context on the device, without a pipeline cache. */
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
/* Submits `cmd` (VK_NULL_HANDLE: nothing). The submission waits for `waits` (may be NULL). Its end increments the
 * timeline. */
void app_submit(app *a, VkCommandBuffer cmd, const VkSemaphoreSubmitInfo *waits, uint32_t n_waits);
void app_wait(app *a); /* waits for all submissions of the application */
VkSemaphoreSubmitInfo app_semaphore(VkSemaphore s, uint64_t value);
VkSemaphore app_timeline_make(app *a);
/* Waits until the device is idle, then destroys the semaphore. The wait is necessary, because Mesa 22.3's submit thread
 * still uses the semaphore after a wait for the semaphore has ended. */
void app_timeline_free(app *a, VkSemaphore s);
/* Records a barrier from all work before it to all work after it, and to reads of the host. */
void app_barrier(app *a, VkCommandBuffer cmd);

/* If `up`, copies the start of the buffer to the whole image; otherwise copies the image to the buffer. Copies only the
 * depth of a depth-stencil format. The image is in the layout `from` before the call, and in `layout` after it. */
void app_image_copy(app *a, const app_image *i, VkBuffer b, bool up, VkImageLayout from, VkImageLayout layout);
/* Reads an array from the device, by commands of the application. */
void app_array_read(app *a, const vkt_array *array, void *out);

/* ---- a small network that learns ---- */

enum { NET_ROWS = 37, NET_IN = 5, NET_OUT = 3 };

/* A network y = linear(dropout(relu(linear(x)))) that Adam trains to give t. x and t are arrays. */
typedef struct net {
    vkt_ctx *ctx;
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    vkt_tensor x, t, y;
    vkt_array *x_array, *t_array; /* the net owns them, unless `lends` */
    bool lends;                   /* the arrays belong to the caller */
} net;
/* Makes a network. If x and t are NULL, also makes and fills the arrays. All networks start with the same weights. */
void net_make(net *n, vkt_ctx *ctx, vkt_array *x, vkt_array *t);
void net_free(net *n);
void net_data(float x[NET_ROWS * NET_IN], float t[NET_ROWS * NET_OUT]);
vkt_run net_run(uint32_t step); /* returns a run whose learning rate depends on `step` */
enum { NET_PARAMS = 16 * NET_IN + 16 + NET_OUT * 16 + NET_OUT }; /* how many floats all parameters have */
/* Writes all parameters of the net to `out`. */
void net_params(net *n, float out[NET_PARAMS]);
/* Makes a new net on `ctx`, calls vkt_program_run `steps` times, and writes the parameters of the new net to `out`. */
void net_expected(vkt_ctx *ctx, uint32_t steps, float out[NET_PARAMS]);

#endif
