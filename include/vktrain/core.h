/* vktrain/core.h - result codes, logger, allocator, devices and contexts. Includes no Vulkan header.
 *
 * Conventions of every vktrain header:
 *   - A fallible call returns a vkt_result. On anything but VKT_OK its outputs are zeroed or untouched, as each
 *     comment says, and one message that tells what was wanted and what was found went to the logger.
 *   - A params struct may be zeroed: zero is always the default. It need live only for the call. VKT_ZERO stands for
 *     the number 0 where 0 stands for a default. NULL in place of a struct is the same as zeros; where zeros lack
 *     something that has no default, it is VKT_E_ARG.
 *   - NULL where a handle or an address is wanted is VKT_E_ARG; a function without a status does nothing then, and
 *     returns 0, NULL or the null tensor.
 *   - A destroy function takes the address of a handle, sets it to NULL, and accepts a handle that is NULL already.
 *   - Sizes in bytes end in _bytes, times in nanoseconds in _ns. */
#ifndef VKTRAIN_CORE_H
#define VKTRAIN_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Marks functions that the library exports, and those whose arguments are checked as printf's are. */
#if defined(__GNUC__)
#define VKT_API __attribute__((visibility("default")))
#define VKT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define VKT_API
#define VKT_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Of these headers. While the major one is 0, a minor one may change the API. */
#define VKT_VERSION_MAJOR 0
#define VKT_VERSION_MINOR 1
#define VKT_VERSION_PATCH 0

/* The number 0, or none, in a floating-point member or argument whose 0 is a default: .beta1 = VKT_ZERO has no
 * momentum, .weight_decay = VKT_ZERO makes AdamW decay nothing, .threshold = VKT_ZERO takes any improvement. Members
 * whose default is 0 take it too. Where 0 is not possible (an optimizer's eps), it is refused as 0 would be. Counts
 * have names of their own, as VKT_PATIENCE_NONE. The value is no number that any of them could mean: -2^-126, the same
 * in float and double.
 */
#define VKT_ZERO (-1.1754943508222875e-38f)

/* Every status the library can return, with the sentence that vkt_result_text() gives. */
#define VKT_RESULTS(X)                                                    \
    X(VKT_OK, "success")                                                  \
    X(VKT_E_ARG, "an argument is wrong")                                  \
    X(VKT_E_SHAPE, "tensor shapes do not fit together")                   \
    X(VKT_E_DTYPE, "a tensor has the wrong element type")                 \
    X(VKT_E_NOMEM, "out of host memory")                                  \
    X(VKT_E_DEVICE_MEMORY, "the device is out of memory")                 \
    X(VKT_E_MEMORY_CAP, "the memory cap would be exceeded")               \
    X(VKT_E_NO_LOADER, "no Vulkan loader (libvulkan.so.1) was found")     \
    X(VKT_E_NO_DEVICE, "no usable Vulkan device was found")               \
    X(VKT_E_FEATURE, "the device lacks a required feature")               \
    X(VKT_E_DEVICE_LOST, "the device was lost")                           \
    X(VKT_E_DRIVER, "the Vulkan driver reported an error")                \
    X(VKT_E_IO, "reading or writing a file failed")                       \
    X(VKT_E_FORMAT, "a file is malformed or of another kind")             \
    X(VKT_E_NOT_FOUND, "a named thing does not exist")                    \
    X(VKT_E_STATE, "the call does not fit the object's state")            \
    X(VKT_E_UNSUPPORTED, "not supported on this device or in this build") \
    X(VKT_E_NAN, "a computed value is not a number")                      \
    X(VKT_E_WRONG, "a computed value is not the reference's")             \
    X(VKT_E_DIVERGED, "training diverged: a value is not finite")         \
    X(VKT_E_CHECKPOINT, "a checkpoint could not be written")

/* The result of a call: VKT_OK, or why it did not do what was asked. */
typedef enum vkt_result {
#define VKT_RESULT_ENUM(name, text) name,
    VKT_RESULTS(VKT_RESULT_ENUM)
#undef VKT_RESULT_ENUM
        VKT_RESULT_COUNT /* how many there are */
} vkt_result;

/* "VKT_E_SHAPE" for VKT_E_SHAPE; "VKT_E_?" for a value that is none of the list. Static strings; any thread. */
VKT_API const char *vkt_result_name(vkt_result r);
/* The sentence of the list above. Static strings; any thread. */
VKT_API const char *vkt_result_text(vkt_result r);

