/* gpu/internal.h - shared by the files of gpu/ and by tests/gpu only. */
#ifndef VKT_GPU_INTERNAL_H
#define VKT_GPU_INTERNAL_H

#include "gpu/coop.h"
#include "gpu/gpu.h"

/* Lists devices like vkt_list_devices, with the Vulkan of `loader` (NULL: the installed one). */
vkt_result vkt_list_devices_of(const vkt_host *host, const vkt_loader *loader, vkt_device_info *infos,
                               uint32_t capacity, uint32_t *count);

/* ---- instance.c ---- */
/* Opens the loader, and creates the instance. Sets ctx->loader, vk, instance, messenger and has_debug_utils. Returns
 * VKT_E_NO_DEVICE if no driver is installed. This result is not logged, because it is no error for some callers. */
vkt_result vkt_instance_open(vkt_ctx *ctx, const vkt_ctx_params *params, const vkt_loader *loader);
void vkt_instance_close(vkt_ctx *ctx);

/* ---- features.c: required features, by index ---- */
uint32_t vkt_feature_count(void);
const char *vkt_feature_name(uint32_t i); /* for instance "feature timelineSemaphore" */
bool vkt_feature_is_on(const void *chain, uint32_t i);

/* Memory for the structs in the chain of vkt_features_with_coop. The caller owns this memory. */
typedef struct vkt_coop_features {
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coop;
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV coop2;
    VkPhysicalDevice16BitStorageFeatures storage;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat;
} vkt_coop_features;
/* Returns a chain for VkDeviceCreateInfo with the required features and the features for cooperative matrices.
 * `flexible` adds the features for flexible matrices, and `bfloat` the features for elements of bfloat16. The chain
 * begins in *own, so *own must stay valid as long as the chain is used. */
const void *vkt_features_with_coop(vkt_coop_features *own, bool flexible, bool bfloat);
bool vkt_features_have_coop(const void *chain);
bool vkt_features_have_coop2(const void *chain);  /* checks only the further features for flexible matrices */
bool vkt_features_have_bfloat(const void *chain); /* checks only the further features for bfloat16 */
/* Returns whether the chain has shaderInt64, which texel variants need for their stores. */
bool vkt_features_have_int64(const void *chain);

/* ---- capabilities.c: what shaders of applications may use ---- */
/* Returns the capabilities that the features of a chain allow, as bits of vkt_capability. */
uint32_t vkt_capabilities_of(const void *chain);
/* Returns the capabilities that these subgroup operations allow, as bits of vkt_capability. */
uint32_t vkt_capabilities_of_subgroups(VkSubgroupFeatureFlags operations);

/* ---- device.c ---- */
/* The extension with which a device says that it lacks parts of Vulkan, as the devices of MoltenVK do. The engine uses
 * none of these parts (docs/platforms.md). Of Vulkan's headers, only vulkan_beta.h defines this name. */
#define VKT_PORTABILITY_SUBSET "VK_KHR_portability_subset"
#define VKT_NO_FAMILY UINT32_MAX
/* Writes why there is no device: the drivers that an environment variable names cannot be loaded, or no driver is
 * installed. */
void vkt_explain_no_device(char out[512]);

/* A device and its description. */
typedef struct vkt_candidate {
    VkPhysicalDevice phys;
    vkt_device_info info;
    VkDriverId driver;                        /* 0: unknown, because the device is below Vulkan 1.3 */
    uint32_t compute_family, transfer_family; /* VKT_NO_FAMILY: none; transfer_family can only transfer */
    bool has_memory_budget, has_coop, has_coop2, has_bfloat, has_host_import; /* extensions that the device has */
    bool is_portable; /* the device has VKT_PORTABILITY_SUBSET, so a context must enable this extension */
    bool has_int64;   /* the device has the feature shaderInt64 */
} vkt_candidate;
/* Lists all devices of ctx->instance, in the loader's order. The caller frees *list (vkt_free); it is NULL if there is
 * no device, and after an error. */
