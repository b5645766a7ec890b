/* record/record.h - inside of the record floor: arrays, stores and programs as they are. */
#ifndef VKT_RECORD_H
#define VKT_RECORD_H

#include "gpu/gpu.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "ops/ops.h"
#include "plan/plan.h"

/* One half of a transfer of ownership between queue families. */
typedef struct vkt_handover {
    vkt_commands commands;
    uint32_t family; /* the other one, as recorded */
    uint64_t value;  /* of its last submission */
} vkt_handover;

struct vkt_array {
    vkt_ctx *ctx;
    vkt_buffer *buffer;
    vkt_handover handover[2]; /* release and acquire of a host's buffer; made when asked for */
    vkt_dtype dtype;
    vkt_shape shape;
    uint64_t bytes;
};

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
    vkt_clock_rates rates;
    vkt_buffer *part[VKT_ARENAS]; /* by vkt_store_part; NULL: not there */
    vkt_buffer *clock;
};

/* Where the bytes of one binding are. */
typedef struct vkt_range {
    const vkt_buffer *buffer;
    uint64_t offset_bytes, bytes;
} vkt_range;

/* Submitted work that was not seen to be done. */
typedef struct vkt_pending {
    uint64_t value; /* that the compute timeline reaches with it */
    uint64_t ns;    /* what it is expected to take */
} vkt_pending;

struct vkt_program {
    vkt_ctx *ctx;
    vkt_graph *g;
    vkt_store *store;
    char name[VKT_NAME_MAX];
    vkt_emit lowered;
    vkt_plan plan;
    bool published;     /* parameters are read from that part of the store */
    uint32_t most_rows; /* that a run may have; 0: the graph tells of no batch */
    uint32_t again;     /* dispatches that run again instead of keeping what they made */
    vkt_plan_options options;

    vkt_buffer **blocks; /* plan.n_blocks of them */
    vkt_buffer **inputs; /* by value id; NULL where the value is no input */
    vkt_array **arrays;  /* by value id; owned by the caller */
    vkt_buffer *consts, *step, *words, *metrics;
    vkt_buffer *own_clock; /* for a graph without a store */

    VkDescriptorPool pool;
    VkDescriptorSet *sets;          /* by dispatch */
    const vkt_pipeline **pipelines; /* by dispatch */
    VkBufferView *views;
    size_t n_views;
    /* parts.c: a run is the submissions of `parts`, or of `pieces` as long as that has none. */
    vkt_series pieces;   /* one for every dispatch, with timestamps, to measure; none once the parts are there */
    vkt_series parts;    /* for good */
    vkt_series profiled; /* the parts with timestamps, if asked for */
    uint32_t *ends;      /* by part: number of its last dispatch + 1 */
    uint64_t *ns;        /* by dispatch, as the second run measured it; NULL: not yet, or never */
    bool profile;
    vkt_timer timer; /* start and end of every dispatch */

    struct {
        int64_t level; /* VKT_DEBUG when the program was made */
        uint64_t *ns;  /* GPU time so far by dispatch, then the marks of one run; NULL: not measured */
        uint64_t runs; /* measured */
    } debug;

    /* budget.c: the parts of a run that frames share out. */
    struct {
        vkt_series slices;
        uint32_t *ends;
        uint64_t *ns;            /* what each takes, as last measured */
        vkt_timer timer;         /* start and end of each */
        uint64_t grain_ns;       /* no slice takes longer, unless one kernel does */
        uint32_t next;           /* slice of the run under way; 0: none is */
        vkt_pending now, before; /* what this frame submitted, and earlier ones */
        bool has_times;          /* a run by slices was completed since times were taken over */
        uint64_t left_ns;        /* of the frame's budget, where the last call ended with a run; else UINT64_MAX */
    } budget;
    bool recorded; /* into a host's command buffer, at least once */

    uint64_t runs;                 /* submitted so far */
    uint64_t values[VKT_RUN_RING]; /* timeline value of run r at r % VKT_RUN_RING */
};

/* range.c: the range that binding `b` of a lowered dispatch stands for, as bound: rounded up to 16 bytes. */
vkt_range vkt_range_of(const vkt_program *p, const vkt_bind *b);
/* All bytes of a value of the graph, rounded up to 4. */
vkt_range vkt_range_of_value(const vkt_program *p, vkt_tensor t);
/* commands.c: pipelines and descriptor sets. */
vkt_result vkt_bind_all(vkt_program *p);
void vkt_bind_free(vkt_program *p);
/* Records dispatches first to end - 1, with the barriers between them and, if asked for, marks 2 i and 2 i + 1 around
 * dispatch i. Order with what is submitted before and after, with transfers and with the host is vkt_submit's. */
void vkt_record_range(vkt_program *p, VkCommandBuffer cmd, uint32_t first, uint32_t end, vkt_timer *timer);
/* parts.c: the first command buffers of a program whose sets are there. */
vkt_result vkt_parts_create(vkt_program *p);
void vkt_parts_free(vkt_program *p);
/* Before a run: cuts and records the parts as soon as it is known how long each dispatch takes. */
vkt_result vkt_parts_prepare(vkt_program *p);
/* Records dispatches as a series of n command buffers, number i up to ends[i]. */
vkt_result vkt_parts_record(vkt_program *p, const uint32_t *ends, uint32_t n, vkt_timer *timer, vkt_series *out);
/* submit.c: a run, whoever submits it: the words of its slot (RING_WORDS); everything before the submission, which may
 * wait; and after it. */
vkt_result vkt_run_words(const vkt_program *p, const vkt_run *run, uint32_t *words);
vkt_result vkt_run_begin(vkt_program *p, const vkt_run *run);
void vkt_run_end(vkt_program *p, uint64_t value, uint64_t *run_index);
/* Submits the program's commands, or those with timestamps, as its next run. */
vkt_result vkt_run_submit(vkt_program *p, const vkt_run *run, const vkt_sync *sync, bool profiled, uint64_t *run_index);
/* Waits until run r is done. Returns at once where it is older than the last VKT_RUN_RING runs. */
vkt_result vkt_wait_run(vkt_program *p, uint64_t r);
/* VKT_OK for one of the last VKT_RUN_RING runs. */
vkt_result vkt_check_run(const vkt_program *p, uint64_t run_index);
/* VKT_OK unless the device is lost or a run that vkt_step_budget began is not complete. */
vkt_result vkt_check_idle(const vkt_program *p);
/* budget.c: frees what vkt_step_budget made. */
void vkt_budget_free(vkt_program *p);
/* access.c: VKT_OK for a value of the graph that an application may read: an input, or one that is kept. */
vkt_result vkt_check_readable(const vkt_program *p, vkt_tensor t);
/* vkt_program_read of any value that a dispatch touches. */
vkt_result vkt_program_fetch(vkt_program *p, vkt_tensor t, void *data);
/* debug.c: what VKT_DEBUG asks for, from level 2 on. A run that waits for its end; the times, logged. */
vkt_result vkt_debug_start(vkt_program *p);
vkt_result vkt_debug_run(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *run_index);
void vkt_debug_end(vkt_program *p);
/* Device memory that a program of this graph would hold, in *bytes: from its plan, with nothing made on the device. Of
 * `params`, precision and recompute count. Nothing may be added to the graph afterwards. */
vkt_result vkt_program_need(vkt_ctx *ctx, vkt_graph *g, const vkt_program_params *params, uint64_t *bytes);
/* vkt_program_print, line by line, at VKT_LOG_DEBUG. */
void vkt_program_log(const vkt_program *p);

#endif
