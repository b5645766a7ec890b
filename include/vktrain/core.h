/* vktrain/core.h - result codes, logger, allocator, devices and contexts. This header includes no Vulkan header.
 *
 * Conventions of every vktrain header:
 *   - A call that can fail returns a vkt_result. (An op returns a tensor; graph.h says where its errors are kept.)
 *     If the result is not VKT_OK, the logger gets a message that says what was wanted and what was found, and the
 *     outputs are zeroed or untouched. The comment of a function names its exceptions.
 *   - A params struct may be zeroed: a zero member stands for its default. If a member has no default, a zero gives
 *     VKT_E_ARG. The struct is read during the call only. NULL instead of the struct means all zeros. Where a
 *     floating-point 0 stands for a default, VKT_ZERO stands for the number 0.
 *   - If a handle or address that a call needs is NULL, the call returns VKT_E_ARG. A function that returns no
 *     vkt_result then does nothing and returns 0, NULL or the null tensor, unless its comment says otherwise.
 *   - A destroy function takes the address of a handle and sets the handle to NULL. The handle may be NULL already.
 *   - In structs, the name of a size in bytes is `bytes` or ends in _bytes. The name of a time in nanoseconds ends in
 *     _ns. */
#ifndef VKTRAIN_CORE_H
#define VKTRAIN_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* VKT_API marks the functions that the library exports. The build of a DLL defines VKT_BUILDS_DLL. Programs that use
 * the DLL need not define it. VKT_PRINTF marks functions whose arguments the compiler checks like those of printf. */
#if defined(VKT_BUILDS_DLL)
#define VKT_API __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define VKT_API __attribute__((visibility("default")))
#else
#define VKT_API
#endif
#if defined(__GNUC__) && defined(_WIN32) /* "printf" would mean the formats of Microsoft's old C library */
#define VKT_PRINTF(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#elif defined(__GNUC__)
#define VKT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define VKT_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers. While the major version is 0, a minor version may change the API. */
#define VKT_VERSION_MAJOR 0
#define VKT_VERSION_MINOR 1
#define VKT_VERSION_PATCH 0

/* Returns a text with the optional libraries that this build uses and the number of its kernels, for instance "zlib,
 * jpeg, png, jansson, cairo, pcre2, 257 of 257 kernels". The build options VKT_WITH_* select the libraries, and
 * VKT_KERNELS selects the kernels (docs/size.md). A static string; any thread. */
VKT_API const char *vkt_build_text(void);

/* Stands for the number 0 in a floating-point member or argument where 0 means a default. With .beta1 = VKT_ZERO, Adam
 * has no momentum. With .weight_decay = VKT_ZERO, AdamW has no decay. VKT_ZERO also works in members whose default is
 * 0. A member that refuses 0 (an optimizer's eps) refuses VKT_ZERO too. VKT_ZERO does not work in integer
 * members: a patience of 0, for instance, is VKT_PATIENCE_NONE. The value is -2^-126, the same in float and double. No
 * member needs this number itself. */
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
    X(VKT_E_CHECKPOINT, "a checkpoint could not be written")              \
    X(VKT_E_PEER, "another rank failed or does not answer")

/* The result of a call: VKT_OK, or the kind of failure. */
typedef enum vkt_result {
#define VKT_RESULT_ENUM(name, text) name,
    VKT_RESULTS(VKT_RESULT_ENUM)
#undef VKT_RESULT_ENUM
        VKT_RESULT_COUNT /* number of results */
} vkt_result;

/* Returns the name of a result, for instance "VKT_E_SHAPE"; "VKT_E_?" for a value that is not in the list. Static
 * strings; any thread. */
VKT_API const char *vkt_result_name(vkt_result r);
/* Returns the sentence of the list above; "unknown status" for a value that is not in the list. Static strings; any
 * thread. */
VKT_API const char *vkt_result_text(vkt_result r);

/* The level of a line of the log. As a threshold it is the highest level that is logged. */
typedef enum vkt_log_level {
    VKT_LOG_DEFAULT = 0, /* as a threshold: VKT_LOG_WARN */
    VKT_LOG_NONE,        /* as a threshold: nothing is logged */
    VKT_LOG_ERROR,       /* something failed; in most cases a call is about to return a result that is not VKT_OK */
    VKT_LOG_WARN,        /* the call works, but not as asked or not as fast as it could */
    VKT_LOG_INFO,        /* what the library chose or does, for instance the device that it uses */
    VKT_LOG_DEBUG        /* memory plans, allocations, pipelines */
} vkt_log_level;

