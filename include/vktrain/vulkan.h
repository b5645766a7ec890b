/* vktrain/vulkan.h - training inside an application that owns its Vulkan device: adopting the device, three ways to
 * step, and sharing buffers and images. docs/embedding.md is the guide. On the adopted device, the functions of all
 * other headers work as on a device that the library made.
 *
 * This is the only header that includes Vulkan's header. vktrain.h does not include this header. This header uses only
 * types of Vulkan. So if you load Vulkan's functions yourself, you may define VK_NO_PROTOTYPES before this header.
 *
 * Order of accesses: Each submission of a context ends with a full memory barrier. Later submissions of the application
 * to the same queue see what the context's submission wrote. A submission does not begin with a barrier. If the library
 * reads what the application wrote, or overwrites what the application reads, the application must order the two
 * accesses: by a semaphore (vkt_sync), or by a barrier at the end of the application's commands. For the next run of a
 * program, vkt_program_barriers returns the stages and accesses of this barrier. For functions that read or write
 * arrays or stores (for instance vkt_store_load), the barrier also needs the stage ALL_TRANSFER with the accesses
 * TRANSFER_READ and TRANSFER_WRITE. */
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
    uint32_t api_version;     /* lowest version that VkApplicationInfo and the device may have */
    VkQueueFlags queue_flags; /* flags that the queue's family must have */
    const void *features; /* required: a chain of feature structs, as for VkDeviceCreateInfo.pNext; do not change it */
    const char *const *extensions; /* device extensions, recommended: the library works without any of them */
    uint32_t n_extensions;         /* number of extensions */
} vkt_vk_needs;
/* Returns the requirements. They are static and the same on every machine. */
VKT_API const vkt_vk_needs *vkt_vk_get_needs(void);
/* Sets the required features in the application's own chain for VkDeviceCreateInfo.pNext. Other members do not change.
 * The chain needs VkPhysicalDeviceVulkan12Features and VkPhysicalDeviceVulkan13Features, or the structs of the
 * extensions that introduced the features. If a required feature has no member in any struct of the chain, the result
 * is VKT_E_ARG, and the message names all such features. The required features that do have a member are set
 * nevertheless. `host` may be NULL. */
VKT_API vkt_result vkt_vk_add_features(const vkt_host *host, void *chain);
/* Describes a physical device in *out. out->usable: the library can use the device; else out->reason says what the
 * device lacks. If `get_proc_addr` is NULL, the installed loader is used. `host` may be NULL. VKT_E_ARG for a missing
 * handle, or a device of another instance; VKT_E_NO_LOADER, VKT_E_DRIVER, VKT_E_NOMEM. */
VKT_API vkt_result vkt_vk_examine(const vkt_host *host, PFN_vkGetInstanceProcAddr get_proc_addr, VkInstance instance,
                                  VkPhysicalDevice physical_device, vkt_device_info *out);

/* ---- adopting the device ----------------------------------------------------------------------------------------- */

/* The application's objects. The application keeps the ownership of all of them. */
typedef struct vkt_adopt_params {
    VkInstance instance;                     /* made for Vulkan 1.3 or newer */
    VkPhysicalDevice physical_device;        /* usable, as vkt_vk_examine reports */
    VkDevice device;                         /* made from physical_device, with the features of vkt_vk_get_needs */
    const void *features;                    /* the chain that the device was made with: VkDeviceCreateInfo.pNext */
    const char *const *extensions;           /* extensions that the device was made with */
    uint32_t n_extensions;                   /* number of extensions */
    VkQueue queue;                           /* the queue of all work of the library; its family has
                                              * VK_QUEUE_COMPUTE_BIT */
    uint32_t queue_family;                   /* index of the queue's family */
    PFN_vkGetInstanceProcAddr get_proc_addr; /* NULL: the function of the installed loader */
    /* Called before each vkQueueSubmit2 of the library, on the thread that called the library. lock_queue and
     * unlock_queue are needed if the application uses the queue from other threads. NULL: the application ensures in
     * another way that two threads do not use the queue at once. */
    void (*lock_queue)(void *user);
    void (*unlock_queue)(void *user);        /* called after vkQueueSubmit2; NULL if and only if lock_queue is NULL */
    void *lock_user;                         /* passed to both functions */
    const VkAllocationCallbacks *allocation; /* for every Vulkan object of the library; must stay valid as long as the
                                              * context exists. NULL: Vulkan's allocator */
    bool debug_utils;                        /* VK_EXT_debug_utils is enabled on the instance, so the library may name
                                              * objects */
} vkt_adopt_params;

