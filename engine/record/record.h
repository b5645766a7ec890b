/* record/record.h - the structs of arrays, stores and programs, and functions on them that are not public. */
#ifndef VKT_RECORD_H
#define VKT_RECORD_H

#include "gpu/gpu.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "ops/ops.h"
#include "plan/plan.h"
#include "record/marks.h"

/* The release or the acquire of a transfer of ownership between queue families. */
typedef struct vkt_handover {
    vkt_commands commands;
    uint32_t family; /* the other queue family in the recorded commands */
    uint32_t layout; /* for an image: the application's layout in the recorded commands */
    uint64_t value;  /* timeline value of the last submission of the commands */
} vkt_handover;

struct vkt_array {
    vkt_ctx *ctx;
    vkt_buffer *buffer;
    vkt_handover handover[2]; /* [0] releases the buffer, [1] acquires the buffer; made at the first use */
    vkt_dtype dtype;
    vkt_shape shape;
    uint64_t bytes;
    vkt_array *next; /* the next array in the ring of this array and its copies in other contexts (vkt_array_copy);
                      * NULL: there is no copy */
};

/* array.c: returns the array in `ctx` among `a` and its copies. NULL: there is none in `ctx`. */
vkt_array *vkt_array_in(vkt_array *a, const vkt_ctx *ctx);
/* array.c: continues *hash with the bytes of an array. Waits for all submitted work of its context. VKT_E_STATE: an
 * adopted buffer without TRANSFER_SRC. VKT_E_NOMEM, and errors of the device. */
vkt_result vkt_array_hash(const vkt_array *a, uint64_t *hash);
/* array.c: makes an array of zeros that the device and the host both read and write (vkt_buffer_create_shared). Its
 * memory has the class VKT_MEM_STAGING, and vkt_array_map returns its address. If `name` is NULL, the name is "shared".
 * Errors are those of vkt_array_create. */
vkt_result vkt_array_create_shared(vkt_ctx *ctx, vkt_dtype dtype, vkt_shape shape, const char *name, vkt_array **out);

typedef struct vkt_store_entry {
    char name[VKT_NAME_MAX];
    vkt_shape shape;
    uint64_t offset_bytes, bytes; /* in the arena */
} vkt_store_entry;

struct vkt_store {
    vkt_ctx *ctx;
    vkt_store_entry *entries;
    uint32_t n;
    uint64_t arena_bytes;
    bool updates;            /* the store's graph has an update */
    vkt_optimizer_kind kind; /* the optimizer of this update */
    vkt_clock_rates rates;
    vkt_buffer *part[VKT_ARENAS]; /* index: vkt_store_part; NULL: the store does not have this part */
    vkt_buffer *clock;
};

/* store.c: returns the memory class of a part of a store. */
vkt_mem_class vkt_store_class(vkt_store_part part);
/* store.c: returns whether vkt_store_set_loss_scale accepts `l`. */
bool vkt_loss_scale_fits(const vkt_loss_scale *l);

/* The range of a buffer that one binding or one value uses. */
typedef struct vkt_range {
    const vkt_buffer *buffer;
    uint64_t offset_bytes, bytes;
} vkt_range;

/* Submitted work that may not be done yet. */
typedef struct vkt_pending {
    uint64_t value; /* value of the compute timeline when the work is done */
    uint64_t ns;    /* expected time of the work; 0: nothing is pending */
} vkt_pending;

/* The command buffers of the slices of a run: for each side of the program (vkt_program.sides), one for each slice.
 * vkt_slices has two such sets, which the frames use alternately. Each slice copies the times of its start and its end
 * to `times`, in ticks. */
typedef struct vkt_slice_set {
    vkt_series series[2]; /* by side of the program (vkt_program.sides) */
    vkt_timer timer;
    vkt_buffer *times;    /* READBACK; words of 64 bits: start and end of slice 0, of slice 1, ... */
    uint64_t *values;     /* by slice: timeline value of its last submission; 0 after its times were read */
    uint32_t *count;      /* by slice: number of its submissions in the set's frame. Submissions by calls without
                           * limit belong to no frame, and are not included */
    uint64_t value;       /* the largest of `values` */
    uint64_t frame_value; /* timeline value of the frame's last submission; calls without limit are ignored */
    uint64_t budget_ns;   /* budget of the set's frame */
    uint32_t last;        /* slice that was submitted last */
} vkt_slice_set;

