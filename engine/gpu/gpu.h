/* gpu/gpu.h - the device floor: one open Vulkan device, its memory, its queues. The only floor, with kernel/ and
 * record/, that says Vk. It knows nothing of tensors or graphs.
 *
 * Threads: as for vkt_ctx (one call at a time per context), unless a function says otherwise. */
#ifndef VKT_GPU_H
#define VKT_GPU_H

#include <sys/types.h>

#include "base/base.h"
#include "base/limits.h"
#include "gpu/vk_table.h"
#include "vktrain/vulkan.h"

typedef struct vkt_memory vkt_memory;     /* blocks, cap, statistics (memory.c) */
typedef struct vkt_transfer vkt_transfer; /* staging rings (transfer.c) */

/* A command pool with one primary command buffer. */
typedef struct vkt_commands {
    VkCommandPool pool;
    VkCommandBuffer cmd;
} vkt_commands;

/* One queue and the timeline semaphore that counts its submissions. */
typedef struct vkt_queue {
    VkQueue handle;
    uint32_t family;
    VkSemaphore timeline;
    uint64_t submitted; /* value that the newest submission signals */
    uint64_t done;      /* newest value known to be reached */
    vkt_commands fence; /* a full barrier, the last command buffer of every submission (queue.c) */
} vkt_queue;

/* Counted so that tests can prove what a steady-state step does not do. */
typedef struct vkt_gpu_counters {
    uint64_t host_allocs;   /* allocations and growing by the context's host allocator; added to from any thread */
    uint64_t device_allocs; /* vkAllocateMemory */
    uint64_t buffers_created;
    uint64_t recordings; /* vkBeginCommandBuffer */
    uint64_t submits;
    uint64_t waits; /* host waits that really had to block */
    uint64_t wait_ns;
    uint64_t wait_cpu_ns; /* CPU time of the waiting thread in them: the driver's */
} vkt_gpu_counters;

/* The fields are open to kernel/ and record/; only gpu/ writes them. */
struct vkt_ctx {
    vkt_host host;            /* counts, then calls host_alloc */
    vkt_allocator host_alloc; /* what the application gave */
    pid_t process;            /* that made it */
    vkt_device_info info;
    VkDriverId driver;
    vkt_limits limits;
    vkt_device_class device_class; /* for people, and for vkt-info; code reads traits */
    vkt_traits traits;             /* what limits.traits lends */
    vkt_traits_set traits_set;     /* those that $VKT_TRAITS set */
    vkt_vk vk;    /* function table of this instance and device; a test may swap an entry to inject a fault */
    void *loader; /* dlopen handle; NULL when the host brought get_proc_addr */
    VkInstance instance;
    VkPhysicalDevice phys;
    VkDevice device;
    bool owns_device;                        /* false: instance and device are the host's; only context.c may ask */
    const VkAllocationCallbacks *allocation; /* the host's, for all objects; NULL: none */
    struct {
        void (*take)(void *user); /* around every submission; NULL: nobody else submits at the same time */
        void (*give)(void *user);
        void *user;
    } lock;
    VkDebugUtilsMessengerEXT messenger;
    vkt_queue compute;
    vkt_queue transfer; /* the same handle, family and timeline as compute where there is no other queue */
    bool has_transfer_queue;
    bool has_memory_budget;
    bool has_coop;  /* VK_KHR_cooperative_matrix and its features are enabled */
    bool has_int64; /* shaderInt64 is enabled */
    bool has_debug_utils;
    bool subgroup_size_varies;  /* pipelines must ask for limits.subgroup_size: the device has more than one */
    uint64_t uploads_awaited;   /* the transfer timeline's value that compute submissions already wait for */
    uint64_t max_submission_ns; /* UINT64_MAX: programs are not cut */
    float timestamp_period_ns;  /* 0: the queue has no timestamps */
    uint64_t timestamp_mask;    /* valid bits of a timestamp */
    VkPipelineCache pipeline_cache;
    char *pipeline_cache_path;    /* NULL: not kept */
    uint64_t pipeline_cache_hash; /* of the data as loaded: written back only when it changed */
    bool keeps_cache;             /* files in the cache directory may be read and written */
    vkt_tuned *tuned;             /* what limits.choices lends (kernel/tuning.h) */
    bool has_read_tuning;
    vkt_result lost;     /* VKT_OK, or VKT_E_DEVICE_LOST for good */
    char last_label[96]; /* the last work submitted: logged when the device is lost */
    vkt_memory *memory;
    vkt_transfer *transfers;
    vkt_gpu_counters counters;
    /* A slot for the kernel floor's pipelines: freed by the context that it hangs on. */
    void *kernels;
    void (*kernels_destroy)(vkt_ctx *ctx);
};

