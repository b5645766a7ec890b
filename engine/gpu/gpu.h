/* gpu/gpu.h - one open Vulkan device, its memory and its queues. Only gpu/, kernel/, record/ and dist/ use Vulkan
 * names. gpu/ does not depend on tensors or graphs.
 *
 * Threads: as for vkt_ctx (one call at a time per context), unless a function says otherwise. */
#ifndef VKT_GPU_H
#define VKT_GPU_H

#include "base/base.h"
#include "base/limits.h"
#include "gpu/vk_table.h"
#include "vktrain/vulkan.h"

typedef struct vkt_memory vkt_memory;     /* memory blocks, memory cap, statistics (memory.c) */
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
    uint64_t done;      /* the largest value that is known to be reached */
    vkt_commands fence; /* a full barrier. Every submission ends with this command buffer (queue.c) */
} vkt_queue;

/* Counters of calls, and times of waits. With them tests check that a repeated step allocates nothing. vkt_ctx_waits
 * returns `waits`, wait_ns and wait_cpu_ns. */
typedef struct vkt_gpu_counters {
    uint64_t host_allocs;   /* allocations and resizes by the context's host allocator, in any thread */
    uint64_t device_allocs; /* calls of vkAllocateMemory */
    uint64_t buffers_created;
    uint64_t recordings; /* calls of vkBeginCommandBuffer */
    uint64_t submits;
    uint64_t waits; /* calls of vkWaitSemaphores */
    uint64_t wait_ns;
    uint64_t wait_cpu_ns; /* CPU time that the driver uses in the waiting thread during these waits */
} vkt_gpu_counters;

/* An open context. The engine's code outside of gpu/ may read all fields. It writes only these: `kernels`,
 * kernels_destroy, `tuned`, has_read_tuning, logged_no_split, logged_tuning and limits.choices. */
struct vkt_ctx {
    vkt_host host;         /* its allocator is vkt_counting_resize */
    vkt_counting counting; /* counts the allocations, and calls the application's allocator */
    int64_t process;       /* id of the process that created the context */
    vkt_device_info info;
    VkDriverId driver;
    vkt_limits limits;
    vkt_device_class device_class; /* used only to choose the traits, and printed by vkt-info */
    vkt_traits traits;             /* limits.traits points here */
    vkt_traits_set traits_set;     /* the traits that $VKT_TRAITS sets */
    vkt_vk vk;    /* function table of this instance and device; a test may swap an entry to inject a fault */
    void *loader; /* library that vkt_vk_open opened; NULL: the functions come from vkt_loader.get_proc */
    VkInstance instance;
    VkPhysicalDevice phys;
    VkDevice device;
    bool owns_device; /* false: the application owns instance and device; only context.c reads this member */
    const VkAllocationCallbacks *allocation; /* the application's callbacks for all Vulkan objects; NULL: none */
    struct {
        void (*acquire)(
            void *user); /* called before each submission; NULL: no other thread uses the queue at the same time */
        void (*release)(void *user); /* called after each submission */
        void *user;
    } lock;
    VkDebugUtilsMessengerEXT messenger;
    vkt_queue compute;
    vkt_queue transfer; /* equals compute (handle, family and timeline) if there is no transfer queue */
    bool has_transfer_queue;
    bool has_memory_budget;
    bool has_host_import; /* VK_EXT_external_memory_host is enabled, not switched off, and works for our buffers */
    uint64_t host_import_align; /* alignment of address and size of imported memory, in bytes */
    bool has_coop;              /* VK_KHR_cooperative_matrix is enabled, with all features that our shaders need */
    bool has_coop2;             /* VK_NV_cooperative_matrix2 and its features are enabled; false if has_coop is false */
    bool has_bfloat;            /* VK_KHR_shader_bfloat16 and its features are enabled; false if has_coop is false */
    bool has_int64;             /* shaderInt64 is enabled */
    uint32_t capabilities; /* what shaders may use with the enabled features: bits of vkt_capability (base/spirv.h) */
    bool has_debug_utils;
    bool subgroup_size_varies;           /* several subgroup sizes: a pipeline must require the one that it needs */
    uint64_t uploads_awaited;            /* compute submissions wait for this value of the transfer queue's timeline */
    uint64_t max_submission_ns;          /* as in vkt_ctx_params; UINT64_MAX: no limit */
    uint64_t block_bytes, staging_bytes; /* as in vkt_ctx_params */
    float timestamp_period_ns;           /* 0: the queue has no timestamps */
    uint64_t timestamp_mask;             /* valid bits of a timestamp */
    VkPipelineCache pipeline_cache;
    char *pipeline_cache_path;    /* NULL: there is no file */
    uint64_t pipeline_cache_hash; /* hash of the loaded data: the file is written only if the new data differ */
    bool keeps_cache;             /* files in the cache directory may be read and written */
    vkt_tuned *tuned; /* the array limits.choices.tuned (kernel/tuning.h), which the context frees; NULL: none */
    bool has_read_tuning;
    bool lacks_tuning;    /* tuning pays and is allowed (keeps_cache, no VKT_NO_TUNING), but there is no tuning file */
    bool logged_no_split; /* record/program.c has logged that products of VKT_PRECISION_F32_SPLIT are not split */
    bool logged_tuning;   /* record/program.c has logged that a variant or tile of the tuning file is ignored */
    vkt_result lost;      /* VKT_OK, or VKT_E_DEVICE_LOST after a loss of the device */
    char last_label[96];  /* name of the last submission, for the message when the device is lost */
    vkt_memory *memory;
    vkt_transfer *transfers;
    vkt_gpu_counters counters;
    /* Pipelines of kernel/. The context frees them with kernels_destroy. */
    void *kernels;
    void (*kernels_destroy)(vkt_ctx *ctx);
};