/* The level of a line, or the last level that is let through. */
typedef enum vkt_log_level {
    VKT_LOG_DEFAULT = 0, /* as a threshold: VKT_LOG_WARN */
    VKT_LOG_NONE,        /* as a threshold: nothing is logged */
    VKT_LOG_ERROR,       /* a call is about to return something else than VKT_OK */
    VKT_LOG_WARN,        /* it works, but not as asked or not as fast */
    VKT_LOG_INFO,        /* which device, which file */
    VKT_LOG_DEBUG        /* plans, allocations, pipelines */
} vkt_log_level;

/* VKT_DEBUG=N in the environment, when a context or a program is made: each level does what those below it do, in lines
 * of VKT_LOG_DEBUG, which it lets through whatever log_level says.
 *   1  the device, each buffer, the most memory in use; Vulkan objects get names
 *   2  GPU time per kernel when a program is destroyed; a run returns when it is done
 *   3  graph, memory plan, dispatches and barriers of a program
 *   4  values share no memory, and vkt_program_run returns VKT_E_NAN if the run made one: the first op in the order of
 *      the graph that wrote a NaN is named, with value and index */

/* Called with one line without a newline. May be called from worker threads, one call at a time per context. */
typedef void (*vkt_log_fn)(void *user, vkt_log_level level, const char *line);

/* Host memory. `resize` follows realloc: p NULL allocates, bytes 0 frees and returns NULL; blocks are aligned for any
 * object. Any thread may call it. */
typedef struct vkt_allocator {
    void *(*resize)(void *user, void *p, size_t bytes); /* NULL where there is no memory */
    void *user;                                         /* handed to `resize` */
} vkt_allocator;

/* What the library takes from its host application. All zero: malloc, and warnings and errors to stderr. */
typedef struct vkt_host {
    vkt_allocator alloc;     /* resize NULL: the C library's realloc and free */
    vkt_log_fn log;          /* NULL: stderr */
    void *log_user;          /* handed to `log` */
    vkt_log_level log_level; /* lines above this level are dropped */
} vkt_host;

/* Frees a text that the library made and sets it to NULL; NULL already is fine. The text may outlive what made it, but
 * not the allocator. */
VKT_API void vkt_text_release(char **text);

/* ---- files: as the library writes its own ------------------------------------------------------------------------ */

/* Writes a whole file: a reader finds the old one or the new one, never a part, whatever happens meanwhile. Bytes go to
 * a temporary file beside `path` that is flushed and renamed. Permissions are kept; a symbolic link stays, and what it
 * leads to is written. What is there and no regular file (a device, a FIFO, /dev/stdout) is written to and never
 * replaced. VKT_E_IO (the message says which path, and why), VKT_E_NOMEM; VKT_E_ARG for NULL. host may be NULL. Any
 * thread. */
VKT_API vkt_result vkt_write_file(const vkt_host *host, const char *path, const void *bytes, size_t n_bytes);
/* Whether a file could be written to `path` now, before hours are spent on what goes there: VKT_OK, or what
 * vkt_write_file would return. Nothing changes at `path`. */
VKT_API vkt_result vkt_try_output(const vkt_host *host, const char *path);

/* Copies `text` to `out` (`room` bytes with the NUL) so that a terminal only shows it: each byte of a control
 * character, of a mark that changes the direction of writing, and of what is not UTF-8 becomes \xNN. A text that is too
 * long is cut after a whole character. Returns `out`. For names that come from files; the library's own messages are
 * treated so. */
VKT_API char *vkt_printable(const char *text, char *out, size_t room);

/* ---- devices and contexts ---------------------------------------------------------------------------------------- */

/* VkPhysicalDeviceType. Kernels are chosen by whether it is a CPU. */
typedef enum vkt_device_kind {
    VKT_DEVICE_OTHER = 0,  /* none of the below */
    VKT_DEVICE_INTEGRATED, /* a GPU beside the host's cores, mostly in their memory */
    VKT_DEVICE_DISCRETE,   /* a GPU with memory of its own */
    VKT_DEVICE_VIRTUAL,    /* a GPU of a virtual machine */
    VKT_DEVICE_CPU         /* a driver that runs on the host, such as lavapipe */
} vkt_device_kind;

/* A device of this machine, before it is opened. */
typedef struct vkt_device_info {
    uint32_t index;         /* what `--device N` means: position in the loader's list */
    char name[256];         /* as the driver tells it, e.g. "llvmpipe (LLVM 15.0.6, 256 bits)" */
    char driver[320];       /* driver name and its version text, e.g. "llvmpipe Mesa 22.3.6" */
    vkt_device_kind kind;   /* what the order of preference goes by */
    uint32_t api_version;   /* as VK_MAKE_API_VERSION packs it */
    uint64_t memory_bytes;  /* size of the largest device-local heap */
    uint32_t subgroup_size; /* lanes; 0: not asked of a device below Vulkan 1.3 */
    bool usable;            /* it has all that vkt_device_need lists */
    char reason[160];       /* why it is not usable, or why it ranks where it does */
} vkt_device_info;

