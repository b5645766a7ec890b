/* vktrain/vulkan.h - training inside an application that owns its Vulkan device: adopting the device, three ways to
 * step, and sharing buffers and images. docs/embedding.md is the guide. The rest of the library works as on a device of
 * its own.
 *
 * This is the only header that includes Vulkan's (types only: define VK_NO_PROTOTYPES before it if you load
 * functions yourself), and the only one that vktrain.h leaves out.
 *
 * Order. Each submission of a context ends with a full memory barrier: later submissions of the application to the same
 * queue see what it wrote. It does not begin with a barrier. If the library must wait for the application's writes, or
 * for its reads of memory that the library writes, the application makes it wait: with a semaphore (vkt_sync), or with
 * a barrier at the end of the application's own commands (vkt_program_barriers returns its stages and accesses). */
#ifndef VKTRAIN_VULKAN_H
#define VKTRAIN_VULKAN_H

#include <vulkan/vulkan_core.h>

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- before the application makes its device --------------------------------------------------------------------- */

/* The requirements for an instance, a device and a queue. */
typedef struct vkt_vk_needs {
    uint32_t api_version;     /* at least this version, in VkApplicationInfo and of the device */
    VkQueueFlags queue_flags; /* flags that the queue's family must have */
    const void *features; /* required: a chain of feature structs, as for VkDeviceCreateInfo.pNext; do not change it */
    const char *const *extensions; /* device extensions, recommended: the library works without any of them */
    uint32_t n_extensions;         /* number of extensions */
} vkt_vk_needs;
/* Returns the requirements. They are static and the same on every machine. */
VKT_API const vkt_vk_needs *vkt_vk_get_needs(void);
/* Sets the required features in the application's own chain for VkDeviceCreateInfo.pNext, and changes nothing else. The
 * chain needs VkPhysicalDeviceVulkan12Features and VkPhysicalDeviceVulkan13Features, or the structs of the single
 * features. VKT_E_ARG, with the names, if no struct of the chain has a feature. `host` may be NULL. */
VKT_API vkt_result vkt_vk_add_features(const vkt_host *host, void *chain);
/* Describes a physical device: out->usable, and in out->reason what it lacks. `get_proc_addr` NULL: the one of the
 * installed loader. */
VKT_API vkt_result vkt_vk_examine(const vkt_host *host, PFN_vkGetInstanceProcAddr get_proc_addr, VkInstance instance,
                                  VkPhysicalDevice physical_device, vkt_device_info *out);

/* ---- adopting the device ----------------------------------------------------------------------------------------- */

/* The application's objects. The application keeps the ownership of all of them. */
typedef struct vkt_adopt_params {
    VkInstance instance;                     /* made for Vulkan 1.3 or newer */
    VkPhysicalDevice physical_device;        /* a usable one: vkt_vk_examine */
    VkDevice device;                         /* made from it, with the features of vkt_vk_get_needs */
    const void *features;                    /* the chain that the device was made with: VkDeviceCreateInfo.pNext */
    const char *const *extensions;           /* extensions that the device was made with */
    uint32_t n_extensions;                   /* number of extensions */
    VkQueue queue;                           /* its family has VK_QUEUE_COMPUTE_BIT; the library submits all its work to
                                              * it */
    uint32_t queue_family;                   /* index of the queue's family */
    PFN_vkGetInstanceProcAddr get_proc_addr; /* NULL: the one of the installed loader */
    /* Called around each vkQueueSubmit2 of the library, on the thread that called the library. Needed if the
     * application uses the queue from other threads. NULL: the application ensures in another way that calls do not
     * overlap. */
    void (*lock_queue)(void *user);
    void (*unlock_queue)(void *user);        /* required with lock_queue */
    void *lock_user;                         /* passed to both */
    const VkAllocationCallbacks *allocation; /* for every Vulkan object of the library; valid as long as the context.
                                              * NULL: none */
    bool debug_utils;                        /* VK_EXT_debug_utils is enabled on the instance: the library may name
                                              * objects */
} vkt_adopt_params;

