/* gpu/internal.h - what the files of gpu/ share with each other and with tests/gpu, and with nobody else. */
#ifndef VKT_GPU_INTERNAL_H
#define VKT_GPU_INTERNAL_H

#include "gpu/coop.h"
#include "gpu/gpu.h"

/* vkt_list_devices with another Vulkan below it (NULL: the installed one). */
vkt_result vkt_list_devices_of(const vkt_host *host, const vkt_loader *loader, vkt_device_info *infos,
                               uint32_t capacity, uint32_t *count);

/* ---- instance.c: fills library, vk, instance, messenger and has_debug_utils ----
 * VKT_E_NO_DEVICE (quietly: the caller knows whether that is an error) when no driver is installed. */
vkt_result vkt_instance_open(vkt_ctx *ctx, const vkt_ctx_params *params, const vkt_loader *loader);
void vkt_instance_close(vkt_ctx *ctx);

/* ---- features.c: required features, by number ---- */
uint32_t vkt_feature_count(void);
const char *vkt_feature_name(uint32_t i); /* "feature timelineSemaphore" */
bool vkt_feature_is_on(const void *chain, uint32_t i);

/* What a chain is to hold for cooperative matrices beyond the required features. */
typedef struct vkt_coop_features {
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR coop;
} vkt_coop_features;
/* The required features with those: a chain, in part in *own, for VkDeviceCreateInfo. */
const void *vkt_features_with_coop(vkt_coop_features *own);
bool vkt_features_have_coop(const void *chain);
/* shaderInt64, which texel variants store with. */
bool vkt_features_have_int64(const void *chain);

/* ---- device.c ---- */
#define VKT_NO_FAMILY UINT32_MAX
/* Why there is no device: a variable that hides the drivers, or none is installed. */
void vkt_explain_no_device(char out[512]);

/* A device that could be opened. */
typedef struct vkt_candidate {
    VkPhysicalDevice phys;
    vkt_device_info info;
    VkDriverId driver;                        /* 0: not asked of a device below Vulkan 1.3 */
    uint32_t compute_family, transfer_family; /* VKT_NO_FAMILY: none; transfer: one that can do nothing else */
    bool has_memory_budget, has_coop;         /* extensions */
    bool has_int64;                           /* a feature */
} vkt_candidate;
/* All devices of ctx->instance, in the loader's order; *list is the caller's (vkt_free), NULL where there is none. */
vkt_result vkt_candidates(vkt_ctx *ctx, vkt_candidate **list, uint32_t *count);
/* The one that `wish` names (NULL or "": $VKT_DEVICE, else the best). VKT_E_NO_DEVICE or VKT_E_FEATURE, logged. */
vkt_result vkt_candidate_choose(vkt_ctx *ctx, const vkt_candidate *list, uint32_t count, const char *wish,
                                const vkt_candidate **out);
/* Fills ctx->limits, traits, subgroup_size_varies and the timestamp fields for ctx->phys and its compute family.
 * VKT_E_ARG where $VKT_TRAITS is wrong, VKT_E_NOT_FOUND where it names a file that is not there; logged. */
vkt_result vkt_limits_fill(vkt_ctx *ctx);

/* ---- traits.c ---- */
vkt_device_class vkt_class_of(uint32_t vendor, VkDriverId driver, VkPhysicalDeviceType type);
/* Fills device_class, traits, traits_set and limits.traits; wants limits.max_workgroup_lanes. As vkt_limits_fill. */
vkt_result vkt_traits_fill(vkt_ctx *ctx, uint32_t vendor, VkDriverId driver, VkPhysicalDeviceType type);

/* ---- queue.c ---- */
/* Everything but handle and family, which are set. */
vkt_result vkt_queue_create(vkt_ctx *ctx, vkt_queue *q, const char *name);
void vkt_queue_destroy(vkt_ctx *ctx, vkt_queue *q); /* safe on a zeroed one; does not wait */
/* Submits `cmd` (VK_NULL_HANDLE: nothing but the barrier) to q, after `wait_value` of the timeline of `wait` (NULL: no
 * other queue). */
vkt_result vkt_queue_submit(vkt_ctx *ctx, vkt_queue *q, VkCommandBuffer cmd, const vkt_queue *wait, uint64_t wait_value,
                            const char *label, uint64_t *value);
vkt_result vkt_queue_wait(vkt_ctx *ctx, vkt_queue *q, uint64_t value);
/* The queue of uploads, fills and readbacks: the transfer queue, or the compute queue where there is no other. */
vkt_queue *vkt_transfer_queue(vkt_ctx *ctx);
void vkt_upload_finish(vkt_ctx *ctx, const vkt_buffer *dst); /* waits for the last upload or fill of dst */
vkt_result vkt_commands_create_for(vkt_ctx *ctx, uint32_t family, const char *name, vkt_commands *out);

/* ---- memory.c ---- */
vkt_result vkt_memory_create(vkt_ctx *ctx, uint64_t cap_bytes);
void vkt_memory_destroy(vkt_ctx *ctx);

/* ---- transfer.c ---- */
#define VKT_RING_BYTES (8u << 20)
vkt_result vkt_transfers_create(vkt_ctx *ctx);
void vkt_transfers_destroy(vkt_ctx *ctx); /* the device no longer runs a transfer */

/* ---- pipeline_cache.c ---- */
vkt_result vkt_pipeline_cache_open(vkt_ctx *ctx, bool keep);
void vkt_pipeline_cache_close(vkt_ctx *ctx); /* writes it back if it changed */

#endif