/* VKT_DEBUG=N in the environment has the effects of all numbers up to N in this list. Each object, for instance a
 * context or a program, reads the variable when it is made. If N is 1 or more, log lines of every vkt_log_level are
 * logged, whatever vkt_host.log_level says.
 *   1  logs the device, each buffer and the most memory in use; Vulkan objects get names
 *   2  logs the GPU time per kernel when a program is destroyed; vkt_program_run returns when the run is done
 *   3  logs graph, memory plan, dispatches and barriers of a program
 *   4  values share no memory. If a run makes a NaN, vkt_program_run returns VKT_E_NAN. The message names the first
 *      node, in the order of the graph, that wrote a NaN; the value that it wrote; and the NaN's index in this value. A
 *      trainer's runs of shards without rows are not checked */

/* Gets one line of the log, without a newline. The library's own threads may call this function, too. Calls for one
 * context do not overlap; calls for different contexts may overlap. */
typedef void (*vkt_log_fn)(void *user, vkt_log_level level, const char *line);

/* The allocator of host memory. `resize` works as realloc does. If p is NULL, `resize` allocates. If bytes is 0,
 * `resize` frees p and returns NULL. All memory from `resize` must be aligned for any object. Any thread of the library
 * may call `resize`. */
typedef struct vkt_allocator {
    void *(*resize)(void *user, void *p, size_t bytes); /* returns NULL if there is no memory */
    void *user;                                         /* passed to `resize` */
} vkt_allocator;

/* The services of the host application. If all members are zero, or NULL replaces the struct, the library uses realloc
 * and free, and writes warnings and errors to stderr. Every function copies the struct. What `user` and `log_user`
 * point to must outlive all objects that are made with the struct. */
typedef struct vkt_host {
    vkt_allocator alloc;     /* resize NULL: the C library's realloc and free */
    vkt_log_fn log;          /* NULL: stderr */
    void *log_user;          /* passed to `log` */
    vkt_log_level log_level; /* lines above this level are dropped; 0: VKT_LOG_WARN */
} vkt_host;

/* Frees a text that the library made and sets *text to NULL; *text may be NULL already. The text may outlive the object
 * that made it, and the context, but not the allocator of vkt_host. */
VKT_API void vkt_text_release(char **text);

/* ---- writing files ----------------------------------------------------------------------------------------------- */

/* Writes a whole file. A reader finds the old file or the new file, never a part of the new file: the function writes a
 * temporary file in the same folder, flushes it, and then renames it. Except on Windows, the new file gets the
 * permissions of the old file. If `path` is a symbolic link, the target of the link is replaced, and the link stays. A
 * device, a FIFO and /dev/stdout are written to and never replaced. VKT_E_IO (the message has the path and the reason),
 * VKT_E_NOMEM; VKT_E_ARG: `path` is NULL, or `bytes` is NULL and n_bytes is not 0. host may be NULL. Any thread. */
VKT_API vkt_result vkt_write_file(const vkt_host *host, const char *path, const void *bytes, size_t n_bytes);
/* Checks whether vkt_write_file could begin to write to `path` now. Call this function before a long computation.
 * vkt_try_output returns VKT_OK or the error that vkt_write_file would return. It does not detect a full disk, and
 * changes nothing at `path`. */
VKT_API vkt_result vkt_try_output(const vkt_host *host, const char *path);

/* Copies `text` to `out` (`room` bytes with the NUL), and makes the copy safe to print on a terminal. These bytes
 * become \xNN: control characters, line separators, marks that change the direction of writing, and bytes that are not
 * UTF-8. A text that is too long is cut after a whole character. Returns `out`. Use this function for names that come
 * from files; the library does so in its own messages. */
VKT_API char *vkt_printable(const char *text, char *out, size_t room);

/* ---- devices and contexts ---------------------------------------------------------------------------------------- */

/* The kind of a device, as VkPhysicalDeviceType says. */
typedef enum vkt_device_kind {
    VKT_DEVICE_OTHER = 0,  /* none of the kinds below */
    VKT_DEVICE_INTEGRATED, /* a GPU that in most cases shares chip and memory with the host's cores */
    VKT_DEVICE_DISCRETE,   /* a GPU with memory of its own */
    VKT_DEVICE_VIRTUAL,    /* a GPU of a virtual machine */
    VKT_DEVICE_CPU         /* a driver that runs on the host, such as lavapipe */
} vkt_device_kind;