/* Fills up to `capacity` entries of `infos` and stores the number of devices in *count (which may be larger).
 * Returns VKT_E_NO_LOADER when libvulkan.so.1 is missing (*count = 0). No device at all is VKT_OK with *count = 0. */
VKT_API vkt_result vkt_list_devices(const vkt_host *host, vkt_device_info *infos, uint32_t capacity, uint32_t *count);

/* An open device: its queues, memory, pipelines. What is made from it must be destroyed before it. */
typedef struct vkt_ctx vkt_ctx;

/* Which device, and how it is used. */
typedef struct vkt_ctx_params {
    /* NULL or "": $VKT_DEVICE if set, else the best usable one (discrete, integrated, virtual, CPU; then the order of
     * the loader's list). A number is an index of vkt_list_devices; other text is matched, case-insensitively, as a
     * part of the device's name. A choice that matches nothing is VKT_E_NO_DEVICE: nothing else is taken in its place.
     */
    const char *device;
    uint64_t max_device_bytes; /* hard cap on device memory held by this context; 0: 80 % of what is free at creation */
    /* No submission of a program runs longer than this on the device, as its second run measures it, unless a single
     * kernel does: a watchdog ends what does not end in time. 0: 100 ms; UINT64_MAX, or a device without timestamps:
     * each run is one submission. */
    uint64_t max_submission_ns;
    bool no_pipeline_cache; /* no files in $XDG_CACHE_HOME/vktrain (~/.cache/vktrain): pipelines, tuning */
    bool debug_names; /* name Vulkan objects and label dispatches (needs VK_EXT_debug_utils; also VKT_DEBUG >= 1) */
    bool validation;  /* ask for VK_LAYER_KHRONOS_validation; VKT_E_FEATURE if it is not installed */
} vkt_ctx_params;

/* Opens a device. Returns VKT_OK and sets *out; else VKT_E_NO_LOADER, VKT_E_NO_DEVICE, VKT_E_FEATURE, VKT_E_DRIVER or
 * VKT_E_NOMEM and *out = NULL. params and host may be NULL. Owner: the caller. Threads: calls on one context must not
 * overlap; different contexts do not know each other. Processes: a context is of the process that made it. A child that
 * was forked from it must not use it: what would reach the device is VKT_E_STATE there; what is destroyed there frees
 * host memory and leaves the device alone; a child opens a context of its own. VK_DRIVER_FILES and VK_ICD_FILENAMES in
 * the environment tell the loader which drivers there are; where they hide all, the message of VKT_E_NO_DEVICE names
 * them. */
VKT_API vkt_result vkt_ctx_create(const vkt_ctx_params *params, const vkt_host *host, vkt_ctx **out);
/* vkt_ctx_create, on a CPU with wider vectors where that is known to be faster: for programs whose only thread this is
 * so far. lavapipe runs a subgroup as one vector, of 256 bits unless LP_NATIVE_VECTOR_WIDTH in the environment says
 * otherwise when the driver is loaded. Where the device is lavapipe of Mesa 22.3, the CPU one of AMD's with AVX-512
 * (Intel's are slower with them) and the variable not set, this call sets it to 512, for the rest of the process and
 * for those that it starts; with a small kernel it checks that the wider vectors compute what they should, and where
 * they do not, or the device fails to open so, it takes the variable back, says why in a warning and opens the device
 * as ever. Everywhere else it is vkt_ctx_create, but that subgroups of 16 lanes that the user's own setting gave
 * lavapipe are checked too: VKT_E_WRONG where they are wrong. No other thread may read or change the environment
 * meanwhile. Where another instance of the process holds the driver already, the width stays as it is. */
VKT_API vkt_result vkt_ctx_create_wide(const vkt_ctx_params *params, const vkt_host *host, vkt_ctx **out);
/* Waits for the context's own work, then frees it. Destroy programs, data sets and stores made from it first. */
VKT_API void vkt_ctx_destroy(vkt_ctx **ctx);
/* The chosen device; lives as long as the context. */
VKT_API const vkt_device_info *vkt_ctx_device(const vkt_ctx *ctx);

