/* vktrain/vulkan.h - training inside an application that owns its Vulkan device: adopting it, three ways to step, and
 * sharing buffers and pictures. docs/embedding.md is the guide. Everything else of the library works as on a device of
 * its own.
 *
 * The only header that includes Vulkan's (types only: define VK_NO_PROTOTYPES before it if you load functions
 * yourself), and the only one that vktrain.h leaves out.
 *
 * Order. Each submission of a context ends with a full memory barrier: what it wrote is visible to whatever the
 * application submits to the same queue afterwards. It does not begin with one: what the application wrote, or still
 * reads where our work writes, our work must be told of, by a semaphore (vkt_sync) or by a barrier that ends the
 * application's own commands (vkt_program_barriers says which). */
#ifndef VKTRAIN_VULKAN_H
#define VKTRAIN_VULKAN_H

#include <vulkan/vulkan_core.h>

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- before the application makes its device --------------------------------------------------------------------- */

/* What an instance, a device and a queue must be made with. */
typedef struct vkt_vk_needs {
    uint32_t api_version;     /* at least: of VkApplicationInfo, and of the device */
    VkQueueFlags queue_flags; /* of the queue's family */
    const void *features; /* required: a chain of feature structs, as for VkDeviceCreateInfo.pNext; to be read only */
    const char *const *extensions; /* of the device, recommended: the library does without any of them */
    uint32_t n_extensions;         /* how many these are */
} vkt_vk_needs;
/* The same on every machine; static. */
VKT_API const vkt_vk_needs *vkt_vk_get_needs(void);
/* Sets the required features in the application's own chain for VkDeviceCreateInfo.pNext (it wants
 * VkPhysicalDeviceVulkan12Features and VkPhysicalDeviceVulkan13Features, or the structs of the single features) and
 * leaves all else as it is. VKT_E_ARG, with the names, where no struct of the chain has a feature. `host` may be NULL.
 */
VKT_API vkt_result vkt_vk_add_features(const vkt_host *host, void *chain);
/* What a physical device is to the library: out->usable, and in out->reason what it lacks. `get_proc_addr` NULL: of the
 * installed loader. */
VKT_API vkt_result vkt_vk_examine(const vkt_host *host, PFN_vkGetInstanceProcAddr get_proc_addr, VkInstance instance,
                                  VkPhysicalDevice physical_device, vkt_device_info *out);

/* ---- adopting it ------------------------------------------------------------------------------------------------- */

/* What the application has; all of it stays its own. */
typedef struct vkt_adopt_params {
    VkInstance instance;                     /* made for Vulkan 1.3 or newer */
    VkPhysicalDevice physical_device;        /* a usable one: vkt_vk_examine */
    VkDevice device;                         /* made of it, with the features that vkt_vk_get_needs tells */
    const void *features;                    /* the chain that the device was made with: VkDeviceCreateInfo.pNext */
    const char *const *extensions;           /* that it was made with */
    uint32_t n_extensions;                   /* how many these are */
    VkQueue queue;                           /* of a family with VK_QUEUE_COMPUTE_BIT; all our work goes to it */
    uint32_t queue_family;                   /* its */
    PFN_vkGetInstanceProcAddr get_proc_addr; /* NULL: of the installed loader */
    /* Called around each vkQueueSubmit2 of ours, on the thread that called the library; for an application that uses
     * the queue from other threads. NULL: the application makes sure of it in another way. */
    void (*lock_queue)(void *user);
    void (*unlock_queue)(void *user);        /* given where lock_queue is */
    void *lock_user;                         /* handed to both */
    const VkAllocationCallbacks *allocation; /* for every object of ours; lives as long as the context. NULL: none */
    bool debug_utils;                        /* VK_EXT_debug_utils is enabled on the instance: objects may be named */
} vkt_adopt_params;

/* A context on the application's device. Cooperative matrices serve it where the device was made with
 * VK_KHR_cooperative_matrix and the features cooperativeMatrix, shaderFloat16, vulkanMemoryModel and
 * vulkanMemoryModelDeviceScope (where it has the third, programs in f16 want the fourth, which is not checked); on CPU
 * devices the fast kernels want shaderInt64 (VkPhysicalDeviceFeatures2 in the chain). Of `params` (may be NULL) device
 * and validation do not count, and debug_names wants debug_utils. VKT_E_ARG for a handle that is missing;
 * VKT_E_FEATURE, with the names, for what the device was made without. Destroying the context waits for its own work
 * and leaves instance, device and queue as they are. Owner: the caller. Threads: as vkt_ctx_create; two contexts on one
 * queue want lock_queue, or one thread. */
VKT_API vkt_result vkt_ctx_adopt(const vkt_adopt_params *adopt, const vkt_ctx_params *params, const vkt_host *host,
                                 vkt_ctx **out);

/* ---- stepping, 1: submitted by the library ----------------------------------------------------------------------- */