/* Makes a context on the application's device. Owner: the caller. Destroying the context waits for the context's own
 * work, and leaves instance, device and queue as they are. VKT_E_ARG for a missing handle, for a family without
 * compute, or if only one of lock_queue and unlock_queue is NULL. VKT_E_FEATURE if the physical device is not usable,
 * or if the device was made without required features; the message names these. Also the errors of vkt_ctx_create.
 * After an error *out = NULL. Threads: see vkt_ctx_create. If two contexts use one queue from different threads, they
 * need lock_queue.
 *
 * In `params` (may be NULL) device and validation are not used, and debug_names needs debug_utils. Cooperative matrices
 * are used only if the device was made with VK_KHR_cooperative_matrix and the features cooperativeMatrix,
 * shaderFloat16, vulkanMemoryModel and vulkanMemoryModelDeviceScope. Cooperative matrices of bf16 also need
 * VK_KHR_shader_bfloat16 and its features shaderBFloat16Type and shaderBFloat16CooperativeMatrix. Cooperative matrices
 * of flexible sizes (the variant coop2) also need VK_NV_cooperative_matrix2 and the features
 * cooperativeMatrixFlexibleDimensions, cooperativeMatrixPerElementOperations and storageBuffer16BitAccess. If a device
 * was made with vulkanMemoryModel, programs in VKT_PRECISION_F16 also need vulkanMemoryModelDeviceScope; this is not
 * checked. On CPU devices, kernels are faster with texel buffers, but kernels use texel buffers only if the device was
 * made with shaderInt64 (VkPhysicalDeviceFeatures2 in the chain). */
VKT_API vkt_result vkt_ctx_adopt(const vkt_adopt_params *adopt, const vkt_ctx_params *params, const vkt_host *host,
                                 vkt_ctx **out);

/* ---- stepping, 1: submitted by the library ----------------------------------------------------------------------- */

/* Semaphores of the application, binary or timeline, as in VkSubmitInfo2. The structs are read before the call
 * returns. The signal of a binary semaphore in `waits` must be submitted already. The signal of a timeline may be
 * submitted later, but only to another queue, and must not depend on a library call that waits for earlier runs (the
 * comment of vkt_program_run says which calls wait). NULL or a zeroed struct: no semaphores. VKT_E_ARG: a null
 * semaphore, or more than VKT_SYNC_MAX waits or signals. After this error nothing is submitted. */
typedef struct vkt_sync {
    const VkSemaphoreSubmitInfo *waits;   /* the first command waits for all of these semaphores */
    uint32_t n_waits;                     /* at most VKT_SYNC_MAX */
    const VkSemaphoreSubmitInfo *signals; /* signalled after the last command */
    uint32_t n_signals;                   /* at most VKT_SYNC_MAX */
} vkt_sync;
#define VKT_SYNC_MAX 8 /* maximum number of semaphores in `waits`, and in `signals` */

/* Runs a program as vkt_program_run does, after the waits and before the signals of `sync`. With VKT_DEBUG >= 2
 * (core.h) the call waits until the run is done. So the signals that the run waits for must be submitted before the
 * call. */
VKT_API vkt_result vkt_program_run_synced(vkt_program *p, const vkt_run *run, const vkt_sync *sync,
                                          uint64_t *run_index);
/* Returns the context's own timeline semaphore, and the value that it reaches when all work submitted so far is done.
 * The application may wait for the semaphore in its submissions, and by vkWaitSemaphores in any thread. The application
 * must never signal the semaphore. The semaphore does not change as long as the context exists. Threads: like other
 * calls on the context. */
VKT_API void vkt_ctx_timeline(const vkt_ctx *ctx, VkSemaphore *semaphore, uint64_t *value);

/* ---- stepping, 2: recorded into the application's command buffer ------------------------------------------------- */