/* Creates a context like vkt_ctx_create, with the Vulkan of `loader` (NULL: the installed one). */
vkt_result vkt_ctx_open(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader, vkt_ctx **out);
/* Creates a context like vkt_ctx_open, but first calls `unless` (may be NULL) with the chosen device. If `unless`
 * returns true, no device is created, the instance is destroyed, *out is NULL and the result is VKT_OK. */
typedef bool (*vkt_unless_fn)(const vkt_device_info *info, VkDriverId driver);
vkt_result vkt_ctx_open_unless(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader,
                               vkt_unless_fn unless, vkt_ctx **out);

/* Makes the path "<cache>/vktrain/<device, driver and subgroup size><suffix>". <cache> is the folder of vkt_user_cache
 * (base/system.h). The caller frees *path (vkt_free). *path is NULL if vkt_user_cache finds no folder, and after
 * VKT_E_NOMEM. */
vkt_result vkt_cache_path(vkt_ctx *ctx, const char *suffix, char **path);
#define VKT_TUNING_SUFFIX ".tune" /* suffix of the tuning file (kernel/tuning.h) */
/* Creates each directory above `path`, like mkdir -p. Errors are ignored: writing the file reports them. */
void vkt_cache_make_directories(char *path);

/* Converts a VkResult to a vkt_result. Logs an error as "<what>: <VkResult name>". If the device was lost, sets
 * ctx->lost to VKT_E_DEVICE_LOST; no function clears it. */
vkt_result vkt_vk_check(vkt_ctx *ctx, VkResult r, const char *what);
/* Returns whether this process is a fork of the process that created the context. A fork lacks the driver's threads, so
 * a wait for them would never end. */
bool vkt_is_forked(const vkt_ctx *ctx);
/* Waits until all submitted compute work is done. Call this function before destroying what this work uses. Does not
 * wait in a fork, or after a loss. */
void vkt_settle(vkt_ctx *ctx);
/* Calls the driver's Destroy##kind. Does nothing if there is no handle, or in a fork, because the parent owns the
 * handle. */
#define VKT_DROP(ctx, kind, handle)                                                                               \
    do {                                                                                                          \
        if ((handle) && !vkt_is_forked(ctx)) (ctx)->vk.Destroy##kind((ctx)->device, (handle), (ctx)->allocation); \
    } while (0)
/* Returns VKT_OK, VKT_E_DEVICE_LOST after a loss, or VKT_E_STATE in a forked child. Errors are logged with `what`. */
vkt_result vkt_lost_check(vkt_ctx *ctx, const char *what);

/* ---- buffers -------------------------------------------------------------------------------------------------------
 * A buffer is a VkBuffer in a memory block, or in memory that is imported for this buffer alone. A buffer is usable as
 * storage buffer, texel buffer, indirect buffer, and source and destination of copies. Its size is rounded up to a
 * multiple of VKT_ALIGN_BYTES; its content is undefined at first. A buffer can also be a range of an application's
 * VkBuffer. The application then determines size, content and usage. */