/* Semaphores of the application, binary or timeline: its own structs, as for VkSubmitInfo2, read before the call
 * returns. What is waited for must be submitted already, or be a timeline's value: one that is signalled later must not
 * hang on a call that waits for earlier runs (vkt_program_run says which do). NULL or zeroed: none. */
typedef struct vkt_sync {
    const VkSemaphoreSubmitInfo *waits;   /* before the first command */
    uint32_t n_waits;                     /* at most VKT_SYNC_MAX */
    const VkSemaphoreSubmitInfo *signals; /* after the last one */
    uint32_t n_signals;                   /* at most VKT_SYNC_MAX */
} vkt_sync;
#define VKT_SYNC_MAX 8 /* most semaphores on either side of a submission */

/* vkt_program_run between semaphores. With VKT_DEBUG from 2 on it returns when the run is done: what it waits for must
 * be under way by then. */
VKT_API vkt_result vkt_program_run_synced(vkt_program *p, const vkt_run *run, const vkt_sync *sync,
                                          uint64_t *run_index);
/* The context's own timeline semaphore, and the value that it reaches when all that was submitted so far is done: for
 * waits of the application's submissions. The application never signals it. */
VKT_API void vkt_ctx_timeline(const vkt_ctx *ctx, VkSemaphore *semaphore, uint64_t *value);

/* ---- stepping, 2: recorded into the application's command buffer ------------------------------------------------- */

/* Records one run (training, evaluation or inference: whatever the program is) into `cmd`, a primary or secondary
 * command buffer in recording state, outside of a render pass, of the adopted queue's family. Nothing is submitted and
 * nothing allocated. `run` (NULL: zeroed) becomes part of the recording, which may be executed any number of times, but
 * not twice at a time, nor beside a run of the same program or store: barriers between executions are the application's
 * (vkt_program_barriers). Compute pipeline, descriptor set 0 and push constants of `cmd` are changed. The application
 * destroys the program after the command buffer's last execution. */
VKT_API vkt_result vkt_program_record(vkt_program *p, VkCommandBuffer cmd, const vkt_run *run);
/* The barriers of a recording, as data. before->dst...: stages and accesses of its first commands; the application
 * fills in src... with its own (for a recording of ours before it: after->src...). after->src...: those that leave
 * results; the application fills in dst.... */
VKT_API void vkt_program_barriers(const vkt_program *p, VkMemoryBarrier2 *before, VkMemoryBarrier2 *after);
/* vkt_program_metrics of the last recorded run that was executed; the application has waited for it. VKT_E_STATE where
 * nothing was recorded. */
VKT_API vkt_result vkt_program_recorded_metrics(vkt_program *p, vkt_metrics *out);

/* ---- stepping, 3: a frame's budget ------------------------------------------------------------------------------- */

/* Where a program stands between two frames. */
typedef struct vkt_step_progress {
    uint64_t run_index;     /* of the run that is under way, or was completed by this call */
    uint32_t slice, slices; /* next slice of it, and how many there are; slice 0: none is under way */
    uint64_t submitted_ns; /* what this call submitted is expected to take, as measured; not yet measured: the budget */
    bool completed; /* the last slice of a run was submitted by this call: another run may begin in the same frame */
} vkt_step_progress;
/* Submits as many slices of a run as fit into *budget_ns by measured times, and takes what they are expected to take
 * off it; the next call goes on where this one stopped. `run` counts when a run begins; a call ends where a run does.
 * Called in a loop, once per frame with a fresh budget: uint64_t left_ns = 4000000; do r = vkt_step_budget(train, &run,
 * NULL, &left_ns, &progress); while (r == VKT_OK && progress.completed); Never waits: where what was submitted before
 * is still more than a budget's worth of work, it submits nothing. Slices are cut where barriers stand; a single kernel
 * that takes longer than a whole budget is submitted in a frame of its own. The first two runs go kernel by kernel, one
 * a call, and are measured. UINT64_MAX is no limit: in a loop until `completed` it ends the run that is under way.
 * VKT_E_UNSUPPORTED without timestamps, or where vkt_ctx_params.max_submission_ns is UINT64_MAX.
 *
 * While a run is under way, vkt_program_run, vkt_program_profile and vkt_program_write of this program are VKT_E_STATE.
 * What the run still reads is the caller's to leave alone: its arrays, and in its store the gradients, so that no other
 * program that trains the store may run. */
VKT_API vkt_result vkt_step_budget(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *budget_ns,
                                   vkt_step_progress *out);

/* ---- sharing buffers --------------------------------------------------------------------------------------------- */

/* A range of a buffer. */
typedef struct vkt_vk_buffer {
    VkBuffer buffer;       /* VK_NULL_HANDLE: there is none */
    uint64_t offset_bytes; /* where it begins */
    uint64_t bytes;        /* how long it is */
} vkt_vk_buffer;