/* Makes a context on the application's device. Owner: the caller. Destroying the context waits for its own work and
 * leaves instance, device and queue as they are. VKT_E_ARG for a missing handle; VKT_E_FEATURE, with the names, for
 * features that the device was made without. Threads: as vkt_ctx_create; two contexts on one queue need lock_queue, or
 * one thread.
 *
 * In `params` (may be NULL) device and validation are not used, and debug_names needs debug_utils. Cooperative matrices
 * are used if the device was made with VK_KHR_cooperative_matrix and the features cooperativeMatrix, shaderFloat16,
 * vulkanMemoryModel and vulkanMemoryModelDeviceScope. If the device has the third feature, programs in f16 need the
 * fourth, which is not checked. On CPU devices the fast kernels need shaderInt64 (VkPhysicalDeviceFeatures2 in the
 * chain). */
VKT_API vkt_result vkt_ctx_adopt(const vkt_adopt_params *adopt, const vkt_ctx_params *params, const vkt_host *host,
                                 vkt_ctx **out);

/* ---- stepping, 1: submitted by the library ----------------------------------------------------------------------- */

/* Semaphores of the application, binary or timeline: its own structs, as for VkSubmitInfo2, read before the call
 * returns. The signal of a semaphore in `waits` must be submitted already, or the semaphore must be a timeline. The
 * signal of a timeline may come later, but must not depend on a library call that waits for earlier runs
 * (vkt_program_run says which do). NULL or zeroed: none. */
typedef struct vkt_sync {
    const VkSemaphoreSubmitInfo *waits;   /* before the first command */
    uint32_t n_waits;                     /* at most VKT_SYNC_MAX */
    const VkSemaphoreSubmitInfo *signals; /* after the last one */
    uint32_t n_signals;                   /* at most VKT_SYNC_MAX */
} vkt_sync;
#define VKT_SYNC_MAX 8 /* most semaphores on either side of a submission */

/* Runs a program as vkt_program_run does, between semaphores. With VKT_DEBUG >= 2 the call returns when the run is
 * done: the signals that it waits for must then be submitted before. */
VKT_API vkt_result vkt_program_run_synced(vkt_program *p, const vkt_run *run, const vkt_sync *sync,
                                          uint64_t *run_index);
/* Returns the context's own timeline semaphore, and the value that it reaches when all work submitted so far is done.
 * The application's submissions may wait for it. The application never signals it. */
VKT_API void vkt_ctx_timeline(const vkt_ctx *ctx, VkSemaphore *semaphore, uint64_t *value);

/* ---- stepping, 2: recorded into the application's command buffer ------------------------------------------------- */

/* Records one run of the program (training, evaluation or inference) into `cmd`. `cmd` is a primary or secondary
 * command buffer of the adopted queue's family, in recording state, outside of a render pass. The call submits and
 * allocates nothing. `run` (NULL: zeroed) becomes part of the recording. The recording may be executed any number of
 * times, but not twice at the same time, and not at the same time as a run of the same program or store. The
 * application puts the barriers between executions (vkt_program_barriers). The call changes the compute pipeline,
 * descriptor set 0 and push constants of `cmd`. The application destroys the program after the command buffer's last
 * execution. */
VKT_API vkt_result vkt_program_record(vkt_program *p, VkCommandBuffer cmd, const vkt_run *run);
/* Returns the barriers that a recording needs. before->dst...: stages and accesses of its first commands; the
 * application fills src... in with its own (if a recording of the library comes before it: with after->src...).
 * after->src...: stages and accesses that write results; the application fills dst... in. */
VKT_API void vkt_program_barriers(const vkt_program *p, VkMemoryBarrier2 *before, VkMemoryBarrier2 *after);
/* Returns the metrics of the last recorded run that was executed, as vkt_program_metrics does. The application must
 * have waited for that run. VKT_E_STATE if nothing was recorded. */