/* The description of a device of this machine. */
typedef struct vkt_device_info {
    uint32_t index;         /* index in the loader's list. Programs of vktrain get it as `--device N` */
    char name[256];         /* as the driver reports it, e.g. "llvmpipe (LLVM 15.0.6, 256 bits)" */
    char driver[320];       /* driver name and its version text, e.g. "llvmpipe Mesa 22.3.6"; "" below Vulkan 1.3 */
    vkt_device_kind kind;   /* decides the order of preference: see vkt_ctx_params.device */
    uint32_t api_version;   /* as VK_MAKE_API_VERSION packs it */
    uint64_t memory_bytes;  /* size of the largest device-local heap */
    uint32_t subgroup_size; /* number of lanes; 0: not known, because a device below Vulkan 1.3 is not asked */
    bool usable;            /* the device has everything that vkt_device_need lists */
    char reason[160];       /* what the device lacks. For a usable device: when it is chosen, e.g. "discrete GPU: chosen
                             * first" */
} vkt_device_info;

/* Fills up to `capacity` entries of `infos` and stores the number of devices in *count (which may be larger than
 * `capacity`). If there is no device, returns VKT_OK with *count = 0. VKT_E_NO_LOADER: there is no Vulkan loader.
 * VKT_E_FEATURE: the loader is older than Vulkan 1.3. VKT_E_DRIVER, VKT_E_NOMEM. *count = 0 after these errors. `host`
 * may be NULL; `infos` may be NULL if `capacity` is 0. */
VKT_API vkt_result vkt_list_devices(const vkt_host *host, vkt_device_info *infos, uint32_t capacity, uint32_t *count);

/* An open device: its queues, memory, pipelines. Before a context is destroyed, destroy all objects made from it. */
typedef struct vkt_ctx vkt_ctx;

/* The choice of a device, and how it is used. */
typedef struct vkt_ctx_params {
    /* Which device to open. A number is an index of vkt_list_devices. Any other text is a part of the device's name, in
     * small letters or capitals. If this member is NULL or "", the text of $VKT_DEVICE is used. If this variable is
     * empty or not set, every device matches. Of the usable devices that match, the best one is opened. GPUs are best
     * (discrete, then integrated, then virtual), then CPUs, then other devices. Of devices of one kind, the first one
     * in the loader's list is best. VKT_E_NO_DEVICE: no device matches. VKT_E_FEATURE: no device that matches is
     * usable. */
    const char *device;
    uint64_t max_device_bytes; /* hard cap on the device memory of this context; 0 means 80 % of the memory that is free
                                * in the largest device-local heap at creation, or 80 % of the size of this heap if
                                * the driver does not report free memory */
    /* The longest time that a submission of a program may take on the device. The limit exists because the system's
     * watchdog may end a longer submission. A program is split into submissions by the times of its kernels in its
     * second run. A kernel that takes longer than the limit is a submission of its own. 0 means 100 ms. UINT64_MAX
     * means no limit. On a device without timestamps there is no limit either. */
    uint64_t max_submission_ns;
    /* The largest size of a block of memory that buffers share. If a buffer fits into no block, the context allocates
     * a new block. The new block is as large as all existing blocks of its memory type together, but at most
     * block_bytes, at most a sixteenth of the heap, and at least 1 MiB. If the buffer is larger than half of this
     * size, or if there is no memory for a block of this size, the new block has the size of the buffer instead. A
     * block_bytes of 0 means 64 MiB for device-local memory, and 16 MiB for other memory. */
    uint64_t block_bytes;
    /* The largest size of the ring through which data are uploaded. 0 means 8 MiB. Other sizes are rounded down to a
     * multiple of 64 KiB, but not below 64 KiB. The ring for reading back has at most half of this size. Each ring is
     * made at its first transfer. If there is memory, the upload ring grows to at least four times the largest upload,
     * and the ring for reading back grows to at least twice the largest readback. Neither ring exceeds its largest
     * size. */
    uint64_t staging_bytes;
    /* Neither read nor write the files of compiled pipelines and of tuning. These files are in $XDG_CACHE_HOME/vktrain,
     * or in ~/.cache/vktrain if XDG_CACHE_HOME is not an absolute path. On Windows they are in the folder vktrain of
     * $LOCALAPPDATA. */
    bool no_pipeline_cache;
    bool debug_names; /* name Vulkan objects and label dispatches, as VKT_DEBUG=1 does; needs VK_EXT_debug_utils */
    bool validation;  /* enable the layer VK_LAYER_KHRONOS_validation; VKT_E_FEATURE if the layer is not installed */
} vkt_ctx_params;