typedef enum vkt_memory_kind {
    VKT_MEMORY_DEVICE = 0, /* device-local */
    VKT_MEMORY_UPLOAD,     /* host-visible, host-coherent; also device-local if the host sees enough device memory */
    VKT_MEMORY_READBACK,   /* host-visible, host-coherent; cached if possible */
    VKT_MEMORY_SHARED      /* memory of the context's allocator; if the device cannot import it, VKT_MEMORY_READBACK */
} vkt_memory_kind;

/* Host memory that the device imports for one buffer. */
typedef struct vkt_imported {
    void *allocation;      /* from the context's allocator; the memory begins at the next aligned address */
    VkDeviceMemory memory; /* the aligned part of the allocation, as memory of the device */
    uint64_t bytes;        /* size of `memory`; the memory statistics count these bytes */
} vkt_imported;

typedef struct vkt_buffer {
    VkBuffer handle;
    uint64_t base_bytes; /* start of the buffer in `handle`; above 0 only for a range of an application's buffer */
    uint64_t bytes;
    VkBufferUsageFlags usage;
    bool lent;    /* the application owns the handle */
    void *mapped; /* host address; NULL for DEVICE and for an application's buffer */
    vkt_mem_class cls;
    uint64_t upload; /* newest upload or fill of this buffer, as a timeline value of vkt_transfer_queue; 0: none */
    uint32_t block;  /* index of its memory block in the list of memory.c */
    uint64_t block_offset, block_bytes;
    vkt_imported imported; /* all 0: no memory is imported for the buffer; private to shared.c */
} vkt_buffer;

/* Creates a buffer. VKT_E_ARG (no bytes, or an unknown class), VKT_E_MEMORY_CAP (the message has cap, used and wanted
 * bytes), VKT_E_DEVICE_MEMORY, VKT_E_NOMEM, or an error of vkt_lost_check or vkt_vk_check. After any error *out is
 * unchanged. */
vkt_result vkt_buffer_create(vkt_ctx *ctx, vkt_memory_kind kind, vkt_mem_class cls, uint64_t bytes, const char *name,
                             vkt_buffer **out);
/* Creates a buffer of VKT_MEMORY_SHARED, for data that the device and the host both read and write. The device imports
 * memory of the context's allocator (VK_EXT_external_memory_host). If that is not possible, creates a buffer of
 * VKT_MEMORY_READBACK. Errors are those of vkt_buffer_create. See vkt_host_barrier for writes of the host after a
 * submission. Destroy the buffer only after the device's last use of it, because its memory goes back to the context's
 * allocator. */
vkt_result vkt_buffer_create_shared(vkt_ctx *ctx, vkt_mem_class cls, uint64_t bytes, const char *name,
                                    vkt_buffer **out);
/* Creates a buffer from a range of an application's buffer. VKT_E_ARG: there is no VkBuffer, the range has no bytes,
 * its start is no multiple of VKT_ALIGN_BYTES, or `usage` has no STORAGE_BUFFER. VKT_E_NOMEM. */
vkt_result vkt_buffer_adopt(vkt_ctx *ctx, const vkt_vk_buffer *at, VkBufferUsageFlags usage, vkt_buffer **out);
/* Destroys a buffer. The caller guarantees that no submission, except uploads and fills, uses the buffer any more. This
 * function waits for uploads and fills, because no caller waits for these. */
void vkt_buffer_destroy(vkt_ctx *ctx, vkt_buffer **buffer);

/* ---- work ---- */
/* Submits `cmd` to the compute queue, after everything submitted before. On the device, `cmd` waits for all uploads so
 * far. *value gets the value for vkt_wait; `value` may be NULL. `label` is the name of the work in messages. A
 * submission sees all memory writes of earlier submissions, so `cmd` needs barriers only for hazards between its own
 * commands. After a wait for a submission, the host sees the writes of this submission. */
vkt_result vkt_submit(vkt_ctx *ctx, VkCommandBuffer cmd, const char *label, uint64_t *value);
/* Checks the semaphores of `sync`, which may be NULL. VKT_E_ARG if `waits` or `signals` has more than VKT_SYNC_MAX
 * semaphores, or a null one. */