/* Records one run of the program (training, evaluation or inference) into `cmd`. `cmd` is a primary or secondary
 * command buffer of the adopted queue's family, in recording state, outside of a render pass. The call submits and
 * allocates nothing. `run` (NULL: zeroed) becomes part of the recording. The recording may be executed any number of
 * times, but only one execution at a time. During an execution, no other run of the program may execute, nor a run of
 * another program with the same store. The application records barriers between executions (vkt_program_barriers). The
 * call changes the compute pipeline, descriptor set 0 and push constants of `cmd`. The program must outlive the last
 * execution of the command buffer. Any thread may submit `cmd`, because a submission is no call on the context. */
VKT_API vkt_result vkt_program_record(vkt_program *p, VkCommandBuffer cmd, const vkt_run *run);
/* Returns two barriers, which the application completes and records: *before in front of the recording of p, and
 * *after behind the recording.
 *   *before  The function sets the dst members: to the stages and accesses of the recording's first commands. The
 *            application sets the src members: to the stages and accesses of its own commands before the recording, or,
 *            behind a recording of another program, to the src members of that program's *after
 *   *after   The function sets the src members: to the stages and accesses that write results. The application sets the
 *            dst members: to the stages and accesses of its commands behind the recording */
VKT_API void vkt_program_barriers(const vkt_program *p, VkMemoryBarrier2 *before, VkMemoryBarrier2 *after);
/* Returns the metrics of the recorded run that was executed last, as vkt_program_metrics does. The application must
 * have waited for that run. VKT_E_STATE if nothing was recorded, or if the graph has no vkt_report. */
VKT_API vkt_result vkt_program_recorded_metrics(vkt_program *p, vkt_metrics *out);

/* ---- stepping, 3: a frame's budget ------------------------------------------------------------------------------- */

/* The output of vkt_step_budget: the progress of a run. vkt_texture_read_budget and vkt_texture_write_budget also use
 * this struct, for the progress of a copy. A frame is all calls that share one budget: see the loop below. */
typedef struct vkt_step_progress {
    uint64_t run_index;     /* number of the run in progress, or of the run that this call completed. If there is
                             * neither, it is the number of the next run */
    uint32_t slice, slices; /* slice: index of the next slice; 0: no run is in progress. slices: number of slices */
    uint64_t submitted_ns;  /* expected time of the work that this call submitted; 0: none. In the first two runs
                             * no times are known yet, so submitted_ns is the whole budget of the call */
    bool completed;         /* this call submitted the last slice of a run, so another run may begin in this frame */
    uint64_t measured_ns;   /* time that the device took for the newest frame whose timestamps have arrived; 0: none.
                             * Calls with a budget of UINT64_MAX are not part of a frame */
    uint64_t measured_budget_ns; /* the budget of the frame that took measured_ns */
    uint64_t measured_frames; /* number of frames whose timestamps have arrived so far. If this number has not changed
                               * since the last call, measured_ns is still the time of the same frame */
} vkt_step_progress;
/* Divides a run into parts, the slices. Submits as many slices as fit into *budget_ns by their expected times, and
 * subtracts these times from *budget_ns. The next call continues with the next slice. `run` is read when a run begins.
 * A call stops at the end of a run. In each frame, call the function in a loop, with a new budget:
 *
 *     uint64_t left_ns = 4000000;
 *     do r = vkt_step_budget(train, &run, NULL, &left_ns, &progress);
 *     while (r == VKT_OK && progress.completed);
 *
 * The semaphores of `sync` (NULL: none) are those of this call, not of the whole run.
 *
 * The call never waits. It submits no slice if the next slice does not fit into *budget_ns, or if it would have to wait
 * for earlier work first: for instance, if the expected times of the slices of unfinished frames add up to more than
 * one budget, or if the frame before the previous frame is not finished. A call without a slice still submits the
 * semaphores of `sync`. The run is divided so that a slice of several kernels is expected to take at most a quarter of
 * the budget, or 0.1 ms if this is longer. A slice ends at a barrier if possible. A kernel that takes longer than a
 * whole budget is submitted in a frame without other slices. Expected times follow the measured times: upward at once,
 * downward within about ten frames. Measured times include other work on the device, and the time between two
 * submissions. The work of vkt_linear_cross_entropy depends on the labels. The expected time of this op is never below
 * its time in the second run, in which the op does all of the work. So a frame may take less time than expected. A
 * changed budget takes effect at once. The first two runs submit one kernel per call; the second run is measured. From
 * the third run on, a budget of UINT64_MAX means no limit. To finish the run in progress, call the function with this
 * budget until `completed` is true. If there is no memory to divide the run anew for a changed budget, the old slices
 * stay in use. VKT_E_UNSUPPORTED without timestamps, or if vkt_ctx_params.max_submission_ns is UINT64_MAX.
 *
 * While a run is in progress, vkt_program_run, vkt_program_profile and vkt_program_write of this program return
 * VKT_E_STATE. The caller must not change what the run still reads: the program's arrays, and the parameters and
 * gradients in the program's store. So no other program that trains the same store may run. */