vkt_result vkt_candidates(vkt_ctx *ctx, vkt_candidate **list, uint32_t *count);
/* Chooses the device that `selector` names (NULL or "": $VKT_DEVICE, else the best). VKT_E_NO_DEVICE, VKT_E_FEATURE,
 * VKT_E_NOMEM; logged. */
vkt_result vkt_candidate_choose(vkt_ctx *ctx, const vkt_candidate *list, uint32_t count, const char *selector,
                                const vkt_candidate **out);
/* Fills ctx->limits, device_class, traits, traits_set, info.subgroup_size, subgroup_size_varies and the timestamp
 * fields for ctx->phys and ctx->compute.family. ctx->capabilities, has_coop, has_coop2, has_bfloat and has_int64 must
 * be set. VKT_E_ARG if $VKT_TRAITS is wrong; an error of vkt_file_read if $VKT_TRAITS names a file that cannot be read;
 * VKT_E_NOMEM, or an error of vkt_cores_fill, vkt_coop_sizes or vkt_coop2_steps. All errors are logged. */
vkt_result vkt_limits_fill(vkt_ctx *ctx);

/* ---- cores.c ---- */
/* Sets ctx->limits.cores to the number of cores that an extension of the vendor reports. If no extension reports it, or
 * if $VKT_TRAITS sets the trait `cores`, sets ctx->limits.cores to this trait. ctx->traits must be filled. VKT_E_NOMEM,
 * or an error of the driver; logged. */
vkt_result vkt_cores_fill(vkt_ctx *ctx);

/* ---- traits.c ---- */
vkt_device_class vkt_class_of(uint32_t vendor, VkDriverId driver, VkPhysicalDeviceType type);
/* Fills device_class, traits, traits_set and limits.traits. limits.max_workgroup_lanes must be set. VKT_E_ARG if
 * $VKT_TRAITS is wrong; an error of vkt_file_read if $VKT_TRAITS names a file that cannot be read; VKT_E_NOMEM. All
 * errors are logged. */
vkt_result vkt_traits_fill(vkt_ctx *ctx, uint32_t vendor, VkDriverId driver, VkPhysicalDeviceType type);

/* ---- queue.c ---- */
/* Creates q->timeline and q->fence. (q->fence is not a VkFence. It is a command buffer with a full barrier.) q->handle
 * and q->family must be set. */
vkt_result vkt_queue_create(vkt_ctx *ctx, vkt_queue *q, const char *name);
void vkt_queue_destroy(vkt_ctx *ctx, vkt_queue *q); /* q may be zeroed; does not wait */
/* Submits two command buffers to q: `cmd` (VK_NULL_HANDLE: none), and then the barrier q->fence. The submission waits
 * until the timeline of `wait` has reached `wait_value`. If `wait` is NULL, the submission waits for no other queue. */
vkt_result vkt_queue_submit(vkt_ctx *ctx, vkt_queue *q, VkCommandBuffer cmd, const vkt_queue *wait, uint64_t wait_value,
                            const char *label, uint64_t *value);
vkt_result vkt_queue_wait(vkt_ctx *ctx, vkt_queue *q, uint64_t value);
bool vkt_queue_reached(vkt_ctx *ctx, vkt_queue *q, uint64_t value); /* see vkt_reached */
/* Returns the queue for uploads, fills and readbacks: the transfer queue, or the compute queue if there is no transfer
 * queue. */
vkt_queue *vkt_transfer_queue(vkt_ctx *ctx);
void vkt_upload_finish(vkt_ctx *ctx, const vkt_buffer *dst); /* waits for the last upload or fill of dst */
vkt_result vkt_commands_create_for(vkt_ctx *ctx, uint32_t family, const char *name, vkt_commands *out);

/* ---- memory.c ---- */
vkt_result vkt_memory_create(vkt_ctx *ctx, uint64_t cap_bytes);
void vkt_memory_destroy(vkt_ctx *ctx);
/* The usage of every buffer of the engine. UNIFORM_TEXEL_BUFFER is for kernel/self_test.c, INDIRECT_BUFFER for
 * conditional dispatches. */
