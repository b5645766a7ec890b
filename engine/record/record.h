/* record/record.h - inside of the record floor: arrays, stores and programs as they are. */
#ifndef VKT_RECORD_H
#define VKT_RECORD_H

#include "gpu/gpu.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "plan/plan.h"

struct vkt_array {
    vkt_ctx *ctx;
    vkt_buffer *buffer;
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
    uint64_t beta1, beta2; /* 0.64 fixed point; 0 when the optimizer has none */
    vkt_buffer *part[4];   /* by vkt_store_part; NULL: not there */
    vkt_buffer *clock;
};

/* Where the bytes of one binding are. */
typedef struct vkt_range {
    const vkt_buffer *buffer;
    uint64_t offset_bytes, bytes;
} vkt_range;

struct vkt_program {
    vkt_ctx *ctx;
    vkt_graph *g;
    vkt_store *store;
    char name[VKT_NAME_MAX];
    vkt_emit lowered;
    vkt_plan plan;
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
    vkt_commands commands, profiled; /* profiled.cmd: the same with timestamps, if asked for */
    vkt_timer timer;

    struct {
        int64_t level; /* VKT_DEBUG when the program was made */
        uint64_t *ns;  /* GPU time so far by dispatch, then the marks of one run; NULL: not measured */
        uint64_t runs; /* measured */
    } debug;

    uint64_t runs;                 /* submitted so far */
    uint64_t values[VKT_RUN_RING]; /* timeline value of run r at r % VKT_RUN_RING */
};

/* The range that binding `b` of a lowered dispatch stands for, as bound: rounded up to 16 bytes. */
vkt_range vkt_range_of(const vkt_program *p, const vkt_bind *b);
/* All bytes of a value of the graph, rounded up to 4. */
vkt_range vkt_range_of_value(const vkt_program *p, vkt_tensor t);
/* Pipelines, descriptor sets and the recorded command buffers. */
vkt_result vkt_record(vkt_program *p, bool profile);
void vkt_record_free(vkt_program *p);
/* Submits one of the program's command buffers as its next run. */
vkt_result vkt_program_submit(vkt_program *p, const vkt_run *run, VkCommandBuffer cmd, uint64_t *run_index);
/* vkt_program_read of any value that a dispatch touches. */
vkt_result vkt_program_fetch(vkt_program *p, vkt_tensor t, void *data);
/* debug.c: what VKT_DEBUG asks for, from level 2 on. A run that waits for its end; the times, logged. */
vkt_result vkt_debug_start(vkt_program *p);
vkt_result vkt_debug_run(vkt_program *p, const vkt_run *run, uint64_t *run_index);
void vkt_debug_end(vkt_program *p);
/* vkt_program_print, line by line, at VKT_LOG_DEBUG. */
void vkt_program_log(const vkt_program *p);

#endif