VKT_API vkt_result vkt_step_budget(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *budget_ns,
                                   vkt_step_progress *out);

/* ---- sharing buffers --------------------------------------------------------------------------------------------- */

/* A range of a buffer. */
typedef struct vkt_vk_buffer {
    VkBuffer buffer;       /* VK_NULL_HANDLE: there is no such range */
    uint64_t offset_bytes; /* start of the range */
    uint64_t bytes;        /* length of the range */
} vkt_vk_buffer;

/* Memory of the application, and the array in this memory. */
typedef struct vkt_array_adopt_params {
    vkt_vk_buffer at; /* a buffer with memory. offset_bytes is a multiple of 256. `bytes` is at least the number of
                       * bytes of the array, rounded up to a multiple of 16 */
    VkBufferUsageFlags usage; /* usage of the buffer: at least STORAGE_BUFFER; STORAGE_TEXEL_BUFFER makes kernels faster
                               * on CPU devices; TRANSFER_DST for vkt_array_write; TRANSFER_SRC for vkt_program_read
                               * and vkt_array_copy */
    vkt_dtype dtype;          /* type of the elements */
    vkt_shape shape;          /* row-major */
} vkt_array_adopt_params;
/* Makes an array from the application's memory, for vkt_external: as input, target or output (vkt_write). Owner: the
 * caller. Destroying the array does not touch the buffer. Whenever the library's work runs, the adopted queue's family
 * must own the buffer, unless the buffer's sharing mode is VK_SHARING_MODE_CONCURRENT. VKT_E_ARG, VKT_E_NOMEM. */
VKT_API vkt_result vkt_array_adopt(vkt_ctx *ctx, const vkt_array_adopt_params *params, vkt_array **out);
/* Submit the library's half of an ownership transfer between queue families, with the semaphores of `sync`. The
 * application submits the other half: a release before vkt_array_acquire, an acquire after vkt_array_release.
 * Both halves have the same range: vkt_array_adopt_params.at for an adopted array, and the range of vkt_array_buffer
 * for an array that the library made. `from_family` and `to_family` are a queue family of the device,
 * VK_QUEUE_FAMILY_EXTERNAL or VK_QUEUE_FAMILY_FOREIGN_EXT; else VKT_E_ARG. */
VKT_API vkt_result vkt_array_acquire(vkt_array *a, uint32_t from_family, const vkt_sync *sync);
VKT_API vkt_result vkt_array_release(vkt_array *a, uint32_t to_family, const vkt_sync *sync);

/* Returns the buffer range of an array, for the application's shaders. Unless the array was adopted, the buffer's usage
 * is STORAGE_BUFFER, STORAGE_TEXEL_BUFFER, UNIFORM_TEXEL_BUFFER, INDIRECT_BUFFER, TRANSFER_SRC and TRANSFER_DST. The
 * range is valid until the array is destroyed. */
VKT_API vkt_vk_buffer vkt_array_buffer(const vkt_array *a);
/* Returns the range of `part` of the parameter or state with number i. The elements are in row-major order. The range
 * is valid until the store is destroyed. If the store has no such part, or no parameter or state with number i, all
 * members of the result are 0. */
VKT_API vkt_vk_buffer vkt_store_buffer(const vkt_store *s, uint32_t i, vkt_store_part part);
/* Returns in *out the range of a value that vkt_program_read can read, for instance of an input or a kept value
 * (vkt_keep). The elements of the range have the value's type. *layout (may be NULL) gets the value's layout. The range
 * is valid until the program is destroyed. VKT_E_ARG for an activation that is not kept, or for a value of f32 that is
 * stored in 16 bits. */
VKT_API vkt_result vkt_program_buffer(const vkt_program *p, vkt_tensor t, vkt_vk_buffer *out, vkt_layout *layout);

/* ---- sharing images ---------------------------------------------------------------------------------------------- */