/* vkt_ctx_create with another Vulkan below it (NULL: the installed one). */
vkt_result vkt_ctx_open(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader, vkt_ctx **out);
/* The same, but that `unless` is asked about the device that was chosen: where it says true, nothing is made of it, the
 * instance is gone, and *out is NULL with VKT_OK. */
typedef bool (*vkt_unless_fn)(const vkt_device_info *info, VkDriverId driver);
vkt_result vkt_ctx_open_unless(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader,
                               vkt_unless_fn unless, vkt_ctx **out);

/* "$XDG_CACHE_HOME/vktrain/<device, driver and subgroup size><suffix>" (else ~/.cache/...); *path, the caller's, is
 * NULL where there is no home. */
vkt_result vkt_cache_path(vkt_ctx *ctx, const char *suffix, char **path);
/* Makes every directory above `path`, as mkdir -p does; what cannot be made shows when the file is written. */
void vkt_cache_make_directories(char *path);

/* VkResult -> vkt_result, with a log line "<what>: <VkResult name>". Lost devices become sticky here. */
vkt_result vkt_vk_check(vkt_ctx *ctx, VkResult r, const char *what);
/* Whether this process is a fork of the one that made the context: the driver's threads are not here, and a wait for
 * them would not end. */
bool vkt_is_forked(const vkt_ctx *ctx);
/* Before something is destroyed: waits until the device is done with it. In a fork that is the parent's business. */
void vkt_settle(vkt_ctx *ctx);
/* Calls the driver's Destroy##kind, unless there is nothing to destroy or this is a fork: then it is the parent's. */
#define VKT_DROP(ctx, kind, handle)                                                                               \
    do {                                                                                                          \
        if ((handle) && !vkt_is_forked(ctx)) (ctx)->vk.Destroy##kind((ctx)->device, (handle), (ctx)->allocation); \
    } while (0)
/* VKT_OK, or the sticky VKT_E_DEVICE_LOST, or VKT_E_STATE in a forked child; logged with what was wanted. */
vkt_result vkt_lost_check(vkt_ctx *ctx, const char *what);

/* ---- buffers -------------------------------------------------------------------------------------------------------
 * A buffer is a VkBuffer bound into a memory block: usable as storage buffer, storage texel buffer and both ends of
 * copies. Bytes are rounded up to VKT_ALIGN_BYTES; content is undefined at first. Or it is a range of a host's
 * VkBuffer, for what that was made for. */
typedef enum vkt_memory_place {
    VKT_PLACE_DEVICE = 0, /* device-local */
    VKT_PLACE_UPLOAD,     /* host-visible, host-coherent; device-local too where such memory is plentiful */
    VKT_PLACE_READBACK    /* host-visible, host-coherent, cached where there is such */
} vkt_memory_place;

typedef struct vkt_buffer {
    VkBuffer handle;
    uint64_t base_bytes; /* where it starts in `handle`: 0 but in a host's */
    uint64_t bytes;
    VkBufferUsageFlags usage;
    bool lent;    /* the handle is a host's */
    void *mapped; /* host address for UPLOAD and READBACK, else NULL */
    vkt_mem_class cls;
    uint64_t upload; /* the newest upload or fill into it, on the queue that transfers */
    uint32_t block;  /* private to memory.c */
    uint64_t block_offset, block_bytes;
} vkt_buffer;

/* VKT_E_MEMORY_CAP (the message names cap, used and wanted), VKT_E_DEVICE_MEMORY or VKT_E_NOMEM; *out untouched then.
 */
vkt_result vkt_buffer_create(vkt_ctx *ctx, vkt_memory_place place, vkt_mem_class cls, uint64_t bytes, const char *name,
                             vkt_buffer **out);
/* A range of a host's buffer; VKT_E_ARG unless it starts at a multiple of VKT_ALIGN_BYTES and is a storage buffer. */
vkt_result vkt_buffer_adopt(vkt_ctx *ctx, const vkt_vk_buffer *at, VkBufferUsageFlags usage, vkt_buffer **out);
/* The caller guarantees that no submission uses it any more; uploads and fills, which he never waits for, are waited
 * for here. */
void vkt_buffer_destroy(vkt_ctx *ctx, vkt_buffer **buffer);

/* ---- work ---- */
/* Submits `cmd` to the compute queue after everything submitted before, waiting on the device for all uploads issued so
 * far; *value is what vkt_wait takes. `label` names the work for diagnostics. Between two submissions, and between a
 * submission and the host that waited for it, memory is in order: `cmd` needs barriers only for hazards within itself.
 */
vkt_result vkt_submit(vkt_ctx *ctx, VkCommandBuffer cmd, const char *label, uint64_t *value);
/* The same between a host's semaphores (NULL: none); cmd may be VK_NULL_HANDLE. */
vkt_result vkt_submit_synced(vkt_ctx *ctx, VkCommandBuffer cmd, const vkt_sync *sync, const char *label,
                             uint64_t *value);