/* Opens a device. Returns VKT_OK and sets *out; else returns VKT_E_NO_LOADER, VKT_E_NO_DEVICE, VKT_E_FEATURE,
 * VKT_E_DRIVER, VKT_E_NOMEM or VKT_E_DEVICE_MEMORY, and *out = NULL. If VKT_TRAITS in the environment is wrong
 * (docs/kernels.md), the result is VKT_E_ARG, or the error of reading the file that VKT_TRAITS names. params and host
 * may be NULL. Owner: the caller.
 *
 * Threads: calls on one context must not overlap; different contexts are independent. Processes: only the process that
 * made a context may use it. In a forked child, calls that would reach the device return VKT_E_STATE. In such a child,
 * a destroy function only frees host memory. The child may open a context of its own.
 *
 * The environment variables VK_DRIVER_FILES and VK_ICD_FILENAMES give the loader its list of drivers. If one of these
 * variables is set and there is no device, the message of VKT_E_NO_DEVICE names the variable. */
VKT_API vkt_result vkt_ctx_create(const vkt_ctx_params *params, const vkt_host *host, vkt_ctx **out);
/* Opens a device as vkt_ctx_create does. If the device is lavapipe, and wider vectors are known to be faster on this
 * CPU, opens it with wider vectors. Call this function while the program has only one thread: no other thread may read
 * or change the environment during the call.
 *
 * lavapipe runs a subgroup as one vector. On x86 CPUs with AVX, a vector has 256 bits unless LP_NATIVE_VECTOR_WIDTH in
 * the environment says otherwise when the driver is loaded. This call sets the variable to 512 under three conditions:
 * the device is lavapipe of Mesa 22.3; the CPU is from AMD and has AVX-512 (wide vectors are slower on Intel's CPUs);
 * the variable is not set. A small kernel then checks that the wider vectors compute correctly. If they do, the
 * variable stays set for the rest of the process and for the processes that it starts. If they do not, or if the device
 * cannot be opened with wider vectors, the call removes the variable, logs a warning with the reason and opens the
 * device as vkt_ctx_create does. If VKT_TRAITS in the environment is wrong, the call returns the error that
 * vkt_ctx_create returns for VKT_TRAITS. Before that, the call removes LP_NATIVE_VECTOR_WIDTH if the call has set it.
 *
 * If the user has set the variable, and lavapipe has subgroups of 16 lanes, the call checks the wider vectors, too. If
 * another Vulkan instance of the process has loaded the driver already, the width stays as it is. VKT_E_WRONG: the
 * device has subgroups of 16 lanes that cannot be used, and this call cannot change the width. */
VKT_API vkt_result vkt_ctx_create_wide(const vkt_ctx_params *params, const vkt_host *host, vkt_ctx **out);
/* Waits for the context's own work, then frees the context. All objects made from the context must be destroyed before
 * this call. */
VKT_API void vkt_ctx_destroy(vkt_ctx **ctx);
/* Returns the chosen device. The description is valid as long as the context. */
VKT_API const vkt_device_info *vkt_ctx_device(const vkt_ctx *ctx);

/* The capabilities of the chosen device that the library uses. */
typedef struct vkt_device_limits {
    uint32_t cores;                /* as the vendor counts them (multiprocessors, compute units, shader cores). If the
                                    * driver does not report the number: for a CPU, the number of the machine's CPUs;
                                    * for a GPU, a number that is usual for the vendor's devices */
    uint32_t subgroup_size;        /* number of lanes of a subgroup, in kernels that do not require another number */
    uint32_t max_workgroup_lanes;  /* largest number of lanes of a work group */
    uint32_t max_workgroups;       /* largest number of work groups of a dispatch along an axis */
    uint64_t shared_bytes;         /* largest size of the shared memory of a work group */
    uint64_t max_binding_bytes;    /* size of the largest range of a tensor that one binding covers; nearly all ops
                                    * split larger tensors into several ranges */
    uint64_t max_texel_elements;   /* largest size of a texel buffer, in elements; 0: kernels use no texel buffers,
                                    * as on GPUs */
    uint64_t max_allocation_bytes; /* size of the largest buffer, for instance an array or a buffer of activations */
    double timestamp_ns;           /* duration of one tick of a timestamp; 0: the device has no timestamps, so programs
                                    * are not measured, and not split into submissions by their measured time */
    bool transfer_queue;           /* uploads and readbacks use another queue than the kernels */
    bool memory_budget;            /* the driver reports free memory (VK_EXT_memory_budget) */
    bool host_import;              /* buffers that device and host share are in the host's memory
                                    * (VK_EXT_external_memory_host) */
    bool lacks_tuning;       /* the kernels were not measured on this GPU yet: vkt-bench --tune all measures them */
    uint32_t matrix[3];      /* M, N, K of the cooperative matrices in use, with f16 operands and f32 sums; 0: none */
    uint32_t matrix_bf16[3]; /* M, N, K of the cooperative matrices in use, with bf16 operands and f32 sums; 0: none */
} vkt_device_limits;
VKT_API void vkt_ctx_limits(const vkt_ctx *ctx, vkt_device_limits *out);
/* Returns what a usable device must have: requirement i, counted from 0, for instance "Vulkan 1.3" or "feature
 * timelineSemaphore". Returns NULL after the last requirement. Static strings; any thread. */