/* An image of the application, tied to an array. */
typedef struct vkt_texture vkt_texture;

/* The description of an image. All members are required, except level, layer, x and y. */
typedef struct vkt_texture_params {
    VkImage image;           /* 2D, one sample */
    VkFormat format;         /* one of the formats that the comment of vkt_texture_adopt lists */
    VkImageUsageFlags usage; /* usage of the image. Reading needs SAMPLED or STORAGE; an image with both is read as
                              * SAMPLED. Writing needs STORAGE */
    uint32_t width, height;  /* size of the rectangle that is copied, in pixels: the whole level, or a part of it */
    uint32_t level, layer;   /* the level and layer that are read and written */
    VkImageLayout layout;    /* layout of the image whenever the library's work runs. GENERAL is always allowed. If the
                              * image is only read as SAMPLED, these are allowed too: SHADER_READ_ONLY_OPTIMAL,
                              * READ_ONLY_OPTIMAL, and for depth formats DEPTH_STENCIL_READ_ONLY_OPTIMAL,
                              * DEPTH_READ_ONLY_OPTIMAL and DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL */
    uint32_t x, y; /* first pixel of the rectangle in the level. The library does not know the size of the level, so the
                    * caller makes sure that the rectangle is inside */
    vkt_array *array; /* f32, (height, width, C) or (height * width, C) with C from 1 to 4; outlives the vkt_texture */
} vkt_texture_params;
/* Ties an image of the application to an array. The pixel in column i and row j of the rectangle, counted from the top
 * left, is row j * width + i of the array, seen as (height * width, C). Pixels outside of the rectangle do not
 * change. Reading copies the first C channels. If the format lacks one of them, the array gets 1 for alpha, and 0 for
 * red, green or blue. Writing sets all channels of the format. If the array lacks one of them, the image gets 1 for
 * alpha, and 0 for red, green or blue. The call makes a view of the image; destroying the vkt_texture does not touch
 * the image. Owner: the caller.
 *
 * These formats can be read as SAMPLED or STORAGE, and written as STORAGE, on every device: R8G8B8A8_UNORM,
 * R16G16B16A16_SFLOAT, R32_SFLOAT, R32G32B32A32_SFLOAT.
 *
 * These formats can be read as SAMPLED: B8G8R8A8_UNORM, A2B10G10R10_UNORM_PACK32 (RGB10A2), A2R10G10B10_UNORM_PACK32,
 * B10G11R11_UFLOAT_PACK32 (R11G11B10F), R16_SFLOAT, R16G16_SFLOAT, R32G32_SFLOAT. Reading them as STORAGE needs
 * STORAGE_READ_WITHOUT_FORMAT in the device's VkFormatProperties3, and writing them needs STORAGE_WRITE_WITHOUT_FORMAT.
 *
 * These formats can only be read, as SAMPLED: R8G8B8A8_SRGB and B8G8R8A8_SRGB, whose numbers become linear; the depth
 * (C = 1) of D16_UNORM, X8_D24_UNORM_PACK32, D32_SFLOAT, D24_UNORM_S8_UINT and D32_SFLOAT_S8_UINT.
 *
 * Numbers of float formats are read exactly, but subnormal numbers of f32 may be read as zero. Numbers of UNORM formats
 * are rounded to f32. For sRGB numbers, the error depends on the device. Writing rounds to one of the two nearest
 * numbers of the format; the device decides which. In UNORM, numbers are clamped to [0,1], and NaN becomes any number.
 * In B10G11R11_UFLOAT_PACK32, numbers below 0 become 0. In all float formats NaN stays NaN, and infinities stay
 * infinite (in a format without a sign, -inf becomes 0). Finite numbers above the format's largest finite number become
 * this largest number or infinity.
 *
 * Before the library reads the image, the application makes its own writes visible to SAMPLED_READ or STORAGE_READ of
 * the compute stage. If the library writes the image, a barrier must order the application's earlier accesses before
 * STORAGE_WRITE of the compute stage. The application also changes the layout if needed. Each submission of
 * the library ends with the barrier described at the top of this file. VKT_E_ARG for a format, usage, layout or shape
 * that is not listed above; VKT_E_UNSUPPORTED if the array is larger than a binding can be. */