VKT_API vkt_result vkt_program_recorded_metrics(vkt_program *p, vkt_metrics *out);

/* ---- stepping, 3: a frame's budget ------------------------------------------------------------------------------- */

/* The progress of a program between two frames. */
typedef struct vkt_step_progress {
    uint64_t run_index;     /* the run in progress, or the run that this call completed */
    uint32_t slice, slices; /* next slice of the run, and number of slices; slice 0: no run is in progress */
    uint64_t submitted_ns;  /* expected time of the work that this call submitted, from measurements; if not yet
                             * measured: the budget */
    bool completed;         /* this call submitted the last slice of a run: another run may begin in the same frame */
} vkt_step_progress;
/* Submits as many slices of a run as fit into *budget_ns by their measured times, and subtracts their expected time
 * from it. The next call continues with the next slice. `run` is read when a run begins; a call stops at the end of a
 * run. Call it in a loop, once per frame with a fresh budget: uint64_t left_ns = 4000000; do r = vkt_step_budget(train,
 * &run, NULL, &left_ns, &progress); while (r == VKT_OK && progress.completed);
 *
 * It never waits: if the earlier submissions still have more work than one budget, it submits nothing. A slice ends at
 * a barrier. A single kernel that takes longer than a whole budget is submitted in a frame of its own. The first two
 * runs go kernel by kernel, one per call, and are measured. UINT64_MAX is no limit: in a loop until `completed` it
 * finishes the run in progress. VKT_E_UNSUPPORTED without timestamps, or if vkt_ctx_params.max_submission_ns is
 * UINT64_MAX.
 *
 * While a run is in progress, vkt_program_run, vkt_program_profile and vkt_program_write of this program are
 * VKT_E_STATE. The caller must not change what the run still reads: its arrays, and the gradients in its store. So no
 * other program that trains the store may run. */
VKT_API vkt_result vkt_step_budget(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *budget_ns,
                                   vkt_step_progress *out);

/* ---- sharing buffers --------------------------------------------------------------------------------------------- */

/* A range of a buffer. */
typedef struct vkt_vk_buffer {
    VkBuffer buffer;       /* VK_NULL_HANDLE: there is none */
    uint64_t offset_bytes; /* start of the range */
    uint64_t bytes;        /* length of the range */
} vkt_vk_buffer;

/* Memory of the application, and the array that it holds. */
typedef struct vkt_array_adopt_params {
    vkt_vk_buffer at; /* bound to memory; offset a multiple of 256; bytes at least the array's, rounded up to 16 */
    VkBufferUsageFlags usage; /* usage of the buffer: at least STORAGE_BUFFER; STORAGE_TEXEL_BUFFER makes kernels faster
                               * on CPU devices; TRANSFER_DST for vkt_array_write */
    vkt_dtype dtype;          /* type of the elements */
    vkt_shape shape;          /* row-major */
} vkt_array_adopt_params;
/* Makes an array from the application's memory: for vkt_external, as input, target or output (vkt_write). Destroying
 * the array does not touch the buffer. Whenever the library's work runs, the adopted queue's family must own the
 * buffer, or the buffer is concurrent. */
VKT_API vkt_result vkt_array_adopt(vkt_ctx *ctx, const vkt_array_adopt_params *params, vkt_array **out);
/* Submit the library's half of a queue family's ownership transfer, between semaphores; the application does the other
 * half. A release by the application, for compute shaders, comes before acquire; an acquire by the application comes
 * after release. The other family is one of the device's, VK_QUEUE_FAMILY_EXTERNAL or VK_QUEUE_FAMILY_FOREIGN_EXT; else
 * VKT_E_ARG. */
VKT_API vkt_result vkt_array_acquire(vkt_array *a, uint32_t from_family, const vkt_sync *sync);
VKT_API vkt_result vkt_array_release(vkt_array *a, uint32_t to_family, const vkt_sync *sync);