/* slices.c: the slices of a run that vkt_step_budget distributes over frames. Frames use the two sets alternately. So
 * the host can read the times of one frame while the set of the next frame is pending. */
typedef struct vkt_slices {
    uint32_t n;          /* number of slices; 0: there are none yet */
    uint32_t *ends;      /* by slice: the index of its last dispatch + 1 */
    uint64_t *ns;        /* by slice: its expected time, including the gap to the next slice of the frame */
    double *unloaded_ns; /* by slice: its mean time, divided by `load` */
    uint64_t *least_ns;  /* by slice: lower limit of `ns`. It is the time of the slice's conditional dispatches in the
                          * second run */
    uint64_t *kernel_ns; /* by dispatch: its expected time */
    uint64_t grain_ns;   /* limit of a slice's expected time when the slices were made. A slice may exceed the limit
                          * only if it is one kernel */
    double load;         /* time of the slices now, divided by their time when they were made. Other work on the device
                          * makes the load larger than 1 */
    double last_load;    /* the load according to the newest measured frame alone */
    vkt_slice_set set[2];
    vkt_slice_set old[2];     /* sets of replaced slices; they may be pending */
    uint32_t turn;            /* index of this frame's set in `set` */
    uint32_t frames;          /* number of frames since these slices were made */
    uint32_t retry;           /* if there was no memory for new slices: no attempt before `frames` has this value */
    uint64_t measured_frames; /* number of frames whose times the host has read */
    uint64_t measured_ns, measured_budget_ns; /* time and budget of the newest frame whose times were read */
} vkt_slices;

struct vkt_program {
    vkt_ctx *ctx;
    vkt_graph *g;
    vkt_store *store;
    char name[VKT_NAME_MAX];
    vkt_emit lowered;
    vkt_plan plan;
    bool published;     /* the program reads parameters from VKT_PART_PUBLISHED of the store */
    uint32_t most_rows; /* largest number of samples of a run; 0: the graph has no known batch */
    uint32_t again;     /* number of dispatches that vkt_recompute has inserted */
    vkt_plan_options options;

    vkt_buffer **blocks;   /* plan.n_blocks buffers for activations */
    vkt_buffer **inputs;   /* index: value id; NULL if the value is no input */
    uint32_t sides;        /* 2 if some value has two arrays: vkt_binding.array for side 0, .other for side 1; else 1 */
    uint32_t side;         /* side of the run that began last: 1 if its vkt_run.swap is set and `sides` is 2, else 0 */
    vkt_array **arrays[2]; /* arrays[side][value id]; the caller owns the arrays */
    vkt_buffer *consts, *step, *words, *metrics;
    vkt_buffer *own_clock; /* the clock if there is no store; NULL: the store has the clock, or there is no clock */

    VkDescriptorPool pool;
    VkDescriptorSet *sets[2];       /* sets[side][dispatch] */
    const vkt_pipeline **pipelines; /* index: dispatch */
    vkt_pipeline *shaders;          /* pipelines of the application's shaders, n_shaders of them; owned */
    size_t n_shaders;
    VkBufferView *views;
    size_t n_views;
    /* parts.c: a run submits `pieces` as long as there are no parts. Later, a run that is profiled submits `profiled`,
     * a run of vkt_step_budget submits slices, and any other run submits `parts`. */
    vkt_series pieces[2];   /* by side: one command buffer per dispatch, with timestamps; none once parts exist */
    vkt_series parts[2];    /* by side: the command buffers of a step; none while there are pieces */
    vkt_series profiled[2]; /* by side: the parts with timestamps; none if `profile` is false */
    uint32_t *ends;         /* by part or piece: the index of its last dispatch + 1 */
    uint32_t *marks;        /* marks.c: a part ends before each of these dispatches */
    uint32_t n_marks;
    vkt_commands arrival;       /* marks.c: the barrier before a section that waits for the host; made with the marks */
    const vkt_shard_run *shard; /* while a run of a graph of shards is prepared: its numbers (marks.h); else NULL */
    struct {
        const vkt_pipeline *pipeline;
        VkDescriptorPool pool;
        VkDescriptorSet set;
        vkt_series series; /* one command buffer for each slot of the ring of words (abi/step.abi.h); none: the host
                            * writes the values */
    } given;               /* given.c: copies the values of a run from vkt_program_params.run_values */
    uint64_t *ns;          /* ns[i]: GPU time of dispatch i in the second run. NULL: not measured */
    bool profile;
    vkt_timer timer; /* start and end of each dispatch */