VKT_API vkt_result vkt_texture_adopt(vkt_ctx *ctx, const vkt_texture_params *params, vkt_texture **out);
VKT_API void vkt_texture_destroy(vkt_texture **t); /* waits for submitted copies; call it after the last execution of
                                                    * recorded copies */
/* Copy the image to the array (read), or the array to the image (write). The copy is submitted after the waits and
 * before the signals of `sync` (NULL: none). VKT_E_STATE if usage, format or layout do not allow the copy. */
VKT_API vkt_result vkt_texture_read(vkt_texture *t, const vkt_sync *sync);
VKT_API vkt_result vkt_texture_write(vkt_texture *t, const vkt_sync *sync);
/* Copy as vkt_texture_read and vkt_texture_write do, but in slices: each call submits as many slices as fit into
 * *budget_ns by their expected times, and subtracts these times. The next call continues with the next slice; after
 * `completed`, a call begins the next copy. Expected times follow the measured times. A copy has at most 64 slices, and
 * at most pixels / 4096 (rounded up). The calls never wait. The first call submits one slice and uses up the budget.
 * Until the time of this slice is known, later calls submit only the semaphores of `sync`. A call also submits only
 * these semaphores if the expected times of earlier slices that read this texture (or that write it, for the write
 * function) add up to more than the budget. These times count until the last of these slices is finished. A slice that
 * is longer than the whole budget is submitted alone, after all earlier slices are done. The rest of a budget is for
 * other calls of the same frame:
 *
 *     uint64_t left_ns = 4000000;
 *     if (!has_samples) r = vkt_texture_read_budget(t, NULL, &left_ns, &progress), has_samples = progress.completed;
 *     if (has_samples) r = vkt_step_budget(train, &run, NULL, &left_ns, &progress);
 *
 * In *out, run_index is the number of the copy, and measured_frames stays 0. Until a copy is completed, only the copy
 * may change the image or the array. The first call allocates. VKT_E_UNSUPPORTED without timestamps, and the errors of
 * vkt_texture_read. */
VKT_API vkt_result vkt_texture_read_budget(vkt_texture *t, const vkt_sync *sync, uint64_t *budget_ns,
                                           vkt_step_progress *out);
VKT_API vkt_result vkt_texture_write_budget(vkt_texture *t, const vkt_sync *sync, uint64_t *budget_ns,
                                            vkt_step_progress *out);
/* Submit the library's half of an ownership transfer between queue families, with the semaphores of `sync`, as
 * vkt_array_acquire and vkt_array_release do for buffers. The barrier covers all aspects of the texture's level and
 * layer. The barrier also changes the layout. Acquiring changes `from_layout` to vkt_texture_params.layout; releasing
 * changes vkt_texture_params.layout to `to_layout`. The barrier of the application's half has the same two layouts and
 * the same two families. The application submits its release before vkt_texture_acquire, which waits for this release
 * through `sync`. After vkt_texture_release, the application submits its acquire, which waits for a semaphore that
 * `sync` signals. With the adopted queue's own family there is no other half, and the call only changes the layout.
 * vkt_texture_acquire changes the layout after all earlier work on the queue; vkt_texture_release changes the layout
 * after all earlier compute work on the queue. If several textures have the same level and layer of an image, transfer
 * only one of them. An image with the sharing mode VK_SHARING_MODE_CONCURRENT needs no transfer. VKT_E_ARG for a family
 * that vkt_array_acquire refuses, or a `to_layout` that is UNDEFINED or PREINITIALIZED. */
VKT_API vkt_result vkt_texture_acquire(vkt_texture *t, uint32_t from_family, VkImageLayout from_layout,
                                       const vkt_sync *sync);
VKT_API vkt_result vkt_texture_release(vkt_texture *t, uint32_t to_family, VkImageLayout to_layout,
                                       const vkt_sync *sync);
/* Record the copies of vkt_texture_read and vkt_texture_write, under the conditions of vkt_program_record. The
 * application records barriers before and after: for buffers, with the stages and accesses that vkt_program_barriers
 * returns; for the image, as the comment of vkt_texture_adopt says. */
VKT_API vkt_result vkt_texture_record_read(vkt_texture *t, VkCommandBuffer cmd);
VKT_API vkt_result vkt_texture_record_write(vkt_texture *t, VkCommandBuffer cmd);

#ifdef __cplusplus
}
#endif
#endif