/* Returns the buffer range of an array, for the application's shaders (storage buffers; usage STORAGE_BUFFER,
 * STORAGE_TEXEL_BUFFER, source and destination of copies). It is valid until the array is destroyed; the ranges below
 * until the store or program is destroyed. */
VKT_API vkt_vk_buffer vkt_array_buffer(const vkt_array *a);
/* Returns the range of a parameter in row-major order; all zero if the store has no such part or no parameter i. */
VKT_API vkt_vk_buffer vkt_store_buffer(const vkt_store *s, uint32_t i, vkt_store_part part);
/* Returns the range of a kept value (vkt_keep) or an input: f32, or as its dtype says. *layout (may be NULL) gets its
 * layout. VKT_E_ARG for another value, or one that is stored in 16 bits. */
VKT_API vkt_result vkt_program_buffer(const vkt_program *p, vkt_tensor t, vkt_vk_buffer *out, vkt_layout *layout);

/* ---- sharing images ---------------------------------------------------------------------------------------------- */

/* An image of the application, tied to an array. */
typedef struct vkt_texture vkt_texture;

/* The description of an image. All members are required, except level and layer. */
typedef struct vkt_texture_params {
    VkImage image;   /* 2D, one sample, colour */
    VkFormat format; /* R8G8B8A8_UNORM, R16G16B16A16_SFLOAT, R32G32B32A32_SFLOAT; for reading also R8G8B8A8_SRGB and
                      * both kinds of B8G8R8A8, as linear numbers */
    VkImageUsageFlags usage; /* usage of the image: SAMPLED or STORAGE for reading, STORAGE for writing */
    uint32_t width, height;  /* size of the level, in pixels */
    uint32_t level, layer;   /* the level and layer that are read and written */
    VkImageLayout layout;    /* layout whenever the library's work runs: GENERAL; or SHADER_READ_ONLY_OPTIMAL, if it is
                              * only read, as SAMPLED */
    vkt_array *array; /* f32, (height, width, C) or (height * width, C) with C from 1 to 4; outlives the vkt_texture */
} vkt_texture_params;
/* Ties an image of the application to an array. Pixel (x, y), y downwards, is row y * width + x. Reading copies the
 * first C channels. Writing sets the channels that C leaves out to 0, alpha to 1; numbers that an integer format cannot
 * hold are clamped. The call makes a view of the image; destroying it does not touch the image.
 *
 * Before the library's work, the application makes its writes visible to SAMPLED_READ or STORAGE_READ of the compute
 * stage, or finishes its accesses before STORAGE_WRITE of that stage; it also changes the layout if needed. The
 * library's work ends with the barrier described at the top of this file. VKT_E_ARG for a format, usage, layout or
 * shape that is not listed above. */
VKT_API vkt_result vkt_texture_adopt(vkt_ctx *ctx, const vkt_texture_params *params, vkt_texture **out);
VKT_API void vkt_texture_destroy(vkt_texture **t); /* after its last use on the device */
/* Copy image to array, and array to image. The copy is submitted between semaphores; NULL: without any. VKT_E_STATE if
 * the usage does not allow it. */
VKT_API vkt_result vkt_texture_read(vkt_texture *t, const vkt_sync *sync);
VKT_API vkt_result vkt_texture_write(vkt_texture *t, const vkt_sync *sync);
/* Record the copies of vkt_texture_read and vkt_texture_write, under the conditions of vkt_program_record. Barriers
 * before and after: for buffers, stages and accesses as vkt_program_barriers returns them; for the image, as
 * vkt_texture_adopt says. */
VKT_API vkt_result vkt_texture_record_read(vkt_texture *t, VkCommandBuffer cmd);
VKT_API vkt_result vkt_texture_record_write(vkt_texture *t, VkCommandBuffer cmd);

#ifdef __cplusplus
}
#endif
#endif