/* Memory of the application, and what lies in it. */
typedef struct vkt_array_adopt_params {
    vkt_vk_buffer at; /* bound to memory; offset a multiple of 256, bytes at least the array's, rounded up to 16 */
    VkBufferUsageFlags usage; /* that it was made with: STORAGE_BUFFER at least; STORAGE_TEXEL_BUFFER is the fast way on
                               * CPU devices; TRANSFER_DST for vkt_array_write */
    vkt_dtype dtype;          /* of the elements */
    vkt_shape shape;          /* row-major */
} vkt_array_adopt_params;
/* An array that is the application's memory: for vkt_external, as input, target or output (vkt_write). Destroying it
 * leaves the buffer alone. The buffer is of the adopted queue's family, or concurrent, whenever our work runs. */
VKT_API vkt_result vkt_array_adopt(vkt_ctx *ctx, const vkt_array_adopt_params *params, vkt_array **out);
/* Our half of a queue family's ownership transfer, submitted between semaphores: the application does the other half.
 * A release of the application's for compute shaders comes before acquire, an acquire of its own after release. */
VKT_API vkt_result vkt_array_acquire(vkt_array *a, uint32_t from_family, const vkt_sync *sync);
VKT_API vkt_result vkt_array_release(vkt_array *a, uint32_t to_family, const vkt_sync *sync);

/* Where our tensors are, for the application's shaders (storage buffers; usage STORAGE_BUFFER, STORAGE_TEXEL_BUFFER,
 * both ends of copies). Valid until the array, store or program is destroyed. */
VKT_API vkt_vk_buffer vkt_array_buffer(const vkt_array *a);
/* A parameter in row-major order; all zero where the store has no such part or no parameter i. */
VKT_API vkt_vk_buffer vkt_store_buffer(const vkt_store *s, uint32_t i, vkt_store_part part);
/* A kept value (vkt_keep) or an input, f32 or as its dtype says, laid out as vkt_layout tells. *layout may be NULL.
 * VKT_E_ARG for another value, or one that is stored in 16 bits. */
VKT_API vkt_result vkt_program_buffer(const vkt_program *p, vkt_tensor t, vkt_vk_buffer *out, vkt_layout *layout);

/* ---- sharing pictures -------------------------------------------------------------------------------------------- */

/* A picture of the application, tied to an array. */
typedef struct vkt_texture vkt_texture;

/* All of it is needed, but for level and layer. */
typedef struct vkt_texture_params {
    VkImage image;   /* 2D, one sample, colour */
    VkFormat format; /* R8G8B8A8_UNORM, R16G16B16A16_SFLOAT, R32G32B32A32_SFLOAT; to be read also R8G8B8A8_SRGB and
                      * B8G8R8A8 of both kinds, as linear numbers */
    VkImageUsageFlags usage; /* that it was made with: SAMPLED or STORAGE to be read, STORAGE to be written */
    uint32_t width, height;  /* of the level, in pixels */
    uint32_t level, layer;   /* the one that is read and written */
    VkImageLayout layout;    /* in which it is whenever our work runs: GENERAL, or, only read and SAMPLED,
                              * SHADER_READ_ONLY_OPTIMAL */
    vkt_array *array; /* f32, (height, width, C) or (height * width, C) with C from 1 to 4; outlives the vkt_texture */
} vkt_texture_params;
/* A picture of the application and the array that stands for it: pixel (x, y), y downwards, is row y * width + x.
 * Reading takes the first C channels; writing sets those that C leaves out to 0, alpha to 1, and numbers that an
 * integer format cannot hold are clamped. Makes a view of the picture, whose destruction leaves it alone.
 *
 * At hand-over the application has made its writes visible to SAMPLED_READ or STORAGE_READ, or ended its accesses
 * before STORAGE_WRITE, of the compute stage, and does any change of layout; afterwards our work has ended with the
 * barrier that is told above. VKT_E_ARG for a format, usage, layout or shape that is none of the above. */
VKT_API vkt_result vkt_texture_adopt(vkt_ctx *ctx, const vkt_texture_params *params, vkt_texture **out);
VKT_API void vkt_texture_destroy(vkt_texture **t); /* after its last use on the device */
/* Picture to array, array to picture: submitted between semaphores; NULL: without any. VKT_E_STATE where the usage does
 * not allow it. */
VKT_API vkt_result vkt_texture_read(vkt_texture *t, const vkt_sync *sync);
VKT_API vkt_result vkt_texture_write(vkt_texture *t, const vkt_sync *sync);
/* The same, recorded, under the conditions of vkt_program_record. Before and after it: vkt_program_barriers' stages and
 * accesses for buffers, and what is said above for the picture. */
VKT_API vkt_result vkt_texture_record_read(vkt_texture *t, VkCommandBuffer cmd);
VKT_API vkt_result vkt_texture_record_write(vkt_texture *t, VkCommandBuffer cmd);

#ifdef __cplusplus
}
#endif
#endif