    struct {
        int64_t level; /* VKT_DEBUG at the creation of the program */
        uint64_t *ns;  /* for each dispatch, the sum of its GPU times. Behind these sums: the timestamps of one run.
                        * NULL: not measured */
        uint64_t runs; /* number of measured runs */
    } debug;

    /* budget.c: a run that is distributed over several frames. */
    struct {
        vkt_slices slices;
        uint32_t next;           /* next slice of the current run; 0: no run is in progress */
        vkt_pending now, before; /* `now` is work of this frame, `before` is work of earlier frames */
        uint64_t left_ns;        /* rest of the frame's budget, if the last call ended a run; else UINT64_MAX */
        bool goes_on;            /* the last call belonged to the frame of the call before it */
        bool unlimited;          /* the last call had no limit, or went on with the rest of an unlimited budget */
    } budget;
    bool recorded; /* at least one run was recorded into an application's command buffer */

    uint64_t runs;                 /* number of submitted runs */
    uint64_t values[VKT_RUN_RING]; /* timeline value of run r at r % VKT_RUN_RING */
};

/* range.c: returns the range of binding `b` of a lowered dispatch on one side. The size of the range is rounded up to
 * a multiple of 16 bytes, and the descriptor has this size. */
vkt_range vkt_range_of(const vkt_program *p, const vkt_bind *b, uint32_t side);
/* Returns the range of all bytes of a value of the graph, on side 0. `bytes` is rounded up to a multiple of 4. */
vkt_range vkt_range_of_value(const vkt_program *p, vkt_tensor t);
/* commands.c: returns the bindings that a dispatch reads and writes. */
vkt_access vkt_access_of(const vkt_dispatch *d);
/* Returns the name of a dispatch's kernel or shader. */
const char *vkt_dispatch_name(const vkt_dispatch *d);
/* Creates pipelines and descriptor sets. */
vkt_result vkt_bind_all(vkt_program *p);
void vkt_bind_free(vkt_program *p);
/* Records the dispatches `first` .. end - 1 of one side, and the barriers between them. If `timer` is not NULL, records
 * timestamp 2 * i before dispatch i, and timestamp 2 * i + 1 behind it. `all`: conditional dispatches always run. In a
 * submission by vkt_submit or vkt_series_submit, no barrier is necessary before the first dispatch or behind the last
 * one. */
void vkt_record_range(vkt_program *p, VkCommandBuffer cmd, uint32_t side, uint32_t first, uint32_t end,
                      vkt_timer *timer, bool all);
/* parts.c: creates the first command buffers of a program. Its descriptor sets must exist. */
vkt_result vkt_parts_create(vkt_program *p);
void vkt_parts_free(vkt_program *p);
/* Makes the parts anew after the marks have changed, so that a part ends at each mark. If there are still pieces, they
 * do not change: each dispatch is a piece of its own, so a piece ends at each mark already. */
vkt_result vkt_parts_mark(vkt_program *p);
/* Prepares the command buffers for a run. Does nothing if there are parts, or before the third run. For the third run,
 * waits for the second run, reads the time of each dispatch, splits the step and records the parts. */
vkt_result vkt_parts_prepare(vkt_program *p);
/* Returns the pieces or the parts that the newest run submits. */
vkt_series *vkt_parts_now(vkt_program *p);
/* submit.c: a function that submits a run calls vkt_run_begin before the submission, and vkt_run_end behind it.
 * vkt_run_begin calls vkt_run_words and prepares the submission. vkt_run_begin may wait. vkt_run_end counts the run as
 * submitted. vkt_run_words checks the run, and writes its RING_WORDS words to `words`, for a slot of their ring
 * (abi/step.abi.h). */