/* What the chosen device can do, as far as the library makes use of it. */
typedef struct vkt_device_limits {
    uint32_t subgroup_size;        /* lanes of the subgroups that kernels are made with */
    uint32_t max_workgroup_lanes;  /* most lanes of a work group */
    uint32_t max_workgroups;       /* most work groups of a dispatch, along each axis */
    uint64_t shared_bytes;         /* shared memory of a work group */
    uint64_t max_binding_bytes;    /* what a kernel sees of a tensor at once; ops read larger ones window by window */
    uint64_t max_texel_elements;   /* the same of loads through texel buffers; 0: not used, as on all GPUs */
    uint64_t max_allocation_bytes; /* one array, or one block of a program's activations */
    double timestamp_ns;           /* a tick of the device's clock; 0: none, so programs are neither measured nor cut */
    bool transfer_queue;           /* uploads go through a queue of their own, beside computing */
    bool memory_budget;            /* the driver tells what memory is free (VK_EXT_memory_budget) */
    uint32_t matrix[3];            /* M, N, K of the cooperative matrices that are used: f16 that sum in f32; 0: none */
} vkt_device_limits;
VKT_API void vkt_ctx_limits(const vkt_ctx *ctx, vkt_device_limits *out);
/* Whatever a device must have to be usable, one by one: "Vulkan 1.3", "feature timelineSemaphore". NULL behind the last
 * one. Static strings; any thread. */
VKT_API const char *vkt_device_need(uint32_t i);

/* Device memory by what it is for, with the names that vkt_mem_class_name() gives. */
#define VKT_MEM_CLASSES(X)               \
    X(PARAMETERS, "parameters")          \
    X(GRADIENTS, "gradients")            \
    X(MOMENTS, "optimizer moments")      \
    X(ACTIVATIONS, "activations")        \
    X(SCRATCH, "scratch")                \
    X(DATA, "data set")                  \
    X(STAGING, "staging and step state") \
    X(OTHER, "other")

/* The list above as numbers. */
typedef enum vkt_mem_class {
#define VKT_MEM_CLASS_ENUM(name, text) VKT_MEM_##name,
    VKT_MEM_CLASSES(VKT_MEM_CLASS_ENUM)
#undef VKT_MEM_CLASS_ENUM
        VKT_MEM_CLASS_COUNT /* how many there are */
} vkt_mem_class;

/* Device memory of one context. */
typedef struct vkt_memory_stats {
    uint64_t used_bytes[VKT_MEM_CLASS_COUNT]; /* handed out now */
    uint64_t peak_bytes[VKT_MEM_CLASS_COUNT]; /* most ever handed out at once, per class */
    uint64_t used_total_bytes;                /* of all classes, now */
    uint64_t peak_total_bytes;                /* most at once, of all classes together: not the sum of the peaks */
    uint64_t reserved_bytes;                  /* held from the driver: used plus cached blocks; never above cap_bytes */
    uint64_t reserved_peak_bytes;             /* most ever held */
    uint64_t cap_bytes;                       /* see vkt_ctx_params.max_device_bytes */
    uint64_t heap_budget_bytes; /* what the driver says this process may use (VK_EXT_memory_budget); 0: not told */
} vkt_memory_stats;

/* "activations"; "?" for a value that is none of the list. Static strings; any thread. */
VKT_API const char *vkt_mem_class_name(vkt_mem_class c);
/* The host services that the context was made with, resolved: no pointer is NULL. */
VKT_API vkt_host vkt_ctx_host(const vkt_ctx *ctx);
/* Fills *out with the memory that this context has now. */
VKT_API void vkt_ctx_memory(const vkt_ctx *ctx, vkt_memory_stats *out);
/* Gives cached, wholly free memory blocks back to the driver; returns how many bytes. */
VKT_API uint64_t vkt_ctx_trim(vkt_ctx *ctx);
/* What this context's threads have spent so far in waiting for the device. */
typedef struct vkt_wait_stats {
    uint64_t waits;   /* those that had to block */
    uint64_t wall_ns; /* in those */
    uint64_t cpu_ns;  /* of the waiting thread: what the driver did on it meanwhile */
} vkt_wait_stats;
VKT_API void vkt_ctx_waits(const vkt_ctx *ctx, vkt_wait_stats *out);
/* Blocks until all work submitted by this context is done. VKT_E_DEVICE_LOST is sticky. */
VKT_API vkt_result vkt_ctx_wait_idle(vkt_ctx *ctx);
/* Turns a fast path off by name for this context (the same as VKT_NO_<NAME>=1 in the environment at creation), to
 * bisect a fault. Names: "texel" (texel-buffer loads), "transfer_queue", and the variants of ops, which `vkt-bench
 * --list` prints; where a variant is the only one that can do something, it is taken all the same. VKT_E_NOT_FOUND for
 * another name. Call before programs are created. */
VKT_API vkt_result vkt_ctx_disable(vkt_ctx *ctx, const char *feature);

#ifdef __cplusplus
}
#endif
#endif