#define VKT_BUFFER_USAGE                                                              \
    (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT |  \
     VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | \
     VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
/* Creates a VkBuffer without memory; `next` is the pNext of its VkBufferCreateInfo. *out is VK_NULL_HANDLE after a
 * failure. */
VkResult vkt_handle_create(vkt_ctx *ctx, uint64_t bytes, const void *next, VkBuffer *out);
/* Writes the memory types that fit `kind` to `order`, best first. `allowed` has a bit for each type that may be used.
 * Returns the number of types. */
uint32_t vkt_memory_types(const vkt_ctx *ctx, vkt_memory_kind kind, uint32_t allowed,
                          uint32_t order[VK_MAX_MEMORY_TYPES]);
/* Gives a buffer a range of a block, and returns the block's memory in *memory. Sets buf->block, block_offset and
 * block_bytes, and buf->mapped unless `kind` is VKT_MEMORY_DEVICE. vkt_memory_free returns the range to its block, but
 * does nothing for a buffer without a range. */
vkt_result vkt_memory_allocate(vkt_ctx *ctx, vkt_memory_kind kind, const VkMemoryRequirements *need, vkt_buffer *buf,
                               VkDeviceMemory *memory);
void vkt_memory_free(vkt_ctx *ctx, vkt_buffer *buf);
uint64_t vkt_memory_used(const vkt_ctx *ctx);    /* bytes of all buffers, except those that an application lends */
void vkt_memory_quiet(vkt_ctx *ctx, bool quiet); /* quiet: VKT_E_MEMORY_CAP and VKT_E_DEVICE_MEMORY are not logged,
                                                  * because the caller handles them */
/* vkt_memory_take counts the bytes of a buffer that is in no block: it adds them to the reserved bytes and to the used
 * bytes. vkt_memory_give subtracts them. If the bytes do not fit below the cap, vkt_memory_take returns false: it
 * counts nothing and logs nothing. */
bool vkt_memory_take(vkt_ctx *ctx, vkt_mem_class cls, uint64_t bytes);
void vkt_memory_give(vkt_ctx *ctx, vkt_mem_class cls, uint64_t bytes);

/* ---- shared.c: buffers in host memory that the device imports ---- */
/* Does nothing if ctx->has_host_import is false. Else sets ctx->host_import_align, and clears ctx->has_host_import if
 * the device cannot import memory for our buffers, or if VKT_NO_HOST_IMPORT=1 is set. The functions of the device must
 * be loaded. */
void vkt_import_open(vkt_ctx *ctx);
/* Gives a new buffer host memory and a handle. Returns false if that is not possible; then *buf does not change. A
 * message at VKT_LOG_DEBUG has the reason, if ctx->has_host_import is set. */
bool vkt_import(vkt_ctx *ctx, vkt_buffer *buf);
void vkt_import_free(vkt_ctx *ctx, vkt_buffer *buf); /* call it after buf->handle is destroyed; does nothing for a
                                                      * buffer without imported memory */

/* ---- transfer.c ---- */
/* The largest size of the upload ring, if the application sets no size. If the application sets less than
 * VKT_RING_FIRST, the largest size is VKT_RING_FIRST. */
#define VKT_RING_BYTES (8u << 20)
vkt_result vkt_transfers_create(vkt_ctx *ctx);
void vkt_transfers_destroy(vkt_ctx *ctx); /* the device must have no transfer left to run */
/* Frees the staging rings and their command buffers. The next transfer creates new ones. The device must have no
 * transfer left to run. */
void vkt_transfers_empty(vkt_ctx *ctx);

/* ---- pipeline_cache.c ---- */
vkt_result vkt_pipeline_cache_open(vkt_ctx *ctx, bool keep);
void vkt_pipeline_cache_close(vkt_ctx *ctx); /* destroys the cache. Before that, writes a changed cache to its
                                              * file, unless the device is lost */

#endif