vkt_result vkt_run_words(const vkt_program *p, const vkt_run *run, uint32_t *words);
vkt_result vkt_run_begin(vkt_program *p, const vkt_run *run);
void vkt_run_end(vkt_program *p, uint64_t value, uint64_t *run_index);
/* Submits the program's commands as its next run. `profiled`: the commands have timestamps. */
vkt_result vkt_run_submit(vkt_program *p, const vkt_run *run, const vkt_sync *sync, bool profiled, uint64_t *run_index);
/* Waits until run r is done. r must be one of the last VKT_RUN_RING runs. */
vkt_result vkt_wait_run(vkt_program *p, uint64_t r);
/* Returns VKT_OK for one of the last VKT_RUN_RING runs, else VKT_E_ARG. */
vkt_result vkt_check_run(const vkt_program *p, uint64_t run_index);
/* Returns VKT_OK; VKT_E_STATE if a run of vkt_step_budget is in progress; or an error of vkt_lost_check. */
vkt_result vkt_check_idle(const vkt_program *p);
/* given.c: prepares the dispatches that copy the learning rate, rows and first row of each run from the array `values`
 * (vkt_program_params.run_values). Does nothing if `values` is NULL. */
vkt_result vkt_given_create(vkt_program *p, const vkt_array *values);
void vkt_given_free(vkt_program *p);
/* Records the copy of a run's values to one slot of the ring of words. */
void vkt_given_record(const vkt_program *p, VkCommandBuffer cmd, uint32_t slot);
/* Submits the copy for the next run. The copy waits for the semaphores of `sync`. *rest gets the semaphores that remain
 * for the run itself. If the program has no such copy, submits nothing, and all semaphores of `sync` remain. */
vkt_result vkt_given_submit(vkt_program *p, const vkt_sync *sync, vkt_sync *rest);
/* slices.c: frees the slices of vkt_step_budget. */
void vkt_slices_free(vkt_program *p);
/* Makes slices for this budget. *next is the index of the old slice that comes next, and becomes the index of the new
 * slice that begins at the same dispatch. Old slices may be pending. They stay in `old` until vkt_slices_turn finds
 * that they are done. */
vkt_result vkt_slices_make(vkt_program *p, uint64_t budget_ns, uint32_t *next);
/* Begins a frame: updates the expected times from the times of the frames that are done, and changes to the other set.
 * May make new slices if the budget or the times have changed much. If there is no memory for new slices, the step
 * keeps its slices. Never waits. If the device has not done the frame before the last one, *ready is false, and no
 * frame begins. */
vkt_result vkt_slices_turn(vkt_program *p, uint64_t budget_ns, uint32_t *next, bool *ready);
/* Stores that slices [first, end) of this frame's set were submitted. `value` is the timeline value of the last of
 * these slices. `unlimited`: a call without limit has submitted them. Such a call belongs to no frame. */
void vkt_slices_submitted(vkt_slices *s, uint32_t first, uint32_t end, uint64_t value, bool unlimited);
/* host.c: checks `family`, the other owner in a transfer of ownership. It must be a queue family of the device,
 * VK_QUEUE_FAMILY_EXTERNAL or VK_QUEUE_FAMILY_FOREIGN_EXT. */
vkt_result vkt_check_other_family(vkt_ctx *ctx, uint32_t family);
/* access.c: returns VKT_OK if an application may read value t of the graph, else VKT_E_ARG. It may read kept values
 * (vkt_keep), and values that are no activations, for instance inputs and parameters. */
vkt_result vkt_check_readable(const vkt_program *p, vkt_tensor t);
/* Reads a value like vkt_program_read, but without any checks. A dispatch must use the value. */
vkt_result vkt_program_fetch(vkt_program *p, vkt_tensor t, void *data);
/* debug.c: these functions are for VKT_DEBUG from level 2 on. vkt_debug_start allocates the times. vkt_debug_run makes
 * a run, waits for its end, and from level 4 on looks for NaN (VKT_E_NAN). vkt_debug_end logs the times. */
vkt_result vkt_debug_start(vkt_program *p);
vkt_result vkt_debug_run(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *run_index);
void vkt_debug_end(vkt_program *p);
/* program.c: makes a program that has only a plan, and nothing on the device. The plan uses no additional memory to
 * save barriers. Of `params`, only precision and recompute have an effect. The graph must not change afterwards. Owner:
 * the caller. */
vkt_result vkt_program_plan_least(vkt_ctx *ctx, vkt_graph *g, const vkt_program_params *params, vkt_program **out);
/* print.c: logs the text of vkt_program_print, line by line, at VKT_LOG_DEBUG. */
void vkt_program_log(const vkt_program *p);

#endif