vkt_result vkt_check_sync(const vkt_ctx *ctx, const vkt_sync *sync, const char *label);
/* Submits like vkt_submit. The submission also waits for the semaphores sync->waits, and signals sync->signals. `sync`
 * may be NULL. VKT_E_ARG as in vkt_check_sync. `cmd` may be VK_NULL_HANDLE: the submission then has no work. */
vkt_result vkt_submit_synced(vkt_ctx *ctx, VkCommandBuffer cmd, const vkt_sync *sync, const char *label,
                             uint64_t *value);
/* Waits until the compute timeline reaches `value`. VKT_E_ARG if no submission so far signals it. */
vkt_result vkt_wait(vkt_ctx *ctx, uint64_t value);
/* Returns whether the compute timeline has reached `value`; never waits. Also returns true after a loss of the device
 * (ctx->lost has the error), and in a fork. Returns false if the driver reports another error. */
bool vkt_reached(vkt_ctx *ctx, uint64_t value);

vkt_result vkt_commands_create(vkt_ctx *ctx, const char *name, vkt_commands *out);
/* Resets the command buffer and starts recording. `reusable`: the command buffer may be submitted again while it is
 * still pending (SIMULTANEOUS_USE). Without `reusable`, it may be submitted only once. */
vkt_result vkt_commands_begin(vkt_ctx *ctx, vkt_commands *c, bool reusable);
vkt_result vkt_commands_end(vkt_ctx *ctx, vkt_commands *c);
void vkt_commands_destroy(vkt_ctx *ctx, vkt_commands *c);

/* A list of command buffers. Each of them is one submission. A call of vkt_series_submit submits neighbouring elements
 * of the list, in the order of the list. */
typedef struct vkt_series {
    VkCommandPool pool;
    uint32_t n;
    VkCommandBuffer *cmds;
    VkCommandBufferSubmitInfo *buffers; /* 2 n elements: each command buffer, and behind it a full barrier (the command
                                         * buffer vkt_queue.fence) */
    VkSemaphoreSubmitInfo *signals;
    VkSubmitInfo2 *infos;
} vkt_series;
vkt_result vkt_series_create(vkt_ctx *ctx, const char *name, uint32_t n, vkt_series *out);
void vkt_series_destroy(vkt_ctx *ctx, vkt_series *s); /* s may be zeroed; it must not be pending */
/* Starts recording command buffer i. Call this function once for each i. The command buffer may be submitted again
 * while it is still pending. */
vkt_result vkt_series_begin(vkt_ctx *ctx, vkt_series *s, uint32_t i);
vkt_result vkt_series_end(vkt_ctx *ctx, vkt_series *s, uint32_t i);
/* Submits the command buffers with indices `first` to `end` - 1 like vkt_submit_synced. After an error none of them is
 * submitted. The first command buffer waits for sync->waits. The last one signals sync->signals. *value is
 * the value that the last one signals on the compute timeline. */
vkt_result vkt_series_submit(vkt_ctx *ctx, vkt_series *s, uint32_t first, uint32_t end, const vkt_sync *sync,
                             const char *label, uint64_t *value);

/* ---- gates: work that waits for the host ----
 * A submission can wait for a value that the host signals later, when it opens the gate. All later submissions to the
 * compute queue wait too. So does every call that waits for these submissions, for instance vkt_wait, vkt_readback,
 * vkt_settle, the destruction of arrays and of the context, and vkt_upload if the staging ring is full. On lavapipe of
 * Mesa 22.3, vkt_timer_read also waits for all submitted work. The third run of a vkt_program may call
 * vkt_timer_read at the start. So the host must open the gate before any of these calls, also after an error. */