/* Blocks until the compute timeline reaches `value`. */
vkt_result vkt_wait(vkt_ctx *ctx, uint64_t value);
/* Whether `value` is reached; never blocks. A lost device counts as reached (the status tells), one that does
 * not answer as not. */
bool vkt_reached(vkt_ctx *ctx, uint64_t value);

vkt_result vkt_commands_create(vkt_ctx *ctx, const char *name, vkt_commands *out);
/* Starts recording; `reusable`: may be submitted again while still pending (SIMULTANEOUS_USE). */
vkt_result vkt_commands_begin(vkt_ctx *ctx, vkt_commands *c, bool reusable);
vkt_result vkt_commands_end(vkt_ctx *ctx, vkt_commands *c);
void vkt_commands_destroy(vkt_ctx *ctx, vkt_commands *c);

/* Command buffers that one call submits one after the other, each as a submission of its own. */
typedef struct vkt_series {
    VkCommandPool pool;
    uint32_t n;
    VkCommandBuffer *cmds;
    VkCommandBufferSubmitInfo *buffers; /* each and the queue's fence */
    VkSemaphoreSubmitInfo *signals;
    VkSubmitInfo2 *infos;
} vkt_series;
vkt_result vkt_series_create(vkt_ctx *ctx, const char *name, uint32_t n, vkt_series *out);
void vkt_series_destroy(vkt_ctx *ctx, vkt_series *s); /* safe on a zeroed one; not while it is pending */
/* Recording of command buffer i, once; it may be submitted again while still pending. */
vkt_result vkt_series_begin(vkt_ctx *ctx, vkt_series *s, uint32_t i);
vkt_result vkt_series_end(vkt_ctx *ctx, vkt_series *s, uint32_t i);
/* vkt_submit_synced for numbers first to end - 1 of them: either all are submitted, or none. *value is the last one's.
 */
vkt_result vkt_series_submit(vkt_ctx *ctx, vkt_series *s, uint32_t first, uint32_t end, const vkt_sync *sync,
                             const char *label, uint64_t *value);

/* ---- transfers: through the staging ring, on the transfer queue where there is one ---- */
/* Copies `bytes` from host memory (read before the call returns) into `dst` at `offset` (multiple of 4, as is bytes).
 * Ordered after earlier compute submissions and before later ones. Blocks only when the staging ring is full. */
vkt_result vkt_upload(vkt_ctx *ctx, vkt_buffer *dst, uint64_t offset, const void *src, uint64_t bytes);
/* vkt_upload that is ordered after the compute submission `after` only, for a destination that nothing submitted later
 * uses: with a transfer queue it overlaps what runs now. */
vkt_result vkt_upload_after(vkt_ctx *ctx, vkt_buffer *dst, uint64_t offset, const void *src, uint64_t bytes,
                            uint64_t after);
/* Waits for all submitted work, then copies from the device to `dst`. */
vkt_result vkt_readback(vkt_ctx *ctx, vkt_buffer *src, uint64_t offset, void *dst, uint64_t bytes);
/* Fills bytes (a multiple of 4) with `word`; ordered like vkt_upload. */
vkt_result vkt_fill(vkt_ctx *ctx, vkt_buffer *dst, uint64_t offset, uint64_t bytes, uint32_t word);

/* ---- names and labels (do nothing without VK_EXT_debug_utils) ---- */
void vkt_name(vkt_ctx *ctx, VkObjectType type, uint64_t handle, const char *name);
void vkt_label_begin(vkt_ctx *ctx, VkCommandBuffer cmd, const char *text);
void vkt_label_end(vkt_ctx *ctx, VkCommandBuffer cmd);

/* ---- timestamps ---- */
typedef struct vkt_timer {
    VkQueryPool pool;
    uint32_t count;
} vkt_timer;
/* VKT_E_UNSUPPORTED where the queue has no timestamps. */
vkt_result vkt_timer_create(vkt_ctx *ctx, uint32_t count, vkt_timer *out);
void vkt_timer_destroy(vkt_ctx *ctx, vkt_timer *t);
void vkt_timer_reset(vkt_ctx *ctx, VkCommandBuffer cmd, vkt_timer *t, uint32_t first, uint32_t count);
void vkt_timer_mark(vkt_ctx *ctx, VkCommandBuffer cmd, vkt_timer *t, uint32_t i); /* when all earlier work is done */
/* Nanoseconds since an arbitrary start; the work must be done (vkt_wait). */
vkt_result vkt_timer_read(vkt_ctx *ctx, vkt_timer *t, uint64_t *ns);

#endif