VKT_API const char *vkt_device_need(uint32_t i);

/* The classes of device memory by purpose, with the names that vkt_mem_class_name() gives. */
#define VKT_MEM_CLASSES(X)               \
    X(PARAMETERS, "parameters")          \
    X(GRADIENTS, "gradients")            \
    X(MOMENTS, "optimizer moments")      \
    X(ACTIVATIONS, "activations")        \
    X(SCRATCH, "scratch")                \
    X(DATA, "data set")                  \
    X(STAGING, "staging and step state") \
    X(OTHER, "other")

/* The classes of VKT_MEM_CLASSES as numbers. */
typedef enum vkt_mem_class {
#define VKT_MEM_CLASS_ENUM(name, text) VKT_MEM_##name,
    VKT_MEM_CLASSES(VKT_MEM_CLASS_ENUM)
#undef VKT_MEM_CLASS_ENUM
        VKT_MEM_CLASS_COUNT /* number of classes */
} vkt_mem_class;

/* Device memory of one context. */
typedef struct vkt_memory_stats {
    uint64_t used_bytes[VKT_MEM_CLASS_COUNT]; /* in use now */
    uint64_t peak_bytes[VKT_MEM_CLASS_COUNT]; /* the largest used_bytes so far, per class */
    uint64_t used_total_bytes;                /* in use now, all classes */
    uint64_t peak_total_bytes;                /* the largest used_total_bytes so far: not the sum of peak_bytes */
    uint64_t reserved_bytes;                  /* bytes of all allocated blocks, used or not, and of imported host
                                               * memory; never above cap_bytes */
    uint64_t reserved_peak_bytes;             /* the largest reserved_bytes so far */
    uint64_t cap_bytes;                       /* see vkt_ctx_params.max_device_bytes */
    uint64_t heap_budget_bytes; /* what this process may use of the largest device-local heap, as the driver says
                                 * (VK_EXT_memory_budget); 0: not known */
} vkt_memory_stats;

/* Returns the name of a class, for example "activations"; "?" for a value that is not in the list. Static strings; any
 * thread. */
VKT_API const char *vkt_mem_class_name(vkt_mem_class c);
/* Returns the host services of the context, with the defaults filled in: no function is NULL. These services are valid
 * as long as the context. Objects that are made with these services must be destroyed before the context. If ctx is
 * NULL, returns the services of a zeroed vkt_host. */
VKT_API vkt_host vkt_ctx_host(const vkt_ctx *ctx);
/* Fills *out with the memory of this context, now and at its peaks. */
VKT_API void vkt_ctx_memory(const vkt_ctx *ctx, vkt_memory_stats *out);
/* Frees the memory blocks that no buffer uses. Returns the sum of their sizes in bytes. */
VKT_API uint64_t vkt_ctx_trim(vkt_ctx *ctx);
/* The time that calls on a context have waited for the device so far. */
typedef struct vkt_wait_stats {
    uint64_t waits;   /* number of waits for work that was not done yet */
    uint64_t wall_ns; /* wall time of these waits */
    uint64_t cpu_ns;  /* CPU time of the waiting threads during these waits: work of the driver */
} vkt_wait_stats;
VKT_API void vkt_ctx_waits(const vkt_ctx *ctx, vkt_wait_stats *out);
/* Blocks until all work submitted by this context is done. After VKT_E_DEVICE_LOST, every later call that needs the
 * device returns VKT_E_DEVICE_LOST, too. */
VKT_API vkt_result vkt_ctx_wait_idle(vkt_ctx *ctx);
/* Switches off a fast path by name for this context, to bisect a fault. VKT_NO_<NAME>=1 in the environment, when the
 * context is created, has the same effect. Names: "texel" (texel-buffer loads), "transfer_queue", "host_import" (memory
 * of the host that the device uses), and the variants of ops, which `vkt-bench --list` prints. If a variant is the only
 * one that can do some work, it is still used for this work. VKT_E_NOT_FOUND: there is no such name. Call this function
 * before programs are created. */
VKT_API vkt_result vkt_ctx_disable(vkt_ctx *ctx, const char *feature);

#ifdef __cplusplus
}
#endif
#endif