typedef struct vkt_gate {
    VkSemaphore semaphore; /* a timeline semaphore */
    uint64_t value;        /* the newest value that the host has signalled; 0 at first */
} vkt_gate;
vkt_result vkt_gate_create(vkt_ctx *ctx, const char *name, vkt_gate *out);
/* Signals `value`. VKT_E_ARG if `value` is not larger than gate->value. Never waits. */
vkt_result vkt_gate_open(vkt_ctx *ctx, vkt_gate *gate, uint64_t value);
void vkt_gate_destroy(vkt_ctx *ctx, vkt_gate *gate); /* gate may be zeroed; no submission may wait for it any more */
/* Returns an element for vkt_sync.waits: a submission with this element waits until the host signals `value`. */
VkSemaphoreSubmitInfo vkt_gate_wait(const vkt_gate *gate, uint64_t value);
/* Records a barrier for data that the host writes to mapped memory after vkt_submit, but before it opens the gate.
 * Compute shaders and copies after the barrier see these data. A command buffer needs the barrier before it first reads
 * or overwrites such data. For data that the host writes before vkt_submit, no barrier is needed. */
void vkt_host_barrier(vkt_ctx *ctx, VkCommandBuffer cmd);

/* ---- transfers: through the staging ring, on the transfer queue if there is one ---- */
/* Copies `bytes` bytes of host memory to `dst`, from byte `offset` on. `bytes` and `offset` are multiples of 4. `src`
 * is read before the call returns. The copy is ordered after earlier compute submissions and before later ones. The
 * call waits only if the staging ring is full, or all its command buffers are in use. VKT_E_ARG: a wrong range.
 * VKT_E_STATE: an adopted buffer without TRANSFER_DST. */
vkt_result vkt_upload(vkt_ctx *ctx, vkt_buffer *dst, uint64_t offset, const void *src, uint64_t bytes);
/* Uploads like vkt_upload, but the copy is ordered only after the compute submission `after` (0: none). Submissions
 * between `after` and this call must not use the destination. With a transfer queue, the copy can run at the same time
 * as these submissions. */
vkt_result vkt_upload_after(vkt_ctx *ctx, vkt_buffer *dst, uint64_t offset, const void *src, uint64_t bytes,
                            uint64_t after);
/* The smallest size of the ring for uploads, in bytes. For larger uploads, this size is doubled as often as needed, up
 * to vkt_ctx_params.staging_bytes. The smallest buffer for reading back has VKT_RING_FIRST / 2 bytes. */
#define VKT_RING_FIRST (64u << 10)
/* Waits for all submitted work, then copies `bytes` bytes of `src`, from byte `offset` on, to `dst` on the host.
 * `bytes` and `offset` are multiples of 4. VKT_E_ARG: a wrong range. VKT_E_STATE: an adopted buffer without
 * TRANSFER_SRC. */
vkt_result vkt_readback(vkt_ctx *ctx, vkt_buffer *src, uint64_t offset, void *dst, uint64_t bytes);
/* Fills `bytes` bytes of `dst`, from byte `offset` on, with `word`. `bytes` and `offset` are multiples of 4. Like
 * the copy of vkt_upload, the fill is ordered after earlier compute submissions and before later ones. The errors are
 * those of vkt_upload. */
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
/* Creates a timer of `count` timestamps. VKT_E_UNSUPPORTED if the queue has no timestamps. */
vkt_result vkt_timer_create(vkt_ctx *ctx, uint32_t count, vkt_timer *out);
void vkt_timer_destroy(vkt_ctx *ctx, vkt_timer *t);
void vkt_timer_reset(vkt_ctx *ctx, VkCommandBuffer cmd, vkt_timer *t, uint32_t first, uint32_t count);
/* Writes timestamp i after earlier work. With the trait late_timestamps (base/traits.def), a barrier follows the
 * timestamp. */
void vkt_timer_mark(vkt_ctx *ctx, VkCommandBuffer cmd, vkt_timer *t, uint32_t i);
/* Records a copy of timestamps `first` and first + 1 to a buffer of words of 64 bits: timestamp i goes to word i. The
 * host may read the copies when the work is done (vkt_reached). Reading the copies never waits. (vkt_timer_read, on
 * lavapipe of Mesa 22.3, waits for all submitted work.) */
void vkt_timer_copy_pair(vkt_ctx *ctx, VkCommandBuffer cmd, vkt_timer *t, uint32_t first, vkt_buffer *to);
/* Returns the nanoseconds between two copied timestamps. */
uint64_t vkt_timer_between(const vkt_ctx *ctx, uint64_t start, uint64_t end);
/* Reads all timestamps, in nanoseconds since the first one. The work must be done (vkt_wait); else VKT_E_STATE. */
vkt_result vkt_timer_read(vkt_ctx *ctx, vkt_timer *t, uint64_t *ns);

#endif
